//! Snapshots: the whole image as records in one file, so that a start replays a bounded part of the log.
//!
//! The file is KRaft's: `<end offset>-<epoch>.checkpoint`, a header batch, the records, a footer batch. It is written
//! beside its place and renamed, so that a file with the name is complete.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use highwater_replication::cluster::ClusterImage;
use highwater_storage::StorageError;
use highwater_storage::record_batch::verify_crc;

use super::MetadataError;
use super::batch::{
    data_batch, decode_batch, is_snapshot_footer, snapshot_footer_batch, snapshot_header_batch,
    split_batches,
};

const EXTENSION: &str = "checkpoint";
/// Records in one batch of a snapshot.
const RECORDS_PER_BATCH: usize = 1024;

/// A snapshot file by what its name says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotId {
    /// Offset after the last record that the snapshot contains.
    pub end_offset: i64,
    /// Epoch of that record.
    pub epoch: i32,
}

impl SnapshotId {
    pub(crate) fn path(&self, dir: &Path) -> PathBuf {
        dir.join(format!(
            "{:020}-{:010}.{EXTENSION}",
            self.end_offset, self.epoch
        ))
    }

    /// What the name of a snapshot's file says; `None` for other names.
    pub(crate) fn parse(file_name: &str) -> Option<Self> {
        let (end_offset, epoch) = file_name.strip_suffix(".checkpoint")?.split_once('-')?;
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if end_offset.len() != 20
            || epoch.len() != 10
            || !is_number(end_offset)
            || !is_number(epoch)
        {
            return None;
        }
        Some(Self {
            end_offset: end_offset.parse().ok()?,
            epoch: epoch.parse().ok()?,
        })
    }
}

/// All snapshots in the directory of the metadata log, the oldest first.
pub(crate) fn list(dir: &Path) -> Result<Vec<SnapshotId>, MetadataError> {
    let io = |error| StorageError::io("list", dir, error);
    let mut snapshots = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        snapshots.extend(name.to_str().and_then(SnapshotId::parse));
    }
    snapshots.sort_unstable();
    Ok(snapshots)
}

/// Reads a snapshot into an image of the cluster `cluster_id`, and says when its last record was written.
pub(crate) fn read(
    dir: &Path,
    id: &SnapshotId,
    cluster_id: &str,
) -> Result<(ClusterImage, i64), MetadataError> {
    let path = id.path(dir);
    let bytes = std::fs::read(&path).map_err(|error| StorageError::io("read", &path, error))?;
    parse(&bytes.into(), &path, id, cluster_id)
}

/// Reads the content of a snapshot into an image, and says when its last record was written. `path` is for errors.
pub(crate) fn parse(
    bytes: &Bytes,
    path: &Path,
    id: &SnapshotId,
    cluster_id: &str,
) -> Result<(ClusterImage, i64), MetadataError> {
    let corrupt = |reason: &str| MetadataError::Corrupt {
        path: path.display().to_string(),
        reason: reason.into(),
    };
    let batches = split_batches(bytes, id.end_offset)?;
    let total: usize = batches.iter().map(|(_, batch)| batch.len()).sum();
    let last = batches
        .last()
        .ok_or_else(|| corrupt("the snapshot is empty"))?;
    let at = |source| MetadataError::Batch {
        offset: id.end_offset,
        source,
    };
    if total != bytes.len() || !is_snapshot_footer(&last.1).map_err(at)? {
        return Err(corrupt("the snapshot has no footer"));
    }
    let mut records = Vec::new();
    let mut timestamp_ms = -1;
    for (header, batch) in &batches {
        verify_crc(batch).map_err(at)?;
        let decoded = decode_batch(header, batch)?;
        timestamp_ms = timestamp_ms.max(decoded.timestamp_ms);
        records.extend(decoded.records);
    }
    let offset = id.end_offset;
    let effective = highwater_replication::cluster::replay::Replay::default().push(records);
    let effective = effective.map_err(|source| MetadataError::Replay { offset, source })?;
    let (image, _) = ClusterImage::empty(cluster_id)
        .apply(&effective, offset - 1, id.epoch)
        .map_err(|source| MetadataError::Apply { offset, source })?;
    Ok((image, timestamp_ms))
}

/// Writes `image` as a snapshot. `log_timestamp_ms` is when its last record was written.
pub(crate) fn write(
    dir: &Path,
    image: &ClusterImage,
    log_timestamp_ms: i64,
    now_ms: i64,
) -> Result<SnapshotId, MetadataError> {
    let id = SnapshotId {
        end_offset: image.offset() + 1,
        epoch: image.epoch(),
    };
    let mut content = snapshot_header_batch(log_timestamp_ms, id.epoch, now_ms)?.to_vec();
    let mut next_offset = 1;
    for records in image.to_records().chunks(RECORDS_PER_BATCH) {
        content.extend_from_slice(&data_batch(records, next_offset, id.epoch, now_ms)?);
        next_offset += records.len() as i64;
    }
    content.extend_from_slice(&snapshot_footer_batch(next_offset, id.epoch, now_ms)?);
    write_durably(&id.path(dir), "part", &content)?;
    Ok(id)
}

/// Removes the snapshots before `newest`, which must be durable.
pub(crate) fn remove_older(dir: &Path, newest: &SnapshotId) -> Result<(), MetadataError> {
    for id in list(dir)?.into_iter().filter(|id| id < newest) {
        let path = id.path(dir);
        std::fs::remove_file(&path).map_err(|error| StorageError::io("remove", &path, error))?;
    }
    Ok(())
}

/// Writes a file so that its name stands for the old content or the whole new one, also after a crash.
pub(crate) fn write_durably(
    path: &Path,
    temporary_suffix: &str,
    content: &[u8],
) -> Result<(), MetadataError> {
    let temporary = PathBuf::from(format!("{}.{temporary_suffix}", path.display()));
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |error| StorageError::io(action, path, error)
    };
    let mut file = File::create(&temporary).map_err(io("create", &temporary))?;
    file.write_all(content).map_err(io("write", &temporary))?;
    file.sync_all().map_err(io("flush", &temporary))?;
    std::fs::rename(&temporary, path).map_err(io("rename", &temporary))?;
    if let Some(dir) = path.parent() {
        File::open(dir)
            .and_then(|dir| dir.sync_all())
            .map_err(io("flush", dir))?;
    }
    Ok(())
}
