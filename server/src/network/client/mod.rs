//! Connections to other nodes: requests out, responses in.
//!
//! A [`Client`] stands for one node. It connects when it is first used, asks the node once for the versions it serves,
//! and connects again after a failure, not sooner than its backoff allows. The [`Connection`] under it has no task of
//! its own: whoever waits for a response writes and reads on behalf of all who wait, so that a request and its response
//! cost no hand-over between tasks, and a connection that nobody uses costs nothing.

mod backoff;
mod connection;
mod error;
mod peer;
mod request;
mod state;
mod versions;

#[cfg(test)]
pub(crate) mod fake_node;
#[cfg(test)]
mod tests;

use std::time::Duration;

use kafka_protocol::protocol::StrBytes;

pub use backoff::Backoff;
pub(crate) use backoff::random;
pub use connection::Connection;
pub use error::ClientError;
pub use peer::Client;
pub use request::decode_response;
pub use versions::ApiVersionRanges;

/// How a client connects, how long it waits and how much it takes.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// What the node is told that we are, in every request header.
    pub client_id: StrBytes,
    /// How long a response may take; then the connection is closed, as in Kafka, since nobody can tell a slow node from
    /// a dead one.
    pub request_timeout: Duration,
    /// How long connecting may take (`socket.connection.setup.timeout.ms`).
    pub connection_setup_timeout: Duration,
    /// The largest response, without its length prefix. A larger one closes the connection.
    pub max_response_bytes: usize,
    /// Requests that may wait for their responses; further ones wait for their turn.
    pub max_in_flight: usize,
    /// The rest between two attempts to connect (`reconnect.backoff.ms`, `reconnect.backoff.max.ms`).
    pub reconnect_backoff: Backoff,
    /// SO_RCVBUF; `None` leaves it to the operating system (-1 in the configuration).
    pub socket_receive_buffer_bytes: Option<usize>,
}

impl ClientConfig {
    /// Kafka's defaults for a client with this name.
    pub fn named(client_id: impl Into<StrBytes>) -> Self {
        ClientConfig {
            client_id: client_id.into(),
            request_timeout: Duration::from_secs(30),
            connection_setup_timeout: Duration::from_secs(10),
            max_response_bytes: 100 * 1024 * 1024,
            max_in_flight: 100,
            reconnect_backoff: Backoff::new(Duration::from_millis(50), Duration::from_secs(1)),
            socket_receive_buffer_bytes: None,
        }
    }
}
