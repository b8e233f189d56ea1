//! ElectLeaders (KIP-183, KIP-460): elections of preferred or, where records may be lost, of any leaders.

use std::sync::Arc;

use highwater_replication::cluster::elect_leaders::{ElectionType, TopicElections, elect_leaders};
use kafka_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kafka_protocol::messages::{ElectLeadersRequest, ElectLeadersResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::error_code::ErrorCode;
use super::metadata_change::{Refusal, decide, flatten, message, submit_within};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::controller::replication_defaults;

/// From here on a response has an error of its own.
const ERROR_CODE_FROM: i16 = 1;

/// Handles an ElectLeaders request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: ElectLeadersRequest,
) -> Reply {
    let response = match elect(&broker, &request).await {
        Ok(topics) => {
            let results = topics
                .into_iter()
                .map(|topic| response_topic(&broker, &ctx, topic));
            ElectLeadersResponse::default().with_replica_election_results(results.collect())
        }
        Err(refusal) => refuse(&ctx, request, refusal),
    };
    ctx.encode(&response).into()
}

async fn elect(
    broker: &Arc<Broker>,
    request: &ElectLeadersRequest,
) -> Result<Vec<TopicElections>, Refusal> {
    let election_type = ElectionType::from_id(request.election_type)
        .map_err(|error| (error.error_code(), message(&error)))?;
    let partitions = request.topic_partitions.as_ref().map(|topics| {
        let topics = topics.iter();
        let topics = topics.map(|topic| (topic.topic.to_string(), topic.partitions.clone()));
        topics.collect::<Vec<_>>()
    });
    let defaults = replication_defaults(&broker.config.current());
    let submitted = submit_within(broker, request.timeout_ms, move |image, _| {
        decide(elect_leaders(
            image,
            &defaults,
            election_type,
            partitions.as_deref(),
        ))
    });
    flatten(submitted.await)
}

fn response_topic(
    broker: &Broker,
    ctx: &RequestContext,
    (name, partitions): TopicElections,
) -> ReplicaElectionResult {
    let results = partitions.into_iter().map(|(id, result)| {
        let response = PartitionResult::default().with_partition_id(id);
        match result {
            Ok(()) => response.with_error_message(None),
            Err(error) => {
                let code = error.error_code();
                ctx.count_error(code);
                let (what, now_ms) = (format!("{name}-{id}"), broker.now_ms());
                broker.refusals.on_cluster_error(
                    &error,
                    &what,
                    &"who asks for an election",
                    now_ms,
                );
                response
                    .with_error_code(code.code())
                    .with_error_message(message(&error))
            }
        }
    });
    ReplicaElectionResult::default()
        .with_topic(TopicName(StrBytes::from_string(name.clone())))
        .with_partition_result(results.collect())
}

/// The error for the request, and for each partition that it names.
fn refuse(
    ctx: &RequestContext,
    request: ElectLeadersRequest,
    (error, text): Refusal,
) -> ElectLeadersResponse {
    ctx.count_error(error);
    let topics = request.topic_partitions.unwrap_or_default().into_iter();
    let results = topics.map(|topic| {
        let partitions = topic.partitions.into_iter().map(|id| {
            PartitionResult::default()
                .with_partition_id(id)
                .with_error_code(error.code())
                .with_error_message(text.clone())
        });
        ReplicaElectionResult::default()
            .with_topic(topic.topic)
            .with_partition_result(partitions.collect())
    });
    let response = ElectLeadersResponse::default().with_replica_election_results(results.collect());
    match ctx.api_version >= ERROR_CODE_FROM {
        true => response.with_error_code(error.code()),
        false => response,
    }
}
