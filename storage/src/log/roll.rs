//! Beginning a new segment.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use crate::errors::StorageError;
use crate::log_config::LogConfig;
use crate::record_batch::BatchHeader;
use crate::segment::{IndexBuilder, Segment};

use super::{Log, Writer};

/// How old the active segment is.
#[derive(Debug, Clone, Copy)]
pub(super) struct RollClock {
    created_ms: i64,
    /// The first batch's timestamp: unknown, none, or known.
    first_timestamp: Option<Option<i64>>,
    /// Taken off `segment.ms`, as a share of the largest jitter in 1/65536.
    jitter: u16,
}

impl RollClock {
    /// Of a segment made now.
    pub(super) fn new(now_ms: i64) -> Self {
        Self {
            created_ms: now_ms,
            first_timestamp: Some(None),
            jitter: RandomState::new().hash_one(now_ms) as u16,
        }
    }

    /// Of a segment that was there before this process.
    pub(super) fn of_old_segment(now_ms: i64) -> Self {
        Self {
            first_timestamp: None,
            ..Self::new(now_ms)
        }
    }

    /// Takes note of the first batch's timestamp.
    pub(super) fn on_batch(&mut self, timestamp: i64) {
        if self.first_timestamp == Some(None) {
            self.first_timestamp = Some(Some(timestamp));
        }
    }

    /// What is taken off `segment.ms` for this segment.
    fn jitter_ms(&self, config: &LogConfig) -> i64 {
        let share = i128::from(config.max_jitter_ms()) * i128::from(self.jitter);
        (share >> 16) as i64
    }

    /// How long the segment has been filled: by the records' clock if they have one, else by the broker's.
    fn waited_ms(&mut self, active: &Segment, timestamp: i64, now_ms: i64) -> i64 {
        let first = *self.first_timestamp.get_or_insert_with(|| {
            let found = active.find(active.base_offset(), active.size());
            found.ok().flatten().map(|found| found.header.max_timestamp)
        });
        match first {
            Some(first) if first >= 0 => timestamp.saturating_sub(first),
            _ => now_ms.saturating_sub(self.created_ms),
        }
    }
}

impl Log {
    /// Whether a batch of `size_bytes` must go to a new segment, when `size` bytes are in the active one.
    pub(super) fn is_roll_due(
        writer: &mut Writer,
        active: &Segment,
        size: u32,
        header: &BatchHeader,
        config: &LogConfig,
        now_ms: i64,
    ) -> bool {
        if size == 0 {
            return false;
        }
        let grown = u64::from(size) + header.size_in_bytes() as u64;
        let segment_ms = config.max_segment_ms() - writer.roll_clock.jitter_ms(config);
        grown > u64::from(config.segment_bytes)
            || active.offset_index.is_full()
            || active.time_index.is_full()
            || header.last_offset() - active.base_offset() > i64::from(i32::MAX)
            || writer
                .roll_clock
                .waited_ms(active, header.max_timestamp, now_ms)
                > segment_ms
    }

    /// Ends the active segment and begins one at the log's end. After an error nothing has changed.
    pub(super) fn roll(
        &self,
        writer: &mut Writer,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<Arc<Segment>, StorageError> {
        let segments = self.segments.load_full();
        let old = self.active_segment()?;
        let base_offset = self.log_end_offset();
        if old.size() == 0 && old.base_offset() == base_offset {
            return Ok(old);
        }
        let new = Arc::new(Segment::create(&self.dir, base_offset, config)?);
        if let Some(max) = writer.index_builder.max_timestamp() {
            old.time_index.maybe_append(max);
        }
        // Both can be made again from the batches; the append that made the roll due goes on.
        if let Err(error) = old.write_pending() {
            tracing::warn!(topic_partition = %self.topic_partition, %error, "cannot complete the indexes of a full segment");
        }
        if let Err(error) = self.take_snapshot(writer, false) {
            tracing::warn!(topic_partition = %self.topic_partition, %error, "cannot write a producer snapshot");
        }
        self.segments
            .store(Arc::new(segments.with(Arc::clone(&new))));
        writer.index_builder = IndexBuilder::new();
        writer.roll_clock = RollClock::new(now_ms);
        tracing::debug!(topic_partition = %self.topic_partition, base_offset, "rolled a new segment");
        Ok(new)
    }
}
