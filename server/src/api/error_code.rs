//! Every error of every crate as Kafka's error code, in one place.

use kafka_protocol::ResponseError;

/// The Kafka error that a client is answered with.
pub trait ErrorCode {
    /// Kafka's error for this one.
    fn error_code(&self) -> ResponseError;
}

impl ErrorCode for ResponseError {
    fn error_code(&self) -> ResponseError {
        *self
    }
}
