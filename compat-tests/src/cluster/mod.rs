//! Several nodes of one implementation that form a cluster, on free ports of 127.0.0.1.
//!
//! Nodes can be killed, stopped, paused, started again, and started on less data than they had; with a [`Network`]
//! between them, their links can be cut and slowed. All waiting is for conditions ([`Cluster::wait_for_partition`]).

mod clock;
mod disk;
mod each_cluster;
mod hand_made;
mod hand_made_leader;
mod leader_log;
mod network;
mod options;
mod small_disk;
mod socket_owner;
mod view;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

pub(crate) use clock::Clock;
pub use disk::DataCopy;
pub use each_cluster::{
    for_each_cluster, for_each_kind, for_each_shared_cluster, for_highwater_cluster,
};
pub use hand_made::{Follower, HandMadeBroker};
pub use hand_made_leader::HandMadeLeader;
pub use leader_log::LeaderLog;
pub use network::{Link, Network};
pub use options::{ClusterOptions, Shape};
pub use small_disk::SmallDisk;
pub use view::{PartitionView, Quorum};

use crate::broker::BrokerKind;
use crate::node::{JavaOptions, Node};
use crate::process::free_port;
use crate::raw::Connection;

const CLIENTS: &str = "PLAINTEXT";
const BROKERS: &str = "BROKER";
const CONTROLLERS: &str = "CONTROLLER";

/// A running cluster; its processes end and its data goes when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    kind: BrokerKind,
    shape: Shape,
    nodes: BTreeMap<i32, Member>,
    network: Option<Network>,
    disks: BTreeMap<i32, SmallDisk>,
    // Removed last, when the processes have ended.
    _folder: TempDir,
}

/// One node and where it is reached.
#[derive(Debug)]
struct Member {
    node: Node,
    /// Where clients reach a broker.
    client_port: Option<u16>,
    /// Where a controller is reached.
    controller_port: Option<u16>,
    data: PathBuf,
}

/// Ports of one node's listeners, by name: where it listens and what it advertises.
type Listeners = Vec<(&'static str, u16, u16)>;

impl Cluster {
    /// Starts all nodes with empty directories and waits until every broker knows all brokers.
    ///
    /// # Errors
    /// When the server does not build, cannot be fetched, or does not get ready; the text holds its log.
    pub fn start(kind: BrokerKind, options: &ClusterOptions) -> Result<Self> {
        let mut last = None;
        for _ in 0..3 {
            let mut cluster = Self::prepare(kind, options)?;
            match cluster.start_all() {
                Ok(()) => return Ok(cluster),
                // Another process took a port between our look and the node's bind.
                Err(error) if format!("{error:#}").to_lowercase().contains("in use") => {
                    last = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(last.context("no start was tried")?)
    }

    fn prepare(kind: BrokerKind, options: &ClusterOptions) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("compat-{kind}-cluster-"))
            .tempdir()?;
        let shape = options.shape;
        let mut network = options.network.then(Network::new);
        let mut listeners = BTreeMap::new();
        for id in shape.nodes() {
            listeners.insert(id, Self::listeners(shape, id, network.as_mut())?);
        }
        let voters = shape.controllers().into_iter().map(|id| {
            let advertised = port(&listeners[&id], CONTROLLERS).map(|(_, advertised)| advertised);
            format!("{id}@127.0.0.1:{}", advertised.unwrap_or_default())
        });
        let voters = voters.collect::<Vec<_>>().join(",");
        let mut nodes = BTreeMap::new();
        let mut disks = BTreeMap::new();
        for (id, listeners) in listeners {
            let own = folder.path().join(format!("node-{id}"));
            let data = own.join("data");
            std::fs::create_dir(&own)?;
            if let Some(mebibytes) = options.disk_mib {
                disks.insert(id, SmallDisk::mount(&data, mebibytes)?);
            }
            let mut properties = options.properties.clone();
            let mut set = |key: &str, value: String| properties.insert(key.to_owned(), value);
            set("node.id", id.to_string());
            set("process.roles", roles(shape, id).to_owned());
            set("controller.quorum.voters", voters.clone());
            set("controller.listener.names", CONTROLLERS.to_owned());
            set("listeners", texts(&listeners, |&(_, listens, _)| listens));
            set("log.dirs", data.display().to_string());
            if network.is_some() {
                set(
                    "advertised.listeners",
                    texts(&listeners, |&(_, _, advertised)| advertised),
                );
                set("inter.broker.listener.name", BROKERS.to_owned());
                let map = [CLIENTS, BROKERS, CONTROLLERS].map(|name| format!("{name}:PLAINTEXT"));
                set("listener.security.protocol.map", map.join(","));
            }
            let of_this_node = options.node_properties.iter();
            let of_this_node = of_this_node.filter(|((node, _), _)| *node == id);
            for ((_, key), value) in of_this_node {
                properties.insert(key.clone(), value.clone());
            }
            let java = JavaOptions {
                heap_mib: options.heap_mib,
                start: options.start,
            };
            let kind = options.kinds.get(&id).copied().unwrap_or(kind);
            let mut node = Node::new(kind, properties, &own, folder.path(), java);
            node.set_features(options.features.clone());
            if options.clocks {
                node.set_clock(Clock::new(&own)?);
            }
            let member = Member {
                node,
                client_port: port(&listeners, CLIENTS).map(|(listens, _)| listens),
                controller_port: port(&listeners, CONTROLLERS).map(|(listens, _)| listens),
                data,
            };
            nodes.insert(id, member);
        }
        Ok(Self {
            kind,
            shape,
            nodes,
            network,
            disks,
            _folder: folder,
        })
    }

    fn listeners(shape: Shape, id: i32, mut network: Option<&mut Network>) -> Result<Listeners> {
        let is_broker = shape.brokers().contains(&id);
        let is_controller = shape.controllers().contains(&id);
        let mut listeners = Listeners::new();
        if is_broker {
            let port = free_port()?;
            listeners.push((CLIENTS, port, port));
        }
        let between_nodes = [
            (BROKERS, is_broker && network.is_some()),
            (CONTROLLERS, is_controller),
        ];
        for (name, wanted) in between_nodes {
            if wanted {
                let port = free_port()?;
                let advertised = match &mut network {
                    Some(network) => network.add_proxy(id, port)?,
                    None => port,
                };
                listeners.push((name, port, advertised));
            }
        }
        Ok(listeners)
    }

    fn start_all(&mut self) -> Result<()> {
        for id in self.shape.nodes() {
            self.spawn(id)?;
        }
        let brokers = self.shape.brokers();
        for id in self.shape.nodes() {
            self.wait_until_ready(id, &brokers)?;
        }
        Ok(())
    }

    fn member(&self, id: i32) -> Result<&Member> {
        self.nodes
            .get(&id)
            .with_context(|| format!("there is no node {id}"))
    }

    fn member_mut(&mut self, id: i32) -> Result<&mut Member> {
        self.nodes
            .get_mut(&id)
            .with_context(|| format!("there is no node {id}"))
    }

    /// Starts a node that does not run, on the data that it has, without waiting until it serves.
    ///
    /// # Errors
    /// When it runs or cannot be started.
    pub fn spawn(&mut self, id: i32) -> Result<()> {
        let node = &mut self.member_mut(id)?.node;
        node.spawn().with_context(|| format!("node {id}"))?;
        let process = node.id();
        if let Some(network) = &self.network {
            network.set_process(id, process);
        }
        Ok(())
    }

    /// Waits until a node serves; for a broker, until it says that these brokers are there.
    ///
    /// # Errors
    /// When it ends or is not ready in time; the text holds its log.
    pub fn wait_until_ready(&mut self, id: i32, brokers: &[i32]) -> Result<()> {
        let member = self.member_mut(id)?;
        let client_port = member.client_port;
        let controller_port = member.controller_port;
        member
            .node
            .wait_until_ready(|| match client_port {
                Some(port) => view::knows_brokers(local(port), brokers),
                None => controller_port.is_some_and(|port| TcpStream::connect(local(port)).is_ok()),
            })
            .with_context(|| format!("node {id}"))?;
        Ok(())
    }

    /// Starts a node again on the data that it has and waits until it serves and is known by itself.
    ///
    /// # Errors
    /// When it runs or does not get ready.
    pub fn start_again(&mut self, id: i32) -> Result<()> {
        self.spawn(id)?;
        let itself = self.shape.brokers().contains(&id).then_some(id);
        self.wait_until_ready(id, itself.as_slice())
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&mut self, id: i32) -> Result<()> {
        self.member_mut(id)?.node.kill()?;
        self.forget_process(id);
        Ok(())
    }

    /// SIGTERM, then waits for the end: a controlled shutdown where the cluster allows it.
    ///
    /// # Errors
    /// When it does not run or does not end.
    pub fn stop(&mut self, id: i32) -> Result<ExitStatus> {
        let status = self.member_mut(id)?.node.stop();
        self.forget_process(id);
        status
    }

    fn forget_process(&self, id: i32) {
        if let Some(network) = &self.network {
            network.set_process(id, None);
        }
    }

    /// SIGSTOP: it keeps its connections and answers nothing.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause(&mut self, id: i32) -> Result<()> {
        self.member_mut(id)?.node.pause()
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// When it does not run.
    pub fn resume(&mut self, id: i32) -> Result<()> {
        self.member_mut(id)?.node.resume()
    }

    /// Sets a node's wall clock so many seconds ahead of the machine's, or behind it when that is negative. It stays so
    /// over restarts.
    ///
    /// # Errors
    /// When the cluster was started without clocks of its nodes' own.
    pub fn set_clock(&self, id: i32, seconds: i64) -> Result<()> {
        let clock = self.member(id)?.node.clock();
        let clock = clock.with_context(|| format!("node {id} has the machine's clock"))?;
        clock.set(seconds)
    }

    /// Whether nodes can have clocks of their own here: whether libfaketime is installed.
    #[must_use]
    pub fn may_have_clocks() -> bool {
        Clock::is_available()
    }

    /// Changes a server property of a node for its next start.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn set_property(
        &mut self,
        id: i32,
        key: &str,
        value: impl std::fmt::Display,
    ) -> Result<()> {
        self.member_mut(id)?.node.set_property(key, value);
        Ok(())
    }

    /// Which implementation this is.
    #[must_use]
    pub fn kind(&self) -> BrokerKind {
        self.kind
    }

    /// Whether this is Highwater: only for what is listed under the README's known differences.
    #[must_use]
    pub fn is_highwater(&self) -> bool {
        self.kind == BrokerKind::Highwater
    }

    /// Which nodes it has.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The network between the nodes.
    ///
    /// # Errors
    /// When the cluster was started without one.
    pub fn network(&self) -> Result<&Network> {
        self.network
            .as_ref()
            .context("the cluster was started without a network between its nodes")
    }

    /// A node's own small disk.
    ///
    /// # Errors
    /// When the cluster was started without such disks.
    pub fn disk(&self, id: i32) -> Result<&SmallDisk> {
        let disk = self.disks.get(&id);
        disk.with_context(|| format!("node {id} was started without a small disk"))
    }

    /// A node's process.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn node(&self, id: i32) -> Result<&Node> {
        Ok(&self.member(id)?.node)
    }

    /// Brokers that run and are not paused.
    #[must_use]
    pub fn awake_brokers(&self) -> Vec<i32> {
        let awake = |id: &i32| {
            self.nodes
                .get(id)
                .is_some_and(|member| member.node.is_awake())
        };
        self.shape.brokers().into_iter().filter(awake).collect()
    }

    /// Where clients reach a broker.
    ///
    /// # Errors
    /// When the node is no broker.
    pub fn address(&self, id: i32) -> Result<SocketAddr> {
        let port = self.member(id)?.client_port;
        Ok(local(
            port.with_context(|| format!("node {id} is no broker"))?,
        ))
    }

    /// The controller listener of a node, without the network in between.
    ///
    /// # Errors
    /// When the node is no controller.
    pub fn controller_address(&self, id: i32) -> Result<SocketAddr> {
        let port = self.member(id)?.controller_port;
        Ok(local(
            port.with_context(|| format!("node {id} is no controller"))?,
        ))
    }

    /// `127.0.0.1:PORT,…` of all brokers, for clients.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.bootstrap_of(&self.shape.brokers())
    }

    /// As [`Cluster::bootstrap`], of some brokers.
    #[must_use]
    pub fn bootstrap_of(&self, brokers: &[i32]) -> String {
        let addresses = brokers.iter().filter_map(|&id| self.address(id).ok());
        addresses
            .map(|address| address.to_string())
            .collect::<Vec<_>>()
            .join(",")
    }

    /// `127.0.0.1:PORT,…` of all controllers, for tools.
    #[must_use]
    pub fn bootstrap_controllers(&self) -> String {
        let controllers = self.shape.controllers();
        let addresses = controllers
            .iter()
            .filter_map(|&id| self.controller_address(id).ok());
        addresses
            .map(|address| address.to_string())
            .collect::<Vec<_>>()
            .join(",")
    }

    /// A connection to a broker's client listener.
    ///
    /// # Errors
    /// When it does not accept one.
    pub fn connect(&self, id: i32) -> Result<Connection> {
        Connection::open(self.address(id)?)
    }

    /// A node's data directory.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn data(&self, id: i32) -> Result<&Path> {
        Ok(&self.member(id)?.data)
    }

    /// The last `lines` lines of each node's log.
    #[must_use]
    pub fn ends_of_logs(&self, lines: usize) -> String {
        let mut text = String::new();
        for (id, member) in &self.nodes {
            let log = member.node.log();
            let all: Vec<&str> = log.lines().collect();
            let last = all.len().saturating_sub(lines);
            text.push_str(&format!("---- node {id}:\n{}\n", all[last..].join("\n")));
        }
        text
    }

    /// How long to wait for anything that must happen, on a busy machine.
    pub const PATIENCE: Duration = Duration::from_secs(120);
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn roles(shape: Shape, id: i32) -> &'static str {
    match shape {
        Shape::Combined(_) => "broker,controller",
        Shape::Separate { .. } if shape.brokers().contains(&id) => "broker",
        Shape::Separate { .. } => "controller",
    }
}

/// Where the listener of this name listens and what it advertises.
fn port(listeners: &Listeners, name: &str) -> Option<(u16, u16)> {
    listeners
        .iter()
        .find(|listener| listener.0 == name)
        .map(|&(_, listens, advertised)| (listens, advertised))
}

fn texts(listeners: &Listeners, port: impl Fn(&(&'static str, u16, u16)) -> u16) -> String {
    let texts = listeners
        .iter()
        .map(|listener| format!("{}://127.0.0.1:{}", listener.0, port(listener)));
    texts.collect::<Vec<_>>().join(",")
}
