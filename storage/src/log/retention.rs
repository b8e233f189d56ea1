//! Deleting old segments: by time, by size, and below the log's start.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::errors::StorageError;
use crate::log_config::LogConfig;
use crate::segment::{Segment, SegmentList};

use super::Log;

impl Log {
    /// Moves the log's start up (DeleteRecords). On disk when it returns. Gives the log's start; an offset below it
    /// changes nothing.
    ///
    /// # Errors
    /// [`StorageError::OffsetOutOfRange`] above the high watermark. When the disk says no, records below
    /// `offset` are not served any more but may be again after a crash.
    pub fn increment_log_start_offset(&self, offset: i64) -> Result<i64, StorageError> {
        self.follow_log_start_offset(offset)?;
        let start = self.log_start_offset();
        let save = || {
            self.log_dir
                .log_start_offsets
                .set(&self.topic_partition, start)
        };
        let saved = save();
        if let Err(error) = &saved {
            self.log_dir.note_error(error);
        }
        if self.log_dir.is_full() {
            // Room is wanted now: for the checkpoint, and for whoever deleted the records to make some.
            let config = self.config.load_full();
            self.delete_segments(&config, 0, 0, |_, end_offset| end_offset <= start)?;
            self.log_dir.unlink_deleted(i64::MAX);
            save()?;
        } else {
            saved?;
        }
        Ok(start)
    }

    /// Moves the log's start up, as a follower does after its leader. The disk hears of it with the next
    /// checkpoints; after a crash before that, the leader tells again. An offset below the start changes nothing.
    ///
    /// # Errors
    /// [`StorageError::OffsetOutOfRange`] above the high watermark.
    pub fn follow_log_start_offset(&self, offset: i64) -> Result<(), StorageError> {
        let mut writer = self.writer.lock();
        self.check_open()?;
        let high_watermark = self.high_watermark();
        if offset > high_watermark {
            return Err(StorageError::OffsetOutOfRange {
                topic_partition: self.topic_partition.clone(),
                offset,
                lowest: self.log_start_offset(),
                highest: high_watermark,
            });
        }
        if offset > self.log_start_offset() {
            self.log_start_offset.store(offset, Ordering::Release);
            writer.producers.on_log_start_offset_incremented(offset);
            self.publish_unstable_offset(&writer.producers, high_watermark);
            self.epochs.write().truncate_from_start(offset);
            tracing::info!(topic_partition = %self.topic_partition, offset, "moved the log start");
        }
        Ok(())
    }

    /// Deletes what the settings say. Whether the log's start has moved.
    ///
    /// # Errors
    /// When a segment's files cannot be renamed.
    pub(crate) fn enforce_retention(&self, now_ms: i64) -> Result<bool, StorageError> {
        self.check_open()?;
        self.expire_producers(now_ms);
        let config = self.config.load_full();
        let delay_ms = config.file_delete_delay_ms;
        let log_start_offset = self.log_start_offset();
        let mut deleted = self.delete_segments(&config, now_ms, delay_ms, |_, end_offset| {
            end_offset <= log_start_offset
        })?;
        if config.cleanup_policy.delete {
            if config.retention_ms >= 0 {
                deleted += self.delete_segments(&config, now_ms, delay_ms, |segment, _| {
                    is_expired(segment, now_ms, config.retention_ms)
                })?;
            }
            if config.retention_bytes >= 0 {
                let mut excess = self
                    .size_in_bytes()
                    .saturating_sub(config.retention_bytes as u64);
                deleted += self.delete_segments(&config, now_ms, delay_ms, |segment, _| {
                    let size = u64::from(segment.size());
                    let goes = size > 0 && excess >= size;
                    excess = excess.saturating_sub(size);
                    goes
                })?;
            }
        }
        Ok(deleted > 0)
    }

    /// Deletes segments from the oldest on while `goes`, given a segment and its end offset, holds and all of the
    /// segment is below the high watermark. If that is all of them, a new one is begun first.
    fn delete_segments(
        &self,
        config: &LogConfig,
        now_ms: i64,
        delay_ms: i64,
        mut goes: impl FnMut(&Segment, i64) -> bool,
    ) -> Result<usize, StorageError> {
        let mut writer = self.writer.lock();
        self.check_open()?;
        let segments = self.segments.load_full();
        let log_end_offset = self.log_end_offset();
        let high_watermark = self.high_watermark();
        let all = segments.as_slice();
        let count = (0..all.len())
            .take_while(|index| {
                let end_offset = segments.end_offset_of(*index, log_end_offset);
                let is_empty_active = index + 1 == all.len() && all[*index].size() == 0;
                end_offset <= high_watermark && !is_empty_active && goes(&all[*index], end_offset)
            })
            .count();
        if count == 0 {
            return Ok(0);
        }
        if count == all.len() {
            self.roll(&mut writer, config, now_ms)?;
        }
        let segments = self.segments.load_full();
        let (gone, kept) = segments.as_slice().split_at(count);
        let new_start = kept
            .first()
            .map_or(log_end_offset, |first| first.base_offset());
        self.log_start_offset.fetch_max(new_start, Ordering::AcqRel);
        self.segments
            .store(Arc::new(SegmentList::new(kept.to_vec())));
        self.recovery_point.fetch_max(new_start, Ordering::AcqRel);
        writer.producers.on_log_start_offset_incremented(new_start);
        self.publish_unstable_offset(&writer.producers, high_watermark);
        {
            let mut epochs = self.epochs.write();
            epochs.truncate_from_start(new_start);
            // The file may keep entries that are too old; the next start drops them.
            if let Err(error) = epochs.flush() {
                tracing::warn!(topic_partition = %self.topic_partition, %error, "cannot write the leader epoch checkpoint");
            }
        }
        tracing::info!(
            topic_partition = %self.topic_partition, segments = count, log_start_offset = new_start,
            "deleted segments"
        );
        self.discard(gone, delay_ms);
        // The snapshot at the new start stays: a replay begins there.
        self.remove_snapshots(|offset| offset < new_start);
        Ok(count)
    }

    /// Renames the files of segments that are no longer in the list, to be unlinked after `delay_ms`.
    pub(super) fn discard(&self, segments: &[Arc<Segment>], delay_ms: i64) {
        for segment in segments {
            match segment.rename_to_deleted() {
                Ok(paths) => self.log_dir.unlink_later(paths, delay_ms),
                // They lie below the log's start, or past its end, and the next start drops them.
                Err(error) => {
                    tracing::error!(topic_partition = %self.topic_partition, %error, "cannot remove a segment");
                }
            }
        }
    }
}

/// Whether a segment is older than `retention.ms`. A timestamp in the future says nothing about age, and would
/// keep the log for ever; the file's own time counts then.
fn is_expired(segment: &Segment, now_ms: i64, retention_ms: i64) -> bool {
    let newest = match segment.max_timestamp() {
        Ok(Some(max)) if (0..=now_ms).contains(&max.timestamp) => Some(max.timestamp),
        Ok(_) => segment.modified_ms(),
        Err(error) => {
            tracing::warn!(segment = %segment.path().display(), %error, "cannot tell the age of a segment");
            None
        }
    };
    newest.is_some_and(|newest| now_ms.saturating_sub(newest) > retention_ms)
}
