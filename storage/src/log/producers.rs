//! What a log does with its producers' state: replay, snapshots, expiry, and the read side of transactions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::errors::{AppendError, ReadError, StorageError};
use crate::index::AbortedTxn;
use crate::producer_state::{
    BatchMetadata, CompletedTxn, HistoryScan, ProducerStateManager, SequenceCheck, snapshot_file,
};
use crate::record_batch::BatchHeader;
use crate::segment::{Segment, SegmentList};

use super::{AppendOrigin, Log, ProducerStateView, Writer};

impl Log {
    /// Judges a batch by its producer's state. Gives the original of a duplicate.
    pub(super) fn check_producer(
        &self,
        producers: &mut ProducerStateManager,
        header: &BatchHeader,
        batch: &[u8],
        origin: AppendOrigin,
    ) -> Result<Option<BatchMetadata>, AppendError> {
        if !header.has_producer_id() {
            return Ok(None);
        }
        loop {
            match producers.check(header, batch, origin)? {
                SequenceCheck::Append => return Ok(None),
                SequenceCheck::Duplicate(original) => return Ok(Some(original)),
                SequenceCheck::NeedsHistory(mut scan) => {
                    self.scan_history(&mut scan)?;
                    producers.complete_history(scan);
                }
            }
        }
    }

    /// Shows the log's batches to `scan`, the newest segment first.
    fn scan_history(&self, scan: &mut HistoryScan) -> Result<(), StorageError> {
        let segments = self.segments.load();
        let newest = segments.floor(scan.before_offset().saturating_sub(1));
        for segment in segments.as_slice()[..=newest].iter().rev() {
            segment.scan(0, segment.size(), |_, header, _| {
                scan.observe(header);
                Ok(())
            })?;
            scan.end_segment();
            if scan.is_done() {
                break;
            }
        }
        Ok(())
    }

    /// Takes note of an appended batch.
    pub(super) fn apply_to_producers(
        producers: &mut ProducerStateManager,
        active: &Segment,
        header: &BatchHeader,
        batch: &[u8],
    ) -> Result<(), StorageError> {
        if let Some(txn) = producers.apply(header, batch)
            && txn.is_aborted
        {
            active
                .txn_index
                .append(aborted(&txn))
                .map_err(|error| StorageError::io("append to", active.txn_index.path(), error))?;
        }
        Ok(())
    }

    /// Writes a producer snapshot at the log's end, if anything was appended since the last one.
    pub(super) fn take_snapshot(
        &self,
        writer: &mut Writer,
        sync: bool,
    ) -> Result<(), StorageError> {
        writer
            .producers
            .update_map_end_offset(self.log_end_offset());
        if writer.producers.is_snapshot_due() {
            let offset = writer.producers.map_end_offset();
            snapshot_file::write_snapshot(&self.dir, offset, &writer.producers.snapshot(), sync)?;
            writer.producers.on_snapshot_taken();
        }
        Ok(())
    }

    /// Unlinks the snapshots for whose offset `is_obsolete` holds.
    pub(super) fn remove_snapshots(&self, is_obsolete: impl Fn(i64) -> bool) {
        match snapshot_file::list_snapshots(&self.dir) {
            Ok(snapshots) => {
                for (_, path) in snapshots
                    .into_iter()
                    .filter(|(offset, _)| is_obsolete(*offset))
                {
                    if let Err(error) = std::fs::remove_file(&path) {
                        tracing::warn!(snapshot = %path.display(), %error, "cannot remove an old producer snapshot");
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "cannot list producer snapshots"),
        }
    }

    /// Forgets idle producers.
    pub(super) fn expire_producers(&self, now_ms: i64) {
        let mut writer = self.writer.lock();
        if !writer.producers.is_empty() {
            writer
                .producers
                .remove_expired(now_ms, self.producer_id_expiration_ms);
        }
    }

    /// The producers that are known, by id: an idle one until a sweep forgets it, as in Apache Kafka.
    pub fn active_producers(&self) -> Vec<ProducerStateView> {
        let writer = self.writer.lock();
        let mut views: Vec<_> = writer
            .producers
            .entries()
            .map(|(producer_id, entry)| ProducerStateView {
                producer_id,
                producer_epoch: entry.producer_epoch,
                last_sequence: entry.last_sequence(),
                last_timestamp: entry.last_timestamp,
                coordinator_epoch: entry.coordinator_epoch,
                current_txn_start_offset: entry.current_txn_first_offset,
            })
            .collect();
        views.sort_unstable_by_key(|view| view.producer_id);
        views
    }

    /// The aborted transactions that overlap `[from_offset, to_offset)`, in order of their markers.
    ///
    /// # Errors
    /// When a transaction index cannot be read.
    pub fn aborted_transactions(
        &self,
        from_offset: i64,
        to_offset: i64,
    ) -> Result<Vec<AbortedTxn>, ReadError> {
        self.check_open()?;
        let segments = self.segments.load();
        let mut found = Vec::new();
        for segment in &segments.as_slice()[segments.floor(from_offset)..] {
            let entries = segment
                .txn_index
                .entries()
                .map_err(|error| StorageError::io("read", segment.txn_index.path(), error))?;
            for entry in entries.iter() {
                if entry.last_offset >= from_offset && entry.first_offset < to_offset {
                    found.push(*entry);
                }
                // No later marker ends a transaction that began before this offset.
                if entry.last_stable_offset >= to_offset {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Makes `producers` what the log up to `end_offset` says: the latest snapshot at or before
    /// `latest_snapshot`, then the batches that follow it. `on_completed` is told of every transaction that ends,
    /// with the segment of its marker. Snapshots that cannot be read are removed.
    pub(super) fn rebuild_producers(
        producers: &mut ProducerStateManager,
        segments: &SegmentList,
        replay: &Replay<'_>,
        mut on_completed: impl FnMut(&Arc<Segment>, &CompletedTxn),
    ) -> Result<(), StorageError> {
        let from = load_snapshot(producers, replay)?;
        for segment in &segments.as_slice()[segments.floor(from)..] {
            let size = segment.size();
            let start = if from > segment.base_offset() {
                match segment.find(from, size) {
                    Ok(Some(found)) => found.position,
                    Ok(None) => continue,
                    // Bad bytes below the recovery point are reported by whoever reads them.
                    Err(error) => {
                        tracing::warn!(%error, "cannot replay producers from a damaged segment");
                        continue;
                    }
                }
            } else {
                0
            };
            segment.scan(start, size, |_, header, bytes| {
                if header.base_offset >= replay.end_offset {
                    return Err("the end".to_owned());
                }
                if header.base_offset >= from
                    && let Some(txn) = producers.apply(header, bytes)
                {
                    on_completed(segment, &txn);
                }
                Ok(())
            })?;
        }
        producers.update_map_end_offset(replay.end_offset);
        Ok(())
    }

    /// Sets what readers see of the producers' state after it was rebuilt.
    pub(super) fn on_producers_rebuilt(&self, producers: &mut ProducerStateManager) {
        let high_watermark = self.high_watermark.load(Ordering::Acquire);
        producers.on_high_watermark_updated(high_watermark);
        self.publish_unstable_offset(producers, high_watermark);
    }
}

/// What to rebuild producers from.
pub(super) struct Replay<'a> {
    /// The partition's directory.
    pub(super) dir: &'a std::path::Path,
    /// No snapshot above this is used.
    pub(super) latest_snapshot: i64,
    /// Where the log begins.
    pub(super) log_start_offset: i64,
    /// Where the log ends.
    pub(super) end_offset: i64,
    pub(super) now_ms: i64,
    pub(super) expiration_ms: i64,
}

/// Loads the latest usable snapshot; gives the offset from which batches are to be applied.
fn load_snapshot(
    producers: &mut ProducerStateManager,
    replay: &Replay<'_>,
) -> Result<i64, StorageError> {
    for (offset, path) in snapshot_file::list_snapshots(replay.dir)?.into_iter().rev() {
        if offset > replay.end_offset {
            // Of batches that were cut off.
            remove(&path);
            continue;
        }
        if offset > replay.latest_snapshot {
            continue;
        }
        match snapshot_file::read_snapshot(&path) {
            Ok(snapshot) => {
                producers.load(&snapshot, offset, replay.now_ms, replay.expiration_ms);
                return Ok(offset);
            }
            Err(error) => {
                tracing::warn!(%error, "removing a producer snapshot that cannot be read");
                remove(&path);
            }
        }
    }
    producers.clear(replay.log_start_offset);
    Ok(replay.log_start_offset)
}

fn remove(path: &std::path::Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(snapshot = %path.display(), %error, "cannot remove a producer snapshot");
    }
}

/// The transaction index's entry for an aborted transaction.
pub(super) fn aborted(txn: &CompletedTxn) -> AbortedTxn {
    AbortedTxn {
        producer_id: txn.producer_id,
        first_offset: txn.first_offset,
        last_offset: txn.last_offset,
        last_stable_offset: txn.last_stable_offset,
    }
}
