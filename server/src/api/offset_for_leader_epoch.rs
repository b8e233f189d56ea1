//! OffsetForLeaderEpoch: where a leader epoch ends, for consumers that look for truncation
//! (KIP-320) and for followers.

use std::sync::Arc;

use highwater_storage::LeaderEpoch;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use super::error_code::ErrorCode;
use super::{Reply, RequestContext, partitions};
use crate::broker::Broker;

/// What stands for "no such epoch".
const UNDEFINED: i32 = -1;

/// Handles an OffsetForLeaderEpoch request.
pub(super) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: OffsetForLeaderEpochRequest,
) -> Reply {
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|asked| {
            let answer = EpochEndOffset::default()
                .with_partition(asked.partition)
                .with_leader_epoch(UNDEFINED)
                .with_end_offset(UNDEFINED.into());
            match look_up(broker, &topic.topic, asked) {
                Ok(None) => answer,
                Ok(Some((epoch, end_offset))) => answer
                    .with_leader_epoch(epoch.0)
                    .with_end_offset(end_offset),
                Err(error) => {
                    ctx.count_error(error);
                    answer.with_error_code(error.code())
                }
            }
        });
        OffsetForLeaderTopicResult::default()
            .with_partitions(partitions.collect())
            .with_topic(topic.topic)
    });
    let response = OffsetForLeaderEpochResponse::default().with_topics(topics.collect());
    Reply::Ready(ctx.encode(&response))
}

fn look_up(
    broker: &Broker,
    topic: &str,
    asked: &OffsetForLeaderPartition,
) -> Result<Option<(LeaderEpoch, i64)>, ResponseError> {
    let partition = partitions::by_name(broker, topic, asked.partition)?;
    let current =
        (asked.current_leader_epoch >= 0).then_some(LeaderEpoch(asked.current_leader_epoch));
    let found = partition.end_offset_for_epoch(LeaderEpoch(asked.leader_epoch), current);
    found.map_err(|error| {
        let topic_partition = partition.topic_partition();
        let now_ms = broker.now_ms();
        let who = "who asks for the end of an epoch";
        broker
            .refusals
            .on_partition_error(&error, topic_partition, &who, now_ms);
        error.error_code()
    })
}
