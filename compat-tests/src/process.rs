//! A child process that cannot outlive the tests.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// How often waiting code looks again.
pub const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How long a process may take to stop after SIGSTOP.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// A long-running child whose output goes to a log file.
///
/// It is killed when this value is dropped. Should the test process itself die first, a small shell that
/// waits for the end of its standard input kills the child and removes its folder.
#[derive(Debug)]
pub struct ManagedProcess {
    child: Child,
    watchdog: Child,
    log: PathBuf,
}

impl ManagedProcess {
    /// Starts `command` with both outputs appended to `log`. `folder` is removed if the tests are killed.
    ///
    /// # Errors
    /// When the program is missing or the log cannot be written.
    pub fn spawn(mut command: Command, log: &Path, folder: &Path) -> Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let watchdog = Command::new("sh")
            .arg("-c")
            .arg(r#"read -r _; kill -9 "$1" 2>/dev/null; sleep 0.2; rm -rf "$2" 2>/dev/null || { sleep 3; rm -rf "$2"; }"#)
            .arg("watchdog")
            .arg(child.id().to_string())
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match watchdog {
            Ok(watchdog) => Ok(Self {
                child,
                watchdog,
                log: log.to_owned(),
            }),
            Err(error) => {
                let mut child = child;
                child.kill().ok();
                child.wait().ok();
                Err(error).context("cannot start sh")
            }
        }
    }

    /// The child's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends `signal` to the child.
    ///
    /// # Errors
    /// When it is no longer there.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(self.pid()?, signal)?)
    }

    fn pid(&self) -> Result<Pid> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.context("no process id")
    }

    /// SIGSTOP, and waits until the kernel says that the child has stopped. One thread of it takes the signal, when
    /// it is its turn; on a busy machine the others run and answer until then.
    ///
    /// # Errors
    /// When it is no longer there, or does not stop.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)?;
        let pid = self.pid()?;
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let stopped = poll(STOP_LIMIT, || {
            let status = waitid(WaitId::Pid(pid), options).transpose()?;
            Some(status.map(|_| ()))
        });
        match stopped {
            Some(stopped) => Ok(stopped?),
            None => bail!("process {} does not stop", self.child.id()),
        }
    }

    /// The exit status, once the child has ended.
    ///
    /// # Errors
    /// I/O errors of the wait.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for the child's end.
    ///
    /// # Errors
    /// When it still runs after `limit`.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let status = poll(limit, || self.child.try_wait().ok().flatten());
        match status {
            Some(status) => Ok(status),
            None => bail!("process {} still runs after {limit:?}", self.child.id()),
        }
    }

    /// `kill -9` and wait for the end.
    ///
    /// # Errors
    /// I/O errors of the wait.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.child.kill()?;
        Ok(self.child.wait()?)
    }

    /// All that the child has written so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }
}

impl Drop for ManagedProcess {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        self.watchdog.kill().ok();
        self.watchdog.wait().ok();
    }
}

/// Asks `probe` until it answers, at most for `limit`.
pub fn poll<T>(limit: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = probe() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// As [`poll`], for things that must happen.
///
/// # Panics
/// When `probe` had no answer within `limit`.
#[track_caller]
pub fn eventually<T>(limit: Duration, what: &str, probe: impl FnMut() -> Option<T>) -> T {
    poll(limit, probe).unwrap_or_else(|| panic!("not within {limit:?}: {what}"))
}

/// A port on 127.0.0.1 that nobody listens on, outside the range that outgoing connections take theirs from. This process
/// gives none twice: who is given one listens on it only later, a JVM by seconds.
///
/// # Errors
/// When none of a thousand tries is free, or all were given.
pub fn free_port() -> Result<u16> {
    static PORTS: LazyLock<Mutex<Ports>> =
        LazyLock::new(|| Mutex::new(Ports::beginning_anywhere()));
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut free = ports.by_ref().take(1000);
    free.find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .context("no free port on 127.0.0.1")
}

/// The ports from 12,000 on, each once and none beside the one before.
#[derive(Debug)]
struct Ports {
    begin: u32,
    given: u32,
}

impl Ports {
    const FIRST: u32 = 12_000;
    const COUNT: u32 = 20_000;
    /// Has no factor in common with the count, so that all have their turn.
    const STRIDE: u32 = 7919;

    /// Other processes of tests begin elsewhere.
    fn beginning_anywhere() -> Self {
        let random = RandomState::new().hash_one(());
        let begin = random % u64::from(Self::COUNT);
        Self {
            begin: u32::try_from(begin).unwrap_or(0),
            given: 0,
        }
    }
}

impl Iterator for Ports {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        let index = self.given;
        self.given = Some(index + 1).filter(|given| *given <= Self::COUNT)?;
        let place = (self.begin + index * Self::STRIDE) % Self::COUNT;
        u16::try_from(Self::FIRST + place).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_is_given_once() {
        let mut ports: Vec<u16> = Ports::beginning_anywhere().collect();
        assert!(ports.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 100));
        ports.sort_unstable();
        assert!(ports.into_iter().eq(12_000..32_000));
    }

    #[test]
    fn a_paused_process_does_nothing_more_until_it_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do echo; done"]);
        let process = ManagedProcess::spawn(command, &log, folder.path()).unwrap();
        let written = || std::fs::metadata(&log).unwrap().len();
        for _ in 0..50 {
            process.pause().unwrap();
            let before = written();
            std::thread::sleep(Duration::from_millis(2));
            assert_eq!(written(), before);
            process.signal(Signal::CONT).unwrap();
            eventually(STOP_LIMIT, "it goes on", || {
                (written() > before).then_some(())
            });
        }
    }

    #[test]
    fn a_process_that_has_ended_cannot_be_paused() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut process = ManagedProcess::spawn(Command::new("true"), &log, folder.path()).unwrap();
        process.wait(STOP_LIMIT).unwrap();
        process.pause().unwrap_err();
    }
}
