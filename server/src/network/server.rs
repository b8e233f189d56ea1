//! The socket server: its listeners, the connections that are open, and their end.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::acceptor;
use super::listener::{self, BindError, Listener, ListenerConfig, ListenerKind};
use super::metrics::NetworkMetrics;
use crate::api::RequestContext;
use crate::api::table::Dispatched;

/// Serves requests; the broker in production.
pub trait RequestHandler: Send + Sync + 'static {
    /// Handles the request in `frame` (without its length prefix) and leaves its header in `ctx`.
    fn handle(self: &Arc<Self>, ctx: &mut RequestContext, frame: Bytes) -> Dispatched;

    /// The connection of `ctx` has ended, whoever ended it.
    fn on_connection_end(&self, ctx: &RequestContext) {
        let _ = ctx;
    }
}

/// The bounds and socket options of the network layer, under Kafka's names.
#[derive(Debug, Clone)]
pub struct NetworkConfig {
    /// The largest request, without its length prefix.
    pub socket_request_max_bytes: usize,
    /// `None` leaves the size to the operating system (-1 in the configuration).
    pub socket_receive_buffer_bytes: Option<usize>,
    /// `None` leaves the size to the operating system (-1 in the configuration).
    pub socket_send_buffer_bytes: Option<usize>,
    /// Connections that the kernel queues for us.
    pub socket_listen_backlog_size: u32,
    /// How long a connection may be silent with nothing outstanding; `None` for ever.
    pub connections_max_idle: Option<Duration>,
    /// At so many connections the broker accepts no other until one ends.
    pub max_connections: usize,
    /// At so many connections from one address a further one is closed.
    pub max_connections_per_ip: usize,
    /// Exceptions from `max_connections_per_ip`.
    pub max_connections_per_ip_overrides: HashMap<IpAddr, usize>,
}

impl Default for NetworkConfig {
    /// Kafka's defaults, but with socket buffers that the operating system sizes.
    fn default() -> Self {
        NetworkConfig {
            socket_request_max_bytes: 100 * 1024 * 1024,
            socket_receive_buffer_bytes: None,
            socket_send_buffer_bytes: None,
            socket_listen_backlog_size: 50,
            connections_max_idle: Some(Duration::from_secs(600)),
            max_connections: usize::MAX,
            max_connections_per_ip: usize::MAX,
            max_connections_per_ip_overrides: HashMap::new(),
        }
    }
}

/// What acceptors and connections share.
pub(super) struct Shared {
    config: ArcSwap<NetworkConfig>,
    pub(super) metrics: Arc<NetworkMetrics>,
    stopping: AtomicBool,
    aborting: AtomicBool,
    next_connection_id: AtomicU64,
    open: Mutex<OpenConnections>,
    /// A connection has ended, or the settings are others.
    changed: Notify,
}

#[derive(Default)]
struct OpenConnections {
    wakers: HashMap<u64, Arc<AtomicWaker>>,
    by_ip: HashMap<IpAddr, usize>,
}

/// `max.connections.per.ip` is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyFromAddress;

impl Shared {
    /// Enters a new connection into the books; the guard takes it out.
    pub(super) fn open(self: &Arc<Self>, ip: IpAddr) -> Result<OpenConnection, TooManyFromAddress> {
        let ip = ip.to_canonical();
        let config = self.config.load();
        let limit = config.max_connections_per_ip_overrides.get(&ip);
        let limit = *limit.unwrap_or(&config.max_connections_per_ip);
        let id = self.next_connection_id.fetch_add(1, Ordering::Relaxed);
        let waker = Arc::new(AtomicWaker::new());
        {
            let mut open = self.open.lock();
            let from_ip = open.by_ip.entry(ip).or_default();
            if *from_ip >= limit {
                if *from_ip == 0 {
                    open.by_ip.remove(&ip);
                }
                return Err(TooManyFromAddress);
            }
            *from_ip += 1;
            open.wakers.insert(id, Arc::clone(&waker));
        }
        self.metrics.connections.fetch_add(1, Ordering::Relaxed);
        self.metrics
            .connections_accepted
            .fetch_add(1, Ordering::Relaxed);
        Ok(OpenConnection {
            shared: Arc::clone(self),
            id,
            ip,
            waker,
            registered: false,
        })
    }

    fn close(&self, id: u64, ip: IpAddr) {
        {
            let mut open = self.open.lock();
            open.wakers.remove(&id);
            if let Some(from_ip) = open.by_ip.get_mut(&ip) {
                *from_ip -= 1;
                if *from_ip == 0 {
                    open.by_ip.remove(&ip);
                }
            }
        }
        self.metrics.connections.fetch_sub(1, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    fn wake_all(&self) {
        let wakers: Vec<_> = self.open.lock().wakers.values().cloned().collect();
        wakers.iter().for_each(|waker| waker.wake());
    }

    /// Waits until the number of open connections satisfies `enough`. The server's settings may change meanwhile.
    async fn until_open(&self, enough: impl Fn(usize) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if enough(self.open.lock().wakers.len()) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until `max.connections` allows another connection.
    pub(super) async fn until_below_limit(&self) {
        self.until_open(|open| open < self.config.load().max_connections)
            .await;
    }

    async fn until_all_closed(&self) {
        self.until_open(|open| open == 0).await;
    }
}

/// A connection's entry in the books of the server; dropping it takes the connection out.
pub(super) struct OpenConnection {
    shared: Arc<Shared>,
    id: u64,
    ip: IpAddr,
    waker: Arc<AtomicWaker>,
    registered: bool,
}

impl OpenConnection {
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn config(&self) -> Arc<NetworkConfig> {
        self.shared.config.load_full()
    }

    /// Registers the task that is woken when the server stops, and again when it cuts off. A task keeps its waker for
    /// life, but being woken takes it out of the register.
    pub(super) fn register(&mut self, waker: &Waker) {
        if !self.registered || self.is_stopping() {
            self.waker.register(waker);
            self.registered = true;
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Acquire)
    }

    pub(super) fn is_aborting(&self) -> bool {
        self.shared.aborting.load(Ordering::Acquire)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.shared.close(self.id, self.ip);
    }
}

/// Changes the settings of a running server. Cheap to clone.
#[derive(Clone)]
pub struct NetworkSettings(Arc<Shared>);

impl NetworkSettings {
    /// Puts other settings into effect. The limits of connections count at once, for the connections to come; the idle
    /// limit and the largest request count for connections accepted from now on; sizes of buffers and of the backlog
    /// stay as they are.
    pub fn replace(&self, config: NetworkConfig) {
        self.0.config.store(Arc::new(config));
        self.0.changed.notify_waiters();
    }
}

/// The listeners of a broker. Bound first, so that ports are known; started when the broker can serve.
pub struct SocketServer {
    shared: Arc<Shared>,
    listeners: Vec<Arc<Listener>>,
    /// Those that nobody accepts from yet; each has its listener at the same place.
    sockets: Vec<Option<TcpListener>>,
    acceptors: Vec<JoinHandle<()>>,
}

impl SocketServer {
    /// Binds every listener; none is accepted from yet. Must run inside a tokio runtime.
    pub fn bind(
        listeners: &[ListenerConfig],
        config: NetworkConfig,
        metrics: Arc<NetworkMetrics>,
    ) -> Result<Self, BindError> {
        let mut bound = Vec::new();
        let mut sockets = Vec::new();
        for listener in listeners {
            let (listener, socket) = listener::bind(listener, &config)?;
            bound.push(listener);
            sockets.push(Some(socket));
        }
        let shared = Shared {
            config: ArcSwap::from_pointee(config),
            metrics,
            stopping: AtomicBool::new(false),
            aborting: AtomicBool::new(false),
            next_connection_id: AtomicU64::new(1),
            open: Mutex::default(),
            changed: Notify::new(),
        };
        Ok(SocketServer {
            shared: Arc::new(shared),
            listeners: bound,
            sockets,
            acceptors: Vec::new(),
        })
    }

    /// The bound listeners with their real ports, in the order of the configuration.
    pub fn listeners(&self) -> &[Arc<Listener>] {
        &self.listeners
    }

    /// Changes the settings of the running server.
    pub fn settings(&self) -> NetworkSettings {
        NetworkSettings(Arc::clone(&self.shared))
    }

    /// Begins to accept and to serve on all listeners.
    pub fn start<H: RequestHandler>(&mut self, handler: &Arc<H>) {
        self.start_listeners(ListenerKind::Controller, handler);
        self.start_listeners(ListenerKind::Broker, handler);
    }

    /// Begins to accept and to serve on the listeners of a kind.
    pub fn start_listeners<H: RequestHandler>(&mut self, kind: ListenerKind, handler: &Arc<H>) {
        for (socket, listener) in self.sockets.iter_mut().zip(&self.listeners) {
            let Some(socket) = socket.take_if(|_| listener.kind == kind) else {
                continue;
            };
            let accepting = acceptor::accept(
                socket,
                Arc::clone(listener),
                Arc::clone(handler),
                Arc::clone(&self.shared),
            );
            self.acceptors.push(tokio::spawn(accepting));
        }
    }

    /// Stops accepting, lets every connection send what it has parked, and closes them. What is not done after `grace`
    /// is cut off.
    pub async fn stop(mut self, grace: Duration) {
        self.sockets.clear();
        for acceptor in &self.acceptors {
            acceptor.abort();
        }
        for acceptor in self.acceptors.drain(..) {
            // Either aborted or ended by itself; there is no result to look at.
            let _ = acceptor.await;
        }
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.wake_all();
        if tokio::time::timeout(grace, self.shared.until_all_closed())
            .await
            .is_err()
        {
            let left = self.shared.open.lock().wakers.len();
            tracing::warn!(
                connections = left,
                "cutting off connections that did not end in time"
            );
            self.shared.aborting.store(true, Ordering::Release);
            self.shared.wake_all();
            let cut_off = tokio::time::timeout(grace, self.shared.until_all_closed()).await;
            if cut_off.is_err() {
                tracing::warn!("connections are still busy");
            }
        }
    }
}
