//! Look-ups by time.

use crate::errors::ReadError;
use crate::index::TimeEntry;
use crate::record_batch::{BatchHeader, DecompressLimits, decode_records};
use crate::segment::{Found, Segment};
use crate::types::LeaderEpoch;

use super::{Log, TimestampedOffset};

impl Log {
    /// The first record, in order of offsets, whose timestamp is at least `target_ms`, if it lies below
    /// `upper_bound_offset`. May wait for the disk.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn offset_for_timestamp(
        &self,
        target_ms: i64,
        upper_bound_offset: i64,
    ) -> Result<Option<TimestampedOffset>, ReadError> {
        self.check_open()?;
        let segments = self.segments.load_full();
        let log_start_offset = self.log_start_offset();
        for segment in &segments.as_slice()[segments.floor(log_start_offset)..] {
            let reaches_target = segment
                .max_timestamp()?
                .is_some_and(|max| max.timestamp >= target_ms);
            if !reaches_target {
                continue;
            }
            let found = first_at_or_after(segment, target_ms, log_start_offset, self.limits())?;
            if let Some(found) = found {
                return Ok((found.offset < upper_bound_offset).then_some(found));
            }
        }
        Ok(None)
    }

    /// The record with the largest timestamp, the first one if several have it, if it lies below
    /// `upper_bound_offset`. May wait for the disk.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn offset_of_max_timestamp(
        &self,
        upper_bound_offset: i64,
    ) -> Result<Option<TimestampedOffset>, ReadError> {
        self.check_open()?;
        let segments = self.segments.load_full();
        let log_start_offset = self.log_start_offset();
        let mut candidates: Vec<(TimeEntry, &Segment)> = Vec::new();
        for segment in &segments.as_slice()[segments.floor(log_start_offset)..] {
            let max = if segment.base_offset() >= log_start_offset {
                segment.max_timestamp()?
            } else {
                segment.max_timestamp_from(log_start_offset)?
            };
            candidates.extend(max.map(|max| (max, &**segment)));
        }
        // The largest first; among equals the earliest, since sorting is stable.
        candidates.sort_by_key(|(max, _)| std::cmp::Reverse(max.timestamp));
        for (max, segment) in candidates {
            if max.timestamp < 0 {
                return Ok(None);
            }
            let found = first_at_or_after(segment, max.timestamp, log_start_offset, self.limits())?;
            // None: all records of that time lie below the log's start, though their batch does not.
            if let Some(found) = found {
                return Ok((found.offset < upper_bound_offset).then_some(found));
            }
        }
        Ok(None)
    }

    fn limits(&self) -> DecompressLimits {
        DecompressLimits {
            max_bytes: self.config.load().max_decompressed_message_bytes,
        }
    }
}

/// The first record of the segment at or after `target_ms` and `min_offset`.
fn first_at_or_after(
    segment: &Segment,
    target_ms: i64,
    min_offset: i64,
    limits: DecompressLimits,
) -> Result<Option<TimestampedOffset>, ReadError> {
    let size = segment.size();
    let mut position = start_position(segment, target_ms, size)?;
    let map = segment.map(size)?;
    let reaches = |header: &BatchHeader| {
        header.max_timestamp >= target_ms && header.last_offset() >= min_offset
    };
    while let Some(batch) = segment.find_from(&map, position, size, reaches)? {
        let found = first_record(segment, &batch, limits, |timestamp, offset| {
            timestamp >= target_ms && offset >= min_offset
        })?;
        if found.is_some() {
            return Ok(found);
        }
        position = batch.end_position();
    }
    Ok(None)
}

/// Where to begin to look for a record at or after `target_ms`: no batch before it reaches that time.
fn start_position(segment: &Segment, target_ms: i64, size: u32) -> Result<u32, ReadError> {
    // The last entry *before* the target: one at the target may be of a batch whose first records are later than
    // another batch's of the same time.
    let entry = match segment.time_index.lookup(target_ms.saturating_sub(1)) {
        Ok(Some(entry)) => entry,
        Ok(None) => return Ok(0),
        Err(error) => {
            segment.note_damage(&error.to_string());
            return Ok(0);
        }
    };
    match segment.find(entry.offset, size)? {
        Some(found)
            if found.header.base_offset <= entry.offset
                && found.header.max_timestamp == entry.timestamp =>
        {
            Ok(found.position)
        }
        _ => {
            segment.note_damage("a time index entry does not name its batch");
            Ok(0)
        }
    }
}

/// The first record of a batch for which `is_it`, given timestamp and offset, holds.
fn first_record(
    segment: &Segment,
    batch: &Found,
    limits: DecompressLimits,
    is_it: impl Fn(i64, i64) -> bool,
) -> Result<Option<TimestampedOffset>, ReadError> {
    let bytes = segment.slice(batch.position, batch.end_position())?;
    let corrupt =
        |error: &dyn std::fmt::Display| segment.corrupt_at(batch.position, &error.to_string());
    let epoch = batch.header.partition_leader_epoch;
    for record in decode_records(&bytes, limits).map_err(|error| corrupt(&error))? {
        let record = record.map_err(|error| corrupt(&error))?;
        if is_it(record.timestamp, record.offset) {
            return Ok(Some(TimestampedOffset {
                offset: record.offset,
                timestamp: record.timestamp,
                leader_epoch: (epoch >= 0).then_some(LeaderEpoch(epoch)),
            }));
        }
    }
    Ok(None)
}
