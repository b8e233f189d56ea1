//! What a cluster is made of.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::broker::BrokerKind;
use crate::node::JvmStart;

/// Id of the first node that is a controller alone; brokers count from 1.
const FIRST_CONTROLLER: i32 = 3001;

/// Which nodes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// So many nodes, each broker and controller at once, with the ids 1, 2, ….
    Combined(i32),
    /// Brokers 1, 2, … and controllers 3001, 3002, ….
    Separate {
        /// Number of controllers.
        controllers: i32,
        /// Number of brokers.
        brokers: i32,
    },
}

impl Shape {
    /// Ids of the brokers.
    #[must_use]
    pub fn brokers(self) -> Vec<i32> {
        match self {
            Self::Combined(brokers) | Self::Separate { brokers, .. } => (1..=brokers).collect(),
        }
    }

    /// Ids of the controllers.
    #[must_use]
    pub fn controllers(self) -> Vec<i32> {
        match self {
            Self::Combined(nodes) => (1..=nodes).collect(),
            Self::Separate { controllers, .. } => {
                (FIRST_CONTROLLER..FIRST_CONTROLLER + controllers).collect()
            }
        }
    }

    /// Ids of all nodes.
    #[must_use]
    pub fn nodes(self) -> Vec<i32> {
        let mut nodes = self.brokers();
        if matches!(self, Self::Separate { .. }) {
            nodes.extend(self.controllers());
        }
        nodes
    }
}

/// How a cluster is started; both implementations get the same properties.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    pub(super) shape: Shape,
    pub(super) properties: BTreeMap<String, String>,
    pub(super) node_properties: BTreeMap<(i32, String), String>,
    pub(super) kinds: BTreeMap<i32, BrokerKind>,
    pub(super) features: BTreeMap<String, i16>,
    pub(super) network: bool,
    pub(super) clocks: bool,
    pub(super) disk_mib: Option<u32>,
    pub(super) heap_mib: u32,
    pub(super) start: JvmStart,
}

impl ClusterOptions {
    /// Three nodes, each broker and controller, replication factor 3 and `min.insync.replicas` 2 by default.
    ///
    /// A lost broker is fenced within seconds and a slow replica leaves the ISR within seconds.
    #[must_use]
    pub fn new() -> Self {
        let properties = [
            ("default.replication.factor", "3"),
            ("min.insync.replicas", "2"),
            ("offsets.topic.replication.factor", "3"),
            ("offsets.topic.num.partitions", "3"),
            ("transaction.state.log.replication.factor", "3"),
            ("transaction.state.log.num.partitions", "3"),
            ("transaction.state.log.min.isr", "2"),
            ("share.coordinator.state.topic.replication.factor", "3"),
            ("share.coordinator.state.topic.num.partitions", "3"),
            ("share.coordinator.state.topic.min.isr", "2"),
            ("group.initial.rebalance.delay.ms", "0"),
            ("broker.heartbeat.interval.ms", "500"),
            ("broker.session.timeout.ms", "6000"),
            ("replica.lag.time.max.ms", "4000"),
            // A controller that gets no processor for a second or two is not to lose its place.
            ("controller.quorum.election.timeout.ms", "3000"),
            ("controller.quorum.fetch.timeout.ms", "6000"),
            // Three JVMs that start on two busy cores take their time.
            ("initial.broker.registration.timeout.ms", "240000"),
            // Apache Kafka takes this memory at its start, and the heap is small.
            ("log.cleaner.dedupe.buffer.size", "4194304"),
        ];
        Self {
            shape: Shape::Combined(3),
            properties: properties
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            node_properties: BTreeMap::new(),
            kinds: BTreeMap::new(),
            features: BTreeMap::new(),
            network: false,
            clocks: false,
            disk_mib: None,
            heap_mib: 256,
            start: JvmStart::Quick,
        }
    }

    /// Other nodes than three combined ones.
    #[must_use]
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// Brokers 1, 2 and 3 with one controller that no test ends, so that metadata stays available whatever happens
    /// to the brokers.
    #[must_use]
    pub fn with_controller_apart(self) -> Self {
        self.shape(Shape::Separate {
            controllers: 1,
            brokers: 3,
        })
    }

    /// Sets a server property on every node.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Display) -> Self {
        self.properties.insert(key.to_owned(), value.to_string());
        self
    }

    /// Sets a server property on one node.
    #[must_use]
    pub fn set_on(mut self, node: i32, key: &str, value: impl Display) -> Self {
        self.node_properties
            .insert((node, key.to_owned()), value.to_string());
        self
    }

    /// Makes one node another implementation's than the others.
    #[must_use]
    pub fn node_of(mut self, node: i32, kind: BrokerKind) -> Self {
        self.kinds.insert(node, kind);
        self
    }

    /// Has Apache Kafka format its directories with this level of a feature, where it is not to be its own default.
    #[must_use]
    pub fn feature(mut self, name: &str, level: i16) -> Self {
        self.features.insert(name.to_owned(), level);
        self
    }

    /// Starts Java nodes as Apache Kafka's own script does, with this heap: slow to start, quick once warm.
    #[must_use]
    pub fn for_measurement(mut self, heap_mib: u32) -> Self {
        self.heap_mib = heap_mib;
        self.start = JvmStart::ByScript;
        self
    }

    /// Gives each node a [`super::SmallDisk`] of so many MiB, which only root may.
    #[must_use]
    pub fn with_small_disks(mut self, mebibytes: u32) -> Self {
        self.disk_mib = Some(mebibytes);
        self
    }

    /// Gives each node a wall clock of its own, which needs libfaketime.
    #[must_use]
    pub fn with_clocks(mut self) -> Self {
        self.clocks = true;
        self
    }

    /// Puts a [`super::Network`] between the nodes.
    #[must_use]
    pub fn with_network(mut self) -> Self {
        self.network = true;
        self
    }
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self::new()
    }
}
