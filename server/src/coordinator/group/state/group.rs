//! One group: who is in it, and what each change of its members means for the counts kept about them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use kafka_protocol::ResponseError;

use super::join::JoinReply;
use super::member::{Member, MemberProtocol};
use super::offsets::TopicOffsets;
use super::rebalance::JoinTimer;
use super::sync::SyncReply;
use super::timers::{TimerKey, TimerQueue};
use super::{Effects, GroupState, ReplyToken, Step};
use crate::coordinator::group::records::{GroupMetadataValue, GroupRecord, MemberMetadata};
use crate::coordinator::group::{GroupId, MemberId};

/// The protocol type of consumers; only theirs has metadata that the broker looks into.
const CONSUMER_PROTOCOL_TYPE: &str = "consumer";

/// A group of the classic protocol and its committed offsets.
#[derive(Clone, Debug)]
pub struct Group {
    pub(super) id: GroupId,
    pub(super) state: GroupState,
    pub(super) previous_state: Option<GroupState>,
    pub(super) state_timestamp_ms: Option<i64>,
    pub(super) protocol_type: Option<Arc<str>>,
    pub(super) protocol_name: Option<Arc<str>>,
    pub(super) generation: i32,
    pub(super) leader: Option<MemberId>,
    pub(super) members: BTreeMap<MemberId, Member>,
    /// Member ids by `group.instance.id`.
    pub(super) static_members: HashMap<Arc<str>, MemberId>,
    /// Ids that were handed out with MEMBER_ID_REQUIRED and have not joined yet, with their deadline.
    pub(super) pending_joins: BTreeMap<MemberId, i64>,
    /// Members that have not asked for the assignment of this generation yet.
    pub(super) pending_syncs: BTreeSet<MemberId>,
    /// How many members support each protocol.
    pub(super) supported_protocols: HashMap<Arc<str>, usize>,
    /// How many members have a JoinGroup parked.
    pub(super) awaiting_join: usize,
    /// The topics of all members of a consumer group; `None` when it is not one or cannot be told.
    pub(super) subscribed_topics: Option<HashSet<Box<str>>>,
    /// A member was added since the delay of the first rebalance began.
    pub(super) new_member_added: bool,
    pub(super) join_timer: Option<JoinTimer>,
    pub(super) sync_deadline_ms: Option<i64>,
    pub(super) offsets: TopicOffsets,
}

impl Group {
    /// An empty group; one without protocol type is a simple group, known by its offsets alone.
    pub(super) fn new(id: GroupId, wall_ms: i64) -> Self {
        Group {
            id,
            state: GroupState::Empty,
            previous_state: None,
            state_timestamp_ms: Some(wall_ms),
            protocol_type: None,
            protocol_name: None,
            generation: 0,
            leader: None,
            members: BTreeMap::new(),
            static_members: HashMap::new(),
            pending_joins: BTreeMap::new(),
            pending_syncs: BTreeSet::new(),
            supported_protocols: HashMap::new(),
            awaiting_join: 0,
            subscribed_topics: None,
            new_member_added: false,
            join_timer: None,
            sync_deadline_ms: None,
            offsets: TopicOffsets::new(),
        }
    }

    /// The group's id.
    pub fn id(&self) -> &GroupId {
        &self.id
    }

    /// The group's state.
    pub fn state(&self) -> GroupState {
        self.state
    }

    /// The protocol type of its members, or of its last members.
    pub fn protocol_type(&self) -> Option<&Arc<str>> {
        self.protocol_type.as_ref()
    }

    /// The committed offsets by topic and partition.
    pub fn offsets(&self) -> &TopicOffsets {
        &self.offsets
    }

    /// The members by id.
    pub fn members(&self) -> &BTreeMap<MemberId, Member> {
        &self.members
    }

    pub(super) fn transition_to(&mut self, state: GroupState, wall_ms: i64) {
        self.previous_state = Some(self.state);
        self.state = state;
        self.state_timestamp_ms = Some(wall_ms);
    }

    pub(super) fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    pub(super) fn uses_consumer_protocol(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER_PROTOCOL_TYPE)
    }

    /// Whether a topic is consumed; if that cannot be told, a consumer group is taken to consume every topic.
    pub(super) fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.subscribed_topics {
            Some(topics) => topics.contains(topic),
            None => self.uses_consumer_protocol(),
        }
    }

    pub(super) fn add(&mut self, member: Member) {
        if let Some(instance_id) = &member.instance_id {
            self.static_members
                .insert(instance_id.clone(), member.id.clone());
        }
        if self.leader.is_none() {
            self.leader = Some(member.id.clone());
        }
        self.count_protocols(&member.protocols, 1);
        self.awaiting_join += usize::from(member.awaiting_join.is_some());
        self.members.insert(member.id.clone(), member);
    }

    /// Takes a member out, with its timer; the next member in order leads if it led. Its parked requests are given
    /// back unanswered.
    pub(super) fn remove(&mut self, timers: &mut TimerQueue, member_id: &str) -> Option<Member> {
        let member = self.members.remove(member_id)?;
        if let Some(at_ms) = member.timer_at_ms {
            timers.cancel(at_ms, self.heartbeat_key(&member.id));
        }
        self.count_protocols(&member.protocols, -1);
        self.awaiting_join -= usize::from(member.awaiting_join.is_some());
        if let Some(instance_id) = &member.instance_id {
            self.static_members.remove(instance_id);
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
        self.pending_syncs.remove(member_id);
        Some(member)
    }

    pub(super) fn remove_pending(&mut self, timers: &mut TimerQueue, member_id: &str) -> bool {
        let Some((member_id, deadline_ms)) = self.pending_joins.remove_entry(member_id) else {
            return false;
        };
        timers.cancel(deadline_ms, self.heartbeat_key(&member_id));
        true
    }

    fn count_protocols(&mut self, protocols: &[MemberProtocol], change: isize) {
        for protocol in protocols {
            let count = self
                .supported_protocols
                .entry(protocol.name.clone())
                .or_insert(0);
            *count = count.saturating_add_signed(change);
            if *count == 0 {
                self.supported_protocols.remove(&protocol.name);
            }
        }
    }

    /// Gives a member new protocols.
    pub(super) fn set_protocols(&mut self, member_id: &str, protocols: Vec<MemberProtocol>) {
        let Some(member) = self.members.get_mut(member_id) else {
            return;
        };
        let old = std::mem::replace(&mut member.protocols, protocols.clone());
        self.count_protocols(&old, -1);
        self.count_protocols(&protocols, 1);
    }

    /// Parks a JoinGroup. One of the same member that was parked already belongs to a connection given up, and is sent
    /// away so that no request stays unanswered.
    pub(super) fn park_join(&mut self, step: &mut Step<'_>, member_id: &str, token: ReplyToken) {
        if let Some(member) = self.members.get_mut(member_id) {
            match member.awaiting_join.replace(token) {
                None => self.awaiting_join += 1,
                Some(old) => {
                    let error = ResponseError::RebalanceInProgress;
                    step.effects.join(old, JoinReply::error(error, &member.id));
                }
            }
        }
    }

    /// Answers a member's parked JoinGroup, if there is one.
    pub(super) fn answer_join(
        &mut self,
        effects: &mut Effects,
        member_id: &str,
        reply: impl FnOnce(&Self) -> JoinReply,
    ) -> bool {
        let parked = self
            .members
            .get_mut(member_id)
            .and_then(|m| m.awaiting_join.take());
        let Some(token) = parked else {
            return false;
        };
        self.awaiting_join -= 1;
        effects.join(token, reply(self));
        true
    }

    /// Answers every parked request of the group with an error.
    pub(super) fn answer_all(&mut self, effects: &mut Effects, error: ResponseError) {
        for member in self.members.values_mut() {
            if let Some(token) = member.awaiting_join.take() {
                effects.join(token, JoinReply::error(error, &member.id));
            }
            if let Some(token) = member.awaiting_sync.take() {
                effects.sync(token, SyncReply::error(error));
            }
        }
        self.awaiting_join = 0;
    }

    /// Whether a member with these protocols can be in the group.
    pub(super) fn supports_protocols(
        &self,
        protocol_type: &str,
        protocols: &[MemberProtocol],
    ) -> bool {
        if self.state == GroupState::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|protocol| {
                let supporters = self.supported_protocols.get(&protocol.name);
                supporters.copied().unwrap_or(0) == self.members.len()
            })
    }

    /// The protocol that every member supports and most like best; of equals the first by name.
    pub(super) fn select_protocol(&self) -> Option<Arc<str>> {
        let mut votes: BTreeMap<&str, usize> = self
            .supported_protocols
            .iter()
            .filter(|(_, supporters)| **supporters == self.members.len())
            .map(|(name, _)| (&**name, 0))
            .collect();
        for member in self.members.values() {
            if let Some(name) = member.vote(&votes) {
                votes.entry(name).and_modify(|count| *count += 1);
            }
        }
        let most = votes.values().max().copied()?;
        let (winner, _) = votes.iter().find(|(_, count)| **count == most)?;
        Some(Arc::from(*winner))
    }

    /// Checks that a request comes from who is in the group.
    pub(super) fn validate_member(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
    ) -> Result<(), ResponseError> {
        if let Some(instance_id) = instance_id {
            match self.static_members.get(instance_id) {
                None => return Err(ResponseError::UnknownMemberId),
                Some(current) if &**current != member_id => {
                    return Err(ResponseError::FencedInstanceId);
                }
                Some(_) => {}
            }
        }
        if !self.members.contains_key(member_id) {
            return Err(ResponseError::UnknownMemberId);
        }
        Ok(())
    }

    /// The longest time any member may take to join again.
    pub(super) fn rebalance_timeout_ms(&self) -> i64 {
        let longest = self
            .members
            .values()
            .map(|member| member.rebalance_timeout_ms);
        i64::from(longest.max().unwrap_or(0).max(0))
    }

    pub(super) fn has_all_members_joined(&self) -> bool {
        self.members.len() == self.awaiting_join && self.pending_joins.is_empty()
    }

    pub(super) fn heartbeat_key(&self, member_id: &MemberId) -> TimerKey {
        TimerKey::Heartbeat {
            group: self.id.clone(),
            member: member_id.clone(),
        }
    }

    /// Begins a member's session anew. The timer is touched only when it lies too late.
    pub(super) fn reschedule_heartbeat(
        &mut self,
        step: &mut Step<'_>,
        member_id: &str,
        timeout_ms: i64,
    ) {
        let Some(member) = self.members.get_mut(member_id) else {
            return;
        };
        let deadline_ms = step.now.monotonic_ms + timeout_ms;
        member.heartbeat_deadline_ms = deadline_ms;
        let key = TimerKey::Heartbeat {
            group: self.id.clone(),
            member: member.id.clone(),
        };
        match member.timer_at_ms {
            Some(at_ms) if at_ms <= deadline_ms => return,
            Some(at_ms) => step.timers.cancel(at_ms, key.clone()),
            None => {}
        }
        member.timer_at_ms = Some(deadline_ms);
        step.timers.schedule(deadline_ms, key);
    }

    /// Begins a member's session anew with its own session time-out.
    pub(super) fn touch(&mut self, step: &mut Step<'_>, member_id: &str) {
        if let Some(member) = self.members.get(member_id) {
            let timeout_ms = i64::from(member.session_timeout_ms);
            self.reschedule_heartbeat(step, member_id, timeout_ms);
        }
    }

    /// The topics that consumers subscribe to, read from their metadata for the chosen protocol.
    pub(super) fn compute_subscribed_topics(&self) -> Option<HashSet<Box<str>>> {
        if !self.uses_consumer_protocol() {
            return None;
        }
        let mut topics = HashSet::new();
        if self.members.is_empty() {
            return Some(topics);
        }
        let protocol = self.protocol_name.as_deref()?;
        for member in self.members.values() {
            match subscription_topics(member.metadata(Some(protocol))) {
                Some(subscribed) => topics.extend(subscribed),
                None => {
                    tracing::warn!(
                        group = &*self.id,
                        protocol,
                        "subscription cannot be read; offsets of this group are kept while it has members"
                    );
                    return None;
                }
            }
        }
        Some(topics)
    }

    /// The group as a record, with these assignments.
    pub(super) fn metadata_record(&self, assignment_of: impl Fn(&Member) -> Bytes) -> GroupRecord {
        let owned = |text: &Arc<str>| text.to_string();
        let members = self.members.values().map(|member| MemberMetadata {
            member_id: member.id.to_string(),
            group_instance_id: member.instance_id.as_ref().map(owned),
            client_id: member.client_id.to_string(),
            client_host: member.client_host.to_string(),
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout_ms,
            subscription: member.metadata(self.protocol_name.as_deref()),
            assignment: assignment_of(member),
        });
        GroupRecord::GroupMetadata {
            group: self.id.to_string(),
            value: Some(GroupMetadataValue {
                protocol_type: self.protocol_type.as_ref().map(owned).unwrap_or_default(),
                generation: self.generation,
                protocol: self.protocol_name.as_ref().map(owned),
                leader: self.leader.as_ref().map(owned),
                current_state_timestamp_ms: self.state_timestamp_ms.unwrap_or(-1),
                members: members.collect(),
            }),
        }
    }
}

/// The topics of a consumer's subscription: its version, then an array of names; what follows does not matter here.
fn subscription_topics(mut metadata: Bytes) -> Option<Vec<Box<str>>> {
    let version = metadata.try_get_i16().ok()?;
    if version < 0 {
        return None;
    }
    let count = usize::try_from(metadata.try_get_i32().ok()?).ok()?;
    let mut topics = Vec::new();
    for _ in 0..count {
        let length = usize::try_from(metadata.try_get_i16().ok()?).ok()?;
        if length > metadata.len() {
            return None;
        }
        let name = metadata.split_to(length);
        topics.push(std::str::from_utf8(&name).ok()?.into());
    }
    Some(topics)
}
