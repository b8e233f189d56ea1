//! Sockets: listeners and their acceptors, connections, frames, and the order of responses.

mod listener;
mod metrics;

pub use listener::Listener;
pub use metrics::NetworkMetrics;
