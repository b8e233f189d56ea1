//! What every raw test needs: connections, topics, and the few calls that most of them make.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use compat_tests::broker::{Broker, BrokerKind, BrokerOptions};
use compat_tests::each_broker::selected_brokers;
use compat_tests::process::eventually;
use compat_tests::raw::{Batch, Connection};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    BrokerId, CreateTopicsRequest, DeleteTopicsRequest, FetchRequest, FindCoordinatorRequest,
    GroupId, InitProducerIdRequest, ListOffsetsRequest, MetadataRequest, ProduceRequest,
    ProducerId, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

/// Kafka's error codes that the tests name.
pub(crate) mod code {
    pub(crate) const UNKNOWN_SERVER_ERROR: i16 = -1;
    pub(crate) const NONE: i16 = 0;
    pub(crate) const OFFSET_OUT_OF_RANGE: i16 = 1;
    pub(crate) const CORRUPT_MESSAGE: i16 = 2;
    pub(crate) const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    pub(crate) const MESSAGE_TOO_LARGE: i16 = 10;
    pub(crate) const OFFSET_METADATA_TOO_LARGE: i16 = 12;
    pub(crate) const INVALID_TOPIC: i16 = 17;
    pub(crate) const INVALID_REQUIRED_ACKS: i16 = 21;
    pub(crate) const ILLEGAL_GENERATION: i16 = 22;
    pub(crate) const INCONSISTENT_GROUP_PROTOCOL: i16 = 23;
    pub(crate) const INVALID_GROUP_ID: i16 = 24;
    pub(crate) const UNKNOWN_MEMBER_ID: i16 = 25;
    pub(crate) const INVALID_SESSION_TIMEOUT: i16 = 26;
    pub(crate) const REBALANCE_IN_PROGRESS: i16 = 27;
    pub(crate) const INVALID_TIMESTAMP: i16 = 32;
    pub(crate) const UNSUPPORTED_VERSION: i16 = 35;
    pub(crate) const TOPIC_ALREADY_EXISTS: i16 = 36;
    pub(crate) const INVALID_PARTITIONS: i16 = 37;
    pub(crate) const INVALID_REPLICATION_FACTOR: i16 = 38;
    pub(crate) const INVALID_REPLICA_ASSIGNMENT: i16 = 39;
    pub(crate) const INVALID_CONFIG: i16 = 40;
    pub(crate) const INVALID_REQUEST: i16 = 42;
    pub(crate) const POLICY_VIOLATION: i16 = 44;
    pub(crate) const OUT_OF_ORDER_SEQUENCE_NUMBER: i16 = 45;
    pub(crate) const INVALID_PRODUCER_EPOCH: i16 = 47;
    pub(crate) const NON_EMPTY_GROUP: i16 = 68;
    pub(crate) const GROUP_ID_NOT_FOUND: i16 = 69;
    pub(crate) const FETCH_SESSION_ID_NOT_FOUND: i16 = 70;
    pub(crate) const INVALID_FETCH_SESSION_EPOCH: i16 = 71;
    pub(crate) const FENCED_LEADER_EPOCH: i16 = 74;
    pub(crate) const UNKNOWN_LEADER_EPOCH: i16 = 75;
    pub(crate) const UNSUPPORTED_COMPRESSION_TYPE: i16 = 76;
    pub(crate) const MEMBER_ID_REQUIRED: i16 = 79;
    pub(crate) const FENCED_INSTANCE_ID: i16 = 82;
    pub(crate) const GROUP_SUBSCRIBED_TO_TOPIC: i16 = 86;
    pub(crate) const INVALID_RECORD: i16 = 87;
    pub(crate) const UNKNOWN_TOPIC_ID: i16 = 100;
    pub(crate) const INCONSISTENT_TOPIC_ID: i16 = 103;
    pub(crate) const FETCH_SESSION_TOPIC_ID_ERROR: i16 = 106;
}

/// Versions that the helpers speak: the last ones by topic name.
pub(crate) const PRODUCE: i16 = 11;
pub(crate) const FETCH: i16 = 12;

/// The time at which this process began, in milliseconds: one stamp for all batches.
pub(crate) static NOW_MS: LazyLock<i64> = LazyLock::new(|| {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock after 1970")
        .as_millis() as i64
});

pub(crate) fn s(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub(crate) fn topic_name(name: &str) -> TopicName {
    TopicName(s(name))
}

pub(crate) fn group_id(name: &str) -> GroupId {
    GroupId(s(name))
}

pub(crate) fn connect(broker: &Broker) -> Connection {
    Connection::open(broker.address()).expect("the broker accepts connections")
}

/// Runs a test on a Highwater of its own, for what is promised of ours alone: bounds on its memory and
/// descriptors, and inputs that Apache Kafka takes with a stack trace each or not at all.
pub(crate) fn on_highwater(options: &BrokerOptions, test: impl Fn(&mut Broker)) {
    if selected_brokers().contains(&BrokerKind::Highwater) {
        let mut broker = Broker::start(BrokerKind::Highwater, options.clone())
            .unwrap_or_else(|error| panic!("{error:#}"));
        test(&mut broker);
    }
}

/// A batch of `count` small records, all at one fixed time.
pub(crate) fn batch(count: usize) -> Batch {
    Batch::small(count).at(*NOW_MS, &[])
}

/// Creates a topic with default settings and waits until it is served.
pub(crate) fn create_topic(broker: &Broker, name: &str, partitions: i32) -> Uuid {
    create_topic_with(broker, name, partitions, &[])
}

/// Creates a topic, waits until each partition answers for its leader, and gives its id.
pub(crate) fn create_topic_with(
    broker: &Broker,
    name: &str,
    partitions: i32,
    config: &[(&str, &str)],
) -> Uuid {
    let mut connection = connect(broker);
    let configs = config.iter().map(|(key, value)| {
        CreatableTopicConfig::default()
            .with_name(s(key))
            .with_value(Some(s(value)))
    });
    let topic = CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(partitions)
        .with_replication_factor(1)
        .with_configs(configs.collect());
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(30_000);
    let reply = connection
        .call(7, &request)
        .expect("CreateTopics is answered");
    assert_eq!(
        reply.topics[0].error_code,
        code::NONE,
        "create {name}: {reply:?}"
    );
    wait_until_served(broker, name, partitions);
    reply.topics[0].topic_id
}

/// Waits until each partition of a topic answers for its leader.
pub(crate) fn wait_until_served(broker: &Broker, name: &str, partitions: i32) {
    let mut connection = connect(broker);
    eventually(Duration::from_secs(30), "the topic is served", || {
        (0..partitions)
            .all(|p| list_offsets(&mut connection, name, p, -1).error_code == code::NONE)
            .then_some(())
    });
}

/// Deletes a topic and waits until the broker no longer knows it.
pub(crate) fn delete_topic(broker: &Broker, name: &str) {
    let mut connection = connect(broker);
    let request = DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name(name)])
        .with_timeout_ms(30_000);
    let reply = connection
        .call(5, &request)
        .expect("DeleteTopics is answered");
    assert_eq!(
        reply.responses[0].error_code,
        code::NONE,
        "delete {name}: {reply:?}"
    );
    eventually(Duration::from_secs(30), "the topic is gone", || {
        let found = list_offsets(&mut connection, name, 0, -1).error_code;
        (found == code::UNKNOWN_TOPIC_OR_PARTITION).then_some(())
    });
}

/// The answer to Metadata for one topic, without creating it.
pub(crate) fn metadata(
    connection: &mut Connection,
    name: &str,
) -> kafka_protocol::messages::metadata_response::MetadataResponseTopic {
    let request = MetadataRequest::default()
        .with_allow_auto_topic_creation(false)
        .with_topics(Some(vec![
            MetadataRequestTopic::default().with_name(Some(topic_name(name))),
        ]));
    connection
        .call(12, &request)
        .expect("Metadata is answered")
        .topics
        .remove(0)
}

/// A produce request for partitions of one topic, acks=all.
pub(crate) fn produce_request(topic: &str, parts: Vec<(i32, Bytes)>) -> ProduceRequest {
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

/// Produces bytes to a partition and gives that partition's answer.
pub(crate) fn produce(
    connection: &mut Connection,
    topic: &str,
    partition: i32,
    records: Bytes,
) -> PartitionProduceResponse {
    produce_at(connection, PRODUCE, topic, partition, records)
}

/// As [`produce`], at a version.
pub(crate) fn produce_at(
    connection: &mut Connection,
    version: i16,
    topic: &str,
    partition: i32,
    records: Bytes,
) -> PartitionProduceResponse {
    let request = produce_request(topic, vec![(partition, records)]);
    let mut reply = connection
        .call(version, &request)
        .expect("Produce is answered");
    reply.responses.remove(0).partition_responses.remove(0)
}

/// Produces and insists on success; gives the base offset.
pub(crate) fn produce_ok(
    connection: &mut Connection,
    topic: &str,
    partition: i32,
    records: Bytes,
) -> i64 {
    let reply = produce(connection, topic, partition, records);
    assert_eq!(reply.error_code, code::NONE, "{reply:?}");
    reply.base_offset
}

/// One partition of a fetch request.
pub(crate) fn fetch_partition(partition: i32, fetch_offset: i64) -> FetchPartition {
    FetchPartition::default()
        .with_partition(partition)
        .with_fetch_offset(fetch_offset)
        .with_partition_max_bytes(1 << 20)
}

/// A fetch request without a session that does not wait.
pub(crate) fn fetch_request(topic: &str, partitions: Vec<FetchPartition>) -> FetchRequest {
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

/// Fetches one partition without a session and without waiting.
pub(crate) fn fetch(
    connection: &mut Connection,
    topic: &str,
    partition: i32,
    fetch_offset: i64,
) -> PartitionData {
    let request = fetch_request(topic, vec![fetch_partition(partition, fetch_offset)]);
    let mut reply = connection.call(FETCH, &request).expect("Fetch is answered");
    assert_eq!(reply.error_code, code::NONE, "{reply:?}");
    reply.responses.remove(0).partitions.remove(0)
}

/// Asks for one special or real timestamp.
pub(crate) fn list_offsets(
    connection: &mut Connection,
    topic: &str,
    partition: i32,
    timestamp: i64,
) -> ListOffsetsPartitionResponse {
    let request = list_offsets_request(topic, partition, timestamp);
    let mut reply = connection
        .call(9, &request)
        .expect("ListOffsets is answered");
    reply.topics.remove(0).partitions.remove(0)
}

pub(crate) fn list_offsets_request(
    topic: &str,
    partition: i32,
    timestamp: i64,
) -> ListOffsetsRequest {
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

/// The base offsets and last offsets of the whole batches in fetched bytes.
pub(crate) fn batch_ranges(mut records: &[u8]) -> Vec<(i64, i64)> {
    let mut ranges = Vec::new();
    while records.len() >= 61 {
        let base = i64::from_be_bytes(records[..8].try_into().expect("8 bytes"));
        let length = i32::from_be_bytes(records[8..12].try_into().expect("4 bytes")) as usize + 12;
        let delta = i32::from_be_bytes(records[23..27].try_into().expect("4 bytes"));
        if records.len() < length {
            break;
        }
        ranges.push((base, base + i64::from(delta)));
        records = &records[length..];
    }
    ranges
}

/// Waits until the group coordinator is there: the first look-up creates its topic.
pub(crate) fn wait_for_coordinator(broker: &Broker, group: &str) {
    let mut connection = connect(broker);
    let request = FindCoordinatorRequest::default().with_coordinator_keys(vec![s(group)]);
    eventually(Duration::from_secs(60), "the coordinator answers", || {
        let reply = connection
            .call(4, &request)
            .expect("FindCoordinator is answered");
        (reply.coordinators[0].error_code == code::NONE).then_some(())
    });
    // It may still be loading.
    let request = kafka_protocol::messages::HeartbeatRequest::default()
        .with_group_id(group_id(group))
        .with_member_id(s("nobody"));
    eventually(Duration::from_secs(60), "the group is loaded", || {
        let reply = connection.call(3, &request).expect("Heartbeat is answered");
        (reply.error_code == code::UNKNOWN_MEMBER_ID).then_some(())
    });
}

/// A producer id and its epoch.
pub(crate) fn new_producer(connection: &mut Connection) -> (i64, i16) {
    let request = InitProducerIdRequest::default()
        .with_transaction_timeout_ms(60_000)
        .with_transactional_id(None)
        .with_producer_id(ProducerId(-1))
        .with_producer_epoch(-1);
    // Apache Kafka says "loading" until its first block of ids has come.
    eventually(Duration::from_secs(30), "a producer id", || {
        let reply = connection.call(4, &request).unwrap();
        (reply.error_code == code::NONE).then_some((reply.producer_id.0, reply.producer_epoch))
    })
}

/// A gzip stream by the tool of that name, which every machine has: this crate has no codec.
pub(crate) fn gzip(data: &[u8]) -> Vec<u8> {
    let mut child = std::process::Command::new("gzip")
        .arg("-c")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("gzip is installed");
    let mut input = child.stdin.take().expect("piped");
    let data = data.to_vec();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut input, &data));
    let output = child.wait_with_output().expect("gzip ends");
    writer.join().expect("no panic").expect("gzip reads all");
    output.stdout
}
