//! SyncGroup: the leader brings the assignment, every member fetches its part.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::ResponseError;

use super::group::Group;
use super::join::answer_removed;
use super::{AfterAppend, Effects, GroupShard, GroupState, Now, ReplyToken, Step};
use crate::coordinator::group::{GroupId, MemberId};

/// A SyncGroup request.
#[derive(Clone, Debug)]
pub struct SyncRequest {
    /// The group.
    pub group_id: GroupId,
    /// The generation that the member joined.
    pub generation: i32,
    /// The member.
    pub member_id: MemberId,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<Arc<str>>,
    /// The protocol type that the member thinks the group has (version 5).
    pub protocol_type: Option<Arc<str>>,
    /// The protocol that the member thinks was chosen (version 5).
    pub protocol_name: Option<Arc<str>>,
    /// The assignments, from the leader.
    pub assignments: BTreeMap<MemberId, Bytes>,
}

/// The answer to a SyncGroup request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncReply {
    /// The error, if it failed.
    pub error: Option<ResponseError>,
    /// The group's protocol type.
    pub protocol_type: Option<Arc<str>>,
    /// The chosen protocol.
    pub protocol_name: Option<Arc<str>>,
    /// What the leader assigned to the member.
    pub assignment: Bytes,
}

impl SyncReply {
    /// A failure.
    pub fn error(error: ResponseError) -> Self {
        SyncReply {
            error: Some(error),
            ..SyncReply::default()
        }
    }
}

impl GroupShard {
    /// A member asks for its assignment; the leader brings all. The answer comes under `token`, for most members when
    /// the leader's assignment is committed.
    pub fn sync(&mut self, request: SyncRequest, token: ReplyToken, now: Now) -> Effects {
        let mut effects = Effects::default();
        let group_id = request.group_id.clone();
        let found = self.with_group(&group_id, now, &mut effects, |group, step| {
            if let Err(error) = group.validate_sync(&request) {
                step.effects.sync(token, SyncReply::error(error));
            } else {
                group.sync(step, request, token);
            }
        });
        if found.is_none() {
            effects.sync(token, SyncReply::error(ResponseError::UnknownMemberId));
        }
        effects
    }
}

impl Group {
    fn validate_sync(&self, request: &SyncRequest) -> Result<(), ResponseError> {
        let differs = |claimed: &Option<Arc<str>>, actual: &Option<Arc<str>>| matches!((claimed, actual), (Some(claimed), Some(actual)) if claimed != actual);
        if self.state == GroupState::Empty {
            return Err(ResponseError::UnknownMemberId);
        }
        self.validate_member(&request.member_id, request.instance_id.as_deref())?;
        if request.generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol_name, &self.protocol_name)
        {
            return Err(ResponseError::InconsistentGroupProtocol);
        }
        Ok(())
    }

    fn sync(&mut self, step: &mut Step<'_>, request: SyncRequest, token: ReplyToken) {
        match self.state {
            GroupState::Empty => {
                let error = ResponseError::UnknownMemberId;
                step.effects.sync(token, SyncReply::error(error));
            }
            GroupState::PreparingRebalance => {
                let error = ResponseError::RebalanceInProgress;
                step.effects.sync(token, SyncReply::error(error));
            }
            GroupState::CompletingRebalance => {
                self.park_sync(step, &request.member_id, token);
                self.on_sync_received(step, &request.member_id);
                if self.is_leader(&request.member_id) {
                    self.append_assignment(step, request.assignments);
                }
            }
            GroupState::Stable => {
                self.on_sync_received(step, &request.member_id);
                let reply = self.current_sync_reply(&request.member_id);
                step.effects.sync(token, reply);
            }
        }
    }

    fn park_sync(&mut self, step: &mut Step<'_>, member_id: &str, token: ReplyToken) {
        let Some(member) = self.members.get_mut(member_id) else {
            return;
        };
        // A SyncGroup that was parked already belongs to a connection given up.
        if let Some(old) = member.awaiting_sync.replace(token) {
            let error = ResponseError::RebalanceInProgress;
            step.effects.sync(old, SyncReply::error(error));
        }
    }

    fn on_sync_received(&mut self, step: &mut Step<'_>, member_id: &str) {
        self.pending_syncs.remove(member_id);
        if self.pending_syncs.is_empty() {
            self.cancel_sync_timer(step);
        }
    }

    fn append_assignment(
        &mut self,
        step: &mut Step<'_>,
        mut assignments: BTreeMap<MemberId, Bytes>,
    ) {
        assignments.retain(|member_id, _| self.members.contains_key(member_id));
        for member_id in self.members.keys() {
            assignments.entry(member_id.clone()).or_default();
        }
        let record =
            self.metadata_record(|member| assignments.get(&member.id).cloned().unwrap_or_default());
        let then = AfterAppend::Assign {
            group: self.id.clone(),
            generation: self.generation,
            assignments,
        };
        step.effects.append(vec![record], then);
    }

    /// The leader's assignment is on disk, or could not be put there.
    pub(super) fn on_assignment_appended(
        &mut self,
        step: &mut Step<'_>,
        generation: i32,
        mut assignments: BTreeMap<MemberId, Bytes>,
        result: Result<i64, ResponseError>,
    ) {
        if self.state != GroupState::CompletingRebalance || self.generation != generation {
            return;
        }
        if let Err(error) = result {
            tracing::warn!(group = &*self.id, generation, %error, "assignment could not be stored");
            self.propagate_assignment_error(step, error);
            self.prepare_rebalance(step, "the assignment could not be stored");
            return;
        }
        for member in self.members.values_mut() {
            member.assignment = assignments.remove(&member.id).unwrap_or_default();
        }
        self.transition_to(GroupState::Stable, step.now.wall_ms);
        self.answer_syncs(step, Self::current_sync_reply);
        tracing::info!(group = &*self.id, generation, "group is stable");
    }

    /// Answers every parked SyncGroup with an error and drops what was assigned.
    pub(super) fn propagate_assignment_error(&mut self, step: &mut Step<'_>, error: ResponseError) {
        for member in self.members.values_mut() {
            member.assignment = Bytes::new();
        }
        self.answer_syncs(step, |_, _| SyncReply::error(error));
    }

    fn answer_syncs(&mut self, step: &mut Step<'_>, reply: impl Fn(&Self, &str) -> SyncReply) {
        let member_ids: Vec<_> = self.members.keys().cloned().collect();
        for member_id in member_ids {
            let parked = self
                .members
                .get_mut(&member_id)
                .and_then(|m| m.awaiting_sync.take());
            if let Some(token) = parked {
                let reply = reply(self, &member_id);
                step.effects.sync(token, reply);
                self.touch(step, &member_id);
            }
        }
    }

    fn current_sync_reply(&self, member_id: &str) -> SyncReply {
        let member = self.members.get(member_id);
        SyncReply {
            error: None,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            assignment: member
                .map(|member| member.assignment.clone())
                .unwrap_or_default(),
        }
    }

    /// Members that never asked for their assignment hold it back from the others no longer.
    pub(super) fn on_sync_timer(&mut self, step: &mut Step<'_>) {
        self.sync_deadline_ms = None;
        if self.pending_syncs.is_empty() {
            return;
        }
        if matches!(
            self.state,
            GroupState::CompletingRebalance | GroupState::Stable
        ) {
            for member_id in std::mem::take(&mut self.pending_syncs) {
                if let Some(member) = self.remove(step.timers, &member_id) {
                    answer_removed(step.effects, member);
                }
            }
            self.prepare_rebalance(step, "members did not ask for their assignment in time");
        }
    }
}
