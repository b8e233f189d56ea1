//! A client against a node in the same process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, BrokerHeartbeatRequest, BrokerHeartbeatResponse, FetchRequest,
    FetchResponse, ResponseHeader,
};
use kafka_protocol::protocol::{Encodable, HeaderVersion, StrBytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::*;

/// A request as the node gets it.
struct Received {
    api_key: i16,
    version: i16,
    correlation_id: i32,
    /// How many connections came before.
    connection: usize,
}

/// Answers of a node: the bytes to send for a request; `None` closes the connection.
type Answer = dyn Fn(&Received) -> Option<Vec<u8>> + Send + Sync;

/// Starts a node that answers each request, ApiVersions too, with what `answer` says.
async fn raw_node(answer: impl Fn(&Received) -> Option<Vec<u8>> + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer: Arc<Answer> = Arc::new(answer);
    tokio::spawn(async move {
        for connection in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(stream, connection, Arc::clone(&answer)));
        }
    });
    port
}

async fn serve(mut stream: TcpStream, connection: usize, answer: Arc<Answer>) {
    while let Ok(length) = stream.read_u32().await {
        let mut frame = vec![0; length as usize];
        stream.read_exact(&mut frame).await.unwrap();
        let mut header = frame.as_slice();
        let received = Received {
            api_key: header.get_i16(),
            version: header.get_i16(),
            correlation_id: header.get_i32(),
            connection,
        };
        match answer(&received) {
            Some(bytes) => stream.write_all(&bytes).await.unwrap(),
            None => return,
        }
    }
}

/// As [`raw_node`], with ApiVersions answered as an Apache Kafka broker would.
async fn node(answer: impl Fn(&Received) -> Option<Vec<u8>> + Send + Sync + 'static) -> u16 {
    raw_node(move |received| match received.api_key {
        key if key == ApiKey::ApiVersions as i16 => Some(response(received, &served_versions())),
        _ => answer(received),
    })
    .await
}

fn served_versions() -> ApiVersionsResponse {
    let range = |key: ApiKey, min, max| {
        ApiVersion::default()
            .with_api_key(key as i16)
            .with_min_version(min)
            .with_max_version(max)
    };
    ApiVersionsResponse::default().with_api_keys(vec![
        range(ApiKey::BrokerHeartbeat, 0, 9),
        range(ApiKey::Fetch, 4, 16),
    ])
}

/// A response as a frame.
fn response<R: Encodable + HeaderVersion>(received: &Received, response: &R) -> Vec<u8> {
    response_in(received, response, received.version)
}

fn response_in<R: Encodable + HeaderVersion>(
    received: &Received,
    response: &R,
    version: i16,
) -> Vec<u8> {
    let mut frame = vec![0; 4];
    ResponseHeader::default()
        .with_correlation_id(received.correlation_id)
        .encode(&mut frame, R::header_version(version))
        .unwrap();
    response.encode(&mut frame, version).unwrap();
    let length = frame.len() as u32 - 4;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame
}

fn config() -> ClientConfig {
    ClientConfig {
        reconnect_backoff: Backoff::new(Duration::from_millis(1), Duration::from_millis(1)),
        ..ClientConfig::named("test")
    }
}

fn client(port: u16) -> Client {
    Client::new("127.0.0.1", port, Arc::new(config()))
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
    let port = node(|received| match received.api_key {
        1 => Some(response(
            received,
            &FetchResponse::default().with_session_id(i32::from(received.version)),
        )),
        _ => Some(response(
            received,
            &BrokerHeartbeatResponse::default().with_error_code(received.version),
        )),
    })
    .await;
    let client = client(port);
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
    let port = raw_node(move |received| {
        if received.api_key != ApiKey::ApiVersions as i16 {
            return Some(response(received, &numbered(received)));
        }
        count.fetch_add(1, Ordering::Relaxed);
        if received.version <= 2 {
            return Some(response(received, &served_versions()));
        }
        let range = ApiVersion::default()
            .with_api_key(received.api_key)
            .with_min_version(0)
            .with_max_version(2);
        let refusal = ApiVersionsResponse::default()
            .with_error_code(35)
            .with_api_keys(vec![range]);
        Some(response_in(received, &refusal, 0))
    })
    .await;
    let answered = client(port).call(&BrokerHeartbeatRequest::default()).await;
    assert_eq!(answered.unwrap().throttle_time_ms, 2);
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

/// A node that holds its heartbeat responses back until it is let.
async fn holding_node(permits: Arc<Semaphore>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (mut requests, mut responses) = stream.into_split();
        while let Ok(length) = requests.read_u32().await {
            let mut frame = vec![0; length as usize];
            requests.read_exact(&mut frame).await.unwrap();
            let mut header = frame.as_slice();
            let received = Received {
                api_key: header.get_i16(),
                version: header.get_i16(),
                correlation_id: header.get_i32(),
                connection: 0,
            };
            let bytes = match received.api_key {
                18 => response(&received, &served_versions()),
                _ => {
                    permits.acquire().await.unwrap().forget();
                    response(&received, &numbered(&received))
                }
            };
            responses.write_all(&bytes).await.unwrap();
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_requests_get_their_own_responses() {
    let permits = Arc::new(Semaphore::new(0));
    let client = Arc::new(client(holding_node(Arc::clone(&permits)).await));
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
    let client = Arc::new(client(holding_node(Arc::clone(&permits)).await));
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
    let port = holding_node(Arc::clone(&permits)).await;
    let client = Arc::new(client_with(port, |config| config.max_in_flight = 2));
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
    let port = node({
        let records = records.clone();
        move |received| {
            let partition = PartitionData::default().with_records(Some(records.clone()));
            let topic = FetchableTopicResponse::default().with_partitions(vec![partition]);
            Some(response(
                received,
                &FetchResponse::default().with_responses(vec![topic]),
            ))
        }
    })
    .await;
    let client = client(port);
    let (version, frame) = client.exchange(&FetchRequest::default()).await.unwrap();
    let frame_bytes = frame.as_ptr_range();
    let fetched = decode_response::<FetchRequest>(frame.clone(), version).unwrap();
    let fetched = fetched.responses[0].partitions[0].records.clone().unwrap();
    assert_eq!(fetched, records);
    assert!(frame_bytes.contains(&fetched.as_ptr()));
}

#[tokio::test]
async fn a_late_response_closes_the_connection_and_the_next_request_makes_another() {
    let port = node(|received| match received.connection {
        0 => Some(Vec::new()),
        connection => Some(response(
            received,
            &BrokerHeartbeatResponse::default().with_throttle_time_ms(connection as i32),
        )),
    })
    .await;
    let client = client_with(port, |config| {
        config.request_timeout = Duration::from_millis(30);
    });
    let silent = client.call(&BrokerHeartbeatRequest::default()).await;
    assert!(
        matches!(&silent, Err(ClientError::TimedOut { api, .. }) if *api == "BrokerHeartbeat"),
        "{silent:?}"
    );
    assert!(silent.unwrap_err().is_retriable());
    let answered = client.call(&BrokerHeartbeatRequest::default()).await;
    assert_eq!(answered.unwrap().throttle_time_ms, 1);
}

#[tokio::test]
async fn a_connection_that_the_node_closes_fails_all_who_wait() {
    let port = node(|_| None).await;
    let client = client(port);
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
    let hang_up = Arc::new(Semaphore::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn({
        let hang_up = Arc::clone(&hang_up);
        async move {
            let answer: Arc<Answer> = Arc::new(|received| {
                Some(match received.api_key {
                    18 => response(received, &served_versions()),
                    _ => response(received, &numbered(received)),
                })
            });
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let serving = tokio::spawn(serve(stream, 0, Arc::clone(&answer)));
                hang_up.acquire().await.unwrap().forget();
                serving.abort();
            }
        }
    });
    let client = client(port);
    for _ in 0..3 {
        let answered = client.call(&BrokerHeartbeatRequest::default()).await;
        assert_eq!(answered.unwrap().throttle_time_ms, 1, "a new connection");
        assert!(client.is_connected());
        hang_up.add_permits(1);
        while client.is_connected() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_response_beyond_the_limit_closes_the_connection_before_it_is_read() {
    let port = node(|_| Some((1_i32 << 30).to_be_bytes().to_vec())).await;
    let client = client_with(port, |config| config.max_response_bytes = 1000);
    let failed = client.call(&BrokerHeartbeatRequest::default()).await;
    let error = failed.unwrap_err();
    assert!(matches!(&error, ClientError::Closed { reason, .. } if reason.contains("1000")));
}

#[tokio::test]
async fn a_response_to_another_request_closes_the_connection() {
    let port = node(|received| {
        let other = Received {
            correlation_id: received.correlation_id + 1,
            ..*received
        };
        Some(response(&other, &numbered(received)))
    })
    .await;
    let failed = client(port).call(&BrokerHeartbeatRequest::default()).await;
    assert!(
        matches!(failed, Err(ClientError::Closed { .. })),
        "{failed:?}"
    );
}

#[tokio::test]
async fn a_response_that_does_not_parse_is_an_error_that_asking_again_does_not_help() {
    let port = node(|received| {
        let mut frame = response(received, &numbered(received));
        frame.truncate(4 + 4 + 3);
        let length = frame.len() as u32 - 4;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        Some(frame)
    })
    .await;
    let failed = client(port).call(&BrokerHeartbeatRequest::default()).await;
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
    let client = Arc::new(client(holding_node(Arc::new(Semaphore::new(0))).await));
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
