//! Finding batches in a segment: by offset with the index's help, by position, and by walking over all of them.

use crate::errors::{ReadError, StorageError};
use crate::index::{OffsetEntry, TimeEntry};
use crate::mapped_file::{FileMap, will_need};
use crate::record_batch::{BatchHeader, Batches};

use super::{IndexBuilder, READ_AHEAD_BYTES, Segment};

/// A walk that has not found its batch in this many bytes has no index entry to go by: from there on the file is read
/// ahead.
const NEAR_BYTES: usize = 128 << 10;

/// A batch that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) position: u32,
    pub(crate) header: BatchHeader,
}

impl Found {
    /// Where the next batch begins.
    pub(crate) fn end_position(&self) -> u32 {
        self.position + self.header.size_in_bytes() as u32
    }
}

/// How a walk over all batches ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScanEnd {
    /// Where the good batches end.
    pub(crate) position: u32,
    /// What is wrong there; None when it is the segment's end.
    pub(crate) damage: Option<String>,
}

impl Segment {
    /// The header at `position`, if a whole batch of this segment can lie there.
    fn header_at(&self, map: &FileMap, position: u32, end: u32) -> Option<BatchHeader> {
        let header = BatchHeader::parse(map.get(position as usize..end as usize)).ok()?;
        let fits = u64::from(position) + header.size_in_bytes() as u64 <= u64::from(end);
        (fits && header.base_offset >= self.base_offset).then_some(header)
    }

    /// Where to begin to look for `offset`: at the batch of an index entry, or at the segment's start. An entry
    /// is believed when a batch lies there that begins at or before `offset`.
    fn floor_position(&self, map: &FileMap, offset: i64, end: u32) -> u32 {
        let entry = match self.offset_index.lookup(offset) {
            Ok(None) => return 0,
            Ok(Some(entry)) => entry,
            Err(error) => {
                self.note_damage(&error.to_string());
                return 0;
            }
        };
        // The index may know batches that are not published yet.
        if entry.position >= end && entry.position < self.size() {
            return 0;
        }
        match self.header_at(map, entry.position, end) {
            Some(header) if header.base_offset <= offset => entry.position,
            _ => {
                self.note_damage("an entry does not point at its batch");
                0
            }
        }
    }

    /// The first batch, before `end`, whose last offset is at least `offset`.
    pub(crate) fn find(&self, offset: i64, end: u32) -> Result<Option<Found>, ReadError> {
        let map = self.map(end)?;
        let start = self.floor_position(&map, offset, end);
        self.find_from(&map, start, end, |header| header.last_offset() >= offset)
    }

    /// The first batch from `start` on, before `end`, for which `is_it` holds.
    pub(crate) fn find_from(
        &self,
        map: &FileMap,
        start: u32,
        end: u32,
        is_it: impl Fn(&BatchHeader) -> bool,
    ) -> Result<Option<Found>, ReadError> {
        let mut batches = Batches::new(map.get(start as usize..end as usize));
        // Behind an index entry the batch is near, and asking costs more than finding it.
        let far = start as usize + NEAR_BYTES;
        let mut asked_for = far;
        loop {
            let position = start + batches.position() as u32;
            let is_far = position as usize >= far;
            let is_due = asked_for <= position as usize + READ_AHEAD_BYTES / 2;
            if is_far && is_due && asked_for < end as usize {
                let from = asked_for.max(position as usize);
                asked_for = from.saturating_add(READ_AHEAD_BYTES).min(end as usize);
                will_need(map.get(from..asked_for));
            }
            match batches.next() {
                None => return Ok(None),
                Some(Ok((header, _))) if is_it(&header) => {
                    return Ok(Some(Found { position, header }));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(self.corrupt_at(position, &error.to_string())),
            }
        }
    }

    /// The offset after the last batch; of an empty segment, where it begins. Looks only at the headers behind the
    /// last index entry.
    pub(crate) fn next_offset(&self) -> Result<i64, ReadError> {
        let end = self.size();
        let mut next_offset = self.base_offset;
        if end > 0 {
            let map = self.map(end)?;
            let start = self.floor_position(&map, i64::MAX, end);
            let mut position = start;
            for batch in Batches::new(map.get(start as usize..end as usize)) {
                let (header, _) =
                    batch.map_err(|error| self.corrupt_at(position, &error.to_string()))?;
                next_offset = header.next_offset();
                position += header.size_in_bytes() as u32;
            }
        }
        Ok(next_offset)
    }

    pub(crate) fn corrupt_at(&self, position: u32, reason: &str) -> ReadError {
        ReadError::CorruptMessage(format!(
            "{} at position {position}: {reason}",
            self.path().display()
        ))
    }

    /// The end of the last batch that ends at or before `limit`, given that a batch begins at `start`; `start`
    /// itself when the first one is longer.
    pub(crate) fn boundary_below(
        &self,
        start: u32,
        limit: u32,
        end: u32,
    ) -> Result<u32, ReadError> {
        if limit >= end {
            return Ok(end);
        }
        let map = self.map(end)?;
        let from = match self.offset_index.lookup_position(limit) {
            Ok(Some(OffsetEntry { position, .. }))
                if position > start && self.header_at(&map, position, end).is_some() =>
            {
                position
            }
            _ => start,
        };
        let is_beyond = |found: &Found| found.end_position() > limit;
        let mut boundary = from;
        for next in Batches::new(map.get(from as usize..end as usize)) {
            let (header, _) =
                next.map_err(|error| self.corrupt_at(boundary, &error.to_string()))?;
            let found = Found {
                position: boundary,
                header,
            };
            if is_beyond(&found) {
                break;
            }
            boundary = found.end_position();
        }
        Ok(boundary)
    }

    /// Shows every batch from `start` to `end` to `visit`, which says what is wrong with one, if anything.
    /// Ends at the first that does not parse, is cut off, or is refused.
    pub(crate) fn scan(
        &self,
        start: u32,
        end: u32,
        mut visit: impl FnMut(u32, &BatchHeader, &[u8]) -> Result<(), String>,
    ) -> Result<ScanEnd, StorageError> {
        if start >= end {
            return Ok(ScanEnd {
                position: end,
                damage: None,
            });
        }
        let map = self.map(end)?;
        let mut batches = Batches::new(map.get(start as usize..end as usize));
        loop {
            let position = start + batches.position() as u32;
            let damage = match batches.next() {
                None if position == end => None,
                None => Some(format!("a batch is cut off after {} bytes", end - position)),
                Some(Err(error)) => Some(error.to_string()),
                Some(Ok((header, bytes))) => match visit(position, &header, bytes) {
                    Ok(()) => continue,
                    Err(reason) => Some(reason),
                },
            };
            return Ok(ScanEnd { position, damage });
        }
    }

    /// Whether the batch that a time index entry names has the entry's timestamp.
    pub(crate) fn is_entry_of_batch(&self, entry: &TimeEntry, end: u32) -> bool {
        self.find(entry.offset, end).is_ok_and(|found| {
            found.is_some_and(|found| {
                found.header.base_offset <= entry.offset
                    && found.header.max_timestamp == entry.timestamp
            })
        })
    }

    /// The largest timestamp by looking at every batch's header.
    pub(super) fn scan_max_timestamp(&self, end: u32) -> Result<Option<TimeEntry>, StorageError> {
        let mut builder = IndexBuilder::new();
        self.scan(0, end, |position, header, _| {
            builder.on_batch(header, position, u32::MAX);
            Ok(())
        })?;
        Ok(builder.max_timestamp())
    }

    /// The largest timestamp among the batches that reach `offset` or beyond.
    pub(crate) fn max_timestamp_from(
        &self,
        offset: i64,
    ) -> Result<Option<TimeEntry>, StorageError> {
        let mut builder = IndexBuilder::new();
        self.scan(0, self.size(), |position, header, _| {
            if header.last_offset() >= offset {
                builder.on_batch(header, position, u32::MAX);
            }
            Ok(())
        })?;
        Ok(builder.max_timestamp())
    }

    /// Builds both sparse indexes again from the batches' headers; must not run beside an append. Gives the
    /// builder's state at the end.
    pub(crate) fn rebuild_indexes(
        &self,
        index_interval_bytes: u32,
        is_active: bool,
    ) -> Result<IndexBuilder, StorageError> {
        let mut builder = IndexBuilder::new();
        let mut offsets = Vec::new();
        let mut times: Vec<TimeEntry> = Vec::new();
        let add_time = |times: &mut Vec<TimeEntry>, entry: TimeEntry| {
            if times
                .last()
                .is_none_or(|last| entry.timestamp > last.timestamp)
            {
                times.push(entry);
            }
        };
        self.scan(0, self.size(), |position, header, _| {
            if let Some((offset, time)) = builder.on_batch(header, position, index_interval_bytes) {
                offsets.push(offset);
                add_time(&mut times, time);
            }
            Ok(())
        })?;
        if let Some(max) = builder.max_timestamp()
            && !is_active
        {
            add_time(&mut times, max);
        }
        self.offset_index
            .replace(&offsets)
            .and_then(|()| self.time_index.replace(&times))
            .map_err(|error| StorageError::io("build the indexes of", self.path(), error))?;
        self.set_max_timestamp(builder.max_timestamp());
        Ok(builder)
    }
}
