//! Committing, fetching and deleting offsets.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use uuid::Uuid;

use super::group::Group;
use super::{Effects, GroupShard, GroupState, Now, ReplyToken, Step};
use crate::coordinator::group::GroupId;
use crate::coordinator::group::records::{GroupRecord, OffsetCommitValue};

/// A group's committed offsets by topic and partition.
pub type TopicOffsets = BTreeMap<Arc<str>, BTreeMap<i32, CommittedOffset>>;

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The offset.
    pub offset: i64,
    /// The leader epoch of the last consumed record, -1 if not known.
    pub leader_epoch: i32,
    /// The client's own text.
    pub metadata: Arc<str>,
    /// When the offset was committed.
    pub commit_timestamp_ms: i64,
    /// When it expires, if the client said so.
    pub expire_timestamp_ms: Option<i64>,
    /// The topic's id, nil if not known.
    pub topic_id: Uuid,
    /// The place of its record in `__consumer_offsets`: of two commits the later one holds.
    pub record_offset: i64,
}

/// An OffsetCommit request, for partitions that exist.
#[derive(Clone, Debug)]
pub struct CommitRequest {
    /// The group.
    pub group_id: GroupId,
    /// The member, empty for a consumer without group management.
    pub member_id: Arc<str>,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<Arc<str>>,
    /// The generation, negative for a consumer without group management.
    pub generation: i32,
    /// How long the offsets are kept, if the client says so (versions 2 to 4).
    pub retention_ms: Option<i64>,
    /// The error for an unknown group with a generation: it changed in version 9.
    pub unknown_group_error: ResponseError,
    /// What is committed.
    pub offsets: Vec<OffsetToCommit>,
}

/// One partition of an OffsetCommit request.
#[derive(Clone, Debug)]
pub struct OffsetToCommit {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The topic's id, nil if not known.
    pub topic_id: Uuid,
    /// The partition's index.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The leader epoch of the last consumed record, -1 if not known.
    pub leader_epoch: i32,
    /// The client's own text.
    pub metadata: Arc<str>,
}

/// The results of an OffsetCommit request, if it was not refused as a whole.
pub type CommitOutcome = Result<Vec<Result<(), ResponseError>>, ResponseError>;

impl GroupShard {
    /// Commits offsets. Results that are `Ok` hold once the answer under `token` says so.
    pub fn commit_offsets(
        &mut self,
        request: &CommitRequest,
        token: ReplyToken,
        now: Now,
    ) -> (CommitOutcome, Effects) {
        let mut effects = Effects::default();
        let validated = self.with_group(&request.group_id, now, &mut effects, |group, step| {
            group.validate_commit(request)?;
            group.touch_committing(step, request);
            Ok(())
        });
        let validated = validated.unwrap_or(if request.generation < 0 {
            // The group comes to be when the first commit is on disk.
            Ok(())
        } else {
            Err(request.unknown_group_error)
        });
        if let Err(error) = validated {
            return effects.refuse(token, error);
        }
        let max_bytes = self.config.offset_metadata_max_bytes;
        let mut records = Vec::new();
        let mut results = Vec::with_capacity(request.offsets.len());
        for offset in &request.offsets {
            // Kafka compares the length of a Java string.
            if offset.metadata.encode_utf16().count() > max_bytes {
                results.push(Err(ResponseError::OffsetMetadataTooLarge));
            } else {
                results.push(Ok(()));
                records.push(offset.record(request, now));
            }
        }
        effects.apply(records, Some(token));
        (Ok(results), effects)
    }

    /// Deletes offsets of partitions that exist. A result that is `Ok` holds once the answer under `token` says so.
    pub fn delete_offsets(
        &mut self,
        group_id: &str,
        partitions: &[(Arc<str>, i32)],
        token: ReplyToken,
    ) -> (CommitOutcome, Effects) {
        let mut effects = Effects::default();
        let Some(group) = self.groups.get(group_id) else {
            return effects.refuse(token, ResponseError::GroupIdNotFound);
        };
        if group.state != GroupState::Empty && !group.uses_consumer_protocol() {
            return effects.refuse(token, ResponseError::NonEmptyGroup);
        }
        let mut records = Vec::new();
        let delete = |(topic, partition): &(Arc<str>, i32)| {
            if group.is_subscribed_to(topic) {
                return Err(ResponseError::GroupSubscribedToTopic);
            }
            let committed = group.offsets.get(topic);
            if committed.is_some_and(|partitions| partitions.contains_key(partition)) {
                records.push(tombstone(group_id, topic, *partition));
            }
            Ok(())
        };
        let results = partitions.iter().map(delete).collect();
        effects.apply(records, Some(token));
        (Ok(results), effects)
    }

    /// Drops what groups committed for topics that were deleted. An offset of a later topic with the same name stays.
    pub fn on_topics_deleted(&mut self, topics: &[(Arc<str>, Uuid)]) -> Effects {
        let mut effects = Effects::default();
        for group in self.groups.values() {
            let mut records = Vec::new();
            for (topic, topic_id) in topics {
                for (partition, committed) in group.offsets.get(topic).into_iter().flatten() {
                    if committed.topic_id.is_nil() || committed.topic_id == *topic_id {
                        records.push(tombstone(&group.id, topic, *partition));
                    }
                }
            }
            effects.apply(records, None);
        }
        effects
    }
}

impl Group {
    fn validate_commit(&self, request: &CommitRequest) -> Result<(), ResponseError> {
        if request.generation < 0 && self.state == GroupState::Empty {
            return Ok(());
        }
        if request.generation < 0 && request.member_id.is_empty() && request.instance_id.is_none() {
            // A consumer without group management must not move the offsets of a group that has members.
            return Err(ResponseError::UnknownMemberId);
        }
        self.validate_member(&request.member_id, request.instance_id.as_deref())?;
        if request.generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        if self.state == GroupState::CompletingRebalance {
            return Err(ResponseError::RebalanceInProgress);
        }
        Ok(())
    }

    /// A commit counts as a heartbeat.
    fn touch_committing(&mut self, step: &mut Step<'_>, request: &CommitRequest) {
        if matches!(
            self.state,
            GroupState::Stable | GroupState::PreparingRebalance
        ) {
            self.touch(step, &request.member_id);
        }
    }
}

impl OffsetToCommit {
    fn record(&self, request: &CommitRequest, now: Now) -> GroupRecord {
        let expires_at = |retention_ms: i64| now.wall_ms.saturating_add(retention_ms);
        let expire_timestamp_ms = request.retention_ms.map(expires_at);
        // The record of an offset with an expiry has no room for either; the live state must not know more than it.
        let (leader_epoch, topic_id) = match expire_timestamp_ms {
            Some(_) => (-1, Uuid::nil()),
            None => (self.leader_epoch, self.topic_id),
        };
        GroupRecord::OffsetCommit {
            group: request.group_id.to_string(),
            topic: self.topic.to_string(),
            partition: self.partition,
            value: Some(OffsetCommitValue {
                offset: self.offset,
                leader_epoch,
                metadata: self.metadata.to_string(),
                commit_timestamp_ms: now.wall_ms,
                expire_timestamp_ms,
                topic_id,
            }),
        }
    }
}

pub(super) fn tombstone(group_id: &str, topic: &str, partition: i32) -> GroupRecord {
    GroupRecord::OffsetCommit {
        group: group_id.to_owned(),
        topic: topic.to_owned(),
        partition,
        value: None,
    }
}
