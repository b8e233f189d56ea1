//! Consensus among the controllers: openraft, with its log, its state machine and its network made of ours.
//!
//! It runs on a thread of its own, which may wait for the disk: an entry is on disk before anyone counts it. What comes
//! of it goes to the controller's thread as [`QuorumEvent`]s, in the order in which it happened.

mod election;
mod lease;
mod log_file;
mod log_record;
mod log_store;
mod network;
mod room;
mod rpc;
mod snapshot_meta;
mod start;
mod state_machine;
mod types;
mod watch;

#[cfg(test)]
mod cluster_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use highwater_replication::cluster::{ClusterDelta, ClusterImage};
use openraft::error::{ClientWriteError, RaftError};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

pub(crate) use rpc::QUORUM_API_KEY;
pub use rpc::QuorumServer;
pub(super) use types::{Applied, MetadataEntry};

use super::QuorumView;
use crate::config::QuorumVoter;
use crate::metadata::MetadataError;
use lease::Lease;
use room::Room;
use state_machine::StateMachine;
use types::Raft;

/// How the quorum is made up and how patient it is.
#[derive(Debug, Clone)]
pub struct QuorumSettings {
    /// `node.id`.
    pub node_id: i32,
    /// All controllers, this one among them.
    pub voters: Vec<QuorumVoter>,
    /// `controller.quorum.election.timeout.ms`: the most that a controller waits for votes before it asks again.
    pub election_timeout: Duration,
    /// `controller.quorum.fetch.timeout.ms`: without word from the leader for half of this, or for the election timeout if
    /// that is shorter, another is elected; without word from a majority for so long, the leader is not active any more.
    pub fetch_timeout: Duration,
    /// `controller.quorum.request.timeout.ms`: the most that a message to another controller waits for its answer. No
    /// longer than a leader counts without a sign of life, however long this is.
    pub request_timeout: Duration,
    /// `controller.quorum.retry.backoff.ms`: the first rest after a controller could not be reached.
    pub retry_backoff: Duration,
    /// `controller.quorum.fetch.snapshot.max.bytes`: the most of a snapshot in one message.
    pub snapshot_max_bytes: u64,
    /// `metadata.log.max.record.bytes.between.snapshots`.
    pub max_bytes_between_snapshots: u64,
}

impl QuorumSettings {
    /// Whether this node is the whole quorum: then nobody is asked, nothing is waited for, and nothing ticks.
    pub fn is_quorum_of_one(&self) -> bool {
        self.voters.len() == 1
    }
}

/// What this node is in the quorum now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Role {
    /// The newest epoch that this node knows of.
    pub(super) epoch: i32,
    /// Who leads in it, if that is known.
    pub(super) leader: Option<i32>,
    /// Whether this node leads, has applied everything of the epochs before, and hears from a majority.
    pub(super) is_ready: bool,
}

/// What the consensus tells the controller.
pub(super) enum QuorumEvent {
    /// The metadata have changed.
    Image {
        image: Arc<ClusterImage>,
        delta: ClusterDelta,
    },
    /// The role of this node has changed.
    Role(Role),
    /// What became of the entry that was proposed under this number.
    Proposed {
        number: u64,
        result: Result<Applied, ProposalError>,
    },
    /// The consensus has stopped on this node and does not go on before a restart.
    Failed(String),
    /// The controller is to stop.
    Stop,
}

/// Why an entry was not agreed on, or not with the knowledge of this node.
#[derive(Debug)]
pub(super) enum ProposalError {
    /// This node does not lead any more; the entry may still take effect.
    NotLeader(Option<i32>),
    /// The consensus has failed on this node.
    Failed(String),
}

pub(super) type Events = mpsc::UnboundedSender<QuorumEvent>;

/// The consensus as it runs on this node.
pub(super) struct Quorum {
    raft: Raft,
    runtime: Handle,
    events: Events,
    room: Arc<Room>,
    lease: Arc<Lease>,
    server: Arc<QuorumServer>,
    state_machine: StateMachine,
    stop: Option<oneshot::Sender<()>>,
    thread: JoinHandle<()>,
}

impl Quorum {
    /// Proposes an entry; the outcome comes as [`QuorumEvent::Proposed`] with this number.
    pub(super) fn propose(&self, number: u64, entry: MetadataEntry) {
        let (raft, events) = (self.raft.clone(), self.events.clone());
        self.runtime.spawn(async move {
            let result = match raft.client_write(entry).await {
                Ok(written) => Ok(written.data),
                Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward))) => Err(
                    ProposalError::NotLeader(forward.leader_id.map(types::node_id)),
                ),
                Err(error) => Err(ProposalError::Failed(error.to_string())),
            };
            // Nobody listens once the controller has stopped.
            let _ = events.send(QuorumEvent::Proposed { number, result });
        });
    }

    /// Whether this node has heard from a majority not long ago, if it leads.
    pub(super) fn has_quorum(&self) -> bool {
        self.lease.is_valid()
    }

    /// Reserves space for an entry of so many bytes.
    pub(super) fn reserve(&self, bytes: u64, may_use_reserve: bool) -> Result<(), MetadataError> {
        self.room.reserve(bytes, may_use_reserve)
    }

    /// Whether space is kept back for the day the disk is full.
    pub(super) fn holds_reserve(&self) -> bool {
        self.room.holds_reserve()
    }

    /// Keeps space back for the day the disk is full.
    pub(super) fn hold_reserve(&self) {
        self.room.hold_reserve();
    }

    /// Takes the messages of other controllers.
    pub(super) fn server(&self) -> &Arc<QuorumServer> {
        &self.server
    }

    /// Whether the metadata log ends inside a transaction.
    pub(super) fn in_transaction(&self) -> bool {
        self.state_machine.in_transaction()
    }

    /// Takes no part in the consensus any more, so that others can.
    pub(super) fn abandon(&mut self) {
        if let Some(stop) = self.stop.take() {
            // A thread that has ended by itself has told why.
            let _ = stop.send(());
        }
    }

    /// Ends the consensus on this node and waits for its thread. Blocks.
    pub(super) fn stop(mut self) {
        self.abandon();
        if self.thread.join().is_err() {
            tracing::error!("the thread of the quorum panicked");
        }
    }
}
