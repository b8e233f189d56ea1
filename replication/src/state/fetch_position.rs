//! Whether a follower's log is a prefix of its leader's, told by where its fetch asks to go on.
//!
//! Fetch requests from version 12 on name the epoch of the follower's last record (KIP-595), so
//! that the leader finds a divergence itself and no separate look-up is needed.

use highwater_storage::LeaderEpoch;

use super::truncation::{EpochEnd, FollowerLog};

/// What a leader finds about a position in its own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PositionVerdict {
    /// The follower's log is a prefix of the leader's: records from the position on follow it.
    Prefix,
    /// It is not: answer at once, with this and nothing else, and take no note of the fetch
    /// (KAFKA-13141).
    Diverging(EpochEnd),
    /// OFFSET_OUT_OF_RANGE: the leader's log has no such offset, or knows nothing of the epoch.
    OutOfRange,
}

/// Judges a fetch from `fetch_offset` on whose last record has the epoch `last_fetched_epoch`;
/// `None` when it names none. `log` is the leader's, with the present leader epoch in it.
#[must_use]
pub fn judge_position(
    fetch_offset: i64,
    last_fetched_epoch: Option<LeaderEpoch>,
    log: &impl FollowerLog,
) -> PositionVerdict {
    let offsets = log.offsets();
    if fetch_offset < offsets.log_start_offset {
        // Before the divergence is looked at: where the log begins now, the epochs are not known.
        return PositionVerdict::OutOfRange;
    }
    if let Some(last_fetched_epoch) = last_fetched_epoch {
        match log.end_offset_for_epoch(last_fetched_epoch) {
            None => return PositionVerdict::OutOfRange,
            Some((epoch, end_offset))
                if epoch < last_fetched_epoch || end_offset < fetch_offset =>
            {
                return PositionVerdict::Diverging(EpochEnd { epoch, end_offset });
            }
            Some(_) => {}
        }
    }
    if fetch_offset > offsets.log_end_offset {
        return PositionVerdict::OutOfRange;
    }
    PositionVerdict::Prefix
}

#[cfg(test)]
mod tests {
    use super::super::leadership::LogOffsets;
    use super::*;

    /// A log that begins at 2 with e1[2..4], e3[5..9].
    struct Leader;

    impl FollowerLog for Leader {
        fn offsets(&self) -> LogOffsets {
            LogOffsets {
                log_start_offset: 2,
                high_watermark: 5,
                log_end_offset: 10,
            }
        }

        fn latest_epoch(&self) -> Option<LeaderEpoch> {
            Some(LeaderEpoch(3))
        }

        fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, i64)> {
            match epoch.0 {
                0 => Some((epoch, 2)),
                1 | 2 => Some((LeaderEpoch(1), 5)),
                3 => Some((epoch, 10)),
                _ => None,
            }
        }
    }

    fn judge(fetch_offset: i64, last_fetched_epoch: i32) -> PositionVerdict {
        judge_position(fetch_offset, Some(LeaderEpoch(last_fetched_epoch)), &Leader)
    }

    fn diverging(epoch: i32, end_offset: i64) -> PositionVerdict {
        PositionVerdict::Diverging(EpochEnd {
            epoch: LeaderEpoch(epoch),
            end_offset,
        })
    }

    #[test]
    fn a_prefix_goes_on_where_it_ends() {
        assert_eq!(judge(4, 1), PositionVerdict::Prefix);
        assert_eq!(judge(5, 1), PositionVerdict::Prefix);
        assert_eq!(judge(10, 3), PositionVerdict::Prefix);
    }

    #[test]
    fn more_records_of_an_epoch_than_the_leader_has_diverge() {
        assert_eq!(judge(6, 1), diverging(1, 5));
        assert_eq!(judge(11, 3), diverging(3, 10));
    }

    #[test]
    fn an_epoch_that_the_leader_does_not_have_diverges_even_where_the_one_before_ends() {
        assert_eq!(judge(5, 2), diverging(1, 5));
    }

    #[test]
    fn an_epoch_later_than_all_of_the_leader_is_out_of_range() {
        assert_eq!(judge(5, 4), PositionVerdict::OutOfRange);
    }

    #[test]
    fn what_lies_before_the_log_start_is_out_of_range_whatever_its_epoch() {
        assert_eq!(judge(1, 0), PositionVerdict::OutOfRange);
        assert_eq!(judge(2, 0), PositionVerdict::Prefix);
    }

    #[test]
    fn without_an_epoch_only_the_offset_counts() {
        assert_eq!(judge_position(7, None, &Leader), PositionVerdict::Prefix);
        assert_eq!(
            judge_position(11, None, &Leader),
            PositionVerdict::OutOfRange
        );
        assert_eq!(
            judge_position(1, None, &Leader),
            PositionVerdict::OutOfRange
        );
    }
}
