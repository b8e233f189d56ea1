//! What the handlers share that change the metadata: waiting for the controller, and its refusals as Kafka's errors.

use std::fmt::Display;
use std::time::Duration;

use highwater_replication::cluster::liveness::BrokerLiveness;
use highwater_replication::cluster::{ClusterError, ClusterImage, MetadataRecord};
use highwater_storage::BrokerId;
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

/// What the rules made of a request, as a decision: its records with the response, or the refusal alone.
pub(super) fn decide<R>(
    judged: Result<(Vec<MetadataRecord>, R), ClusterError>,
) -> Decision<Result<R, ClusterError>> {
    match judged {
        Ok((records, response)) => Decision {
            records,
            response: Ok(response),
        },
        Err(error) => Decision::unchanged(Err(error)),
    }
}

/// An error, and the text that the client is told.
pub(super) type Refusal = (ResponseError, Option<StrBytes>);

/// One error of a request that was refused by the controller or by its rules.
pub(super) fn flatten<R>(
    submitted: Result<Result<R, ClusterError>, ResponseError>,
) -> Result<R, Refusal> {
    match submitted {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err((error.error_code(), message(&error))),
        Err(error) => Err((error, None)),
    }
}

/// As [`flatten`], of a request that `who` sent for itself; a refusal is taken note of.
pub(super) fn flatten_noting<R>(
    broker: &Broker,
    what: &str,
    who: BrokerId,
    submitted: Result<Result<R, ClusterError>, ResponseError>,
) -> Result<R, Refusal> {
    if let Ok(Err(error)) = &submitted {
        note(broker, error, &what, who);
    }
    flatten(submitted)
}

/// Takes note of what is refused to a broker.
pub(super) fn note(broker: &Broker, error: &ClusterError, what: &dyn Display, who: BrokerId) {
    let who = format_args!("broker {who}").to_string();
    broker
        .refusals
        .on_cluster_error(error, what, &who, broker.now_ms());
}

/// Reads or changes the sessions of brokers, if this node is the active controller.
pub(super) fn with_sessions<R>(
    broker: &Broker,
    act: impl FnOnce(&mut BrokerLiveness, &ClusterImage, i64) -> R,
) -> Result<R, ResponseError> {
    let epoch = active_epoch(broker)?;
    let image = broker.image();
    let sessions = &broker.broker_sessions;
    Ok(sessions.with(epoch, &image, |liveness, now_ms| {
        act(liveness, &image, now_ms)
    }))
}

/// The epoch that this node is the active controller in; NOT_CONTROLLER if it is not.
pub(super) fn active_epoch(broker: &Broker) -> Result<i32, ResponseError> {
    let active = broker.controller.active_controller();
    let epoch = active.borrow().as_ref().map(|node| node.epoch);
    epoch
        .filter(|_| broker.controller.is_active())
        .ok_or(ResponseError::NotController)
}
