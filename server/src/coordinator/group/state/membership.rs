//! Heartbeat, LeaveGroup, and members that fall silent.

use std::sync::Arc;

use kafka_protocol::ResponseError;

use super::group::Group;
use super::join::answer_removed;
use super::{Effects, GroupShard, GroupState, Now, Step};
use crate::coordinator::group::MemberId;

/// A member that leaves.
#[derive(Clone, Debug)]
pub struct LeavingMember {
    /// The member's id; empty to name a static member by its instance id alone.
    pub member_id: MemberId,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<Arc<str>>,
    /// Why, for the log.
    pub reason: Arc<str>,
}

impl GroupShard {
    /// A member says that it lives.
    pub fn heartbeat(
        &mut self,
        group_id: &str,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
        now: Now,
    ) -> Result<(), ResponseError> {
        let mut effects = Effects::default();
        self.with_group(group_id, now, &mut effects, |group, step| {
            group.heartbeat(step, member_id, instance_id, generation)
        })
        .unwrap_or(Err(ResponseError::UnknownMemberId))
    }

    /// Members leave. The results are in the order of `members`.
    pub fn leave(
        &mut self,
        group_id: &str,
        members: &[LeavingMember],
        now: Now,
    ) -> (Vec<Result<(), ResponseError>>, Effects) {
        let mut effects = Effects::default();
        let results = self.with_group(group_id, now, &mut effects, |group, step| {
            group.leave(step, members)
        });
        let unknown = || vec![Err(ResponseError::UnknownMemberId); members.len()];
        (results.unwrap_or_else(unknown), effects)
    }
}

impl Group {
    fn heartbeat(
        &mut self,
        step: &mut Step<'_>,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), ResponseError> {
        self.validate_member(member_id, instance_id)?;
        if generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        self.touch(step, member_id);
        match self.state {
            GroupState::Empty => Err(ResponseError::UnknownMemberId),
            GroupState::PreparingRebalance => Err(ResponseError::RebalanceInProgress),
            GroupState::CompletingRebalance | GroupState::Stable => Ok(()),
        }
    }

    fn leave(
        &mut self,
        step: &mut Step<'_>,
        members: &[LeavingMember],
    ) -> Vec<Result<(), ResponseError>> {
        let results: Vec<_> = members
            .iter()
            .map(|leaving| self.remove_leaving(step, leaving))
            .collect();
        if results.iter().any(Result::is_ok) {
            match self.state {
                GroupState::Stable | GroupState::CompletingRebalance => {
                    self.prepare_rebalance(step, "members left");
                }
                GroupState::PreparingRebalance => self.complete_join_after_leave(step),
                GroupState::Empty => {}
            }
        }
        results
    }

    /// During the delay of a first rebalance, a group that everybody left need not wait for its end.
    fn complete_join_after_leave(&mut self, step: &mut Step<'_>) {
        if self.members.is_empty() {
            self.complete_join_after_removal(step);
        } else {
            self.maybe_complete_join(step);
        }
    }

    fn remove_leaving(
        &mut self,
        step: &mut Step<'_>,
        leaving: &LeavingMember,
    ) -> Result<(), ResponseError> {
        let instance_id = leaving.instance_id.as_deref();
        let member_id = if leaving.member_id.is_empty() {
            let member_id =
                instance_id.and_then(|instance_id| self.static_members.get(instance_id));
            member_id.cloned().ok_or(ResponseError::UnknownMemberId)?
        } else if self.remove_pending(step.timers, &leaving.member_id) {
            return Ok(());
        } else {
            self.validate_member(&leaving.member_id, instance_id)?;
            leaving.member_id.clone()
        };
        tracing::info!(
            group = &*self.id,
            member = &*member_id,
            reason = &*leaving.reason,
            "member left the group"
        );
        if let Some(member) = self.remove(step.timers, &member_id) {
            answer_removed(step.effects, member);
        }
        Ok(())
    }

    /// A session may be over; if the member was heard of meanwhile, its timer is set anew.
    pub(super) fn on_heartbeat_timer(&mut self, step: &mut Step<'_>, member_id: &str) {
        if self.pending_joins.remove(member_id).is_some() {
            tracing::debug!(
                group = &*self.id,
                member = member_id,
                "member id was never used"
            );
            self.complete_join_after_removal(step);
            return;
        }
        let Some(member) = self.members.get_mut(member_id) else {
            return;
        };
        member.timer_at_ms = None;
        if member.heartbeat_deadline_ms > step.now.monotonic_ms {
            let deadline_ms = member.heartbeat_deadline_ms;
            member.timer_at_ms = Some(deadline_ms);
            let key = self.heartbeat_key(&MemberId::from(member_id));
            step.timers.schedule(deadline_ms, key);
        } else if !member.has_satisfied_heartbeat() {
            tracing::info!(
                group = &*self.id,
                member = member_id,
                "member's session timed out"
            );
            if let Some(member) = self.remove(step.timers, member_id) {
                answer_removed(step.effects, member);
            }
            match self.state {
                GroupState::Stable | GroupState::CompletingRebalance => {
                    self.prepare_rebalance(step, "a member's session timed out");
                }
                GroupState::PreparingRebalance => self.complete_join_after_removal(step),
                GroupState::Empty => {}
            }
        }
    }
}
