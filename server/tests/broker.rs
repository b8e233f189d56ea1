//! A whole broker in this process: version negotiation, refused input, stopping and starting again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use highwater::api::{CloseReason, apis};
use highwater::broker::{BoundListeners, RunningBroker};
use highwater::config::{DynamicConfig, StaticConfig};
use highwater::log_dirs;
use highwater::network::ListenerKind;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, HeaderVersion, Request, StrBytes};
use tokio::runtime::Runtime;

struct Started {
    runtime: Runtime,
    broker: RunningBroker,
    address: SocketAddr,
}

impl Started {
    fn on(dir: &Path) -> Self {
        let runtime = Runtime::new().unwrap();
        let entries = [
            ("log.dirs", dir.to_str().unwrap()),
            ("listeners", "PLAINTEXT://127.0.0.1:0"),
            ("group.initial.rebalance.delay.ms", "0"),
        ];
        let config =
            Arc::new(DynamicConfig::new(StaticConfig::from_entries(entries).unwrap()).unwrap());
        let current = config.current();
        let dirs = log_dirs::open(current.log_manager(), current.node_id, None).unwrap();
        let broker = runtime
            .block_on(async {
                let listeners = BoundListeners::bind(&current).unwrap();
                RunningBroker::start(listeners, dirs, config).await
            })
            .unwrap();
        let address = broker.listeners()[0].local_address;
        Started {
            runtime,
            broker,
            address,
        }
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        Client { stream, next_id: 1 }
    }

    fn stop(self) {
        self.runtime.block_on(self.broker.stop()).unwrap();
    }

    fn refused(&self, reason: CloseReason) -> u64 {
        self.broker.broker().network_metrics.refused(reason)
    }
}

struct Client {
    stream: TcpStream,
    next_id: i32,
}

impl Client {
    fn send_frame(&mut self, frame: &[u8]) {
        let mut bytes = (frame.len() as i32).to_be_bytes().to_vec();
        bytes.extend_from_slice(frame);
        self.stream.write_all(&bytes).unwrap();
    }

    /// A request header of version 1 or, with `is_flexible`, 2.
    fn header(&mut self, api_key: i16, api_version: i16, is_flexible: bool) -> BytesMut {
        let mut frame = BytesMut::new();
        frame.put_i16(api_key);
        frame.put_i16(api_version);
        frame.put_i32(self.next_id);
        self.next_id += 1;
        frame.put_i16(4);
        frame.put_slice(b"test");
        if is_flexible {
            frame.put_u8(0);
        }
        frame
    }

    fn send<R: Request>(&mut self, request: &R, version: i16) {
        let mut frame = self.header(R::KEY, version, R::header_version(version) == 2);
        request.encode(&mut frame, version).unwrap();
        self.send_frame(&frame);
    }

    /// The next response behind its correlation id.
    fn receive_body(&mut self) -> Bytes {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut body = vec![0; i32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut body).unwrap();
        let mut body = Bytes::from(body);
        assert!(body.get_i32() < self.next_id);
        body
    }

    fn receive<R: Request>(&mut self, version: i16) -> R::Response {
        let mut body = self.receive_body();
        if R::Response::header_version(version) == 1 {
            assert_eq!(body.get_u8(), 0, "no tagged fields in the header");
        }
        let response = R::Response::decode(&mut body, version).unwrap();
        assert!(body.is_empty());
        response
    }

    fn call<R: Request>(&mut self, request: &R, version: i16) -> R::Response {
        self.send(request, version);
        self.receive::<R>(version)
    }

    /// Whether the broker closes the connection without another response.
    fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0))
    }
}

fn client_software(name: &str) -> ApiVersionsRequest {
    ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_string(name.to_owned()))
        .with_client_software_version(StrBytes::from_static_str("1.0"))
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_in_version_0_and_the_connection_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let started = Started::on(dir.path());
    let mut client = started.connect();
    for version in [5, 99, i16::MAX, -1] {
        let mut frame = client.header(18, version, version > 0);
        frame.put_slice(&[0xff; 30]);
        client.send_frame(&frame);
        let mut body = client.receive_body();
        let response = ApiVersionsResponse::decode(&mut body, 0).unwrap();
        assert!(body.is_empty());
        assert_eq!(response.error_code, 35, "version {version}");
        let told = &response.api_keys;
        assert_eq!(
            (told.len(), told[0].api_key, told[0].min_version),
            (1, 18, 0)
        );
        assert_eq!(told[0].max_version, 4);
    }
    let response = client.call(&client_software("test"), 3);
    assert_eq!(response.error_code, 0);
    started.stop();
}

#[test]
fn api_versions_has_a_response_header_without_tags_and_tells_what_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let started = Started::on(dir.path());
    let mut client = started.connect();
    for version in 0..=4 {
        let response = client.call(&client_software("test"), version);
        assert_eq!(response.error_code, 0, "version {version}");
        let told: Vec<_> = response
            .api_keys
            .iter()
            .map(|key| (key.api_key, key.max_version))
            .collect();
        let served: Vec<_> = apis(ListenerKind::Broker)
            .map(|entry| (entry.key, entry.max_version))
            .collect();
        assert_eq!(told, served);
        let produce = response
            .api_keys
            .iter()
            .find(|key| key.api_key == 0)
            .unwrap();
        assert_eq!(
            produce.min_version, 0,
            "older librdkafka turns compression off otherwise"
        );
        assert_eq!(response.finalized_features.is_empty(), version < 3);
    }
    started.stop();
}

#[test]
fn an_illegal_client_software_name_is_an_error_and_the_connection_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let started = Started::on(dir.path());
    let mut client = started.connect();
    assert_eq!(client.call(&client_software("no spaces"), 3).error_code, 42);
    assert_eq!(client.call(&client_software("legal"), 3).error_code, 0);
    started.stop();
}

#[test]
fn unknown_apis_and_versions_and_broken_requests_close_the_connection() {
    let dir = tempfile::tempdir().unwrap();
    let started = Started::on(dir.path());
    // Produce 0 to 2 is advertised and not served; the others are not even advertised.
    let versions = [(0, 0), (0, 1), (0, 2), (1, 3), (2, 0), (3, 99), (3, -1)];
    for (api_key, version) in versions {
        let mut client = started.connect();
        let mut frame = client.header(api_key, version, false);
        frame.put_slice(&[0; 30]);
        client.send_frame(&frame);
        assert!(client.is_closed(), "api {api_key} version {version}");
    }
    assert_eq!(
        started.refused(CloseReason::UnsupportedVersion),
        versions.len() as u64
    );
    for api_key in [-1, 4, 127, 128, i16::MAX, i16::MIN] {
        let mut client = started.connect();
        let frame = client.header(api_key, 0, false);
        client.send_frame(&frame);
        assert!(client.is_closed(), "api {api_key}");
    }
    assert_eq!(started.refused(CloseReason::UnknownApi), 6);
    let mut client = started.connect();
    client.send_frame(&[0, 3, 0, 1, 0, 0]);
    assert!(client.is_closed());
    let mut client = started.connect();
    client.send_frame(&[0, 3, 0, 1, 0, 0, 0, 1, 0x7f, 0xff, b'x']);
    assert!(client.is_closed());
    assert_eq!(started.refused(CloseReason::MalformedHeader), 2);
    started.stop();
}

#[test]
fn a_request_that_claims_2_to_the_31_elements_closes_its_connection_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let started = Started::on(dir.path());
    let mut bystander = started.connect();
    let mut sent = 0;
    for entry in apis(ListenerKind::Broker) {
        let key = ApiKey::try_from(entry.key).unwrap();
        for version in entry.min_version..=entry.max_version {
            let is_flexible = key.request_header_version(version) == 2;
            let count: &[u8] = if is_flexible {
                &[0xff, 0xff, 0xff, 0xff, 0x0f]
            } else {
                &[0x7f, 0xff, 0xff, 0xff]
            };
            let mut client = started.connect();
            let mut frame = client.header(entry.key, version, is_flexible);
            // Wherever the first array is, or a length in front of it, it is read from here.
            frame.extend(count.repeat(12));
            client.send_frame(&frame);
            sent += 1;
            // Closed, but for the few requests that hold no array at all.
            if !client.is_closed() {
                client = started.connect();
                assert_eq!(client.call(&client_software("test"), 3).error_code, 0);
            }
        }
    }
    assert!(sent > 100, "sent {sent}");
    assert!(started.refused(CloseReason::MalformedRequest) > sent / 2);
    assert_eq!(started.refused(CloseReason::Internal), 0);
    assert_eq!(bystander.call(&client_software("test"), 3).error_code, 0);
    started.stop();
}

#[test]
fn a_broker_that_was_stopped_starts_again_with_its_cluster_id() {
    let dir = tempfile::tempdir().unwrap();
    let describe = |started: &Started| {
        let response = started
            .connect()
            .call(&DescribeClusterRequest::default(), 0);
        assert_eq!(response.error_code, 0);
        response.cluster_id
    };
    let started = Started::on(dir.path());
    let cluster_id = describe(&started);
    started.stop();
    let started = Started::on(dir.path());
    assert_eq!(describe(&started), cluster_id);
    started.stop();
}
