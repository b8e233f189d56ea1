//! Connections over real loopback sockets, with a handler that does what the first byte of each request asks for.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use highwater::api::table::Dispatched;
use highwater::api::{CloseReason, Reply, RequestContext, ResponseBody};
use highwater::network::{
    ListenerConfig, ListenerKind, NetworkConfig, NetworkMetrics, RequestHandler, SocketServer,
};
use kafka_protocol::messages::ApiVersionsResponse;
use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// What a request asks for.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Ask {
    Answer = 1,
    /// Parked until the gate opens.
    Park,
    /// An asynchronous handler that ends when the gate opens.
    RunAsync,
    Nothing,
    Close,
    Panic,
    PanicWhenParked,
    /// A megabyte.
    Large,
    /// A response that cannot be encoded.
    Unencodable,
}

const LARGE_BYTES: usize = 1 << 20;
static LARGE: [u8; LARGE_BYTES] = [7; LARGE_BYTES];

struct Script {
    gate: watch::Sender<bool>,
    handled: Mutex<Vec<i32>>,
}

fn answer(ctx: &RequestContext) -> ResponseBody {
    ctx.response_writer::<ApiVersionsResponse>().finish()
}

impl RequestHandler for Script {
    fn handle(self: &Arc<Self>, ctx: &mut RequestContext, mut frame: Bytes) -> Dispatched {
        let asked = frame.get_u8();
        ctx.correlation_id = frame.get_i32();
        self.handled.lock().push(ctx.correlation_id);
        let mut gate = self.gate.subscribe();
        let own = ctx.clone();
        let gated = async move {
            gate.wait_for(|open| *open).await.expect("the script lives");
            answer(&own)
        };
        let is = |ask: Ask| asked == ask as u8;
        if is(Ask::RunAsync) {
            return Dispatched::Running(Box::pin(async { gated.await.into() }));
        }
        if is(Ask::Panic) {
            // What dispatch makes of a panic of a synchronous handler.
            return Dispatched::Done(Reply::Close(CloseReason::Internal));
        }
        Dispatched::Done(if is(Ask::Park) {
            Reply::Parked(Box::pin(gated))
        } else if is(Ask::PanicWhenParked) {
            Reply::Parked(Box::pin(async { panic!("a handler's bug") }))
        } else if is(Ask::Nothing) {
            Reply::Nothing
        } else if is(Ask::Close) {
            Reply::Close(CloseReason::FailedWithoutResponse)
        } else if is(Ask::Large) {
            let mut writer = ctx.response_writer::<ApiVersionsResponse>();
            writer.splice(Bytes::from_static(&LARGE));
            writer.finish().into()
        } else if is(Ask::Unencodable) {
            ctx.encode(&ApiVersionsResponse::default().with_throttle_time_ms(1))
                .into()
        } else {
            answer(ctx).into()
        })
    }
}

/// A server with the script, and its runtime.
struct Served {
    runtime: Runtime,
    server: Option<SocketServer>,
    script: Arc<Script>,
    metrics: Arc<NetworkMetrics>,
    address: SocketAddr,
}

impl Served {
    fn start() -> Self {
        Self::with(NetworkConfig::default())
    }

    fn with(config: NetworkConfig) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let script = Arc::new(Script {
            gate: watch::Sender::new(false),
            handled: Mutex::default(),
        });
        let metrics = Arc::new(NetworkMetrics::default());
        let guard = runtime.enter();
        let mut server =
            SocketServer::bind(&[listener("PLAINTEXT")], config, metrics.clone()).unwrap();
        server.start(&script);
        let address = server.listeners()[0].local_address;
        drop(guard);
        Served {
            runtime,
            server: Some(server),
            script,
            metrics,
            address,
        }
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        // Long enough never to matter; a hang must not last for ever.
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        Client { stream, next_id: 1 }
    }

    fn open_gate(&self) {
        self.script.gate.send_replace(true);
    }

    fn handled(&self) -> Vec<i32> {
        self.script.handled.lock().clone()
    }

    fn stop(&mut self, grace: Duration) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.stop(grace));
        }
    }

    /// Waits until `condition` holds; it must come about by itself.
    fn wait_until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !condition(self) {
            assert!(
                start.elapsed() < Duration::from_secs(30),
                "waited in vain: {what}"
            );
            std::thread::yield_now();
        }
    }

    fn connections(&self) -> i64 {
        self.metrics
            .connections
            .load(std::sync::atomic::Ordering::Relaxed)
    }
}

fn listener(name: &str) -> ListenerConfig {
    ListenerConfig {
        name: name.into(),
        kind: ListenerKind::Broker,
        host: "127.0.0.1".into(),
        port: 0,
        advertised_host: "broker.example".into(),
        advertised_port: 0,
    }
}

struct Client {
    stream: TcpStream,
    next_id: i32,
}

impl Client {
    fn frame(&mut self, ask: Ask) -> (i32, Vec<u8>) {
        let id = self.next_id;
        self.next_id += 1;
        let mut frame = 5_i32.to_be_bytes().to_vec();
        frame.push(ask as u8);
        frame.extend_from_slice(&id.to_be_bytes());
        (id, frame)
    }

    /// Sends all in one write and gives the correlation ids.
    fn send(&mut self, asks: &[Ask]) -> Vec<i32> {
        let mut bytes = Vec::new();
        let mut ids = Vec::new();
        for ask in asks {
            let (id, frame) = self.frame(*ask);
            ids.push(id);
            bytes.extend_from_slice(&frame);
        }
        self.stream.write_all(&bytes).unwrap();
        ids
    }

    /// The correlation id of the next response.
    fn receive(&mut self) -> i32 {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut body = vec![0; i32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut body).unwrap();
        i32::from_be_bytes(body[..4].try_into().unwrap())
    }

    fn receive_many(&mut self, count: usize) -> Vec<i32> {
        (0..count).map(|_| self.receive()).collect()
    }

    /// Asserts that the broker ends the stream in order, with a FIN and not a reset.
    fn expect_end(&mut self) {
        let mut rest = Vec::new();
        self.stream
            .read_to_end(&mut rest)
            .expect("an orderly end, not a reset");
        assert_eq!(rest, [0; 0]);
    }
}

#[test]
fn pipelined_responses_keep_the_order_of_their_requests() {
    let served = Served::start();
    let mut client = served.connect();
    let asks = [
        Ask::Park,
        Ask::Answer,
        Ask::RunAsync,
        Ask::Answer,
        Ask::Park,
        Ask::Answer,
    ];
    let ids = client.send(&asks);
    // The connection goes on past a parked request, up to the asynchronous one.
    served.wait_until("the first three are handled", |served| {
        served.handled().len() == 3
    });
    served.open_gate();
    assert_eq!(client.receive_many(ids.len()), ids);
    assert_eq!(served.handled(), ids);
}

#[test]
fn an_asynchronous_handler_runs_without_any_other_traffic() {
    let served = Served::start();
    served.open_gate();
    let mut client = served.connect();
    for _ in 0..3 {
        let ids = client.send(&[Ask::RunAsync]);
        assert_eq!(client.receive_many(1), ids);
    }
}

#[test]
fn a_request_without_a_response_leaves_no_hole() {
    let served = Served::start();
    let mut client = served.connect();
    let ids = client.send(&[Ask::Answer, Ask::Nothing, Ask::Answer, Ask::Nothing]);
    assert_eq!(client.receive_many(2), [ids[0], ids[2]]);
    let ids = client.send(&[Ask::Answer]);
    assert_eq!(client.receive_many(1), ids);
}

#[test]
fn closing_sends_earlier_responses_and_then_a_fin_although_input_is_unread() {
    let served = Served::start();
    let mut client = served.connect();
    let ids = client.send(&[Ask::Park, Ask::Answer, Ask::Close, Ask::Answer, Ask::Large]);
    served.wait_until("the request that closes is handled", |served| {
        served.handled().len() == 3
    });
    served.open_gate();
    assert_eq!(client.receive_many(2), ids[..2]);
    client.expect_end();
    assert_eq!(
        served.metrics.refused(CloseReason::FailedWithoutResponse),
        1
    );
}

#[test]
fn a_handler_that_fails_ends_its_connection_and_no_other() {
    for ask in [Ask::Panic, Ask::PanicWhenParked, Ask::Unencodable] {
        let served = Served::start();
        let mut other = served.connect();
        let mut client = served.connect();
        let ids = client.send(&[Ask::Answer, ask, Ask::Answer]);
        assert_eq!(client.receive_many(1), ids[..1]);
        client.expect_end();
        let ids = other.send(&[Ask::Answer]);
        assert_eq!(other.receive_many(1), ids);
        assert_eq!(served.metrics.refused(CloseReason::Internal), 1);
    }
}

#[test]
fn bad_lengths_and_foreign_protocols_end_the_connection() {
    let served = Served::start();
    let inputs: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x7f\xff\xff\xff",
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
    ];
    for (count, input) in inputs.into_iter().enumerate() {
        let mut client = served.connect();
        client.stream.write_all(input).unwrap();
        client.expect_end();
        let refused = served.metrics.refused(CloseReason::InvalidFrameLength);
        assert_eq!(refused, count as u64 + 1);
    }
}

#[test]
fn the_largest_request_is_served_and_one_byte_more_is_not() {
    let config = NetworkConfig {
        socket_request_max_bytes: 100_000,
        ..NetworkConfig::default()
    };
    let served = Served::with(config);
    let mut client = served.connect();
    let mut frame = 100_000_i32.to_be_bytes().to_vec();
    frame.push(Ask::Answer as u8);
    frame.extend_from_slice(&77_i32.to_be_bytes());
    frame.resize(4 + 100_000, 0);
    client.stream.write_all(&frame).unwrap();
    assert_eq!(client.receive(), 77);
    client.stream.write_all(&100_001_i32.to_be_bytes()).unwrap();
    client.expect_end();
}

#[test]
fn a_client_that_half_closes_gets_its_responses() {
    let served = Served::start();
    let mut client = served.connect();
    let ids = client.send(&[Ask::Park, Ask::Answer]);
    client.stream.shutdown(Shutdown::Write).unwrap();
    served.wait_until("both are handled", |served| served.handled().len() == 2);
    served.open_gate();
    assert_eq!(client.receive_many(2), ids);
    client.expect_end();
    served.wait_until("the connection is gone", |served| served.connections() == 0);
}

#[test]
fn a_client_that_does_not_read_is_not_read_from() {
    let served = Served::start();
    let mut slow = served.connect();
    let requests = 500;
    let ids = slow.send(&vec![Ask::Large; requests]);
    let mut other = served.connect();
    // Whatever the kernel buffers, it is far below 500 MiB: only so many requests are taken up. Others are served.
    for _ in 0..100 {
        let ids = other.send(&[Ask::Answer]);
        assert_eq!(other.receive_many(1), ids);
    }
    assert!(
        served.handled().len() - 100 < 100,
        "handled {}",
        served.handled().len()
    );
    assert_eq!(slow.receive_many(requests), ids);
}

#[test]
fn requests_in_flight_are_bounded() {
    let served = Served::start();
    let mut client = served.connect();
    let ids = client.send(&[Ask::Park; 1000]);
    served.wait_until("some are handled", |served| served.handled().len() >= 128);
    let mut other = served.connect();
    other.send(&[Ask::Answer]);
    other.receive();
    assert_eq!(served.handled().len(), 129);
    served.open_gate();
    assert_eq!(client.receive_many(1000), ids);
}

#[test]
fn an_idle_connection_is_closed_also_when_a_request_is_parked_but_not_while_a_handler_runs() {
    let config = NetworkConfig {
        connections_max_idle: Some(Duration::from_millis(200)),
        ..NetworkConfig::default()
    };
    let served = Served::with(config);
    let (mut parked, mut running) = (served.connect(), served.connect());
    parked.send(&[Ask::Park]);
    let ids = running.send(&[Ask::RunAsync]);
    served.wait_until("the requests are handled", |served| {
        served.handled().len() == 2
    });
    let mut silent = served.connect();
    silent.expect_end();
    parked.expect_end();
    assert_eq!(served.metrics.refused(CloseReason::Idle), 2);
    served.open_gate();
    assert_eq!(running.receive_many(1), ids);
    running.expect_end();
    assert_eq!(served.metrics.refused(CloseReason::Idle), 3);
}

#[test]
fn connections_from_one_address_are_limited_and_counted_again_when_one_ends() {
    let config = NetworkConfig {
        max_connections_per_ip: 2,
        ..NetworkConfig::default()
    };
    let served = Served::with(config);
    let (mut first, mut second) = (served.connect(), served.connect());
    for client in [&mut first, &mut second] {
        client.send(&[Ask::Answer]);
        client.receive();
    }
    served.connect().expect_end();
    assert_eq!(
        served
            .metrics
            .refused(CloseReason::TooManyConnectionsFromAddress),
        1
    );
    drop(first);
    served.wait_until("the first is gone", |served| served.connections() == 1);
    let mut third = served.connect();
    third.send(&[Ask::Answer]);
    third.receive();
}

#[test]
fn an_override_lets_an_address_have_more_connections() {
    let overrides = [([127, 0, 0, 1].into(), 1)].into();
    let config = NetworkConfig {
        max_connections_per_ip: 0,
        max_connections_per_ip_overrides: overrides,
        ..NetworkConfig::default()
    };
    let served = Served::with(config);
    let mut client = served.connect();
    client.send(&[Ask::Answer]);
    client.receive();
    served.connect().expect_end();
}

#[test]
fn at_max_connections_a_client_waits_until_another_ends() {
    let config = NetworkConfig {
        max_connections: 1,
        ..NetworkConfig::default()
    };
    let served = Served::with(config);
    let mut first = served.connect();
    first.send(&[Ask::Answer]);
    first.receive();
    let mut second = served.connect();
    second.send(&[Ask::Answer]);
    second.stream.set_nonblocking(true).unwrap();
    let early = second.stream.read(&mut [0; 1]);
    assert_eq!(early.unwrap_err().kind(), ErrorKind::WouldBlock);
    second.stream.set_nonblocking(false).unwrap();
    drop(first);
    assert_eq!(second.receive(), 1);
}

#[test]
fn connections_that_come_and_go_leave_nothing_behind() {
    let served = Served::start();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mut warm = served.connect();
    warm.send(&[Ask::Answer]);
    warm.receive();
    for _ in 0..1000 {
        let mut client = served.connect();
        client.stream.write_all(&[0, 0, 1]).unwrap();
    }
    served.wait_until("all are gone", |served| served.connections() == 1);
    // Other tests of this process open descriptors too.
    assert!(descriptors() < 500);
}

#[test]
fn stopping_answers_what_is_parked_and_closes() {
    let mut served = Served::start();
    let mut client = served.connect();
    let ids = client.send(&[Ask::Park, Ask::Answer]);
    served.wait_until("both are handled", |served| served.handled().len() == 2);
    let mut idle = served.connect();
    served.wait_until("both are open", |served| served.connections() == 2);
    let reader = std::thread::spawn(move || {
        assert_eq!(client.receive_many(2), ids);
        client.expect_end();
        idle.expect_end();
    });
    served.open_gate();
    served.stop(Duration::from_secs(30));
    reader.join().unwrap();
    assert_eq!(served.connections(), 0);
    assert!(TcpStream::connect(served.address).is_err());
}

#[test]
fn stopping_cuts_off_what_does_not_end() {
    let mut served = Served::start();
    let mut client = served.connect();
    client.send(&[Ask::Park]);
    served.wait_until("the request is handled", |served| {
        served.handled().len() == 1
    });
    served.stop(Duration::from_millis(50));
    assert_eq!(served.connections(), 0);
    assert!(!matches!(client.stream.read(&mut [0; 1]), Ok(1)));
}

#[test]
fn listeners_know_their_real_port_and_may_advertise_another_host() {
    let runtime = Runtime::new().unwrap();
    let _guard = runtime.enter();
    let other = ListenerConfig {
        advertised_port: 9999,
        ..listener("EXTERNAL")
    };
    let listeners = [listener("INTERNAL"), other];
    let config = NetworkConfig::default();
    let server = SocketServer::bind(&listeners, config, Arc::default()).unwrap();
    let [internal, external] = server.listeners() else {
        panic!("two listeners")
    };
    assert_ne!(internal.local_address.port(), 0);
    assert_eq!(
        internal.advertised_port,
        i32::from(internal.local_address.port())
    );
    assert_eq!(
        (&*external.advertised_host, external.advertised_port),
        ("broker.example", 9999)
    );
    let taken = ListenerConfig {
        port: internal.local_address.port(),
        ..listener("TAKEN")
    };
    let error = SocketServer::bind(&[taken], NetworkConfig::default(), Arc::default());
    let text = error.err().expect("the port is taken").to_string();
    assert!(
        text.contains("TAKEN") && text.contains("127.0.0.1"),
        "{text}"
    );
}
