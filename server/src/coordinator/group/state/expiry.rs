//! Offsets and groups that nobody uses any more.
//!
//! Kafka's rule: the offsets of a group with a protocol type are kept from the moment it became Empty; while it is
//! Stable, only those of topics that no consumer subscribes to run out, from the commit; during a rebalance none do. A
//! simple group's offsets are kept from their commit. An Empty group without offsets goes with the last of them.

use super::group::Group;
use super::offsets::{CommittedOffset, tombstone};
use super::{Effects, GroupShard, GroupState, Now, TimerKey};
use crate::coordinator::group::records::GroupRecord;

/// Tombstones in one batch; many more would not fit `max.message.bytes`.
const MAX_TOMBSTONES_PER_BATCH: usize = 1_000;

impl GroupShard {
    /// Sets the timer of the next check.
    pub(super) fn schedule_expiry(&mut self, now: Now) {
        let interval_ms = self.config.offsets_retention_check_interval_ms.max(1);
        let deadline_ms = now.monotonic_ms + interval_ms;
        self.timers.schedule(deadline_ms, TimerKey::ExpireOffsets);
    }

    /// Appends tombstones for all that has expired, and sets the timer anew.
    pub(super) fn expire_offsets(&mut self, now: Now, effects: &mut Effects) {
        self.schedule_expiry(now);
        let mut records = Vec::new();
        for group in self.groups.values() {
            let all_expired =
                group.expired_offsets(now, self.config.offsets_retention_ms, &mut records);
            let in_transaction = self.open_transactions.has_group(&group.id);
            if all_expired && group.is_unused() && !in_transaction {
                records.push(group.tombstone());
            }
        }
        if !records.is_empty() {
            tracing::info!(tombstones = records.len(), "expiring offsets and groups");
        }
        for batch in records.chunks(MAX_TOMBSTONES_PER_BATCH) {
            effects.apply(batch.to_vec(), None);
        }
    }
}

impl Group {
    /// No member, and no member id that was handed out.
    pub(super) fn is_unused(&self) -> bool {
        self.state == GroupState::Empty && self.pending_joins.is_empty()
    }

    pub(super) fn tombstone(&self) -> GroupRecord {
        GroupRecord::GroupMetadata {
            group: self.id.to_string(),
            value: None,
        }
    }

    /// Adds tombstones for expired offsets; true if no offset is left after them.
    fn expired_offsets(&self, now: Now, retention_ms: i64, records: &mut Vec<GroupRecord>) -> bool {
        let mut all_expired = true;
        for (topic, partitions) in &self.offsets {
            let is_consumed = self.is_subscribed_to(topic);
            for (partition, committed) in partitions {
                if !is_consumed && self.is_expired(committed, now, retention_ms) {
                    records.push(tombstone(&self.id, topic, *partition));
                } else {
                    all_expired = false;
                }
            }
        }
        all_expired
    }

    fn is_expired(&self, committed: &CommittedOffset, now: Now, retention_ms: i64) -> bool {
        let Some(since_ms) = self.unused_since_ms(committed) else {
            return false;
        };
        match committed.expire_timestamp_ms {
            Some(expire_timestamp_ms) => now.wall_ms >= expire_timestamp_ms,
            None => now.wall_ms.saturating_sub(since_ms) >= retention_ms,
        }
    }

    /// The time from which the retention of an offset counts; `None` while it does not count.
    fn unused_since_ms(&self, committed: &CommittedOffset) -> Option<i64> {
        let commit_timestamp_ms = committed.commit_timestamp_ms;
        match (&self.protocol_type, self.state) {
            (None, _) => Some(commit_timestamp_ms),
            (Some(_), GroupState::Empty) => {
                Some(self.state_timestamp_ms.unwrap_or(commit_timestamp_ms))
            }
            (Some(_), GroupState::Stable) if self.subscribed_topics.is_some() => {
                Some(commit_timestamp_ms)
            }
            _ => None,
        }
    }
}
