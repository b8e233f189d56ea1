//! DescribeProducers: the idempotent and transactional producers that a partition knows (KIP-664).

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use kafka_protocol::messages::{DescribeProducersRequest, DescribeProducersResponse, ProducerId};
use kafka_protocol::protocol::StrBytes;

use super::error_code::ErrorCode;
use super::{Reply, RequestContext, partitions};
use crate::broker::Broker;

/// Handles a DescribeProducers request.
pub(super) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: DescribeProducersRequest,
) -> Reply {
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partition_indexes.iter().map(|index| {
            let answer = PartitionResponse::default().with_partition_index(*index);
            match producers(broker, &topic.name, *index) {
                Ok(producers) => answer.with_active_producers(producers),
                Err(error) => {
                    ctx.count_error(error);
                    let unknown = error == ResponseError::UnknownTopicOrPartition;
                    answer
                        .with_error_code(error.code())
                        .with_error_message(unknown.then(|| no_such_partition(&topic.name, *index)))
                }
            }
        });
        TopicResponse::default()
            .with_partitions(partitions.collect())
            .with_name(topic.name)
    });
    let response = DescribeProducersResponse::default().with_topics(topics.collect());
    Reply::Ready(ctx.encode(&response))
}

fn no_such_partition(topic: &str, index: i32) -> StrBytes {
    StrBytes::from_string(format!("topic {topic} has no partition {index}"))
}

fn producers(
    broker: &Broker,
    topic: &str,
    index: i32,
) -> Result<Vec<ProducerState>, ResponseError> {
    let partition = partitions::by_name(broker, topic, index)?;
    partition
        .check_leader(None)
        .map_err(|error| error.error_code())?;
    let states = partition.log().active_producers();
    let described = states.into_iter().map(|state| {
        ProducerState::default()
            .with_producer_id(ProducerId(state.producer_id))
            .with_producer_epoch(state.producer_epoch.into())
            .with_last_sequence(state.last_sequence)
            .with_last_timestamp(state.last_timestamp)
            .with_coordinator_epoch(state.coordinator_epoch)
            .with_current_txn_start_offset(state.current_txn_start_offset.unwrap_or(-1))
    });
    Ok(described.collect())
}
