//! The metadata log as others read it: the committed records, and the snapshots that stand for what was before them.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use highwater_storage::{Log, StorageError};
use tokio::sync::watch;

use super::MetadataError;
use super::snapshot::{self, SnapshotId};

/// A part of a snapshot.
#[derive(Debug, Clone)]
pub struct SnapshotSlice {
    /// The bytes from the position on that was asked for; empty at the end.
    pub bytes: Bytes,
    /// Size of the whole snapshot in bytes.
    pub size_in_bytes: u64,
}

/// The log `__cluster_metadata-0` of this node with its snapshots, for those who read it.
#[derive(Debug)]
pub struct MetadataLog {
    log: Arc<Log>,
    dir: PathBuf,
    high_watermark: watch::Sender<i64>,
}

impl MetadataLog {
    pub(super) fn new(log: Arc<Log>) -> Self {
        Self {
            dir: log.dir(),
            high_watermark: watch::Sender::new(log.high_watermark()),
            log,
        }
    }

    /// The log itself. Its high watermark is the end of the committed records.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// The directory of the log, where its snapshots are too.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Offset after the last committed record, and word of each change.
    pub fn high_watermark(&self) -> watch::Receiver<i64> {
        self.high_watermark.subscribe()
    }

    pub(crate) fn set_high_watermark(&self, offset: i64) {
        let offset = self.log.set_high_watermark(offset);
        self.high_watermark.send_if_modified(|known| {
            let changed = *known != offset;
            *known = offset;
            changed
        });
    }

    /// The newest snapshot, if there is one. Reads the directory.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn latest_snapshot(&self) -> Result<Option<SnapshotId>, MetadataError> {
        Ok(snapshot::list(&self.dir)?.pop())
    }

    /// At most `max_bytes` of a snapshot from `position` on; `None` when there is no such snapshot any more. Blocks on
    /// the disk.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read_snapshot(
        &self,
        id: &SnapshotId,
        position: u64,
        max_bytes: usize,
    ) -> Result<Option<SnapshotSlice>, MetadataError> {
        let path = id.path(&self.dir);
        let failed = |error| StorageError::io("read", &path, error);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error).into()),
        };
        let size_in_bytes = file.metadata().map_err(failed)?.len();
        let rest = usize::try_from(size_in_bytes.saturating_sub(position)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; rest.min(max_bytes)];
        file.read_exact_at(&mut bytes, position).map_err(failed)?;
        Ok(Some(SnapshotSlice {
            bytes: bytes.into(),
            size_in_bytes,
        }))
    }
}
