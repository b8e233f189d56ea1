//! HTTP: the server that the port of a broker and the playground share, and what it is given to answer with.
//!
//! It is bounded: a few connections, a small head, no keep-alive, and little time for each request, except for the
//! streams of events, of which the handler allows some. A slow or broken client holds nothing up.

mod broker_pages;
pub mod events;
pub mod page;
pub mod rows;
mod write_deadline;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use self::write_deadline::WriteDeadline;
use crate::config::HttpAddress;

pub use broker_pages::{BrokerSite, ConsoleQuery, PARTITIONS_PER_PAGE, Pages};

/// Connections that are served at the same time; further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 16;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;
/// Bytes of a request's head.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Time for a request's head to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for a whole connection, streams of events excepted.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for a client to take what it is sent.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// Wait after an accept that failed, for lack of descriptors say.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// The body of a response.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What answers requests.
pub trait Handler: Send + Sync + 'static {
    /// The answer to one request. A response of type `text/event-stream` may last.
    fn handle(&self, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>>;
}

/// Addresses that are taken. Who connects is refused until [`WebServer::start`].
#[derive(Debug, Default)]
pub struct WebSockets(Vec<(HttpAddress, Socket)>);

impl WebSockets {
    /// Takes every address.
    ///
    /// # Errors
    /// When one cannot be bound; the text names it.
    pub fn bind(listeners: &[HttpAddress]) -> io::Result<Self> {
        let mut sockets = Vec::new();
        for listener in listeners {
            let socket = bind(listener).map_err(|error| not_bound(listener, &error))?;
            sockets.push((listener.clone(), socket));
        }
        Ok(WebSockets(sockets))
    }
}

/// A running HTTP server.
#[derive(Debug)]
pub struct WebServer {
    addresses: Vec<SocketAddr>,
    acceptors: Vec<JoinHandle<()>>,
}

impl WebServer {
    /// Begins to serve on these addresses. Must run inside a tokio runtime.
    ///
    /// # Errors
    /// When another process has begun to listen on one meanwhile; the text names it.
    pub fn start(sockets: WebSockets, handler: Arc<dyn Handler>) -> io::Result<Self> {
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut server = WebServer {
            addresses: Vec::new(),
            acceptors: Vec::new(),
        };
        for (listener, socket) in sockets.0 {
            let socket = listen(socket).map_err(|error| not_bound(&listener, &error))?;
            server.add(socket, Arc::clone(&handler), Arc::clone(&permits))?;
        }
        Ok(server)
    }

    /// Begins to serve on a socket that is bound already. Must run inside a tokio runtime.
    ///
    /// # Errors
    /// When the socket does not tell its address.
    pub fn on_socket(socket: TcpListener, handler: Arc<dyn Handler>) -> io::Result<Self> {
        let mut server = WebServer {
            addresses: Vec::new(),
            acceptors: Vec::new(),
        };
        server.add(socket, handler, Arc::new(Semaphore::new(MAX_CONNECTIONS)))?;
        Ok(server)
    }

    fn add(
        &mut self,
        socket: TcpListener,
        handler: Arc<dyn Handler>,
        permits: Arc<Semaphore>,
    ) -> io::Result<()> {
        self.addresses.push(socket.local_addr()?);
        self.acceptors
            .push(tokio::spawn(accept(socket, handler, permits)));
        Ok(())
    }

    /// The bound addresses, with real ports.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Stops accepting. Connections that are being served end by themselves or with the runtime.
    pub fn stop(&self) {
        for acceptor in &self.acceptors {
            acceptor.abort();
        }
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn not_bound(listener: &HttpAddress, error: &io::Error) -> io::Error {
    let HttpAddress { host, port } = listener;
    let text = format!("cannot listen on http.listeners={host}:{port}: {error}");
    io::Error::new(error.kind(), text)
}

fn bind(listener: &HttpAddress) -> io::Result<Socket> {
    let host = if listener.host.is_empty() {
        "0.0.0.0"
    } else {
        &listener.host
    };
    let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "no address");
    for address in (host, listener.port).to_socket_addrs()? {
        match bind_address(address) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bind_address(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn listen(socket: Socket) -> io::Result<TcpListener> {
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

async fn accept(socket: TcpListener, handler: Arc<dyn Handler>, permits: Arc<Semaphore>) {
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        match socket.accept().await {
            Ok((stream, peer)) => {
                let handler = Arc::clone(&handler);
                tokio::spawn(async move {
                    if serve(stream, handler).await.is_none() {
                        tracing::debug!(%peer, "http connection took too long");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an http connection");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// Serves one connection; `None` when it took too long.
async fn serve(stream: TcpStream, handler: Arc<dyn Handler>) -> Option<()> {
    let may_last = Arc::new(AtomicBool::new(false));
    let lasts = Arc::clone(&may_last);
    let service = service_fn(move |request: Request<Incoming>| {
        let response = handler.handle(request);
        let lasts = Arc::clone(&lasts);
        async move {
            let response = response.await;
            let content_type = response.headers().get(CONTENT_TYPE);
            let is_stream = content_type.is_some_and(|value| value == "text/event-stream");
            lasts.store(is_stream, Ordering::Relaxed);
            Ok::<_, Infallible>(response)
        }
    });
    let io = TokioIo::new(WriteDeadline::new(stream, WRITE_TIMEOUT));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(io, service);
    let mut served = std::pin::pin!(served);
    let ended = match timeout(CONNECTION_TIMEOUT, served.as_mut()).await {
        Ok(ended) => ended,
        Err(_) if may_last.load(Ordering::Relaxed) => served.await,
        Err(_) => return None,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "http connection ended early");
    }
    Some(())
}

/// A response of this type that is not to be kept.
pub fn response(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A response of plain text.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    response(status, PLAIN_TEXT, body)
}

#[cfg(test)]
mod tests;
