//! Making batches.

use bytes::Bytes;

use super::codec::{Compression, CompressionCodec, compress};
use super::control::EndTransactionMarker;
use super::error::BatchError;
use super::header::{
    BATCH_HEADER_BYTES, BatchHeader, LOG_OVERHEAD_BYTES, MAGIC_V2, NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, TimestampType, compute_crc,
};
use super::record::{RawRecord, Record, RecordBody, put_raw_record};

/// Builds one batch, record by record.
///
/// ```
/// # use highwater_storage::record_batch::RecordBatchBuilder;
/// let mut builder = RecordBatchBuilder::new();
/// builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"));
/// let batch = builder.build()?;
/// # Ok::<(), highwater_storage::record_batch::BatchError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RecordBatchBuilder {
    codec: CompressionCodec,
    base_offset: i64,
    leader_epoch: i32,
    timestamp_type: TimestampType,
    log_append_time: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    is_transactional: bool,
    is_control: bool,
    delete_horizon_ms: Option<i64>,
    last_offset_delta: Option<i32>,
    base_timestamp: Option<i64>,
    max_timestamp: i64,
    last_record_delta: i32,
    records_count: i32,
    records: Vec<u8>,
}

impl Default for RecordBatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl RecordBatchBuilder {
    /// A batch as a plain producer sends it: base offset 0, no leader epoch, no producer id,
    /// CreateTime, not compressed.
    pub fn new() -> Self {
        Self {
            codec: CompressionCodec::default(),
            base_offset: 0,
            leader_epoch: NO_PARTITION_LEADER_EPOCH,
            timestamp_type: TimestampType::CreateTime,
            log_append_time: NO_TIMESTAMP,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            base_sequence: NO_SEQUENCE,
            is_transactional: false,
            is_control: false,
            delete_horizon_ms: None,
            last_offset_delta: None,
            base_timestamp: None,
            max_timestamp: NO_TIMESTAMP,
            last_record_delta: -1,
            records_count: 0,
            records: Vec::new(),
        }
    }

    /// Compresses the records.
    pub fn compression(mut self, codec: impl Into<CompressionCodec>) -> Self {
        self.codec = codec.into();
        self
    }

    /// Offset of the first record. Set before records are appended.
    pub fn base_offset(mut self, base_offset: i64) -> Self {
        self.base_offset = base_offset;
        self
    }

    /// Epoch of the leader that writes the batch.
    pub fn leader_epoch(mut self, leader_epoch: i32) -> Self {
        self.leader_epoch = leader_epoch;
        self
    }

    /// Marks the batch LogAppendTime, with this time in ms for all records.
    pub fn log_append_time(mut self, time_ms: i64) -> Self {
        self.timestamp_type = TimestampType::LogAppendTime;
        self.log_append_time = time_ms;
        self
    }

    /// Id, epoch and first sequence of an idempotent producer.
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.producer_id = id;
        self.producer_epoch = epoch;
        self.base_sequence = base_sequence;
        self
    }

    /// Makes the records part of the producer's transaction.
    pub fn transactional(mut self) -> Self {
        self.is_transactional = true;
        self
    }

    /// Marks the records as control records.
    pub fn control(mut self) -> Self {
        self.is_control = true;
        self
    }

    /// Sets the time in ms at which compaction may drop what it keeps for readers' sake only.
    pub fn delete_horizon_ms(mut self, horizon_ms: Option<i64>) -> Self {
        self.delete_horizon_ms = horizon_ms;
        self
    }

    /// Fixes the last offset less the base offset, which is that of the last record otherwise:
    /// compaction keeps it.
    pub fn last_offset_delta(mut self, last_offset_delta: i32) -> Self {
        self.last_offset_delta = Some(last_offset_delta);
        self
    }

    /// Fixes the largest timestamp for a batch that is left without records.
    pub fn max_timestamp(mut self, max_timestamp: i64) -> Self {
        self.max_timestamp = max_timestamp;
        self
    }

    /// A marker that ends a producer's transaction, as a coordinator writes it (one record).
    pub fn end_transaction(
        marker: EndTransactionMarker,
        producer_id: i64,
        producer_epoch: i16,
        timestamp: i64,
    ) -> Self {
        let mut builder = Self::new()
            .producer(producer_id, producer_epoch, NO_SEQUENCE)
            .transactional()
            .control();
        builder.append(
            timestamp,
            Some(&marker.key_bytes()),
            Some(&marker.value_bytes()),
        );
        builder
    }

    /// Adds a record at the next offset, without headers. `timestamp` in ms.
    pub fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> &mut Self {
        self.append_with_headers(timestamp, key, value, &[])
    }

    /// Adds a record at the next offset.
    pub fn append_with_headers(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) -> &mut Self {
        let (timestamp_delta, offset_delta) = self.place(timestamp, self.last_record_delta + 1);
        RecordBody {
            timestamp_delta,
            offset_delta,
            key,
            value,
            headers: headers.iter().copied(),
        }
        .write(&mut self.records);
        self
    }

    /// Adds a record at its own offset, which must be above those before it.
    pub fn append_record(&mut self, record: &Record) -> &mut Self {
        let offset_delta = record.offset.wrapping_sub(self.base_offset) as i32;
        let (timestamp_delta, offset_delta) = self.place(record.timestamp, offset_delta);
        RecordBody {
            timestamp_delta,
            offset_delta,
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: record
                .headers
                .iter()
                .map(|h| (&h.key[..], h.value.as_deref())),
        }
        .write(&mut self.records);
        self
    }

    /// Adds a record of another batch with the same base offset, its bytes as they are.
    pub(crate) fn append_raw(&mut self, timestamp: i64, record: &RawRecord<'_>) {
        let (timestamp_delta, offset_delta) = self.place(timestamp, record.offset_delta);
        put_raw_record(&mut self.records, timestamp_delta, offset_delta, record);
    }

    fn place(&mut self, timestamp: i64, offset_delta: i32) -> (i64, i32) {
        let base = self
            .delete_horizon_ms
            .or(self.base_timestamp)
            .unwrap_or(timestamp);
        self.base_timestamp = Some(base);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.last_record_delta = offset_delta;
        self.records_count += 1;
        (timestamp.wrapping_sub(base), offset_delta)
    }

    /// How many records are in.
    pub fn records_count(&self) -> usize {
        self.records_count as usize
    }

    /// Bytes of the batch if it were not compressed.
    pub fn uncompressed_size_in_bytes(&self) -> usize {
        BATCH_HEADER_BYTES + self.records.len()
    }

    /// The finished batch.
    ///
    /// # Errors
    /// What the codec reports, and [`BatchError::InvalidLength`] above 2 GiB.
    pub fn build(self) -> Result<Bytes, BatchError> {
        // A batch without records has nothing to compress.
        let codec = match self.records_count {
            0 => CompressionCodec::default(),
            _ => self.codec,
        };
        let payload = match codec.compression {
            Compression::None => self.records,
            _ => compress(codec, &self.records)?,
        };
        let batch_length = BATCH_HEADER_BYTES - LOG_OVERHEAD_BYTES + payload.len();
        let header = BatchHeader {
            base_offset: self.base_offset,
            batch_length: i32::try_from(batch_length)
                .map_err(|_| BatchError::InvalidLength(i32::MAX))?,
            partition_leader_epoch: self.leader_epoch,
            magic: MAGIC_V2,
            crc: 0,
            attributes: BatchHeader::attributes_of(
                codec.compression,
                self.timestamp_type,
                self.is_transactional,
                self.is_control,
                self.delete_horizon_ms.is_some(),
            ),
            last_offset_delta: self.last_offset_delta.unwrap_or(self.last_record_delta),
            base_timestamp: self
                .delete_horizon_ms
                .or(self.base_timestamp)
                .unwrap_or(NO_TIMESTAMP),
            max_timestamp: match self.timestamp_type {
                TimestampType::CreateTime => self.max_timestamp,
                TimestampType::LogAppendTime => self.log_append_time,
            },
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
            records_count: self.records_count,
        };
        let mut batch = Vec::with_capacity(BATCH_HEADER_BYTES + payload.len());
        batch.extend_from_slice(&header.to_bytes());
        batch.extend_from_slice(&payload);
        let crc = compute_crc(&batch);
        batch[17..21].copy_from_slice(&crc.to_be_bytes());
        Ok(Bytes::from(batch))
    }
}
