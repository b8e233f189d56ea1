//! The cluster of the tests: nodes, the network between them, and what must hold at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use highwater_replication::cluster::records::TopicRecord;
use highwater_replication::cluster::{ClusterImage, MetadataRecord};
use highwater_storage::{LogManager, LogManagerSettings};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::super::QuorumSettings;
use super::super::rpc::{Envelope, QUORUM_API_KEY};
use crate::api::table::Dispatched;
use crate::api::{CloseReason, Reply, RequestContext, ResponseWriter};
use crate::config::QuorumVoter;
use crate::controller::{
    Controller, ControllerError, ControllerHandle, ControllerSettings, Decision, QuorumServer,
};
use crate::metadata::{
    MetadataReplica, metadata_log_config, metadata_topic_id, metadata_topic_partition,
};
use crate::network::{ListenerConfig, ListenerKind, NetworkConfig, RequestHandler, SocketServer};

const CLUSTER_ID: &str = "5L6g3nShT-eMCtK--X86sw";
const NODES: [i32; 3] = [1, 2, 3];
/// How long anything may take that comes by itself, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which way messages do not get through: from, to.
type Cuts = Arc<Mutex<BTreeSet<(i32, i32)>>>;

/// As the negative of a node: its requests, but not its answers.
const fn requests_of(node: i32) -> i32 {
    -node
}

/// The requests that get through go to the controller.
struct Gate {
    node: i32,
    server: Arc<QuorumServer>,
    cuts: Cuts,
}

impl RequestHandler for Gate {
    fn handle(self: &Arc<Self>, ctx: &mut RequestContext, mut frame: Bytes) -> Dispatched {
        assert_eq!(frame[..2], QUORUM_API_KEY.to_be_bytes());
        ctx.correlation_id = i32::from_be_bytes(frame[4..8].try_into().expect("four bytes"));
        let body = frame.split_off(10);
        let (gate, ctx) = (Arc::clone(self), ctx.clone());
        Dispatched::Running(Box::pin(async move {
            let envelope: Envelope = postcard::from_bytes(&body).expect("a message");
            let sender = envelope.sender as i32;
            let is_cut = |from, to| gate.cuts.lock().contains(&(from, to));
            if is_cut(sender, gate.node) || is_cut(requests_of(sender), gate.node) {
                return Reply::Close(CloseReason::Idle);
            }
            let answer = gate.server.handle(0, &body).await.expect("it parses");
            if is_cut(gate.node, sender) {
                return Reply::Close(CloseReason::Idle);
            }
            let mut writer = ResponseWriter::new(ctx.correlation_id, 0, answer.len());
            writer.buffer().extend_from_slice(&answer);
            writer.finish().into()
        }))
    }
}

struct Node {
    dir: TempDir,
    port: u16,
    /// What of the metadata log a crash has lost: everything from this offset on.
    lost_from: Option<i64>,
    running: Option<(Controller, SocketServer)>,
}

/// Three controllers, or what is left of them.
pub(super) struct Cluster {
    runtime: Runtime,
    nodes: BTreeMap<i32, Node>,
    cuts: Cuts,
    settings: fn(&mut ControllerSettings),
}

fn listener(port: u16) -> ListenerConfig {
    ListenerConfig {
        name: "CONTROLLER".to_owned(),
        kind: ListenerKind::Controller,
        host: "127.0.0.1".to_owned(),
        port,
        advertised_host: "127.0.0.1".to_owned(),
        advertised_port: 0,
    }
}

/// Waits until something has come by itself.
pub(super) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(
            began.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The record that makes a topic.
pub(super) fn create_topic(name: &str) -> MetadataRecord {
    TopicRecord {
        name: name.to_owned(),
        topic_id: Uuid::new_v4(),
    }
    .into()
}

fn topics(image: &ClusterImage) -> Vec<String> {
    image.topics().map(|topic| topic.name.to_string()).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("listed") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => copy(&path, &to),
            // Files may go away meanwhile, as under a crash.
            false => drop(std::fs::copy(&path, &to)),
        }
    }
}

/// The files below a directory.
fn names(dir: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("listed");
    entries
        .map(|entry| entry.expect("an entry").path())
        .flat_map(|path| match path.is_dir() {
            true => names(&path),
            false => BTreeSet::from([path]),
        })
        .collect()
}

/// A copy of a directory in use as it was at one moment: files may have grown while it was taken, but none came and none
/// went. A snapshot that is missing beside the log that begins where it ends was never on any disk.
fn image_of(dir: &Path) -> TempDir {
    loop {
        let image = tempfile::tempdir().expect("a directory");
        let before = names(dir);
        copy(dir, image.path());
        if names(dir) == before {
            return image;
        }
    }
}

impl Cluster {
    /// Starts all and waits for nothing.
    pub(super) fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub(super) fn start_with(settings: fn(&mut ControllerSettings)) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let mut nodes = BTreeMap::new();
        for node in NODES {
            let dir = tempfile::tempdir().expect("a directory");
            // Kept free by nobody, and taken by nobody else in practice.
            let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = socket.local_addr().expect("an address").port();
            nodes.insert(
                node,
                Node {
                    dir,
                    port,
                    lost_from: None,
                    running: None,
                },
            );
        }
        let mut cluster = Self {
            runtime,
            nodes,
            cuts: Cuts::default(),
            settings,
        };
        for node in NODES {
            cluster.restart(node);
        }
        cluster
    }

    fn settings_of(&self, node: i32) -> ControllerSettings {
        let voters = self.nodes.iter().map(|(id, node)| QuorumVoter {
            id: *id,
            host: "127.0.0.1".to_owned(),
            port: node.port,
        });
        let mut settings = ControllerSettings {
            quorum: QuorumSettings {
                node_id: node,
                voters: voters.collect(),
                election_timeout: Duration::from_millis(400),
                fetch_timeout: Duration::from_millis(800),
                request_timeout: Duration::from_millis(800),
                retry_backoff: Duration::from_millis(20),
                snapshot_max_bytes: 1_000,
                max_bytes_between_snapshots: u64::MAX,
            },
            min_insync_replicas: 1,
        };
        (self.settings)(&mut settings);
        settings
    }

    /// Starts a node that does not run.
    pub(super) fn restart(&mut self, id: i32) {
        let settings = self.settings_of(id);
        let node = self.nodes.get_mut(&id).expect("a node");
        assert!(node.running.is_none(), "node {id} runs");
        let mut logs = None;
        // A message that was on its way when the node was ended holds the directory until it is answered.
        wait_until("the directory opens", || {
            let settings = LogManagerSettings {
                log_dirs: vec![node.dir.path().to_owned()],
                ..LogManagerSettings::default()
            };
            logs = LogManager::open(settings).ok();
            logs.is_some()
        });
        let log = logs.expect("waited for").get_or_create(
            &metadata_topic_partition(),
            Some(metadata_topic_id()),
            metadata_log_config(),
            0,
        );
        let log = log.expect("the log opens");
        if let Some(offset) = node.lost_from.take() {
            log.truncate_to(offset.max(log.log_start_offset()))
                .expect("cut");
        }
        let replica = MetadataReplica::open(log, CLUSTER_ID);
        let replica = replica.expect("the log replays");
        let controller = Controller::start(replica, settings, Vec::new());
        let controller = controller.expect("the controller starts");
        let _guard = self.runtime.enter();
        let began = Instant::now();
        let mut server = loop {
            let bound = SocketServer::bind(
                &[listener(node.port)],
                NetworkConfig::default(),
                Arc::default(),
            );
            match bound {
                Ok(server) => break server,
                Err(error) if began.elapsed() < PATIENCE => drop(error),
                Err(error) => panic!("{error}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        server.start(&Arc::new(Gate {
            node: id,
            server: Arc::clone(controller.handle().quorum_server().expect("a controller")),
            cuts: Arc::clone(&self.cuts),
        }));
        node.running = Some((controller, server));
    }

    /// Ends a node as a loss of power would: what it had forced to disk at one moment is what it finds again, and it
    /// answered nothing after that moment.
    pub(super) fn kill(&mut self, id: i32) {
        let cut: Vec<_> = NODES
            .into_iter()
            .filter(|other| *other != id)
            .flat_map(|other| [(id, other), (other, id)])
            .filter(|way| self.cuts.lock().insert(*way))
            .collect();
        let node = self.nodes.get_mut(&id).expect("a node");
        let (controller, server) = node.running.take().expect("it runs");
        let server_of_quorum = controller.handle().quorum_server().cloned();
        let synced = server_of_quorum.expect("a controller").synced();
        let log = Arc::clone(controller.handle().metadata_log().log());
        node.lost_from = Some(log.recovery_point());
        let image = image_of(node.dir.path());
        self.runtime
            .block_on(server.stop(Duration::from_millis(100)));
        controller.stop();
        let metadata_dir: PathBuf = node.dir.path().join("__cluster_metadata-0");
        std::fs::remove_dir_all(&metadata_dir).expect("removed");
        copy(image.path(), node.dir.path());
        let quorum_log = std::fs::OpenOptions::new()
            .write(true)
            .open(metadata_dir.join("quorum-log"))
            .expect("the quorum's log");
        let len = quorum_log.metadata().expect("its length").len();
        quorum_log.set_len(len.min(synced)).expect("cut");
        self.cuts.lock().retain(|way| !cut.contains(way));
    }

    /// Empties the disk of a node that does not run.
    pub(super) fn wipe(&mut self, id: i32) {
        let node = self.nodes.get_mut(&id).expect("a node");
        assert!(node.running.is_none(), "node {id} runs");
        node.dir = tempfile::tempdir().expect("a directory");
        node.lost_from = None;
    }

    /// Cuts a node off, both ways.
    pub(super) fn isolate(&self, id: i32) {
        for other in NODES.into_iter().filter(|other| *other != id) {
            self.cuts.lock().extend([(id, other), (other, id)]);
        }
    }

    /// Lets nothing from `from` get to `to`.
    pub(super) fn cut_one_way(&self, from: i32, to: i32) {
        self.cuts.lock().insert((from, to));
    }

    /// Lets no request of `from` get to `to`, but its answers.
    pub(super) fn cut_requests(&self, from: i32, to: i32) {
        self.cuts.lock().insert((requests_of(from), to));
    }

    /// Everything gets through again.
    pub(super) fn heal(&self) {
        self.cuts.lock().clear();
    }

    /// The nodes that run.
    pub(super) fn running(&self) -> Vec<i32> {
        let running = self.nodes.iter().filter(|(_, node)| node.running.is_some());
        running.map(|(id, _)| *id).collect()
    }

    pub(super) fn port(&self, id: i32) -> u16 {
        self.nodes[&id].port
    }

    pub(super) fn handle(&self, id: i32) -> &ControllerHandle {
        let (controller, _) = self.nodes[&id].running.as_ref().expect("it runs");
        controller.handle()
    }

    fn active(&self) -> Vec<i32> {
        let mut running = self.running();
        running.retain(|id| self.handle(*id).is_active());
        running
    }

    /// The active controller, when there is one.
    pub(super) fn leader(&self) -> i32 {
        let mut found = None;
        wait_until("one controller is active", || {
            found = self.active().first().copied();
            found.is_some()
        });
        found.expect("waited for")
    }

    /// The active controller among the others.
    pub(super) fn leader_but(&self, old: i32) -> i32 {
        let mut found = None;
        wait_until("another controller is active", || {
            found = self.active().into_iter().find(|id| *id != old);
            found.is_some()
        });
        found.expect("waited for")
    }

    pub(super) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Asks a node to make a topic.
    pub(super) fn create(&self, id: i32, name: &str) -> Result<(), ControllerError> {
        self.runtime.block_on(create(self.handle(id), name))
    }

    /// Waits until all nodes have these topics and no others, and checks that their logs are the same.
    pub(super) fn until_alike(&self, names: &[&str]) {
        wait_until("all have the same topics", || {
            NODES
                .into_iter()
                .all(|id| topics(&self.handle(id).image()) == names)
        });
        self.check_logs();
    }

    /// Every node has the same records, and each epoch one leader.
    fn check_logs(&self) {
        wait_until("all logs end alike", || {
            let ends = NODES.map(|id| self.handle(id).metadata_log().log().log_end_offset());
            ends.iter().all(|end| *end == ends[0])
        });
        let log = |id| Arc::clone(self.handle(id).metadata_log().log());
        let start = NODES.map(|id| log(id).log_start_offset());
        let start = start.into_iter().max().expect("three");
        let records = |id| {
            let log = log(id);
            let end = log.log_end_offset();
            let mut bytes = Vec::new();
            let mut offset = start;
            while offset < end {
                let read = log.read(offset, 1 << 20, end, true).expect("read");
                for batch in highwater_storage::record_batch::Batches::new(&read.records) {
                    let (header, batch) = batch.expect("a batch");
                    if header.base_offset >= start {
                        bytes.extend_from_slice(batch);
                    }
                    offset = header.next_offset();
                }
            }
            bytes
        };
        let first = records(NODES[0]);
        assert!(!first.is_empty() || start == log(NODES[0]).log_end_offset());
        for id in &NODES[1..] {
            assert!(
                records(*id) == first,
                "node {id} has other records than node 1"
            );
        }
    }
}

async fn create(handle: &ControllerHandle, name: &str) -> Result<(), ControllerError> {
    let name = name.to_owned();
    let submitted = handle.submit(move |image, _| match image.topic(&name) {
        Some(_) => Decision::unchanged(()),
        None => Decision {
            records: vec![create_topic(&name)],
            response: (),
        },
    });
    submitted.await
}

/// Numbers that follow from a seed: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// Requests at whatever node while nodes are killed, cut off and let back; says how many were answered.
pub(super) fn chaos(seed: u64, duration: Duration) -> usize {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut cluster = Cluster::start_with(|settings| {
        settings.quorum.max_bytes_between_snapshots = 20_000;
    });
    let mut answered = BTreeSet::new();
    let (mut number, mut faults) = (0, 0);
    let began = Instant::now();
    let mut next_fault = Instant::now() + Duration::from_secs(2);
    while began.elapsed() < duration {
        let running = cluster.running();
        let active = cluster.active();
        let node = match active.is_empty() {
            true => running[random.below(running.len())],
            false => active[random.below(active.len())],
        };
        let name = format!("topic-{number:05}");
        number += 1;
        if cluster.create(node, &name).is_ok() {
            answered.insert(name);
        } else {
            std::thread::sleep(Duration::from_millis(10));
        }
        if Instant::now() < next_fault {
            continue;
        }
        faults += 1;
        let victim = NODES[random.below(NODES.len())];
        let other = NODES[random.below(NODES.len())];
        match random.below(5) {
            0 if running.len() == NODES.len() => cluster.kill(victim),
            1 => cluster.isolate(victim),
            2 if victim != other => cluster.cut_one_way(victim, other),
            _ => {
                cluster.heal();
                for id in NODES {
                    if !cluster.running().contains(&id) {
                        cluster.restart(id);
                    }
                }
            }
        }
        next_fault = Instant::now() + Duration::from_millis(200 + random.below(1500) as u64);
    }
    cluster.heal();
    for id in NODES {
        if !cluster.running().contains(&id) {
            cluster.restart(id);
        }
    }
    wait_until("a last request is answered", || {
        cluster.create(cluster.leader(), "zz-last").is_ok()
    });
    wait_until("all have the last topic", || {
        NODES
            .into_iter()
            .all(|id| cluster.handle(id).image().topic("zz-last").is_some())
    });
    cluster.check_logs();
    for id in NODES {
        let there: BTreeSet<String> = topics(&cluster.handle(id).image()).into_iter().collect();
        let lost: Vec<_> = answered.difference(&there).collect();
        assert!(lost.is_empty(), "seed {seed}: node {id} lost {lost:?}");
    }
    eprintln!(
        "seed {seed}: {number} requests, {} answered, {faults} faults",
        answered.len()
    );
    answered.len()
}
