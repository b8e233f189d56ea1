//! A wall clock of a node's own that can be set: libfaketime, preloaded into the process, reads how far it is off from a
//! file. The monotonic clock, by which a process measures how long something takes, runs on, as it does when an
//! administrator or a time server sets the clock of a machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The library for programs of many threads.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// Where a node reads how far its clock is off.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    library: PathBuf,
    file: PathBuf,
}

/// The library, where Debian's package of it put it.
fn library() -> Option<PathBuf> {
    let of_each_architecture = fs::read_dir("/usr/lib").ok()?;
    of_each_architecture
        .filter_map(|folder| Some(folder.ok()?.path().join(LIBRARY)))
        .find(|library| library.exists())
}

impl Clock {
    /// Whether the library is installed.
    pub(crate) fn is_available() -> bool {
        library().is_some()
    }

    /// A clock that is right, kept in this folder.
    ///
    /// # Errors
    /// When the library is not installed, or the folder cannot be written.
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        let clock = Self {
            library: library().context("libfaketime is not installed")?,
            file: folder.join("clock"),
        };
        clock.set(0)?;
        Ok(clock)
    }

    /// Sets it so many seconds ahead of the machine's, or behind it when that is negative.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn set(&self, seconds: i64) -> Result<()> {
        // In one step: the process reads the file whenever it asks for the time.
        let next = self.file.with_extension("next");
        fs::write(&next, format!("{seconds:+}\n"))?;
        fs::rename(&next, &self.file).context("cannot set the clock")
    }

    /// Has a process read this clock.
    pub(crate) fn preload_into(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            // Else the library takes the monotonic time at which a wait ends for one of the wall clock: a JVM's waits
            // end at once.
            .env("FAKETIME_FORCE_MONOTONIC_FIX", "0")
            .env("NO_FAKE_STAT", "1");
    }
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    fn seconds_told(clock: &Clock) -> i64 {
        let mut date = Command::new("date");
        date.arg("+%s");
        clock.preload_into(&mut date);
        let output = date.output().expect("date");
        let text = String::from_utf8(output.stdout).expect("digits");
        text.trim().parse().expect("seconds")
    }

    #[test]
    fn a_process_reads_the_clock_that_was_set() {
        if !Clock::is_available() {
            eprintln!("without libfaketime");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::new(folder.path()).unwrap();
        for jump in [0, 600, -600] {
            clock.set(jump).unwrap();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let off = seconds_told(&clock) - i64::try_from(now.as_secs()).unwrap();
            assert!((jump..jump + 60).contains(&off), "{off} for {jump}");
        }
    }
}
