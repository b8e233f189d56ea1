//! Compaction (`cleanup.policy=compact`): which part of a log is due, and the rewriting of segments.
//!
//! A pass reads the dirty part and notes the latest offset of each key, then writes groups of segments, from the
//! log's start to where the notes end, anew without what is outdated. A new segment is written beside the old
//! ones as `.cleaned`, forced to disk, renamed to `.swap`, and takes the place of the first segment of its group.
//! The active segment and everything from the last stable offset on is never touched.

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use crate::errors::{ReadError, StorageError};
use crate::index::AbortedTxn;
use crate::log_config::LogConfig;
use crate::record_batch::BatchHeader;
use crate::record_batch::DecompressLimits;
use crate::record_batch::compaction::{
    CompactedBatch, CompactionRules, OffsetMap, TransactionFilter, compact_batch, index_batch,
};
use crate::segment::{
    CLEANED_SUFFIX, IndexBuilder, LOG_FIRST, LOG_LAST, SWAP_SUFFIX, Segment, SegmentList, file_name,
};

use super::Log;
use super::throttle::{Stopped, Throttle};

/// What is written together.
const WRITE_BUFFER_BYTES: usize = 1 << 20;

/// How much of a log is due for compaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Filth {
    /// The first offset that was not compacted yet.
    first_dirty_offset: i64,
    /// The first offset that must not be compacted yet.
    first_uncleanable_offset: i64,
    /// The share of dirty bytes among those that may be compacted.
    pub(crate) dirty_ratio: f64,
}

/// Why a pass ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompactionError {
    /// A batch cannot be read: no pass can succeed.
    #[error("{0}")]
    Damaged(String),
    /// The segments changed meanwhile; another pass may succeed.
    #[error("the segments have changed during the pass")]
    Outdated,
    /// The broker stops.
    #[error("the broker stops")]
    Stopped,
    /// The disk said no; another pass may succeed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<Stopped> for CompactionError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl Log {
    /// How much is due, if enough is.
    pub(crate) fn filth(&self, now_ms: i64) -> Result<Option<Filth>, StorageError> {
        let config = self.config.load_full();
        if !config.cleanup_policy.compact || self.check_open().is_err() {
            return Ok(None);
        }
        let segments = self.segments.load_full();
        let first_uncleanable_offset = self.first_uncleanable_offset(&segments, &config, now_ms)?;
        let log_start_offset = self.log_start_offset();
        let first_dirty_offset = match self.log_dir.cleaner_offsets.get(&self.topic_partition) {
            // Of an earlier life of the log, or before its start: everything counts as dirty.
            Some(offset) if offset >= log_start_offset && offset <= self.log_end_offset() => offset,
            _ => log_start_offset,
        };
        let (mut clean_bytes, mut dirty_bytes) = (0u64, 0u64);
        let mut is_overdue = false;
        for segment in segments.as_slice() {
            let size = u64::from(segment.size());
            if segment.base_offset() < first_dirty_offset {
                clean_bytes += size;
            } else if segment.base_offset() < first_uncleanable_offset {
                dirty_bytes += size;
                is_overdue |= config.max_compaction_lag_ms != i64::MAX
                    && first_timestamp(segment).is_some_and(|first| {
                        now_ms.saturating_sub(first) > config.max_compaction_lag_ms
                    });
            }
        }
        if dirty_bytes == 0 {
            return Ok(None);
        }
        let dirty_ratio = dirty_bytes as f64 / (clean_bytes + dirty_bytes) as f64;
        let is_due = is_overdue || dirty_ratio > config.min_cleanable_dirty_ratio;
        Ok(is_due.then_some(Filth {
            first_dirty_offset,
            first_uncleanable_offset,
            dirty_ratio,
        }))
    }

    fn first_uncleanable_offset(
        &self,
        segments: &SegmentList,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<i64, StorageError> {
        let active_base = segments.active().map_or(0, |active| active.base_offset());
        let mut offset = active_base.min(self.last_stable_offset());
        if config.min_compaction_lag_ms > 0 {
            for segment in segments.as_slice() {
                if segment.base_offset() >= offset {
                    break;
                }
                let is_young = segment.max_timestamp()?.is_some_and(|max| {
                    max.timestamp > now_ms.saturating_sub(config.min_compaction_lag_ms)
                });
                if is_young {
                    offset = segment.base_offset();
                }
            }
        }
        Ok(offset)
    }

    /// One pass, with at most `map_bytes` for the keys, reading and writing as fast as `throttle` allows.
    pub(crate) fn compact(
        &self,
        filth: &Filth,
        map_bytes: usize,
        throttle: &Throttle,
        now_ms: i64,
    ) -> Result<(), CompactionError> {
        let config = self.config.load_full();
        let limits = DecompressLimits {
            max_bytes: config.max_decompressed_message_bytes,
        };
        let segments = self.segments.load_full();
        let aborted = aborted_transactions(&segments)?;
        let mut map = OffsetMap::new(map_bytes);
        let notes = KeyNotes {
            filth,
            limits,
            aborted: &aborted,
            throttle,
        };
        notes.take(&segments, &mut map)?;
        let end_offset = map.latest_offset() + 1;
        if end_offset <= filth.first_dirty_offset {
            return Err(CompactionError::Damaged(
                "not even one batch fits the map of keys".to_owned(),
            ));
        }
        let rules = CompactionRules::new(
            now_ms,
            config.delete_retention_ms,
            limits,
            &self.writer.lock().producers,
        );
        let mut pass = Pass {
            log: self,
            config: &config,
            rules,
            transactions: TransactionFilter::new(aborted),
            map,
            throttle,
        };
        let before = self.size_in_bytes();
        for group in groups(&segments, end_offset, &config) {
            pass.rewrite(group)?;
        }
        self.log_dir
            .cleaner_offsets
            .set(&self.topic_partition, end_offset)?;
        tracing::info!(
            topic_partition = %self.topic_partition, end_offset, keys = pass.map.len(),
            bytes_before = before, bytes_after = self.size_in_bytes(), "compacted"
        );
        Ok(())
    }
}

/// The first half of a pass: the latest offset of each key of the dirty part.
struct KeyNotes<'a> {
    filth: &'a Filth,
    limits: DecompressLimits,
    aborted: &'a [AbortedTxn],
    throttle: &'a Throttle,
}

impl KeyNotes<'_> {
    /// Fills `map` as far as it goes.
    fn take(&self, segments: &SegmentList, map: &mut OffsetMap) -> Result<(), CompactionError> {
        let start = self.filth.first_dirty_offset;
        let first_uncleanable_offset = self.filth.first_uncleanable_offset;
        let mut transactions = TransactionFilter::new(
            self.aborted
                .iter()
                .copied()
                .filter(|txn| txn.last_offset >= start),
        );
        for segment in &segments.as_slice()[segments.floor(start)..] {
            if segment.base_offset() >= first_uncleanable_offset {
                break;
            }
            let mut is_over = false;
            let mut paid = Ok(());
            let end = segment.scan(0, segment.size(), |_, header, bytes| {
                is_over = header.base_offset >= first_uncleanable_offset;
                if is_over || header.last_offset() < start {
                    return if is_over { Err(String::new()) } else { Ok(()) };
                }
                paid = self.throttle.pay(bytes.len());
                if paid.is_err() {
                    return Err(String::new());
                }
                let fits = index_batch(header, bytes, start, self.limits, &mut transactions, map)
                    .map_err(|error| error.to_string())?;
                is_over = !fits;
                if fits { Ok(()) } else { Err(String::new()) }
            })?;
            paid?;
            if is_over {
                break;
            }
            if let Some(damage) = end.damage {
                return Err(damaged(segment, end.position, &damage));
            }
        }
        Ok(())
    }
}

/// What is the same for all groups of a pass.
struct Pass<'a> {
    log: &'a Log,
    config: &'a LogConfig,
    rules: CompactionRules,
    transactions: TransactionFilter,
    map: OffsetMap,
    throttle: &'a Throttle,
}

impl Pass<'_> {
    /// Writes a group of segments anew as one, and puts it in their place.
    fn rewrite(&mut self, group: &[Arc<Segment>]) -> Result<(), CompactionError> {
        let Some(first) = group.first() else {
            return Ok(());
        };
        let config = LogConfig {
            preallocate: false,
            ..self.config.clone()
        };
        let new = Segment::create_with_suffix(
            &self.log.dir,
            first.base_offset(),
            CLEANED_SUFFIX,
            &config,
        )?;
        let result = self.fill(&new, group).and_then(|()| self.swap(&new, group));
        if result.is_ok() {
            self.remove_snapshots_of(&group[1..]);
        } else {
            for kind in LOG_FIRST {
                let name = file_name(first.base_offset(), kind);
                let _ = std::fs::remove_file(self.log.dir.join(format!("{name}{CLEANED_SUFFIX}")));
            }
        }
        result
    }

    fn fill(&mut self, new: &Segment, group: &[Arc<Segment>]) -> Result<(), CompactionError> {
        let mut output = Output::new(new, self.config.index_interval_bytes, self.throttle);
        for segment in group {
            let end = segment.scan(0, segment.size(), |_, header, bytes| {
                let (rules, map) = (&self.rules, &self.map);
                output.pay_for(bytes)?;
                let compacted = compact_batch(header, bytes, rules, &mut self.transactions, map)
                    .map_err(|error| error.to_string())?;
                match compacted {
                    CompactedBatch::Dropped => Ok(()),
                    CompactedBatch::Kept => output.push(bytes),
                    CompactedBatch::Replaced(bytes) => output.push(&bytes),
                }
            })?;
            if let Some(error) = output.error.take() {
                return Err(error);
            }
            if let Some(damage) = end.damage {
                return Err(damaged(segment, end.position, &damage));
            }
        }
        output.finish()?;
        new.txn_index
            .replace(&self.transactions.take_retained())
            .map_err(|error| StorageError::io("write", new.txn_index.path(), error))?;
        if let Some(last) = group.last()
            && let Err(error) = new.copy_modified_time(last)
        {
            tracing::debug!(segment = %new.path().display(), %error, "cannot keep the time of a compacted segment");
        }
        // After an error the new files go, and the old ones are as they were.
        self.log
            .log_dir
            .disk()
            .sync(new)
            .map_err(|error| StorageError::io("flush", new.path(), error.into_source()))?;
        new.close();
        Ok(())
    }

    fn swap(&self, new: &Segment, group: &[Arc<Segment>]) -> Result<(), CompactionError> {
        let (log, dir): (&Log, &Path) = (self.log, &self.log.dir);
        let base_offset = new.base_offset();
        let _writer = log.writer.lock();
        log.check_open()?;
        let current = log.segments.load_full();
        let at = current.floor(base_offset);
        let is_same = current.as_slice()[at..]
            .iter()
            .zip(group)
            .filter(|(current, old)| Arc::ptr_eq(current, old))
            .count()
            == group.len();
        if !is_same || at + group.len() >= current.as_slice().len() {
            return Err(CompactionError::Outdated);
        }
        for old in group {
            old.retire()?;
        }
        Segment::rename_files(dir, base_offset, LOG_LAST, CLEANED_SUFFIX, SWAP_SUFFIX)?;
        // From here on a crash finishes the swap.
        log.discard(group, self.config.file_delete_delay_ms);
        Segment::rename_files(dir, base_offset, LOG_FIRST, SWAP_SUFFIX, "")?;
        let new = Segment::open(&log.dir, base_offset, self.config)?;
        let mut list = current.as_slice()[..at].to_vec();
        list.push(Arc::new(new));
        list.extend_from_slice(&current.as_slice()[at + group.len()..]);
        log.segments.store(Arc::new(SegmentList::new(list)));
        Ok(())
    }

    /// Unlinks the producer snapshots where these segments began, which are no segment's beginning any more.
    fn remove_snapshots_of(&self, gone: &[Arc<Segment>]) {
        let is_of = |offset| gone.iter().any(|segment| segment.base_offset() == offset);
        if !gone.is_empty() {
            self.log.remove_snapshots(is_of);
        }
    }
}

/// A segment that is being written.
struct Output<'a> {
    segment: &'a Segment,
    buffer: Vec<u8>,
    index_builder: IndexBuilder,
    index_interval_bytes: u32,
    throttle: &'a Throttle,
    /// Set when the pass ends for another reason than a batch.
    error: Option<CompactionError>,
}

impl<'a> Output<'a> {
    fn new(segment: &'a Segment, index_interval_bytes: u32, throttle: &'a Throttle) -> Self {
        Self {
            segment,
            buffer: Vec::new(),
            index_builder: IndexBuilder::new(),
            index_interval_bytes,
            throttle,
            error: None,
        }
    }

    /// Waits for as long as reading a batch should have taken.
    fn pay_for(&mut self, batch: &[u8]) -> Result<(), String> {
        let paid = self.throttle.pay(batch.len());
        self.note(paid.map_err(CompactionError::from))
    }

    fn note(&mut self, result: Result<(), CompactionError>) -> Result<(), String> {
        result.map_err(|error| {
            let text = error.to_string();
            self.error = Some(error);
            text
        })
    }

    fn push(&mut self, batch: &[u8]) -> Result<(), String> {
        let header = BatchHeader::parse(batch).map_err(|error| error.to_string())?;
        let position = self.segment.size() as usize + self.buffer.len();
        if position + batch.len() > i32::MAX as usize {
            return Err("the compacted segment becomes too large".to_owned());
        }
        let due = self
            .index_builder
            .on_batch(&header, position as u32, self.index_interval_bytes);
        if let Some((offset_entry, time_entry)) = due {
            self.segment.offset_index.append(offset_entry);
            self.segment.time_index.maybe_append(time_entry);
        }
        self.buffer.extend_from_slice(batch);
        if self.buffer.len() >= WRITE_BUFFER_BYTES {
            let written = self.write();
            self.note(written)?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), CompactionError> {
        self.segment
            .write_at_end(&mut [IoSlice::new(&self.buffer)])?;
        self.segment
            .publish_size(self.segment.size() + self.buffer.len() as u32);
        let paid = self.throttle.pay(self.buffer.len());
        self.buffer.clear();
        Ok(paid?)
    }

    fn finish(mut self) -> Result<(), CompactionError> {
        self.write()?;
        if let Some(max) = self.index_builder.max_timestamp() {
            self.segment.time_index.maybe_append(max);
        }
        Ok(self.segment.write_pending()?)
    }
}

fn damaged(segment: &Segment, position: u32, reason: &str) -> CompactionError {
    CompactionError::Damaged(segment.corrupt_at(position, reason).to_string())
}

/// The aborted transactions of all segments: that of a record may have its marker much later.
fn aborted_transactions(segments: &SegmentList) -> Result<Vec<AbortedTxn>, StorageError> {
    let mut all = Vec::new();
    for segment in segments.as_slice() {
        let entries = segment
            .txn_index
            .entries()
            .map_err(|error| StorageError::io("read", segment.txn_index.path(), error))?;
        all.extend_from_slice(&entries);
    }
    Ok(all)
}

/// When a segment's first batch was written, by its own time.
fn first_timestamp(segment: &Segment) -> Option<i64> {
    let found: Result<_, ReadError> = segment.find(segment.base_offset(), segment.size());
    Some(found.ok()??.header.max_timestamp)
}

/// The segments that begin before `end_offset`, but the active one, in groups that fit one segment each.
fn groups<'a>(
    segments: &'a SegmentList,
    end_offset: i64,
    config: &LogConfig,
) -> Vec<&'a [Arc<Segment>]> {
    let all = segments.as_slice();
    let count = all[..all.len().saturating_sub(1)]
        .partition_point(|segment| segment.base_offset() < end_offset);
    let mut groups = Vec::new();
    let mut start = 0;
    while start < count {
        let base_offset = all[start].base_offset();
        let mut size = u64::from(all[start].size());
        let mut end = start + 1;
        while end < count {
            size += u64::from(all[end].size());
            let last_offset = all[end + 1].base_offset() - 1;
            if size > u64::from(config.segment_bytes)
                || last_offset - base_offset > i64::from(i32::MAX)
            {
                break;
            }
            end += 1;
        }
        groups.push(&all[start..end]);
        start = end;
    }
    groups
}
