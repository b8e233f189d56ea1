//! Asking the controller for other in-sync replicas.

use std::fmt;

use highwater_storage::TopicId;
use thiserror::Error;

use super::BoxFuture;
use crate::state::alter_partition::{AlterPartitionError, AlteredPartition};
use crate::state::isr::IsrProposal;

/// A proposal for one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterPartition {
    /// The id of the partition's topic.
    pub topic_id: TopicId,
    /// The partition's number.
    pub partition: i32,
    /// What its leader asks for. The leader recovery state is always RECOVERED.
    pub proposal: IsrProposal,
}

/// The controller's answer for one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlteredPartitionResponse {
    /// The id of the partition's topic.
    pub topic_id: TopicId,
    /// The partition's number.
    pub partition: i32,
    /// The partition as it is now, or why nothing changed.
    pub result: Result<AlteredPartition, AlterPartitionError>,
}

/// Why the controller gave no answer: not active, not reachable, or it refuses the whole request
/// (NOT_CONTROLLER, STALE_BROKER_EPOCH, …). All proposals are sent again a little later.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct AlterPartitionChannelError(pub String);

/// The way to the active controller.
///
/// The implementation adds this broker's id and the epoch of its present run.
pub trait AlterPartitionChannel: Send + Sync + fmt::Debug {
    /// Sends one AlterPartition request (v2 or later). At most one is in flight.
    ///
    /// # Errors
    /// When the request as a whole failed.
    fn alter_partitions(
        &self,
        partitions: Vec<AlterPartition>,
    ) -> BoxFuture<'_, Result<Vec<AlteredPartitionResponse>, AlterPartitionChannelError>>;
}
