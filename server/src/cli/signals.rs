//! Signals that end the broker.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end the broker: SIGTERM, SIGINT and SIGHUP, as for Apache Kafka.
pub(super) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
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
        })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Received {
        tokio::select! {
            _ = self.terminate.recv() => Received { name: "SIGTERM", number: 15 },
            _ = self.interrupt.recv() => Received { name: "SIGINT", number: 2 },
            _ = self.hang_up.recv() => Received { name: "SIGHUP", number: 1 },
        }
    }
}
