//! Applying records, when the partition is loaded and when a batch of one's own is committed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::group::Group;
use super::member::{Member, MemberProtocol};
use super::offsets::CommittedOffset;
use super::{Effects, GroupShard, GroupState, Now};
use crate::coordinator::group::GroupId;
use crate::coordinator::group::records::{GroupMetadataValue, GroupRecord, OffsetCommitValue};

/// A record of the log as the loader finds it.
#[derive(Clone, Debug)]
pub enum ReplayedRecord {
    /// A record that holds at once.
    Plain(GroupRecord),
    /// A record of a transaction, which holds once the transaction is committed.
    Transactional {
        /// The transaction's producer.
        producer_id: i64,
        /// The record.
        record: GroupRecord,
    },
    /// The end of a producer's transaction.
    EndTransaction {
        /// The transaction's producer.
        producer_id: i64,
        /// Whether it was committed.
        committed: bool,
    },
}

/// Offsets that were committed in transactions which have not ended.
#[derive(Debug, Default)]
pub(super) struct OpenTransactions {
    by_producer: BTreeMap<i64, Vec<(i64, GroupRecord)>>,
}

impl OpenTransactions {
    /// Whether a transaction has committed offsets for the group.
    pub(super) fn has_group(&self, group_id: &str) -> bool {
        let mut records = self.by_producer.values().flatten();
        records.any(|(_, record)| {
            matches!(record, GroupRecord::OffsetCommit { group, .. } if group == group_id)
        })
    }
}

impl GroupShard {
    /// Applies one record of the log, in order.
    pub fn replay(&mut self, offset: i64, record: ReplayedRecord, now: Now) {
        match record {
            ReplayedRecord::Plain(record) => self.apply(offset, record, now),
            ReplayedRecord::Transactional {
                producer_id,
                record,
            } => {
                let open = self.open_transactions.by_producer.entry(producer_id);
                open.or_default().push((offset, record));
            }
            ReplayedRecord::EndTransaction {
                producer_id,
                committed,
            } => {
                let ended = self.open_transactions.by_producer.remove(&producer_id);
                for (offset, record) in ended.into_iter().flatten() {
                    if committed {
                        self.apply(offset, record, now);
                    }
                }
            }
        }
    }

    /// The log has been replayed: sessions begin anew, and offsets are checked for expiry from now on.
    pub fn on_loaded(&mut self, now: Now) -> Effects {
        let mut effects = Effects::default();
        for group in self.groups.values_mut() {
            group.subscribed_topics = group.compute_subscribed_topics();
        }
        let with_members: Vec<GroupId> = self
            .groups
            .values()
            .filter(|group| !group.members.is_empty())
            .map(|group| group.id.clone())
            .collect();
        for group_id in with_members {
            self.with_group(&group_id, now, &mut effects, |group, step| {
                let member_ids: Vec<_> = group.members.keys().cloned().collect();
                for member_id in member_ids {
                    group.touch(step, &member_id);
                }
                if group.members.len() > step.config.max_size {
                    group.prepare_rebalance(step, "group is larger than group.max.size");
                }
            });
        }
        self.schedule_expiry(now);
        effects
    }

    /// Applies records of one's own batch that is now committed. A group that got a member since its tombstone was
    /// decided on stays: its next generation is written again.
    pub(super) fn apply_committed(
        &mut self,
        base_offset: i64,
        records: Vec<GroupRecord>,
        now: Now,
    ) {
        for (offset, record) in (base_offset..).zip(records) {
            if let GroupRecord::GroupMetadata { group, value: None } = &record
                && let Some(group) = self.groups.get(&**group)
                && group.state != GroupState::Empty
            {
                continue;
            }
            self.apply(offset, record, now);
        }
    }

    fn apply(&mut self, record_offset: i64, record: GroupRecord, now: Now) {
        match record {
            GroupRecord::OffsetCommit {
                group,
                topic,
                partition,
                value: Some(value),
            } => self.apply_offset(record_offset, &group, &topic, partition, value, now),
            GroupRecord::OffsetCommit {
                group,
                topic,
                partition,
                value: None,
            } => self.apply_offset_tombstone(&group, &topic, partition),
            GroupRecord::GroupMetadata {
                group,
                value: Some(value),
            } => self.apply_group(&group, value),
            GroupRecord::GroupMetadata { group, value: None } => {
                self.apply_group_tombstone(&group, now);
            }
        }
    }

    fn apply_offset(
        &mut self,
        record_offset: i64,
        group_id: &str,
        topic: &str,
        partition: i32,
        value: OffsetCommitValue,
        now: Now,
    ) {
        if !self.groups.contains_key(group_id) {
            let group_id = GroupId::from(group_id);
            let group = Group::new(group_id.clone(), now.wall_ms);
            self.groups.insert(group_id, group);
        }
        let Some(group) = self.groups.get_mut(group_id) else {
            return;
        };
        let partitions = match group.offsets.get_mut(topic) {
            Some(partitions) => partitions,
            None => group.offsets.entry(Arc::from(topic)).or_default(),
        };
        let is_outdated = |committed: &CommittedOffset| committed.record_offset > record_offset;
        if partitions.get(&partition).is_some_and(is_outdated) {
            // A transaction was committed that wrote its offset before this one was written.
            return;
        }
        partitions.insert(
            partition,
            CommittedOffset {
                offset: value.offset,
                leader_epoch: value.leader_epoch,
                metadata: value.metadata.into(),
                commit_timestamp_ms: value.commit_timestamp_ms,
                expire_timestamp_ms: value.expire_timestamp_ms,
                topic_id: value.topic_id,
                record_offset,
            },
        );
    }

    fn apply_offset_tombstone(&mut self, group_id: &str, topic: &str, partition: i32) {
        if let Some(group) = self.groups.get_mut(group_id)
            && let Some(partitions) = group.offsets.get_mut(topic)
        {
            partitions.remove(&partition);
            if partitions.is_empty() {
                group.offsets.remove(topic);
            }
        }
        for records in self.open_transactions.by_producer.values_mut() {
            records.retain(|(_, record)| {
                !matches!(record, GroupRecord::OffsetCommit { group, topic: t, partition: p, .. }
                    if group == group_id && t == topic && *p == partition)
            });
        }
    }

    /// A group with members is Stable: it is written when its assignment is.
    fn apply_group(&mut self, group_id: &str, value: GroupMetadataValue) {
        let offsets = self.groups.remove(group_id).map(|group| group.offsets);
        let optional = |text: String| Some(text).filter(|text| !text.is_empty());
        let mut group = Group::new(GroupId::from(group_id), 0);
        group.offsets = offsets.unwrap_or_default();
        group.state_timestamp_ms =
            Some(value.current_state_timestamp_ms).filter(|at_ms| *at_ms != -1);
        group.generation = value.generation;
        group.protocol_type = optional(value.protocol_type).map(Arc::from);
        group.protocol_name = value.protocol.map(Arc::from);
        for member in value.members {
            let protocol = MemberProtocol {
                name: group.protocol_name.clone().unwrap_or_default(),
                metadata: member.subscription,
            };
            group.add(Member {
                id: member.member_id.into(),
                instance_id: member.group_instance_id.map(Arc::from),
                client_id: member.client_id.into(),
                client_host: member.client_host.into(),
                session_timeout_ms: member.session_timeout_ms,
                rebalance_timeout_ms: match member.rebalance_timeout_ms {
                    -1 => member.session_timeout_ms,
                    timeout_ms => timeout_ms,
                },
                protocols: vec![protocol],
                assignment: member.assignment,
                awaiting_join: None,
                awaiting_sync: None,
                is_new: false,
                heartbeat_deadline_ms: 0,
                timer_at_ms: None,
            });
            group.state = GroupState::Stable;
        }
        let known_leader = value.leader.map(Arc::from);
        if known_leader
            .as_ref()
            .is_some_and(|leader| group.members.contains_key(leader))
        {
            group.leader = known_leader;
        }
        self.groups.insert(group.id.clone(), group);
    }

    /// The group goes. Offsets that are still there make it a simple group.
    fn apply_group_tombstone(&mut self, group_id: &str, now: Now) {
        let Some(mut group) = self.groups.remove(group_id) else {
            return;
        };
        let pending: Vec<_> = group.pending_joins.keys().cloned().collect();
        for member_id in pending {
            group.remove_pending(&mut self.timers, &member_id);
        }
        if !group.offsets.is_empty() {
            let mut simple = Group::new(group.id.clone(), now.wall_ms);
            simple.offsets = group.offsets;
            self.groups.insert(simple.id.clone(), simple);
        }
    }
}
