//! Starting the consensus on this node: what is on disk, then the thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use highwater_storage::{LeaderEpoch, StorageError};
use openraft::entry::RaftEntry;
use openraft::{Config, SnapshotPolicy};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::election::{Contact, ElectionTimer, Electorate, send_heartbeats};
use super::lease::Lease;
use super::log_store::{Durability, LogStore};
use super::network::{QuorumNetwork, Reachable};
use super::room::Room;
use super::state_machine::{OnImage, StateMachine};
use super::types::{Entry, LogId, Membership, Raft, StoredMembership, Vote, raft_id};
use super::watch::Watcher;
use super::{Events, Quorum, QuorumEvent, QuorumServer, QuorumSettings, QuorumView};
use crate::controller::reserve::Reserve;
use crate::controller::{ControllerError, quorum_state};
use crate::metadata::{MetadataError, MetadataReplica};

const LOG_FILE: &str = "quorum-log";
/// Entries that stay in the quorum's log although a snapshot has them: for controllers that are a little behind.
const ENTRIES_KEPT: u64 = 100;
/// Signs of life of a leader while one of them counts: some may be late or lost.
const HEARTBEATS_IN_LEASE: u32 = 4;
/// Entries in one message.
const MAX_ENTRIES: u64 = 1000;

/// What the thread of the consensus is made of.
struct Parts {
    id: u64,
    config: Arc<Config>,
    store: LogStore,
    state_machine: StateMachine,
    network: QuorumNetwork,
    electorate: Electorate,
    is_quorum_of_one: bool,
}

impl Quorum {
    /// Takes up the consensus where this node left it, or begins it. Blocks on the disk.
    ///
    /// # Errors
    /// When what is on disk cannot be read, or belongs to a quorum of other nodes.
    pub(in crate::controller) fn start(
        replica: MetadataReplica,
        view: &Arc<QuorumView>,
        settings: &QuorumSettings,
        events: Events,
    ) -> Result<Self, ControllerError> {
        let dir = replica.dir().to_owned();
        let is_quorum_of_one = settings.is_quorum_of_one();
        let durability = match is_quorum_of_one {
            true => Durability::WithRequests,
            false => Durability::Always,
        };
        let id = raft_id(settings.node_id);
        let reserve = Arc::new(Mutex::new(Reserve::new(&dir)));
        let store = reserve.lock().write_when_full(|| {
            let store = LogStore::open(&dir.join(LOG_FILE), durability)?;
            store.reserve(0)?;
            Ok(store)
        })?;
        if store.is_empty() {
            begin(&store, &replica, settings)?;
        }
        store.resign(id);
        let room = Room::new(store.clone(), replica.log().clone(), reserve.clone());
        let room = Arc::new(room);
        let config = Arc::new(raft_config(settings)?);
        let leader_lease = Duration::from_millis(config.election_timeout_max);
        let lease = Arc::new(Lease::new(leader_lease, settings.voters.len()));
        let network = QuorumNetwork {
            cluster_id: Arc::clone(replica.image().cluster_id()),
            voters: settings
                .voters
                .iter()
                .map(|voter| (raft_id(voter.id), voter.clone()))
                .collect::<BTreeMap<_, _>>(),
            view: Arc::clone(view),
            store: store.clone(),
            retry_backoff: settings.retry_backoff.max(Duration::from_millis(1)),
            reachable: Reachable::default(),
            lease: Arc::clone(&lease),
        };
        let cluster_id = Arc::clone(replica.image().cluster_id());
        let on_image: OnImage = {
            let events = events.clone();
            Box::new(move |image, delta| {
                // Nobody listens once the controller has stopped.
                let _ = events.send(QuorumEvent::Image { image, delta });
            })
        };
        let state_machine = StateMachine::open(replica, store.clone(), reserve, on_image)?;
        let membership = store.membership()?;
        let membership = membership.unwrap_or_else(|| state_machine.membership());
        check_voters(&membership, settings)?;
        let knows_a_leader = store.vote().is_some_and(|vote| vote.leader_id().term > 0);
        let electorate = Electorate {
            node: id,
            contact: Arc::new(Contact::new(knows_a_leader)),
            store: store.clone(),
            leader_lease,
            lease: Arc::clone(&lease),
        };
        let parts = Parts {
            id,
            config,
            state_machine: state_machine.clone(),
            store,
            network,
            electorate: electorate.clone(),
            is_quorum_of_one,
        };
        let watched = (
            Arc::clone(&lease),
            events.clone(),
            settings.max_bytes_between_snapshots,
        );

        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| StorageError::io("make a runtime for", &dir, error))?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let (started, raft) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("quorum".to_owned())
            .spawn(move || runtime.block_on(run(parts, watched, started, stopped)))
            .map_err(|error| StorageError::io("start a thread for", &dir, error))?;
        let ended = || ControllerError::Failed("the consensus did not start".into());
        let raft = raft
            .recv()
            .map_err(|_| ended())?
            .map_err(|error| ControllerError::Failed(error.into()))?;
        let server = QuorumServer::new(raft.clone(), electorate, cluster_id, Arc::clone(&room));
        Ok(Self {
            raft,
            runtime: handle,
            events,
            room,
            lease,
            server: Arc::new(server),
            state_machine,
            stop: Some(stop),
            thread,
        })
    }
}

/// The life of the consensus on its thread.
async fn run(
    parts: Parts,
    (lease, events, max_bytes_between_snapshots): (Arc<Lease>, Events, u64),
    started: std::sync::mpsc::SyncSender<Result<Raft, String>>,
    stopped: oneshot::Receiver<()>,
) {
    let Parts {
        id,
        config,
        store,
        state_machine,
        network,
        electorate,
        is_quorum_of_one,
    } = parts;
    let others = network.voters.keys().copied().filter(|other| *other != id);
    let others: Vec<u64> = others.collect();
    let made = Raft::new(
        id,
        Arc::clone(&config),
        network.clone(),
        store.clone(),
        state_machine.clone(),
    )
    .await;
    let raft = match made {
        Ok(raft) => raft,
        Err(error) => {
            // Whoever started this has the error, or is gone.
            let _ = started.send(Err(error.to_string()));
            return;
        }
    };
    let watcher = Watcher {
        raft: raft.clone(),
        state_machine: state_machine.clone(),
        lease,
        events,
        max_bytes_between_snapshots,
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(watcher.run());
    let leader_lease = electorate.leader_lease;
    let _ = started.send(Ok(raft.clone()));
    let timer = ElectionTimer {
        raft: raft.clone(),
        electorate,
        network,
        others,
        election_timeout: leader_lease,
    };
    if is_quorum_of_one {
        if let Err(error) = raft.trigger().elect().await {
            tracing::error!(%error, "the only controller cannot elect itself");
        }
    } else {
        tasks.spawn(timer.run());
        tasks.spawn(send_heartbeats(
            raft.clone(),
            leader_lease / HEARTBEATS_IN_LEASE,
        ));
    }
    // Also when the sender is gone.
    let _ = stopped.await;
    tasks.abort_all();
    if let Err(error) = raft.shutdown().await {
        tracing::error!(%error, "the consensus did not end in order");
    }
    let closed = state_machine.close().and_then(|()| store.sync());
    if let Err(error) = closed {
        tracing::error!(%error, "the quorum's log cannot be closed, the next start reads more of it");
    }
}

/// Begins the log of a quorum that has none: with the entry that says who votes. It is the same on every controller.
fn begin(
    store: &LogStore,
    replica: &MetadataReplica,
    settings: &QuorumSettings,
) -> Result<(), ControllerError> {
    let is_empty = replica.image().offset() < 0;
    if !is_empty && !settings.is_quorum_of_one() {
        return Err(ControllerError::Incompatible(format!(
            "{} has metadata of a quorum of one: controller.quorum.voters cannot name others beside it yet",
            replica.dir().display()
        )));
    }
    // Metadata of Apache Kafka, or of an earlier release: the epochs go on from there.
    let in_log = replica.log().latest_epoch();
    let in_log = in_log.unwrap_or(LeaderEpoch(0)).0;
    let in_state = quorum_state::read_leader_epoch(replica.dir())?.unwrap_or(0);
    let epoch = in_log
        .max(in_state)
        .max(replica.image().epoch())
        .max(0)
        .unsigned_abs();
    replica.log().flush()?;
    let voters: BTreeSet<u64> = settings
        .voters
        .iter()
        .map(|voter| raft_id(voter.id))
        .collect();
    let first = Entry::new_membership(LogId::default(), Membership::new(vec![voters], ()));
    let mut vote = Vote::default();
    vote.leader_id.term = u64::from(epoch);
    // Others may know better: this may be a voter whose disk was replaced.
    let may_lack_entries = !settings.is_quorum_of_one();
    store.begin(first, vote, may_lack_entries)?;
    Ok(())
}

/// Refuses to run with other voters than those that the log was begun with: a majority of the one set need not share a
/// node with a majority of the other.
fn check_voters(
    membership: &StoredMembership,
    settings: &QuorumSettings,
) -> Result<(), ControllerError> {
    let in_log: BTreeSet<u64> = membership.membership().voter_ids().collect();
    let configured = settings.voters.iter().map(|voter| raft_id(voter.id));
    let configured: BTreeSet<u64> = configured.collect();
    if in_log == configured {
        return Ok(());
    }
    Err(ControllerError::Incompatible(format!(
        "the controllers of this cluster are {in_log:?}, but controller.quorum.voters names {configured:?}: changing them is not supported yet"
    )))
}

/// openraft's settings. A follower votes for nobody else until it has not heard from the leader for the longest election
/// timeout; see [`ElectionTimer`] for when it asks for votes itself.
fn raft_config(settings: &QuorumSettings) -> Result<Config, MetadataError> {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let longest = millis(settings.election_timeout)
        .min(millis(settings.fetch_timeout) / 2)
        .max(20);
    // openraft has it shorter than both election timeouts.
    let message_timeout = millis(settings.request_timeout).clamp(1, longest - 2);
    let config = Config {
        cluster_name: "controllers".to_owned(),
        election_timeout_max: longest,
        // The limit for a vote to be answered.
        election_timeout_min: message_timeout + 1,
        // The limit for other messages: heartbeats are sent by us.
        heartbeat_interval: message_timeout,
        install_snapshot_timeout: millis(settings.fetch_timeout).max(1000) * 5,
        max_payload_entries: MAX_ENTRIES,
        // Snapshots are taken by the size of the log, not by the number of entries.
        snapshot_policy: SnapshotPolicy::Never,
        replication_lag_threshold: u64::MAX,
        max_in_snapshot_log_to_keep: ENTRIES_KEPT,
        snapshot_max_chunk_size: settings.snapshot_max_bytes.max(1),
        // The election timer asks for elections, and signs of life have a timer of their own.
        enable_elect: false,
        enable_heartbeat: false,
        enable_tick: false,
        ..Config::default()
    };
    config.validate().map_err(|error| MetadataError::Corrupt {
        path: "controller.quorum.*".to_owned(),
        reason: error.to_string(),
    })
}
