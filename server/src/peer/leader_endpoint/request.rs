//! A replica's requests in the terms of the wire.

use std::ops::RangeInclusive;

use highwater_replication::runtime::leader_endpoint::{
    FetchPartition, FetchRequest, ReplicaOffset, TopicIdPartition,
};
use highwater_storage::{BrokerId, LeaderEpoch, TopicId};
use kafka_protocol::messages::fetch_request::{self, FetchTopic, ForgottenTopic, ReplicaState};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{self, ListOffsetsRequest, OffsetForLeaderEpochRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

/// Fetch from the version on in which a replica tells its broker epoch (KIP-903).
pub(super) const FETCH_VERSIONS: RangeInclusive<i16> = 15..=18;
/// OffsetForLeaderEpoch from the version on in which a replica tells its id.
pub(super) const OFFSET_FOR_LEADER_EPOCH_VERSIONS: RangeInclusive<i16> = 3..=4;

/// No epoch.
const NONE: i32 = -1;
/// `ListOffsets` for the log end, or the log start.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;

pub(super) fn fetch(request: FetchRequest) -> messages::FetchRequest {
    let state = ReplicaState::default()
        .with_replica_id(messages::BrokerId(request.replica.0))
        .with_replica_epoch(request.broker_epoch.0);
    let mut topics: Vec<FetchTopic> = Vec::new();
    for partition in request.partitions {
        let topic_id = partition.partition.topic_id;
        let fetched = fetch_partition(&partition);
        match topics.last_mut() {
            Some(topic) if topic.topic_id == topic_id.0 => topic.partitions.push(fetched),
            _ => topics.push(
                FetchTopic::default()
                    .with_topic_id(topic_id.0)
                    .with_partitions(vec![fetched]),
            ),
        }
    }
    messages::FetchRequest::default()
        .with_replica_state(state)
        .with_max_wait_ms(request.max_wait_ms)
        .with_min_bytes(request.min_bytes)
        .with_max_bytes(request.max_bytes)
        .with_session_id(request.session_id)
        .with_session_epoch(request.session_epoch)
        .with_topics(topics)
        .with_forgotten_topics_data(forgotten(request.forgotten))
}

fn fetch_partition(partition: &FetchPartition) -> fetch_request::FetchPartition {
    let position = partition.position;
    fetch_request::FetchPartition::default()
        .with_partition(partition.partition.topic_partition.partition)
        .with_current_leader_epoch(position.leader_epoch.0)
        .with_fetch_offset(position.fetch_offset)
        .with_last_fetched_epoch(position.last_fetched_epoch.map_or(NONE, |epoch| epoch.0))
        .with_log_start_offset(partition.log_start_offset)
        .with_partition_max_bytes(partition.max_bytes)
        .with_high_watermark(partition.high_watermark)
}

fn forgotten(partitions: Vec<TopicIdPartition>) -> Vec<ForgottenTopic> {
    let mut topics: Vec<ForgottenTopic> = Vec::new();
    for TopicIdPartition {
        topic_id: TopicId(topic_id),
        topic_partition,
    } in partitions
    {
        match topics.last_mut() {
            Some(topic) if topic.topic_id == topic_id => {
                topic.partitions.push(topic_partition.partition);
            }
            _ => topics.push(
                ForgottenTopic::default()
                    .with_topic_id(topic_id)
                    .with_partitions(vec![topic_partition.partition]),
            ),
        }
    }
    topics
}

fn topic_name(partition: &TopicIdPartition) -> TopicName {
    TopicName(StrBytes::from_string(
        partition.topic_partition.topic.to_string(),
    ))
}

pub(super) fn list_offset(
    replica: BrokerId,
    partition: &TopicIdPartition,
    current_leader_epoch: LeaderEpoch,
    which: ReplicaOffset,
) -> ListOffsetsRequest {
    let timestamp = match which {
        ReplicaOffset::LogEnd => LATEST,
        ReplicaOffset::LogStart => EARLIEST,
    };
    let asked = ListOffsetsPartition::default()
        .with_partition_index(partition.topic_partition.partition)
        .with_current_leader_epoch(current_leader_epoch.0)
        .with_timestamp(timestamp);
    let topic = ListOffsetsTopic::default()
        .with_name(topic_name(partition))
        .with_partitions(vec![asked]);
    ListOffsetsRequest::default()
        .with_replica_id(messages::BrokerId(replica.0))
        .with_topics(vec![topic])
}

pub(super) fn end_offset_for_epoch(
    replica: BrokerId,
    partition: &TopicIdPartition,
    current_leader_epoch: LeaderEpoch,
    epoch: LeaderEpoch,
) -> OffsetForLeaderEpochRequest {
    let asked = OffsetForLeaderPartition::default()
        .with_partition(partition.topic_partition.partition)
        .with_current_leader_epoch(current_leader_epoch.0)
        .with_leader_epoch(epoch.0);
    let topic = OffsetForLeaderTopic::default()
        .with_topic(topic_name(partition))
        .with_partitions(vec![asked]);
    OffsetForLeaderEpochRequest::default()
        .with_replica_id(messages::BrokerId(replica.0))
        .with_topics(vec![topic])
}
