//! One server process, Highwater or Apache Kafka, and what can be done to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::broker::BrokerKind;
use crate::cluster::Clock;
use crate::process::{ManagedProcess, poll};
use crate::{apache_kafka, highwater};

/// Limit for a start or a clean stop: generous, since a JVM may share two cores with a build.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(240);

/// How Apache Kafka's JVM is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JavaOptions {
    /// Largest heap.
    pub(crate) heap_mib: u32,
    pub(crate) start: JvmStart,
}

/// What a JVM is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JvmStart {
    /// To be measured: as Apache Kafka's start script sets it.
    ByScript,
    /// To be there soon: the quick compiler, the simple collector, classes that are loaded already.
    Quick,
    /// To load classes for the others: when it ends they are in [`apache_kafka::LOADED_CLASSES`] in the node's folder.
    LoadClasses,
}

/// A process with its properties, its folder and its log; killed when dropped.
#[derive(Debug)]
pub struct Node {
    kind: BrokerKind,
    properties: BTreeMap<String, String>,
    folder: PathBuf,
    removed_with_tests: PathBuf,
    java: JavaOptions,
    features: BTreeMap<String, i16>,
    clock: Option<Clock>,
    process: Option<ManagedProcess>,
    started: Instant,
    paused: bool,
}

impl Node {
    /// A node that does not run yet. Its log and properties file are kept in `folder`; should the tests be killed,
    /// `removed_with_tests` is removed.
    pub(crate) fn new(
        kind: BrokerKind,
        properties: BTreeMap<String, String>,
        folder: &Path,
        removed_with_tests: &Path,
        java: JavaOptions,
    ) -> Self {
        Self {
            kind,
            properties,
            folder: folder.to_owned(),
            removed_with_tests: removed_with_tests.to_owned(),
            java,
            features: BTreeMap::new(),
            clock: None,
            process: None,
            started: Instant::now(),
            paused: false,
        }
    }

    /// Levels of features that Apache Kafka's directories are formatted with, in place of its defaults.
    pub(crate) fn set_features(&mut self, features: BTreeMap<String, i16>) {
        self.features = features;
    }

    /// Gives it a wall clock of its own in place of the machine's.
    pub(crate) fn set_clock(&mut self, clock: Clock) {
        self.clock = Some(clock);
    }

    /// Its own wall clock; `None` when it has the machine's.
    pub(crate) fn clock(&self) -> Option<&Clock> {
        self.clock.as_ref()
    }

    /// Starts the process, without waiting until it serves.
    pub(crate) fn spawn(&mut self) -> Result<()> {
        if self.process.is_some() {
            bail!("it still runs");
        }
        let mut command = match self.kind {
            BrokerKind::Highwater => highwater::command(&self.properties)?,
            BrokerKind::ApacheKafka => apache_kafka::command(
                &self.properties,
                &self.features,
                &self.folder,
                self.java.heap_mib,
                self.java.start,
            )?,
        };
        if let Some(clock) = &self.clock {
            clock.preload_into(&mut command);
        }
        self.started = Instant::now();
        self.process = Some(ManagedProcess::spawn(
            command,
            &self.log_path(),
            &self.removed_with_tests,
        )?);
        self.paused = false;
        Ok(())
    }

    /// Waits until `ready` holds, and gives how long that took from the start of the process.
    ///
    /// # Errors
    /// When the process ends first, or it is not ready in time; it is ended then, and the text holds its log.
    pub(crate) fn wait_until_ready(&mut self, mut ready: impl FnMut() -> bool) -> Result<Duration> {
        let process = self.process.as_mut().context("it does not run")?;
        let mut ended = None;
        let in_time = poll(START_LIMIT, || {
            if let Ok(Some(status)) = process.exited() {
                ended = Some(status);
                return Some(());
            }
            ready().then_some(())
        });
        let kind = self.kind;
        let failure = match (ended, in_time) {
            (Some(status), _) => format!("{kind} ended with {status} while starting"),
            (None, None) => format!("{kind} is not ready after {START_LIMIT:?}"),
            (None, Some(())) => return Ok(self.started.elapsed()),
        };
        self.process = None;
        bail!("{failure}:\n{}", self.log());
    }

    /// Which implementation this is.
    #[must_use]
    pub fn kind(&self) -> BrokerKind {
        self.kind
    }

    /// A server property as it was given.
    #[must_use]
    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties.get(key).map(String::as_str)
    }

    /// Changes a server property for the next start.
    pub fn set_property(&mut self, key: &str, value: impl std::fmt::Display) {
        self.properties.insert(key.to_owned(), value.to_string());
    }

    /// Process id, while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process.as_ref().map(ManagedProcess::id)
    }

    /// Whether it was started and not ended by the tests; it may be paused.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Whether it runs and is not stopped by SIGSTOP.
    #[must_use]
    pub fn is_awake(&self) -> bool {
        self.is_running() && !self.paused
    }

    /// The exit status, when the process has ended by itself.
    ///
    /// # Errors
    /// I/O errors of the wait.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        match &mut self.process {
            Some(process) => process.exited(),
            None => Ok(None),
        }
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("broker.log")
    }

    /// All that it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read(self.log_path())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// `kill -9`, also when it is paused.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&mut self) -> Result<()> {
        self.take()?.kill()?;
        Ok(())
    }

    /// SIGTERM, then waits for the end; the exit status is the server's.
    ///
    /// # Errors
    /// When it does not run or does not end.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        let mut process = self.take()?;
        process.signal(Signal::TERM)?;
        process
            .wait(START_LIMIT)
            .with_context(|| format!("log:\n{}", process.log()))
    }

    fn take(&mut self) -> Result<ManagedProcess> {
        self.process.take().context("it does not run")
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When it does not run.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.process
            .as_ref()
            .context("it does not run")?
            .signal(signal)
    }

    /// SIGSTOP: it keeps its connections and answers nothing any more.
    ///
    /// # Errors
    /// When it does not run, or does not stop.
    pub fn pause(&mut self) -> Result<()> {
        self.process.as_ref().context("it does not run")?.pause()?;
        self.paused = true;
        Ok(())
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// When it does not run.
    pub fn resume(&mut self) -> Result<()> {
        self.signal(Signal::CONT)?;
        self.paused = false;
        Ok(())
    }
}
