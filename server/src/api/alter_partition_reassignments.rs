//! AlterPartitionReassignments (KIP-455): replicas move to other brokers, or a move is cancelled.

use std::sync::Arc;

use highwater_replication::cluster::ClusterError;
use highwater_replication::cluster::reassign::{Reassignment, alter_partition_reassignments};
use kafka_protocol::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
};

use super::error_code::ErrorCode;
use super::metadata_change::{decide, flatten, message, submit_within};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::controller::replication_defaults;

/// From here on the request says whether the number of replicas may change (KIP-860), and the response repeats it.
const REPLICATION_FACTOR_CHANGE_FROM: i16 = 1;

/// Handles an AlterPartitionReassignments request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: AlterPartitionReassignmentsRequest,
) -> Reply {
    let reassignments: Vec<Reassignment> = request
        .topics
        .iter()
        .flat_map(|topic| {
            topic.partitions.iter().map(|partition| Reassignment {
                topic: topic.name.to_string(),
                partition: partition.partition_index,
                replicas: partition
                    .replicas
                    .as_ref()
                    .map(|ids| ids.iter().map(|id| id.0).collect()),
            })
        })
        .collect();
    let may_change = request.allow_replication_factor_change;
    let defaults = replication_defaults(&broker.config.current());
    let submitted = submit_within(&broker, request.timeout_ms, move |image, _| {
        decide(alter_partition_reassignments(
            image,
            &defaults,
            &reassignments,
            may_change,
        ))
    });
    let mut response = AlterPartitionReassignmentsResponse::default().with_error_message(None);
    if ctx.api_version >= REPLICATION_FACTOR_CHANGE_FROM {
        response.allow_replication_factor_change = may_change;
    }
    let results = match flatten(submitted.await) {
        Ok(results) => results,
        Err((error, text)) => {
            ctx.count_error(error);
            let response = response
                .with_error_code(error.code())
                .with_error_message(text);
            return ctx.encode(&response).into();
        }
    };
    let mut results = results.into_iter();
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let response = ReassignablePartitionResponse::default()
                .with_partition_index(partition.partition_index)
                .with_error_message(None);
            match results.next() {
                Some(Err(error)) => {
                    let code = error.error_code();
                    ctx.count_error(code);
                    let text = match error {
                        // Kafka leaves a text out that says no more than the code.
                        ClusterError::NoReassignmentInProgress => None,
                        error => message(&error),
                    };
                    response
                        .with_error_code(code.code())
                        .with_error_message(text)
                }
                Some(Ok(())) | None => response,
            }
        });
        ReassignableTopicResponse::default()
            .with_partitions(partitions.collect())
            .with_name(topic.name)
    });
    let response = response.with_responses(topics.collect());
    ctx.encode(&response).into()
}
