//! The controller: the one writer of the cluster's metadata.
//!
//! A request comes as a closure that judges it against the latest image and gives records and a response. The records
//! go to `__cluster_metadata-0` and are forced to disk, once for all requests that were waiting; then they are replayed
//! into the next image, the image is published to those who follow it, and only then the responses are released. So
//! what a client was told survives a crash, and is seen by the client's next request.
//!
//! A quorum of one appends directly; with several controllers the consensus sits between the closure and the log.

mod auto_topics;
mod batch;
mod config_rules;
mod features;
mod handle;
mod metadata_log;
mod producer_ids;
mod publisher;
mod quorum_state;
mod quorum_view;
mod recovery;
mod reserve;
mod snapshot;
mod start;
mod writer;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use highwater_replication::cluster::ApplyError;
use highwater_replication::cluster::records::RecordError;
use highwater_replication::cluster::replay::ReplayError;
use highwater_storage::record_batch::BatchError;
use highwater_storage::{AppendError, ReadError, StorageError};

pub use auto_topics::{AutoTopicCreation, AutoTopicError, topic_defaults};
pub use config_rules::ServerConfigRules;
pub use features::{finalized_features, supported_features};
pub use handle::{ControllerHandle, Decision};
pub use metadata_log::{metadata_log_config, metadata_topic_id, metadata_topic_partition};
pub use producer_ids::{ProducerIdError, ProducerIdManager};
pub use publisher::{MetadataPublisher, MetadataSubscriber};
pub use quorum_view::{ControllerNode, QuorumReplica, QuorumStatus, QuorumView};
pub use recovery::RecoveredMetadata;
pub use start::{Controller, ControllerSettings};

/// Why the controller could not do what it was asked for. Cheap to clone: all requests of a group share one failure.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ControllerError {
    /// The metadata log could not be written; nothing of the request took effect.
    #[error("the metadata log cannot be written: {0}")]
    Append(#[from] AppendError),
    /// A file of the metadata could not be read, written or forced to disk.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The metadata log could not be read.
    #[error("the metadata log cannot be read: {0}")]
    Read(#[from] ReadError),
    /// A batch of the metadata log or of a snapshot does not parse.
    #[error("metadata batch at offset {offset}: {source}")]
    Batch {
        /// Offset of the batch.
        offset: i64,
        /// What is wrong with it.
        source: BatchError,
    },
    /// A batch could not be built.
    #[error("metadata records cannot be encoded: {0}")]
    Encode(Arc<BatchError>),
    /// A record does not parse, or is of a type that this release does not know.
    #[error("metadata record at offset {offset}: {source}")]
    Record {
        /// Offset of the record.
        offset: i64,
        /// What is wrong with it.
        source: RecordError,
    },
    /// Markers of metadata transactions are out of order.
    #[error("metadata log before offset {offset}: {source}")]
    Replay {
        /// Offset after the marker.
        offset: i64,
        /// What is wrong.
        source: ReplayError,
    },
    /// A record does not fit the image that it is applied to.
    #[error("metadata log before offset {offset}: {source}")]
    Apply {
        /// Offset after the record.
        offset: i64,
        /// What is wrong.
        source: ApplyError,
    },
    /// A file of the quorum has a content that it cannot have.
    #[error("{path}: {reason}")]
    Corrupt {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The metadata belongs to another node or cluster, or needs a newer release.
    #[error("{0}")]
    Incompatible(String),
    /// The controller failed earlier and writes no more until a restart.
    #[error("the controller has failed and writes no metadata: {0}")]
    Failed(Arc<str>),
    /// This node is not the active controller. If it was when the request came, the outcome is unknown: what it wrote
    /// may still take effect under the next controller.
    #[error("{}", not_controller(*leader))]
    NotController {
        /// The active controller, if this node knows it.
        leader: Option<i32>,
    },
    /// The controller is stopping.
    #[error("the controller is stopping")]
    Stopping,
    /// The closure of the request panicked; nothing of it took effect.
    #[error("the request could not be judged")]
    Panicked,
}

fn not_controller(leader: Option<i32>) -> String {
    match leader {
        Some(id) => format!("the active controller is node {id}"),
        None => "no controller is active".to_owned(),
    }
}
