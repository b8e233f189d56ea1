//! What the consensus knows of the newest snapshot of the metadata: a small file beside it, since the snapshot itself
//! is Kafka's and has no place for it.

use std::io::ErrorKind;
use std::path::Path;

use highwater_storage::StorageError;
use serde::{Deserialize, Serialize};

use super::types::{LogId, StoredMembership};
use crate::metadata::snapshot::write_durably;
use crate::metadata::{MetadataError, SnapshotId};

const FILE_NAME: &str = "quorum-snapshot";

/// Which entries the newest snapshot contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotMetaFile {
    /// Offset after the last record of the snapshot.
    pub(super) end_offset: i64,
    /// Epoch of that record.
    pub(super) epoch: i32,
    /// The last entry that the snapshot contains.
    pub(super) last_log_id: Option<LogId>,
    /// Who votes, as of that entry.
    pub(super) membership: StoredMembership,
}

impl SnapshotMetaFile {
    /// The snapshot that it is about.
    pub(super) fn snapshot_id(&self) -> SnapshotId {
        SnapshotId {
            end_offset: self.end_offset,
            epoch: self.epoch,
        }
    }

    /// Reads the file; `None` when there is none.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>, MetadataError> {
        let path = dir.join(FILE_NAME);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StorageError::io("read", &path, error).into()),
        };
        let meta = serde_json::from_slice(&text);
        meta.map(Some).map_err(|error| MetadataError::Corrupt {
            path: path.display().to_string(),
            reason: error.to_string(),
        })
    }

    /// Writes the file, whole or not at all.
    pub(super) fn write(&self, dir: &Path) -> Result<(), MetadataError> {
        let path = dir.join(FILE_NAME);
        let text = serde_json::to_vec(self).map_err(|error| MetadataError::Corrupt {
            path: path.display().to_string(),
            reason: error.to_string(),
        })?;
        write_durably(&path, "tmp", &text)
    }
}
