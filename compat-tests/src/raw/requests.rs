//! Requests as most tests send them, to be changed where a test wants something else.

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    BrokerId, FetchRequest, GroupId, ListOffsetsRequest, ProduceRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;

/// A protocol string.
#[must_use]
pub fn s(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// A topic's name.
#[must_use]
pub fn topic_name(name: &str) -> TopicName {
    TopicName(s(name))
}

/// A group's id.
#[must_use]
pub fn group_id(name: &str) -> GroupId {
    GroupId(s(name))
}

/// A produce request for partitions of one topic, acks=all.
#[must_use]
pub fn produce_request(topic: &str, parts: Vec<(i32, Bytes)>) -> ProduceRequest {
    let parts = parts.into_iter().map(|(index, records)| {
        PartitionProduceData::default()
            .with_index(index)
            .with_records(Some(records))
    });
    ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![
            TopicProduceData::default()
                .with_name(topic_name(topic))
                .with_partition_data(parts.collect()),
        ])
}

/// One partition of a fetch request.
#[must_use]
pub fn fetch_partition(partition: i32, fetch_offset: i64) -> FetchPartition {
    FetchPartition::default()
        .with_partition(partition)
        .with_fetch_offset(fetch_offset)
        .with_partition_max_bytes(1 << 20)
}

/// A fetch request without a session that does not wait.
#[must_use]
pub fn fetch_request(topic: &str, partitions: Vec<FetchPartition>) -> FetchRequest {
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(0)
        .with_min_bytes(1)
        .with_max_bytes(50 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![
            FetchTopic::default()
                .with_topic(topic_name(topic))
                .with_partitions(partitions),
        ])
}

/// A ListOffsets request of a client for one special or real timestamp.
#[must_use]
pub fn list_offsets_request(topic: &str, partition: i32, timestamp: i64) -> ListOffsetsRequest {
    let part = ListOffsetsPartition::default()
        .with_partition_index(partition)
        .with_timestamp(timestamp);
    ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![
            ListOffsetsTopic::default()
                .with_name(topic_name(topic))
                .with_partitions(vec![part]),
        ])
}
