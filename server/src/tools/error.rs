//! How a tool fails.

use std::io::{self, Write as _};

use super::client::KafkaError;

/// Why a tool ends with an exit code other than 0.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// Told on stderr as it stands, one clear sentence; exit code 1.
    #[error("{0}")]
    Failed(String),
    /// Everything was told already; only the exit code is left.
    #[error("the tool ends with exit code {0}")]
    Exit(u8),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

impl ToolError {
    /// A failure with this text.
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        ToolError::Failed(text.into())
    }

    /// Ends with [`failed`](Self::failed), as options that make no sense do.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn refuse<T>(text: impl Into<String>) -> Result<T, Self> {
        Err(Self::failed(text))
    }

    /// Writes a line to stderr; where stderr is gone, nobody is left to tell.
    pub(crate) fn warn(text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

impl From<KafkaError> for ToolError {
    /// As Java prints the throwable: class with its package, and the text.
    fn from(error: KafkaError) -> Self {
        ToolError::Failed(error.in_full())
    }
}
