//! Which nodes a cluster on one machine has, and the settings of each: from the arguments alone.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Every client listener is this many ports after the one before it; the controller listener lies between.
const PORTS_PER_NODE: u16 = 2;
/// More controllers than this make a quorum slower, not safer.
const MAX_CONTROLLERS: u16 = 5;
/// Copies that a topic has unless it asks for another number.
const REPLICATION_FACTOR: u16 = 3;

/// What a cluster is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClusterPlan {
    /// How many brokers; the first 1, 3 or 5 of them are controllers too.
    pub(super) brokers: u16,
    /// Client port of the first broker.
    pub(super) first_port: u16,
    /// Where the data folders and the properties files lie.
    pub(super) data_dir: PathBuf,
    /// `key=value` settings of every node; they win.
    pub(super) overrides: Vec<String>,
}

/// One node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct NodePlan {
    /// `node.id`, from 1.
    pub(in crate::cli) id: u16,
    /// Name of its folder and prefix of its log lines.
    pub(in crate::cli) name: String,
    /// What clients connect to.
    pub(in crate::cli) address: String,
    /// Its data folder.
    pub(in crate::cli) log_dir: PathBuf,
    /// Its properties file.
    pub(in crate::cli) properties_file: PathBuf,
    /// What the file holds.
    pub(in crate::cli) properties: String,
}

impl ClusterPlan {
    /// The nodes by ascending id.
    ///
    /// # Errors
    /// A sentence, when the ports do not fit below 65536 or an override is no `key=value`.
    pub(super) fn nodes(&self) -> Result<Vec<NodePlan>, String> {
        let ports_after_first = PORTS_PER_NODE.checked_mul(self.brokers);
        ports_after_first
            .and_then(|ports| self.first_port.checked_add(ports))
            .ok_or_else(|| {
                format!(
                    "{} brokers from port {} on do not fit below 65536",
                    self.brokers, self.first_port
                )
            })?;
        if let Some(text) = self.overrides.iter().find(|text| !text.contains('=')) {
            return Err(format!("--override {text}: key=value is expected"));
        }
        Ok((1..=self.brokers).map(|id| self.node(id)).collect())
    }

    /// Addresses of all brokers, as `bootstrap.servers` wants them.
    pub(super) fn bootstrap_servers(&self) -> String {
        let addresses = (1..=self.brokers).map(|id| format!("127.0.0.1:{}", self.client_port(id)));
        addresses.collect::<Vec<_>>().join(",")
    }

    /// The ports of all listeners.
    pub(super) fn ports(&self) -> impl Iterator<Item = u16> {
        let of_brokers = (1..=self.brokers).map(|id| self.client_port(id));
        of_brokers.chain((1..=self.controllers()).map(|id| self.controller_port(id)))
    }

    fn client_port(&self, id: u16) -> u16 {
        self.first_port + PORTS_PER_NODE * (id - 1)
    }

    fn controller_port(&self, id: u16) -> u16 {
        self.client_port(id) + 1
    }

    /// An odd number, so that each one counts: all of 1, 3 or 5 up to the number of brokers.
    fn controllers(&self) -> u16 {
        let most = self.brokers.min(MAX_CONTROLLERS);
        most - u16::from(most.is_multiple_of(2))
    }

    fn node(&self, id: u16) -> NodePlan {
        let name = format!("broker-{id}");
        let log_dir = self.data_dir.join(&name);
        NodePlan {
            id,
            address: format!("127.0.0.1:{}", self.client_port(id)),
            properties_file: self.data_dir.join(format!("{name}.properties")),
            properties: self.properties(id, &log_dir),
            log_dir,
            name,
        }
    }

    fn properties(&self, id: u16, log_dir: &Path) -> String {
        let controllers = self.controllers();
        let voters: Vec<String> = (1..=controllers)
            .map(|voter| format!("{voter}@127.0.0.1:{}", self.controller_port(voter)))
            .collect();
        let client = format!("PLAINTEXT://127.0.0.1:{}", self.client_port(id));
        let (roles, listeners) = if id <= controllers {
            let controller = format!("CONTROLLER://127.0.0.1:{}", self.controller_port(id));
            ("broker,controller", format!("{client},{controller}"))
        } else {
            ("broker", client.clone())
        };
        let factor = self.brokers.min(REPLICATION_FACTOR).to_string();
        // Two copies before an answer where a third may be down.
        let transaction_min_isr = self.brokers.min(2).to_string();
        let settings = [
            ("process.roles", roles.to_owned()),
            ("node.id", id.to_string()),
            ("controller.quorum.voters", voters.join(",")),
            ("listeners", listeners),
            ("advertised.listeners", client),
            ("controller.listener.names", "CONTROLLER".to_owned()),
            (
                "listener.security.protocol.map",
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT".to_owned(),
            ),
            ("log.dirs", escape(&log_dir.display().to_string())),
            ("default.replication.factor", factor.clone()),
            ("offsets.topic.replication.factor", factor.clone()),
            ("transaction.state.log.replication.factor", factor),
            ("transaction.state.log.min.isr", transaction_min_isr),
        ];
        let mut text = String::from(
            "# Written by `highwater cluster` at each start: use --override to change settings.\n",
        );
        for (key, value) in settings {
            let _ = writeln!(text, "{key}={value}");
        }
        // The last line of a key counts.
        for setting in &self.overrides {
            let _ = writeln!(text, "{setting}");
        }
        text
    }
}

/// A backslash begins an escape in a properties file.
pub(in crate::cli) fn escape(value: &str) -> String {
    value.replace('\\', "\\\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(brokers: u16) -> ClusterPlan {
        ClusterPlan {
            brokers,
            first_port: 9092,
            data_dir: PathBuf::from("/data"),
            overrides: vec!["min.insync.replicas=2".to_owned()],
        }
    }

    fn setting<'a>(node: &'a NodePlan, key: &str) -> Option<&'a str> {
        let mut lines = node.properties.lines();
        lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    }

    #[test]
    fn three_brokers_are_three_controllers_on_ports_of_their_own() {
        let nodes = plan(3).nodes().expect("a cluster");
        let addresses: Vec<&str> = nodes.iter().map(|node| node.address.as_str()).collect();
        assert_eq!(
            addresses,
            ["127.0.0.1:9092", "127.0.0.1:9094", "127.0.0.1:9096"]
        );
        assert_eq!(plan(3).bootstrap_servers(), addresses.join(","));
        let mut ports: Vec<u16> = plan(3).ports().collect();
        ports.sort_unstable();
        assert!(ports.into_iter().eq(9092..9098));
        assert_eq!(plan(4).ports().count(), 4 + 3);
        for node in &nodes {
            assert_eq!(setting(node, "process.roles"), Some("broker,controller"));
            assert_eq!(
                setting(node, "controller.quorum.voters"),
                Some("1@127.0.0.1:9093,2@127.0.0.1:9095,3@127.0.0.1:9097")
            );
            assert_eq!(setting(node, "offsets.topic.replication.factor"), Some("3"));
            assert_eq!(setting(node, "min.insync.replicas"), Some("2"));
        }
        assert_eq!(
            setting(&nodes[1], "listeners"),
            Some("PLAINTEXT://127.0.0.1:9094,CONTROLLER://127.0.0.1:9095")
        );
        assert_eq!(setting(&nodes[1], "log.dirs"), Some("/data/broker-2"));
    }

    #[test]
    fn an_even_number_of_brokers_has_an_odd_number_of_controllers() {
        for (brokers, controllers) in [(1, 1), (2, 1), (3, 3), (4, 3), (5, 5), (8, 5)] {
            let nodes = plan(brokers).nodes().expect("a cluster");
            let roles = nodes.iter().map(|node| setting(node, "process.roles"));
            let both = roles
                .filter(|roles| *roles == Some("broker,controller"))
                .count();
            assert_eq!(both, controllers, "{brokers} brokers");
        }
        let nodes = plan(4).nodes().expect("a cluster");
        assert_eq!(
            setting(&nodes[3], "listeners"),
            Some("PLAINTEXT://127.0.0.1:9098")
        );
    }

    #[test]
    fn ports_and_overrides_are_checked() {
        let beyond = ClusterPlan {
            first_port: 65_530,
            ..plan(3)
        };
        assert!(beyond.nodes().expect_err("too high").contains("65536"));
        let wrong = ClusterPlan {
            overrides: vec!["a".to_owned()],
            ..plan(3)
        };
        assert!(wrong.nodes().expect_err("no value").contains("key=value"));
    }
}
