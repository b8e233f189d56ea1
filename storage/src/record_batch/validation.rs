//! What a batch must be like to be appended by a leader (Kafka's checks, in Kafka's order).

use bytes::Bytes;

use super::builder::RecordBatchBuilder;
use super::codec::{Compression, CompressionCodec, DecompressLimits, Inflater, decompress};
use super::error::BatchError;
use super::header::{
    BATCH_HEADER_BYTES, BatchHeader, LOG_OVERHEAD_BYTES, MAGIC_V2, NO_TIMESTAMP, TimestampType,
    patch_header, set_max_timestamp, verify_crc,
};
use super::record::RawRecord;
use super::scan::{InflatingSource, ScannedRecord, SliceSource, scan_records};
use crate::errors::{AppendError, RecordError};
use crate::log::AppendOrigin;
use crate::log_config::{CompressionType, LogConfig, MessageTimestampType};

/// Smallest size field that any format version has: Kafka's bound for bytes that could be a batch.
const MIN_RECORD_OVERHEAD_BYTES: i32 = 14;
/// A batch's bytes up to and with its magic.
const HEADER_BYTES_UP_TO_MAGIC: usize = 17;
/// More faulty records of one batch than this are not listed.
const MAX_RECORD_ERRORS: usize = 1000;

/// A topic's rules for what may be appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidationRules {
    /// `max.message.bytes`: most bytes of a batch as stored, header included.
    pub max_message_bytes: usize,
    /// How far a compressed batch may inflate.
    pub limits: DecompressLimits,
    /// The topic is compacted, so each record needs a key.
    pub requires_key: bool,
    /// `compression.type`; `None` keeps the producer's codec.
    pub codec: Option<CompressionCodec>,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max_ms: i64,
}

impl From<&LogConfig> for ValidationRules {
    fn from(config: &LogConfig) -> Self {
        let codec = |compression, level| Some(CompressionCodec { compression, level });
        Self {
            max_message_bytes: config.max_message_bytes,
            limits: DecompressLimits {
                max_bytes: config.max_decompressed_message_bytes,
            },
            requires_key: config.cleanup_policy.compact,
            codec: match config.compression_type {
                CompressionType::Producer => None,
                CompressionType::Uncompressed => codec(Compression::None, None),
                CompressionType::Gzip => {
                    codec(Compression::Gzip, Some(config.compression_gzip_level))
                }
                CompressionType::Snappy => codec(Compression::Snappy, None),
                CompressionType::Lz4 => codec(Compression::Lz4, Some(config.compression_lz4_level)),
                CompressionType::Zstd => {
                    codec(Compression::Zstd, Some(config.compression_zstd_level))
                }
            },
            timestamp_type: match config.message_timestamp_type {
                MessageTimestampType::CreateTime => TimestampType::CreateTime,
                MessageTimestampType::LogAppendTime => TimestampType::LogAppendTime,
            },
            timestamp_before_max_ms: config.message_timestamp_before_max_ms,
            timestamp_after_max_ms: config.message_timestamp_after_max_ms,
        }
    }
}

/// A batch that may be appended. As stored it is [`ValidatedBatch::patched_header`] and then
/// [`ValidatedBatch::records`].
#[derive(Debug, Clone)]
pub struct ValidatedBatch {
    header: [u8; BATCH_HEADER_BYTES],
    batch: Bytes,
    log_append_time: Option<i64>,
}

impl ValidatedBatch {
    /// The header as it will be stored, but for base offset and leader epoch.
    pub fn header(&self) -> BatchHeader {
        BatchHeader::read(&self.header)
    }

    /// The header's bytes at the offset and in the epoch that the batch gets.
    pub fn patched_header(&self, base_offset: i64, leader_epoch: i32) -> [u8; BATCH_HEADER_BYTES] {
        let mut header = self.header;
        patch_header(&mut header, base_offset, leader_epoch, None);
        header
    }

    /// All bytes after the header: those received, unless the batch had to be recompressed.
    pub fn records(&self) -> &[u8] {
        &self.batch[BATCH_HEADER_BYTES..]
    }

    /// The whole batch with the header as received.
    pub fn bytes(&self) -> &Bytes {
        &self.batch
    }

    /// Bytes of the batch as stored.
    pub fn size_in_bytes(&self) -> usize {
        self.batch.len()
    }

    /// The broker's stamp in ms with LogAppendTime, else `None`.
    pub fn log_append_time(&self) -> Option<i64> {
        self.log_append_time
    }
}

/// Checks what a leader is to append: exactly one batch, whole and sound, within the topic's rules.
///
/// The checks go from cheap to dear, each byte is read for the checksum once, and the framing of the
/// records is walked over in a second, lighter pass. A compressed payload is inflated through a small
/// window for that, as Kafka does it too; nothing is kept but for `compression.type`.
///
/// # Errors
/// `NotOneBatch`, `CorruptMessage`, `MessageTooLarge`, `InvalidRecord` and `InvalidTimestamp`, the last two with the
/// records at fault if single records are.
pub fn validate_produced(
    records: &Bytes,
    rules: &ValidationRules,
    origin: AppendOrigin,
    now_ms: i64,
) -> Result<ValidatedBatch, AppendError> {
    let size = single_batch_size(records)?;
    let batch = records.slice(..size);
    let header = check_batch(&batch, rules, origin)?;
    let compression = header.compression().map_err(refusal)?;
    let target = rules.codec.filter(|codec| codec.compression != compression);
    let payload = &batch[BATCH_HEADER_BYTES..];

    let mut check = RecordCheck::new(rules, &header, now_ms);
    let visit = |record| check.record(record);
    let mut inflated = None;
    let max_timestamp = match (compression, target) {
        (Compression::None, _) => scan_records(&mut SliceSource::new(payload), &header, visit),
        (_, None) => Inflater::new(compression, payload, rules.limits)
            .and_then(|inflater| scan_records(&mut InflatingSource::new(inflater), &header, visit)),
        (_, Some(_)) => decompress(compression, payload, rules.limits).and_then(|records| {
            let records = inflated.insert(records);
            scan_records(&mut SliceSource::new(records), &header, visit)
        }),
    }
    .map_err(refusal)?;
    check.finish()?;

    let batch = match target {
        Some(codec) => {
            let records = inflated.as_deref().unwrap_or(payload);
            let batch = recompress(&header, records, codec).map_err(refusal)?;
            check_size(batch.len(), rules, origin)?;
            batch
        }
        None => batch,
    };
    let log_append_time = (rules.timestamp_type == TimestampType::LogAppendTime).then_some(now_ms);
    Ok(stamp(batch, log_append_time, max_timestamp))
}

/// Sets the header's timestamp fields to what they must be; the producer's may lie.
fn stamp(batch: Bytes, log_append_time: Option<i64>, max_timestamp: i64) -> ValidatedBatch {
    let mut header = [0; BATCH_HEADER_BYTES];
    header.copy_from_slice(&batch[..BATCH_HEADER_BYTES]);
    let sent = BatchHeader::read(&header);
    match log_append_time {
        Some(time_ms) => set_max_timestamp(&mut header, TimestampType::LogAppendTime, time_ms),
        None if sent.max_timestamp != max_timestamp
            || sent.timestamp_type() != TimestampType::CreateTime =>
        {
            set_max_timestamp(&mut header, TimestampType::CreateTime, max_timestamp);
        }
        None => {}
    }
    ValidatedBatch {
        header,
        batch,
        log_append_time,
    }
}

/// Size of the one batch in `records`. Bytes after it that are no whole batch are left out, unless
/// they cannot become one.
fn single_batch_size(records: &[u8]) -> Result<usize, AppendError> {
    let size = framed_size(records)?
        .ok_or_else(|| not_one_batch("there must be a batch in the records of a partition"))?;
    if records[HEADER_BYTES_UP_TO_MAGIC - 1] != MAGIC_V2 as u8 {
        return Err(not_one_batch("batches must have magic 2"));
    }
    if framed_size(&records[size..])?.is_some() {
        return Err(not_one_batch(
            "there must be one batch only in the records of a partition",
        ));
    }
    if size < BATCH_HEADER_BYTES {
        return Err(corrupt(format!(
            "a batch of {size} bytes is smaller than its header"
        )));
    }
    Ok(size)
}

/// Size of the batch at the start of `bytes`, of any magic; `None` if it is not all there.
fn framed_size(bytes: &[u8]) -> Result<Option<usize>, AppendError> {
    let Some(length) = bytes
        .get(8..LOG_OVERHEAD_BYTES)
        .and_then(|b| b.first_chunk::<4>())
    else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(*length);
    if length < MIN_RECORD_OVERHEAD_BYTES {
        return Err(corrupt(format!(
            "batch length {length} is too small for any batch"
        )));
    }
    if bytes.len() < HEADER_BYTES_UP_TO_MAGIC {
        return Ok(None);
    }
    let magic = bytes[HEADER_BYTES_UP_TO_MAGIC - 1] as i8;
    if !(0..=MAGIC_V2).contains(&magic) {
        return Err(corrupt(format!("there is no magic {magic}")));
    }
    let size = LOG_OVERHEAD_BYTES + length as usize;
    Ok((size <= bytes.len()).then_some(size))
}

/// Checks one batch but for its records.
fn check_batch(
    batch: &[u8],
    rules: &ValidationRules,
    origin: AppendOrigin,
) -> Result<BatchHeader, AppendError> {
    let header = BatchHeader::parse(batch).map_err(refusal)?;
    let is_client = origin == AppendOrigin::Client;
    if is_client && header.base_offset != 0 {
        return Err(invalid(format!(
            "base offset {} must be 0",
            header.base_offset
        )));
    }
    check_size(batch.len(), rules, origin)?;
    verify_crc(batch).map_err(refusal)?;
    if header.records_count <= 0 {
        return Err(invalid(format!(
            "count of records {} is not positive",
            header.records_count
        )));
    }
    if i64::from(header.last_offset_delta) + 1 != i64::from(header.records_count) {
        return Err(invalid(format!(
            "count of records {} does not fit the last offset delta {}",
            header.records_count, header.last_offset_delta
        )));
    }
    if is_client && header.is_control() {
        return Err(invalid("clients may not write control records"));
    }
    if is_client && header.has_producer_id() && header.base_sequence < 0 {
        return Err(invalid(format!(
            "sequence {} of producer {} is negative",
            header.base_sequence, header.producer_id
        )));
    }
    Ok(header)
}

fn check_size(
    size_bytes: usize,
    rules: &ValidationRules,
    origin: AppendOrigin,
) -> Result<(), AppendError> {
    let max_bytes = rules.max_message_bytes;
    if size_bytes > max_bytes && origin != AppendOrigin::Controller {
        return Err(AppendError::MessageTooLarge {
            size_bytes,
            max_bytes,
        });
    }
    Ok(())
}

/// The checks on single records, and what they have found.
struct RecordCheck {
    requires_key: bool,
    /// Earliest and latest time allowed in ms, for CreateTime.
    bounds: Option<(i64, i64)>,
    /// The producer claims broker time where the broker sets it.
    has_wrong_type: bool,
    has_timestamp_error: bool,
    errors_count: usize,
    errors: Vec<RecordError>,
}

impl RecordCheck {
    fn new(rules: &ValidationRules, header: &BatchHeader, now_ms: i64) -> Self {
        let is_create_time = rules.timestamp_type == TimestampType::CreateTime;
        Self {
            requires_key: rules.requires_key,
            bounds: is_create_time.then(|| {
                (
                    now_ms.saturating_sub(rules.timestamp_before_max_ms),
                    now_ms.saturating_add(rules.timestamp_after_max_ms),
                )
            }),
            has_wrong_type: !is_create_time
                && header.timestamp_type() == TimestampType::LogAppendTime,
            has_timestamp_error: false,
            errors_count: 0,
            errors: Vec::new(),
        }
    }

    #[inline]
    fn record(&mut self, record: ScannedRecord) {
        if self.requires_key && !record.has_key {
            self.add(
                record,
                "a record in a compacted topic must have a key".to_owned(),
            );
        } else if let Some((earliest, latest)) = self.bounds {
            let timestamp = record.timestamp;
            if timestamp != NO_TIMESTAMP && !(earliest..=latest).contains(&timestamp) {
                self.has_timestamp_error = true;
                self.add(
                    record,
                    format!("timestamp {timestamp} is not within {earliest} to {latest}"),
                );
            }
        } else if self.has_wrong_type {
            self.has_timestamp_error = true;
            self.add(
                record,
                "a producer may not set the type LogAppendTime".to_owned(),
            );
        }
    }

    #[cold]
    fn add(&mut self, record: ScannedRecord, message: String) {
        self.errors_count += 1;
        if self.errors.len() < MAX_RECORD_ERRORS {
            self.errors.push(RecordError {
                batch_index: record.index as i32,
                message,
            });
        }
    }

    fn finish(self) -> Result<(), AppendError> {
        if self.errors_count == 0 {
            return Ok(());
        }
        let first = self.errors.first().map_or("", |error| &error.message);
        let message = format!(
            "{} records were refused, the first: {first}",
            self.errors_count
        );
        let record_errors = self.errors;
        Err(if self.has_timestamp_error {
            AppendError::InvalidTimestamp {
                message,
                record_errors,
            }
        } else {
            AppendError::InvalidRecord {
                message,
                record_errors,
            }
        })
    }
}

/// The same records in another codec. Attributes that no rule knows are left behind.
fn recompress(
    header: &BatchHeader,
    records: &[u8],
    codec: CompressionCodec,
) -> Result<Bytes, BatchError> {
    let mut builder = RecordBatchBuilder::new().compression(codec).producer(
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    );
    if header.is_transactional() {
        builder = builder.transactional();
    }
    if header.is_control() {
        builder = builder.control();
    }
    let mut position = 0;
    for index in 0..header.records_count {
        let record = RawRecord::parse(records, &mut position, index as usize)?;
        let timestamp = header.base_timestamp.wrapping_add(record.timestamp_delta);
        builder.append_raw(timestamp, &record);
    }
    builder.build()
}

fn corrupt(message: impl Into<String>) -> AppendError {
    AppendError::CorruptMessage(message.into())
}

fn not_one_batch(message: &str) -> AppendError {
    AppendError::NotOneBatch(message.to_owned())
}

fn invalid(message: impl Into<String>) -> AppendError {
    AppendError::InvalidRecord {
        message: message.into(),
        record_errors: Vec::new(),
    }
}

/// Kafka's kind of error for a batch that cannot be read.
fn refusal(error: BatchError) -> AppendError {
    match error {
        BatchError::MalformedRecord { .. } | BatchError::MalformedControlRecord(_) => {
            invalid(error.to_string())
        }
        BatchError::InflatesBeyondLimit { max_bytes } => AppendError::MessageTooLarge {
            size_bytes: max_bytes.saturating_add(1),
            max_bytes,
        },
        // For a payload that does not inflate, and for a codec there is none of, Kafka answers
        // UNKNOWN_SERVER_ERROR; a corrupt message is what they are.
        _ => corrupt(error.to_string()),
    }
}
