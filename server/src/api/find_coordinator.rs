//! FindCoordinator (key 10): which broker serves a group.

use std::sync::Arc;

use futures_util::future::FutureExt;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use super::cluster_nodes::{Node, nodes};
use super::group_answer::code;
use super::{Reply, RequestContext, ResponseBody};
use crate::broker::Broker;
use crate::coordinator::group::OFFSETS_TOPIC;

/// From here on a request asks for any number of keys (KIP-699).
const BATCH: i16 = 4;
/// From here on an error may have a text.
const ERROR_MESSAGE: i16 = 1;
/// The key type of groups; those of transactions and share groups (2) have no coordinator here.
const GROUP: i8 = 0;
/// The key type of transactional ids.
const TRANSACTION: i8 = 1;

/// Finds the coordinator of groups. The first question has `__consumer_offsets` made, and is answered when it is there.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: FindCoordinatorRequest,
) -> Reply {
    let asks_for_group = request.key_type == GROUP
        && (ctx.api_version < BATCH || !request.coordinator_keys.is_empty());
    if !asks_for_group || broker.image().topic(OFFSETS_TOPIC).is_some() {
        return respond(broker, ctx, request).into();
    }
    let (broker, ctx) = (Arc::clone(broker), ctx.clone());
    let made = async move {
        let made = broker
            .until_stopping(broker.auto_topics.ensure(OFFSETS_TOPIC))
            .await;
        if let Some(Err(error)) = made {
            tracing::warn!(topic = OFFSETS_TOPIC, %error, "internal topic cannot be made");
        }
        respond(&broker, &ctx, request)
    };
    Reply::Parked(made.boxed())
}

fn respond(broker: &Broker, ctx: &RequestContext, request: FindCoordinatorRequest) -> ResponseBody {
    let find = |key: &StrBytes| find(broker, ctx, request.key_type, key);
    let response = if ctx.api_version >= BATCH {
        let found = request.coordinator_keys.iter().map(|key| {
            let coordinator = match find(key) {
                Ok(node) => Coordinator::default()
                    .with_node_id(node.id)
                    .with_host(node.host)
                    .with_port(node.port),
                Err(error) => Coordinator::default()
                    .with_node_id(BrokerId(-1))
                    .with_port(-1)
                    .with_error_code(code(ctx, Some(error)))
                    .with_error_message(Some(message(error))),
            };
            coordinator.with_key(key.clone())
        });
        FindCoordinatorResponse::default().with_coordinators(found.collect())
    } else {
        single(ctx, find(&request.key))
    };
    ctx.encode(&response)
}

/// The response of versions that ask for one key.
fn single(ctx: &RequestContext, found: Result<Node, ResponseError>) -> FindCoordinatorResponse {
    let has_message = ctx.api_version >= ERROR_MESSAGE;
    match found {
        Ok(node) => FindCoordinatorResponse::default()
            .with_error_message(has_message.then(|| StrBytes::from_static_str("NONE")))
            .with_node_id(node.id)
            .with_host(node.host)
            .with_port(node.port),
        Err(error) => FindCoordinatorResponse::default()
            .with_error_code(code(ctx, Some(error)))
            .with_error_message(has_message.then(|| message(error)))
            .with_node_id(BrokerId(-1))
            .with_port(-1),
    }
}

fn message(error: ResponseError) -> StrBytes {
    StrBytes::from_static_str(match error {
        ResponseError::InvalidRequest => "no coordinator is served for this type of key",
        ResponseError::TransactionalIdAuthorizationFailed => "transactions are not served",
        _ => "the coordinator is not available yet",
    })
}

fn find(
    broker: &Broker,
    ctx: &RequestContext,
    key_type: i8,
    key: &str,
) -> Result<Node, ResponseError> {
    match key_type {
        GROUP => {}
        // As InitProducerId answers. librdkafka gives up at this error and asks again and again at any other.
        TRANSACTION => return Err(ResponseError::TransactionalIdAuthorizationFailed),
        _ => return Err(ResponseError::InvalidRequest),
    }
    let image = broker.image();
    let partition = broker.groups.partition_for(key);
    let leader = image
        .partition(OFFSETS_TOPIC, partition)
        .and_then(|partition| partition.leader)
        .ok_or(ResponseError::CoordinatorNotAvailable)?;
    nodes(broker, ctx, &image, false)
        .into_iter()
        .find(|node| node.id.0 == leader.0)
        .ok_or(ResponseError::CoordinatorNotAvailable)
}
