//! What a partition refuses, and why.

use highwater_storage::{AppendError, BrokerId, LeaderEpoch, ReadError, StorageError};
use thiserror::Error;

use crate::state::fencing::EpochFence;
use crate::state::replica_progress::StaleBrokerEpoch;

/// Why a request to a partition failed.
#[derive(Debug, Error)]
pub enum PartitionError {
    /// This broker does not host it.
    #[error("this broker does not host the partition")]
    NotHosted,
    /// The topic exists under another id than the request's.
    #[error("the topic id is not that of the partition")]
    InconsistentTopicId,
    /// Another broker leads it, or none, or this broker's session has expired.
    #[error("not the leader; the leader is {leader:?} in epoch {leader_epoch}")]
    NotLeader {
        /// Who leads as far as this broker knows.
        leader: Option<BrokerId>,
        /// In which epoch.
        leader_epoch: LeaderEpoch,
    },
    /// The leader epoch of the request is not ours.
    #[error(transparent)]
    Fenced(#[from] EpochFence),
    /// The broker that fetches is not among the replicas, as far as this broker has heard.
    #[error("broker {replica} is not a replica of the partition")]
    NotAReplica {
        /// The broker that fetches.
        replica: BrokerId,
        /// Whether it named a leader epoch: then its metadata may be newer than ours, and it
        /// tries again.
        names_leader_epoch: bool,
    },
    /// The broker that fetches has been started anew since.
    #[error(transparent)]
    StaleBrokerEpoch(#[from] StaleBrokerEpoch),
    /// `acks=all` with too few in-sync replicas; nothing was written.
    #[error("{isr} in-sync replicas, {min_isr} are needed")]
    NotEnoughReplicas {
        /// Size of the in-sync replicas.
        isr: usize,
        /// `min.insync.replicas`, capped by the number of replicas.
        min_isr: usize,
    },
    /// `acks=all`: written, but to too few in-sync replicas.
    #[error("appended, but replicated to too few in-sync replicas")]
    NotEnoughReplicasAfterAppend,
    /// The offset lies outside of the log.
    #[error("offset {offset} is out of range [{log_start_offset}, {end_offset}]")]
    OffsetOutOfRange {
        /// The offset asked for.
        offset: i64,
        /// First offset of the log.
        log_start_offset: i64,
        /// Largest offset that may be asked for.
        end_offset: i64,
    },
    /// A new leader does not know yet how much was committed before it, so that the latest offset
    /// might seem to go back.
    #[error(
        "the high watermark {high_watermark} has not reached the start {epoch_start_offset} of the leader epoch yet"
    )]
    OffsetNotAvailable {
        /// The high watermark.
        high_watermark: i64,
        /// The log end offset when the leader epoch began.
        epoch_start_offset: i64,
    },
    /// Its log directory failed, or its log could not be opened.
    #[error("the partition is offline: {0}")]
    Offline(String),
    /// Records of a topic that is only compacted cannot be deleted.
    #[error("cleanup.policy does not allow to delete records")]
    DeletionNotAllowed,
    /// The log refused the records.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The log could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The disk failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
