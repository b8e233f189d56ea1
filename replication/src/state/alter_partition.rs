//! What the controller answers to a proposal of in-sync replicas, and what each answer means.

use highwater_storage::{BrokerId, LeaderEpoch, PartitionEpoch};

/// A partition as it is after the controller accepted a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlteredPartition {
    /// The leader, if there is one.
    pub leader: Option<BrokerId>,
    /// Its epoch.
    pub leader_epoch: LeaderEpoch,
    /// The version of the partition's metadata.
    pub partition_epoch: PartitionEpoch,
    /// The committed in-sync replicas.
    pub isr: Vec<BrokerId>,
}

/// Why the controller did not accept a proposal; named as Kafka's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AlterPartitionError {
    /// The request was never judged.
    #[error("OPERATION_NOT_ATTEMPTED")]
    OperationNotAttempted,
    /// A member is fenced, shutting down, or not in the run that was named.
    #[error("INELIGIBLE_REPLICA")]
    IneligibleReplica,
    /// The leader epoch is over.
    #[error("FENCED_LEADER_EPOCH")]
    FencedLeaderEpoch,
    /// The partition epoch is not the current one: the partition changed, maybe by this very
    /// proposal whose answer was lost.
    #[error("INVALID_UPDATE_VERSION")]
    InvalidUpdateVersion,
    /// The partition does not exist (any more).
    #[error("UNKNOWN_TOPIC_OR_PARTITION")]
    UnknownTopicOrPartition,
    /// The topic does not exist (any more).
    #[error("UNKNOWN_TOPIC_ID")]
    UnknownTopicId,
    /// The proposal breaks a rule.
    #[error("INVALID_REQUEST")]
    InvalidRequest,
    /// It was applied, and made another broker the leader.
    #[error("NEW_LEADER_ELECTED")]
    NewLeaderElected,
    /// Any other error, by its code.
    #[error("error code {0}")]
    Other(i16),
}

/// What a leader does about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorAction {
    /// The proposal was certainly not applied: back to the committed in-sync replicas.
    RollBack,
    /// It may have been applied: keep the maximal in-sync replicas until the metadata tells.
    AwaitMetadata,
    /// Send the same proposal again.
    Retry,
}

impl AlterPartitionError {
    /// What a leader does about it.
    ///
    /// Rolling back is safe only where the controller says that the partition epoch of the
    /// proposal is current *and* that it refused the proposal: then no controller before or after
    /// can have applied it.
    #[must_use]
    pub fn action(self) -> ErrorAction {
        match self {
            Self::OperationNotAttempted | Self::IneligibleReplica => ErrorAction::RollBack,
            Self::FencedLeaderEpoch
            | Self::InvalidUpdateVersion
            | Self::UnknownTopicOrPartition
            | Self::UnknownTopicId
            | Self::InvalidRequest
            | Self::NewLeaderElected => ErrorAction::AwaitMetadata,
            Self::Other(_) => ErrorAction::Retry,
        }
    }
}
