//! One partition's log. One verb a file: append, read, look up (by time), truncate, roll, retention, compaction,
//! flush, open and recovery.
//!
//! One lock, the writer's, is held for appends and for whatever changes the segments. Readers take no lock: they
//! see an immutable list of segments, atomics, and bytes that never change once they are published. An append
//! publishes the log end first, then the segment's size, then index entries, so whoever sees a size knows that
//! the log end it reads afterwards covers it.

mod append;
mod compaction;
mod flush;
mod holes;
mod lookup;
mod open;
mod producers;
mod read;
mod recovery;
mod retention;
mod roll;
mod throttle;
mod truncate;
mod types;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};

use crate::checkpoint::{Durability, write_partition_metadata};
use crate::errors::StorageError;
use crate::leader_epoch_cache::LeaderEpochCache;
use crate::log_config::LogConfig;
use crate::log_manager::LogDir;
use crate::producer_state::ProducerStateManager;
use crate::segment::{IndexBuilder, Segment, SegmentList};
use crate::types::{LeaderEpoch, TopicId, TopicPartition};

pub use crate::index::AbortedTxn;
pub(crate) use compaction::{CompactionError, Filth};
pub(crate) use open::OpenLog;
use roll::RollClock;
pub(crate) use throttle::Throttle;
pub use types::{AppendInfo, AppendOrigin, LogRead, ProducerStateView, TimestampedOffset};

/// `first_unstable_offset` when no transaction is open.
const NO_UNSTABLE_OFFSET: i64 = i64::MAX;

/// One partition's log.
#[derive(Debug)]
pub struct Log {
    topic_partition: TopicPartition,
    log_dir: Arc<LogDir>,
    dir: Arc<Path>,
    topic_id: Mutex<Option<TopicId>>,
    config: ArcSwap<LogConfig>,
    segments: ArcSwap<SegmentList>,
    log_start_offset: AtomicI64,
    high_watermark: AtomicI64,
    log_end_offset: AtomicI64,
    first_unstable_offset: AtomicI64,
    /// Everything below is on disk.
    recovery_point: AtomicI64,
    /// Whether ended transactions wait for their markers to be replicated.
    has_unreplicated_txns: AtomicBool,
    /// Whether a segment may have an open descriptor or map.
    has_open_files: AtomicBool,
    is_closed: AtomicBool,
    /// Why the log is offline: it could not be forced to disk.
    failure: OnceLock<StorageError>,
    epochs: RwLock<LeaderEpochCache>,
    /// One flush at a time; those who wait find their work done.
    flushing: Mutex<()>,
    writer: Mutex<Writer>,
    producer_id_expiration_ms: i64,
}

/// What only the holder of the writer lock may use.
#[derive(Debug)]
struct Writer {
    /// Of the active segment.
    index_builder: IndexBuilder,
    roll_clock: RollClock,
    producers: ProducerStateManager,
    /// A failed append may have left bytes behind the published end.
    tail_is_dirty: bool,
    /// Since when appended records wait for `flush.ms`.
    unflushed_since_ms: Option<i64>,
    /// Records appended since the last flush.
    unflushed_records: i64,
}

impl Log {
    /// The partition this is the log of.
    pub fn topic_partition(&self) -> &TopicPartition {
        &self.topic_partition
    }

    /// The partition's directory.
    pub fn dir(&self) -> PathBuf {
        self.dir.to_path_buf()
    }

    /// The log directory (one of `log.dirs`) the partition's directory lies in.
    pub fn log_dir(&self) -> PathBuf {
        self.log_dir.path().to_owned()
    }

    /// The id of the partition's topic, if it has been told.
    pub fn topic_id(&self) -> Option<TopicId> {
        *self.topic_id.lock()
    }

    /// Gives the log the id of its topic.
    ///
    /// # Errors
    /// When it has another, or `partition.metadata` cannot be written.
    pub fn set_topic_id(&self, topic_id: TopicId) -> Result<(), StorageError> {
        let mut known = self.topic_id.lock();
        match *known {
            Some(found) if found == topic_id => Ok(()),
            Some(found) => Err(StorageError::InconsistentTopicId {
                topic_partition: self.topic_partition.clone(),
                expected: topic_id,
                found,
            }),
            None => {
                // Not forced to disk: the metadata log has the id too, and forcing it for each of thousands of
                // new partitions would take minutes.
                write_partition_metadata(&self.dir, topic_id, Durability::Cached)?;
                *known = Some(topic_id);
                Ok(())
            }
        }
    }

    /// The settings in force.
    pub fn config(&self) -> Arc<LogConfig> {
        self.config.load_full()
    }

    /// Changes the settings, from the next append, roll or sweep on.
    pub fn set_config(&self, config: LogConfig) {
        if **self.config.load() != config {
            self.config.store(Arc::new(config));
        }
    }

    /// The first offset there is.
    pub fn log_start_offset(&self) -> i64 {
        self.log_start_offset.load(Ordering::Acquire)
    }

    /// The offset up to which records are committed, exclusive.
    pub fn high_watermark(&self) -> i64 {
        self.high_watermark.load(Ordering::Acquire)
    }

    /// Sets the high watermark, clamped to log start and end; gives what it became.
    pub fn set_high_watermark(&self, offset: i64) -> i64 {
        let clamped = offset
            .max(self.log_start_offset())
            .min(self.log_end_offset());
        self.high_watermark.store(clamped, Ordering::Release);
        if self.has_unreplicated_txns.load(Ordering::Acquire) {
            let mut writer = self.writer.lock();
            writer.producers.on_high_watermark_updated(clamped);
            self.publish_unstable_offset(&writer.producers, clamped);
        }
        clamped
    }

    /// The offset the next record gets.
    pub fn log_end_offset(&self) -> i64 {
        self.log_end_offset.load(Ordering::Acquire)
    }

    /// The lower of the high watermark and the first offset of an open transaction.
    pub fn last_stable_offset(&self) -> i64 {
        self.high_watermark()
            .min(self.first_unstable_offset.load(Ordering::Acquire))
    }

    /// The offset below which everything is on disk.
    pub fn recovery_point(&self) -> i64 {
        self.recovery_point.load(Ordering::Acquire)
    }

    /// The bytes of all segments.
    pub fn size_in_bytes(&self) -> u64 {
        self.segments.load().size_in_bytes()
    }

    /// How many segments there are.
    pub fn segment_count(&self) -> usize {
        self.segments.load().as_slice().len()
    }

    /// Whether the log's start is not where its first segment begins, so that only the checkpoint tells it.
    pub(crate) fn has_start_inside_segment(&self) -> bool {
        let segments = self.segments.load();
        let first = segments.as_slice().first();
        first.is_some_and(|first| first.base_offset() < self.log_start_offset())
    }

    /// The newest leader epoch.
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        let latest = self.epochs.read().latest()?;
        Some(LeaderEpoch(latest.epoch))
    }

    /// Notes that `epoch` begins at `offset`. It is in `leader-epoch-checkpoint` before the first record of it.
    ///
    /// # Errors
    /// When `offset` is below the log's end and the file cannot be written.
    pub fn assign_epoch_start(&self, epoch: LeaderEpoch, offset: i64) -> Result<(), StorageError> {
        let mut epochs = self.epochs.write();
        epochs.assign(epoch, offset);
        // At the log's end nothing depends on it yet, and thousands of partitions may get a leader at once.
        if offset < self.log_end_offset() {
            epochs.flush()?;
        }
        Ok(())
    }

    /// Sees to it that the epoch of a record that is about to be appended is in the file.
    fn write_epoch_before_append(
        &self,
        epoch: LeaderEpoch,
        offset: i64,
    ) -> Result<(), StorageError> {
        if epoch.0 < 0 || !self.epochs.read().is_write_due(epoch, offset) {
            return Ok(());
        }
        self.epochs.write().before_append(epoch, offset)
    }

    /// The largest epoch not above `epoch`, and where it ends; None when that is not known here. An epoch before
    /// all known ones ends where the first one begins.
    pub fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, i64)> {
        self.epochs
            .read()
            .end_offset_for(epoch, self.log_end_offset())
    }

    /// The epoch `offset` was written in.
    pub fn epoch_for_offset(&self, offset: i64) -> Option<LeaderEpoch> {
        self.epochs.read().epoch_for_offset(offset)
    }

    /// The active segment. A list without one does not exist once a log is open.
    fn active_segment(&self) -> Result<Arc<Segment>, StorageError> {
        self.segments
            .load()
            .active()
            .cloned()
            .ok_or_else(|| StorageError::corrupt(&self.dir, "no segment"))
    }

    /// Why the log is offline, if it is: forcing it to disk failed, so that what was appended may be lost, or it was
    /// [given up](Self::set_failed). Only the next start brings it back.
    pub fn failure(&self) -> Option<&StorageError> {
        self.failure.get()
    }

    /// Takes the log offline until the next start: it cannot be written as it must be. The first reason is kept, and
    /// told to whom [`LogManager::watch_failures`](crate::LogManager::watch_failures) knows.
    pub fn set_failed(&self, reason: StorageError) {
        let topic_partition = &self.topic_partition;
        let text = reason.to_string();
        if self.failure.set(reason).is_ok() {
            tracing::error!(%topic_partition, error = text, recovery_point = self.recovery_point(), "the log is offline until a restart");
            self.log_dir.on_log_failure(topic_partition);
        }
    }

    fn check_open(&self) -> Result<(), StorageError> {
        if self.is_closed.load(Ordering::Acquire) {
            Err(StorageError::Closed(self.topic_partition.clone()))
        } else {
            self.check_sound()
        }
    }

    fn check_sound(&self) -> Result<(), StorageError> {
        match self.failure() {
            None => Ok(()),
            Some(failure) => Err(StorageError::Offline {
                topic_partition: self.topic_partition.clone(),
                reason: failure.to_string(),
            }),
        }
    }

    /// Makes the first unstable offset and the need to be told of the high watermark visible to readers.
    fn publish_unstable_offset(&self, producers: &ProducerStateManager, high_watermark: i64) {
        let offset = producers
            .first_unstable_offset()
            .unwrap_or(NO_UNSTABLE_OFFSET);
        self.first_unstable_offset
            .store(offset.max(self.log_start_offset()), Ordering::Release);
        let undecided = producers
            .first_undecided_offset()
            .unwrap_or(NO_UNSTABLE_OFFSET);
        // What is unstable only because its marker lies above the high watermark becomes stable with it.
        let waits = offset < undecided || (offset != NO_UNSTABLE_OFFSET && offset < high_watermark);
        self.has_unreplicated_txns.store(waits, Ordering::Release);
    }
}

#[cfg(test)]
pub(crate) mod tests;
