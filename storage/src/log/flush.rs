//! Forcing a log to disk, closing what is idle, and the end of a log.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::errors::StorageError;
use crate::log_config::LogConfig;
use crate::mapped_file::SyncError;
use crate::segment::Segment;

use super::Log;

impl Log {
    /// Forces everything to disk and moves the recovery point to the log's end.
    ///
    /// # Errors
    /// When the disk says no; the recovery point has not moved then. If the system tried and failed, the log is
    /// offline from then on, see [`Log::failure`].
    pub fn flush(&self) -> Result<(), StorageError> {
        self.flush_below(self.log_end_offset())
    }

    /// Forces everything below `offset` to disk. Callers that wait for each other share the work.
    pub fn flush_below(&self, offset: i64) -> Result<(), StorageError> {
        if self.recovery_point() >= offset {
            return Ok(());
        }
        let _flushing = self.flushing.lock();
        self.check_sound()?;
        let recovery_point = self.recovery_point();
        if recovery_point >= offset {
            return Ok(());
        }
        let (segments, to) = {
            let mut writer = self.writer.lock();
            let segments = self.segments.load_full();
            let log_end_offset = self.log_end_offset();
            let active_base = segments.active().map_or(0, |active| active.base_offset());
            // With the active segment, all that was appended meanwhile too.
            let to = if offset > active_base {
                writer.unflushed_since_ms = None;
                writer.unflushed_records = 0;
                log_end_offset
            } else {
                offset
            };
            for segment in &segments.as_slice()[segments.floor(recovery_point)..] {
                if segment.base_offset() < to {
                    segment.write_pending()?;
                }
            }
            (segments, to)
        };
        let flushed: Vec<_> = segments.as_slice()[segments.floor(recovery_point)..]
            .iter()
            .filter(|segment| segment.base_offset() < to)
            .collect();
        for segment in &flushed {
            self.sync(segment)?;
        }
        if self.epochs.read().is_flush_due() {
            self.epochs.write().flush()?;
        }
        // A truncation meanwhile has moved the point down, and other records may have the offsets by now. A segment
        // it has touched is no longer in the list.
        let _writer = self.writer.lock();
        let current = self.segments.load();
        let is_current = |segment: &Arc<Segment>| {
            let at = current.floor(segment.base_offset());
            current
                .as_slice()
                .get(at)
                .is_some_and(|known| Arc::ptr_eq(known, segment))
        };
        if flushed.into_iter().all(is_current) {
            let to = to.min(self.log_end_offset());
            self.recovery_point.fetch_max(to, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Forces a segment to disk. If the system tries and fails, nobody knows what is on disk and no later success would
    /// tell: nothing more is taken or given, and the next start looks at everything from the recovery point on.
    fn sync(&self, segment: &Segment) -> Result<(), StorageError> {
        let failed = |error| StorageError::io("flush", segment.path(), error);
        let error = match self.log_dir.disk().sync(segment) {
            Ok(()) => return Ok(()),
            Err(SyncError::NotTried(error)) => {
                let error = failed(error);
                tracing::error!(topic_partition = %self.topic_partition, %error, "flush failed, trying again later");
                error
            }
            Err(SyncError::Failed(error)) => {
                let error = failed(error);
                tracing::error!(topic_partition = %self.topic_partition, %error, "flush failed, what was written may be lost");
                self.set_failed(error.clone());
                error
            }
        };
        self.log_dir.note_error(&error);
        Err(error)
    }

    /// The sweep: flushes what `flush.ms` makes due, and segments that were rolled; builds damaged indexes again;
    /// closes files that were not used since the last sweep.
    pub(crate) fn sweep(&self, now_ms: i64) -> Result<(), StorageError> {
        if self.check_open().is_err() {
            return Ok(());
        }
        let config = self.config.load_full();
        let is_due = config.flush_ms != i64::MAX && {
            let writer = self.writer.lock();
            writer
                .unflushed_since_ms
                .is_some_and(|since| now_ms.saturating_sub(since) >= config.flush_ms)
        };
        let rolled = self.active_segment()?.base_offset();
        let result = if is_due {
            self.flush()
        } else {
            self.flush_below(rolled)
        };
        self.repair_indexes(&config)?;
        self.close_idle_files();
        result
    }

    fn repair_indexes(&self, config: &LogConfig) -> Result<(), StorageError> {
        let segments = self.segments.load_full();
        for (index, segment) in segments.as_slice().iter().enumerate() {
            if !segment.take_needs_repair() {
                continue;
            }
            let mut writer = self.writer.lock();
            let is_active = index + 1 == self.segments.load().as_slice().len();
            let builder = segment.rebuild_indexes(config.index_interval_bytes, is_active)?;
            if is_active {
                writer.index_builder = builder;
            }
            tracing::info!(segment = %segment.path().display(), "built the indexes again");
        }
        Ok(())
    }

    /// Tells the sweep that there may be something to close.
    pub(super) fn note_open_files(&self) {
        // Read first: all readers of the log share this.
        if !self.has_open_files.load(Ordering::Relaxed) {
            self.has_open_files.store(true, Ordering::Relaxed);
        }
    }

    fn close_idle_files(&self) {
        if !self.has_open_files.load(Ordering::Relaxed) {
            return;
        }
        // A busy log is not idle.
        let Some(_writer) = self.writer.try_lock() else {
            return;
        };
        let mut is_any_open = false;
        for segment in self.segments.load().as_slice() {
            is_any_open |= segment.close_if_idle();
        }
        self.has_open_files.store(is_any_open, Ordering::Relaxed);
    }

    /// A clean stop of this log: nothing can be appended or read afterwards, and everything is on disk, with a
    /// producer snapshot at the end.
    pub(crate) fn close(&self) -> Result<(), StorageError> {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.check_sound().inspect_err(|_| self.close_files())?;
        {
            let mut writer = self.writer.lock();
            let active = self.active_segment()?;
            if writer.tail_is_dirty {
                active.cut_unpublished()?;
                writer.tail_is_dirty = false;
            }
            if let Some(max) = writer.index_builder.max_timestamp() {
                active.time_index.maybe_append(max);
            }
            active.write_pending()?;
            self.take_snapshot(&mut writer, true)?;
        }
        self.flush()?;
        self.close_files();
        Ok(())
    }

    /// Ends the log without a word to the disk: its directory is about to go.
    pub(crate) fn abandon(&self) {
        self.is_closed.store(true, Ordering::Release);
        // Whoever appends right now ends first.
        drop(self.writer.lock());
        self.close_files();
    }

    /// Puts index entries into their files, as the page cache has them when a process is killed.
    #[cfg(test)]
    pub(super) fn close_files_for_test(&self) {
        self.close_files();
    }

    fn close_files(&self) {
        for segment in self.segments.load().as_slice() {
            segment.close();
        }
    }
}
