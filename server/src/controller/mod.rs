//! The controller: the one writer of the cluster's metadata.
//!
//! A request comes as a closure that judges it against the latest image and gives records and a response. The records
//! of all requests that were waiting become one entry that the controllers agree on (`quorum`); agreed on, they go to
//! `__cluster_metadata-0` and are replayed into the next image, the image is published to those who follow it, and only
//! then the responses are released. So what a client was told survives a crash, and is seen by the client's next
//! request.
//!
//! A single node is a quorum of one and takes the same path.

mod background;
mod broker_sessions;
mod config_rules;
mod features;
mod handle;
mod process_probe;
mod quorum;
mod quorum_state;
mod quorum_view;
mod reserve;
mod start;
mod topic_defaults;
mod writer;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use highwater_storage::StorageError;

use crate::metadata::MetadataError;

pub use background::ControllerBackground;
pub use broker_sessions::BrokerSessions;
pub use config_rules::{ServerConfigRules, replication_defaults};
pub use features::{finalized_features, supported_features};
pub use handle::{ControllerHandle, Decision};
pub(crate) use quorum::QUORUM_API_KEY;
pub use quorum::{QuorumServer, QuorumSettings};
pub use quorum_view::{ControllerNode, QuorumReplica, QuorumStatus, QuorumView};
pub use start::{Controller, ControllerSettings};
pub use topic_defaults::topic_defaults;

/// Why the controller could not do what it was asked for. Cheap to clone: all requests of a group share one failure.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ControllerError {
    /// The metadata could not be read or written; nothing of the request took effect.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
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

impl From<StorageError> for ControllerError {
    fn from(error: StorageError) -> Self {
        Self::Metadata(error.into())
    }
}

fn not_controller(leader: Option<i32>) -> String {
    match leader {
        Some(id) => format!("the active controller is node {id}"),
        None => "no controller is active".to_owned(),
    }
}
