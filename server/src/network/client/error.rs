//! Why a request to another node has no response.

use std::sync::Arc;
use std::time::Duration;

/// Why a request has no response. Cheap to clone: all requests that wait on a connection share its end.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// The node cannot be reached.
    #[error("connecting to {address} failed: {reason}")]
    Connect {
        /// Host and port.
        address: Arc<str>,
        /// What the operating system says.
        reason: Arc<str>,
    },
    /// The connection ended before the response came. Whether the request took effect is not known.
    #[error("the connection to {address} was closed: {reason}")]
    Closed {
        /// Host and port.
        address: Arc<str>,
        /// Why it ended.
        reason: Arc<str>,
    },
    /// The response did not come in time, and the connection was closed.
    #[error("{api} of {address} did not answer within {timeout:?}")]
    TimedOut {
        /// Host and port.
        address: Arc<str>,
        /// The API that was called.
        api: &'static str,
        /// The time that it had.
        timeout: Duration,
    },
    /// The node serves no version of the API that we speak.
    #[error("{address} does not serve {api} in versions {min} to {max}")]
    UnsupportedVersion {
        /// Host and port.
        address: Arc<str>,
        /// The API.
        api: &'static str,
        /// Our lowest version.
        min: i16,
        /// Our highest version.
        max: i16,
    },
    /// The request says something that its version cannot carry.
    #[error("{api} request cannot be encoded in version {version}: {reason}")]
    Encode {
        /// The API.
        api: &'static str,
        /// The version.
        version: i16,
        /// What is wrong.
        reason: Arc<str>,
    },
    /// The response does not parse; the connection was closed.
    #[error("{api} response of {address} does not parse: {reason}")]
    Decode {
        /// Host and port.
        address: Arc<str>,
        /// The API.
        api: &'static str,
        /// What is wrong.
        reason: Arc<str>,
    },
}

impl ClientError {
    /// Whether the request may never have left, or may have taken effect without an answer: asking again, perhaps
    /// another node, may help.
    pub fn is_retriable(&self) -> bool {
        matches!(
            self,
            ClientError::Connect { .. } | ClientError::Closed { .. } | ClientError::TimedOut { .. }
        )
    }
}
