//! A log for tests of what needs only its epochs and ends.

use highwater_storage::LeaderEpoch;

use super::leadership::LogOffsets;
use super::truncation::FollowerLog;

/// A log that begins at 0: where each epoch begins, its high watermark, and its end.
pub(super) struct Epochs(pub(super) Vec<(i32, i64)>, pub(super) i64, pub(super) i64);

impl FollowerLog for Epochs {
    fn offsets(&self) -> LogOffsets {
        LogOffsets {
            log_start_offset: 0,
            high_watermark: self.1,
            log_end_offset: self.2,
        }
    }

    fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.0.last().map(|(epoch, _)| LeaderEpoch(*epoch))
    }

    fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, i64)> {
        if self.latest_epoch()? == epoch {
            return Some((epoch, self.2));
        }
        let later = self.0.iter().position(|(known, _)| *known > epoch.0)?;
        let floor = later.checked_sub(1).map(|at| LeaderEpoch(self.0[at].0));
        Some((floor.unwrap_or(epoch), self.0[later].1))
    }
}
