use std::sync::Arc;

use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{
    ApiKey, BrokerId, FetchRequest, FetchResponse, ListOffsetsResponse, MetadataResponse,
};
use kafka_protocol::protocol::StrBytes;
use parking_lot::Mutex;

use super::*;
use crate::network::client::fake_node::{FakeNode, Received as Request};
use crate::tools::client::topic_name;
use highwater_storage::record_batch::RecordBatchBuilder;

/// LEADER_NOT_AVAILABLE
const NO_LEADER: i16 = 5;
const VERSIONS: [(ApiKey, i16, i16); 4] = [
    (ApiKey::Metadata, 4, 9),
    (ApiKey::ListOffsets, 2, 5),
    (ApiKey::Fetch, 4, 11),
    (ApiKey::FindCoordinator, 0, 2),
];

/// Topic t: partition 0 has no leader, 1 and 2 are led by the nodes with these ids.
fn metadata(ports: &[(i32, u16)]) -> MetadataResponse {
    let brokers = ports.iter().map(|(id, port)| {
        MetadataResponseBroker::default()
            .with_node_id(BrokerId(*id))
            .with_host(StrBytes::from_static_str("127.0.0.1"))
            .with_port(i32::from(*port))
    });
    let partition = |index, error_code, leader| {
        MetadataResponsePartition::default()
            .with_partition_index(index)
            .with_error_code(error_code)
            .with_leader_id(BrokerId(leader))
    };
    let partitions = vec![
        partition(0, NO_LEADER, -1),
        partition(1, 0, 1),
        partition(2, 0, 2),
    ];
    let topic = MetadataResponseTopic::default()
        .with_name(Some(topic_name("t")))
        .with_partitions(partitions);
    MetadataResponse::default()
        .with_brokers(brokers.collect())
        .with_topics(vec![topic])
}

/// The only record is at offset 7 of partition 1.
fn answer(request: &Request, metadata: &MetadataResponse) -> Option<Vec<u8>> {
    if request.is(ApiKey::Metadata) {
        return request.answer(metadata);
    }
    if request.is(ApiKey::ListOffsets) {
        let partition = ListOffsetsPartitionResponse::default()
            .with_partition_index(1)
            .with_offset(7);
        let topic = ListOffsetsTopicResponse::default()
            .with_name(topic_name("t"))
            .with_partitions(vec![partition]);
        return request.answer(&ListOffsetsResponse::default().with_topics(vec![topic]));
    }
    let asked: FetchRequest = request.body();
    let mut batch = RecordBatchBuilder::new().base_offset(7);
    batch.append(1, None, Some(b"a"));
    let data = PartitionData::default().with_partition_index(1);
    let data = match asked.topics[0].partitions[0].fetch_offset {
        7 => data.with_records(Some(batch.build().unwrap())),
        _ => data,
    };
    let topic = FetchableTopicResponse::default()
        .with_topic(topic_name("t"))
        .with_partitions(vec![data]);
    request.answer(&FetchResponse::default().with_responses(vec![topic]))
}

/// Node 1, which answers, and node 2, which takes requests and answers none of them.
async fn nodes() -> (FakeNode, FakeNode) {
    let silent = FakeNode::serving(&VERSIONS, |_| std::future::pending()).await;
    let ports = Arc::new(Mutex::new(vec![(2, silent.port)]));
    let known = Arc::clone(&ports);
    let quick = FakeNode::serving(&VERSIONS, move |request| {
        let answer = match request.is(ApiKey::FindCoordinator) {
            // As if there was no coordinator: an answer that says so would be asked for again.
            true => None,
            false => answer(&request, &metadata(&known.lock())),
        };
        async move { answer }
    })
    .await;
    ports.lock().push((1, quick.port));
    (quick, silent)
}

fn consumer(port: u16, properties: &[(&str, &str)]) -> Consumer {
    let mut of_client = ClientProperties::default();
    of_client.set("auto.offset.reset", "earliest");
    for (key, value) in properties {
        of_client.set(key, value);
    }
    let config = ConsumerConfig::of(&of_client).unwrap();
    let topics = Subscription::Topics(vec!["t".to_owned()]);
    Consumer::connect(
        &format!("127.0.0.1:{port}"),
        &of_client,
        "c",
        config,
        topics,
    )
    .unwrap()
}

#[tokio::test]
async fn a_leader_that_is_not_there_or_does_not_answer_holds_up_nobody_else() {
    let (quick, _silent) = nodes().await;
    let mut consumer = consumer(quick.port, &[]);
    let deadline = Instant::now() + Duration::from_secs(20);
    let received = consumer.next(Some(deadline)).await.unwrap().unwrap();
    assert_eq!(received.partition, TopicPartition::new("t", 1));
    assert_eq!(received.fetched.record.offset, 7);
    // The others are still looked for, and there is nothing more.
    let deadline = Instant::now() + Duration::from_millis(300);
    assert!(consumer.next(Some(deadline)).await.unwrap().is_none());
    let is_open = |index| {
        let position = &consumer.positions[&TopicPartition::new("t", index)];
        position.is_incomplete()
    };
    assert_eq!([0, 1, 2].map(is_open), [true, false, true]);
}

#[tokio::test]
async fn a_group_without_a_coordinator_is_waited_for_until_the_deadline() {
    let (quick, _silent) = nodes().await;
    let mut consumer = consumer(quick.port, &[("group.id", "g")]);
    let began = Instant::now();
    let deadline = began + Duration::from_millis(500);
    assert!(consumer.next(Some(deadline)).await.unwrap().is_none());
    consumer.close().await.unwrap();
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(500), "{took:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
}
