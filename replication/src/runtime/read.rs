//! Reading a partition: for fetches, offset look-ups and epoch look-ups.

use highwater_storage::record_batch::Batches;
use highwater_storage::{AbortedTxn, BrokerId, LeaderEpoch, LogRead, TimestampedOffset};

use std::sync::Arc;

use super::error::PartitionError;
use super::low_watermark_wait::LowWatermarkWait;
use super::partition::{Partition, PartitionView, RoleView};
use crate::state::fetch_position::{PositionVerdict, judge_position};

/// Up to where a reader may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadIsolation {
    /// A follower: up to the log end offset.
    LogEnd,
    /// A consumer: up to the high watermark.
    HighWatermark,
    /// A consumer with `read_committed`: up to the last stable offset.
    LastStable,
}

/// What to read.
#[derive(Debug, Clone, Copy)]
pub struct PartitionReadRequest {
    /// First offset wanted.
    pub fetch_offset: i64,
    /// Limit in bytes, over which only [`at_least_one_batch`](Self::at_least_one_batch) goes.
    pub max_bytes: usize,
    /// Whether the first batch is returned even when it is larger than the limit.
    pub at_least_one_batch: bool,
    /// Whether only the leader may serve it; else a follower may too (KIP-392).
    pub leader_only: bool,
    /// The leader epoch that the reader knows.
    pub current_leader_epoch: Option<LeaderEpoch>,
    /// The epoch of the last record that the reader has.
    pub last_fetched_epoch: Option<LeaderEpoch>,
    /// Up to where it may see.
    pub isolation: ReadIsolation,
    /// Whether the read may wait for the disk. If not, records that are not in the page cache are
    /// left out and [`PartitionRead::is_cold`] is set.
    pub may_wait: bool,
}

/// What a read gives.
#[derive(Debug)]
pub struct PartitionRead {
    /// Whole batches; `None` when there is nothing to return.
    pub records: Option<LogRead>,
    /// High watermark as of the read.
    pub high_watermark: i64,
    /// Last stable offset as of the read.
    pub last_stable_offset: i64,
    /// First offset of the log.
    pub log_start_offset: i64,
    /// For `read_committed`: the aborted transactions that overlap the records.
    pub aborted_transactions: Option<Vec<AbortedTxn>>,
    /// The reader's log is not a prefix of ours: the largest epoch up to its own, and that
    /// epoch's end offset. No records are returned then.
    pub diverging_epoch: Option<(LeaderEpoch, i64)>,
    /// Another replica should be read from instead (KIP-392). No records are returned then.
    pub preferred_read_replica: Option<BrokerId>,
    /// There are records, but getting at them would wait for the disk: read again where that is
    /// allowed.
    pub is_cold: bool,
}

impl PartitionRead {
    /// How many bytes of records there are.
    #[must_use]
    pub fn records_bytes(&self) -> usize {
        self.records.as_ref().map_or(0, |read| read.records.len())
    }
}

/// What a deletion of records did.
#[derive(Debug)]
pub struct DeletedRecords {
    /// No live replica has records before this offset.
    pub low_watermark: i64,
    /// Where other live replicas still have them: completes when they have not, or fails.
    pub wait: Option<LowWatermarkWait>,
}

/// Which offset a ListOffsets request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetQuery {
    /// The end (-1).
    Latest,
    /// The log start (-2), or the local log start (-4), which is the same without tiered storage.
    Earliest,
    /// The record with the largest timestamp (-3).
    MaxTimestamp,
    /// The first record with at least this timestamp, in ms.
    AtTimestamp(i64),
}

impl Partition {
    /// Reads for a consumer in rack `client_rack` (empty when it names none), or sends it to
    /// another replica.
    ///
    /// # Errors
    /// Fencing by epoch, another leader, an offset out of range, or a failure to read.
    pub fn read(
        &self,
        request: PartitionReadRequest,
        client_rack: &str,
    ) -> Result<PartitionRead, PartitionError> {
        let _view = self.check_readable(request.current_leader_epoch, request.leader_only)?;
        if !request.leader_only
            && let Some(replica) = self.preferred_read_replica(client_rack, request.fetch_offset)
        {
            return Ok(PartitionRead {
                preferred_read_replica: Some(replica),
                ..self.nothing_read()
            });
        }
        self.read_log(request)
    }

    /// A read without records, with the offsets as of now.
    fn nothing_read(&self) -> PartitionRead {
        let log = self.log();
        PartitionRead {
            records: None,
            log_start_offset: log.log_start_offset(),
            high_watermark: log.high_watermark(),
            last_stable_offset: log.last_stable_offset(),
            aborted_transactions: None,
            diverging_epoch: None,
            preferred_read_replica: None,
            is_cold: false,
        }
    }

    /// Reads without a look at who leads.
    pub(super) fn read_log(
        &self,
        request: PartitionReadRequest,
    ) -> Result<PartitionRead, PartitionError> {
        let log = self.log();
        let mut result = self.nothing_read();
        match judge_position(request.fetch_offset, request.last_fetched_epoch, &**log) {
            PositionVerdict::Prefix => {}
            PositionVerdict::Diverging(end) => {
                result.diverging_epoch = Some((end.epoch, end.end_offset));
                return Ok(result);
            }
            PositionVerdict::OutOfRange => return Err(self.out_of_range(request.fetch_offset)),
        }
        // Not beyond the offsets that the answer tells.
        let upper_bound = match request.isolation {
            ReadIsolation::LogEnd => log.log_end_offset(),
            ReadIsolation::HighWatermark => result.high_watermark,
            ReadIsolation::LastStable => result.last_stable_offset,
        };
        let wants_any = request.max_bytes > 0 || request.at_least_one_batch;
        if request.fetch_offset < upper_bound && wants_any {
            result.records = self.read_records(request, upper_bound)?;
            result.is_cold = result.records.is_none();
        }
        if request.isolation == ReadIsolation::LastStable && !result.is_cold {
            let to = result
                .records
                .as_ref()
                .map_or(request.fetch_offset, end_offset);
            result.aborted_transactions = Some(log.aborted_transactions(request.fetch_offset, to)?);
        }
        Ok(result)
    }

    /// Whole batches below `upper_bound`; `None` when the read may not wait but would have to.
    fn read_records(
        &self,
        request: PartitionReadRequest,
        upper_bound: i64,
    ) -> Result<Option<LogRead>, PartitionError> {
        let PartitionReadRequest {
            fetch_offset,
            max_bytes,
            at_least_one_batch,
            ..
        } = request;
        let log = self.log();
        Ok(if request.may_wait {
            Some(log.read_from_disk(fetch_offset, max_bytes, upper_bound, at_least_one_batch)?)
        } else {
            log.read_if_resident(fetch_offset, max_bytes, upper_bound, at_least_one_batch)?
        })
    }

    /// Whether the read ends at the end of a segment and more follows in the next one. One read
    /// does not go on there, so waiting for more bytes would be in vain.
    #[must_use]
    pub fn more_in_next_segment(&self, read: &PartitionRead, isolation: ReadIsolation) -> bool {
        let Some(records) = &read.records else {
            return false;
        };
        let next_offset = end_offset(records);
        let upper_bound = self.upper_bound(isolation);
        if next_offset >= upper_bound {
            return false;
        }
        let next = self.log().read(next_offset, 0, upper_bound, true);
        next.is_ok_and(|next| next.segment_base_offset != records.segment_base_offset)
    }

    /// The exclusive end of what this kind of reader may see, as of now.
    #[must_use]
    pub fn upper_bound(&self, isolation: ReadIsolation) -> i64 {
        match isolation {
            ReadIsolation::LogEnd => self.log().log_end_offset(),
            ReadIsolation::HighWatermark => self.log().high_watermark(),
            ReadIsolation::LastStable => self.log().last_stable_offset(),
        }
    }

    /// Looks an offset up. May read from disk.
    ///
    /// `None` means that no record answers the query, which is not an error.
    ///
    /// # Errors
    /// Fencing by epoch, another leader, [`PartitionError::OffsetNotAvailable`] for a consumer
    /// that asks for the end right after an election, or a failure to read.
    pub fn list_offset(
        &self,
        query: OffsetQuery,
        isolation: ReadIsolation,
        current_leader_epoch: Option<LeaderEpoch>,
        leader_only: bool,
    ) -> Result<Option<TimestampedOffset>, PartitionError> {
        let view = self.check_readable(current_leader_epoch, leader_only)?;
        let log = self.log();
        let upper_bound = self.upper_bound(isolation);
        let check_available = || self.check_end_available(&view, isolation);
        let at = |offset, leader_epoch| TimestampedOffset {
            offset,
            timestamp: -1,
            leader_epoch,
        };
        Ok(match query {
            OffsetQuery::Latest => {
                self.check_session(&view)?;
                check_available()?;
                Some(at(upper_bound, Some(view.leader_epoch)))
            }
            OffsetQuery::Earliest => {
                let offset = log.log_start_offset();
                Some(at(offset, log.epoch_for_offset(offset)))
            }
            OffsetQuery::MaxTimestamp => {
                let found = log.offset_of_max_timestamp(upper_bound)?;
                found.map_or_else(|| check_available().map(|()| None), |found| Ok(Some(found)))?
            }
            OffsetQuery::AtTimestamp(target_ms) => {
                let found = log.offset_for_timestamp(target_ms, upper_bound)?;
                found.map_or_else(|| check_available().map(|()| None), |found| Ok(Some(found)))?
            }
        })
    }

    /// Whether a consumer may be told where the log ends: a new leader whose high watermark is
    /// behind the start of its epoch would send it back.
    fn check_end_available(
        &self,
        view: &PartitionView,
        isolation: ReadIsolation,
    ) -> Result<(), PartitionError> {
        let high_watermark = self.log().high_watermark();
        match view.role {
            RoleView::Leader {
                epoch_start_offset, ..
            } if isolation != ReadIsolation::LogEnd && high_watermark < epoch_start_offset => {
                Err(PartitionError::OffsetNotAvailable {
                    high_watermark,
                    epoch_start_offset,
                })
            }
            _ => Ok(()),
        }
    }

    /// The largest epoch up to `epoch` and its end offset; `None` when there is none.
    ///
    /// # Errors
    /// Fencing by epoch, or another leader.
    pub fn end_offset_for_epoch(
        &self,
        epoch: LeaderEpoch,
        current_leader_epoch: Option<LeaderEpoch>,
    ) -> Result<Option<(LeaderEpoch, i64)>, PartitionError> {
        self.check_leader(current_leader_epoch)?;
        Ok(self.log().end_offset_for_epoch(epoch))
    }

    /// Deletes the records before `before_offset` (-1: before the high watermark). May write to
    /// disk. Followers do the same when they hear of it.
    ///
    /// # Errors
    /// Another leader, an offset above the high watermark or below -1, a topic whose
    /// `cleanup.policy` does not delete, or a failure to write.
    pub fn delete_records(
        self: &Arc<Self>,
        before_offset: i64,
    ) -> Result<DeletedRecords, PartitionError> {
        self.check_leader(None)?;
        let log = self.log();
        if !log.config().cleanup_policy.delete {
            return Err(PartitionError::DeletionNotAllowed);
        }
        let high_watermark = log.high_watermark();
        let target = if before_offset == -1 {
            high_watermark
        } else {
            before_offset
        };
        if target < 0 || target > high_watermark {
            return Err(self.out_of_range(before_offset));
        }
        log.increment_log_start_offset(target)?;
        let low_watermark = self.low_watermark()?;
        let wait =
            (low_watermark < target).then(|| LowWatermarkWait::new(Arc::clone(self), target));
        Ok(DeletedRecords {
            low_watermark,
            wait,
        })
    }

    fn out_of_range(&self, offset: i64) -> PartitionError {
        PartitionError::OffsetOutOfRange {
            offset,
            log_start_offset: self.log().log_start_offset(),
            end_offset: self.log().log_end_offset(),
        }
    }
}

/// The offset after the last batch of a read.
fn end_offset(read: &LogRead) -> i64 {
    let last = Batches::new(&read.records).filter_map(Result::ok).last();
    last.map_or(0, |(header, _)| header.next_offset())
}
