//! The metadata as the disk has it: the newest snapshot, then the log behind it.

use std::path::PathBuf;
use std::sync::Arc;

use highwater_replication::cluster::ClusterImage;
use highwater_replication::cluster::replay::Replay;
use highwater_storage::{LeaderEpoch, Log};

use super::ControllerError;
use super::batch::{decode_batch, split_batches};
use super::snapshot;

/// Bytes of the log that are decoded at a time.
const READ_BYTES: usize = 4 << 20;

/// The metadata after a replay, before this node leads. Nothing is written yet.
pub struct RecoveredMetadata {
    pub(super) log: Arc<Log>,
    pub(super) dir: PathBuf,
    pub(super) image: Arc<ClusterImage>,
    /// A transaction that the last controller left open.
    pub(super) replay: Replay,
    /// Bytes of the log behind the newest snapshot.
    pub(super) bytes_since_snapshot: u64,
    /// When the last record was written.
    pub(super) timestamp_ms: i64,
}

impl std::fmt::Debug for RecoveredMetadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecoveredMetadata")
            .field("offset", &self.image.offset())
            .finish_non_exhaustive()
    }
}

impl RecoveredMetadata {
    /// Replays what `log` and the snapshots beside it hold. Blocks on the disk.
    pub fn replay(log: Arc<Log>, cluster_id: &str) -> Result<Self, ControllerError> {
        let dir = log.dir();
        let mut recovered = Self {
            image: Arc::new(ClusterImage::empty(cluster_id)),
            replay: Replay::default(),
            bytes_since_snapshot: 0,
            timestamp_ms: -1,
            log,
            dir,
        };
        if let Some(newest) = snapshot::list(&recovered.dir)?.pop() {
            let (image, timestamp_ms) = snapshot::read(&recovered.dir, &newest, cluster_id)?;
            recovered.image = Arc::new(image);
            recovered.timestamp_ms = timestamp_ms;
            if recovered.log.log_end_offset() < newest.end_offset {
                recovered
                    .log
                    .truncate_fully_and_start_at(newest.end_offset)?;
                recovered
                    .log
                    .assign_epoch_start(LeaderEpoch(newest.epoch), newest.end_offset)?;
            }
        }
        recovered.replay_log()?;
        tracing::info!(
            offset = recovered.image.offset(),
            epoch = recovered.image.epoch(),
            topics = recovered.image.topic_count(),
            partitions = recovered.image.partition_count(),
            "replayed the metadata log"
        );
        Ok(recovered)
    }

    /// The metadata as the last controller left it.
    pub fn image(&self) -> &Arc<ClusterImage> {
        &self.image
    }

    fn replay_log(&mut self) -> Result<(), ControllerError> {
        let end_offset = self.log.log_end_offset();
        // Nothing is uncommitted in a quorum of one.
        self.log.set_high_watermark(end_offset);
        let mut next_offset = self.image.offset() + 1;
        if next_offset < self.log.log_start_offset() {
            return Err(ControllerError::Corrupt {
                path: self.dir.display().to_string(),
                reason: format!(
                    "the metadata log starts at offset {}, but the newest snapshot ends at {next_offset}",
                    self.log.log_start_offset()
                ),
            });
        }
        while next_offset < end_offset {
            let read = self.log.read(next_offset, READ_BYTES, end_offset, true)?;
            let batches = split_batches(&read.records, next_offset)?;
            if batches.is_empty() {
                return Err(ControllerError::Corrupt {
                    path: self.dir.display().to_string(),
                    reason: format!("no batch can be read at offset {next_offset} of {end_offset}"),
                });
            }
            next_offset = self.replay_batches(batches, next_offset)?;
        }
        Ok(())
    }

    fn replay_batches(
        &mut self,
        batches: Vec<(highwater_storage::record_batch::BatchHeader, bytes::Bytes)>,
        from_offset: i64,
    ) -> Result<i64, ControllerError> {
        let mut effective = Vec::new();
        let (mut offset, mut epoch) = (from_offset, self.image.epoch());
        for (header, batch) in batches {
            // A snapshot may end inside a batch only if it was written elsewhere; ours end between batches.
            let decoded = decode_batch(&header, &batch)?;
            offset = decoded.next_offset;
            epoch = decoded.epoch;
            self.timestamp_ms = self.timestamp_ms.max(decoded.timestamp_ms);
            self.bytes_since_snapshot += decoded.size_bytes as u64;
            let records = self.replay.push(decoded.records);
            effective.extend(records.map_err(|source| ControllerError::Replay { offset, source })?);
        }
        let applied = self.image.apply(&effective, offset - 1, epoch);
        let (image, _) = applied.map_err(|source| ControllerError::Apply { offset, source })?;
        self.image = Arc::new(image);
        Ok(offset)
    }
}
