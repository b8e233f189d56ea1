//! One pass over the framing of a batch's records, without keeping or copying any of them.
//!
//! This is what lets a produced batch be stored as it came: after it, every length, count and offset
//! in the payload is known to be right. A payload that is compressed is inflated through a small
//! window, so a record never has to fit into memory.

use super::codec::Inflater;
use super::error::BatchError;
use super::header::{BatchHeader, NO_TIMESTAMP};
use super::record::TRAILING_BYTES;
use super::varint::{MAX_VARINT_BYTES, MAX_VARLONG_BYTES, read_varint, read_varlong};

/// How much of an inflated payload is looked at in one go.
const WINDOW_BYTES: usize = 16 << 10;

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

    fn is_at_end(&mut self) -> Result<bool, SourceError> {
        Ok(self.position == self.bytes.len())
    }
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
        let (timestamp_delta, has_key) =
            scan_record(source, index).map_err(|fault| match fault {
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
#[inline]
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
