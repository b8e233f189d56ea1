//! Which nodes the playground has, on which ports, with which settings: from the arguments alone.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use crate::cli::cluster::plan::{NodePlan, escape};
use crate::network::client::random;

/// The brokers.
pub(super) const BROKERS: [i32; 3] = [1, 2, 3];
/// The controller, a process of its own: it is there whatever happens to the brokers.
pub(super) const CONTROLLER: i32 = 3001;
/// All nodes.
pub(super) const NODES: [i32; 4] = [1, 2, 3, CONTROLLER];
/// Ports from the first one on: the page, three for clients, three for brokers, the controller, three consoles.
pub(super) const PORTS: u16 = 11;
/// How long a broker may be silent before the controller fences it, in ms.
pub(super) const SESSION_TIMEOUT_MS: u32 = 3000;
/// Where a free block is looked for: below the ports that outgoing connections take theirs from.
const FREE_PORTS: std::ops::Range<u16> = 10_000..32_000;
/// How often a free block of ports is looked for.
const ATTEMPTS: usize = 50;

/// Where everything is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// Port of the page.
    pub(super) first_port: u16,
    /// Where the data folders and the properties files lie.
    pub(super) data_dir: PathBuf,
    /// The port in front of each node that the others connect to, by node; see the network.
    pub(super) proxies: Vec<(i32, u16)>,
}

impl Plan {
    /// Port for clients of a broker.
    pub(super) fn client_port(&self, broker: i32) -> u16 {
        self.first_port + offset(broker)
    }

    /// Port of a node for the other nodes, behind its proxy.
    pub(super) fn node_port(&self, node: i32) -> u16 {
        match node {
            CONTROLLER => self.first_port + 7,
            broker => self.first_port + 3 + offset(broker),
        }
    }

    /// Port of a broker's console.
    pub(super) fn console_port(&self, broker: i32) -> u16 {
        self.first_port + 7 + offset(broker)
    }

    /// Addresses of all brokers, as `bootstrap.servers` wants them.
    pub(super) fn bootstrap_servers(&self) -> String {
        let addresses = BROKERS.map(|broker| format!("127.0.0.1:{}", self.client_port(broker)));
        addresses.join(",")
    }

    fn proxy(&self, node: i32) -> u16 {
        let mut proxies = self.proxies.iter();
        let found = proxies.find(|(of, _)| *of == node);
        found.map_or_else(|| self.node_port(node), |(_, port)| *port)
    }

    /// Folder of a node's data.
    pub(super) fn log_dir(&self, node: i32) -> PathBuf {
        self.data_dir.join(node_name(node))
    }

    /// A node; a follower of it leaves the ISR when it lags for `lag_ms`.
    pub(super) fn node(&self, node: i32, lag_ms: u32) -> NodePlan {
        let name = node_name(node);
        let log_dir = self.log_dir(node);
        let (address, properties) = match node {
            CONTROLLER => (
                format!("127.0.0.1:{}", self.node_port(node)),
                self.controller(&log_dir),
            ),
            broker => (
                format!("127.0.0.1:{}", self.client_port(broker)),
                self.broker(broker, &log_dir, lag_ms),
            ),
        };
        NodePlan {
            id: u16::try_from(node).unwrap_or_default(),
            address,
            properties_file: self.data_dir.join(format!("{name}.properties")),
            properties,
            log_dir,
            name,
        }
    }

    fn controller(&self, log_dir: &Path) -> String {
        self.properties(&[
            ("process.roles", "controller".to_owned()),
            ("node.id", CONTROLLER.to_string()),
            (
                "listeners",
                format!("CONTROLLER://127.0.0.1:{}", self.node_port(CONTROLLER)),
            ),
            // Where unclean elections become allowed, one is held soon, not within five minutes.
            ("unclean.leader.election.interval.ms", "1000".to_owned()),
            ("log.dirs", escape(&log_dir.display().to_string())),
        ])
    }

    fn broker(&self, broker: i32, log_dir: &Path, lag_ms: u32) -> String {
        // Where there is much time, a fetch waits at the leader while a lesson holds what comes behind it.
        let fetch_wait_ms = if lag_ms > 60_000 { 2500 } else { 1000 };
        let client = format!("CLIENTS://127.0.0.1:{}", self.client_port(broker));
        let node = |port| format!("BROKERS://127.0.0.1:{port}");
        self.properties(&[
            ("process.roles", "broker".to_owned()),
            ("node.id", broker.to_string()),
            (
                "listeners",
                format!("{client},{}", node(self.node_port(broker))),
            ),
            (
                "advertised.listeners",
                format!("{client},{}", node(self.proxy(broker))),
            ),
            ("inter.broker.listener.name", "BROKERS".to_owned()),
            (
                "http.listeners",
                format!("127.0.0.1:{}", self.console_port(broker)),
            ),
            ("log.dirs", escape(&log_dir.display().to_string())),
            ("replica.lag.time.max.ms", lag_ms.to_string()),
            ("replica.fetch.wait.max.ms", fetch_wait_ms.to_string()),
            // Leaders come back when somebody asks for it, not by themselves.
            ("auto.leader.rebalance.enable", "false".to_owned()),
            ("broker.heartbeat.interval.ms", "400".to_owned()),
            ("offsets.topic.replication.factor", "3".to_owned()),
            ("offsets.topic.num.partitions", "3".to_owned()),
            ("transaction.state.log.replication.factor", "3".to_owned()),
        ])
    }

    fn properties(&self, settings: &[(&str, String)]) -> String {
        let common = [
            (
                "controller.quorum.voters",
                format!("{CONTROLLER}@127.0.0.1:{}", self.proxy(CONTROLLER)),
            ),
            ("controller.listener.names", "CONTROLLER".to_owned()),
            (
                "listener.security.protocol.map",
                "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT".to_owned(),
            ),
            ("broker.session.timeout.ms", SESSION_TIMEOUT_MS.to_string()),
            // It is the controller that gives a new topic its replicas.
            ("default.replication.factor", "3".to_owned()),
        ];
        let mut text =
            String::from("# Written by `highwater playground` whenever it starts this node.\n");
        for (key, value) in settings.iter().chain(&common) {
            let _ = writeln!(text, "{key}={value}");
        }
        text
    }
}

/// Name of its folder, its properties file and its log lines.
fn node_name(node: i32) -> String {
    match node {
        CONTROLLER => "controller".to_owned(),
        broker => format!("broker-{broker}"),
    }
}

fn offset(broker: i32) -> u16 {
    u16::try_from(broker).unwrap_or_default()
}

/// What a port is for, for people.
fn purpose(at: u16) -> &'static str {
    match at {
        0 => "the page",
        1..=3 => "clients of a broker",
        4..=6 => "the brokers among themselves",
        7 => "the controller",
        _ => "the console of a broker",
    }
}

/// Checks that all ports are free, or finds such a block when `first_port` is 0. Gives the first, with the socket of the
/// page.
///
/// # Errors
/// A sentence that names the port that is in use.
pub(super) fn take_ports(first_port: u16) -> Result<(u16, TcpListener), String> {
    if first_port != 0 {
        return check_ports(first_port);
    }
    let mut last = "no free port".to_owned();
    for _ in 0..ATTEMPTS {
        let port =
            FREE_PORTS.start + (random() % u32::from(FREE_PORTS.end - FREE_PORTS.start)) as u16;
        match check_ports(port) {
            Ok(taken) => return Ok(taken),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn check_ports(first_port: u16) -> Result<(u16, TcpListener), String> {
    if first_port.checked_add(PORTS - 1).is_none() {
        return Err(format!(
            "{PORTS} ports from {first_port} on do not fit below 65536"
        ));
    }
    let mut sockets = Vec::new();
    for at in 0..PORTS {
        let port = first_port + at;
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
            let purpose = purpose(at);
            format!(
                "port {port}, for {purpose}, cannot be used: {error}; choose others with --port"
            )
        });
        sockets.push(bound?);
    }
    let page = sockets.swap_remove(0);
    Ok((first_port, page))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting<'a>(node: &'a NodePlan, key: &str) -> Option<&'a str> {
        let mut lines = node.properties.lines();
        lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    }

    #[test]
    fn nodes_reach_each_other_through_proxies_and_clients_do_not() {
        let plan = Plan {
            first_port: 9640,
            data_dir: PathBuf::from("/data"),
            proxies: vec![(1, 50_001), (2, 50_002), (3, 50_003), (CONTROLLER, 50_004)],
        };
        let second = plan.node(2, 4000);
        assert_eq!(
            setting(&second, "listeners"),
            Some("CLIENTS://127.0.0.1:9642,BROKERS://127.0.0.1:9645")
        );
        assert_eq!(
            setting(&second, "advertised.listeners"),
            Some("CLIENTS://127.0.0.1:9642,BROKERS://127.0.0.1:50002")
        );
        assert_eq!(setting(&second, "replica.lag.time.max.ms"), Some("4000"));
        let controller = plan.node(CONTROLLER, 4000);
        for node in [&second, &controller] {
            let voters = setting(node, "controller.quorum.voters");
            assert_eq!(voters, Some("3001@127.0.0.1:50004"));
            assert_eq!(setting(node, "default.replication.factor"), Some("3"));
        }
        assert_eq!(
            setting(&controller, "listeners"),
            Some("CONTROLLER://127.0.0.1:9647")
        );
        let mut ports: Vec<u16> = BROKERS
            .into_iter()
            .flat_map(|b| [plan.client_port(b), plan.node_port(b), plan.console_port(b)])
            .chain([plan.node_port(CONTROLLER), plan.first_port])
            .collect();
        ports.sort_unstable();
        assert_eq!(ports, (9640..9640 + PORTS).collect::<Vec<_>>());
    }

    #[test]
    fn a_port_in_use_is_named_with_its_purpose() {
        let (first, _page) = take_ports(0).expect("free ports");
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 7)).expect("free again");
        let error = take_ports(first).expect_err("in use");
        assert!(error.contains("cannot be used"), "{error}");
        drop(other);
        assert!(take_ports(65_530).expect_err("too high").contains("65536"));
    }
}
