//! One pass over the framing of a batch's records, without keeping or copying any of them.
//!
//! This is what lets a produced batch be stored as it came: after it, every length, count and offset
//! in the payload is known to be right. A payload that is compressed is inflated through a small
//! window, so a record never has to fit into memory.

use super::codec::Inflater;
use super::error::BatchError;
use super::header::{BatchHeader, NO_TIMESTAMP};
use super::record::TRAILING_BYTES;
use super::varint::{
    MAX_VARINT_BYTES, MAX_VARLONG_BYTES, read_varint, read_varlong, zigzag_decode_32,
};

/// How much of an inflated payload is looked at in one go.
const WINDOW_BYTES: usize = 16 << 10;
/// A window with less than this is filled before the next record is read.
const LOW_WINDOW_BYTES: usize = 2 << 10;

/// Why a source could not give what was asked for.
#[derive(Debug)]
pub(super) enum SourceError {
    /// The bytes end, or a number is longer than it may be.
    Cut,
    /// Inflating failed.
    Inflate(BatchError),
}

/// Uncompressed records, read from front to back.
pub(super) trait RecordSource {
    /// Bytes read or skipped so far.
    fn position(&self) -> usize;
    /// Reads an `i32`.
    fn varint(&mut self) -> Result<i32, SourceError>;
    /// Reads an `i64`.
    fn varlong(&mut self) -> Result<i64, SourceError>;
    /// Leaves out `count` bytes.
    fn skip(&mut self, count: usize) -> Result<(), SourceError>;
    /// Reads a record of the usual form in one go: its timestamp delta and whether it has a key.
    /// `None` leaves everything as it was, for the long way.
    fn usual_record(&mut self, index: usize) -> Result<Option<(i64, bool)>, SourceError>;
    /// Whether nothing follows.
    fn is_at_end(&mut self) -> Result<bool, SourceError>;
}

/// Records that lie in memory as they are.
pub(super) struct SliceSource<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> SliceSource<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }
}

impl RecordSource for SliceSource<'_> {
    #[inline]
    fn position(&self) -> usize {
        self.position
    }

    #[inline]
    fn varint(&mut self) -> Result<i32, SourceError> {
        read_varint(self.bytes, &mut self.position).ok_or(SourceError::Cut)
    }

    #[inline]
    fn varlong(&mut self) -> Result<i64, SourceError> {
        read_varlong(self.bytes, &mut self.position).ok_or(SourceError::Cut)
    }

    #[inline]
    fn skip(&mut self, count: usize) -> Result<(), SourceError> {
        if count > self.bytes.len() - self.position {
            return Err(SourceError::Cut);
        }
        self.position += count;
        Ok(())
    }

    #[inline]
    fn usual_record(&mut self, index: usize) -> Result<Option<(i64, bool)>, SourceError> {
        Ok(usual_record(self.bytes, &mut self.position, index))
    }

    fn is_at_end(&mut self) -> Result<bool, SourceError> {
        Ok(self.position == self.bytes.len())
    }
}

/// Reads the record at `*position` and moves on, if it has the form that most have: no headers, and
/// small numbers before the key.
#[inline]
fn usual_record(bytes: &[u8], position: &mut usize, index: usize) -> Option<(i64, bool)> {
    let head = bytes.get(*position..)?.first_chunk::<HEAD_BYTES>()?;
    let mut at = 0;
    let size = short_varint(head, &mut at)?;
    let end = (*position + at).checked_add(usize::try_from(size).ok()?)?;
    at += 1; // attributes
    let timestamp_delta = short_varint(head, &mut at)?;
    if usize::try_from(short_varint(head, &mut at)?) != Ok(index) {
        return None;
    }
    let key_bytes = short_varint(head, &mut at)?;
    let mut at = *position + at + usize::try_from(key_bytes).unwrap_or(0);
    let value_bytes = read_varint(bytes, &mut at)?;
    at += usize::try_from(value_bytes).unwrap_or(0);
    // No headers, and the record ends where it says.
    if *bytes.get(at)? != 0 || at + 1 != end {
        return None;
    }
    *position = end;
    Some((i64::from(timestamp_delta), key_bytes >= 0))
}

/// Enough for the fields before a record's key, if none is longer than three bytes.
const HEAD_BYTES: usize = 16;

/// Reads an `i32` of at most three bytes.
#[inline]
fn short_varint(head: &[u8; HEAD_BYTES], at: &mut usize) -> Option<i32> {
    let [a, b, c] = [*at, *at + 1, *at + 2].map(|at| u32::from(head[at % HEAD_BYTES]));
    let (value, bytes) = if a < 0x80 {
        (a, 1)
    } else if b < 0x80 {
        ((a & 0x7f) | (b << 7), 2)
    } else if c < 0x80 {
        ((a & 0x7f) | ((b & 0x7f) << 7) | (c << 14), 3)
    } else {
        return None;
    };
    *at += bytes;
    Some(zigzag_decode_32(value))
}

/// Records that are inflated as they are read.
pub(super) struct InflatingSource<'a> {
    inflater: Inflater<'a>,
    window: Vec<u8>,
    /// The part of the window that has not been read.
    start: usize,
    end: usize,
    /// Inflated bytes before the window.
    before_window: usize,
}

impl<'a> InflatingSource<'a> {
    pub(super) fn new(inflater: Inflater<'a>) -> Self {
        Self {
            inflater,
            window: vec![0; WINDOW_BYTES],
            start: 0,
            end: 0,
            before_window: 0,
        }
    }

    /// Has at least `count` unread bytes in the window, or all that are left.
    fn fill(&mut self, count: usize) -> Result<(), SourceError> {
        if self.end - self.start >= count {
            return Ok(());
        }
        self.window.copy_within(self.start..self.end, 0);
        self.before_window += self.start;
        self.end -= self.start;
        self.start = 0;
        while self.end < count {
            let read = self
                .inflater
                .read(&mut self.window[self.end..])
                .map_err(SourceError::Inflate)?;
            if read == 0 {
                break;
            }
            self.end += read;
        }
        Ok(())
    }
}

impl RecordSource for InflatingSource<'_> {
    fn position(&self) -> usize {
        self.before_window + self.start
    }

    fn varint(&mut self) -> Result<i32, SourceError> {
        self.fill(MAX_VARINT_BYTES)?;
        read_varint(&self.window[..self.end], &mut self.start).ok_or(SourceError::Cut)
    }

    fn varlong(&mut self) -> Result<i64, SourceError> {
        self.fill(MAX_VARLONG_BYTES)?;
        read_varlong(&self.window[..self.end], &mut self.start).ok_or(SourceError::Cut)
    }

    fn skip(&mut self, mut count: usize) -> Result<(), SourceError> {
        loop {
            let skipped = count.min(self.end - self.start);
            self.start += skipped;
            count -= skipped;
            if count == 0 {
                return Ok(());
            }
            self.fill(1)?;
            if self.start == self.end {
                return Err(SourceError::Cut);
            }
        }
    }

    fn usual_record(&mut self, index: usize) -> Result<Option<(i64, bool)>, SourceError> {
        self.fill(LOW_WINDOW_BYTES)?;
        Ok(usual_record(
            &self.window[..self.end],
            &mut self.start,
            index,
        ))
    }

    fn is_at_end(&mut self) -> Result<bool, SourceError> {
        self.fill(1)?;
        Ok(self.start == self.end)
    }
}

/// What the caller is told of each record.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScannedRecord {
    /// Its place in the batch.
    pub(super) index: usize,
    /// Its time in ms.
    pub(super) timestamp: i64,
    /// Whether it has a key.
    pub(super) has_key: bool,
}

/// Reads all records of a batch that a producer has sent, in which offsets have no gaps, and shows
/// each to `visit`. Timestamps are those of the producer, also if it claims LogAppendTime: no leader
/// keeps that. Gives the largest timestamp.
///
/// # Errors
/// [`BatchError::MalformedRecord`], and what inflating reports.
pub(super) fn scan_records<S: RecordSource>(
    source: &mut S,
    header: &BatchHeader,
    mut visit: impl FnMut(ScannedRecord),
) -> Result<i64, BatchError> {
    let mut max_timestamp = NO_TIMESTAMP;
    let count = usize::try_from(header.records_count).unwrap_or(0);
    for index in 0..count {
        let (timestamp_delta, has_key) = match source.usual_record(index) {
            Ok(Some(record)) => Ok(record),
            Ok(None) => scan_record(source, index),
            Err(error) => Err(error.into()),
        }
        .map_err(|fault| match fault {
            Fault::Malformed(reason) => BatchError::MalformedRecord { index, reason },
            Fault::Inflate(error) => error,
        })?;
        let timestamp = header.base_timestamp.wrapping_add(timestamp_delta);
        max_timestamp = max_timestamp.max(timestamp);
        visit(ScannedRecord {
            index,
            timestamp,
            has_key,
        });
    }
    match source.is_at_end() {
        Ok(true) => Ok(max_timestamp),
        Ok(false) => Err(BatchError::MalformedRecord {
            index: count,
            reason: TRAILING_BYTES,
        }),
        Err(SourceError::Inflate(error)) => Err(error),
        Err(SourceError::Cut) => Err(BatchError::MalformedRecord {
            index: count,
            reason: "it is cut off",
        }),
    }
}

enum Fault {
    Malformed(&'static str),
    Inflate(BatchError),
}

impl From<SourceError> for Fault {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Cut => Self::Malformed("it is cut off, or a number in it is too long"),
            SourceError::Inflate(error) => Self::Inflate(error),
        }
    }
}

/// Reads one record; gives its timestamp delta and whether it has a key.
fn scan_record<S: RecordSource>(source: &mut S, index: usize) -> Result<(i64, bool), Fault> {
    let size = usize::try_from(source.varint()?)
        .map_err(|_| Fault::Malformed("its length is negative"))?;
    let end = source.position() + size;
    source.skip(1)?; // attributes, of which none are in use
    let timestamp_delta = source.varlong()?;
    if usize::try_from(source.varint()?) != Ok(index) {
        return Err(Fault::Malformed(
            "its offset does not follow that of the record before",
        ));
    }
    let has_key = skip_nullable_bytes(source, end)?;
    skip_nullable_bytes(source, end)?;
    let headers_count = source.varint()?;
    if headers_count != 0 {
        scan_headers(source, headers_count, end)?;
    }
    if source.position() != end {
        return Err(Fault::Malformed("its length is not that of its fields"));
    }
    Ok((timestamp_delta, has_key))
}

fn scan_headers<S: RecordSource>(source: &mut S, count: i32, end: usize) -> Result<(), Fault> {
    if count < 0 {
        return Err(Fault::Malformed("its count of headers is negative"));
    }
    for _ in 0..count {
        if source.position() >= end {
            return Err(Fault::Malformed("its count of headers is above its size"));
        }
        if !skip_nullable_bytes(source, end)? {
            return Err(Fault::Malformed("a header's key is null"));
        }
        skip_nullable_bytes(source, end)?;
    }
    Ok(())
}

/// Leaves out length and bytes; gives whether they are not null. Any negative length is null, as the
/// Java client reads it.
#[inline]
fn skip_nullable_bytes<S: RecordSource>(source: &mut S, end: usize) -> Result<bool, Fault> {
    let Ok(length) = usize::try_from(source.varint()?) else {
        return Ok(false);
    };
    if length > end.saturating_sub(source.position()) {
        return Err(Fault::Malformed("a field is longer than the record"));
    }
    source.skip(length)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record_batch::tests::{append_fields, record_fields};
    use crate::record_batch::{
        BATCH_HEADER_BYTES, Compression, DecompressLimits, RecordBatchBuilder,
    };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        /// The quick way over a slice and the long way through a window agree on every payload.
        #[test]
        fn both_sources_see_the_same_records(
            fields in proptest::collection::vec(record_fields(), 1..8),
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
            cut in 0usize..4,
        ) {
            let mut builder = RecordBatchBuilder::new();
            for (index, record) in fields.iter().enumerate() {
                // Some near each other in time and without headers, as producers send them.
                let mut record = record.clone();
                if index % 3 != 0 {
                    record.0 = fields[0].0 + index as i64;
                    record.3.clear();
                }
                append_fields(&mut builder, &record);
            }
            let batch = builder.build().unwrap();
            let header = BatchHeader::parse(&batch).unwrap();
            let mut payload = batch[BATCH_HEADER_BYTES..].to_vec();
            for (at, value) in damage {
                let at = at.index(payload.len());
                payload[at] = value;
            }
            payload.truncate(payload.len() - cut.min(payload.len()));

            let mut seen = [Vec::new(), Vec::new()];
            let [first, second] = &mut seen;
            let mut visit = |record: ScannedRecord| first.push((record.timestamp, record.has_key));
            let by_slice = scan_records(&mut SliceSource::new(&payload), &header, &mut visit);
            let limits = DecompressLimits { max_bytes: payload.len() };
            let inflater = Inflater::new(Compression::None, &payload, limits).unwrap();
            let mut visit = |record: ScannedRecord| second.push((record.timestamp, record.has_key));
            let by_window = scan_records(&mut InflatingSource::new(inflater), &header, &mut visit);
            prop_assert_eq!(by_slice.ok(), by_window.ok());
            prop_assert_eq!(&seen[0], &seen[1]);
        }
    }
}
