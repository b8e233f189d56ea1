//! The few calls that most tests of clusters make.

use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use compat_tests::cluster::Cluster;
use compat_tests::process::eventually;
use compat_tests::raw::{
    Batch, Connection, Record, batch_headers, code, fetch_partition, fetch_request,
    list_offsets_request, produce_request, s, topic_name,
};
use kafka_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, BrokerId, DescribeLogDirsRequest, ElectLeadersRequest,
    IncrementalAlterConfigsRequest, InitProducerIdRequest, OffsetForLeaderEpochRequest, ProducerId,
};

/// Versions that the helpers speak: the last ones by topic name.
const PRODUCE: i16 = 11;
const FETCH: i16 = 12;
const LIST_OFFSETS: i16 = 9;

/// How long a produce request may wait for its replicas where the test is not about that.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Produces a batch to partition 0 and gives that partition's answer.
#[track_caller]
pub(crate) fn produce(
    connection: &mut Connection,
    topic: &str,
    acks: i16,
    time_out: Duration,
    records: Bytes,
) -> PartitionProduceResponse {
    let request = produce_request(topic, vec![(0, records)])
        .with_acks(acks)
        .with_timeout_ms(i32::try_from(time_out.as_millis()).unwrap());
    let mut reply = connection.call(PRODUCE, &request).unwrap();
    reply.responses.remove(0).partition_responses.remove(0)
}

/// A batch of one record.
pub(crate) fn one(value: &str) -> Bytes {
    Batch::of(vec![Record::new("key", value)]).encode()
}

/// Produces one record with acks=all, which must succeed, and gives its offset.
#[track_caller]
pub(crate) fn produce_all(connection: &mut Connection, topic: &str, value: &str) -> i64 {
    let reply = produce(connection, topic, -1, LONG, one(value));
    assert_eq!(reply.error_code, code::NONE, "{reply:?}");
    reply.base_offset
}

/// Fetches partition 0 as a consumer, without a session and without waiting.
#[track_caller]
pub(crate) fn fetch(connection: &mut Connection, topic: &str, offset: i64) -> PartitionData {
    try_fetch(connection, topic, offset).unwrap()
}

/// As [`fetch`], where the connection may end.
fn try_fetch(connection: &mut Connection, topic: &str, offset: i64) -> Result<PartitionData> {
    let request = fetch_request(topic, vec![fetch_partition(0, offset)]);
    let mut reply = connection.call(FETCH, &request)?;
    assert_eq!(reply.error_code, code::NONE, "{reply:?}");
    Ok(reply.responses.remove(0).partitions.remove(0))
}

/// The error code and the offset for one special or real timestamp in partition 0.
#[track_caller]
pub(crate) fn offset_at(connection: &mut Connection, topic: &str, timestamp: i64) -> (i16, i64) {
    let request = list_offsets_request(topic, 0, timestamp);
    let mut reply = connection.call(LIST_OFFSETS, &request).unwrap();
    let partition = reply.topics.remove(0).partitions.remove(0);
    (partition.error_code, partition.offset)
}

/// The timestamp that asks for the end that consumers see.
pub(crate) const LATEST: i64 = -1;

/// Waits until consumers see partition 0 on this broker up to `end`, and gives the base offset and the leader epoch of
/// each batch before it.
#[track_caller]
pub(crate) fn epochs_of_batches(
    cluster: &Cluster,
    id: i32,
    topic: &str,
    end: i64,
) -> Vec<(i64, i32)> {
    let mut connection = cluster.connect(id).unwrap();
    let what = format!("broker {id} serves {topic} up to {end}");
    eventually(Cluster::PATIENCE, &what, || {
        let mut epochs = Vec::new();
        let mut next = 0;
        loop {
            // Apache Kafka closes a connection to which it writes what it truncates meanwhile.
            let Ok(data) = try_fetch(&mut connection, topic, next) else {
                connection = cluster.connect(id).unwrap();
                return None;
            };
            if data.error_code != code::NONE || data.high_watermark != end {
                return None;
            }
            if next >= end {
                return (next == end).then_some(epochs);
            }
            let headers = batch_headers(&data.records.unwrap_or_default());
            next = headers.last()?.last_offset + 1;
            let headers = headers.iter();
            epochs
                .extend(headers.map(|header| (header.base_offset, header.partition_leader_epoch)));
        }
    })
}

/// As [`fetch`], of a consumer that knows this leader epoch.
#[track_caller]
pub(crate) fn fetch_in_epoch(
    connection: &mut Connection,
    topic: &str,
    offset: i64,
    leader_epoch: i32,
) -> PartitionData {
    let partition = fetch_partition(0, offset).with_current_leader_epoch(leader_epoch);
    let request = fetch_request(topic, vec![partition]);
    let mut reply = connection.call(FETCH, &request).unwrap();
    reply.responses.remove(0).partitions.remove(0)
}

/// OffsetForLeaderEpoch for partition 0, of one that knows `current` as the leader epoch: the error, the epoch and
/// its end offset.
#[track_caller]
pub(crate) fn end_offset_of_epoch(
    connection: &mut Connection,
    topic: &str,
    current: i32,
    epoch: i32,
) -> (i16, i32, i64) {
    let partition = OffsetForLeaderPartition::default()
        .with_partition(0)
        .with_current_leader_epoch(current)
        .with_leader_epoch(epoch);
    let topic = OffsetForLeaderTopic::default()
        .with_topic(topic_name(topic))
        .with_partitions(vec![partition]);
    let request = OffsetForLeaderEpochRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![topic]);
    let mut reply = connection.call(4, &request).unwrap();
    let end = reply.topics.remove(0).partitions.remove(0);
    (end.error_code, end.leader_epoch, end.end_offset)
}

/// Asks for the preferred leader of partition 0 and gives the error.
#[track_caller]
pub(crate) fn elect_preferred(cluster: &Cluster, topic: &str) -> i16 {
    elect(cluster, topic, 0)
}

/// Asks for an election (0 preferred, 1 unclean) in partition 0 and gives the error.
#[track_caller]
pub(crate) fn elect(cluster: &Cluster, topic: &str, election_type: i8) -> i16 {
    let partitions = TopicPartitions::default()
        .with_topic(topic_name(topic))
        .with_partitions(vec![0]);
    let request = ElectLeadersRequest::default()
        .with_election_type(election_type)
        .with_topic_partitions(Some(vec![partitions]))
        .with_timeout_ms(30_000);
    let via = cluster.awake_brokers()[0];
    let reply = cluster.connect(via).unwrap().call(2, &request).unwrap();
    assert_eq!(reply.error_code, code::NONE, "{reply:?}");
    let result = &reply.replica_election_results[0].partition_result[0];
    result.error_code
}

/// What DescribeLogDirs says of the size of partition 0 on a broker.
#[track_caller]
pub(crate) fn sizes_on_disk(cluster: &Cluster, id: i32, topic: &str) -> i64 {
    let wanted = DescribableLogDirTopic::default()
        .with_topic(topic_name(topic))
        .with_partitions(vec![0]);
    let request = DescribeLogDirsRequest::default().with_topics(Some(vec![wanted]));
    let reply = cluster.connect(id).unwrap().call(4, &request).unwrap();
    let topics = reply.results.iter().flat_map(|result| &result.topics);
    let sizes = topics
        .flat_map(|topic| &topic.partitions)
        .map(|partition| partition.partition_size);
    sizes.sum()
}

/// As [`produce`], on a connection and a thread of its own.
pub(crate) fn produce_later(
    cluster: &Cluster,
    id: i32,
    topic: &str,
    acks: i16,
    time_out: Duration,
    records: Bytes,
) -> JoinHandle<PartitionProduceResponse> {
    let mut connection = cluster.connect(id).unwrap();
    let topic = topic.to_owned();
    std::thread::spawn(move || produce(&mut connection, &topic, acks, time_out, records))
}

/// A producer id and its epoch.
#[track_caller]
pub(crate) fn new_producer(connection: &mut Connection) -> (i64, i16) {
    let request = InitProducerIdRequest::default()
        .with_transaction_timeout_ms(60_000)
        .with_transactional_id(None)
        .with_producer_id(ProducerId(-1))
        .with_producer_epoch(-1);
    // The first block of ids may be on its way.
    eventually(Cluster::PATIENCE, "a producer id", || {
        let reply = connection.call(4, &request).unwrap();
        (reply.error_code == code::NONE).then_some((reply.producer_id.0, reply.producer_epoch))
    })
}

/// Gives partition 0 these replicas, which must be the same in another order or all be in sync already, and waits
/// until that is done.
#[track_caller]
pub(crate) fn reassign(cluster: &Cluster, topic: &str, replicas: &[i32]) {
    let partition = ReassignablePartition::default()
        .with_partition_index(0)
        .with_replicas(Some(replicas.iter().map(|&id| BrokerId(id)).collect()));
    let wanted = ReassignableTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![partition]);
    let request = AlterPartitionReassignmentsRequest::default()
        .with_topics(vec![wanted])
        .with_timeout_ms(30_000);
    let via = cluster.awake_brokers()[0];
    let reply = cluster.connect(via).unwrap().call(0, &request).unwrap();
    assert_eq!(reply.error_code, code::NONE, "{reply:?}");
    assert_eq!(
        reply.responses[0].partitions[0].error_code,
        code::NONE,
        "{reply:?}"
    );
    cluster.wait_for_partition(topic, 0, "the new assignment", |view| {
        view.replicas == replicas
    });
}

/// Sets a topic's configuration.
#[track_caller]
pub(crate) fn set_topic_config(cluster: &Cluster, topic: &str, key: &str, value: &str) {
    let config = AlterableConfig::default()
        .with_name(s(key))
        .with_value(Some(s(value)));
    let resource = AlterConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(s(topic))
        .with_configs(vec![config]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let via = cluster.awake_brokers()[0];
    let reply = cluster.connect(via).unwrap().call(1, &request).unwrap();
    assert_eq!(reply.responses[0].error_code, code::NONE, "{reply:?}");
}
