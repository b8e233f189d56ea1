//! `highwater link-tools`: the names of Kafka's scripts as links to this program.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;

use super::failed;
use crate::tools;

/// Where the links go, and what they point to.
#[derive(Debug, Args)]
pub(super) struct LinkToolsArguments {
    /// Directory of the links; it is made if it is not there
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,

    /// What they point to [default: this program]
    #[arg(long, value_name = "PROGRAM")]
    to: Option<PathBuf>,
}

/// Makes the links and gives the exit code.
pub(super) fn link_tools(arguments: &LinkToolsArguments) -> ExitCode {
    match link(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn link(arguments: &LinkToolsArguments) -> anyhow::Result<()> {
    let program = match &arguments.to {
        Some(program) => program.clone(),
        None => std::env::current_exe().context("cannot tell where this program is")?,
    };
    let directory = &arguments.directory;
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    for script in tools::scripts() {
        link_one(&directory.join(script), &program)?;
    }
    Ok(())
}

/// A link of before is replaced, a file is not.
fn link_one(at: &Path, program: &Path) -> anyhow::Result<()> {
    match fs::symlink_metadata(at) {
        Ok(found) if found.is_symlink() => {
            fs::remove_file(at).with_context(|| format!("cannot replace {}", at.display()))?;
        }
        Ok(_) => bail!("{} is there and no link", at.display()),
        Err(_) => {}
    }
    symlink(program, at).with_context(|| format!("cannot make the link {}", at.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_linked_again_and_no_file_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut arguments = LinkToolsArguments {
            directory: dir.path().join("bin"),
            to: Some(PathBuf::from("/usr/bin/one")),
        };
        link(&arguments).expect("links");
        arguments.to = Some(PathBuf::from("/usr/bin/highwater"));
        link(&arguments).expect("links");
        let script = arguments.directory.join("kafka-delete-records.sh");
        assert_eq!(
            fs::read_link(&script).expect("a link"),
            Path::new("/usr/bin/highwater")
        );
        fs::remove_file(&script).expect("removed");
        fs::write(&script, "").expect("written");
        let error = link(&arguments).expect_err("a file").to_string();
        assert!(
            error.ends_with("kafka-delete-records.sh is there and no link"),
            "{error}"
        );
    }
}
