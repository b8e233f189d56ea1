//! The 61 bytes before a batch's records.

use super::codec::Compression;
use super::error::BatchError;

/// Size of a batch's header in bytes.
pub const BATCH_HEADER_BYTES: usize = 61;
/// Bytes before the part that `batch_length` counts: base offset and the length itself.
pub(crate) const LOG_OVERHEAD_BYTES: usize = 12;
/// The format version this crate reads and writes.
pub(crate) const MAGIC_V2: i8 = 2;

/// `producer_id` of a batch from a producer that is not idempotent.
pub const NO_PRODUCER_ID: i64 = -1;
/// `producer_epoch` of a batch from a producer that is not idempotent.
pub const NO_PRODUCER_EPOCH: i16 = -1;
/// `base_sequence` of a batch without a sequence.
pub const NO_SEQUENCE: i32 = -1;
/// `partition_leader_epoch` of a batch that no leader has appended yet.
pub const NO_PARTITION_LEADER_EPOCH: i32 = -1;
/// A record without a timestamp, in ms.
pub const NO_TIMESTAMP: i64 = -1;

const MAGIC_AT: usize = 16;
const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;
const MAX_TIMESTAMP_AT: usize = 35;

const COMPRESSION_MASK: i16 = 0x07;
const TIMESTAMP_TYPE_FLAG: i16 = 0x08;
const TRANSACTIONAL_FLAG: i16 = 0x10;
const CONTROL_FLAG: i16 = 0x20;
const DELETE_HORIZON_FLAG: i16 = 0x40;

/// Whose clock a batch's timestamps are of (`message.timestamp.type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TimestampType {
    /// The producer's: each record has its own.
    #[default]
    CreateTime,
    /// The broker's at the append: all records have the batch's `max_timestamp`.
    LogAppendTime,
}

impl TimestampType {
    /// Its name, as the topic's `message.timestamp.type` and Kafka's tools have it.
    pub fn name(self) -> &'static str {
        match self {
            TimestampType::CreateTime => "CreateTime",
            TimestampType::LogAppendTime => "LogAppendTime",
        }
    }
}

/// A batch's header, field by field. Plain values: nothing is checked beyond what
/// [`BatchHeader::parse`] says, so arithmetic on them must not assume a sane batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record (after compaction: of the first one there was).
    pub base_offset: i64,
    /// Bytes that follow this field.
    pub batch_length: i32,
    /// Epoch of the leader that appended the batch, -1 before that.
    pub partition_leader_epoch: i32,
    /// Format version, 2.
    pub magic: i8,
    /// CRC-32C over everything from `attributes` on.
    pub crc: u32,
    /// Codec (bits 0–2), timestamp type (3), transactional (4), control (5), delete horizon (6).
    pub attributes: i16,
    /// Offset of the last record less the base offset; kept by compaction.
    pub last_offset_delta: i32,
    /// Timestamp in ms to which the records' deltas are added; the delete horizon if that flag is set.
    pub base_timestamp: i64,
    /// Largest timestamp of the records in ms.
    pub max_timestamp: i64,
    /// The producer's id, -1 if it is not idempotent.
    pub producer_id: i64,
    /// The producer's epoch, -1 if it is not idempotent.
    pub producer_epoch: i16,
    /// Sequence number of the first record, -1 if none.
    pub base_sequence: i32,
    /// Number of records in the batch.
    pub records_count: i32,
}

fn array<const N: usize>(bytes: &[u8; BATCH_HEADER_BYTES], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// [`BatchError::Truncated`] below 61 bytes, [`BatchError::UnsupportedMagic`], and
    /// [`BatchError::InvalidLength`] if the length field does not even cover the header. Whether the
    /// whole batch is there is not looked at.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let Some(header) = bytes.first_chunk::<BATCH_HEADER_BYTES>() else {
            return Err(BatchError::Truncated {
                needed: BATCH_HEADER_BYTES,
                available: bytes.len(),
            });
        };
        let parsed = Self::read(header);
        if parsed.magic != MAGIC_V2 {
            return Err(BatchError::UnsupportedMagic(parsed.magic));
        }
        if parsed.batch_length < (BATCH_HEADER_BYTES - LOG_OVERHEAD_BYTES) as i32 {
            return Err(BatchError::InvalidLength(parsed.batch_length));
        }
        Ok(parsed)
    }

    /// Reads all fields, checking nothing.
    pub(crate) fn read(b: &[u8; BATCH_HEADER_BYTES]) -> Self {
        Self {
            base_offset: i64::from_be_bytes(array(b, 0)),
            batch_length: i32::from_be_bytes(array(b, 8)),
            partition_leader_epoch: i32::from_be_bytes(array(b, 12)),
            magic: i8::from_be_bytes(array(b, MAGIC_AT)),
            crc: u32::from_be_bytes(array(b, CRC_AT)),
            attributes: i16::from_be_bytes(array(b, ATTRIBUTES_AT)),
            last_offset_delta: i32::from_be_bytes(array(b, 23)),
            base_timestamp: i64::from_be_bytes(array(b, 27)),
            max_timestamp: i64::from_be_bytes(array(b, MAX_TIMESTAMP_AT)),
            producer_id: i64::from_be_bytes(array(b, 43)),
            producer_epoch: i16::from_be_bytes(array(b, 51)),
            base_sequence: i32::from_be_bytes(array(b, 53)),
            records_count: i32::from_be_bytes(array(b, 57)),
        }
    }

    /// The header as it lies on disk; `crc` as it stands in the field.
    pub fn to_bytes(&self) -> [u8; BATCH_HEADER_BYTES] {
        let mut b = [0; BATCH_HEADER_BYTES];
        b[0..8].copy_from_slice(&self.base_offset.to_be_bytes());
        b[8..12].copy_from_slice(&self.batch_length.to_be_bytes());
        b[12..16].copy_from_slice(&self.partition_leader_epoch.to_be_bytes());
        b[16..17].copy_from_slice(&self.magic.to_be_bytes());
        b[17..21].copy_from_slice(&self.crc.to_be_bytes());
        b[21..23].copy_from_slice(&self.attributes.to_be_bytes());
        b[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        b[27..35].copy_from_slice(&self.base_timestamp.to_be_bytes());
        b[35..43].copy_from_slice(&self.max_timestamp.to_be_bytes());
        b[43..51].copy_from_slice(&self.producer_id.to_be_bytes());
        b[51..53].copy_from_slice(&self.producer_epoch.to_be_bytes());
        b[53..57].copy_from_slice(&self.base_sequence.to_be_bytes());
        b[57..61].copy_from_slice(&self.records_count.to_be_bytes());
        b
    }

    /// Bytes of the whole batch, header included; 0 if the length field is negative beyond sense.
    pub fn size_in_bytes(&self) -> usize {
        usize::try_from(i64::from(self.batch_length) + LOG_OVERHEAD_BYTES as i64).unwrap_or(0)
    }

    /// Offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.base_offset
            .saturating_add(i64::from(self.last_offset_delta))
    }

    /// Offset that follows the batch.
    pub fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// The codec of the records.
    ///
    /// # Errors
    /// [`BatchError::UnknownCompression`] for bits that stand for none.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        Compression::from_id((self.attributes & COMPRESSION_MASK) as u8)
    }

    /// Whose clock the timestamps are of.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & TIMESTAMP_TYPE_FLAG == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Whether the records are part of a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_FLAG != 0
    }

    /// Whether the records are for clients and brokers themselves, not for applications.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL_FLAG != 0
    }

    /// Time in ms from which compaction may drop the tombstones or the marker in this batch
    /// (KIP-534), if compaction has set one.
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        (self.attributes & DELETE_HORIZON_FLAG != 0).then_some(self.base_timestamp)
    }

    /// Sequence number of the last record, -1 if the batch has none; wraps to 0 after `i32::MAX`.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence == NO_SEQUENCE {
            NO_SEQUENCE
        } else {
            increment_sequence(self.base_sequence, self.last_offset_delta)
        }
    }

    /// Whether the producer is idempotent or transactional.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > NO_PRODUCER_ID
    }

    pub(crate) fn attributes_of(
        compression: Compression,
        timestamp_type: TimestampType,
        is_transactional: bool,
        is_control: bool,
        has_delete_horizon: bool,
    ) -> i16 {
        let flag = |set: bool, bit: i16| if set { bit } else { 0 };
        i16::from(compression.id())
            | flag(
                timestamp_type == TimestampType::LogAppendTime,
                TIMESTAMP_TYPE_FLAG,
            )
            | flag(is_transactional, TRANSACTIONAL_FLAG)
            | flag(is_control, CONTROL_FLAG)
            | flag(has_delete_horizon, DELETE_HORIZON_FLAG)
    }
}

/// The sequence number `by` after `sequence`; 0 follows `i32::MAX`.
pub fn increment_sequence(sequence: i32, by: i32) -> i32 {
    let sum = i64::from(sequence) + i64::from(by);
    if sum > i64::from(i32::MAX) {
        (sum - i64::from(i32::MAX) - 1) as i32
    } else {
        sum as i32
    }
}

/// The sequence number `by` before `sequence`; `i32::MAX` precedes 0.
pub(crate) fn decrement_sequence(sequence: i32, by: i32) -> i32 {
    let difference = i64::from(sequence) - i64::from(by);
    if difference < 0 {
        (difference + i64::from(i32::MAX) + 1) as i32
    } else {
        difference as i32
    }
}

/// Checks the checksum of one whole batch: a single pass over the bytes.
///
/// # Errors
/// [`BatchError::CrcMismatch`], and [`BatchError::Truncated`] for fewer than 61 bytes.
pub fn verify_crc(batch: &[u8]) -> Result<(), BatchError> {
    let Some(header) = batch.first_chunk::<BATCH_HEADER_BYTES>() else {
        return Err(BatchError::Truncated {
            needed: BATCH_HEADER_BYTES,
            available: batch.len(),
        });
    };
    let stored = u32::from_be_bytes(array(header, CRC_AT));
    let computed = compute_crc(batch);
    if stored == computed {
        Ok(())
    } else {
        Err(BatchError::CrcMismatch { stored, computed })
    }
}

/// CRC-32C of a batch: over the attributes and all that follows.
pub(crate) fn compute_crc(batch: &[u8]) -> u32 {
    crc32c::crc32c(batch.get(ATTRIBUTES_AT..).unwrap_or_default())
}

/// Sets what the leader decides in a copy of a batch's header, so that the received bytes stay
/// untouched: the batch as stored is this header and the received bytes from 61 on.
///
/// Base offset and leader epoch lie outside the checksum. `log_append_time` (ms), if given, becomes
/// the batch's largest timestamp and sets the timestamp type; the checksum is then carried over from
/// the old one by arithmetic, without reading the records again, so a wrong checksum stays wrong.
pub fn patch_header(
    header: &mut [u8; BATCH_HEADER_BYTES],
    base_offset: i64,
    leader_epoch: i32,
    log_append_time: Option<i64>,
) {
    header[0..8].copy_from_slice(&base_offset.to_be_bytes());
    header[12..16].copy_from_slice(&leader_epoch.to_be_bytes());
    if let Some(time_ms) = log_append_time {
        set_max_timestamp(header, TimestampType::LogAppendTime, time_ms);
    }
}

/// Sets timestamp type and largest timestamp, and carries the checksum over.
pub(crate) fn set_max_timestamp(
    header: &mut [u8; BATCH_HEADER_BYTES],
    timestamp_type: TimestampType,
    max_timestamp: i64,
) {
    let before = crc32c::crc32c(&header[ATTRIBUTES_AT..]);
    let mut attributes = i16::from_be_bytes(array(header, ATTRIBUTES_AT)) & !TIMESTAMP_TYPE_FLAG;
    if timestamp_type == TimestampType::LogAppendTime {
        attributes |= TIMESTAMP_TYPE_FLAG;
    }
    header[ATTRIBUTES_AT..ATTRIBUTES_AT + 2].copy_from_slice(&attributes.to_be_bytes());
    header[MAX_TIMESTAMP_AT..MAX_TIMESTAMP_AT + 8].copy_from_slice(&max_timestamp.to_be_bytes());
    let after = crc32c::crc32c(&header[ATTRIBUTES_AT..]);

    // A CRC is affine: changing the header changes the checksum of the whole by the change of the
    // header's checksum, moved on by the length of what follows.
    let stored = u32::from_be_bytes(array(header, CRC_AT));
    let batch_length = i32::from_be_bytes(array(header, 8));
    let body_bytes = (i64::from(batch_length) + LOG_OVERHEAD_BYTES as i64
        - BATCH_HEADER_BYTES as i64)
        .max(0) as usize;
    let crc = stored ^ super::crc_shift::append_zeros(before ^ after, body_bytes);
    header[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arbitrary_header() -> impl Strategy<Value = BatchHeader> {
        (
            (
                any::<i64>(),
                49..i32::MAX,
                any::<i32>(),
                any::<u32>(),
                any::<i16>(),
                any::<i32>(),
            ),
            (
                any::<i64>(),
                any::<i64>(),
                any::<i64>(),
                any::<i16>(),
                any::<i32>(),
                any::<i32>(),
            ),
        )
            .prop_map(|(a, b)| BatchHeader {
                base_offset: a.0,
                batch_length: a.1,
                partition_leader_epoch: a.2,
                magic: 2,
                crc: a.3,
                attributes: a.4,
                last_offset_delta: a.5,
                base_timestamp: b.0,
                max_timestamp: b.1,
                producer_id: b.2,
                producer_epoch: b.3,
                base_sequence: b.4,
                records_count: b.5,
            })
    }

    proptest! {
        #[test]
        fn header_survives_a_round_trip(header in arbitrary_header()) {
            prop_assert_eq!(BatchHeader::parse(&header.to_bytes()), Ok(header));
        }

        #[test]
        fn accessors_of_any_header_do_not_panic(header in arbitrary_header()) {
            let _ = (header.last_offset(), header.next_offset(), header.last_sequence());
            let _ = (header.compression(), header.timestamp_type(), header.delete_horizon_ms());
            prop_assert!(header.size_in_bytes() >= BATCH_HEADER_BYTES);
        }

        #[test]
        fn log_append_time_keeps_the_checksum_right(
            mut header in arbitrary_header(),
            body in proptest::collection::vec(any::<u8>(), 0..300),
            time in any::<i64>(),
        ) {
            header.batch_length = (BATCH_HEADER_BYTES - LOG_OVERHEAD_BYTES + body.len()) as i32;
            let mut batch = header.to_bytes().to_vec();
            batch.extend_from_slice(&body);
            let crc = compute_crc(&batch);
            batch[17..21].copy_from_slice(&crc.to_be_bytes());
            prop_assert_eq!(verify_crc(&batch), Ok(()));

            let mut patched = *batch.first_chunk::<BATCH_HEADER_BYTES>().unwrap();
            patch_header(&mut patched, 77, 5, Some(time));
            batch[..BATCH_HEADER_BYTES].copy_from_slice(&patched);
            prop_assert_eq!(verify_crc(&batch), Ok(()));
            let stored = BatchHeader::parse(&batch).unwrap();
            prop_assert_eq!(stored.base_offset, 77);
            prop_assert_eq!(stored.partition_leader_epoch, 5);
            prop_assert_eq!(stored.max_timestamp, time);
            prop_assert_eq!(stored.timestamp_type(), TimestampType::LogAppendTime);
        }
    }

    #[test]
    fn sequences_wrap_from_the_largest_to_zero() {
        assert_eq!(increment_sequence(i32::MAX, 1), 0);
        assert_eq!(increment_sequence(i32::MAX - 1, 3), 1);
        assert_eq!(decrement_sequence(0, 1), i32::MAX);
        assert_eq!(decrement_sequence(1, 3), i32::MAX - 1);
    }

    #[test]
    fn short_or_foreign_headers_are_refused() {
        assert!(matches!(
            BatchHeader::parse(&[0; 60]),
            Err(BatchError::Truncated { .. })
        ));
        let mut bytes = [0; BATCH_HEADER_BYTES];
        bytes[16] = 1;
        assert_eq!(
            BatchHeader::parse(&bytes),
            Err(BatchError::UnsupportedMagic(1))
        );
        bytes[16] = 2;
        bytes[8..12].copy_from_slice(&48i32.to_be_bytes());
        assert_eq!(
            BatchHeader::parse(&bytes),
            Err(BatchError::InvalidLength(48))
        );
    }
}
