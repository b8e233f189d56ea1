//! The HTTP port: `/metrics`, `/health` and `/ready`.
//!
//! It is for monitoring on a trusted network, off unless `http.listeners` is set, and bounded: a few connections, a
//! small head, no body, one request a connection, and little time for each. A slow or broken client holds nothing up.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::Full;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::config::HttpAddress;

/// Connections that are served at the same time; further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 16;
/// Bytes of a request's head.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Time for a request's head to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for the broker to say that it is healthy.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for a whole connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// Wait after an accept that failed, for lack of descriptors say.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// The content type of the Prometheus text that prometheus-client writes.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// What the pages are made of.
pub trait Pages: Send + Sync + 'static {
    /// All metrics as OpenMetrics text; may take a while.
    fn metrics(&self) -> Result<String, std::fmt::Error>;
    /// Whether the process works; if it does not, a restart may help. The text says what is wrong.
    fn health(&self) -> BoxFuture<'_, Result<(), String>>;
    /// Whether clients are served now. The text says why not.
    fn ready(&self) -> Result<(), String>;
}

/// The HTTP port of a running broker.
#[derive(Debug)]
pub struct WebServer {
    addresses: Vec<SocketAddr>,
    acceptors: Vec<JoinHandle<()>>,
}

impl WebServer {
    /// Binds every address and begins to serve. Must run inside a tokio runtime.
    ///
    /// # Errors
    /// When an address cannot be bound; the text names it.
    pub fn start(listeners: &[HttpAddress], pages: Arc<dyn Pages>) -> io::Result<Self> {
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut server = WebServer {
            addresses: Vec::new(),
            acceptors: Vec::new(),
        };
        for listener in listeners {
            let socket = bind(listener).map_err(|error| {
                let name = format!(
                    "cannot listen on http.listeners={}:{}: {error}",
                    listener.host, listener.port
                );
                io::Error::new(error.kind(), name)
            })?;
            server.addresses.push(socket.local_addr()?);
            server.acceptors.push(tokio::spawn(accept(
                socket,
                Arc::clone(&pages),
                Arc::clone(&permits),
            )));
        }
        Ok(server)
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

fn bind(listener: &HttpAddress) -> io::Result<TcpListener> {
    let host = if listener.host.is_empty() {
        "0.0.0.0"
    } else {
        &listener.host
    };
    let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "no address");
    for address in (host, listener.port).to_socket_addrs()? {
        match std::net::TcpListener::bind(address) {
            Ok(socket) => {
                socket.set_nonblocking(true)?;
                return TcpListener::from_std(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn accept(socket: TcpListener, pages: Arc<dyn Pages>, permits: Arc<Semaphore>) {
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        match socket.accept().await {
            Ok((stream, peer)) => {
                let pages = Arc::clone(&pages);
                tokio::spawn(async move {
                    let served = serve(stream, pages);
                    if timeout(CONNECTION_TIMEOUT, served).await.is_err() {
                        tracing::debug!(%peer, "http connection took too long");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an http connection");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, pages: Arc<dyn Pages>) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let pages = Arc::clone(&pages);
        async move { Ok::<_, Infallible>(answer(&request, pages).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "http connection ended early");
    }
}

fn answer<B>(
    request: &Request<B>,
    pages: Arc<dyn Pages>,
) -> impl Future<Output = Response<Full<Bytes>>> + use<B> {
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    let path = request.uri().path().to_owned();
    async move {
        if !is_read {
            let mut response = text(
                StatusCode::METHOD_NOT_ALLOWED,
                "GET is expected\n".to_owned(),
            );
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match path.as_str() {
            "/metrics" => metrics(pages).await,
            "/health" => match timeout(HEALTH_TIMEOUT, pages.health()).await {
                Ok(health) => status(health, "healthy\n"),
                Err(_) => status(Err("no answer in time".to_owned()), ""),
            },
            "/ready" => status(pages.ready(), "ready\n"),
            _ => text(
                StatusCode::NOT_FOUND,
                "/metrics, /health and /ready are here\n".to_owned(),
            ),
        }
    }
}

/// Writes the metrics on a thread that may block: with many partitions it takes a while.
async fn metrics(pages: Arc<dyn Pages>) -> Response<Full<Bytes>> {
    match spawn_blocking(move || pages.metrics()).await {
        Ok(Ok(body)) => {
            let mut response = text(StatusCode::OK, body);
            response
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static(OPENMETRICS));
            response
        }
        Ok(Err(_)) | Err(_) => {
            tracing::error!("cannot write the metrics");
            text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the metrics cannot be written\n".to_owned(),
            )
        }
    }
}

fn status(result: Result<(), String>, fine: &str) -> Response<Full<Bytes>> {
    match result {
        Ok(()) => text(StatusCode::OK, fine.to_owned()),
        Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(PLAIN_TEXT));
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests;
