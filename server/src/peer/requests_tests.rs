//! Topics on demand and producer ids, against a controller that a test plays.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use highwater_replication::cluster::records::{Endpoint, FeatureRange};
use highwater_replication::cluster::registration::{
    ControllerRegistrationRequest as Registration, register_controller,
};
use highwater_storage::BrokerEpoch;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, ApiKey, ControllerRegistrationRequest,
    ControllerRegistrationResponse, CreateTopicsRequest, CreateTopicsResponse, ProducerId,
};
use parking_lot::Mutex;
use uuid::Uuid;

use super::auto_topics::{AutoTopicCreation, AutoTopicError};
use super::controller_channel::{ControllerChannel, ControllerChannels, LocalController};
use super::controller_registration::keep_registered;
use super::producer_ids::{ProducerIdError, ProducerIdManager};
use super::test_node::{NODE_ID, TestNode};
use crate::config::{DynamicConfig, StaticConfig};
use crate::controller::{ControllerHandle, ControllerNode};
use crate::network::NetworkMetrics;
use crate::network::client::ClientConfig;
use crate::network::client::fake_node::{FakeNode, Received};

struct Fixture {
    _fake: FakeNode,
    _node: TestNode,
    handle: ControllerHandle,
    channel: ControllerChannel,
}

async fn fixture(answer: impl Fn(&Received) -> Option<Vec<u8>> + Send + Sync + 'static) -> Fixture {
    let served = [
        (ApiKey::CreateTopics, 2, 7),
        (ApiKey::AllocateProducerIds, 0, 0),
        (ApiKey::ControllerRegistration, 0, 0),
    ];
    let fake = FakeNode::serving(&served, move |received| ready(answer(&received))).await;
    let (node, _) = TestNode::new(Vec::new());
    node.quorum.set_active_controller(Some(ControllerNode {
        id: 1,
        epoch: 1,
        host: "127.0.0.1".to_owned(),
        port: fake.port,
    }));
    let handle = node.controller();
    let local = Arc::new(LocalController::new(Arc::new(NetworkMetrics::default())));
    let config = ClientConfig::named("test");
    let channels = ControllerChannels::new(NODE_ID, handle.active_controller(), local, config);
    Fixture {
        channel: channels.channel("test", Duration::from_secs(20)),
        _fake: fake,
        _node: node,
        handle,
    }
}

#[tokio::test]
async fn producer_ids_come_from_the_controllers_blocks_each_once() {
    let next = AtomicI64::new(7000);
    let fixture = fixture(move |received| {
        let request = received.body::<AllocateProducerIdsRequest>();
        assert_eq!((request.broker_id.0, request.broker_epoch), (NODE_ID, 50));
        let start = next.fetch_add(1000, Ordering::Relaxed);
        let response = AllocateProducerIdsResponse::default()
            .with_producer_id_start(ProducerId(start))
            .with_producer_id_len(1000);
        received.answer(&response)
    })
    .await;
    fixture.handle.set_broker_epoch(BrokerEpoch(50));
    let ids = ProducerIdManager::new(fixture.channel.clone(), fixture.handle.clone());
    for expected in 7000..9500 {
        assert_eq!(ids.next_producer_id().await.unwrap(), expected);
    }
}

#[tokio::test]
async fn without_a_block_there_is_no_producer_id() {
    let fixture = fixture(|received| {
        // STALE_BROKER_EPOCH
        received.answer(&AllocateProducerIdsResponse::default().with_error_code(77))
    })
    .await;
    let ids = ProducerIdManager::new(fixture.channel.clone(), fixture.handle.clone());
    let refused = ids.next_producer_id().await.unwrap_err();
    assert!(matches!(refused, ProducerIdError::Refused(_)), "{refused}");
}

fn config() -> Arc<DynamicConfig> {
    let entries = [
        ("num.partitions", "3"),
        ("offsets.topic.num.partitions", "5"),
    ];
    let config = StaticConfig::from_entries(entries).unwrap();
    Arc::new(DynamicConfig::new(config).unwrap())
}

#[tokio::test]
async fn topics_on_demand_are_described_by_this_broker() {
    let asked: Arc<Mutex<Option<CreateTopicsRequest>>> = Arc::default();
    let fixture = fixture({
        let asked = Arc::clone(&asked);
        move |received| {
            let request = received.body::<CreateTopicsRequest>();
            let topics = request.topics.iter().map(|topic| {
                let error_code = match topic.name.as_str() {
                    "there" => 36,
                    "bad name" => 17,
                    _ => 0,
                };
                CreatableTopicResult::default()
                    .with_name(topic.name.clone())
                    .with_error_code(error_code)
            });
            let response = CreateTopicsResponse::default().with_topics(topics.collect());
            *asked.lock() = Some(request);
            received.answer(&response)
        }
    })
    .await;
    let topics = AutoTopicCreation::new(fixture.channel.clone(), config());
    topics.ensure("orders").await.unwrap();
    let orders = asked.lock().take().unwrap().topics.remove(0);
    assert_eq!((orders.num_partitions, orders.replication_factor), (3, 1));
    assert!(orders.configs.is_empty());
    topics.ensure("__consumer_offsets").await.unwrap();
    let offsets = asked.lock().take().unwrap().topics.remove(0);
    assert_eq!(offsets.num_partitions, 5);
    let keys: Vec<_> = offsets
        .configs
        .iter()
        .map(|config| config.name.as_str())
        .collect();
    assert_eq!(
        keys,
        ["cleanup.policy", "compression.type", "segment.bytes"]
    );
    topics.ensure("there").await.unwrap();
    let refused = topics.ensure("bad name").await.unwrap_err();
    assert!(matches!(refused, AutoTopicError::Refused(_)), "{refused}");
}

#[tokio::test]
async fn a_controller_is_registered_with_each_that_does_not_know_it() {
    let registrations = Arc::new(AtomicI64::new(0));
    let fixture = fixture({
        let registrations = Arc::clone(&registrations);
        move |received| {
            let request = received.body::<ControllerRegistrationRequest>();
            assert_eq!(request.controller_id, NODE_ID);
            assert_eq!(request.features[0].max_supported_version, 33);
            assert_eq!(request.listeners[0].port, 9093);
            let count = registrations.fetch_add(1, Ordering::Relaxed);
            let response = ControllerRegistrationResponse::default();
            received.answer(&match count {
                0 => response.with_error_code(ResponseError::RequestTimedOut.code()),
                _ => response,
            })
        }
    })
    .await;
    let registration = Registration {
        id: NODE_ID,
        incarnation_id: Uuid::from_u128(7),
        end_points: vec![Endpoint {
            name: "CONTROLLER".to_owned(),
            host: "localhost".to_owned(),
            port: 9093,
            security_protocol: 0,
        }],
        features: vec![FeatureRange {
            name: "metadata.version".to_owned(),
            min_supported_version: 33,
            max_supported_version: 33,
        }],
    };
    let until = async |count: i64| {
        while registrations.load(Ordering::Relaxed) < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let next_epoch = || {
        let quorum = &fixture._node.quorum;
        let mut active = fixture.handle.active_controller().borrow().clone();
        if let Some(node) = &mut active {
            node.epoch += 1;
        }
        quorum.set_active_controller(active);
    };
    let registering = tokio::spawn(keep_registered(
        registration.clone(),
        fixture.channel.clone(),
        fixture.handle.clone(),
    ));
    until(2).await;
    // Its registration was not in what the next one had.
    tokio::time::sleep(Duration::from_millis(50)).await;
    next_epoch();
    until(3).await;
    let image = fixture.handle.image();
    let record = register_controller(registration);
    let (image, delta) = image.apply(&[record], 1, 1).unwrap();
    fixture._node.publisher.publish(&Arc::new(image), &delta);
    next_epoch();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(registrations.load(Ordering::Relaxed), 3);
    registering.abort();
}
