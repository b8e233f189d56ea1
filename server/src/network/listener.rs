//! A named listener and the address it tells its clients.

use std::net::SocketAddr;

use kafka_protocol::protocol::StrBytes;

/// A bound listener. Clients that came in on it are told its advertised address.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The listener's name in `listeners` and `advertised.listeners`.
    pub name: String,
    /// The address it is bound to, with the real port where the configuration says 0.
    pub local_address: SocketAddr,
    /// The host that clients are told.
    pub advertised_host: StrBytes,
    /// The port that clients are told.
    pub advertised_port: i32,
}
