//! A client against a node in the same process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    ApiKey, BrokerHeartbeatRequest, BrokerHeartbeatResponse, FetchRequest, FetchResponse,
    ProduceRequest,
};
use kafka_protocol::protocol::StrBytes;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::fake_node::{FakeNode, Received, api_versions};
use super::*;

const SERVED: &[(ApiKey, i16, i16)] = &[(ApiKey::BrokerHeartbeat, 0, 9), (ApiKey::Fetch, 4, 16)];

/// A node that answers at once.
async fn node(answer: impl Fn(&Received) -> Option<Vec<u8>> + Send + Sync + 'static) -> FakeNode {
    FakeNode::serving(SERVED, move |received| {
        std::future::ready(answer(&received))
    })
    .await
}

/// A node that holds its heartbeat responses back until it is let.
async fn holding_node(permits: Arc<Semaphore>) -> FakeNode {
    FakeNode::serving(SERVED, move |received| {
        let permits = Arc::clone(&permits);
        async move {
            permits.acquire().await.unwrap().forget();
            received.answer(&numbered(&received))
        }
    })
    .await
}

fn config() -> ClientConfig {
    ClientConfig {
        reconnect_backoff: Backoff::new(Duration::from_millis(1), Duration::from_millis(1)),
        ..ClientConfig::named("test")
    }
}

fn client(node: &FakeNode) -> Client {
    Client::new("127.0.0.1", node.port, Arc::new(config()))
}

fn client_with(port: u16, change: impl FnOnce(&mut ClientConfig)) -> Client {
    let mut config = config();
    change(&mut config);
    Client::new("127.0.0.1", port, Arc::new(config))
}

/// A heartbeat response that tells the number of its request.
fn numbered(received: &Received) -> BrokerHeartbeatResponse {
    BrokerHeartbeatResponse::default().with_throttle_time_ms(received.correlation_id)
}

#[tokio::test]
async fn requests_go_in_the_highest_version_that_both_know() {
    let node = node(|received| {
        let version = received.version;
        match received.is(ApiKey::Fetch) {
            true => received.answer(&FetchResponse::default().with_session_id(version.into())),
            false => received.answer(&BrokerHeartbeatResponse::default().with_error_code(version)),
        }
    })
    .await;
    let client = client(&node);
    let fetched = client
        .call_within(13..=17, |version| {
            FetchRequest::default().with_max_wait_ms(i32::from(version))
        })
        .await;
    let (version, fetched) = fetched.unwrap();
    assert_eq!((version, fetched.session_id), (16, 16));
    let heartbeat = client.call(&BrokerHeartbeatRequest::default()).await;
    assert_eq!(heartbeat.unwrap().error_code, 1, "the last that we know");
    let newer = client
        .call_within(17..=17, |_| FetchRequest::default())
        .await;
    assert!(
        matches!(newer, Err(ClientError::UnsupportedVersion { min: 17, .. })),
        "{newer:?}"
    );
}

#[tokio::test]
async fn a_node_older_than_the_question_names_its_version() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let node = FakeNode::raw(move |received| {
        let answer = if !received.is(ApiKey::ApiVersions) {
            received.answer(&numbered(&received))
        } else if received.version <= 2 {
            received.answer(&api_versions(SERVED))
        } else {
            count.fetch_add(1, Ordering::Relaxed);
            let range = api_versions(&[(ApiKey::ApiVersions, 0, 2)]);
            received.answer_in(&range.with_error_code(35), 0)
        };
        std::future::ready(answer)
    })
    .await;
    let answered = client(&node).call(&BrokerHeartbeatRequest::default()).await;
    assert_eq!(answered.unwrap().throttle_time_ms, 2);
    assert_eq!(asked.load(Ordering::Relaxed), 1, "refused once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_requests_get_their_own_responses() {
    let permits = Arc::new(Semaphore::new(0));
    let node = holding_node(Arc::clone(&permits)).await;
    let client = Arc::new(client(&node));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..90 {
        let client = Arc::clone(&client);
        calls.spawn(async move { client.call(&BrokerHeartbeatRequest::default()).await });
    }
    for _ in 0..90 {
        permits.add_permits(1);
        tokio::task::yield_now().await;
    }
    let mut ids = Vec::new();
    while let Some(answered) = calls.join_next().await {
        ids.push(answered.unwrap().unwrap().throttle_time_ms);
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=90).collect::<Vec<_>>(), "0 is ApiVersions");
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_any_more_does_not_hold_up_the_others() {
    let permits = Arc::new(Semaphore::new(0));
    let node = holding_node(Arc::clone(&permits)).await;
    let client = Arc::new(client(&node));
    let spawn = || {
        let client = Arc::clone(&client);
        tokio::spawn(async move { client.call(&BrokerHeartbeatRequest::default()).await })
    };
    let (first, second, third) = (spawn(), spawn(), spawn());
    // Each call is on its way, and the socket wakes the last that polled.
    while client.in_flight() < 3 {
        tokio::task::yield_now().await;
    }
    third.abort();
    assert!(third.await.unwrap_err().is_cancelled());
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    permits.add_permits(4);
    assert_eq!(second.await.unwrap().unwrap().throttle_time_ms, 2);
    let fourth = client.call(&BrokerHeartbeatRequest::default()).await;
    assert_eq!(fourth.unwrap().throttle_time_ms, 4);
    assert_eq!(client.in_flight(), 0);
}

#[tokio::test]
async fn further_requests_wait_when_enough_are_in_flight() {
    let permits = Arc::new(Semaphore::new(0));
    let node = holding_node(Arc::clone(&permits)).await;
    let client = Arc::new(client_with(node.port, |config| config.max_in_flight = 2));
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let client = Arc::clone(&client);
            tokio::spawn(async move { client.call(&BrokerHeartbeatRequest::default()).await })
        })
        .collect();
    while client.in_flight() < 2 {
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.in_flight(), 2);
    permits.add_permits(3);
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn records_of_a_fetch_are_slices_of_the_response() {
    let records = Bytes::from(vec![7; 300_000]);
    let node = node({
        let records = records.clone();
        move |received| {
            let partition = PartitionData::default().with_records(Some(records.clone()));
            let topic = FetchableTopicResponse::default().with_partitions(vec![partition]);
            received.answer(&FetchResponse::default().with_responses(vec![topic]))
        }
    })
    .await;
    let client = client(&node);
    let (version, frame) = client.exchange(&FetchRequest::default()).await.unwrap();
    let frame_bytes = frame.as_ptr_range();
    let fetched = decode_response::<FetchRequest>(frame.clone(), version).unwrap();
    let fetched = fetched.responses[0].partitions[0].records.clone().unwrap();
    assert_eq!(fetched, records);
    assert!(frame_bytes.contains(&fetched.as_ptr()));
}

#[tokio::test]
async fn a_late_response_closes_the_connection_and_the_next_request_makes_another() {
    let node = node(|received| match received.connection {
        0 => Some(Vec::new()),
        connection => {
            received.answer(&BrokerHeartbeatResponse::default().with_error_code(connection as i16))
        }
    })
    .await;
    let client = client_with(node.port, |config| {
        config.request_timeout = Duration::from_millis(30);
    });
    let silent = client.call(&BrokerHeartbeatRequest::default()).await;
    assert!(
        matches!(&silent, Err(ClientError::TimedOut { api, .. }) if *api == "BrokerHeartbeat"),
        "{silent:?}"
    );
    assert!(silent.unwrap_err().is_retriable());
    let answered = client.call(&BrokerHeartbeatRequest::default()).await;
    assert_eq!(answered.unwrap().error_code, 1);
}

#[tokio::test]
async fn a_connection_that_the_node_closes_fails_all_who_wait() {
    let node = node(|_| None).await;
    let client = client(&node);
    let request = BrokerHeartbeatRequest::default();
    let (first, second) = tokio::join!(client.call(&request), client.call(&request));
    for failed in [first, second] {
        let error = failed.unwrap_err();
        assert!(error.is_retriable(), "{error}");
        assert!(matches!(error, ClientError::Closed { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_node_that_hung_up_while_nobody_was_waiting_is_connected_to_again() {
    let node = node(|received| received.answer(&numbered(received))).await;
    let client = client(&node);
    for _ in 0..3 {
        let answered = client.call(&BrokerHeartbeatRequest::default()).await;
        assert_eq!(answered.unwrap().throttle_time_ms, 1, "a new connection");
        assert!(client.is_connected());
        node.hang_up();
        while client.is_connected() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_response_beyond_the_limit_closes_the_connection_before_it_is_read() {
    let node = node(|_| Some((1_i32 << 30).to_be_bytes().to_vec())).await;
    let client = client_with(node.port, |config| config.max_response_bytes = 1000);
    let failed = client.call(&BrokerHeartbeatRequest::default()).await;
    let error = failed.unwrap_err();
    assert!(matches!(&error, ClientError::Closed { reason, .. } if reason.contains("1000")));
}

#[tokio::test]
async fn a_response_to_another_request_closes_the_connection() {
    let node = node(|received| {
        let other = Received {
            correlation_id: received.correlation_id + 1,
            ..received.clone()
        };
        other.answer(&numbered(received))
    })
    .await;
    let failed = client(&node).call(&BrokerHeartbeatRequest::default()).await;
    assert!(
        matches!(failed, Err(ClientError::Closed { .. })),
        "{failed:?}"
    );
}

#[tokio::test]
async fn a_response_that_does_not_parse_is_an_error_that_asking_again_does_not_help() {
    let node = node(|received| {
        let mut frame = received.answer(&numbered(received))?;
        frame.truncate(4 + 4 + 3);
        let length = frame.len() as u32 - 4;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        Some(frame)
    })
    .await;
    let failed = client(&node).call(&BrokerHeartbeatRequest::default()).await;
    let error = failed.unwrap_err();
    assert!(matches!(error, ClientError::Decode { .. }), "{error}");
    assert!(!error.is_retriable());
}

#[tokio::test]
async fn attempts_to_connect_rest_in_between() {
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let client = client_with(port, |config| {
        config.reconnect_backoff =
            Backoff::new(Duration::from_millis(30), Duration::from_millis(30));
    });
    let begin = Instant::now();
    for _ in 0..3 {
        let failed = client.call(&BrokerHeartbeatRequest::default()).await;
        assert!(matches!(failed, Err(ClientError::Connect { .. })));
    }
    assert!(begin.elapsed() >= Duration::from_millis(48), "two rests");
}

#[tokio::test]
async fn disconnecting_ends_what_waits() {
    let node = holding_node(Arc::new(Semaphore::new(0))).await;
    let client = Arc::new(client(&node));
    let waiting = tokio::spawn({
        let client = Arc::clone(&client);
        async move { client.call(&BrokerHeartbeatRequest::default()).await }
    });
    while client.in_flight() == 0 {
        tokio::task::yield_now().await;
    }
    client.disconnect("the node is another one now");
    let error = waiting.await.unwrap().unwrap_err();
    assert!(
        matches!(&error, ClientError::Closed { reason, .. } if reason.contains("another one")),
        "{error}"
    );
}

#[test]
fn apis_are_named_as_kafka_names_them() {
    assert_eq!(super::request::api::<FetchRequest>(), "Fetch");
}

#[tokio::test]
async fn the_client_says_who_it_is() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let named = Client::new(
        "localhost",
        port,
        Arc::new(ClientConfig::named(StrBytes::from_static_str("broker-7"))),
    );
    let calling = tokio::spawn(async move { named.call(&FetchRequest::default()).await });
    let (mut stream, _) = listener.accept().await.unwrap();
    let length = stream.read_u32().await.unwrap();
    let mut frame = vec![0; length as usize];
    stream.read_exact(&mut frame).await.unwrap();
    // Behind the fixed part of the header: its length, then the name.
    assert_eq!(&frame[8..18], b"\x00\x08broker-7");
    calling.abort();
}

/// A node that answers no Fetch: it notes `max_wait_ms`, and closes the connection where that is negative.
async fn listening_node(heard: Arc<parking_lot::Mutex<Vec<i32>>>) -> FakeNode {
    node(move |received| {
        if !received.is(ApiKey::Fetch) {
            return received.answer(&numbered(received));
        }
        let number = received.body::<FetchRequest>().max_wait_ms;
        heard.lock().push(number);
        (number >= 0).then(Vec::new)
    })
    .await
}

fn fetch(number: i32) -> FetchRequest {
    FetchRequest::default().with_max_wait_ms(number)
}

#[tokio::test]
async fn what_is_not_answered_ends_when_it_is_written_and_the_responses_of_others_come() {
    let heard = Arc::default();
    let node = listening_node(Arc::clone(&heard)).await;
    let client = client(&node);
    for number in 0..200 {
        let sent = client
            .send_unanswered_within(4..=16, |_| fetch(number))
            .await;
        sent.unwrap();
        assert_eq!(client.in_flight(), 0);
    }
    let heartbeat = BrokerHeartbeatRequest::default();
    let (sent, answered) = tokio::join!(
        client.send_unanswered_within(4..=16, |_| fetch(200)),
        client.call(&heartbeat),
    );
    sent.unwrap();
    assert_eq!(
        answered.unwrap().throttle_time_ms,
        1,
        "the second that is answered"
    );
    assert_eq!(*heard.lock(), (0..=200).collect::<Vec<_>>());
    assert!(!client.has_lost_connection());
}

#[tokio::test]
async fn a_node_that_closes_after_what_it_does_not_answer_is_seen_and_connected_to_again() {
    let heard = Arc::default();
    let node = listening_node(Arc::clone(&heard)).await;
    let client = client(&node);
    let send = async |number| {
        client
            .send_unanswered_within(4..=16, |_| fetch(number))
            .await
    };
    assert!(!client.has_lost_connection(), "there was none");
    send(-1).await.unwrap();
    while !client.has_lost_connection() {
        tokio::task::yield_now().await;
    }
    send(1).await.unwrap();
    assert!(!client.has_lost_connection());
    client
        .call(&BrokerHeartbeatRequest::default())
        .await
        .unwrap();
    assert_eq!(*heard.lock(), [-1, 1]);
}

#[tokio::test]
async fn what_the_node_does_not_read_is_not_written() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connecting = TcpStream::connect(("127.0.0.1", port));
    let (stream, accepted) = tokio::join!(connecting, listener.accept());
    let config = Arc::new(ClientConfig {
        request_timeout: Duration::from_millis(200),
        ..config()
    });
    let connection = Arc::new(Connection::new(stream.unwrap(), "node".into(), config));
    let records = Bytes::from(vec![7; 64 << 20]);
    let produce = {
        let data = PartitionProduceData::default().with_records(Some(records));
        let topic = TopicProduceData::default().with_partition_data(vec![data]);
        ProduceRequest::default().with_topic_data(vec![topic])
    };
    let small = ProduceRequest::default();
    let heartbeat = BrokerHeartbeatRequest::default();
    let (first, second, third) = tokio::join!(
        biased;
        connection.send_unanswered(&produce, 9),
        connection.send_unanswered(&small, 9),
        connection.call(&heartbeat, 0),
    );
    assert!(
        matches!(first, Err(ClientError::TimedOut { .. })),
        "{first:?}"
    );
    for error in [second.unwrap_err(), third.unwrap_err()] {
        assert!(error.is_retriable(), "{error}");
    }
    assert!(connection.is_closed());
    let closed = connection.send_unanswered(&small, 9).await;
    assert!(
        matches!(closed, Err(ClientError::Closed { .. })),
        "{closed:?}"
    );
    drop(accepted);
}

/// Everybody's frames are written, whoever the socket wakes, and when one of them has given up.
#[tokio::test]
async fn a_full_socket_is_written_on_for_all_who_wait() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connecting = TcpStream::connect(("127.0.0.1", port));
    let (stream, accepted) = tokio::join!(connecting, listener.accept());
    let connection = Arc::new(Connection::new(
        stream.unwrap(),
        "node".into(),
        Arc::new(config()),
    ));
    let records = Bytes::from(vec![7; 16 << 20]);
    let send = || {
        let data = PartitionProduceData::default().with_records(Some(records.clone()));
        let topic = TopicProduceData::default().with_partition_data(vec![data]);
        let produce = ProduceRequest::default().with_topic_data(vec![topic]);
        let connection = Arc::clone(&connection);
        tokio::spawn(async move { connection.send_unanswered(&produce, 9).await })
    };
    let (first, second, third) = (send(), send(), send());
    tokio::time::sleep(Duration::from_millis(50)).await;
    third.abort();
    assert!(third.await.unwrap_err().is_cancelled());
    let (mut node, _) = accepted.unwrap();
    let reading = tokio::spawn(async move {
        let mut bytes = 0;
        let mut buffer = vec![0; 1 << 20];
        while let Ok(read @ 1..) = node.read(&mut buffer).await {
            bytes += read;
        }
        bytes
    });
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    connection.close("enough");
    let read = reading.await.unwrap();
    assert!((32 << 20..49 << 20).contains(&read), "{read}");
}
