//! The deadlines of one shard, in order.

use std::collections::BTreeSet;

use crate::coordinator::group::{GroupId, MemberId};

/// What is due.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKey {
    /// A member, or a member id that was handed out and not used yet, was silent for its session time-out.
    Heartbeat {
        /// The group.
        group: GroupId,
        /// The member.
        member: MemberId,
    },
    /// The join phase of a rebalance ends.
    Join {
        /// The group.
        group: GroupId,
    },
    /// Members had their time to ask for the assignment.
    Sync {
        /// The group.
        group: GroupId,
    },
    /// Offsets are checked for expiry.
    ExpireOffsets,
}

/// Deadlines on the monotonic clock. Who sets one knows where it lies, so that it can be taken out again: nothing
/// stays behind for a member that left.
#[derive(Debug, Default)]
pub(super) struct TimerQueue {
    entries: BTreeSet<(i64, TimerKey)>,
}

impl TimerQueue {
    pub(super) fn schedule(&mut self, deadline_ms: i64, key: TimerKey) {
        self.entries.insert((deadline_ms, key));
    }

    pub(super) fn cancel(&mut self, deadline_ms: i64, key: TimerKey) {
        self.entries.remove(&(deadline_ms, key));
    }

    pub(super) fn next_deadline_ms(&self) -> Option<i64> {
        self.entries.first().map(|(deadline_ms, _)| *deadline_ms)
    }

    pub(super) fn pop_due(&mut self, now_ms: i64) -> Option<TimerKey> {
        if self.next_deadline_ms()? > now_ms {
            return None;
        }
        self.entries.pop_first().map(|(_, key)| key)
    }

    #[cfg(test)]
    pub(super) fn contains(&self, deadline_ms: i64, key: TimerKey) -> bool {
        self.entries.contains(&(deadline_ms, key))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
