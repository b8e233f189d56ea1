//! The life of a broker against a controller that a test plays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use highwater_replication::cluster::records::Endpoint;
use highwater_replication::cluster::registration::BrokerRegistrationRequest as Registration;
use highwater_replication::cluster::{ClusterDelta, ClusterImage};
use highwater_storage::{BrokerEpoch, BrokerId};
use kafka_protocol::messages::{
    ApiKey, BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest,
    BrokerRegistrationResponse,
};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::*;
use crate::controller::{ControllerHandle, ControllerNode};
use crate::network::NetworkMetrics;
use crate::network::client::fake_node::{FakeNode, Received};
use crate::network::client::{Backoff, ClientConfig};
use crate::peer::controller_channel::{ControllerChannels, LocalController};
use crate::peer::test_node::{CLUSTER_ID, NODE_ID, TestNode};

const PATIENCE: Duration = Duration::from_secs(20);
const DUPLICATE_BROKER_REGISTRATION: i16 = 101;
const EPOCH: i64 = 50;

/// The controller that the test plays.
#[derive(Default)]
struct Controller {
    /// Registrations that are refused before one is taken.
    refusals: AtomicUsize,
    registrations: AtomicUsize,
    heartbeats: AtomicUsize,
    /// Metadata offset of the last heartbeat.
    offset: AtomicI64,
    lets_go: AtomicBool,
}

impl Controller {
    fn answer(&self, received: &Received) -> Option<Vec<u8>> {
        if received.is(ApiKey::BrokerRegistration) {
            let request = received.body::<BrokerRegistrationRequest>();
            assert_eq!(
                (request.broker_id.0, &*request.cluster_id),
                (NODE_ID, CLUSTER_ID)
            );
            assert_eq!(request.previous_broker_epoch, 33);
            assert_eq!(request.listeners[0].port, 9092);
            self.registrations.fetch_add(1, Ordering::Relaxed);
            let is_refused = self
                .refusals
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                    left.checked_sub(1)
                })
                .is_ok();
            let response = BrokerRegistrationResponse::default();
            return received.answer(&match is_refused {
                true => response.with_error_code(DUPLICATE_BROKER_REGISTRATION),
                false => response.with_broker_epoch(EPOCH),
            });
        }
        let request = received.body::<BrokerHeartbeatRequest>();
        assert_eq!(request.broker_epoch, EPOCH);
        self.heartbeats.fetch_add(1, Ordering::Relaxed);
        self.offset
            .store(request.current_metadata_offset, Ordering::Relaxed);
        let is_caught_up = request.current_metadata_offset >= EPOCH;
        let may_go = request.want_shut_down && self.lets_go.load(Ordering::Relaxed);
        received.answer(
            &BrokerHeartbeatResponse::default()
                .with_is_caught_up(is_caught_up)
                // One that is let go is fenced.
                .with_is_fenced(!is_caught_up || request.want_fence || may_go)
                .with_should_shut_down(may_go),
        )
    }
}

struct Fixture {
    node: TestNode,
    handle: ControllerHandle,
    controller: Arc<Controller>,
    lifecycle: Arc<BrokerLifecycle>,
    running: JoinHandle<()>,
    fake: FakeNode,
}

async fn fixture(refusals: usize, registration_timeout_ms: i64) -> Fixture {
    fixture_with(refusals, registration_timeout_ms, 9000).await
}

async fn fixture_with(
    refusals: usize,
    registration_timeout_ms: i64,
    session_timeout_ms: i64,
) -> Fixture {
    let controller = Arc::new(Controller {
        refusals: AtomicUsize::new(refusals),
        ..Controller::default()
    });
    let served = [
        (ApiKey::BrokerRegistration, 0, 4),
        (ApiKey::BrokerHeartbeat, 0, 1),
    ];
    let fake = FakeNode::serving(&served, {
        let controller = Arc::clone(&controller);
        move |received| std::future::ready(controller.answer(&received))
    })
    .await;
    let (node, _) = TestNode::new(Vec::new());
    node.quorum.set_active_controller(Some(ControllerNode {
        id: 1,
        epoch: 1,
        host: "127.0.0.1".to_owned(),
        port: fake.port,
    }));
    let handle = node.controller();
    let client = ClientConfig {
        reconnect_backoff: Backoff::new(Duration::from_millis(1), Duration::from_millis(1)),
        ..ClientConfig::named("test")
    };
    let local = Arc::new(LocalController::new(Arc::new(NetworkMetrics::default())));
    let channels = ControllerChannels::new(NODE_ID, handle.active_controller(), local, client);
    let settings = LifecycleSettings {
        heartbeat_interval_ms: 20,
        session_timeout_ms,
        registration_timeout_ms,
    };
    let lifecycle = BrokerLifecycle::new(settings, &handle);
    let channel = channels.channel("heartbeat", Duration::from_secs(5));
    let running = Arc::clone(&lifecycle).run(registration(), channel, handle.clone());
    Fixture {
        node,
        handle,
        controller,
        lifecycle,
        running: tokio::spawn(running),
        fake,
    }
}

fn registration() -> Registration {
    Registration {
        id: BrokerId(NODE_ID),
        cluster_id: CLUSTER_ID.to_owned(),
        incarnation_id: Uuid::from_u128(1),
        end_points: vec![Endpoint {
            name: "PLAINTEXT".to_owned(),
            host: "localhost".to_owned(),
            port: 9092,
            security_protocol: 0,
        }],
        features: Vec::new(),
        rack: None,
        log_dirs: vec![Uuid::from_u128(8)],
        previous_broker_epoch: Some(BrokerEpoch(33)),
    }
}

/// Has the node act on metadata up to `offset`.
fn publish(node: &TestNode, offset: i64) {
    let image = ClusterImage::empty(CLUSTER_ID);
    let (image, _) = image.apply(&[], offset, 1).unwrap();
    node.publisher
        .publish(&Arc::new(image), &ClusterDelta::default());
}

#[tokio::test]
async fn a_broker_registers_catches_up_is_unfenced_and_is_let_go() {
    let Fixture {
        node,
        handle,
        controller,
        lifecycle,
        running,
        fake: _fake,
    } = fixture(0, 60_000).await;
    lifecycle.set_ready_to_unfence();
    while handle.broker_epoch().0 != EPOCH {
        tokio::task::yield_now().await;
    }
    assert_eq!(*lifecycle.state().borrow(), BrokerState::Starting);
    publish(&node, EPOCH + 3);
    tokio::time::timeout(PATIENCE, lifecycle.until_running())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(controller.offset.load(Ordering::Relaxed), EPOCH + 3);
    let end = *lifecycle.session_end().borrow();
    assert!(end.is_some_and(|end| end > tokio::time::Instant::now()));
    let before = controller.heartbeats.load(Ordering::Relaxed);
    while controller.heartbeats.load(Ordering::Relaxed) < before + 2 {
        tokio::task::yield_now().await;
    }
    assert!(
        !lifecycle
            .controlled_shutdown(Duration::from_millis(50))
            .await,
        "it still leads"
    );
    controller.lets_go.store(true, Ordering::Relaxed);
    assert!(lifecycle.controlled_shutdown(PATIENCE).await);
    running.await.unwrap();
}

#[tokio::test]
async fn a_broker_whose_former_run_may_live_tries_until_it_is_taken() {
    let fixture = fixture(2, 60_000).await;
    fixture.lifecycle.set_ready_to_unfence();
    publish(&fixture.node, EPOCH);
    fixture.lifecycle.until_running().await.unwrap();
    assert_eq!(fixture.controller.registrations.load(Ordering::Relaxed), 3);
    fixture.running.abort();
}

#[tokio::test]
async fn a_broker_that_is_not_taken_in_time_ends() {
    let fixture = fixture(usize::MAX, 50).await;
    let refused = fixture.lifecycle.until_running().await.unwrap_err();
    assert!(
        matches!(&refused, LifecycleEnded::NotRegistered(reason) if reason.contains("registration")),
        "{refused}"
    );
    fixture.running.await.unwrap();
}

#[tokio::test]
async fn a_session_ends_when_no_controller_answers() {
    let fixture = fixture_with(0, 60_000, 3000).await;
    let lifecycle = &fixture.lifecycle;
    lifecycle.set_ready_to_unfence();
    publish(&fixture.node, EPOCH);
    lifecycle.until_running().await.unwrap();
    let seen = || fixture.controller.heartbeats.load(Ordering::Relaxed);
    let before = seen();
    let more = async {
        while seen() < before + 10 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = lifecycle.until_session_ends() => panic!("heartbeats are answered"),
        () = more => {}
    }
    fixture.node.quorum.set_active_controller(None);
    drop(fixture.fake);
    tokio::time::timeout(PATIENCE, lifecycle.until_session_ends())
        .await
        .unwrap();
    fixture.running.abort();
}
