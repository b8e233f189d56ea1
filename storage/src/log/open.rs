//! Opening a log: what is in its directory, what a crash left unfinished, and what it knows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};

use crate::checkpoint::{LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, read_partition_metadata};
use crate::errors::StorageError;
use crate::index::AbortedTxn;
use crate::leader_epoch_cache::LeaderEpochCache;
use crate::log_config::LogConfig;
use crate::log_manager::LogDir;
use crate::producer_state::{ProducerStateManager, snapshot_file};
use crate::segment::{
    CLEANED_SUFFIX, DELETED_SUFFIX, INDEX_SUFFIX, LOG_LAST, LOG_SUFFIX, SWAP_SUFFIX, Segment,
    SegmentList, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, base_offset_of, file_name,
};
use crate::types::{LeaderEpoch, TopicPartition};

use super::holes::report_holes;
use super::producers::{Replay, aborted};
use super::recovery::{Tail, Trust, recover_segment};
use super::roll::RollClock;
use super::{Log, NO_UNSTABLE_OFFSET, Writer};

/// What is needed to open a log.
#[derive(Debug)]
pub(crate) struct OpenLog {
    pub(crate) topic_partition: TopicPartition,
    pub(crate) log_dir: Arc<LogDir>,
    pub(crate) dir: PathBuf,
    pub(crate) config: LogConfig,
    /// Whether the last stop was clean, or the directory is new.
    pub(crate) was_clean: bool,
    /// From the checkpoint; everything below is on disk.
    pub(crate) recovery_point: i64,
    /// From the checkpoint, if there.
    pub(crate) log_start_offset: Option<i64>,
    /// From the checkpoint, if there.
    pub(crate) high_watermark: Option<i64>,
    pub(crate) producer_id_expiration_ms: i64,
    pub(crate) now_ms: i64,
}

/// The files of a partition's directory.
#[derive(Debug, Default)]
struct Listing {
    logs: BTreeSet<i64>,
    indexes: BTreeSet<i64>,
    time_indexes: BTreeSet<i64>,
    txn_indexes: BTreeSet<i64>,
    snapshots: BTreeSet<i64>,
    has_epochs: bool,
    has_metadata: bool,
    swapped_logs: BTreeSet<i64>,
    swapped_txn_indexes: BTreeSet<i64>,
    leftovers: Vec<String>,
}

impl Listing {
    fn of(dir: &Path) -> Result<Self, StorageError> {
        let failed = |error| StorageError::io("list", dir, error);
        let mut listing = Self::default();
        for file in std::fs::read_dir(dir).map_err(failed)? {
            let name = file.map_err(failed)?.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Some(base_offset) = base_offset_of(name, LOG_SUFFIX) {
                listing.logs.insert(base_offset);
            } else if let Some(base_offset) = base_offset_of(name, INDEX_SUFFIX) {
                listing.indexes.insert(base_offset);
            } else if let Some(base_offset) = base_offset_of(name, TIME_INDEX_SUFFIX) {
                listing.time_indexes.insert(base_offset);
            } else if let Some(base_offset) = base_offset_of(name, TXN_INDEX_SUFFIX) {
                listing.txn_indexes.insert(base_offset);
            } else if let Some(offset) = snapshot_file::snapshot_offset(name) {
                listing.snapshots.insert(offset);
            } else if name == LEADER_EPOCH_CHECKPOINT {
                listing.has_epochs = true;
            } else if name == PARTITION_METADATA {
                listing.has_metadata = true;
            } else if let Some(base_offset) = base_offset_of(name, ".log.swap") {
                listing.swapped_logs.insert(base_offset);
            } else if let Some(base_offset) = base_offset_of(name, ".txnindex.swap") {
                listing.swapped_txn_indexes.insert(base_offset);
            } else if [DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, ".tmp"]
                .iter()
                .any(|suffix| name.ends_with(suffix))
            {
                listing.leftovers.push(name.to_owned());
            }
        }
        Ok(listing)
    }

    /// The snapshots where no segment begins, as a compaction leaves them that was cut short. The newest one counts as
    /// such only if it does not lie behind all segments: a clean stop writes one there.
    fn stray_snapshots(&self) -> impl Iterator<Item = i64> {
        let at_end = self
            .snapshots
            .last()
            .filter(|newest| self.logs.last() < Some(newest));
        let strays = self.snapshots.difference(&self.logs);
        strays
            .filter(move |offset| Some(*offset) != at_end)
            .copied()
    }
}

fn remove(path: &Path) -> Result<(), StorageError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StorageError::io("remove", path, error))
        }
        _ => Ok(()),
    }
}

impl OpenLog {
    /// Opens the log, which makes its directory's files fit each other; makes a first segment where there is none.
    pub(crate) fn open(mut self) -> Result<Log, StorageError> {
        let dir: Arc<Path> = Arc::from(self.dir.as_path());
        let mut listing = Listing::of(&dir)?;
        self.finish_swaps(&mut listing)?;
        for name in &listing.leftovers {
            remove(&dir.join(name))?;
        }
        for (bases, suffix) in [
            (&listing.indexes, INDEX_SUFFIX),
            (&listing.time_indexes, TIME_INDEX_SUFFIX),
            (&listing.txn_indexes, TXN_INDEX_SUFFIX),
        ] {
            for base_offset in bases.difference(&listing.logs) {
                remove(&dir.join(file_name(*base_offset, suffix)))?;
            }
        }
        for offset in listing.stray_snapshots() {
            remove(&dir.join(snapshot_file::snapshot_file_name(offset)))?;
        }
        let mut epochs = LeaderEpochCache::open(&dir)?;
        let (mut segments, mut tail) = self.load_segments(&dir, &listing, &mut epochs)?;
        if tail.next_offset < self.recovery_point {
            tracing::warn!(
                topic_partition = %self.topic_partition, log_end_offset = tail.next_offset,
                recovery_point = self.recovery_point,
                "the log ends before its recovery point: records that were on disk are gone, or the checkpoint is \
                 wrong; checking the whole log"
            );
            self.log_dir
                .recovery_points
                .lower(&self.topic_partition, tail.next_offset)?;
            (self.was_clean, self.recovery_point) = (false, 0);
            drop(segments);
            listing = Listing::of(&dir)?;
            (segments, tail) = self.load_segments(&dir, &listing, &mut epochs)?;
        }
        self.report_holes(&segments);
        let topic_id = if listing.has_metadata {
            self.read_topic_id()?
        } else {
            None
        };
        if !listing.has_epochs || epochs.entries().is_empty() {
            // Without the file the batches are all there is to tell the epochs.
            rebuild_epochs(&segments, &mut epochs)?;
        }
        self.assemble(dir, topic_id, segments, tail, epochs)
    }

    fn report_holes(&self, segments: &[Segment]) {
        if self.config.cleanup_policy.compact {
            return;
        }
        let compacted = self.log_dir.cleaner_offsets.get(&self.topic_partition);
        report_holes(&self.topic_partition, segments, compacted.unwrap_or(0));
    }

    fn read_topic_id(&self) -> Result<Option<crate::types::TopicId>, StorageError> {
        match read_partition_metadata(&self.dir) {
            // Not forced to disk when it was written; the metadata log knows the id.
            Err(error @ StorageError::Corrupt { .. }) => {
                tracing::warn!(%error, "going on without the topic id");
                remove(&self.dir.join(PARTITION_METADATA))?;
                Ok(None)
            }
            other => other,
        }
    }

    /// Puts compacted segments in place that were written in full before a crash, over those they replace. The
    /// log's own `.swap` is made last and put in place first, so it says how far things had come; the sparse
    /// indexes are built again, and the transaction index is kept.
    fn finish_swaps(&self, listing: &mut Listing) -> Result<(), StorageError> {
        for base_offset in std::mem::take(&mut listing.swapped_logs) {
            let name = |suffix| self.dir.join(file_name(base_offset, suffix));
            tracing::info!(segment = %name(LOG_SUFFIX).display(), "finishing the swap of a compacted segment");
            for suffix in LOG_LAST {
                remove(&name(suffix))?;
            }
            let dir: Arc<Path> = Arc::from(self.dir.as_path());
            Segment::rename_files(&dir, base_offset, LOG_LAST, SWAP_SUFFIX, "")?;
            let compacted = Segment::open(&dir, base_offset, &self.config)?;
            let mut end_offset = base_offset;
            compacted.scan(0, compacted.size(), |_, header, _| {
                end_offset = header.next_offset();
                Ok(())
            })?;
            compacted.close();
            let replaced: Vec<i64> = listing
                .logs
                .range(base_offset + 1..end_offset.max(base_offset + 1))
                .copied()
                .collect();
            for old in replaced {
                for suffix in LOG_LAST {
                    remove(&self.dir.join(file_name(old, suffix)))?;
                }
                listing.logs.remove(&old);
            }
            listing.logs.insert(base_offset);
            listing.indexes.remove(&base_offset);
            listing.time_indexes.remove(&base_offset);
            if name(TXN_INDEX_SUFFIX).exists() {
                listing.txn_indexes.insert(base_offset);
            } else {
                listing.txn_indexes.remove(&base_offset);
            }
        }
        for base_offset in std::mem::take(&mut listing.swapped_txn_indexes) {
            let log = file_name(base_offset, LOG_SUFFIX);
            let is_of_old_log = self.dir.join(format!("{log}{CLEANED_SUFFIX}")).exists();
            let name = file_name(base_offset, TXN_INDEX_SUFFIX);
            let swap = self.dir.join(format!("{name}{SWAP_SUFFIX}"));
            if is_of_old_log || !listing.logs.contains(&base_offset) {
                remove(&swap)?;
            } else if swap.exists() {
                std::fs::rename(&swap, self.dir.join(name))
                    .map_err(|error| StorageError::io("rename", &swap, error))?;
                listing.txn_indexes.insert(base_offset);
            }
        }
        Ok(())
    }

    fn load_segments(
        &self,
        dir: &Arc<Path>,
        listing: &Listing,
        epochs: &mut LeaderEpochCache,
    ) -> Result<(Vec<Segment>, Tail), StorageError> {
        let interval = self.config.index_interval_bytes;
        let mut segments = Vec::with_capacity(listing.logs.len().max(1));
        for base_offset in &listing.logs {
            segments.push(Segment::open(dir, *base_offset, &self.config)?);
        }
        if segments.is_empty() {
            let base_offset = self.log_start_offset.unwrap_or(0).max(0);
            segments.push(Segment::create(dir, base_offset, &self.config)?);
        }
        for segment in &segments {
            if !listing.txn_indexes.contains(&segment.base_offset()) {
                segment.txn_index.assume_empty();
            }
        }
        let count = segments.len();
        let mut index = if self.was_clean {
            count - 1
        } else {
            segments
                .partition_point(|segment| segment.base_offset() <= self.recovery_point)
                .saturating_sub(1)
        };
        for segment in &segments[..index] {
            let base_offset = segment.base_offset();
            let has_indexes = listing.indexes.contains(&base_offset)
                && listing.time_indexes.contains(&base_offset)
                && segment.offset_index.looks_whole()
                && segment.time_index.looks_whole();
            if !has_indexes {
                tracing::warn!(segment = %segment.path().display(), "an index is missing or cut, building it again");
                segment.rebuild_indexes(interval, false)?;
                segment.close();
            }
        }
        let trust = if self.was_clean {
            Trust::Headers
        } else {
            Trust::NothingFrom(self.recovery_point)
        };
        loop {
            let tail = recover_segment(
                &mut segments[index],
                trust,
                epochs,
                interval,
                index + 1 == count,
            )?;
            if tail.was_cut && index + 1 < count {
                for dropped in segments.drain(index + 1..) {
                    tracing::warn!(segment = %dropped.path().display(), "dropping a segment behind a damaged one");
                    dropped.rename_to_deleted()?;
                }
            }
            if index + 1 >= segments.len() {
                return Ok((segments, tail));
            }
            segments[index].close();
            index += 1;
        }
    }

    fn assemble(
        self,
        dir: Arc<Path>,
        topic_id: Option<crate::types::TopicId>,
        segments: Vec<Segment>,
        tail: Tail,
        mut epochs: LeaderEpochCache,
    ) -> Result<Log, StorageError> {
        let first_offset = segments.first().map_or(0, Segment::base_offset);
        let log_start_offset = self.log_start_offset.unwrap_or(0).max(first_offset);
        let log_end_offset = tail.next_offset;
        if log_start_offset > log_end_offset {
            // Records were deleted up to an offset that the log lost in a crash; it goes on from there.
            let ends = (log_start_offset, log_end_offset);
            return self.start_over(&dir, topic_id, segments, ends, epochs);
        }
        let segments = SegmentList::new(segments.into_iter().map(Arc::new).collect());
        let mut producers = ProducerStateManager::new(self.topic_partition.clone());
        self.load_producers(&mut producers, &segments, log_start_offset, log_end_offset)?;
        epochs.trim(log_start_offset, log_end_offset);
        let high_watermark = self
            .high_watermark
            .unwrap_or(log_start_offset)
            .clamp(log_start_offset, log_end_offset);
        let clock = if log_end_offset == first_offset {
            RollClock::new(self.now_ms)
        } else {
            RollClock::of_old_segment(self.now_ms)
        };
        let log = Log {
            topic_partition: self.topic_partition,
            log_dir: self.log_dir,
            dir,
            topic_id: Mutex::new(topic_id),
            config: ArcSwap::from_pointee(self.config),
            segments: ArcSwap::from_pointee(segments),
            log_start_offset: AtomicI64::new(log_start_offset),
            high_watermark: AtomicI64::new(high_watermark),
            log_end_offset: AtomicI64::new(log_end_offset),
            first_unstable_offset: AtomicI64::new(NO_UNSTABLE_OFFSET),
            recovery_point: AtomicI64::new(self.recovery_point.clamp(0, log_end_offset)),
            has_unreplicated_txns: AtomicBool::new(false),
            has_open_files: AtomicBool::new(true),
            is_closed: AtomicBool::new(false),
            failure: OnceLock::new(),
            epochs: RwLock::new(epochs),
            flushing: Mutex::new(()),
            writer: Mutex::new(Writer {
                index_builder: tail.index_builder,
                roll_clock: clock,
                producers,
                tail_is_dirty: false,
                unflushed_since_ms: None,
                unflushed_records: 0,
            }),
            producer_id_expiration_ms: self.producer_id_expiration_ms,
        };
        log.on_producers_rebuilt(&mut log.writer.lock().producers);
        Ok(log)
    }

    fn start_over(
        mut self,
        dir: &Arc<Path>,
        topic_id: Option<crate::types::TopicId>,
        segments: Vec<Segment>,
        (log_start_offset, log_end_offset): (i64, i64),
        mut epochs: LeaderEpochCache,
    ) -> Result<Log, StorageError> {
        tracing::warn!(
            topic_partition = %self.topic_partition, log_start_offset, log_end_offset,
            "the log ends before its start offset, beginning anew there"
        );
        for segment in &segments {
            for path in segment.rename_to_deleted()? {
                remove(&path)?;
            }
        }
        let new = Segment::create(dir, log_start_offset, &self.config)?;
        epochs.truncate_from_end(log_start_offset);
        self.recovery_point = log_start_offset;
        let tail = Tail {
            next_offset: log_start_offset,
            index_builder: crate::segment::IndexBuilder::new(),
            was_cut: false,
        };
        self.assemble(Arc::clone(dir), topic_id, vec![new], tail, epochs)
    }

    /// Rebuilds producers from snapshot and log, and those transaction indexes that may not be whole.
    fn load_producers(
        &self,
        producers: &mut ProducerStateManager,
        segments: &SegmentList,
        log_start_offset: i64,
        end_offset: i64,
    ) -> Result<(), StorageError> {
        // A crash may have cost the last entries of a transaction index from the recovery point's segment on.
        let suspect_from = if self.was_clean {
            segments.as_slice().len()
        } else {
            segments.floor(self.recovery_point)
        };
        let doubtful: Vec<_> = segments
            .as_slice()
            .iter()
            .enumerate()
            .filter(|(index, segment)| *index >= suspect_from || !segment.txn_index.is_sane())
            .map(|(_, segment)| (Arc::clone(segment), Vec::<AbortedTxn>::new()))
            .collect();
        let latest_snapshot = doubtful.first().map_or(end_offset, |(segment, _)| {
            segment.base_offset().min(end_offset)
        });
        let mut doubtful = doubtful;
        let replay = Replay {
            dir: &self.dir,
            latest_snapshot,
            log_start_offset,
            end_offset,
            now_ms: self.now_ms,
            expiration_ms: self.producer_id_expiration_ms,
        };
        Log::rebuild_producers(producers, segments, &replay, |segment, txn| {
            if txn.is_aborted
                && let Some((_, txns)) = doubtful
                    .iter_mut()
                    .find(|(doubtful, _)| Arc::ptr_eq(doubtful, segment))
            {
                txns.push(aborted(txn));
            }
        })?;
        for (segment, txns) in doubtful {
            let fits = segment
                .txn_index
                .entries()
                .is_ok_and(|entries| *entries == txns);
            if !fits {
                tracing::warn!(segment = %segment.path().display(), entries = txns.len(), "building the transaction index again");
                segment
                    .txn_index
                    .replace(&txns)
                    .map_err(|error| StorageError::io("write", segment.txn_index.path(), error))?;
            }
        }
        for segment in segments.as_slice() {
            segment.close();
        }
        Ok(())
    }
}

fn rebuild_epochs(segments: &[Segment], epochs: &mut LeaderEpochCache) -> Result<(), StorageError> {
    for segment in segments {
        segment.scan(0, segment.size(), |_, header, _| {
            if header.partition_leader_epoch >= 0 {
                let epoch = LeaderEpoch(header.partition_leader_epoch);
                epochs.assign(epoch, header.base_offset);
            }
            Ok(())
        })?;
    }
    Ok(())
}
