//! Record batches (format version 2) built field by field, so that each field can be made wrong.

use bytes::Bytes;

/// One record of a [`Batch`]; absent key and value are written as null.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Milliseconds after the base timestamp.
    pub timestamp_delta: i64,
    /// Key bytes, or null.
    pub key: Option<Vec<u8>>,
    /// Value bytes, or null.
    pub value: Option<Vec<u8>>,
    /// Header names and values.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Record {
    /// A record with a key and a value.
    pub fn new(key: &str, value: &str) -> Self {
        Self {
            key: Some(key.as_bytes().to_vec()),
            value: Some(value.as_bytes().to_vec()),
            ..Self::default()
        }
    }

    fn encode(&self, offset_delta: i32, out: &mut Vec<u8>) {
        let mut body = vec![0_u8]; // attributes
        put_varint(&mut body, self.timestamp_delta);
        put_varint(&mut body, i64::from(offset_delta));
        put_bytes(&mut body, self.key.as_deref());
        put_bytes(&mut body, self.value.as_deref());
        put_varint(&mut body, self.headers.len() as i64);
        for (name, value) in &self.headers {
            put_bytes(&mut body, Some(name.as_bytes()));
            put_bytes(&mut body, value.as_deref());
        }
        put_varint(out, body.len() as i64);
        out.extend_from_slice(&body);
    }
}

/// A record batch whose every field may be set; the fields that are `None` are computed.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Offset of the first record as sent.
    pub base_offset: i64,
    /// Bytes after the length field; computed when `None`.
    pub batch_length: Option<i32>,
    /// Epoch of the leader; -1 from a client.
    pub partition_leader_epoch: i32,
    /// Format version, 2.
    pub magic: i8,
    /// CRC-32C over everything after the CRC field; computed when `None`.
    pub crc: Option<u32>,
    /// Bits 0-2 compression, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon.
    pub attributes: i16,
    /// Computed from the records when `None`.
    pub last_offset_delta: Option<i32>,
    /// Milliseconds.
    pub base_timestamp: i64,
    /// Milliseconds; computed from the records when `None`.
    pub max_timestamp: Option<i64>,
    /// -1 without idempotence.
    pub producer_id: i64,
    /// -1 without idempotence.
    pub producer_epoch: i16,
    /// -1 without idempotence.
    pub base_sequence: i32,
    /// Computed from the records when `None`.
    pub records_count: Option<i32>,
    /// The records.
    pub records: Vec<Record>,
    /// Bytes that stand where the encoded records would, for example compressed ones.
    pub body: Option<Vec<u8>>,
}

impl Batch {
    /// A plain batch of `records` stamped with the present time.
    pub fn of(records: Vec<Record>) -> Self {
        Self {
            base_offset: 0,
            batch_length: None,
            partition_leader_epoch: -1,
            magic: 2,
            crc: None,
            attributes: 0,
            last_offset_delta: None,
            base_timestamp: now_ms(),
            max_timestamp: None,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            records_count: None,
            records,
            body: None,
        }
    }

    /// A batch of `count` small records.
    pub fn small(count: usize) -> Self {
        Self::of(
            (0..count)
                .map(|i| Record::new(&format!("k{i}"), &format!("v{i}")))
                .collect(),
        )
    }

    /// A batch of one record that is exactly `size_bytes` long on the wire (at least 80).
    pub fn of_size(size_bytes: usize) -> Self {
        let mut value = size_bytes.saturating_sub(75);
        loop {
            let batch = Self::of(vec![Record {
                value: Some((0..value).map(|i| (i * 31 % 251) as u8).collect()),
                ..Record::default()
            }]);
            let missing = size_bytes as i64 - batch.encode().len() as i64;
            if missing == 0 {
                return batch;
            }
            value = (value as i64 + missing).max(0) as usize;
        }
    }

    /// The same batch from an idempotent producer.
    pub fn from_producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.producer_id = id;
        self.producer_epoch = epoch;
        self.base_sequence = base_sequence;
        self
    }

    /// The same batch with each record's time set: base timestamp and one delta a record.
    pub fn at(mut self, base_timestamp: i64, deltas: &[i64]) -> Self {
        self.base_timestamp = base_timestamp;
        for (record, delta) in self.records.iter_mut().zip(deltas) {
            record.timestamp_delta = *delta;
        }
        self
    }

    /// The records as they stand uncompressed in the batch.
    pub fn encoded_records(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (i, record) in self.records.iter().enumerate() {
            record.encode(i as i32, &mut out);
        }
        out
    }

    /// The bytes on the wire.
    pub fn encode(&self) -> Bytes {
        let body = self.body.clone().unwrap_or_else(|| self.encoded_records());
        let count = self.records.len() as i32;
        let newest = self
            .records
            .iter()
            .map(|r| r.timestamp_delta)
            .max()
            .unwrap_or(0);
        let mut out = Vec::with_capacity(61 + body.len());
        out.extend(self.base_offset.to_be_bytes());
        out.extend(
            self.batch_length
                .unwrap_or(49 + body.len() as i32)
                .to_be_bytes(),
        );
        out.extend(self.partition_leader_epoch.to_be_bytes());
        out.push(self.magic as u8);
        out.extend([0; 4]);
        out.extend(self.attributes.to_be_bytes());
        out.extend(self.last_offset_delta.unwrap_or(count - 1).to_be_bytes());
        out.extend(self.base_timestamp.to_be_bytes());
        out.extend(
            self.max_timestamp
                .unwrap_or(self.base_timestamp + newest)
                .to_be_bytes(),
        );
        out.extend(self.producer_id.to_be_bytes());
        out.extend(self.producer_epoch.to_be_bytes());
        out.extend(self.base_sequence.to_be_bytes());
        out.extend(self.records_count.unwrap_or(count).to_be_bytes());
        out.extend(body);
        match self.crc {
            Some(crc) => out[17..21].copy_from_slice(&crc.to_be_bytes()),
            None => set_crc(&mut out),
        }
        Bytes::from(out)
    }
}

/// What the header of a batch in fetched bytes says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// Epoch of the leader that appended it.
    pub partition_leader_epoch: i32,
}

/// The headers of the whole batches in fetched bytes.
pub fn batch_headers(mut records: &[u8]) -> Vec<BatchHeader> {
    let mut headers = Vec::new();
    while let Some(header) = records.first_chunk::<61>() {
        let number = |at: usize| {
            i32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let base_offset = i64::from(number(0)) << 32 | i64::from(number(4) as u32);
        let Some(rest) = records.get(number(8) as usize + 12..) else {
            break;
        };
        headers.push(BatchHeader {
            base_offset,
            last_offset: base_offset + i64::from(number(23)),
            partition_leader_epoch: number(12),
        });
        records = rest;
    }
    headers
}

/// The base offsets and last offsets of the whole batches in fetched bytes.
pub fn batch_ranges(records: &[u8]) -> Vec<(i64, i64)> {
    batch_headers(records)
        .iter()
        .map(|header| (header.base_offset, header.last_offset))
        .collect()
}

/// The checksum that a batch of these bytes should carry.
pub fn crc32c_of_batch(batch: &[u8]) -> u32 {
    crc32c::crc32c(&batch[21..])
}

/// Writes the right checksum into the bytes of a batch.
pub fn set_crc(batch: &mut [u8]) {
    let crc = crc32c_of_batch(batch);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

/// Reads a zig-zag varint; gives the value and how many bytes it took.
pub fn decode_varint(bytes: &[u8]) -> Option<(i64, usize)> {
    let mut raw = 0_u64;
    for (i, byte) in bytes.iter().enumerate().take(10) {
        raw |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((((raw >> 1) as i64) ^ -((raw & 1) as i64), i + 1));
        }
    }
    None
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            put_varint(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
        None => put_varint(out, -1),
    }
}

fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut raw = ((value << 1) ^ (value >> 63)) as u64;
    while raw >= 0x80 {
        out.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

fn now_ms() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}
