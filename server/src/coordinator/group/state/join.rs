//! JoinGroup.

use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::ResponseError;

use super::group::Group;
use super::member::{Member, MemberProtocol};
use super::sync::SyncReply;
use super::{AfterAppend, Effects, GroupShard, GroupState, Now, ReplyToken, Step};
use crate::coordinator::group::{GroupId, MemberId};

/// How long the JoinGroup of a new member may stay parked: Kafka's bound on members that never come back.
const NEW_MEMBER_JOIN_TIMEOUT_MS: i64 = 5 * 60 * 1_000;

/// A JoinGroup request.
#[derive(Clone, Debug)]
pub struct JoinRequest {
    /// The group.
    pub group_id: GroupId,
    /// The member's id, empty for a new member.
    pub member_id: MemberId,
    /// The id that a new member gets: the client's id (or the instance id) and a random part.
    pub new_member_id: MemberId,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<Arc<str>>,
    /// What kind of group it is ("consumer", "connect", …).
    pub protocol_type: Arc<str>,
    /// The protocols that the member supports, best first, each name once.
    pub protocols: Vec<MemberProtocol>,
    /// The session time-out.
    pub session_timeout_ms: i32,
    /// The rebalance time-out; the session time-out in version 0.
    pub rebalance_timeout_ms: i32,
    /// The client's id.
    pub client_id: Arc<str>,
    /// The client's host as Java prints it.
    pub client_host: Arc<str>,
    /// Version 4 and above: a new dynamic member first gets its id with MEMBER_ID_REQUIRED.
    pub requires_known_member_id: bool,
    /// Version 9 and above: a leader can be told to skip the assignment.
    pub supports_skipping_assignment: bool,
    /// Why the client joins, for the log.
    pub reason: Arc<str>,
}

/// The answer to a JoinGroup request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinReply {
    /// The error, if it failed.
    pub error: Option<ResponseError>,
    /// The generation, -1 if it failed.
    pub generation: i32,
    /// The group's protocol type.
    pub protocol_type: Option<Arc<str>>,
    /// The chosen protocol.
    pub protocol_name: Option<Arc<str>>,
    /// The leader's member id.
    pub leader: MemberId,
    /// The leader must not assign: it came back into a stable group.
    pub skip_assignment: bool,
    /// The member's own id.
    pub member_id: MemberId,
    /// All members, for the leader.
    pub members: Vec<JoinMember>,
}

/// A member as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinMember {
    /// The member's id.
    pub member_id: MemberId,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<Arc<str>>,
    /// The member's metadata for the chosen protocol.
    pub metadata: Bytes,
}

/// What must be known to finish, or to undo, the return of a static member.
#[derive(Clone, Debug)]
pub struct StaticRejoin {
    pub(super) group: GroupId,
    generation: i32,
    member_id: MemberId,
    old: Member,
    old_leader: MemberId,
    supports_skipping_assignment: bool,
}

impl JoinReply {
    /// A failure.
    pub fn error(error: ResponseError, member_id: &str) -> Self {
        JoinReply {
            error: Some(error),
            generation: -1,
            member_id: member_id.into(),
            ..JoinReply::default()
        }
    }
}

impl GroupShard {
    /// A member joins. The answer comes under `token`, for most requests when the join phase ends.
    pub fn join(&mut self, request: JoinRequest, token: ReplyToken, now: Now) -> Effects {
        let mut effects = Effects::default();
        let is_new_member = request.member_id.is_empty();
        if !self.groups.contains_key(&request.group_id) {
            if !is_new_member {
                let error = ResponseError::UnknownMemberId;
                effects.join(token, JoinReply::error(error, &request.member_id));
                return effects;
            }
            let group = Group::new(request.group_id.clone(), now.wall_ms);
            let record = group.metadata_record(|_| Bytes::new());
            self.groups.insert(request.group_id.clone(), group);
            effects.append(vec![record], AfterAppend::Nothing);
        }
        let group_id = request.group_id.clone();
        self.with_group(&group_id, now, &mut effects, |group, step| {
            group.join(step, request, token);
        });
        effects
    }
}

impl Group {
    fn join(&mut self, step: &mut Step<'_>, request: JoinRequest, token: ReplyToken) {
        let member_id = request.member_id.clone();
        if !self.accepts(step, &member_id) {
            if let Some(member) = self.remove(step.timers, &member_id) {
                answer_removed(step.effects, member);
            }
            self.remove_pending(step.timers, &member_id);
            let error = ResponseError::GroupMaxSizeReached;
            step.effects.join(token, JoinReply::error(error, ""));
            self.complete_join_after_removal(step);
            return;
        }
        if !self.supports_protocols(&request.protocol_type, &request.protocols) {
            let error = ResponseError::InconsistentGroupProtocol;
            step.effects
                .join(token, JoinReply::error(error, &member_id));
            return;
        }
        if member_id.is_empty() {
            self.join_new_member(step, request, token);
        } else if self.pending_joins.contains_key(&member_id) {
            if request.instance_id.is_some() {
                // Ids that are waited for belong to dynamic members.
                let error = ResponseError::UnknownMemberId;
                step.effects
                    .join(token, JoinReply::error(error, &member_id));
                return;
            }
            self.add_joining_member(step, member_id, request, token);
        } else {
            self.join_existing_member(step, request, token);
        }
    }

    /// Whether `group.max.size` leaves room for the member.
    fn accepts(&self, step: &Step<'_>, member_id: &str) -> bool {
        let max_size = step.config.max_size;
        match self.state {
            GroupState::Empty => true,
            GroupState::PreparingRebalance => {
                let member = self.members.get(member_id);
                member.is_some_and(|member| member.awaiting_join.is_some())
                    || self.awaiting_join < max_size
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                self.members.contains_key(member_id) || self.members.len() < max_size
            }
        }
    }

    fn join_new_member(&mut self, step: &mut Step<'_>, request: JoinRequest, token: ReplyToken) {
        let new_member_id = request.new_member_id.clone();
        if let Some(instance_id) = &request.instance_id {
            match self.static_members.get(instance_id).cloned() {
                Some(old_member_id) => {
                    self.replace_static_member(step, old_member_id, request, token)
                }
                None => self.add_joining_member(step, new_member_id, request, token),
            }
        } else if request.requires_known_member_id {
            let deadline_ms = step.now.monotonic_ms + i64::from(request.session_timeout_ms);
            step.timers
                .schedule(deadline_ms, self.heartbeat_key(&new_member_id));
            self.pending_joins
                .insert(new_member_id.clone(), deadline_ms);
            let error = ResponseError::MemberIdRequired;
            step.effects
                .join(token, JoinReply::error(error, &new_member_id));
        } else {
            self.add_joining_member(step, new_member_id, request, token);
        }
    }

    fn add_joining_member(
        &mut self,
        step: &mut Step<'_>,
        member_id: MemberId,
        request: JoinRequest,
        token: ReplyToken,
    ) {
        self.remove_pending(step.timers, &member_id);
        if self.members.is_empty() {
            self.protocol_type = Some(request.protocol_type.clone());
        }
        if self.state == GroupState::PreparingRebalance
            && self.previous_state == Some(GroupState::Empty)
        {
            self.new_member_added = true;
        }
        let reason = &request.reason;
        let reason = format!("adding member {member_id}; client reason: {reason}");
        self.add(Member {
            id: member_id.clone(),
            instance_id: request.instance_id,
            client_id: request.client_id,
            client_host: request.client_host,
            session_timeout_ms: request.session_timeout_ms,
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            protocols: request.protocols,
            assignment: Bytes::new(),
            awaiting_join: Some(token),
            awaiting_sync: None,
            is_new: true,
            heartbeat_deadline_ms: 0,
            timer_at_ms: None,
        });
        self.reschedule_heartbeat(step, &member_id, NEW_MEMBER_JOIN_TIMEOUT_MS);
        self.rebalance_or_complete_join(step, &reason);
    }

    fn join_existing_member(
        &mut self,
        step: &mut Step<'_>,
        request: JoinRequest,
        token: ReplyToken,
    ) {
        let member_id = request.member_id.clone();
        if let Err(error) = self.validate_member(&member_id, request.instance_id.as_deref()) {
            step.effects
                .join(token, JoinReply::error(error, &member_id));
            return;
        }
        let Some(member) = self.members.get(&member_id) else {
            return;
        };
        let unchanged = member.protocols == request.protocols;
        let rejoins = match self.state {
            GroupState::PreparingRebalance => true,
            GroupState::CompletingRebalance => !unchanged,
            // The leader joins again when it wants a new assignment.
            GroupState::Stable => !unchanged || self.is_leader(&member_id),
            GroupState::Empty => false,
        };
        if rejoins {
            let reason = &request.reason;
            let reason = format!("member {member_id} joins again; client reason: {reason}");
            self.update_member(step, &member_id, request, token);
            self.rebalance_or_complete_join(step, &reason);
        } else {
            // Most likely the earlier answer did not arrive.
            let mut reply = self.current_join_reply(&member_id);
            if self.state == GroupState::Stable {
                reply.members.clear();
            }
            step.effects.join(token, reply);
        }
    }

    fn update_member(
        &mut self,
        step: &mut Step<'_>,
        member_id: &str,
        request: JoinRequest,
        token: ReplyToken,
    ) {
        self.set_protocols(member_id, request.protocols);
        if let Some(member) = self.members.get_mut(member_id) {
            member.session_timeout_ms = request.session_timeout_ms;
            member.rebalance_timeout_ms = request.rebalance_timeout_ms;
        }
        self.park_join(step, member_id, token);
    }

    /// A static member came back without its member id: it gets a new one, whoever uses the old one is fenced, and the
    /// group goes on as it is if the chosen protocol stays.
    fn replace_static_member(
        &mut self,
        step: &mut Step<'_>,
        old_member_id: MemberId,
        request: JoinRequest,
        token: ReplyToken,
    ) {
        let member_id = request.new_member_id.clone();
        let old_leader = self.leader.clone().unwrap_or_default();
        let was_leader = self.is_leader(&old_member_id);
        let supports_skipping_assignment = request.supports_skipping_assignment;
        let Some(old) = self.remove(step.timers, &old_member_id) else {
            return;
        };
        fence(step.effects, &old);
        let member = Member {
            id: member_id.clone(),
            awaiting_join: None,
            awaiting_sync: None,
            is_new: false,
            timer_at_ms: None,
            ..old.clone()
        };
        tracing::info!(
            group = &*self.id,
            old_member = &*old_member_id,
            member = &*member_id,
            "static member is back with a new member id"
        );
        self.add(member);
        if was_leader {
            self.leader = Some(member_id.clone());
        }
        self.touch(step, &member_id);
        let reason = format!(
            "static member {member_id} is back; client reason: {}",
            request.reason
        );
        self.update_member(step, &member_id, request, token);
        match self.state {
            GroupState::Stable if self.select_protocol() == self.protocol_name => {
                let record = self.metadata_record(|member| member.assignment.clone());
                let rejoin = StaticRejoin {
                    group: self.id.clone(),
                    generation: self.generation,
                    member_id,
                    old,
                    old_leader,
                    supports_skipping_assignment,
                };
                let then = AfterAppend::StaticRejoin(Box::new(rejoin));
                step.effects.append(vec![record], then);
            }
            GroupState::Stable | GroupState::CompletingRebalance => {
                self.prepare_rebalance(step, &reason);
            }
            GroupState::PreparingRebalance | GroupState::Empty => self.maybe_complete_join(step),
        }
    }

    /// The new id of a static member is on disk, or could not be put there.
    pub(super) fn on_static_rejoin_appended(
        &mut self,
        step: &mut Step<'_>,
        rejoin: &StaticRejoin,
        result: Result<i64, ResponseError>,
    ) {
        let is_current = self.state == GroupState::Stable && self.generation == rejoin.generation;
        if !is_current || !self.members.contains_key(&rejoin.member_id) {
            // A rebalance began meanwhile; it answers the parked request.
            return;
        }
        if let Err(error) = result {
            tracing::warn!(group = &*self.id, %error, "static member's new id could not be stored");
            let leader = rejoin.old_leader.clone();
            self.answer_join(step.effects, &rejoin.member_id, |group| JoinReply {
                error: Some(error),
                leader: leader.clone(),
                ..group.current_join_reply("")
            });
            self.remove(step.timers, &rejoin.member_id);
            self.add(Member {
                awaiting_join: None,
                awaiting_sync: None,
                timer_at_ms: None,
                ..rejoin.old.clone()
            });
            if *rejoin.old_leader == *rejoin.old.id {
                self.leader = Some(rejoin.old_leader.clone());
            }
            self.touch(step, &rejoin.old.id);
            return;
        }
        // Its timer may have fired while it waited.
        self.touch(step, &rejoin.member_id);
        self.answer_join(step.effects, &rejoin.member_id, |group| {
            let mut reply = group.current_join_reply(&rejoin.member_id);
            if rejoin.supports_skipping_assignment {
                reply.skip_assignment = group.is_leader(&rejoin.member_id);
            } else {
                // An older client that saw its own new id as the leader's would assign anew.
                reply.members.clear();
                reply.leader = rejoin.old_leader.clone();
            }
            reply
        });
    }
}

/// Tells whoever waits under a static member's old id that it was replaced.
fn fence(effects: &mut Effects, old: &Member) {
    let error = ResponseError::FencedInstanceId;
    if let Some(token) = old.awaiting_join {
        effects.join(token, JoinReply::error(error, &old.id));
    }
    if let Some(token) = old.awaiting_sync {
        effects.sync(token, SyncReply::error(error));
    }
}

/// Answers what a member that is no longer in the group has parked.
pub(super) fn answer_removed(effects: &mut Effects, member: Member) {
    let error = ResponseError::UnknownMemberId;
    if let Some(token) = member.awaiting_join {
        effects.join(token, JoinReply::error(error, ""));
    }
    if let Some(token) = member.awaiting_sync {
        effects.sync(token, SyncReply::error(error));
    }
}
