//! What a partition does as follower: appends what the leader has, and cuts what it has not.
//!
//! Everything here names the leader epoch in which it was decided, and does nothing in another.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use highwater_storage::record_batch::BatchHeader;
use highwater_storage::{AppendError, LeaderEpoch, Log, StorageError};
use parking_lot::MutexGuard;
use thiserror::Error;

use super::{Partition, Role};
use crate::state::follower::{
    FetchPosition, FollowerState, follower_high_watermark, follower_log_start_offset,
};
use crate::state::leadership::LogOffsets;
use crate::state::truncation::FollowerLog;

/// Why a follower could not do what its leader's answer asks for.
#[derive(Debug, Error)]
pub enum FollowError {
    /// It does not follow in that leader epoch any more, or its log does not end where the answer
    /// begins: the answer is not for it.
    #[error("the answer is not for this replica any more")]
    Stale,
    /// What came is damaged: fetch it again.
    #[error("what the leader sent is damaged: {0}")]
    Corrupt(String),
    /// What came does not follow on the log.
    #[error("what the leader sent does not fit: {0}")]
    Unexpected(AppendError),
    /// The disk failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<AppendError> for FollowError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::CorruptMessage(reason) => Self::Corrupt(reason),
            AppendError::Storage(error) => Self::Storage(error),
            other => Self::Unexpected(other),
        }
    }
}

/// What an answer with records did to a follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerAppend {
    /// The log end offset now.
    pub log_end_offset: i64,
    /// The epoch of the last batch; `None` when there was none.
    pub last_epoch: Option<LeaderEpoch>,
    /// Bytes that were written.
    pub size_bytes: usize,
}

impl Partition {
    /// Begins to follow in `leader_epoch`, from where the log ends. A log without leader epochs is
    /// cut to its high watermark first. May wait for the disk.
    ///
    /// # Errors
    /// [`FollowError::Stale`] in another leader epoch; a failure of the disk.
    pub fn start_following(&self, leader_epoch: LeaderEpoch) -> Result<FollowerState, FollowError> {
        let _role = self.follow_in(leader_epoch)?;
        let (state, truncate_to) = FollowerState::on_become_follower(leader_epoch, &*self.log);
        if let Some(offset) = truncate_to {
            self.log.truncate_to(offset)?;
        }
        Ok(state)
    }

    /// Appends what the leader answered to a fetch at `sent`, takes over its high watermark and
    /// its log start, and wakes who waits for them.
    ///
    /// # Errors
    /// [`FollowError`]; the log may have grown by some of the records then.
    pub fn append_as_follower(
        self: &Arc<Self>,
        sent: FetchPosition,
        records: &Bytes,
        leader_high_watermark: i64,
        leader_log_start_offset: i64,
        now_ms: i64,
    ) -> Result<FollowerAppend, FollowError> {
        let (appended, moved_to) = {
            let _role = self.follow_in(sent.leader_epoch)?;
            if sent.fetch_offset != self.log.log_end_offset() {
                return Err(FollowError::Stale);
            }
            let appended = self.append_records(sent.leader_epoch, records, now_ms)?;
            let before = self.log.high_watermark();
            let next = follower_high_watermark(leader_high_watermark, self.offsets());
            if next != before {
                self.log.set_high_watermark(next);
            }
            if let Some(offset) = follower_log_start_offset(leader_log_start_offset, self.offsets())
            {
                self.log.follow_log_start_offset(offset)?;
            }
            (appended, (next > before).then_some(next))
        };
        if let Some(high_watermark) = moved_to {
            self.high_watermark_watch.advance(high_watermark);
        }
        let bytes_in = &self.context.metrics().replication_bytes_in;
        bytes_in.add(appended.size_bytes as u64);
        if self.is_follower_throttled() {
            let throttle = self.context.follower_throttle();
            throttle.record(appended.size_bytes as u64, self.context.now_ms());
        }
        Ok(appended)
    }

    /// Whether what this replica fetches is bounded as long as it is not in sync.
    pub(in crate::runtime) fn is_follower_throttled(&self) -> bool {
        self.is_follower_throttled.load(Ordering::Relaxed)
    }

    fn append_records(
        &self,
        leader_epoch: LeaderEpoch,
        records: &Bytes,
        now_ms: i64,
    ) -> Result<FollowerAppend, FollowError> {
        if records.is_empty() {
            return Ok(FollowerAppend {
                log_end_offset: self.log.log_end_offset(),
                last_epoch: None,
                size_bytes: 0,
            });
        }
        self.maybe_restart_at_batch(records)?;
        let info = self.log.append_as_follower(records, leader_epoch, now_ms)?;
        let last_epoch = (info.size_bytes > 0)
            .then(|| self.log.latest_epoch())
            .flatten();
        Ok(FollowerAppend {
            log_end_offset: self.log.log_end_offset(),
            last_epoch,
            size_bytes: info.size_bytes,
        })
    }

    /// The leader's log may begin within a batch (DeleteRecords). An empty log that begins there
    /// too begins at the batch instead, so that the batch can be appended.
    fn maybe_restart_at_batch(&self, records: &Bytes) -> Result<(), FollowError> {
        let LogOffsets {
            log_start_offset,
            log_end_offset,
            ..
        } = self.offsets();
        if log_start_offset != log_end_offset {
            return Ok(());
        }
        if let Ok(first) = BatchHeader::parse(records)
            && first.base_offset < log_end_offset
            && first.last_offset() >= log_end_offset
        {
            self.log.truncate_fully_and_start_at(first.base_offset)?;
        }
        Ok(())
    }

    /// Cuts the log as the leader's answer says. May wait for the disk.
    ///
    /// # Errors
    /// [`FollowError::Stale`] in another leader epoch; a failure of the disk.
    pub fn truncate_as_follower(
        &self,
        leader_epoch: LeaderEpoch,
        offset: i64,
    ) -> Result<(), FollowError> {
        let _role = self.follow_in(leader_epoch)?;
        let LogOffsets {
            high_watermark,
            log_end_offset,
            ..
        } = self.offsets();
        let topic_partition = &self.topic_partition;
        tracing::info!(%topic_partition, %leader_epoch, offset, log_end_offset, high_watermark, "the leader's log diverges, truncating");
        self.context.metrics().truncations.add(1);
        Ok(self.log.truncate_to(offset)?)
    }

    /// Drops the whole log and begins anew at `offset`: the leader no longer has what follows.
    ///
    /// # Errors
    /// [`FollowError::Stale`] in another leader epoch; a failure of the disk.
    pub fn restart_as_follower(
        &self,
        leader_epoch: LeaderEpoch,
        offset: i64,
    ) -> Result<(), FollowError> {
        let _role = self.follow_in(leader_epoch)?;
        Ok(self.log.truncate_fully_and_start_at(offset)?)
    }

    fn follow_in(&self, leader_epoch: LeaderEpoch) -> Result<MutexGuard<'_, Role>, FollowError> {
        let role = self.role.lock();
        if role.replica.follows_in(leader_epoch) {
            Ok(role)
        } else {
            Err(FollowError::Stale)
        }
    }
}

impl FollowerLog for Log {
    fn offsets(&self) -> LogOffsets {
        LogOffsets {
            log_start_offset: self.log_start_offset(),
            high_watermark: self.high_watermark(),
            log_end_offset: self.log_end_offset(),
        }
    }

    fn latest_epoch(&self) -> Option<LeaderEpoch> {
        Log::latest_epoch(self)
    }

    fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, i64)> {
        Log::end_offset_for_epoch(self, epoch)
    }
}
