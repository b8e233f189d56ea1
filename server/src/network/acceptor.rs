//! Takes connections from a listener and gives each a task.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::connection::Connection;
use super::listener::Listener;
use super::server::{RequestHandler, Shared};
use crate::api::{CloseReason, RequestContext};

/// How long the acceptor rests after an error that would come again at once.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Accepts for as long as the server runs.
pub(super) async fn accept<H: RequestHandler>(
    socket: TcpListener,
    listener: Arc<Listener>,
    handler: Arc<H>,
    shared: Arc<Shared>,
) {
    let mut reserve = Reserve::new();
    loop {
        // As Kafka does at max.connections: wait until a connection ends.
        shared.until_below_limit().await;
        match socket.accept().await {
            Ok((stream, peer)) => open(stream, peer, &listener, &handler, &shared),
            Err(error) if no_descriptor_left(&error) => {
                shared.metrics.count_refused(CloseReason::NoDescriptorLeft);
                tracing::error!(listener = listener.name, %error, "no file descriptor left for a connection");
                reserve.turn_away(&socket);
                sleep(BACK_OFF).await;
            }
            // The client is gone already.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                tracing::debug!(listener = listener.name, %error, "connection aborted before it was accepted");
            }
            Err(error) => {
                tracing::error!(listener = listener.name, %error, "accepting a connection failed");
                sleep(BACK_OFF).await;
            }
        }
    }
}

fn open<H: RequestHandler>(
    stream: TcpStream,
    peer: SocketAddr,
    listener: &Arc<Listener>,
    handler: &Arc<H>,
    shared: &Arc<Shared>,
) {
    let Ok(open) = shared.open(peer.ip()) else {
        shared
            .metrics
            .count_refused(CloseReason::TooManyConnectionsFromAddress);
        tracing::warn!(%peer, listener = listener.name, "too many connections from this address");
        return;
    };
    if let Err(error) = set_options(&stream) {
        tracing::debug!(%peer, %error, "socket options cannot be set");
        return;
    }
    let ctx = RequestContext {
        api_key: -1,
        api_version: -1,
        correlation_id: 0,
        client_id: None,
        listener: Arc::clone(listener),
        peer,
        connection_id: open.id(),
        metrics: Arc::clone(&shared.metrics),
        not_controller: None,
    };
    tokio::spawn(Connection::new(stream, ctx, Arc::clone(handler), open).run());
}

fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_keepalive(true)
}

fn no_descriptor_left(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE]
        .iter()
        .any(|no_descriptor| errno == Some(no_descriptor.raw_os_error()))
}

/// A descriptor kept back, so that a client can be turned away when there is no other: left in the kernel's queue it
/// would wait without an answer.
struct Reserve(Option<File>);

impl Reserve {
    fn new() -> Self {
        let mut reserve = Reserve(None);
        reserve.refill();
        reserve
    }

    fn refill(&mut self) {
        if self.0.is_none() {
            match File::open("/dev/null") {
                Ok(file) => self.0 = Some(file),
                Err(error) => tracing::debug!(%error, "no descriptor to keep in reserve"),
            }
        }
    }

    /// Accepts with the reserved descriptor and closes at once, for as long as clients wait.
    fn turn_away(&mut self, socket: &TcpListener) {
        if self.0.take().is_some() {
            let waker = futures_util::task::noop_waker_ref();
            let mut cx = std::task::Context::from_waker(waker);
            while let std::task::Poll::Ready(Ok((stream, peer))) = socket.poll_accept(&mut cx) {
                tracing::debug!(%peer, "turned away");
                drop(stream);
            }
        }
        self.refill();
    }
}
