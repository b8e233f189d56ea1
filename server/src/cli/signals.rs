//! Signals that end the broker.

use std::io;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// A signal that comes sooner after the one that began the stop is part of it: `timeout` and terminals send one to the
/// process and one to its group, a moment apart.
const ON_PURPOSE_AFTER: Duration = Duration::from_secs(1);

/// The signals that end the broker: SIGTERM, SIGINT and SIGHUP, as for Apache Kafka.
pub(super) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    /// Set while the end of stdin counts as SIGTERM.
    stdin: Option<tokio::io::Stdin>,
}

/// A signal that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Received {
    /// Name, for the log.
    pub(super) name: &'static str,
    /// Number; a process that it ends at once exits with 128 and this.
    pub(super) number: u8,
}

impl StopSignals {
    /// Begins to listen; from now on none of them ends the process by itself.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(StopSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            stdin: None,
        })
    }

    /// From now on the end of stdin counts as SIGTERM, once. A process that is frozen when its parent ends is woken for it.
    pub(super) fn watch_stdin(&mut self) {
        // The kernel hangs up process groups without a parent only where they have stopped before it ends; one that
        // takes its SIGSTOP a moment later would be left for good.
        #[cfg(target_os = "linux")]
        if let Err(error) =
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::CONT))
        {
            tracing::warn!(%error, "if this process is frozen when its parent ends, it stays so");
        }
        self.stdin = Some(tokio::io::stdin());
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Received {
        tokio::select! {
            _ = self.terminate.recv() => Received { name: "SIGTERM", number: 15 },
            _ = self.interrupt.recv() => Received { name: "SIGINT", number: 2 },
            _ = self.hang_up.recv() => Received { name: "SIGHUP", number: 1 },
            () = end_of(&mut self.stdin) => Received { name: "the end of stdin", number: 15 },
        }
    }

    /// The next one that somebody sent who has seen that the broker is stopping: at least a second after `stopping_since`.
    pub(super) async fn next_on_purpose(&mut self, stopping_since: Instant) -> Received {
        loop {
            let received = self.next().await;
            if stopping_since.elapsed() >= ON_PURPOSE_AFTER {
                return received;
            }
            tracing::info!(
                signal = received.name,
                "already stopping; a signal a second after the first ends the broker at once"
            );
        }
    }
}

/// Completes at the end of what is read, or when it cannot be read; never without a reader.
async fn end_of(stdin: &mut Option<tokio::io::Stdin>) {
    if let Some(reader) = stdin {
        let mut ignored = [0; 256];
        while reader.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
        *stdin = None;
    } else {
        std::future::pending().await
    }
}
