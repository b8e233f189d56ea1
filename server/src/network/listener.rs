//! A named listener: the address it is bound to and the address it tells its clients.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use kafka_protocol::protocol::StrBytes;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

use super::server::NetworkConfig;

/// Whom a listener is for; it decides which APIs are served on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListenerKind {
    /// Clients, and other brokers.
    Broker,
    /// Brokers that talk to the controller, and the other controllers: one of `controller.listener.names`.
    Controller,
}

/// A listener as configured by `listeners` and `advertised.listeners`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerConfig {
    /// The listener's name, in upper case.
    pub name: String,
    /// Whom it is for.
    pub kind: ListenerKind,
    /// The host to bind to; empty for every address of the machine.
    pub host: String,
    /// The port to bind to; 0 for a free one.
    pub port: u16,
    /// The host that clients are told.
    pub advertised_host: String,
    /// The port that clients are told; 0 for the one that is bound.
    pub advertised_port: u16,
}

/// A bound listener. Clients that came in on it are told its advertised address.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The listener's name in `listeners` and `advertised.listeners`.
    pub name: String,
    /// Whom it is for.
    pub kind: ListenerKind,
    /// The address it is bound to, with the real port where the configuration says 0.
    pub local_address: SocketAddr,
    /// The host that clients are told.
    pub advertised_host: StrBytes,
    /// The port that clients are told.
    pub advertised_port: i32,
}

/// A listener that cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("listener {name} cannot be bound to {host}:{port}: {reason}")]
pub struct BindError {
    name: String,
    host: String,
    port: u16,
    reason: io::Error,
}

/// Binds a listener without accepting from it yet. Must run inside a tokio runtime.
pub(super) fn bind(
    config: &ListenerConfig,
    network: &NetworkConfig,
) -> Result<(Arc<Listener>, TcpListener), BindError> {
    let bound = bind_socket(config, network).and_then(|socket| {
        let local_address = socket.local_addr()?;
        Ok((socket, local_address))
    });
    let (socket, local_address) = bound.map_err(|reason| BindError {
        name: config.name.clone(),
        host: config.host.clone(),
        port: config.port,
        reason,
    })?;
    let advertised_port = match config.advertised_port {
        0 => local_address.port(),
        port => port,
    };
    let listener = Listener {
        name: config.name.clone(),
        kind: config.kind,
        local_address,
        advertised_host: StrBytes::from_string(config.advertised_host.clone()),
        advertised_port: i32::from(advertised_port),
    };
    Ok((Arc::new(listener), socket))
}

fn bind_socket(config: &ListenerConfig, network: &NetworkConfig) -> io::Result<TcpListener> {
    let host = if config.host.is_empty() {
        "::"
    } else {
        &config.host
    };
    let mut last_error = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, config.port).to_socket_addrs()? {
        match bind_address(address, network) {
            Ok(socket) => return Ok(socket),
            Err(error) => last_error = error,
        }
    }
    if config.host.is_empty() {
        // A machine without IPv6.
        return bind_address(SocketAddr::from(([0, 0, 0, 0], config.port)), network);
    }
    Err(last_error)
}

fn bind_address(address: SocketAddr, network: &NetworkConfig) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    // Accepted sockets inherit the sizes.
    if let Some(bytes) = network.socket_receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    if let Some(bytes) = network.socket_send_buffer_bytes {
        socket.set_send_buffer_size(bytes)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(network.socket_listen_backlog_size).unwrap_or(i32::MAX))?;
    TcpListener::from_std(socket.into())
}
