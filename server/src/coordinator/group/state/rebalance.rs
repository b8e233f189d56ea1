//! The phases of a rebalance: members join, the leader assigns, members fetch their assignment.

use kafka_protocol::ResponseError;

use super::group::Group;
use super::join::{JoinMember, JoinReply};
use super::timers::TimerKey;
use super::{AfterAppend, GroupState, Step};

/// When the join phase ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinTimer {
    pub(super) deadline_ms: i64,
    /// For the first rebalance of an empty group, which goes on waiting while members keep coming.
    initial: Option<InitialDelay>,
}

#[derive(Clone, Copy, Debug)]
struct InitialDelay {
    /// The delay that ends at the deadline.
    delay_ms: i64,
    /// How much longer the group may wait after that.
    remaining_ms: i64,
}

impl Group {
    /// Begins a rebalance, or looks whether the one that runs can end.
    pub(super) fn rebalance_or_complete_join(&mut self, step: &mut Step<'_>, reason: &str) {
        if self.state == GroupState::PreparingRebalance {
            self.maybe_complete_join(step);
        } else {
            self.prepare_rebalance(step, reason);
        }
    }

    /// Ends the join phase if everybody has joined. The first rebalance of an empty group ends by its delay alone.
    pub(super) fn maybe_complete_join(&mut self, step: &mut Step<'_>) {
        let initial = self.previous_state == Some(GroupState::Empty);
        if self.state == GroupState::PreparingRebalance && !initial && self.has_all_members_joined()
        {
            self.complete_join(step);
        }
    }

    /// Ends the join phase if everybody who is left has joined, also during the delay of a first rebalance.
    pub(super) fn complete_join_after_removal(&mut self, step: &mut Step<'_>) {
        if self.state == GroupState::PreparingRebalance && self.has_all_members_joined() {
            self.complete_join(step);
        }
    }

    pub(super) fn prepare_rebalance(&mut self, step: &mut Step<'_>, reason: &str) {
        if self.state == GroupState::CompletingRebalance {
            self.propagate_assignment_error(step, ResponseError::RebalanceInProgress);
        }
        self.cancel_sync_timer(step);
        let initial = self.state == GroupState::Empty;
        self.transition_to(GroupState::PreparingRebalance, step.now.wall_ms);
        tracing::info!(
            group = &*self.id,
            generation = self.generation,
            members = self.members.len(),
            reason,
            "preparing to rebalance group"
        );
        if initial {
            self.new_member_added = false;
            let delay_ms = step.config.initial_rebalance_delay_ms;
            if delay_ms == 0 {
                self.complete_join(step);
                return;
            }
            let remaining_ms = (self.rebalance_timeout_ms() - delay_ms).max(0);
            let initial = InitialDelay {
                delay_ms,
                remaining_ms,
            };
            self.schedule_join_timer(step, delay_ms, Some(initial));
        } else if self.has_all_members_joined() {
            self.complete_join(step);
        } else {
            let timeout_ms = self.rebalance_timeout_ms();
            self.schedule_join_timer(step, timeout_ms, None);
        }
    }

    fn schedule_join_timer(
        &mut self,
        step: &mut Step<'_>,
        delay_ms: i64,
        initial: Option<InitialDelay>,
    ) {
        self.cancel_join_timer(step);
        let deadline_ms = step.now.monotonic_ms + delay_ms;
        self.join_timer = Some(JoinTimer {
            deadline_ms,
            initial,
        });
        let group = self.id.clone();
        step.timers.schedule(deadline_ms, TimerKey::Join { group });
    }

    fn cancel_join_timer(&mut self, step: &mut Step<'_>) {
        if let Some(timer) = self.join_timer.take() {
            let group = self.id.clone();
            step.timers
                .cancel(timer.deadline_ms, TimerKey::Join { group });
        }
    }

    pub(super) fn cancel_sync_timer(&mut self, step: &mut Step<'_>) {
        self.pending_syncs.clear();
        if let Some(deadline_ms) = self.sync_deadline_ms.take() {
            let group = self.id.clone();
            step.timers.cancel(deadline_ms, TimerKey::Sync { group });
        }
    }

    pub(super) fn on_join_timer(&mut self, step: &mut Step<'_>) {
        let Some(timer) = self.join_timer.take() else {
            return;
        };
        match timer.initial {
            Some(initial) => self.on_initial_delay_passed(step, initial),
            None => self.complete_join(step),
        }
    }

    /// Waits once more when a member came during the delay, but no longer than the rebalance time-out in all.
    fn on_initial_delay_passed(&mut self, step: &mut Step<'_>, initial: InitialDelay) {
        if self.new_member_added && initial.remaining_ms != 0 {
            self.new_member_added = false;
            let delay_ms = step
                .config
                .initial_rebalance_delay_ms
                .min(initial.remaining_ms);
            let next = InitialDelay {
                delay_ms,
                remaining_ms: (initial.remaining_ms - initial.delay_ms).max(0),
            };
            self.schedule_join_timer(step, delay_ms, Some(next));
        } else {
            self.complete_join(step);
        }
    }

    /// Ends the join phase: dynamic members that did not come back are out, a leader is chosen among those who did, and
    /// everybody is told.
    pub(super) fn complete_join(&mut self, step: &mut Step<'_>) {
        self.cancel_join_timer(step);
        let missing: Vec<_> = self
            .members
            .values()
            .filter(|member| member.awaiting_join.is_none() && member.instance_id.is_none())
            .map(|member| member.id.clone())
            .collect();
        for member_id in missing {
            tracing::info!(
                group = &*self.id,
                member = &*member_id,
                "removing member that did not join in time"
            );
            self.remove(step.timers, &member_id);
        }
        if !self.members.is_empty() && !self.elect_joined_leader() {
            // Only static members are left and none of them is here yet.
            let timeout_ms = self.rebalance_timeout_ms();
            tracing::warn!(
                group = &*self.id,
                timeout_ms,
                "no member joined; waiting for another rebalance time-out"
            );
            self.schedule_join_timer(step, timeout_ms, None);
            return;
        }
        self.init_next_generation(step);
        if self.state == GroupState::Empty {
            tracing::info!(
                group = &*self.id,
                generation = self.generation,
                "group is empty"
            );
            let record = self.metadata_record(|_| Default::default());
            step.effects.append(vec![record], AfterAppend::Nothing);
            return;
        }
        tracing::info!(
            group = &*self.id,
            generation = self.generation,
            members = self.members.len(),
            leader = self.leader.as_deref(),
            protocol = self.protocol_name.as_deref(),
            "every member has joined"
        );
        let member_ids: Vec<_> = self.members.keys().cloned().collect();
        for member_id in member_ids {
            self.answer_join(step.effects, &member_id, |group| {
                group.current_join_reply(&member_id)
            });
            self.touch(step, &member_id);
            if let Some(member) = self.members.get_mut(&member_id) {
                member.is_new = false;
            }
            self.pending_syncs.insert(member_id);
        }
        let deadline_ms = step.now.monotonic_ms + self.rebalance_timeout_ms();
        self.sync_deadline_ms = Some(deadline_ms);
        let group = self.id.clone();
        step.timers.schedule(deadline_ms, TimerKey::Sync { group });
    }

    /// Keeps the leader if it has joined; otherwise the first member that has takes over. False if nobody has joined.
    fn elect_joined_leader(&mut self) -> bool {
        let has_joined = |group: &Self, member_id: &str| {
            let member = group.members.get(member_id);
            member.is_some_and(|member| member.awaiting_join.is_some())
        };
        if self
            .leader
            .as_deref()
            .is_some_and(|leader| has_joined(self, leader))
        {
            return true;
        }
        let joined = self
            .members
            .keys()
            .find(|member_id| has_joined(self, member_id));
        match joined.cloned() {
            Some(leader) => {
                tracing::info!(group = &*self.id, leader = &*leader, "new group leader");
                self.leader = Some(leader);
                true
            }
            None => false,
        }
    }

    fn init_next_generation(&mut self, step: &mut Step<'_>) {
        self.generation = self.generation.wrapping_add(1).max(0);
        self.cancel_sync_timer(step);
        let next = if self.members.is_empty() {
            self.protocol_name = None;
            self.leader = None;
            GroupState::Empty
        } else {
            self.protocol_name = self.select_protocol();
            GroupState::CompletingRebalance
        };
        self.subscribed_topics = self.compute_subscribed_topics();
        self.transition_to(next, step.now.wall_ms);
    }

    /// The answer to a member's JoinGroup in the present generation; the leader's names all members.
    pub(super) fn current_join_reply(&self, member_id: &str) -> JoinReply {
        let members = if self.is_leader(member_id) {
            self.join_members()
        } else {
            Vec::new()
        };
        JoinReply {
            error: None,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            member_id: member_id.into(),
            members,
        }
    }

    pub(super) fn join_members(&self) -> Vec<JoinMember> {
        let protocol = self.protocol_name.as_deref();
        let members = self.members.values().map(|member| JoinMember {
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            metadata: member.metadata(protocol),
        });
        members.collect()
    }
}
