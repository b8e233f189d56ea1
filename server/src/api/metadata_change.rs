//! What the handlers share that change the metadata: waiting for the controller, and its refusals as Kafka's errors.

use std::time::Duration;

use highwater_replication::cluster::{ClusterError, ClusterImage};
use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;

use super::error_code::ErrorCode;
use crate::broker::Broker;
use crate::controller::Decision;

/// Has the controller judge a request and waits for it, but not longer than the client does: then
/// REQUEST_TIMED_OUT. A time limit of 0 or less is over at once, as in Kafka.
pub(super) async fn submit_within<R, F>(
    broker: &Broker,
    timeout_ms: i32,
    judge: F,
) -> Result<R, ResponseError>
where
    R: Send + 'static,
    F: FnOnce(&ClusterImage, i64) -> Decision<R> + Send + 'static,
{
    let timeout_ms = u64::try_from(timeout_ms).unwrap_or(0);
    if timeout_ms == 0 {
        return Err(ResponseError::RequestTimedOut);
    }
    match tokio::time::timeout(
        Duration::from_millis(timeout_ms),
        broker.controller.submit(judge),
    )
    .await
    {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(error.error_code()),
        Err(_) => Err(ResponseError::RequestTimedOut),
    }
}

/// As [`submit_within`], for requests that have no time limit of their own.
pub(super) async fn submit<R, F>(broker: &Broker, judge: F) -> Result<R, ResponseError>
where
    R: Send + 'static,
    F: FnOnce(&ClusterImage, i64) -> Decision<R> + Send + 'static,
{
    broker
        .controller
        .submit(judge)
        .await
        .map_err(|error| error.error_code())
}

/// The text that goes with a refusal.
pub(super) fn message(error: &ClusterError) -> Option<StrBytes> {
    Some(StrBytes::from_string(error.to_string()))
}
