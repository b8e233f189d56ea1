//! ListOffsets: offsets by timestamp, and the special ones (first, last, largest timestamp).

use std::collections::HashSet;
use std::sync::Arc;

use highwater_replication::runtime::read::{OffsetQuery, ReadIsolation};
use highwater_storage::LeaderEpoch;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_offsets_request::ListOffsetsPartition;
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};

use super::error_code::ErrorCode;
use super::{Reply, RequestContext, partitions};
use crate::broker::Broker;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;

const CONSUMER_REPLICA_ID: i32 = -1;
/// A consumer that may ask followers too.
const DEBUGGING_REPLICA_ID: i32 = -2;
const READ_COMMITTED: i8 = 1;
/// The first version whose answer has a leader epoch.
const LEADER_EPOCH_FROM: i16 = 4;

/// The first version whose clients know OFFSET_NOT_AVAILABLE; earlier ones look for the leader again.
const OFFSET_NOT_AVAILABLE_FROM: i16 = 5;

/// Handles a ListOffsets request.
pub(super) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: ListOffsetsRequest,
) -> Reply {
    let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
    // The ends of a log are known; anything else may have to be read from disk.
    let known = |timestamp| {
        matches!(
            timestamp,
            LATEST | EARLIEST | EARLIEST_LOCAL | LATEST_TIERED
        )
    };
    if partitions.map(|partition| partition.timestamp).all(known) {
        return Reply::Ready(ctx.encode(&answer(broker, ctx, &request)));
    }
    let (broker, ctx) = (Arc::clone(broker), ctx.clone());
    Reply::Parked(Box::pin(async move {
        let context = ctx.clone();
        let looked_up = tokio::task::spawn_blocking(move || {
            context.encode(&answer(&broker, &context, &request))
        });
        looked_up.await.unwrap_or_else(|error| {
            tracing::error!(%error, "offset look-up failed");
            super::ResponseBody::unencodable()
        })
    }))
}

fn answer(
    broker: &Broker,
    ctx: &RequestContext,
    request: &ListOffsetsRequest,
) -> ListOffsetsResponse {
    let mut seen = HashSet::new();
    let names = request.topics.iter();
    let keys = names.flat_map(|topic| {
        topic
            .partitions
            .iter()
            .map(|p| (&topic.name, p.partition_index))
    });
    let duplicates: HashSet<_> = keys.filter(|key| !seen.insert(*key)).collect();
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let result = if duplicates.contains(&(&topic.name, partition.partition_index)) {
                Err(ResponseError::InvalidRequest)
            } else {
                look_up(broker, ctx, request, &topic.name, partition)
            };
            result.unwrap_or_else(|error| {
                ctx.count_error(error);
                not_found(partition.partition_index).with_error_code(error.code())
            })
        });
        ListOffsetsTopicResponse::default()
            .with_name(topic.name.clone())
            .with_partitions(partitions.collect())
    });
    ListOffsetsResponse::default().with_topics(topics.collect())
}

fn not_found(partition_index: i32) -> ListOffsetsPartitionResponse {
    ListOffsetsPartitionResponse::default()
        .with_partition_index(partition_index)
        .with_timestamp(-1)
        .with_offset(-1)
        .with_leader_epoch(-1)
}

fn look_up(
    broker: &Broker,
    ctx: &RequestContext,
    request: &ListOffsetsRequest,
    topic: &str,
    asked: &ListOffsetsPartition,
) -> Result<ListOffsetsPartitionResponse, ResponseError> {
    let query = query(asked.timestamp, ctx.api_version)?;
    let partition = partitions::by_name(broker, topic, asked.partition_index)?;
    let epoch =
        (asked.current_leader_epoch >= 0).then_some(LeaderEpoch(asked.current_leader_epoch));
    let isolation = match (request.replica_id.0, request.isolation_level) {
        (CONSUMER_REPLICA_ID, READ_COMMITTED) => ReadIsolation::LastStable,
        (CONSUMER_REPLICA_ID, _) => ReadIsolation::HighWatermark,
        _ => ReadIsolation::LogEnd,
    };
    let leader_only = request.replica_id.0 != DEBUGGING_REPLICA_ID;
    let found = match query {
        Some(query) => partition.list_offset(query, isolation, epoch, leader_only),
        None => partition.check_served(epoch, leader_only).map(|()| None),
    };
    let found = found.inspect_err(|error| {
        let topic_partition = partition.topic_partition();
        let now_ms = broker.now_ms();
        let who = "who asks for an offset";
        broker
            .refusals
            .on_partition_error(error, topic_partition, &who, now_ms);
    });
    let found = found.map_err(|error| match error.error_code() {
        ResponseError::OffsetNotAvailable if ctx.api_version < OFFSET_NOT_AVAILABLE_FROM => {
            ResponseError::LeaderNotAvailable
        }
        error => error,
    })?;
    let response = not_found(asked.partition_index);
    let Some(found) = found else {
        return Ok(response);
    };
    let response = response
        .with_timestamp(found.timestamp)
        .with_offset(found.offset);
    Ok(match found.leader_epoch {
        Some(epoch) if ctx.api_version >= LEADER_EPOCH_FROM => response.with_leader_epoch(epoch.0),
        _ => response,
    })
}

/// Reads a timestamp of the wire. `None` asks for the end of tiered storage, of which there is
/// none. Each special value came with a version of its own.
fn query(timestamp: i64, version: i16) -> Result<Option<OffsetQuery>, ResponseError> {
    Ok(Some(match timestamp {
        LATEST => OffsetQuery::Latest,
        EARLIEST => OffsetQuery::Earliest,
        MAX_TIMESTAMP if version >= 7 => OffsetQuery::MaxTimestamp,
        EARLIEST_LOCAL if version >= 8 => OffsetQuery::Earliest,
        LATEST_TIERED if version >= 9 => return Ok(None),
        time if time >= 0 => OffsetQuery::AtTimestamp(time),
        _ => return Err(ResponseError::UnsupportedVersion),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_special_timestamp_needs_its_version() {
        for (timestamp, first) in [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9)] {
            assert!(query(timestamp, first).is_ok(), "{timestamp} at {first}");
            let earlier = query(timestamp, first - 1);
            assert_eq!(
                earlier.is_ok(),
                timestamp >= -2,
                "{timestamp} before {first}"
            );
        }
        assert_eq!(query(-6, 10), Err(ResponseError::UnsupportedVersion));
        assert_eq!(query(0, 1), Ok(Some(OffsetQuery::AtTimestamp(0))));
    }
}
