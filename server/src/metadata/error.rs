//! What can be wrong with a node's copy of the metadata.

use std::sync::Arc;

use highwater_replication::cluster::ApplyError;
use highwater_replication::cluster::records::RecordError;
use highwater_replication::cluster::replay::ReplayError;
use highwater_storage::record_batch::BatchError;
use highwater_storage::{AppendError, ReadError, StorageError};

/// Why metadata cannot be read or written. Cheap to clone: all requests of a group share one failure.
#[derive(Debug, Clone, thiserror::Error)]
pub enum MetadataError {
    /// The metadata log could not be written; nothing took effect.
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
    /// A file has a content that it cannot have.
    #[error("{path}: {reason}")]
    Corrupt {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
}

impl MetadataError {
    /// Whether the disk has no space left.
    pub fn is_storage_full(&self) -> bool {
        match self {
            Self::Storage(error) | Self::Append(AppendError::Storage(error)) => {
                error.is_storage_full()
            }
            _ => false,
        }
    }
}
