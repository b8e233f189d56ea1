//! Highwater's own command-line tools, run as Apache Kafka's are in [`crate::java_tools`].

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::highwater;
use crate::java_tools::ToolRun;
use crate::process::poll;

/// No tool call of a test takes longer.
const LIMIT: Duration = Duration::from_secs(120);

/// The command that runs `highwater TOOL`.
///
/// # Errors
/// When Highwater does not build.
pub fn command(tool: &str) -> Result<Command> {
    let mut command = Command::new(highwater::binary()?);
    command.arg(tool);
    Ok(command)
}

/// Runs `highwater TOOL` with this on its standard input.
///
/// # Errors
/// When it cannot be started or does not end in time.
pub fn run(tool: &str, args: &[&str], input: &[u8]) -> Result<ToolRun> {
    let mut command = command(tool)?;
    command.args(args);
    output(command, input).with_context(|| format!("highwater {tool} {args:?}"))
}

/// Runs a command to its end.
///
/// # Errors
/// When it cannot be started or does not end in time.
pub fn output(mut command: Command, input: &[u8]) -> Result<ToolRun> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let stdout = child.stdout.take().context("no standard output")?;
    let stderr = child.stderr.take().context("no standard error")?;
    let input = input.to_owned();
    // A tool may end before it has read everything.
    let feeding = std::thread::spawn(move || stdin.write_all(&input).ok());
    let (out, err) = (read(stdout), read(stderr));
    let Some(status) = poll(LIMIT, || child.try_wait().ok().flatten()) else {
        child.kill()?;
        child.wait()?;
        bail!("no end within {LIMIT:?}");
    };
    feeding.join().ok();
    Ok(ToolRun {
        status: status.code().unwrap_or(-1),
        out: out.join().unwrap_or_default(),
        err: err.join().unwrap_or_default(),
    })
}

fn read(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        from.read_to_end(&mut text).ok();
        String::from_utf8_lossy(&text).into_owned()
    })
}
