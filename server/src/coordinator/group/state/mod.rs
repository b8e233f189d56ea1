//! All groups of one `__consumer_offsets` partition as a state machine.
//!
//! Nothing here waits, reads a clock or draws a random number. Every operation takes [`Now`], and what it wants done
//! comes back in [`Effects`]: answers to requests that were parked under a [`ReplyToken`], and records to append. The
//! caller appends them in that order and reports each result through [`GroupShard::on_appended`]; offsets and deletions
//! become visible only then, by the same code that replays the log, so that the live state is always the replayed one.
//!
//! Every token given to an operation is answered exactly once: at once, later, or when the shard is unloaded.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::ResponseError;

use super::records::GroupRecord;
use super::{GroupConfig, GroupId, MemberId};

mod admin;
mod expiry;
mod group;
mod join;
mod member;
mod membership;
mod offsets;
mod rebalance;
mod replay;
mod sync;
mod timers;

#[cfg(test)]
mod tests;

pub use admin::{GroupDescription, MemberDescription};
pub use group::Group;
pub use join::{JoinMember, JoinReply, JoinRequest};
pub use member::{Member, MemberProtocol};
pub use membership::LeavingMember;
pub use offsets::{CommitOutcome, CommitRequest, CommittedOffset, OffsetToCommit, TopicOffsets};
pub use replay::ReplayedRecord;
pub use sync::{SyncReply, SyncRequest};
pub use timers::TimerKey;

use timers::TimerQueue;

/// The time of an event, on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since 1970, for what is stored.
    pub wall_ms: i64,
    /// Milliseconds of a clock that never jumps, for time-outs.
    pub monotonic_ms: i64,
}

/// The caller's name for a request that is answered through [`Effects`].
pub type ReplyToken = u64;

/// An answer to a parked request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupReply {
    /// To a JoinGroup.
    Join(JoinReply),
    /// To a SyncGroup.
    Sync(SyncReply),
    /// To a request that waits for its records to be committed.
    Written(Result<(), ResponseError>),
}

/// What an operation wants done.
#[derive(Debug, Default)]
pub struct Effects {
    /// Requests that are answered now.
    pub replies: Vec<(ReplyToken, GroupReply)>,
    /// Batches to append, in order.
    pub appends: Vec<Append>,
}

/// One batch of records to append, and what depends on it.
#[derive(Debug)]
pub struct Append {
    /// The records of the batch.
    pub records: Vec<GroupRecord>,
    /// What happens once they are committed or have failed; given back through [`GroupShard::on_appended`].
    pub then: AfterAppend,
}

/// What happens once a batch is committed or has failed.
#[derive(Debug)]
pub enum AfterAppend {
    /// Nothing depends on it.
    Nothing,
    /// A leader's assignment is handed out, unless the group has moved on.
    Assign {
        /// The group.
        group: GroupId,
        /// The generation of the assignment.
        generation: i32,
        /// Assignments by member.
        assignments: BTreeMap<MemberId, Bytes>,
    },
    /// A static member that came back into a stable group is told its old place.
    StaticRejoin(Box<join::StaticRejoin>),
    /// The records themselves are applied to the state, then the request is answered.
    Apply {
        /// The request that waits, if any.
        token: Option<ReplyToken>,
        /// The records of the batch.
        records: Vec<GroupRecord>,
    },
}

impl Effects {
    fn join(&mut self, token: ReplyToken, reply: JoinReply) {
        self.replies.push((token, GroupReply::Join(reply)));
    }

    fn sync(&mut self, token: ReplyToken, reply: SyncReply) {
        self.replies.push((token, GroupReply::Sync(reply)));
    }

    fn append(&mut self, records: Vec<GroupRecord>, then: AfterAppend) {
        self.appends.push(Append { records, then });
    }

    /// Refuses a request as a whole.
    fn refuse(mut self, token: ReplyToken, error: ResponseError) -> (CommitOutcome, Self) {
        self.replies.push((token, GroupReply::Written(Err(error))));
        (Err(error), self)
    }

    /// Appends `records` that change the state by being replayed. Without records the request is answered at once.
    fn apply(&mut self, records: Vec<GroupRecord>, token: Option<ReplyToken>) {
        if records.is_empty() {
            if let Some(token) = token {
                self.replies.push((token, GroupReply::Written(Ok(()))));
            }
            return;
        }
        let then = AfterAppend::Apply {
            token,
            records: records.clone(),
        };
        self.append(records, then);
    }
}

/// The state of a group of the classic protocol. A group that does not exist is called "Dead".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupState {
    /// No members; offsets may be there.
    Empty,
    /// Waiting for members to join.
    PreparingRebalance,
    /// Waiting for the leader's assignment.
    CompletingRebalance,
    /// Every member has its assignment.
    Stable,
}

impl GroupState {
    /// Kafka's name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            GroupState::Empty => "Empty",
            GroupState::PreparingRebalance => "PreparingRebalance",
            GroupState::CompletingRebalance => "CompletingRebalance",
            GroupState::Stable => "Stable",
        }
    }
}

/// All groups of one `__consumer_offsets` partition. See the module's documentation.
#[derive(Debug)]
pub struct GroupShard {
    config: Arc<GroupConfig>,
    groups: HashMap<GroupId, Group>,
    timers: TimerQueue,
    open_transactions: replay::OpenTransactions,
}

/// What every step of an operation on one group needs besides the group.
struct Step<'a> {
    config: &'a GroupConfig,
    timers: &'a mut TimerQueue,
    now: Now,
    effects: &'a mut Effects,
}

impl GroupShard {
    /// A shard without groups, to be filled by [`GroupShard::replay`].
    pub fn new(config: Arc<GroupConfig>) -> Self {
        GroupShard {
            config,
            groups: HashMap::new(),
            timers: TimerQueue::default(),
            open_transactions: replay::OpenTransactions::default(),
        }
    }

    /// The groups, in no order.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }

    /// One group.
    pub fn group(&self, group_id: &str) -> Option<&Group> {
        self.groups.get(group_id)
    }

    /// When [`GroupShard::on_time`] is to be called next, on the monotonic clock.
    pub fn next_deadline_ms(&self) -> Option<i64> {
        self.timers.next_deadline_ms()
    }

    /// Runs a step on one group, if it exists.
    fn with_group<R>(
        &mut self,
        group_id: &str,
        now: Now,
        effects: &mut Effects,
        step: impl FnOnce(&mut Group, &mut Step<'_>) -> R,
    ) -> Option<R> {
        let group = self.groups.get_mut(group_id)?;
        let mut context = Step {
            config: &self.config,
            timers: &mut self.timers,
            now,
            effects,
        };
        Some(step(group, &mut context))
    }

    /// Runs every timer that is due.
    pub fn on_time(&mut self, now: Now) -> Effects {
        let mut effects = Effects::default();
        while let Some(key) = self.timers.pop_due(now.monotonic_ms) {
            match key {
                TimerKey::Heartbeat { group, member } => {
                    self.with_group(&group, now, &mut effects, |group, step| {
                        group.on_heartbeat_timer(step, &member);
                    });
                }
                TimerKey::Join { group } => {
                    self.with_group(&group, now, &mut effects, Group::on_join_timer);
                }
                TimerKey::Sync { group } => {
                    self.with_group(&group, now, &mut effects, Group::on_sync_timer);
                }
                TimerKey::ExpireOffsets => self.expire_offsets(now, &mut effects),
            }
        }
        effects
    }

    /// Takes the result of an append: the base offset of the committed batch, or the error it failed with.
    pub fn on_appended(
        &mut self,
        then: AfterAppend,
        result: Result<i64, ResponseError>,
        now: Now,
    ) -> Effects {
        let mut effects = Effects::default();
        match then {
            AfterAppend::Nothing => {
                if let Err(error) = result {
                    tracing::warn!(%error, "group metadata could not be appended");
                }
            }
            AfterAppend::Assign {
                group,
                generation,
                assignments,
            } => {
                self.with_group(&group, now, &mut effects, |group, step| {
                    group.on_assignment_appended(step, generation, assignments, result);
                });
            }
            AfterAppend::StaticRejoin(rejoin) => {
                let group = rejoin.group.clone();
                let found = self.with_group(&group, now, &mut effects, |group, step| {
                    group.on_static_rejoin_appended(step, &rejoin, result);
                });
                debug_assert!(found.is_some(), "a group with members is never removed");
            }
            AfterAppend::Apply { token, records } => {
                let written =
                    result.map(|base_offset| self.apply_committed(base_offset, records, now));
                if let Some(token) = token {
                    effects.replies.push((token, GroupReply::Written(written)));
                }
            }
        }
        effects
    }

    /// Answers every parked request with NOT_COORDINATOR: the partition is no longer led here.
    pub fn unload(mut self) -> Effects {
        let mut effects = Effects::default();
        for group in self.groups.values_mut() {
            group.answer_all(&mut effects, ResponseError::NotCoordinator);
        }
        effects
    }
}
