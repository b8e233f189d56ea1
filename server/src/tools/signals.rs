//! SIGINT and SIGTERM, for tools that have something to finish before they end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::ToolError;

/// Exit code of a JVM that SIGINT has ended.
const INTERRUPTED: u8 = 130;
/// Exit code of a JVM that SIGTERM has ended.
const TERMINATED: u8 = 143;

/// Both signals, which do not end the process any more once this exists.
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the operating system does not let it.
    pub(super) fn listen() -> Result<Self, ToolError> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| ToolError::failed(format!("cannot listen for signals: {error}")))
        };
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for one of them; gives the exit code with which a tool then ends.
    pub(super) async fn next(&mut self) -> u8 {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
        }
    }
}
