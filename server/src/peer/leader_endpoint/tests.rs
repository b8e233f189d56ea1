//! Endpoints against a leader that a test plays.

use std::future::ready;

use arc_swap::ArcSwap;
use bytes::Bytes;
use highwater_replication::cluster::records::{Endpoint, RegisterBrokerRecord};
use highwater_replication::runtime::leader_endpoint::{FetchPartition, FetchedRecords};
use highwater_replication::state::follower::FetchPosition;
use highwater_storage::{BrokerEpoch, TopicId, TopicPartition};
use kafka_protocol::messages::fetch_response::{
    EpochEndOffset, FetchableTopicResponse, PartitionData,
};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset as LeaderEpochEnd, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{
    self, ApiKey, ListOffsetsRequest, ListOffsetsResponse, OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use parking_lot::Mutex as SyncMutex;
use uuid::Uuid;

use super::*;
use crate::network::client::Backoff;
use crate::network::client::fake_node::{FakeNode, Received};

const LEADER: BrokerId = BrokerId(1);
const SERVED: &[(ApiKey, i16, i16)] = &[
    (ApiKey::Fetch, 4, 18),
    (ApiKey::ListOffsets, 1, 10),
    (ApiKey::OffsetForLeaderEpoch, 2, 4),
];

fn partition(topic_id: u128, partition: i32) -> TopicIdPartition {
    TopicIdPartition {
        topic_id: TopicId(Uuid::from_u128(topic_id)),
        topic_partition: TopicPartition::new(format!("topic-{topic_id}"), partition),
    }
}

fn image(port: u16) -> Arc<ClusterImage> {
    let end_point = |name: &str, port| Endpoint {
        name: name.to_owned(),
        host: "127.0.0.1".to_owned(),
        port,
        security_protocol: 0,
    };
    let registration = RegisterBrokerRecord {
        broker_id: LEADER.0,
        end_points: vec![end_point("CLIENTS", 1), end_point("BROKERS", port)],
        ..RegisterBrokerRecord::default()
    };
    let (image, _) = ClusterImage::empty("cluster")
        .apply(&[registration.into()], 0, 1)
        .unwrap();
    Arc::new(image)
}

struct Fixture {
    image: Arc<ArcSwap<ClusterImage>>,
    endpoint: Arc<dyn LeaderEndpoint>,
}

fn fixture(port: u16) -> Fixture {
    let image = Arc::new(ArcSwap::new(image(port)));
    let config = ClientConfig {
        reconnect_backoff: Backoff::new(
            std::time::Duration::from_millis(1),
            std::time::Duration::from_millis(1),
        ),
        ..ClientConfig::named("test")
    };
    let latest = Arc::clone(&image);
    let endpoints = PeerEndpoints::new(BrokerId(101), "BROKERS".to_owned(), config, move || {
        latest.load_full()
    });
    Fixture {
        endpoint: endpoints.endpoint(LEADER, 0),
        image,
    }
}

/// A leader that answers every request with what `answer` says.
async fn leader(answer: impl Fn(&Received) -> Option<Vec<u8>> + Send + Sync + 'static) -> FakeNode {
    FakeNode::serving(SERVED, move |received| ready(answer(&received))).await
}

fn fetch_request() -> FetchRequest {
    let fetch_partition = |partition: TopicIdPartition, last_fetched_epoch| FetchPartition {
        partition,
        position: FetchPosition {
            fetch_offset: 7,
            leader_epoch: LeaderEpoch(3),
            last_fetched_epoch,
        },
        log_start_offset: 2,
        high_watermark: 5,
        max_bytes: 1 << 20,
    };
    FetchRequest {
        replica: BrokerId(101),
        broker_epoch: BrokerEpoch(50),
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 10 << 20,
        session_id: 77,
        session_epoch: 4,
        partitions: vec![
            fetch_partition(partition(1, 0), Some(LeaderEpoch(2))),
            fetch_partition(partition(1, 2), None),
            fetch_partition(partition(2, 0), None),
        ],
        forgotten: vec![partition(3, 0), partition(3, 1)],
    }
}

#[tokio::test]
async fn a_fetch_says_who_asks_and_tells_each_answer() {
    let asked = Arc::new(SyncMutex::new(None));
    let leader = leader({
        let asked = Arc::clone(&asked);
        move |received| {
            assert_eq!(received.version, 18);
            *asked.lock() = Some(received.body::<messages::FetchRequest>());
            let records = PartitionData::default()
                .with_partition_index(0)
                .with_high_watermark(6)
                .with_log_start_offset(1)
                .with_records(Some(Bytes::from_static(b"batches")));
            let diverging = PartitionData::default()
                .with_partition_index(2)
                .with_diverging_epoch(EpochEndOffset::default().with_epoch(1).with_end_offset(4));
            let refused = PartitionData::default()
                .with_partition_index(0)
                .with_error_code(74);
            let topic = |id: u128, partitions| {
                FetchableTopicResponse::default()
                    .with_topic_id(Uuid::from_u128(id))
                    .with_partitions(partitions)
            };
            received.answer(
                &messages::FetchResponse::default()
                    .with_session_id(77)
                    .with_responses(vec![
                        topic(1, vec![records, diverging]),
                        topic(2, vec![refused]),
                    ]),
            )
        }
    })
    .await;
    let told = fixture(leader.port)
        .endpoint
        .fetch(fetch_request())
        .await
        .unwrap();
    let asked = asked.lock().take().unwrap();
    let state = &asked.replica_state;
    assert_eq!((state.replica_id.0, state.replica_epoch), (101, 50));
    assert_eq!((asked.session_id, asked.session_epoch), (77, 4));
    assert_eq!(
        (asked.max_wait_ms, asked.min_bytes, asked.max_bytes),
        (500, 1, 10 << 20)
    );
    let partitions = |index: usize| &asked.topics[index].partitions;
    assert_eq!(
        (asked.topics.len(), partitions(0).len(), partitions(1).len()),
        (2, 2, 1)
    );
    let first = &partitions(0)[0];
    assert_eq!((first.fetch_offset, first.current_leader_epoch), (7, 3));
    assert_eq!(
        (
            first.last_fetched_epoch,
            partitions(0)[1].last_fetched_epoch
        ),
        (2, -1)
    );
    assert_eq!((first.log_start_offset, first.high_watermark), (2, 5));
    assert_eq!(asked.forgotten_topics_data[0].partitions, [0, 1]);

    assert_eq!(told.session_id, 77);
    let answers: Vec<_> = told
        .partitions
        .into_iter()
        .map(|told| (told.topic_id.0.as_u128(), told.partition, told.answer))
        .collect();
    assert_eq!(answers.len(), 3);
    let fetched = FetchedRecords {
        high_watermark: 6,
        log_start_offset: 1,
        diverging_epoch: None,
        records: Bytes::from_static(b"batches"),
    };
    assert_eq!(answers[0], (1, 0, Ok(fetched)));
    let diverging = answers[1].2.clone().unwrap().diverging_epoch;
    let expected = EpochEnd {
        epoch: LeaderEpoch(1),
        end_offset: 4,
    };
    assert_eq!(
        (answers[1].0, answers[1].1, diverging),
        (1, 2, Some(expected))
    );
    assert_eq!(answers[2], (2, 0, Err(LeaderError::FencedLeaderEpoch)));
}

#[tokio::test]
async fn a_session_that_is_gone_is_told_apart_from_other_refusals() {
    for (error_code, is_session) in [(70, true), (71, true), (106, true), (29, false)] {
        let leader = leader(move |received| {
            received.answer(&messages::FetchResponse::default().with_error_code(error_code))
        })
        .await;
        let refused = fixture(leader.port).endpoint.fetch(fetch_request()).await;
        match refused.unwrap_err() {
            LeaderEndpointError::Session(_) => assert!(is_session, "{error_code}"),
            other => {
                assert!(!is_session, "{error_code}");
                assert_eq!(other, LeaderEndpointError::Refused(error_code));
            }
        }
    }
}

#[tokio::test]
async fn the_ends_of_a_log_are_asked_for_as_a_replica() {
    let leader = leader(|received| {
        let asked = received.body::<ListOffsetsRequest>();
        assert_eq!((asked.replica_id.0, asked.isolation_level), (101, 0));
        let partition = &asked.topics[0].partitions[0];
        let told = ListOffsetsPartitionResponse::default()
            .with_partition_index(partition.partition_index)
            .with_error_code(if partition.current_leader_epoch == 3 {
                0
            } else {
                75
            })
            .with_offset(partition.timestamp * 100);
        let topic = ListOffsetsTopicResponse::default()
            .with_name(asked.topics[0].name.clone())
            .with_partitions(vec![told]);
        received.answer(&ListOffsetsResponse::default().with_topics(vec![topic]))
    })
    .await;
    let endpoint = fixture(leader.port).endpoint;
    let ask = |epoch, which| endpoint.list_offset(partition(1, 2), LeaderEpoch(epoch), which);
    assert_eq!(
        ask(3, ReplicaOffset::LogEnd).await,
        Ok(Ok(-100)),
        "latest is -1"
    );
    assert_eq!(
        ask(3, ReplicaOffset::LogStart).await,
        Ok(Ok(-200)),
        "earliest is -2"
    );
    let refused = ask(4, ReplicaOffset::LogEnd).await;
    assert_eq!(refused, Ok(Err(LeaderError::UnknownLeaderEpoch)));
}

#[tokio::test]
async fn the_end_of_an_epoch_may_be_unknown() {
    let leader = leader(|received| {
        let asked = received.body::<OffsetForLeaderEpochRequest>();
        assert_eq!(asked.replica_id.0, 101);
        let partition = &asked.topics[0].partitions[0];
        let is_known = partition.leader_epoch > 0;
        let told = LeaderEpochEnd::default()
            .with_partition(partition.partition)
            .with_leader_epoch(if is_known {
                partition.leader_epoch - 1
            } else {
                -1
            })
            .with_end_offset(if is_known { 40 } else { -1 });
        let topic = OffsetForLeaderTopicResult::default()
            .with_topic(TopicName(StrBytes::from_static_str("topic-1")))
            .with_partitions(vec![told]);
        received.answer(&OffsetForLeaderEpochResponse::default().with_topics(vec![topic]))
    })
    .await;
    let endpoint = fixture(leader.port).endpoint;
    let ask =
        |epoch| endpoint.end_offset_for_epoch(partition(1, 2), LeaderEpoch(3), LeaderEpoch(epoch));
    let known = EpochEnd {
        epoch: LeaderEpoch(1),
        end_offset: 40,
    };
    assert_eq!(ask(2).await, Ok(Ok(Some(known))));
    assert_eq!(ask(0).await, Ok(Ok(None)));
}

#[tokio::test]
async fn a_broker_is_looked_for_where_the_metadata_says_it_is_now() {
    let answer = |session_id| {
        move |received: &Received| {
            received.answer(&messages::FetchResponse::default().with_session_id(session_id))
        }
    };
    let (former, new) = (leader(answer(1)).await, leader(answer(2)).await);
    let fixture = fixture(former.port);
    let fetch = || fixture.endpoint.fetch(fetch_request());
    assert_eq!(fetch().await.unwrap().session_id, 1);
    fixture.image.store(image(new.port));
    assert_eq!(fetch().await.unwrap().session_id, 2);
    fixture
        .image
        .store(Arc::new(ClusterImage::empty("cluster")));
    assert_eq!(
        fetch().await,
        Err(LeaderEndpointError::UnknownBroker(LEADER))
    );
}

#[tokio::test]
async fn a_leader_that_hangs_up_is_disconnected_and_asked_again() {
    let leader = leader(|received| match received.connection {
        0 => None,
        _ => received.answer(&messages::FetchResponse::default()),
    })
    .await;
    let endpoint = fixture(leader.port).endpoint;
    let lost = endpoint.fetch(fetch_request()).await;
    assert!(
        matches!(lost, Err(LeaderEndpointError::Disconnected(_))),
        "{lost:?}"
    );
    assert!(endpoint.fetch(fetch_request()).await.is_ok());
}

#[tokio::test]
async fn an_endpoint_that_was_disconnected_connects_again_when_it_is_used() {
    let leader = leader(|received| {
        let connection = received.connection as i32;
        received.answer(&messages::FetchResponse::default().with_session_id(connection))
    })
    .await;
    let endpoint = fixture(leader.port).endpoint;
    for connection in 0..3 {
        let fetched = endpoint.fetch(fetch_request()).await.unwrap();
        assert_eq!(fetched.session_id, connection);
        endpoint.disconnect();
    }
}
