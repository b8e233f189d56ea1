//! Cutting off the end of a log, or all of it.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::errors::{ReadError, StorageError};
use crate::segment::{IndexBuilder, LOG_SUFFIX, Segment, SegmentList, file_name};

use super::producers::Replay;
use super::roll::RollClock;
use super::{Log, Writer};

impl Log {
    /// Drops every batch that reaches `offset` or beyond. Slices that were read before stay good: the kept part
    /// of a segment goes to a new file. Epochs that begin at `offset` or later are dropped even when no batch is.
    ///
    /// # Errors
    /// When a file cannot be written; the log is unchanged, or cut at a place before its old end.
    pub fn truncate_to(&self, offset: i64) -> Result<(), StorageError> {
        let mut writer = self.writer.lock();
        self.check_open()?;
        let log_end_offset = self.log_end_offset();
        if offset < self.log_start_offset() {
            drop(writer);
            return self.truncate_fully_and_start_at(offset);
        }
        if offset < log_end_offset {
            if offset < self.high_watermark() {
                tracing::warn!(
                    topic_partition = %self.topic_partition, offset, high_watermark = self.high_watermark(),
                    "truncating below the high watermark"
                );
            } else {
                tracing::info!(topic_partition = %self.topic_partition, offset, log_end_offset, "truncating");
            }
            self.cut_segments(&mut writer, offset)?;
        }
        let mut epochs = self.epochs.write();
        // Batches are cut off whole, so the log may end before the offset.
        epochs.truncate_from_end(offset.min(self.log_end_offset()));
        epochs.flush()
    }

    fn cut_segments(&self, writer: &mut Writer, offset: i64) -> Result<(), StorageError> {
        let config = self.config.load_full();
        let segments = self.segments.load_full();
        let (kept, dropped) = segments.as_slice().split_at(segments.floor(offset) + 1);
        let Some((last, kept)) = kept.split_last() else {
            return Err(StorageError::corrupt(&*self.dir, "no segment"));
        };
        let size = last.size();
        let end = match last.find(offset, size) {
            Ok(found) => found.map_or(size, |found| found.position),
            Err(ReadError::Storage(error)) => return Err(error),
            Err(error) => return Err(StorageError::corrupt(last.path(), error.to_string())),
        };
        last.write_pending()?;
        let new_last = if end < size {
            Arc::new(self.copy_prefix(last, end, offset)?)
        } else {
            Arc::clone(last)
        };
        let new_end = self.end_of(&new_last)?;
        self.log_dir
            .recovery_points
            .lower(&self.topic_partition, new_end)?;
        let mut list = kept.to_vec();
        list.push(Arc::clone(&new_last));
        // The list first, then the ends: a reader that sees an end also sees that its list is old.
        self.segments.store(Arc::new(SegmentList::new(list)));
        self.log_end_offset.store(new_end, Ordering::Release);
        self.high_watermark.fetch_min(new_end, Ordering::AcqRel);
        self.recovery_point.fetch_min(new_end, Ordering::AcqRel);
        if new_end < self.log_start_offset() {
            // The batch that held the start is gone; it comes back whole, if at all.
            self.log_start_offset.store(new_end, Ordering::Release);
            self.log_dir
                .log_start_offsets
                .set(&self.topic_partition, new_end)?;
        }
        self.discard(dropped, config.file_delete_delay_ms);
        writer.index_builder = new_last.rebuild_indexes(config.index_interval_bytes, true)?;
        writer.roll_clock = RollClock::of_old_segment(0);
        writer.tail_is_dirty = false;
        self.reload_producers(writer, new_end)
    }

    /// A copy of the segment's first `end` bytes that takes its name.
    fn copy_prefix(
        &self,
        segment: &Segment,
        end: u32,
        offset: i64,
    ) -> Result<Segment, StorageError> {
        let path = segment.path();
        let temporary = self.dir.join(format!(
            "{}.tmp",
            file_name(segment.base_offset(), LOG_SUFFIX)
        ));
        let copy = || -> io::Result<()> {
            let mut to = File::create(&temporary)?;
            let mut from = io::Read::take(File::open(&path)?, u64::from(end));
            let copied = io::copy(&mut from, &mut to)?;
            if copied != u64::from(end) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            // Some of it may be below the recovery point.
            to.sync_data()
        };
        segment.retire()?;
        let copy = || {
            copy()?;
            std::fs::rename(&temporary, &path)
        };
        copy().map_err(|error| {
            let _ = std::fs::remove_file(&temporary);
            StorageError::io("truncate", &path, error)
        })?;
        let kept_txns: Vec<_> = segment
            .txn_index
            .entries()
            .map_err(|error| StorageError::io("read", segment.txn_index.path(), error))?
            .iter()
            .filter(|txn| txn.last_offset < offset)
            .copied()
            .collect();
        let new = Segment::open(&self.dir, segment.base_offset(), &self.config.load())?;
        new.txn_index
            .replace(&kept_txns)
            .map_err(|error| StorageError::io("write", new.txn_index.path(), error))?;
        Ok(new)
    }

    /// The offset after a segment's last batch.
    fn end_of(&self, segment: &Segment) -> Result<i64, StorageError> {
        let mut end = segment.base_offset();
        segment.scan(0, segment.size(), |_, header, _| {
            end = header.next_offset();
            Ok(())
        })?;
        Ok(end)
    }

    fn reload_producers(&self, writer: &mut Writer, end_offset: i64) -> Result<(), StorageError> {
        let now_ms = writer.unflushed_since_ms.unwrap_or(0);
        let replay = Replay {
            dir: &self.dir,
            latest_snapshot: end_offset,
            log_start_offset: self.log_start_offset(),
            end_offset,
            // Nobody expires here; the next sweep sees to that.
            now_ms,
            expiration_ms: i64::MAX,
        };
        let segments = self.segments.load_full();
        Self::rebuild_producers(&mut writer.producers, &segments, &replay, |_, _| {})?;
        self.on_producers_rebuilt(&mut writer.producers);
        Ok(())
    }

    /// Drops everything and begins anew at `offset`, as a follower does whose leader no longer has what follows.
    ///
    /// # Errors
    /// When the new segment cannot be made; the log is unchanged then.
    pub fn truncate_fully_and_start_at(&self, offset: i64) -> Result<(), StorageError> {
        let mut writer = self.writer.lock();
        self.check_open()?;
        tracing::info!(topic_partition = %self.topic_partition, offset, "dropping all segments");
        let config = self.config.load_full();
        let old = self.segments.load_full();
        self.log_dir
            .recovery_points
            .lower(&self.topic_partition, offset)?;
        // First out of the way: the new segment may have the name of an old one.
        self.discard(old.as_slice(), config.file_delete_delay_ms);
        let new = Arc::new(Segment::create(&self.dir, offset, &config)?);
        self.segments.store(Arc::new(SegmentList::new(vec![new])));
        self.log_end_offset.store(offset, Ordering::Release);
        self.log_start_offset.store(offset, Ordering::Release);
        self.high_watermark.store(offset, Ordering::Release);
        self.recovery_point.store(offset, Ordering::Release);
        writer.index_builder = IndexBuilder::new();
        writer.roll_clock = RollClock::of_old_segment(0);
        writer.tail_is_dirty = false;
        writer.producers.clear(offset);
        self.on_producers_rebuilt(&mut writer.producers);
        self.remove_snapshots(|_| true);
        {
            let mut epochs = self.epochs.write();
            epochs.clear();
            epochs.flush()?;
        }
        self.log_dir
            .log_start_offsets
            .set(&self.topic_partition, offset)
    }
}
