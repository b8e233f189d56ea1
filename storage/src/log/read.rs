//! Reading: whole batches of one segment as a slice of its map. Takes no lock.

use std::sync::Arc;

use bytes::Bytes;

use crate::errors::ReadError;
use crate::segment::{Segment, SegmentList};

use super::{Log, LogRead};

impl Log {
    /// Whole batches from the one that holds `fetch_offset` on, all below `upper_bound_offset` and from one
    /// segment, at most `max_bytes` of them; with `at_least_one_batch` the first one even if it is longer. Empty
    /// when there is nothing below the bound. Finding the place may wait for the disk.
    ///
    /// # Errors
    /// [`ReadError::OffsetOutOfRange`] outside log start and log end.
    pub fn read(
        &self,
        fetch_offset: i64,
        max_bytes: usize,
        upper_bound_offset: i64,
        at_least_one_batch: bool,
    ) -> Result<LogRead, ReadError> {
        loop {
            let segments = self.segments.load_full();
            let read = self.read_in(
                &segments,
                fetch_offset,
                max_bytes,
                upper_bound_offset,
                at_least_one_batch,
            );
            // A truncation or a deletion meanwhile: what was found may be gone, or was never there.
            if Arc::ptr_eq(&segments, &self.segments.load()) {
                return read;
            }
        }
    }

    /// As [`Log::read`], for data that is not in the page cache: may wait for the disk, and has it read ahead.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn read_from_disk(
        &self,
        fetch_offset: i64,
        max_bytes: usize,
        upper_bound_offset: i64,
        at_least_one_batch: bool,
    ) -> Result<LogRead, ReadError> {
        let segments = self.segments.load_full();
        if fetch_offset < self.log_end_offset().min(upper_bound_offset)
            && let Some(segment) = segments.as_slice().get(segments.floor(fetch_offset))
        {
            segment.read_ahead(fetch_offset, max_bytes)?;
        }
        self.read(
            fetch_offset,
            max_bytes,
            upper_bound_offset,
            at_least_one_batch,
        )
    }

    /// As [`Log::read`], but None where finding or reading the batches would wait for the disk: then call
    /// `read_from_disk` and [`LogRead::prefault`] on a thread that may block.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn read_if_resident(
        &self,
        fetch_offset: i64,
        max_bytes: usize,
        upper_bound_offset: i64,
        at_least_one_batch: bool,
    ) -> Result<Option<LogRead>, ReadError> {
        let segments = self.segments.load_full();
        if fetch_offset < self.log_end_offset().min(upper_bound_offset)
            && let Some(segment) = segments.as_slice().get(segments.floor(fetch_offset))
            && !segment.is_resident_from(fetch_offset, max_bytes)?
        {
            return Ok(None);
        }
        let read = self.read(
            fetch_offset,
            max_bytes,
            upper_bound_offset,
            at_least_one_batch,
        )?;
        // More than was asked about: a first batch above the limit, or one from the next segment.
        let is_as_asked = read.records.len() <= max_bytes
            && segments
                .as_slice()
                .get(segments.floor(fetch_offset))
                .is_some_and(|segment| segment.base_offset() == read.segment_base_offset);
        Ok((is_as_asked || read.records.is_empty() || read.is_resident()).then_some(read))
    }

    fn read_in(
        &self,
        segments: &SegmentList,
        fetch_offset: i64,
        max_bytes: usize,
        upper_bound_offset: i64,
        at_least_one_batch: bool,
    ) -> Result<LogRead, ReadError> {
        self.check_open()?;
        let log_start_offset = self.log_start_offset();
        let log_end_offset = self.log_end_offset();
        if fetch_offset < log_start_offset || fetch_offset > log_end_offset {
            return Err(ReadError::OffsetOutOfRange {
                fetch_offset,
                log_start_offset,
                log_end_offset,
            });
        }
        let first = segments.floor(fetch_offset);
        let mut at = LogRead {
            records: Bytes::new(),
            segment_base_offset: segments
                .as_slice()
                .get(first)
                .map_or(log_start_offset, |segment| segment.base_offset()),
            position: 0,
        };
        if fetch_offset >= upper_bound_offset {
            return Ok(at);
        }
        for (index, segment) in segments.as_slice().iter().enumerate().skip(first) {
            if segment.base_offset() >= upper_bound_offset {
                break;
            }
            let end = self.readable_end(segments, index, upper_bound_offset)?;
            if end == 0 {
                continue;
            }
            // Compaction may have left nothing of this segment at or after the offset.
            let Some(found) = segment.find(fetch_offset, end)? else {
                continue;
            };
            at.segment_base_offset = segment.base_offset();
            at.position = found.position;
            let limit = u64::from(found.position).saturating_add(max_bytes as u64);
            let limit = u32::try_from(limit).unwrap_or(u32::MAX);
            let mut until = segment.boundary_below(found.position, limit, end)?;
            if until <= found.position {
                if !at_least_one_batch {
                    return Ok(at);
                }
                until = found.end_position();
            }
            self.note_open_files();
            at.records = segment.slice(found.position, until)?;
            return Ok(at);
        }
        Ok(at)
    }

    /// The position in a segment below which all batches lie below `upper_bound_offset`.
    fn readable_end(
        &self,
        segments: &SegmentList,
        index: usize,
        upper_bound_offset: i64,
    ) -> Result<u32, ReadError> {
        let segment: &Segment = &segments.as_slice()[index];
        // The size first, then the log end: an append publishes them the other way round, so this log end covers
        // this size.
        let size = segment.size();
        let end_offset = segments.end_offset_of(index, self.log_end_offset());
        if upper_bound_offset >= end_offset {
            return Ok(size);
        }
        Ok(segment
            .find(upper_bound_offset, size)?
            .map_or(size, |found| found.position))
    }
}
