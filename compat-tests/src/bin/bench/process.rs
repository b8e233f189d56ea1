//! What a process has used, from /proc.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// CPU time, user and system, of the whole process so far.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit_once(')').context("stat has no command name")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |i: usize| -> Result<u64> {
        fields
            .get(i)
            .context("stat is short")?
            .parse()
            .context("stat is no number")
    };
    let ticks_per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_millis(
        (ticks(11)? + ticks(12)?) * 1000 / ticks_per_second,
    ))
}

/// Anonymous resident memory in bytes.
pub(crate) fn anonymous_bytes(pid: u32) -> Result<u64> {
    status_kib(pid, "RssAnon:").map(|kib| kib * 1024)
}

fn status_kib(pid: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .context("no such line")?;
    line.trim()
        .trim_end_matches(" kB")
        .parse()
        .context("status is no number")
}

/// Bytes that the process has really read from its disks.
pub(crate) fn disk_read_bytes(pid: u32) -> Result<u64> {
    let io = fs::read_to_string(format!("/proc/{pid}/io"))?;
    let line = io
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes:"))
        .context("no line")?;
    line.trim().parse().context("io is no number")
}
