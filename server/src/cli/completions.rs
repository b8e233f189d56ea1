//! `highwater completions`: what makes a shell complete commands and options.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap_complete::Shell;

use super::{definition, definition_of_tool};
use crate::tools;

/// The script for a shell: for `highwater`, and for every name under which it is one of Kafka's scripts.
pub(super) fn script(shell: Shell) -> String {
    let mut script = of(shell, definition(), "highwater");
    for name in tools::scripts() {
        let tool = tools::named_by_program(&OsString::from(&name));
        if let Some(definition) = tool.and_then(|tool| definition_of_tool(&tool)) {
            script.push('\n');
            append(&mut script, &of(shell, definition, &name));
        }
    }
    script
}

fn of(shell: Shell, mut definition: clap::Command, program: &str) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition, program, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Appends another script; PowerShell takes `using` at the beginning only, and it is there.
fn append(script: &mut String, other: &str) {
    for line in other.lines().filter(|line| !line.starts_with("using ")) {
        // Writing to a text does not fail.
        let _ = writeln!(script, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_tool_is_registered() {
        let bash = script(Shell::Bash);
        for name in tools::scripts().chain(["highwater".to_owned()]) {
            let registered =
                |line: &str| line.contains("complete -F") && line.ends_with(&format!(" {name}"));
            assert!(bash.lines().any(registered), "{name}");
        }
        let power_shell = script(Shell::PowerShell);
        let late = power_shell
            .lines()
            .skip(5)
            .find(|line| line.starts_with("using"));
        assert_eq!(late, None);
        let registers = "Register-ArgumentCompleter -Native -CommandName 'kafka-topics.sh'";
        assert!(power_shell.contains(registers));
    }
}
