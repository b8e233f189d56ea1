//! What the verbs of a log take and give.

use bytes::Bytes;

use crate::errors::StorageError;
use crate::mapped_file;
use crate::types::LeaderEpoch;

/// Who appends; decides which checks a batch goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOrigin {
    /// A Produce request.
    Client,
    /// The group or transaction coordinator, markers included.
    Coordinator,
    /// The metadata log.
    Controller,
    /// A follower: offsets and epochs are taken as they are.
    Replication,
}

/// What an append did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendInfo {
    /// The first record's offset; of a duplicate, the original's.
    pub base_offset: i64,
    /// The last record's offset; of a duplicate, the original's.
    pub last_offset: i64,
    /// The broker's stamp with LogAppendTime, else -1; of a duplicate, the original's timestamp.
    pub log_append_time_ms: i64,
    /// The log's start when the append was made.
    pub log_start_offset: i64,
    /// Nothing was written: the producer had sent this batch before.
    pub duplicate: bool,
    /// The largest timestamp of the records.
    pub max_timestamp: i64,
    /// The last offset of the batch that holds it.
    pub offset_of_max_timestamp: i64,
    /// How much was written.
    pub size_bytes: usize,
    /// How many records were written.
    pub records_count: i64,
    /// `flush.messages` is reached: to be flushed before the append is acknowledged.
    pub is_flush_due: bool,
}

/// Whole batches from one segment: a slice of the map, not a copy.
#[derive(Debug, Clone)]
pub struct LogRead {
    /// The batches. The first may begin before the offset asked for.
    pub records: Bytes,
    /// The base offset of the segment they lie in.
    pub segment_base_offset: i64,
    /// Where in the segment they begin.
    pub position: u32,
}

impl LogRead {
    /// Whether all pages are in the page cache, so that touching them does not wait for a disk.
    pub fn is_resident(&self) -> bool {
        mapped_file::is_resident(&self.records)
    }

    /// Brings all pages into the page cache; waits for the disk.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub fn prefault(&self) -> Result<(), StorageError> {
        mapped_file::prefault(&self.records)
            .map_err(|error| StorageError::io("read", "a log segment", error))
    }
}

/// The answer to a look-up by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampedOffset {
    /// The record's offset.
    pub offset: i64,
    /// The record's timestamp in ms.
    pub timestamp: i64,
    /// The epoch it was appended in.
    pub leader_epoch: Option<LeaderEpoch>,
}

/// A producer's state as DescribeProducers shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerStateView {
    /// The producer.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// The sequence of its last record, -1 when none is known.
    pub last_sequence: i32,
    /// When it last appended, in ms.
    pub last_timestamp: i64,
    /// The epoch of the coordinator of its last transaction; -1 when none is known.
    pub coordinator_epoch: i32,
    /// The first offset of the open transaction, if one is open.
    pub current_txn_start_offset: Option<i64>,
}
