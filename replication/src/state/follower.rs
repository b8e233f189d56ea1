//! A partition's follower: where it fetches from, and what it does with each answer of the leader.
//!
//! Events in, steps out. A step is carried out by whoever holds the log, who then tells what came
//! of it.

use highwater_storage::LeaderEpoch;

use super::leadership::LogOffsets;
use super::truncation::{EpochEnd, FollowerLog, Truncation, truncation};

/// Where a fetch asks to go on, as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchPosition {
    /// The first offset wanted, which acknowledges everything before it.
    pub fetch_offset: i64,
    /// The leader epoch in which the follower follows.
    pub leader_epoch: LeaderEpoch,
    /// The epoch of the last record before `fetch_offset`, if there is one.
    pub last_fetched_epoch: Option<LeaderEpoch>,
}

/// Why a leader refuses a fetch or a look-up; named as Kafka's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeaderError {
    /// The offset is not in the leader's log.
    #[error("OFFSET_OUT_OF_RANGE")]
    OffsetOutOfRange,
    /// The follower's leader epoch is over.
    #[error("FENCED_LEADER_EPOCH")]
    FencedLeaderEpoch,
    /// The leader has not heard of the follower's leader epoch, or of the follower, yet.
    #[error("UNKNOWN_LEADER_EPOCH")]
    UnknownLeaderEpoch,
    /// It does not lead the partition, or the follower's broker epoch is over.
    #[error("NOT_LEADER_OR_FOLLOWER")]
    NotLeaderOrFollower,
    /// It does not know the partition.
    #[error("UNKNOWN_TOPIC_OR_PARTITION")]
    UnknownTopicOrPartition,
    /// It does not know the topic.
    #[error("UNKNOWN_TOPIC_ID")]
    UnknownTopicId,
    /// The topic has another id there.
    #[error("INCONSISTENT_TOPIC_ID")]
    InconsistentTopicId,
    /// Any other error, by its code.
    #[error("error code {0}")]
    Other(i16),
}

/// A leader's answer for one partition, without the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchAnswer {
    /// Records, maybe none, that follow the position.
    Records {
        /// The leader's high watermark.
        high_watermark: i64,
        /// The leader's log start offset.
        log_start_offset: i64,
    },
    /// The follower's log is not a prefix of the leader's.
    Diverging(EpochEnd),
    /// The leader refuses.
    Error(LeaderError),
}

/// What to do with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "steps are to be carried out"]
pub enum FollowerStep {
    /// Nothing: it answers a position that is no longer this follower's.
    Drop,
    /// Append the records up to this leader epoch, then take over high watermark and log start;
    /// then [`on_appended`](FollowerState::on_appended).
    Append {
        /// Batches of later epochs, and all that follow them, are left out (KAFKA-18723).
        up_to_epoch: LeaderEpoch,
        /// See [`follower_high_watermark`].
        high_watermark: i64,
        /// See [`follower_log_start_offset`].
        log_start_offset: i64,
    },
    /// Cut the log; then [`on_log_changed`](FollowerState::on_log_changed). Nothing else of the
    /// answer may be used (KAFKA-14704).
    Truncate(Truncation),
    /// Ask the leader for its log end, then
    /// [`on_leader_log_end_offset`](FollowerState::on_leader_log_end_offset).
    FindOffset,
    /// Fetch again after a while.
    BackOff,
    /// Fetch no more until the metadata brings a new leader epoch.
    Fail,
}

/// What to do when the leader has told its log end offset after OFFSET_OUT_OF_RANGE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "steps are to be carried out"]
pub enum LogEndStep {
    /// The leader's log is shorter: cut the log to its end.
    TruncateTo(i64),
    /// Ask for the leader's log start, then
    /// [`on_leader_log_start_offset`](FollowerState::on_leader_log_start_offset).
    FindLogStart,
}

/// What to do when the leader has told its log start offset after OFFSET_OUT_OF_RANGE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "steps are to be carried out"]
pub enum LogStartStep {
    /// The leader no longer has what follows our log: drop all of it and begin here.
    RestartAt(i64),
    /// The offset is in the leader's log now: ask where the epoch of our last record ends there,
    /// and cut the log as [`truncation`] says.
    FindEpochEnd(LeaderEpoch),
    /// The offset is in the leader's log now, and our log names no epochs: fetch again.
    FetchAgain,
}

/// Whether a follower may fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Ready,
    BackedOff { until_ms: i64 },
    Failed,
}

/// A follower of one partition in one leader epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowerState {
    position: FetchPosition,
    phase: Phase,
    /// Records between our log end and the leader's high watermark, as of the last answer.
    lag: Option<i64>,
}

impl FollowerState {
    /// Begins to follow in `leader_epoch` with the log as it is. A log without leader epochs must
    /// be cut to the second value first, its high watermark: what follows cannot be compared.
    pub fn on_become_follower(
        leader_epoch: LeaderEpoch,
        log: &impl FollowerLog,
    ) -> (Self, Option<i64>) {
        let last_fetched_epoch = log.latest_epoch();
        let LogOffsets {
            high_watermark,
            log_end_offset,
            ..
        } = log.offsets();
        let truncate_to = (last_fetched_epoch.is_none() && high_watermark < log_end_offset)
            .then_some(high_watermark);
        let state = Self {
            position: FetchPosition {
                fetch_offset: truncate_to.unwrap_or(log_end_offset),
                leader_epoch,
                last_fetched_epoch,
            },
            phase: Phase::Ready,
            lag: None,
        };
        (state, truncate_to)
    }

    /// Where to fetch.
    #[must_use]
    pub fn position(&self) -> FetchPosition {
        self.position
    }

    /// Whether it is to be fetched at `now_ms`.
    #[must_use]
    pub fn is_ready(&self, now_ms: i64) -> bool {
        match self.phase {
            Phase::Ready => true,
            Phase::BackedOff { until_ms } => now_ms >= until_ms,
            Phase::Failed => false,
        }
    }

    /// Until when it rests after an error.
    #[must_use]
    pub fn backed_off_until_ms(&self) -> Option<i64> {
        match self.phase {
            Phase::BackedOff { until_ms } => Some(until_ms),
            Phase::Ready | Phase::Failed => None,
        }
    }

    /// Whether it fetches no more in this leader epoch.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        self.phase == Phase::Failed
    }

    /// Whether it had everything that is committed, as of the last answer. Such a replica is never
    /// throttled.
    #[must_use]
    pub fn is_in_sync(&self) -> bool {
        self.lag.is_some_and(|lag| lag <= 0)
    }

    /// Records between our log end and the leader's high watermark, as of the last answer.
    #[must_use]
    pub fn lag(&self) -> Option<i64> {
        self.lag
    }

    /// The leader answered a fetch that was sent at `sent`. An answer to any other position than the
    /// present one is dropped, be it only that the last epoch was another one: since then the log
    /// was cut and has come back to the same offset.
    pub fn on_fetch_answer(
        &self,
        sent: FetchPosition,
        answer: FetchAnswer,
        log: &impl FollowerLog,
        now_ms: i64,
    ) -> FollowerStep {
        if sent != self.position || !self.is_ready(now_ms) {
            return FollowerStep::Drop;
        }
        match answer {
            FetchAnswer::Records {
                high_watermark,
                log_start_offset,
            } => FollowerStep::Append {
                up_to_epoch: sent.leader_epoch,
                high_watermark,
                log_start_offset,
            },
            FetchAnswer::Diverging(end) => FollowerStep::Truncate(truncation(Some(end), log)),
            FetchAnswer::Error(error) => self.on_error(error),
        }
    }

    /// The leader refused a fetch or a look-up that was sent in the present leader epoch.
    pub fn on_error(&self, error: LeaderError) -> FollowerStep {
        match error {
            LeaderError::OffsetOutOfRange => FollowerStep::FindOffset,
            // There is a newer leader epoch, and this broker will hear of it.
            LeaderError::FencedLeaderEpoch => FollowerStep::Fail,
            LeaderError::UnknownLeaderEpoch
            | LeaderError::NotLeaderOrFollower
            | LeaderError::UnknownTopicOrPartition
            | LeaderError::UnknownTopicId
            | LeaderError::InconsistentTopicId
            | LeaderError::Other(_) => FollowerStep::BackOff,
        }
    }

    /// The leader told its log end offset.
    pub fn on_leader_log_end_offset(
        &self,
        leader_log_end_offset: i64,
        log: &impl FollowerLog,
    ) -> LogEndStep {
        if leader_log_end_offset < log.offsets().log_end_offset {
            LogEndStep::TruncateTo(leader_log_end_offset)
        } else {
            LogEndStep::FindLogStart
        }
    }

    /// The leader told its log start offset; its log end is not below ours.
    pub fn on_leader_log_start_offset(
        &self,
        leader_log_start_offset: i64,
        log: &impl FollowerLog,
    ) -> LogStartStep {
        if leader_log_start_offset > log.offsets().log_end_offset {
            return LogStartStep::RestartAt(leader_log_start_offset);
        }
        log.latest_epoch()
            .map_or(LogStartStep::FetchAgain, LogStartStep::FindEpochEnd)
    }

    /// Records were appended, maybe none. `last_epoch` is that of the last batch; with no batch
    /// the epoch that was known stays (KAFKA-15510).
    pub fn on_appended(
        &mut self,
        log_end_offset: i64,
        last_epoch: Option<LeaderEpoch>,
        leader_high_watermark: i64,
    ) {
        self.position.fetch_offset = log_end_offset;
        if last_epoch.is_some() {
            self.position.last_fetched_epoch = last_epoch;
        }
        self.lag = Some((leader_high_watermark - log_end_offset).max(0));
        self.phase = Phase::Ready;
    }

    /// The log was cut, begun anew, or left in an unknown state by an error: go on where it ends.
    pub fn on_log_changed(&mut self, log: &impl FollowerLog) {
        self.position.fetch_offset = log.offsets().log_end_offset;
        self.position.last_fetched_epoch = log.latest_epoch();
        if !self.is_failed() {
            self.phase = Phase::Ready;
        }
    }

    /// Rests until `until_ms`.
    pub fn on_back_off(&mut self, until_ms: i64) {
        if !self.is_failed() {
            self.phase = Phase::BackedOff { until_ms };
        }
    }

    /// Fetches no more in this leader epoch.
    pub fn on_failed(&mut self) {
        self.phase = Phase::Failed;
    }
}

/// The high watermark of a follower after an answer with records: the leader's, as far as its own
/// log reaches. It may go down, when a new leader knows less.
#[must_use]
pub fn follower_high_watermark(leader_high_watermark: i64, log: LogOffsets) -> i64 {
    leader_high_watermark
        .max(log.log_start_offset)
        .min(log.log_end_offset)
}

/// Where the log of a follower begins after an answer with records, if it is to change: where the
/// leader's begins, unless that is beyond what this replica knows to be committed.
#[must_use]
pub fn follower_log_start_offset(leader_log_start_offset: i64, log: LogOffsets) -> Option<i64> {
    (leader_log_start_offset > log.log_start_offset
        && leader_log_start_offset <= log.high_watermark)
        .then_some(leader_log_start_offset)
}

#[cfg(test)]
mod tests;
