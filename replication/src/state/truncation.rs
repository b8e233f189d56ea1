//! Where a follower cuts its log when it is not a prefix of the leader's (KIP-101, KIP-279).

use highwater_storage::LeaderEpoch;

use super::leadership::LogOffsets;

/// What a follower's rules look at in its own log.
pub trait FollowerLog {
    /// Where it begins and ends, and its high watermark.
    fn offsets(&self) -> LogOffsets;
    /// The newest leader epoch that it knows.
    fn latest_epoch(&self) -> Option<LeaderEpoch>;
    /// The largest epoch not above `epoch`, and where it ends; an epoch before all known ones ends
    /// where the first of them begins. `None` when the log knows no epochs, or only older ones.
    fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, i64)>;
}

/// An epoch of the leader, and where it ends in the leader's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEnd {
    /// The largest epoch of the leader that is not above the one the follower named.
    pub epoch: LeaderEpoch,
    /// Where it ends.
    pub end_offset: i64,
}

/// A cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    /// The log is to end here, at its end or before. To be cut even when it ends here already:
    /// epochs that begin here wrote nothing and are not the leader's.
    pub offset: i64,
    /// Whether the logs agree then. If not, the next fetch names an older epoch, and its answer
    /// tells the next cut; each round drops at least one epoch.
    pub is_complete: bool,
}

/// Where to cut, given where the leader's epoch ends; `None` when the leader does not know, and
/// only what is committed can be trusted.
#[must_use]
pub fn truncation(leader: Option<EpochEnd>, log: &impl FollowerLog) -> Truncation {
    let LogOffsets {
        high_watermark,
        log_end_offset,
        ..
    } = log.offsets();
    let Some(leader) = leader else {
        return Truncation {
            offset: high_watermark.min(log_end_offset),
            is_complete: true,
        };
    };
    let (offset, is_complete) = match log.end_offset_for_epoch(leader.epoch) {
        // This replica does not have that epoch: everything after the one before is of epochs
        // that the leader does not have, or has elsewhere.
        Some((epoch, end_offset)) if epoch != leader.epoch => (end_offset, false),
        Some((_, end_offset)) => (end_offset.min(leader.end_offset), true),
        None => (leader.end_offset, true),
    };
    Truncation {
        offset: offset.min(log_end_offset),
        is_complete,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::epochs::Epochs;

    fn end(epoch: i32, end_offset: i64) -> Option<EpochEnd> {
        Some(EpochEnd {
            epoch: LeaderEpoch(epoch),
            end_offset,
        })
    }

    fn cut(offset: i64, is_complete: bool) -> Truncation {
        Truncation {
            offset,
            is_complete,
        }
    }

    #[test]
    fn kip_101_a_follower_that_is_ahead_in_the_leaders_epoch_cuts_to_the_leaders_end() {
        let log = Epochs(vec![(1, 0)], 0, 4);
        assert_eq!(truncation(end(1, 2), &log), cut(2, true));
    }

    #[test]
    fn kip_279_the_common_epoch_ends_where_it_ends_in_the_shorter_log() {
        // Leader e0[0..19] e2[20..29]; follower e0[0..9] e1[10..19].
        let log = Epochs(vec![(0, 0), (1, 10)], 0, 20);
        assert_eq!(truncation(end(0, 20), &log), cut(10, true));
    }

    #[test]
    fn an_epoch_that_the_follower_lacks_needs_another_round() {
        // Leader e0[0..6] e2[7..11] e5[12..20]; follower e0[0..4] e1[5..9] e3[10..14] e4[15..19].
        let log = Epochs(vec![(0, 0), (1, 5), (3, 10), (4, 15)], 0, 20);
        assert_eq!(truncation(end(2, 12), &log), cut(10, false));
        let log = Epochs(vec![(0, 0), (1, 5)], 0, 10);
        assert_eq!(truncation(end(0, 7), &log), cut(5, true));
    }

    #[test]
    fn without_a_common_epoch_everything_goes() {
        // Leader e1[0..0] e2[1..3]; follower e3[0..2].
        let log = Epochs(vec![(3, 0)], 0, 3);
        assert_eq!(truncation(end(2, 4), &log), cut(0, true));
    }

    #[test]
    fn an_epoch_that_wrote_nothing_is_cut_off_at_the_log_end() {
        // The follower was elected in epoch 3 and wrote nothing; the leader has 2 up to 9.
        let log = Epochs(vec![(2, 0), (3, 5)], 0, 5);
        assert_eq!(truncation(end(2, 9), &log), cut(5, true));
    }

    #[test]
    fn a_log_without_epochs_cuts_to_the_leaders_end_but_never_grows() {
        assert_eq!(truncation(end(4, 7), &Epochs(vec![], 0, 9)), cut(7, true));
        assert_eq!(truncation(end(4, 7), &Epochs(vec![], 0, 5)), cut(5, true));
    }

    #[test]
    fn with_no_answer_only_what_is_committed_stays() {
        let log = Epochs(vec![(1, 0)], 6, 9);
        assert_eq!(truncation(None, &log), cut(6, true));
    }
}
