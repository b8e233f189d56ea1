//! One broker process, Highwater or Apache Kafka, started alike.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result};
use kafka_protocol::messages::MetadataRequest;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::node::{JavaOptions, JvmStart, Node};
use crate::process::free_port;
use crate::raw::{Connection, topic_name};

/// Which broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BrokerKind {
    /// Ours.
    Highwater,
    /// The reference, version [`crate::apache_kafka::VERSION`].
    ApacheKafka,
}

impl fmt::Display for BrokerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Highwater => "highwater",
            Self::ApacheKafka => "kafka",
        })
    }
}

/// How a broker is started: server properties over the harness's own, and where its data lies.
#[derive(Debug, Clone)]
pub struct BrokerOptions {
    properties: BTreeMap<String, String>,
    log_dir: Option<PathBuf>,
    java: JavaOptions,
}

impl Default for BrokerOptions {
    fn default() -> Self {
        Self {
            properties: BTreeMap::new(),
            log_dir: None,
            java: JavaOptions {
                heap_mib: 512,
                start: JvmStart::Quick,
            },
        }
    }
}

impl BrokerOptions {
    /// A single node with default settings and no rebalance delay.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a server property; both brokers get the same.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.properties.insert(key.to_owned(), value.to_string());
        self
    }

    /// Keeps data in `log_dir`, which must exist and outlives the broker, in place of a temporary folder.
    #[must_use]
    pub fn log_dir(mut self, log_dir: &Path) -> Self {
        self.log_dir = Some(log_dir.to_owned());
        self
    }

    /// Starts Apache Kafka as its own start script does, with this heap, in place of a quick start.
    #[must_use]
    pub fn for_measurement(mut self, heap_mib: u32) -> Self {
        self.java = JavaOptions {
            heap_mib,
            start: JvmStart::ByScript,
        };
        self
    }

    /// For [`apache_kafka::java`](crate::apache_kafka::java).
    pub(crate) fn for_its_classes() -> Self {
        let mut options = Self::new();
        options.java.start = JvmStart::LoadClasses;
        options
    }
}

/// A running (or stopped, to be started again) broker on 127.0.0.1, ended when dropped.
#[derive(Debug)]
pub struct Broker {
    node: Node,
    port: u16,
    log_dir: PathBuf,
    time_to_ready: Duration,
    // Removed last, when the process has ended.
    _folder: TempDir,
}

impl Broker {
    /// Starts a broker with an empty data directory and waits until it serves.
    ///
    /// # Errors
    /// When it does not build, cannot be fetched, or does not get ready; the text holds its log.
    pub fn start(kind: BrokerKind, options: BrokerOptions) -> Result<Self> {
        let mut last = None;
        for _ in 0..3 {
            let mut broker = Self::prepare(kind, options.clone())?;
            match broker.start_process() {
                Ok(()) => return Ok(broker),
                // Another process took the port between our look and the broker's bind.
                Err(error) if format!("{error:#}").to_lowercase().contains("in use") => {
                    last = Some(error)
                }
                Err(error) => return Err(error),
            }
        }
        Err(last.context("no start was tried")?)
    }

    fn prepare(kind: BrokerKind, options: BrokerOptions) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("compat-{kind}-"))
            .tempdir()?;
        let log_dir = options
            .log_dir
            .clone()
            .unwrap_or_else(|| folder.path().join("data"));
        let port = free_port()?;
        let mut properties = BTreeMap::new();
        let mut set = |key: &str, value: String| properties.insert(key.to_owned(), value);
        set("node.id", "1".into());
        set("listeners", format!("PLAINTEXT://127.0.0.1:{port}"));
        set("log.dirs", log_dir.display().to_string());
        set("offsets.topic.replication.factor", "1".into());
        set("group.initial.rebalance.delay.ms", "0".into());
        if kind == BrokerKind::ApacheKafka {
            set("process.roles", "broker,controller".into());
            set("controller.listener.names", "CONTROLLER".into());
            set("transaction.state.log.replication.factor", "1".into());
            set("transaction.state.log.min.isr", "1".into());
            set(
                "share.coordinator.state.topic.replication.factor",
                "1".into(),
            );
            set("share.coordinator.state.topic.min.isr", "1".into());
        }
        properties.extend(options.properties.clone());
        let listeners = properties.get("listeners").cloned().unwrap_or_default();
        let port =
            first_port(&listeners).with_context(|| format!("no port in listeners={listeners}"))?;
        if kind == BrokerKind::ApacheKafka {
            let controller = free_port()?;
            properties.insert(
                "listeners".into(),
                format!("{listeners},CONTROLLER://127.0.0.1:{controller}"),
            );
            properties.insert(
                "controller.quorum.voters".into(),
                format!("1@127.0.0.1:{controller}"),
            );
            if let Some(map) = properties.get_mut("listener.security.protocol.map") {
                map.push_str(",CONTROLLER:PLAINTEXT");
            }
        }
        let node = Node::new(kind, properties, folder.path(), folder.path(), options.java);
        Ok(Self {
            node,
            port,
            log_dir,
            time_to_ready: Duration::ZERO,
            _folder: folder,
        })
    }

    fn start_process(&mut self) -> Result<()> {
        self.node.spawn()?;
        let address = self.address();
        self.time_to_ready = self.node.wait_until_ready(|| serves(address))?;
        Ok(())
    }

    /// Which broker this is.
    #[must_use]
    pub fn kind(&self) -> BrokerKind {
        self.node.kind()
    }

    /// Whether this is Highwater: only for what is listed under the README's known differences.
    #[must_use]
    pub fn is_highwater(&self) -> bool {
        self.kind() == BrokerKind::Highwater
    }

    /// Address of the first listener.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// `127.0.0.1:PORT`, for clients.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.address().to_string()
    }

    /// Whether every partition of these topics has a leader in the broker's metadata; Apache Kafka answers
    /// CreateTopics before that.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub fn serves<'a>(&self, topics: impl IntoIterator<Item = &'a str>) -> Result<bool> {
        let topics = topics
            .into_iter()
            .map(|name| MetadataRequestTopic::default().with_name(Some(topic_name(name))));
        let request = MetadataRequest::default()
            .with_topics(Some(topics.collect()))
            .with_allow_auto_topic_creation(false);
        let reply = Connection::open(self.address())?.call(9, &request)?;
        Ok(!reply.brokers.is_empty()
            && reply.topics.iter().all(|topic| {
                let mut partitions = topic.partitions.iter();
                topic.error_code == 0 && partitions.all(|p| p.error_code == 0 && p.leader_id.0 >= 0)
            }))
    }

    /// The (first) log directory.
    #[must_use]
    pub fn log_dir(&self) -> &Path {
        &self.log_dir
    }

    /// Process id, while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.node.id()
    }

    /// From the last start of the process to its first answer (looked at every few milliseconds).
    #[must_use]
    pub fn time_to_ready(&self) -> Duration {
        self.time_to_ready
    }

    /// All that the broker has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.node.log()
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&mut self) -> Result<()> {
        self.node.kill()
    }

    /// SIGTERM, then waits for the end; the exit status is the broker's.
    ///
    /// # Errors
    /// When it does not run or does not end.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.node.stop()
    }

    /// Sends a signal to the running broker.
    ///
    /// # Errors
    /// When it does not run.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.node.signal(signal)
    }

    /// Starts it again on the same port and data.
    ///
    /// # Errors
    /// When it still runs or does not get ready.
    pub fn start_again(&mut self) -> Result<()> {
        self.start_process()
    }

    /// Changes a server property for the next start.
    pub fn set_property(&mut self, key: &str, value: impl fmt::Display) {
        self.node.set_property(key, value);
    }
}

/// The port of the first listener in Kafka's `NAME://HOST:PORT,...` form.
fn first_port(listeners: &str) -> Option<u16> {
    listeners
        .split(',')
        .next()?
        .rsplit(':')
        .next()?
        .parse()
        .ok()
}

/// Whether the broker at `address` answers a Metadata request (v1, no topics) that names a broker.
fn serves(address: SocketAddr) -> bool {
    fn ask(address: SocketAddr) -> std::io::Result<i32> {
        let mut socket = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        // length 14; api key 3, version 1; correlation id 1; client id null; empty array of topics
        socket.write_all(&[0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0])?;
        let mut reply = [0; 12];
        socket.read_exact(&mut reply)?;
        Ok(i32::from_be_bytes([
            reply[8], reply[9], reply[10], reply[11],
        ]))
    }
    ask(address).is_ok_and(|brokers| brokers > 0)
}
