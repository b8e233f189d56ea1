//! Apache Kafka's format of a producer snapshot.
//!
//! Version (2 bytes), CRC-32C of what follows (4), count of entries (4), entries of 46 bytes each.

use super::entry::{BatchMetadata, ProducerStateEntry};
use crate::record_batch::NO_SEQUENCE;

const VERSION: i16 = 1;
const CRC_AT: usize = 2;
const ENTRIES_AT: usize = 6;
const ENTRY_BYTES: usize = 46;
/// For an entry without batches or without an open transaction.
const NONE: i64 = -1;

/// Why a snapshot cannot be used. The state is then rebuilt from the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// A version that this broker does not know.
    #[error("unknown version {0}")]
    UnknownVersion(i16),
    /// The bytes are not those that were written.
    #[error("stored crc {stored:#010x}, computed crc {computed:#010x}")]
    CrcMismatch {
        /// The checksum in the file.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The size does not fit the count of entries.
    #[error("the size does not fit the count of entries")]
    InvalidSize,
}

/// All producers of a partition at some offset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProducerSnapshot {
    /// One for each producer.
    pub entries: Vec<SnapshotEntry>,
}

/// One producer in a snapshot, field by field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotEntry {
    /// The producer's id.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Sequence number of its last record, -1 if there is none.
    pub last_sequence: i32,
    /// Offset of its last record, -1 if there is none.
    pub last_offset: i64,
    /// Last offset less first offset of its last batch.
    pub offset_delta: i32,
    /// Timestamp in ms of its last batch or marker.
    pub timestamp: i64,
    /// Epoch of the coordinator that wrote its last marker, -1 if none did.
    pub coordinator_epoch: i32,
    /// First offset of its open transaction, -1 if none is open.
    pub current_txn_first_offset: i64,
}

impl SnapshotEntry {
    pub(super) fn of(producer_id: i64, entry: &ProducerStateEntry) -> Self {
        let last = entry.last_batch();
        Self {
            producer_id,
            producer_epoch: entry.producer_epoch,
            last_sequence: last.map_or(NO_SEQUENCE, |batch| batch.last_sequence),
            last_offset: last.map_or(NONE, |batch| batch.last_offset),
            offset_delta: last.map_or(0, |batch| batch.offset_delta),
            timestamp: entry.last_timestamp,
            coordinator_epoch: entry.coordinator_epoch,
            current_txn_first_offset: entry.current_txn_first_offset.unwrap_or(NONE),
        }
    }

    /// The producer's last batch, if it has one.
    pub fn last_batch(&self) -> Option<BatchMetadata> {
        (self.last_offset >= 0).then_some(BatchMetadata {
            last_sequence: self.last_sequence,
            last_offset: self.last_offset,
            offset_delta: self.offset_delta,
            timestamp: self.timestamp,
        })
    }

    pub(super) fn to_entry(self) -> ProducerStateEntry {
        ProducerStateEntry::restored(
            self.producer_epoch,
            self.coordinator_epoch,
            self.timestamp,
            (self.current_txn_first_offset >= 0).then_some(self.current_txn_first_offset),
            self.last_batch(),
        )
    }
}

/// Takes big-endian integers off the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let (head, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or(SnapshotError::InvalidSize)?;
        self.0 = rest;
        Ok(*head)
    }
    fn i16(&mut self) -> Result<i16, SnapshotError> {
        self.take().map(i16::from_be_bytes)
    }
    fn i32(&mut self) -> Result<i32, SnapshotError> {
        self.take().map(i32::from_be_bytes)
    }
    fn i64(&mut self) -> Result<i64, SnapshotError> {
        self.take().map(i64::from_be_bytes)
    }
}

impl ProducerSnapshot {
    /// Reads a snapshot's bytes.
    ///
    /// # Errors
    /// See [`SnapshotError`]; nothing is allocated before the size is known to fit the count.
    pub fn decode(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let mut fields = Fields(bytes);
        let version = fields.i16()?;
        if version != VERSION {
            return Err(SnapshotError::UnknownVersion(version));
        }
        let stored = fields.i32()? as u32;
        let computed = crc32c::crc32c(fields.0);
        if stored != computed {
            return Err(SnapshotError::CrcMismatch { stored, computed });
        }
        let count = usize::try_from(fields.i32()?).map_err(|_| SnapshotError::InvalidSize)?;
        if count.checked_mul(ENTRY_BYTES) != Some(fields.0.len()) {
            return Err(SnapshotError::InvalidSize);
        }
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            entries.push(SnapshotEntry {
                producer_id: fields.i64()?,
                producer_epoch: fields.i16()?,
                last_sequence: fields.i32()?,
                last_offset: fields.i64()?,
                offset_delta: fields.i32()?,
                timestamp: fields.i64()?,
                coordinator_epoch: fields.i32()?,
                current_txn_first_offset: fields.i64()?,
            });
        }
        Ok(Self { entries })
    }

    /// The snapshot's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(ENTRIES_AT + 4 + self.entries.len() * ENTRY_BYTES);
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(self.entries.len() as i32).to_be_bytes());
        for entry in &self.entries {
            out.extend_from_slice(&entry.producer_id.to_be_bytes());
            out.extend_from_slice(&entry.producer_epoch.to_be_bytes());
            out.extend_from_slice(&entry.last_sequence.to_be_bytes());
            out.extend_from_slice(&entry.last_offset.to_be_bytes());
            out.extend_from_slice(&entry.offset_delta.to_be_bytes());
            out.extend_from_slice(&entry.timestamp.to_be_bytes());
            out.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
            out.extend_from_slice(&entry.current_txn_first_offset.to_be_bytes());
        }
        let crc = crc32c::crc32c(&out[ENTRIES_AT..]);
        out[CRC_AT..ENTRIES_AT].copy_from_slice(&crc.to_be_bytes());
        out
    }
}
