//! Signals that end the broker.

use std::io;

use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

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

    /// From now on the end of stdin counts as SIGTERM, once.
    pub(super) fn watch_stdin(&mut self) {
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
