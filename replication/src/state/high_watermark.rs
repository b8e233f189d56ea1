//! The high watermark: the exclusive end of what is committed.

/// What the rule looks at, all read under one lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HighWatermarkInput {
    /// The current high watermark.
    pub high_watermark: i64,
    /// The leader's own log end offset.
    pub log_end_offset: i64,
    /// Size of the committed in-sync replicas, the leader included.
    pub committed_isr: usize,
    /// See [`effective_min_isr`](super::commit::effective_min_isr).
    pub effective_min_isr: usize,
}

/// The next high watermark, if it moves.
///
/// It is the smallest log end offset of the leader and of those `followers` that are waited for:
/// the other members of the *maximal* in-sync replicas, and those that are about to join them. It
/// never goes back within a leadership, and it stands still while the committed in-sync replicas
/// are fewer than the minimum (KIP-966).
///
/// Of each follower it takes the log end offset (-1 while unknown) and a function that tells
/// whether it is waited for, which is asked only where the answer matters.
#[must_use]
pub fn next_high_watermark<W: FnOnce() -> bool>(
    input: HighWatermarkInput,
    followers: impl IntoIterator<Item = (i64, W)>,
) -> Option<i64> {
    if input.committed_isr < input.effective_min_isr {
        return None;
    }
    let mut candidate = input.log_end_offset;
    for (log_end_offset, is_waited_for) in followers {
        if candidate <= input.high_watermark {
            return None;
        }
        if log_end_offset < candidate && is_waited_for() {
            candidate = log_end_offset;
        }
    }
    (candidate > input.high_watermark).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(high_watermark: i64, log_end_offset: i64) -> HighWatermarkInput {
        HighWatermarkInput {
            high_watermark,
            log_end_offset,
            committed_isr: 2,
            effective_min_isr: 2,
        }
    }

    fn next(input: HighWatermarkInput, waited_for: &[i64]) -> Option<i64> {
        next_high_watermark(input, waited_for.iter().map(|end| (*end, || true)))
    }

    #[test]
    fn a_lone_leader_commits_what_it_appends() {
        let alone = HighWatermarkInput {
            committed_isr: 1,
            effective_min_isr: 1,
            ..input(3, 7)
        };
        assert_eq!(next(alone, &[]), Some(7));
    }

    #[test]
    fn the_slowest_in_sync_replica_holds_it() {
        assert_eq!(next(input(3, 7), &[5, 6]), Some(5));
    }

    #[test]
    fn a_replica_that_is_not_waited_for_does_not_hold_it() {
        let followers = [(5, false), (6, true)].map(|(end, waited)| (end, move || waited));
        assert_eq!(next_high_watermark(input(3, 7), followers), Some(6));
    }

    #[test]
    fn a_replica_that_has_not_fetched_yet_keeps_it_where_it_is() {
        assert_eq!(next(input(3, 7), &[-1]), None);
    }

    #[test]
    fn it_never_goes_back() {
        assert_eq!(next(input(6, 7), &[5]), None);
    }

    #[test]
    fn it_stands_still_below_the_minimum_of_in_sync_replicas() {
        let few = HighWatermarkInput {
            committed_isr: 1,
            ..input(3, 7)
        };
        assert_eq!(next(few, &[]), None);
    }
}
