//! Compaction of single batches (`cleanup.policy=compact`), as pure functions.
//!
//! A pass over a log has two phases. First every batch from the first dirty offset up to the first
//! that must not be compacted yet goes through [`index_batch`], which notes the latest offset of each
//! key in an [`OffsetMap`]. Then every batch from the log's start up to where the map got goes through
//! [`compact_batch`], which says what becomes of it:
//!
//! - a record stays if it is the latest of its key; one of an aborted transaction never does;
//! - a tombstone stays until `delete.retention.ms` after the pass that first had it as the latest of
//!   its key, which sets the batch's delete horizon (KIP-534);
//! - a transaction marker stays while a record of its transaction was still met in this pass, then
//!   until a delete horizon too;
//! - the last batch of a producer that is still known stays, without its records if need be, for its
//!   sequence numbers; offsets are never used again.
//!
//! Which segments are read, grouped and swapped is the log's business. Neither phase may reach the
//! last stable offset.

mod offset_map;
mod transactions;

use std::collections::HashMap;

use bytes::Bytes;

pub use offset_map::OffsetMap;
pub use transactions::TransactionFilter;

use super::builder::RecordBatchBuilder;
use super::codec::{Compression, CompressionCodec, DecompressLimits, decompress};
use super::error::BatchError;
use super::header::{BATCH_HEADER_BYTES, BatchHeader, TimestampType};
use super::record::RawRecord;
use crate::producer_state::ProducerStateManager;

/// Where a producer that is still known was last heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastProducerRecord {
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// Offset of its last data record; `None` if a marker is all that its epoch has.
    pub last_data_offset: Option<i64>,
}

/// What is the same for all batches of a pass.
#[derive(Debug, Clone)]
pub struct CompactionRules {
    /// The time of the pass in ms.
    pub now_ms: i64,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// How far a batch may inflate.
    pub limits: DecompressLimits,
    /// The producers that are known at the start of the pass.
    pub producers: HashMap<i64, LastProducerRecord>,
}

impl CompactionRules {
    /// Rules with the producers that `producers` knows now.
    pub fn new(
        now_ms: i64,
        delete_retention_ms: i64,
        limits: DecompressLimits,
        producers: &ProducerStateManager,
    ) -> Self {
        let producers = producers
            .entries()
            .map(|(producer_id, entry)| {
                let last = LastProducerRecord {
                    producer_epoch: entry.producer_epoch,
                    last_data_offset: entry.last_data_offset(),
                };
                (producer_id, last)
            })
            .collect();
        Self {
            now_ms,
            delete_retention_ms,
            limits,
            producers,
        }
    }

    fn is_last_of_producer(&self, header: &BatchHeader) -> bool {
        header.has_producer_id()
            && self.producers.get(&header.producer_id).is_some_and(|last| {
                match last.last_data_offset {
                    Some(offset) => header.last_offset() == offset,
                    None => header.is_control() && header.producer_epoch == last.producer_epoch,
                }
            })
    }
}

/// What becomes of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactedBatch {
    /// It stays as it is.
    Kept,
    /// This one takes its place: fewer records or none, at the same offsets, or a delete horizon set.
    Replaced(Bytes),
    /// Nothing of it stays.
    Dropped,
}

/// Notes the latest offset of each key in a batch. Records before `start_offset` are left out, so are
/// control records and those of aborted transactions. Gives `false` when the map is full: the second
/// phase must end with the batch before this one, or keep what the map has not seen.
///
/// # Errors
/// A batch that cannot be read; the log must not be compacted then.
pub fn index_batch(
    header: &BatchHeader,
    batch: &[u8],
    start_offset: i64,
    limits: DecompressLimits,
    transactions: &mut TransactionFilter,
    map: &mut OffsetMap,
) -> Result<bool, BatchError> {
    if header.is_control() {
        transactions.on_control_batch(header, batch)?;
    } else if !transactions.on_data_batch(header) {
        let inflated = inflate(header, batch, limits)?;
        let records = inflated.as_deref().unwrap_or_else(|| payload_of(batch));
        let mut position = 0;
        for index in 0..header.records_count.max(0) {
            let record = RawRecord::parse(records, &mut position, index as usize)?;
            let offset = header
                .base_offset
                .saturating_add(i64::from(record.offset_delta));
            if offset < start_offset {
                continue;
            }
            if let Some(key) = record.key
                && !map.put(key, offset)
            {
                return Ok(false);
            }
        }
    }
    map.advance_to(header.last_offset());
    Ok(true)
}

/// Says what becomes of a batch. Batches must come in the order of the log, from its start.
///
/// # Errors
/// A batch that cannot be read; the log must not be compacted then.
pub fn compact_batch(
    header: &BatchHeader,
    batch: &[u8],
    rules: &CompactionRules,
    transactions: &mut TransactionFilter,
    map: &OffsetMap,
) -> Result<CompactedBatch, BatchError> {
    let is_past_horizon = header
        .delete_horizon_ms()
        .is_some_and(|horizon| horizon <= rules.now_ms);
    // A marker whose transaction has no records left.
    let mut is_spent_marker = false;
    let are_records_dropped = if header.is_control() {
        is_spent_marker = transactions.on_control_batch(header, batch)?;
        is_spent_marker && is_past_horizon
    } else {
        transactions.on_data_batch(header)
    };
    let is_last_of_producer = rules.is_last_of_producer(header);
    if header.records_count == 0 || are_records_dropped {
        return emptied(header, is_last_of_producer);
    }
    if header.is_control() {
        let sets_horizon = is_spent_marker && header.delete_horizon_ms().is_none();
        return match sets_horizon {
            false => Ok(CompactedBatch::Kept),
            true => rewrite(header, payload_of(batch), Some(rules.new_horizon()), |_| {
                true
            }),
        };
    }

    let inflated = inflate(header, batch, rules.limits)?;
    let records = inflated.as_deref().unwrap_or_else(|| payload_of(batch));
    let is_retained = |record: &RawRecord<'_>| {
        let offset = header
            .base_offset
            .saturating_add(i64::from(record.offset_delta));
        if offset > map.latest_offset() {
            return true;
        }
        // Without a key a record cannot be compacted; none gets into a compacted topic.
        let Some(key) = record.key else { return false };
        map.latest_of(key).is_none_or(|latest| offset >= latest)
            && (record.value.is_some() || !is_past_horizon)
    };
    let (mut retained, mut has_tombstone, mut position) = (0, false, 0);
    for index in 0..header.records_count {
        let record = RawRecord::parse(records, &mut position, index as usize)?;
        if is_retained(&record) {
            retained += 1;
            has_tombstone |= record.value.is_none();
        }
    }
    let sets_horizon = has_tombstone && header.delete_horizon_ms().is_none();
    if retained == 0 {
        emptied(header, is_last_of_producer)
    } else if retained == header.records_count && !sets_horizon {
        Ok(CompactedBatch::Kept)
    } else {
        let horizon = header
            .delete_horizon_ms()
            .or_else(|| sets_horizon.then(|| rules.new_horizon()));
        rewrite(header, records, horizon, is_retained)
    }
}

impl CompactionRules {
    fn new_horizon(&self) -> i64 {
        self.now_ms.saturating_add(self.delete_retention_ms)
    }
}

fn payload_of(batch: &[u8]) -> &[u8] {
    batch.get(BATCH_HEADER_BYTES..).unwrap_or_default()
}

/// The records of a compressed batch; `None` if it is not compressed.
fn inflate(
    header: &BatchHeader,
    batch: &[u8],
    limits: DecompressLimits,
) -> Result<Option<Vec<u8>>, BatchError> {
    match header.compression()? {
        Compression::None => Ok(None),
        _ if header.records_count == 0 => Ok(None),
        codec => decompress(codec, payload_of(batch), limits).map(Some),
    }
}

/// A batch without its records, if it is worth keeping.
fn emptied(header: &BatchHeader, is_kept: bool) -> Result<CompactedBatch, BatchError> {
    if !is_kept {
        return Ok(CompactedBatch::Dropped);
    }
    if header.records_count == 0 {
        return Ok(CompactedBatch::Kept);
    }
    builder_like(header, None)
        .max_timestamp(header.max_timestamp)
        .build()
        .map(CompactedBatch::Replaced)
}

/// The records that `is_retained` picks, at their offsets in a batch of the same range.
fn rewrite(
    header: &BatchHeader,
    records: &[u8],
    delete_horizon_ms: Option<i64>,
    is_retained: impl Fn(&RawRecord<'_>) -> bool,
) -> Result<CompactedBatch, BatchError> {
    let mut builder = builder_like(header, delete_horizon_ms);
    let mut position = 0;
    for index in 0..header.records_count {
        let record = RawRecord::parse(records, &mut position, index as usize)?;
        if is_retained(&record) {
            let timestamp = match header.timestamp_type() {
                TimestampType::CreateTime => {
                    header.base_timestamp.wrapping_add(record.timestamp_delta)
                }
                TimestampType::LogAppendTime => header.max_timestamp,
            };
            builder.append_raw(timestamp, &record);
        }
    }
    builder.build().map(CompactedBatch::Replaced)
}

/// A builder with everything of a batch but its records and their largest timestamp.
fn builder_like(header: &BatchHeader, delete_horizon_ms: Option<i64>) -> RecordBatchBuilder {
    let compression = header.compression().unwrap_or_default();
    let mut builder = RecordBatchBuilder::new()
        .compression(CompressionCodec::from(compression))
        .base_offset(header.base_offset)
        .last_offset_delta(header.last_offset_delta)
        .leader_epoch(header.partition_leader_epoch)
        .producer(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
        )
        .delete_horizon_ms(delete_horizon_ms);
    if header.timestamp_type() == TimestampType::LogAppendTime {
        builder = builder.log_append_time(header.max_timestamp);
    }
    if header.is_transactional() {
        builder = builder.transactional();
    }
    if header.is_control() {
        builder = builder.control();
    }
    builder
}

#[cfg(test)]
mod tests;
