//! A broker: what is on its disk, and what its process knows while it runs.

use std::sync::Arc;

use highwater_replication::cluster::ClusterImage;
use highwater_replication::state::commit::Acks;
use highwater_replication::state::follower::FollowerState;
use highwater_replication::state::isr::IsrProposal;
use highwater_replication::state::leader::LeaderConfig;
use highwater_replication::state::replica::ReplicaState;
use highwater_storage::{BrokerEpoch, BrokerId, LeaderEpoch};
use uuid::Uuid;

use super::clock::Clock;
use super::log::ReplicaLog;
use super::message::{Channel, LogEnd};

/// A machine with a broker on it.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) id: BrokerId,
    pub(crate) clock: Clock,
    /// The replica's log; the process keeps it in memory, the disk has its synced part.
    pub(crate) log: ReplicaLog,
    /// Whether there is a log at all.
    pub(crate) has_log: bool,
    /// `.kafka_cleanshutdown`: the epoch of the run that stopped cleanly.
    pub(crate) clean_shutdown: Option<BrokerEpoch>,
    /// The epoch of its last run.
    pub(crate) last_epoch: Option<BrokerEpoch>,
    /// min.insync.replicas of the topic, as far as it has heard.
    pub(crate) min_isr: usize,
    /// How many entries of the metadata log it has.
    pub(crate) metadata_position: usize,
    /// Its process.
    pub(crate) run: Option<Run>,
    /// Whether the process is stopped by a signal: it does nothing, but time goes on.
    pub(crate) is_paused: bool,
    /// How often it registered after an end that was not a clean stop: whether it lost records then, nobody can know.
    pub(crate) unclean_registrations: usize,
    /// Since when the process is not paused.
    pub(crate) awake_since_ms: i64,
}

/// What a follower asks its leader next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// Fetch.
    Records,
    /// ListOffsets, after OFFSET_OUT_OF_RANGE.
    LogEnd(LogEnd),
    /// OffsetForLeaderEpoch, after that.
    EpochEnd(LeaderEpoch),
}

/// A produce that waits for the high watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parked {
    /// The value of its last record; its name in the history.
    pub(crate) value: u32,
    /// Offset of the first record.
    pub(crate) base_offset: i64,
    /// The high watermark that it waits for.
    pub(crate) required_offset: i64,
    /// When it is given up.
    pub(crate) deadline_ms: i64,
}

/// One run of a broker process.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) incarnation: Uuid,
    /// What it says of the run before it when it registers.
    pub(crate) previous_epoch: Option<BrokerEpoch>,
    /// Its broker epoch, once it is registered.
    pub(crate) epoch: Option<BrokerEpoch>,
    /// The metadata that it acts on; `None` until it has its own registration.
    pub(crate) image: Option<Arc<ClusterImage>>,
    /// Whether it was unfenced once: then clients are served.
    pub(crate) serves_clients: bool,
    pub(crate) wants_shutdown: bool,
    /// The settings that the replica was told.
    pub(crate) config: Option<LeaderConfig>,
    pub(crate) replica: ReplicaState,
    pub(crate) follower: Option<FollowerState>,
    /// The leader epoch in which the leader last said that this log is a prefix of its own.
    pub(crate) validated_epoch: Option<LeaderEpoch>,
    /// The connection to the leader, with the broker it goes to.
    pub(crate) fetch_connection: Option<Channel>,
    /// Whether an answer is awaited on it.
    pub(crate) awaits_leader: bool,
    pub(crate) question: Question,
    /// The proposal that is to be sent, or was and has no answer.
    pub(crate) proposal: Option<IsrProposal>,
    /// The connection on which an AlterPartition is on its way.
    pub(crate) alter: Option<Channel>,
    /// The connection on which a heartbeat or a registration is on its way.
    pub(crate) heartbeat: Option<Channel>,
    pub(crate) parked: Vec<Parked>,
    /// Whether parked produces are looked at only later.
    pub(crate) holds_parked: bool,
}

impl Run {
    /// A process that has just started.
    pub(crate) fn new(
        id: BrokerId,
        incarnation: Uuid,
        previous_epoch: Option<BrokerEpoch>,
    ) -> Self {
        Self {
            incarnation,
            previous_epoch,
            epoch: None,
            image: None,
            serves_clients: false,
            wants_shutdown: false,
            config: None,
            replica: ReplicaState::new(id, LeaderConfig::default()),
            follower: None,
            validated_epoch: None,
            fetch_connection: None,
            awaits_leader: false,
            question: Question::Records,
            proposal: None,
            alter: None,
            heartbeat: None,
            parked: Vec::new(),
            holds_parked: false,
        }
    }
}

impl Broker {
    /// The process, if it runs and is not paused.
    pub(crate) fn awake(&self) -> Option<&Run> {
        self.run.as_ref().filter(|_| !self.is_paused)
    }
}

/// The name of `acks` in scripts.
pub(crate) fn acks_name(acks: Acks) -> &'static str {
    match acks {
        Acks::None => "0",
        Acks::Leader => "1",
        Acks::All => "all",
    }
}
