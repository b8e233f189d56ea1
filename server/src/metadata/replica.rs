//! The replica of the metadata log that this node writes: committed records go in, the next image comes out.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use highwater_replication::cluster::replay::Replay;
use highwater_replication::cluster::{ClusterDelta, ClusterImage};
use highwater_storage::record_batch::BatchHeader;
use highwater_storage::{LeaderEpoch, Log};

use super::batch::{decode_batch, split_batches};
use super::snapshot::{self, SnapshotId};
use super::{MetadataError, MetadataLog};

/// Bytes of the log that are decoded at a time.
const READ_BYTES: usize = 4 << 20;

/// The metadata log with the image that it makes. Everything in the log is committed: a node writes to it only what
/// cannot be taken back any more.
pub struct MetadataReplica {
    log: Arc<MetadataLog>,
    image: Arc<ClusterImage>,
    /// Holds back the records of a metadata transaction that is open at the end of the log.
    replay: Replay,
    bytes_since_snapshot: u64,
    timestamp_ms: i64,
}

impl std::fmt::Debug for MetadataReplica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetadataReplica")
            .field("offset", &self.image.offset())
            .finish_non_exhaustive()
    }
}

/// An image under way, with what has changed since the one before.
struct Step {
    image: ClusterImage,
    replay: Replay,
    delta: ClusterDelta,
    timestamp_ms: i64,
    size_bytes: u64,
}

impl MetadataReplica {
    /// Replays what `log` and the snapshots beside it hold. Blocks on the disk.
    ///
    /// # Errors
    /// When a file cannot be read, or holds what cannot be metadata.
    pub fn open(log: Arc<Log>, cluster_id: &str) -> Result<Self, MetadataError> {
        let mut replica = Self {
            image: Arc::new(ClusterImage::empty(cluster_id)),
            replay: Replay::default(),
            bytes_since_snapshot: 0,
            timestamp_ms: -1,
            log: Arc::new(MetadataLog::new(log)),
        };
        if let Some(newest) = replica.log.latest_snapshot()? {
            let (image, timestamp_ms) = snapshot::read(replica.dir(), &newest, cluster_id)?;
            replica.image = Arc::new(image);
            replica.timestamp_ms = timestamp_ms;
            if replica.log().log_end_offset() < newest.end_offset {
                replica.begin_log_after(&newest)?;
            }
        }
        replica.replay_log()?;
        tracing::info!(
            offset = replica.image.offset(),
            epoch = replica.image.epoch(),
            topics = replica.image.topic_count(),
            partitions = replica.image.partition_count(),
            "replayed the metadata log"
        );
        Ok(replica)
    }

    /// The metadata after the last record of the log.
    pub fn image(&self) -> &Arc<ClusterImage> {
        &self.image
    }

    /// The log as others read it.
    pub fn metadata_log(&self) -> &Arc<MetadataLog> {
        &self.log
    }

    /// The log.
    pub fn log(&self) -> &Arc<Log> {
        self.log.log()
    }

    /// The directory of the log.
    pub fn dir(&self) -> &Path {
        self.log.dir()
    }

    /// Whether the log ends inside a metadata transaction.
    pub fn in_transaction(&self) -> bool {
        self.replay.in_transaction()
    }

    /// Bytes of the log behind the newest snapshot.
    pub fn bytes_since_snapshot(&self) -> u64 {
        self.bytes_since_snapshot
    }

    /// When the last record was written, in ms since 1970; -1 for none.
    pub fn timestamp_ms(&self) -> i64 {
        self.timestamp_ms
    }

    /// Appends committed batches, which have their offsets and epochs, and replays them. They are in the log's file
    /// then, but not yet forced to disk.
    ///
    /// # Errors
    /// Nothing was appended, and the image is as before.
    pub fn append(
        &mut self,
        batches: &Bytes,
        epoch: i32,
        now_ms: i64,
    ) -> Result<ClusterDelta, MetadataError> {
        let next_offset = self.image.offset() + 1;
        let step = self.replay(split_batches(batches, next_offset)?, next_offset)?;
        let appended = self
            .log()
            .append_as_follower(batches, LeaderEpoch(epoch), now_ms);
        if let Err(error) = appended {
            // A part may be there when a new segment was due in the middle.
            self.log().truncate_to(next_offset)?;
            return Err(error.into());
        }
        let delta = self.take(step);
        self.log.set_high_watermark(self.image.offset() + 1);
        Ok(delta)
    }

    /// Takes over a snapshot that was received whole: writes it to disk, begins the log anew behind it and drops older
    /// snapshots.
    ///
    /// # Errors
    /// When the snapshot is no whole one: then nothing changed. When a file cannot be written.
    pub fn install_snapshot(
        &mut self,
        id: &SnapshotId,
        content: &Bytes,
    ) -> Result<ClusterDelta, MetadataError> {
        let path = id.path(self.dir());
        let cluster_id = Arc::clone(self.image.cluster_id());
        let (image, timestamp_ms) = snapshot::parse(content, &path, id, &cluster_id)?;
        snapshot::write_durably(&path, "part", content)?;
        self.begin_log_after(id)?;
        snapshot::remove_older(self.dir(), id)?;
        let delta = ClusterDelta::between(&self.image, &image);
        self.image = Arc::new(image);
        self.replay = Replay::default();
        self.timestamp_ms = timestamp_ms;
        self.bytes_since_snapshot = 0;
        self.log.set_high_watermark(id.end_offset);
        Ok(delta)
    }

    /// Writes the image as a snapshot and drops what it stands for. Gives `None` when there is nothing to do: the log
    /// is inside a transaction, or empty.
    ///
    /// # Errors
    /// When a file cannot be written. What was there before still is.
    pub fn write_snapshot(&mut self, now_ms: i64) -> Result<Option<SnapshotId>, MetadataError> {
        // Also after a failure: it is tried again when as much has come once more.
        self.bytes_since_snapshot = 0;
        if self.in_transaction() || self.image.offset() < 0 {
            return Ok(None);
        }
        let id = snapshot::write(self.dir(), &self.image, self.timestamp_ms, now_ms)?;
        tracing::info!(
            end_offset = id.end_offset,
            epoch = id.epoch,
            "wrote a metadata snapshot"
        );
        self.log().increment_log_start_offset(id.end_offset)?;
        snapshot::remove_older(self.dir(), &id)?;
        Ok(Some(id))
    }

    fn begin_log_after(&self, snapshot: &SnapshotId) -> Result<(), MetadataError> {
        self.log()
            .truncate_fully_and_start_at(snapshot.end_offset)?;
        self.log()
            .assign_epoch_start(LeaderEpoch(snapshot.epoch), snapshot.end_offset)?;
        Ok(())
    }

    fn replay_log(&mut self) -> Result<(), MetadataError> {
        let log = Arc::clone(self.log());
        let end_offset = log.log_end_offset();
        self.log.set_high_watermark(end_offset);
        let mut next_offset = self.image.offset() + 1;
        let corrupt = |reason: String| MetadataError::Corrupt {
            path: log.dir().display().to_string(),
            reason,
        };
        if next_offset < log.log_start_offset() {
            return Err(corrupt(format!(
                "the metadata log starts at offset {}, but the newest snapshot ends at {next_offset}",
                log.log_start_offset()
            )));
        }
        while next_offset < end_offset {
            let read = log.read(next_offset, READ_BYTES, end_offset, true)?;
            let batches = split_batches(&read.records, next_offset)?;
            if batches.is_empty() {
                return Err(corrupt(format!(
                    "no batch can be read at offset {next_offset} of {end_offset}"
                )));
            }
            let step = self.replay(batches, next_offset)?;
            self.take(step);
            next_offset = self.image.offset() + 1;
        }
        Ok(())
    }

    /// What the image becomes with these batches, of which the first begins at `from_offset` or holds it.
    fn replay(
        &self,
        batches: Vec<(BatchHeader, Bytes)>,
        from_offset: i64,
    ) -> Result<Step, MetadataError> {
        let mut replay = self.replay.clone();
        let mut effective = Vec::new();
        let (mut offset, mut epoch) = (from_offset, self.image.epoch());
        let (mut timestamp_ms, mut size_bytes) = (self.timestamp_ms, 0);
        for (header, batch) in batches {
            // A snapshot may end inside a batch only if it was written elsewhere; ours end between batches.
            let decoded = decode_batch(&header, &batch)?;
            offset = decoded.next_offset;
            epoch = decoded.epoch;
            timestamp_ms = timestamp_ms.max(decoded.timestamp_ms);
            size_bytes += decoded.size_bytes as u64;
            let records = replay.push(decoded.records);
            effective.extend(records.map_err(|source| MetadataError::Replay { offset, source })?);
        }
        let applied = self.image.apply(&effective, offset - 1, epoch);
        let (image, delta) = applied.map_err(|source| MetadataError::Apply { offset, source })?;
        Ok(Step {
            image,
            replay,
            delta,
            timestamp_ms,
            size_bytes,
        })
    }

    fn take(&mut self, step: Step) -> ClusterDelta {
        self.image = Arc::new(step.image);
        self.replay = step.replay;
        self.timestamp_ms = step.timestamp_ms;
        self.bytes_since_snapshot += step.size_bytes;
        step.delta
    }
}

#[cfg(test)]
#[path = "replica_tests.rs"]
mod tests;
