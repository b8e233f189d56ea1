//! The process, under the names that Prometheus' own clients use.

use std::fmt;
use std::fs;

use super::families::Families;

/// Ticks a second of the times in `/proc`: fixed in Linux' interface to programs.
const TICKS_PER_SECOND: f64 = 100.0;
/// Fields of `/proc/self/stat` after the program's name, from 0.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const START_TICKS: usize = 19;

pub(super) fn encode(families: &mut Families<'_>) -> fmt::Result {
    families.info(
        "highwater_build",
        "This program.",
        [("version", env!("CARGO_PKG_VERSION"))],
    )?;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    if let Some(times) = Times::parse(&stat) {
        families.real_counter(
            "process_cpu_seconds",
            "Processor time used.",
            times.cpu_seconds,
        )?;
        if let Some(boot) = boot_time(&fs::read_to_string("/proc/stat").unwrap_or_default()) {
            families.real_gauge(
                "process_start_time_seconds",
                "When the process began, in seconds since 1970.",
                boot + times.start_seconds_after_boot,
            )?;
        }
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for (name, help, field, unit) in [
        (
            "process_resident_memory_bytes",
            "Resident memory.",
            "VmRSS:",
            1024,
        ),
        (
            "process_anonymous_memory_bytes",
            "Resident memory that is no file's.",
            "RssAnon:",
            1024,
        ),
        ("process_threads", "Threads.", "Threads:", 1),
    ] {
        if let Some(value) = status_field(&status, field) {
            families.gauge(name, help, value * unit)?;
        }
    }
    if let Ok(entries) = fs::read_dir("/proc/self/fd") {
        let open = i64::try_from(entries.count()).unwrap_or(i64::MAX);
        families.gauge("process_open_fds", "Open file descriptors.", open)?;
    }
    Ok(())
}

/// What `/proc/self/stat` says about time.
#[derive(Debug, PartialEq)]
struct Times {
    cpu_seconds: f64,
    start_seconds_after_boot: f64,
}

impl Times {
    fn parse(stat: &str) -> Option<Self> {
        // The name in brackets may hold anything, brackets too.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
        Some(Times {
            cpu_seconds: (ticks(USER_TICKS)? + ticks(SYSTEM_TICKS)?) / TICKS_PER_SECOND,
            start_seconds_after_boot: ticks(START_TICKS)? / TICKS_PER_SECOND,
        })
    }
}

/// When the machine was started, in seconds since 1970, from `/proc/stat`.
fn boot_time(stat: &str) -> Option<f64> {
    stat.lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()
}

/// A number of `/proc/self/status`.
fn status_field(status: &str, field: &str) -> Option<i64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(field))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_proc_are_found_whatever_the_program_is_called() {
        let stat = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 150 0 0 20 0 5 0 12345 9 9";
        let times = Times {
            cpu_seconds: 4.0,
            start_seconds_after_boot: 123.45,
        };
        assert_eq!(Times::parse(stat), Some(times));
        assert_eq!(Times::parse(""), None);
        assert_eq!(
            boot_time("cpu 1 2\nbtime 1700000000\nprocesses 3\n"),
            Some(1_700_000_000.0)
        );
        let status = "Name:\tx\nVmRSS:\t    1234 kB\nThreads:\t7\n";
        assert_eq!(status_field(status, "VmRSS:"), Some(1234));
        assert_eq!(status_field(status, "Threads:"), Some(7));
        assert_eq!(status_field(status, "RssAnon:"), None);
    }

    #[test]
    fn this_process_has_all_of_them() {
        assert!(Times::parse(&fs::read_to_string("/proc/self/stat").expect("read")).is_some());
        let status = fs::read_to_string("/proc/self/status").expect("read");
        assert!(status_field(&status, "RssAnon:").is_some_and(|kib| kib > 0));
    }
}
