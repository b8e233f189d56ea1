//! The acceptor without file descriptors. Alone in its process, because the limit is the process's.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use highwater::api::table::Dispatched;
use highwater::api::{CloseReason, RequestContext};
use highwater::network::{
    ListenerConfig, ListenerKind, NetworkConfig, NetworkMetrics, RequestHandler, SocketServer,
};
use kafka_protocol::messages::ApiVersionsResponse;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};

/// Answers every request with its correlation id.
struct Echo;

impl RequestHandler for Echo {
    fn handle(self: &Arc<Self>, ctx: &mut RequestContext, mut frame: Bytes) -> Dispatched {
        ctx.correlation_id = frame.get_i32();
        Dispatched::Done(ctx.response_writer::<ApiVersionsResponse>().finish().into())
    }
}

fn is_served(stream: &mut TcpStream) -> bool {
    let asked = stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 9]);
    asked.is_ok() && stream.read_exact(&mut [0; 8]).is_ok()
}

fn open_descriptors() -> u64 {
    std::fs::read_dir("/proc/self/fd").unwrap().count() as u64
}

/// Sockets that are made now and connected when no descriptor is left.
fn sockets(count: usize) -> Vec<Socket> {
    let socket = || Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
    (0..count).map(|_| socket()).collect()
}

fn connect(socket: Socket, address: SocketAddr) -> TcpStream {
    socket.connect(&address.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    stream
}

#[test]
fn without_descriptors_clients_are_turned_away_and_served_again_when_there_are_some() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let _guard = runtime.enter();
    let metrics = Arc::new(NetworkMetrics::default());
    let listener = ListenerConfig {
        name: "PLAINTEXT".into(),
        kind: ListenerKind::Broker,
        host: "127.0.0.1".into(),
        port: 0,
        advertised_host: "localhost".into(),
        advertised_port: 0,
    };
    let config = NetworkConfig::default();
    let mut server = SocketServer::bind(&[listener], config, Arc::clone(&metrics)).unwrap();
    server.start(&Arc::new(Echo));
    let address = server.listeners()[0].local_address;

    // Served once, so that everything the server opens by itself is open.
    let mut first = connect(sockets(1).remove(0), address);
    assert!(is_served(&mut first));
    let early = sockets(10);
    let late = sockets(3);
    let before = getrlimit(Resource::Nofile);
    // Descriptor numbers are dense here, so this leaves room for three more; counting opened one itself.
    let limit = Rlimit {
        current: Some(open_descriptors() - 1 + 3),
        maximum: before.maximum,
    };
    setrlimit(Resource::Nofile, limit).unwrap();

    let mut streams: Vec<_> = early
        .into_iter()
        .map(|socket| connect(socket, address))
        .collect();
    let served = streams
        .iter_mut()
        .filter_map(|stream| is_served(stream).then_some(()))
        .count();
    assert!((1..10).contains(&served), "served {served}");
    assert!(metrics.refused(CloseReason::NoDescriptorLeft) > 0);
    assert!(is_served(&mut first), "a connection that was there goes on");

    drop(streams);
    let mut late = late.into_iter().map(|socket| connect(socket, address));
    assert!(late.any(|mut stream| is_served(&mut stream)));
    setrlimit(Resource::Nofile, before).unwrap();
    runtime.block_on(server.stop(Duration::from_secs(1)));
}
