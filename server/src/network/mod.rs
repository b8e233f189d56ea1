//! Sockets: listeners and their acceptors, connections, frames, and the order of responses.

mod acceptor;
pub mod client;
mod connection;
mod frame;
mod listener;
mod metrics;
mod response_queue;
mod server;

pub use listener::{BindError, Listener, ListenerConfig, ListenerKind};
pub use metrics::{ApiCounters, NetworkMetrics, TIME_BUCKETS};
pub use server::{NetworkConfig, NetworkSettings, RequestHandler, SocketServer};
