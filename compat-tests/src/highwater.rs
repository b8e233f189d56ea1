//! Builds and starts Highwater.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

use crate::apache_kafka::CLUSTER_ID;
use crate::cache::workspace_root;

/// The `highwater` binary: `HIGHWATER_BIN`, else what `cargo build --release -p highwater` makes.
///
/// # Errors
/// When it does not build.
pub fn binary() -> Result<PathBuf> {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BINARY
        .get_or_init(|| build().map_err(|error| format!("{error:#}")))
        .clone()
        .map_err(anyhow::Error::msg)
}

fn build() -> Result<PathBuf> {
    if let Some(binary) = std::env::var_os("HIGHWATER_BIN").filter(|v| !v.is_empty()) {
        return Ok(PathBuf::from(binary));
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "build",
            "--release",
            "-p",
            "highwater",
            "--message-format=json-render-diagnostics",
        ])
        .current_dir(workspace_root())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("highwater does not build: {}", output.status);
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "highwater")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo names no executable of highwater")
}

/// The command that starts Highwater with `properties`.
pub(crate) fn command(properties: &BTreeMap<String, String>) -> Result<Command> {
    let mut command = Command::new(binary()?);
    command.arg("start");
    for (key, value) in properties {
        command.arg("--override").arg(format!("{key}={value}"));
    }
    command.env("CLUSTER_ID", CLUSTER_ID);
    command.env(
        "RUST_LOG",
        std::env::var_os("HIGHWATER_LOG").unwrap_or_else(|| "info".into()),
    );
    Ok(command)
}
