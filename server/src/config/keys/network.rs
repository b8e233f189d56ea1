//! Keys: sockets and listeners.

use crate::config::key::ConfigKey;
use crate::config::key::ConfigType::{Boolean, Int, List, Long, Text};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("listeners", List, Some("PLAINTEXT://:9092"))
        .default_here("PLAINTEXT://127.0.0.1:9092")
        .doc(
            "Addresses to listen on, as NAME://host:port. An empty host means every \
             interface, port 0 a free port.",
        ),
    ConfigKey::new("advertised.listeners", List, None).doc(
        "Addresses given to clients, as NAME://host:port. Default: those of \
             `listeners`.",
    ),
    ConfigKey::new(
        "listener.security.protocol.map",
        Text,
        Some("SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"),
    )
    .doc("Security protocol of each listener name. Only PLAINTEXT is served so far."),
    ConfigKey::new("inter.broker.listener.name", Text, None)
        .doc("Name of the listener that brokers use among themselves."),
    ConfigKey::new("security.inter.broker.protocol", Text, Some("PLAINTEXT"))
        .one_of(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
        .doc(
            "Protocol of the listener that brokers use among themselves; excludes `inter.\
             broker.listener.name`.",
        ),
    ConfigKey::new("early.start.listeners", List, None)
        .no_counterpart("every listener opens at once when the broker is ready")
        .doc("Listeners that open before the authorizer is ready."),
    ConfigKey::new("socket.request.max.bytes", Int, Some("104857600"))
        .at_least(1)
        .doc("Largest request that is read; a longer one closes the connection."),
    ConfigKey::new("socket.send.buffer.bytes", Int, Some("102400"))
        .between(1, 2_147_483_647)
        .or_minus_one()
        .default_here("-1")
        .doc("SO_SNDBUF of accepted connections; -1 leaves it to the operating system."),
    ConfigKey::new("socket.receive.buffer.bytes", Int, Some("102400"))
        .between(1, 2_147_483_647)
        .or_minus_one()
        .default_here("-1")
        .doc("SO_RCVBUF of accepted connections; -1 leaves it to the operating system."),
    ConfigKey::new("socket.listen.backlog.size", Int, Some("50"))
        .at_least(1)
        .doc("Connections the kernel may queue before they are accepted."),
    ConfigKey::new("connections.max.idle.ms", Long, Some("600000"))
        .doc("A connection without a request for this long is closed."),
    ConfigKey::new("max.connections", Int, Some("2147483647"))
        .at_least(0)
        .cluster_wide()
        .doc("Connections the broker holds open at the same time."),
    ConfigKey::new("max.connections.per.ip", Int, Some("2147483647"))
        .at_least(0)
        .cluster_wide()
        .doc("Connections one client address may hold open."),
    ConfigKey::new("max.connections.per.ip.overrides", Text, Some(""))
        .cluster_wide()
        .doc("Other limits for single addresses, as host:count,host:count."),
    ConfigKey::new("max.connection.creation.rate", Int, Some("2147483647"))
        .at_least(0)
        .cluster_wide()
        .not_supported_yet()
        .doc("New connections a second."),
    ConfigKey::new("num.network.threads", Int, Some("3"))
        .at_least(1)
        .cluster_wide()
        .no_counterpart("one worker a core does both network and request work")
        .doc("Threads that read requests and write responses."),
    ConfigKey::new("num.io.threads", Int, Some("8"))
        .at_least(1)
        .cluster_wide()
        .no_counterpart("one worker a core does both network and request work")
        .doc("Threads that process requests."),
    ConfigKey::new("queued.max.requests", Int, Some("500"))
        .at_least(1)
        .no_counterpart("each connection has its own bound")
        .doc("Requests that may wait before the network threads stop reading."),
    ConfigKey::new("queued.max.request.bytes", Long, Some("-1"))
        .not_supported_yet()
        .doc("Bytes of requests that may wait before no more are read."),
    ConfigKey::new(
        "connection.failed.authentication.delay.ms",
        Int,
        Some("100"),
    )
    .at_least(0)
    .not_supported_yet()
    .doc("Delay before a connection is closed that failed to log in."),
    ConfigKey::new("connections.max.reauth.ms", Long, Some("0"))
        .not_supported_yet()
        .doc("Longest life of a login before the client must log in again."),
    ConfigKey::new("request.timeout.ms", Int, Some("30000"))
        .not_supported_yet()
        .doc("How long this broker waits for the response to a request of its own."),
    ConfigKey::new("socket.connection.setup.timeout.ms", Long, Some("10000"))
        .doc("How long this broker waits for a connection to a peer at first."),
    ConfigKey::new(
        "socket.connection.setup.timeout.max.ms",
        Long,
        Some("30000"),
    )
    .not_supported_yet()
    .doc("How long this broker waits for a connection to a peer at most."),
    ConfigKey::new("background.threads", Int, Some("10"))
        .at_least(1)
        .cluster_wide()
        .no_counterpart("background work runs on the shared runtime")
        .doc("Threads for background work."),
    ConfigKey::new(
        "server.max.startup.time.ms",
        Long,
        Some("9223372036854775807"),
    )
    .at_least(0)
    .internal()
    .not_supported_yet()
    .doc("How long the start may take."),
    ConfigKey::new("unstable.api.versions.enable", Boolean, Some("false"))
        .internal()
        .not_supported_yet()
        .doc("Offers API versions that are still being developed."),
];
