//! Records, the things inside a batch.

use bytes::{BufMut, Bytes};

use super::codec::{Compression, DecompressLimits, decompress};
use super::error::BatchError;
use super::header::{BATCH_HEADER_BYTES, BatchHeader, TimestampType};
use super::varint::{
    put_varint, put_varlong, read_varint, read_varlong, varint_size_in_bytes, varlong_size_in_bytes,
};

/// One record with its place and time in the log. Keys, values and headers share the batch's memory
/// where that is not compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its offset in the partition.
    pub offset: i64,
    /// Its time in ms, -1 if it has none. The batch's for LogAppendTime.
    pub timestamp: i64,
    /// Its key; `None` is null, which is not the same as empty.
    pub key: Option<Bytes>,
    /// Its value; `None` is null, a tombstone in a compacted topic.
    pub value: Option<Bytes>,
    /// Its headers in order; keys may repeat.
    pub headers: Vec<RecordHeader>,
}

/// A header of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordHeader {
    /// The name, UTF-8 by convention; not checked, as Kafka does not.
    pub key: Bytes,
    /// The value, which may be null.
    pub value: Option<Bytes>,
}

/// Reads the records of one whole batch; inflates them first if they are compressed.
///
/// # Errors
/// What [`BatchHeader::parse`] gives, [`BatchError::Truncated`] if bytes are missing, a negative
/// count, and what inflating reports. Malformed records are reported by the iterator. The checksum
/// is not looked at.
pub fn decode_records(batch: &Bytes, limits: DecompressLimits) -> Result<RecordIter, BatchError> {
    let header = BatchHeader::parse(batch)?;
    let size = header.size_in_bytes();
    if batch.len() < size {
        return Err(BatchError::Truncated {
            needed: size,
            available: batch.len(),
        });
    }
    let payload = batch.slice(BATCH_HEADER_BYTES..size);
    let records = match header.compression()? {
        Compression::None => payload,
        // Nobody compresses the records of a batch that compaction has emptied.
        _ if header.records_count == 0 && payload.is_empty() => payload,
        codec => Bytes::from(decompress(codec, &payload, limits)?),
    };
    RecordIter::new(&header, records)
}

/// The records of a batch, in order.
///
/// After an error nothing follows. Bytes after the last record are an error too.
#[derive(Debug, Clone)]
pub struct RecordIter {
    records: Bytes,
    position: usize,
    index: usize,
    count: usize,
    base_offset: i64,
    base_timestamp: i64,
    log_append_time: Option<i64>,
    done: bool,
}

impl RecordIter {
    /// Reads `records`, which are those of the batch with this header, uncompressed.
    pub(crate) fn new(header: &BatchHeader, records: Bytes) -> Result<Self, BatchError> {
        let malformed = |reason| BatchError::MalformedRecord { index: 0, reason };
        Ok(Self {
            records,
            position: 0,
            index: 0,
            count: usize::try_from(header.records_count)
                .map_err(|_| malformed("negative count of records"))?,
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            log_append_time: (header.timestamp_type() == TimestampType::LogAppendTime)
                .then_some(header.max_timestamp),
            done: false,
        })
    }

    fn read_next(&mut self) -> Result<Record, BatchError> {
        let raw = RawRecord::parse(&self.records, &mut self.position, self.index)?;
        self.index += 1;
        let timestamp = self
            .log_append_time
            .unwrap_or_else(|| self.base_timestamp.wrapping_add(raw.timestamp_delta));
        let mut headers = Vec::new();
        raw.for_each_header(|key, value| {
            headers.push(RecordHeader {
                key: self.records.slice_ref(key),
                value: value.map(|value| self.records.slice_ref(value)),
            });
        });
        Ok(Record {
            offset: self.base_offset.saturating_add(i64::from(raw.offset_delta)),
            timestamp,
            key: raw.key.map(|key| self.records.slice_ref(key)),
            value: raw.value.map(|value| self.records.slice_ref(value)),
            headers,
        })
    }
}

impl Iterator for RecordIter {
    type Item = Result<Record, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if self.index == self.count {
            self.done = true;
            return (self.position != self.records.len()).then_some(Err(
                BatchError::MalformedRecord {
                    index: self.index,
                    reason: TRAILING_BYTES,
                },
            ));
        }
        let record = self.read_next();
        self.done = record.is_err();
        Some(record)
    }
}

/// Reason given for bytes that follow the last record a batch declares.
pub(crate) const TRAILING_BYTES: &str = "bytes follow the last record";

/// A record as it lies in the uncompressed payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawRecord<'a> {
    pub(crate) timestamp_delta: i64,
    pub(crate) offset_delta: i32,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    /// Count and all headers, checked.
    headers: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// Reads the record at `*position` and moves on behind it. `index` is for the error alone.
    pub(crate) fn parse(
        records: &'a [u8],
        position: &mut usize,
        index: usize,
    ) -> Result<Self, BatchError> {
        let malformed = |reason| BatchError::MalformedRecord { index, reason };
        let mut at = *position;
        let size = read_varint(records, &mut at).ok_or(malformed("its length is cut off"))?;
        let size = usize::try_from(size).map_err(|_| malformed("its length is negative"))?;
        let end = at
            .checked_add(size)
            .filter(|end| *end <= records.len())
            .ok_or(malformed("it is longer than the batch"))?;
        let record = Self::parse_body(&records[at..end]).map_err(malformed)?;
        *position = end;
        Ok(record)
    }

    fn parse_body(body: &'a [u8]) -> Result<Self, &'static str> {
        let mut at = 1; // attributes, of which none are in use
        if body.is_empty() {
            return Err("its attributes are cut off");
        }
        let timestamp_delta = read_varlong(body, &mut at).ok_or("its timestamp is cut off")?;
        let offset_delta = read_varint(body, &mut at).ok_or("its offset is cut off")?;
        let key = read_nullable_bytes(body, &mut at).ok_or("its key is cut off")?;
        let value = read_nullable_bytes(body, &mut at).ok_or("its value is cut off")?;
        let headers = &body[at..];
        check_headers(headers)?;
        Ok(Self {
            timestamp_delta,
            offset_delta,
            key,
            value,
            headers,
        })
    }

    fn for_each_header(&self, mut visit: impl FnMut(&'a [u8], Option<&'a [u8]>)) {
        let mut at = 0;
        let Some(count) = read_varint(self.headers, &mut at) else {
            return;
        };
        for _ in 0..count {
            let Some(Some(key)) = read_nullable_bytes(self.headers, &mut at) else {
                return;
            };
            let Some(value) = read_nullable_bytes(self.headers, &mut at) else {
                return;
            };
            visit(key, value);
        }
    }

    /// Bytes of the headers with their count.
    pub(crate) fn raw_headers(&self) -> &'a [u8] {
        self.headers
    }
}

fn check_headers(headers: &[u8]) -> Result<(), &'static str> {
    let mut at = 0;
    let count = read_varint(headers, &mut at).ok_or("its count of headers is cut off")?;
    let count = usize::try_from(count).map_err(|_| "its count of headers is negative")?;
    if count > headers.len() {
        return Err("its count of headers is above its size");
    }
    for _ in 0..count {
        match read_nullable_bytes(headers, &mut at) {
            Some(Some(_)) => {}
            Some(None) => return Err("a header's key is null"),
            None => return Err("a header's key is cut off"),
        }
        read_nullable_bytes(headers, &mut at).ok_or("a header's value is cut off")?;
    }
    if at != headers.len() {
        return Err("bytes follow its headers");
    }
    Ok(())
}

/// Length and bytes; any negative length is null, as the Java client reads it.
fn read_nullable_bytes<'a>(bytes: &'a [u8], at: &mut usize) -> Option<Option<&'a [u8]>> {
    let Ok(length) = usize::try_from(read_varint(bytes, at)?) else {
        return Some(None);
    };
    let end = at.checked_add(length)?;
    let slice = bytes.get(*at..end)?;
    *at = end;
    Some(Some(slice))
}

/// What goes into a record, for writing.
pub(crate) struct RecordBody<'a, H: Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + Clone> {
    pub(crate) timestamp_delta: i64,
    pub(crate) offset_delta: i32,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: H,
}

impl<'a, H: Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + Clone> RecordBody<'a, H> {
    /// Appends the record to `out`.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let headers_count = self.headers.clone().count();
        let headers_bytes: usize = self
            .headers
            .clone()
            .map(|(key, value)| nullable_bytes_size(Some(key)) + nullable_bytes_size(value))
            .sum();
        let size = 1
            + varlong_size_in_bytes(self.timestamp_delta)
            + varint_size_in_bytes(self.offset_delta)
            + nullable_bytes_size(self.key)
            + nullable_bytes_size(self.value)
            + varint_size_in_bytes(headers_count as i32)
            + headers_bytes;
        out.reserve(size + 5);
        put_varint(out, size as i32);
        out.put_u8(0);
        put_varlong(out, self.timestamp_delta);
        put_varint(out, self.offset_delta);
        put_nullable_bytes(out, self.key);
        put_nullable_bytes(out, self.value);
        put_varint(out, headers_count as i32);
        for (key, value) in self.headers {
            put_nullable_bytes(out, Some(key));
            put_nullable_bytes(out, value);
        }
    }
}

/// Appends a record whose headers are already in their encoded form.
pub(crate) fn put_raw_record(
    out: &mut Vec<u8>,
    timestamp_delta: i64,
    offset_delta: i32,
    record: &RawRecord<'_>,
) {
    let size = 1
        + varlong_size_in_bytes(timestamp_delta)
        + varint_size_in_bytes(offset_delta)
        + nullable_bytes_size(record.key)
        + nullable_bytes_size(record.value)
        + record.raw_headers().len();
    out.reserve(size + 5);
    put_varint(out, size as i32);
    out.put_u8(0);
    put_varlong(out, timestamp_delta);
    put_varint(out, offset_delta);
    put_nullable_bytes(out, record.key);
    put_nullable_bytes(out, record.value);
    out.extend_from_slice(record.raw_headers());
}

fn nullable_bytes_size(bytes: Option<&[u8]>) -> usize {
    match bytes {
        None => 1,
        Some(bytes) => varint_size_in_bytes(bytes.len() as i32) + bytes.len(),
    }
}

fn put_nullable_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => put_varint(out, -1),
        Some(bytes) => {
            put_varint(out, bytes.len() as i32);
            out.extend_from_slice(bytes);
        }
    }
}
