//! A channel between controllers that come and go.

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use kafka_protocol::messages::{
    ApiKey, BrokerHeartbeatRequest, BrokerHeartbeatResponse, CreateTopicsRequest,
    CreateTopicsResponse, create_topics_response::CreatableTopicResult,
};

use super::*;
use crate::api::table::Dispatched;
use crate::api::{CloseReason, Reply, RequestContext};
use crate::network::client::Backoff;
use crate::network::client::fake_node::{FakeNode, Received};
use crate::network::{ListenerKind, NetworkMetrics, RequestHandler};

const OWN_ID: i32 = 101;
const NOT_CONTROLLER: i16 = 41;
const PATIENCE: Duration = Duration::from_secs(20);

fn controller(id: i32, epoch: i32, port: u16) -> Option<ControllerNode> {
    Some(ControllerNode {
        id,
        epoch,
        host: "127.0.0.1".to_owned(),
        port,
    })
}

struct Fixture {
    active: watch::Sender<Option<ControllerNode>>,
    local: Arc<LocalController>,
    channel: ControllerChannel,
}

fn fixture(patience: Duration) -> Fixture {
    let (active, watched) = watch::channel(None);
    let local = Arc::new(LocalController::new(Arc::new(NetworkMetrics::default())));
    let config = ClientConfig {
        reconnect_backoff: Backoff::new(Duration::from_millis(1), Duration::from_millis(1)),
        ..ClientConfig::named("test")
    };
    let channels = ControllerChannels::new(OWN_ID, watched, Arc::clone(&local), config);
    Fixture {
        active,
        local,
        channel: channels.channel("test", patience),
    }
}

/// A controller that answers heartbeats with this error code and its caught-up flag set.
async fn heartbeat_node(error_code: i16, asked: &Arc<AtomicUsize>) -> FakeNode {
    let asked = Arc::clone(asked);
    FakeNode::serving(&[(ApiKey::BrokerHeartbeat, 0, 1)], move |received| {
        asked.fetch_add(1, Ordering::Relaxed);
        ready(heartbeat_answer(&received, error_code))
    })
    .await
}

fn heartbeat_answer(received: &Received, error_code: i16) -> Option<Vec<u8>> {
    received.answer(&BrokerHeartbeatResponse::default().with_error_code(error_code))
}

#[tokio::test]
async fn a_request_moves_on_to_the_controller_that_becomes_active() {
    let (asked_former, asked_new) = (Arc::default(), Arc::default());
    let former = heartbeat_node(NOT_CONTROLLER, &asked_former).await;
    let new = heartbeat_node(7, &asked_new).await;
    let fixture = fixture(PATIENCE);
    fixture.active.send_replace(controller(1, 1, former.port));
    let channel = fixture.channel.clone();
    let calling =
        tokio::spawn(async move { channel.call(&BrokerHeartbeatRequest::default()).await });
    while asked_former.load(Ordering::Relaxed) < 2 {
        tokio::task::yield_now().await;
    }
    fixture.active.send_replace(controller(2, 2, new.port));
    assert_eq!(calling.await.unwrap().unwrap().error_code, 7);
    assert_eq!(asked_new.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_request_does_not_wait_for_a_controller_that_is_not_active_any_more() {
    let silent = FakeNode::serving(&[(ApiKey::BrokerHeartbeat, 0, 1)], |_| {
        std::future::pending()
    })
    .await;
    let asked = Arc::default();
    let new = heartbeat_node(7, &asked).await;
    let fixture = fixture(PATIENCE);
    fixture.active.send_replace(controller(1, 1, silent.port));
    let channel = fixture.channel.clone();
    let calling =
        tokio::spawn(async move { channel.call(&BrokerHeartbeatRequest::default()).await });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    fixture.active.send_replace(None);
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(!calling.is_finished(), "it may still answer");
    fixture.active.send_replace(controller(2, 2, new.port));
    assert_eq!(calling.await.unwrap().unwrap().error_code, 7);
}

#[tokio::test]
async fn a_request_waits_until_a_controller_is_active() {
    let asked = Arc::default();
    let node = heartbeat_node(0, &asked).await;
    let fixture = fixture(PATIENCE);
    let channel = fixture.channel.clone();
    let calling =
        tokio::spawn(async move { channel.call(&BrokerHeartbeatRequest::default()).await });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(!calling.is_finished());
    fixture.active.send_replace(controller(1, 1, node.port));
    assert_eq!(calling.await.unwrap().unwrap().error_code, 0);
}

#[tokio::test]
async fn a_connection_that_breaks_is_no_answer() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let node = FakeNode::serving(&[(ApiKey::BrokerHeartbeat, 0, 1)], move |received| {
        ready(match count.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => None,
            _ => heartbeat_answer(&received, 0),
        })
    })
    .await;
    let fixture = fixture(PATIENCE);
    fixture.active.send_replace(controller(1, 1, node.port));
    let answered = fixture
        .channel
        .call(&BrokerHeartbeatRequest::default())
        .await;
    assert_eq!(answered.unwrap().error_code, 0);
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn patience_ends_and_says_what_happened_last() {
    let fixture = fixture(Duration::from_millis(20));
    let nobody = fixture
        .channel
        .call(&BrokerHeartbeatRequest::default())
        .await;
    let nobody = nobody.unwrap_err().to_string();
    assert!(nobody.contains("BrokerHeartbeat"), "{nobody}");
    assert!(nobody.contains("no controller is active"), "{nobody}");
    let asked = Arc::default();
    let node = heartbeat_node(NOT_CONTROLLER, &asked).await;
    fixture.active.send_replace(controller(3, 1, node.port));
    let patience = Duration::from_millis(200);
    let request = BrokerHeartbeatRequest::default();
    let refused = fixture.channel.call_within(&request, patience).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("node 3 is not active"), "{refused}");
}

#[tokio::test]
async fn any_topic_that_is_refused_by_an_inactive_controller_counts() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let node = FakeNode::serving(&[(ApiKey::CreateTopics, 2, 7)], move |received| {
        let error_code = match count.fetch_add(1, Ordering::Relaxed) {
            0 => NOT_CONTROLLER,
            _ => 36,
        };
        let topic = CreatableTopicResult::default().with_error_code(error_code);
        ready(received.answer(&CreateTopicsResponse::default().with_topics(vec![topic])))
    })
    .await;
    let fixture = fixture(PATIENCE);
    fixture.active.send_replace(controller(1, 1, node.port));
    let answered = fixture.channel.call(&CreateTopicsRequest::default()).await;
    assert_eq!(answered.unwrap().topics[0].error_code, 36);
}

#[tokio::test]
async fn an_api_that_the_controller_does_not_serve_is_not_asked_for_again() {
    let node = FakeNode::serving(&[(ApiKey::BrokerHeartbeat, 5, 9)], |_| ready(None)).await;
    let fixture = fixture(PATIENCE);
    fixture.active.send_replace(controller(1, 1, node.port));
    let refused = fixture
        .channel
        .call(&BrokerHeartbeatRequest::default())
        .await;
    assert!(
        matches!(
            refused,
            Err(ChannelError::Client(ClientError::UnsupportedVersion { .. }))
        ),
        "{refused:?}"
    );
}

/// A controller within this process; it answers with the version that it is asked in, as the error code.
struct OwnController {
    parks: bool,
}

impl RequestHandler for OwnController {
    fn handle(self: &Arc<Self>, ctx: &mut RequestContext, frame: Bytes) -> Dispatched {
        assert_eq!(ctx.listener.kind, ListenerKind::Controller);
        assert_eq!(frame[..2], (ApiKey::BrokerHeartbeat as i16).to_be_bytes());
        ctx.api_version = i16::from_be_bytes([frame[2], frame[3]]);
        let response = BrokerHeartbeatResponse::default().with_error_code(ctx.api_version);
        let body = ctx.encode(&response);
        match self.parks {
            true => Dispatched::Done(Reply::Parked(Box::pin(ready(body)))),
            false => Dispatched::Running(Box::pin(ready(body.into()))),
        }
    }
}

#[tokio::test]
async fn a_request_to_this_node_goes_through_its_own_handlers() {
    for parks in [false, true] {
        let fixture = fixture(PATIENCE);
        fixture.active.send_replace(controller(OWN_ID, 1, 0));
        let channel = fixture.channel.clone();
        let calling =
            tokio::spawn(async move { channel.call(&BrokerHeartbeatRequest::default()).await });
        tokio::task::yield_now().await;
        assert!(!calling.is_finished(), "the node is still starting");
        let own = Arc::new(OwnController { parks });
        fixture.local.open(&own);
        assert_eq!(calling.await.unwrap().unwrap().error_code, 1);
    }
}

/// A handler that closes the connection in place of an answer.
struct Closing;

impl RequestHandler for Closing {
    fn handle(self: &Arc<Self>, _: &mut RequestContext, _: Bytes) -> Dispatched {
        Dispatched::Done(Reply::Close(CloseReason::MalformedRequest))
    }
}

#[tokio::test]
async fn an_own_handler_that_does_not_answer_is_an_error() {
    let fixture = fixture(PATIENCE);
    fixture.active.send_replace(controller(OWN_ID, 1, 0));
    let own = Arc::new(Closing);
    fixture.local.open(&own);
    let failed = fixture
        .channel
        .call(&BrokerHeartbeatRequest::default())
        .await;
    assert!(
        matches!(
            failed,
            Err(ChannelError::Local {
                source: LocalError::NotAnswered(_),
                ..
            })
        ),
        "{failed:?}"
    );
}
