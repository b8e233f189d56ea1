//! What every raw test needs: connections, topics, and the few calls that most of them make.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use compat_tests::broker::{Broker, BrokerKind, BrokerOptions};
use compat_tests::each_broker::selected_brokers;
use compat_tests::process::eventually;
use compat_tests::raw::{Batch, Connection};
pub(crate) use compat_tests::raw::{
    batch_ranges, code, fetch_partition, fetch_request, group_id, list_offsets_request,
    produce_request, s, topic_name,
};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, FindCoordinatorRequest, InitProducerIdRequest,
    MetadataRequest, ProducerId,
};
use uuid::Uuid;

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
