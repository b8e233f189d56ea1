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
/// It is the smallest log end offset of the leader and of `awaited_log_end_offsets`: the other
/// members of the *maximal* in-sync replicas. It never goes back within a leadership, and it
/// stands still while the in-sync replicas are fewer than the minimum (KIP-966).
#[must_use]
pub fn next_high_watermark(
    input: HighWatermarkInput,
    awaited_log_end_offsets: impl IntoIterator<Item = i64>,
) -> Option<i64> {
    if input.committed_isr < input.effective_min_isr {
        return None;
    }
    let candidate = awaited_log_end_offsets
        .into_iter()
        .fold(input.log_end_offset, i64::min);
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

    #[test]
    fn a_lone_leader_commits_what_it_appends() {
        let alone = HighWatermarkInput {
            committed_isr: 1,
            effective_min_isr: 1,
            ..input(3, 7)
        };
        assert_eq!(next_high_watermark(alone, []), Some(7));
    }

    #[test]
    fn the_slowest_in_sync_replica_holds_it() {
        assert_eq!(next_high_watermark(input(3, 7), [5, 6]), Some(5));
    }

    #[test]
    fn a_replica_that_has_not_fetched_yet_keeps_it_where_it_is() {
        assert_eq!(next_high_watermark(input(3, 7), [-1]), None);
    }

    #[test]
    fn it_never_goes_back() {
        assert_eq!(next_high_watermark(input(6, 7), [5]), None);
    }

    #[test]
    fn it_stands_still_below_the_minimum_of_in_sync_replicas() {
        let few = HighWatermarkInput {
            committed_isr: 1,
            ..input(3, 7)
        };
        assert_eq!(next_high_watermark(few, []), None);
    }
}
