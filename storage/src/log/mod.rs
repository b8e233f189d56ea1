//! One partition's log. TEMPORARY bodies: only the signatures are final in this commit.
#![allow(clippy::unimplemented, unused_variables, missing_docs)]

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::errors::{AppendError, ReadError, StorageError};
use crate::log_config::LogConfig;
use crate::types::{LeaderEpoch, TopicId, TopicPartition};

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
    /// The broker's stamp with LogAppendTime, else -1.
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
        unimplemented!()
    }
    /// Brings all pages into the page cache; waits for the disk.
    pub fn prefault(&self) {
        unimplemented!()
    }
}

/// The answer to a look-up by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampedOffset {
    pub offset: i64,
    pub timestamp: i64,
    pub leader_epoch: Option<LeaderEpoch>,
}

/// An aborted transaction that overlaps a read (Fetch's `aborted_transactions`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTxn {
    pub producer_id: i64,
    pub first_offset: i64,
    pub last_offset: i64,
    pub last_stable_offset: i64,
}

/// A producer's state as DescribeProducers shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerStateView {
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub last_sequence: i32,
    pub last_timestamp: i64,
    /// -1 when none is known.
    pub coordinator_epoch: i32,
    /// The first offset of the open transaction, if one is open.
    pub current_txn_start_offset: Option<i64>,
}

/// One partition's log.
#[derive(Debug)]
pub struct Log {}

impl Log {
    pub fn append_as_leader(
        &self,
        records: &Bytes,
        leader_epoch: LeaderEpoch,
        origin: AppendOrigin,
        now_ms: i64,
    ) -> Result<AppendInfo, AppendError> {
        unimplemented!()
    }
    pub fn append_as_follower(
        &self,
        records: &Bytes,
        leader_epoch: LeaderEpoch,
        now_ms: i64,
    ) -> Result<AppendInfo, AppendError> {
        unimplemented!()
    }
    /// Whole batches from `fetch_offset` on, below `upper_bound_offset`. May wait for the disk to find them.
    pub fn read(
        &self,
        fetch_offset: i64,
        max_bytes: usize,
        upper_bound_offset: i64,
        at_least_one_batch: bool,
    ) -> Result<LogRead, ReadError> {
        unimplemented!()
    }
    /// As [`Log::read`], but None where finding or reading the batches would wait for the disk: then call
    /// `read` and [`LogRead::prefault`] on a thread that may block.
    pub fn read_if_resident(
        &self,
        fetch_offset: i64,
        max_bytes: usize,
        upper_bound_offset: i64,
        at_least_one_batch: bool,
    ) -> Result<Option<LogRead>, ReadError> {
        unimplemented!()
    }
    pub fn log_start_offset(&self) -> i64 {
        unimplemented!()
    }
    pub fn high_watermark(&self) -> i64 {
        unimplemented!()
    }
    /// Sets the high watermark, clamped to log start and end; gives what it became.
    pub fn set_high_watermark(&self, offset: i64) -> i64 {
        unimplemented!()
    }
    pub fn log_end_offset(&self) -> i64 {
        unimplemented!()
    }
    /// min(high watermark, first offset of an open transaction).
    pub fn last_stable_offset(&self) -> i64 {
        unimplemented!()
    }
    /// Moves the log start up (DeleteRecords, or a follower after its leader); on disk when it returns.
    /// Gives the new log start; a lower offset changes nothing.
    pub fn increment_log_start_offset(&self, offset: i64) -> Result<i64, StorageError> {
        unimplemented!()
    }
    pub fn truncate_to(&self, offset: i64) -> Result<(), StorageError> {
        unimplemented!()
    }
    pub fn truncate_fully_and_start_at(&self, offset: i64) -> Result<(), StorageError> {
        unimplemented!()
    }
    pub fn offset_for_timestamp(
        &self,
        target_ms: i64,
        upper_bound_offset: i64,
    ) -> Result<Option<TimestampedOffset>, ReadError> {
        unimplemented!()
    }
    pub fn offset_of_max_timestamp(
        &self,
        upper_bound_offset: i64,
    ) -> Result<Option<TimestampedOffset>, ReadError> {
        unimplemented!()
    }
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        unimplemented!()
    }
    pub fn assign_epoch_start(&self, epoch: LeaderEpoch, offset: i64) -> Result<(), StorageError> {
        unimplemented!()
    }
    /// The largest epoch not above `epoch`, and where it ends; None when unknown (replication rules 2.9).
    pub fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, i64)> {
        unimplemented!()
    }
    /// The epoch `offset` was written in.
    pub fn epoch_for_offset(&self, offset: i64) -> Option<LeaderEpoch> {
        unimplemented!()
    }
    /// The aborted transactions that overlap `[from_offset, to_offset)`, in order of their markers.
    pub fn aborted_transactions(
        &self,
        from_offset: i64,
        to_offset: i64,
    ) -> Result<Vec<AbortedTxn>, ReadError> {
        unimplemented!()
    }
    pub fn active_producers(&self, now_ms: i64) -> Vec<ProducerStateView> {
        unimplemented!()
    }
    pub fn size_in_bytes(&self) -> u64 {
        unimplemented!()
    }
    pub fn config(&self) -> Arc<LogConfig> {
        unimplemented!()
    }
    pub fn set_config(&self, config: LogConfig) {
        unimplemented!()
    }
    /// Forces everything to disk and moves the recovery point to the log end.
    pub fn flush(&self) -> Result<(), StorageError> {
        unimplemented!()
    }
    pub fn topic_id(&self) -> Option<TopicId> {
        unimplemented!()
    }
    /// Gives the log the id of its topic; an error when it has another.
    pub fn set_topic_id(&self, topic_id: TopicId) -> Result<(), StorageError> {
        unimplemented!()
    }
    pub fn topic_partition(&self) -> &TopicPartition {
        unimplemented!()
    }
    pub fn dir(&self) -> PathBuf {
        unimplemented!()
    }
    /// The log directory (one of `log.dirs`) the partition's directory lies in.
    pub fn log_dir(&self) -> PathBuf {
        unimplemented!()
    }
    pub fn segment_count(&self) -> usize {
        unimplemented!()
    }
}
