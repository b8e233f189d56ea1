//! One partition on this broker: its log, its role, and who waits for it.
//!
//! One lock, the role lock, is held for appends and for whatever depends on who leads; reads and
//! waits look at a [`PartitionView`] and at the log's atomics without it. Nobody is woken, and
//! nothing is sent, while it is held.

mod follow;
mod lead;
mod preferred_replica;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use highwater_storage::{BrokerId, LeaderEpoch, Log, TopicId, TopicPartition};
use parking_lot::Mutex;

use super::context::ReplicaContext;
use super::error::PartitionError;
use super::offset_watch::OffsetWatch;
use super::topic_settings::TopicSettings;
use crate::state::fencing::check_leader_epoch;
use crate::state::isr::IsrProposal;
use crate::state::leader::{LeaderEffects, LeaderState};
use crate::state::leadership::LogOffsets;
use crate::state::replica::{ReplicaRole, ReplicaState, RoleChange};
use crate::state::truncation::FollowerLog;

pub use crate::state::leadership::Leadership;
pub use follow::{FollowError, FollowerAppend};
pub use lead::{Appended, FollowerRead};

/// One partition that this broker hosts.
#[derive(Debug)]
pub struct Partition {
    topic_partition: TopicPartition,
    topic_id: TopicId,
    context: Arc<ReplicaContext>,
    log: Arc<Log>,
    role: Mutex<Role>,
    view: ArcSwap<PartitionView>,
    high_watermark_watch: Arc<OffsetWatch>,
    log_end_watch: Arc<OffsetWatch>,
    low_watermark_watch: Arc<OffsetWatch>,
    /// Whether this replica is throttled as leader, and as follower.
    is_leader_throttled: AtomicBool,
    is_follower_throttled: AtomicBool,
    /// As leader, it found the disk full.
    is_out_of_space: AtomicBool,
}

/// What the role lock guards.
#[derive(Debug)]
struct Role {
    replica: ReplicaState,
    /// As the metadata said, and on a leader as the controller answered since.
    leadership: Leadership,
}

/// What a partition is at one time, for those who do not take its lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionView {
    /// Who leads, and which replicas there are.
    pub leadership: Leadership,
    /// What this broker's replica is.
    pub role: RoleView,
}

/// What this broker's replica of a partition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleView {
    /// Nothing yet, or nothing any more.
    None,
    /// The leader.
    Leader {
        /// The leader epoch since which it leads without a break.
        led_since: LeaderEpoch,
        /// The log end offset when the present leader epoch began.
        epoch_start_offset: i64,
        /// Size of the maximal in-sync replicas.
        maximal_isr: usize,
        /// `min.insync.replicas`, capped by the number of replicas.
        effective_min_isr: usize,
        /// How many replicas can be in sync: all but the observers.
        potential_isr: usize,
        /// Whether there are other replicas.
        has_followers: bool,
    },
    /// A follower, or an observer, or waiting for a leader.
    Follower,
}

impl Deref for PartitionView {
    type Target = Leadership;

    fn deref(&self) -> &Leadership {
        &self.leadership
    }
}

impl PartitionView {
    /// Whether this broker leads the partition.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        matches!(self.role, RoleView::Leader { .. })
    }

    /// The refusal of what only a leader does.
    fn not_leader(&self) -> PartitionError {
        PartitionError::NotLeader {
            leader: self.leader,
            leader_epoch: self.leader_epoch,
        }
    }
}

/// What is to be done after the role lock was given up.
#[derive(Debug, Default)]
#[must_use = "those who wait are to be woken"]
struct Aftermath {
    high_watermark: Option<i64>,
    proposal: Option<IsrProposal>,
    /// The role, the in-sync replicas or the settings changed: everyone looks again.
    wake_all: bool,
}

/// What a change of the metadata means for the fetcher of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetcherChange {
    /// Nothing.
    None,
    /// It is to begin anew in this leader epoch, from this leader.
    Restart {
        /// The leader, if there is one.
        leader: Option<BrokerId>,
        /// Its epoch.
        leader_epoch: LeaderEpoch,
    },
}

impl Partition {
    /// A partition over an opened log, which has its settings already. Call
    /// [`become_as`](Self::become_as) next.
    #[must_use]
    pub fn new(
        topic_partition: TopicPartition,
        topic_id: TopicId,
        context: Arc<ReplicaContext>,
        log: Arc<Log>,
        settings: &TopicSettings,
    ) -> Self {
        let replica = ReplicaState::new(context.local_broker(), settings.leader_config());
        let leadership = Leadership {
            leader: None,
            leader_epoch: replica.leader_epoch(),
            partition_epoch: replica.partition_epoch(),
            replicas: Vec::new(),
            isr: Vec::new(),
        };
        let view = PartitionView {
            leadership: leadership.clone(),
            role: RoleView::None,
        };
        let partition = Self {
            topic_partition,
            topic_id,
            context,
            log,
            role: Mutex::new(Role {
                replica,
                leadership,
            }),
            view: ArcSwap::from_pointee(view),
            high_watermark_watch: Arc::default(),
            log_end_watch: Arc::default(),
            low_watermark_watch: Arc::default(),
            is_leader_throttled: AtomicBool::new(false),
            is_follower_throttled: AtomicBool::new(false),
            is_out_of_space: AtomicBool::new(false),
        };
        partition.set_throttled(settings);
        partition
    }

    fn set_throttled(&self, settings: &TopicSettings) {
        let (partition, broker) = (
            self.topic_partition.partition,
            self.context.local_broker().0,
        );
        let as_leader = settings.leader_throttled.contains(partition, broker);
        let as_follower = settings.follower_throttled.contains(partition, broker);
        self.is_leader_throttled.store(as_leader, Ordering::Relaxed);
        self.is_follower_throttled
            .store(as_follower, Ordering::Relaxed);
    }

    /// Its topic and index.
    pub fn topic_partition(&self) -> &TopicPartition {
        &self.topic_partition
    }

    /// The id of its topic.
    pub fn topic_id(&self) -> TopicId {
        self.topic_id
    }

    /// Its log.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Whether it found the disk full as leader, and has not heard of space since.
    pub(super) fn is_out_of_space(&self) -> bool {
        self.is_out_of_space.load(Ordering::Relaxed)
    }

    /// There is space on the disk again.
    pub(super) fn on_space(&self) {
        self.is_out_of_space.store(false, Ordering::Relaxed);
    }

    /// What it is, as of now.
    pub fn view(&self) -> Arc<PartitionView> {
        self.view.load_full()
    }

    /// The current leader epoch.
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.view.load().leader_epoch
    }

    /// Where readers up to the high watermark, and produces that are not committed yet, wait.
    pub fn high_watermark_watch(&self) -> &Arc<OffsetWatch> {
        &self.high_watermark_watch
    }

    /// Where fetches of followers wait for the log end offset.
    pub fn log_end_watch(&self) -> &Arc<OffsetWatch> {
        &self.log_end_watch
    }

    /// Where deletions of records wait until all live replicas have done them.
    pub fn low_watermark_watch(&self) -> &Arc<OffsetWatch> {
        &self.low_watermark_watch
    }

    /// Lets everyone who waits look again.
    pub fn wake_all(&self) {
        self.high_watermark_watch.wake_all();
        self.log_end_watch.wake_all();
        self.low_watermark_watch.wake_all();
    }

    /// Takes the role that the metadata gives. A state with an older partition epoch is ignored.
    ///
    /// # Errors
    /// When the start of a new leader epoch cannot be written; the partition has no role then.
    pub fn become_as(self: &Arc<Self>, next: Leadership) -> Result<FetcherChange, PartitionError> {
        let (change, aftermath) = {
            let mut role = self.role.lock();
            let changed = self.change_role(&mut role, next);
            drop(role);
            changed.inspect_err(|_| self.wake_all())?
        };
        self.finish(aftermath);
        Ok(change)
    }

    /// Called with the role lock held.
    fn change_role(
        &self,
        role: &mut Role,
        next: Leadership,
    ) -> Result<(FetcherChange, Aftermath), PartitionError> {
        let offsets = self.offsets();
        let was_leader = role.replica.as_leader().is_some();
        let change = self
            .context
            .at_this_moment(|moment| role.replica.on_leadership(&next, offsets, moment));
        let (fetcher, aftermath) = match change {
            RoleChange::Unchanged => return Ok((FetcherChange::None, Aftermath::default())),
            RoleChange::Leader {
                effects,
                is_new_epoch,
            } => {
                if is_new_epoch {
                    let topic_partition = &self.topic_partition;
                    let (leader_epoch, isr) = (next.leader_epoch, &next.isr);
                    let log_end_offset = offsets.log_end_offset;
                    tracing::info!(%topic_partition, %leader_epoch, log_end_offset, high_watermark = offsets.high_watermark, ?isr, was_leader, "leading");
                }
                if let Some((epoch, offset)) = effects.epoch_start
                    && let Err(error) = self.log.assign_epoch_start(epoch, offset)
                {
                    role.replica.on_removed();
                    role.leadership = next;
                    self.publish(role);
                    return Err(error.into());
                }
                (FetcherChange::None, self.carry_out(effects))
            }
            RoleChange::Follower { is_new_epoch } => {
                let Leadership {
                    leader,
                    leader_epoch,
                    ..
                } = next;
                let restart = FetcherChange::Restart {
                    leader,
                    leader_epoch,
                };
                if is_new_epoch {
                    let topic_partition = &self.topic_partition;
                    let log_end_offset = offsets.log_end_offset;
                    let high_watermark = offsets.high_watermark;
                    match leader {
                        Some(leader) => {
                            tracing::info!(%topic_partition, %leader_epoch, %leader, log_end_offset, high_watermark, was_leader, "following");
                        }
                        None => {
                            tracing::warn!(%topic_partition, %leader_epoch, isr = ?next.isr, log_end_offset, high_watermark, was_leader, "nobody leads: no replica that has all that is committed can");
                        }
                    }
                }
                let change = if is_new_epoch {
                    restart
                } else {
                    FetcherChange::None
                };
                (change, Aftermath::default())
            }
        };
        role.leadership = next;
        self.publish(role);
        let aftermath = Aftermath {
            wake_all: true,
            ..aftermath
        };
        Ok((fetcher, aftermath))
    }

    /// Gives up every role: the topic was deleted, the replica goes elsewhere, or the log failed.
    /// Parked requests look again and find that this broker does not lead.
    pub fn resign(&self) {
        {
            let mut role = self.role.lock();
            role.replica.on_removed();
            role.leadership.leader = None;
            self.publish(&role);
        }
        self.wake_all();
    }

    /// Takes up new settings. A lower `min.insync.replicas` may move the high watermark at once,
    /// and parked requests look again.
    pub fn set_topic_settings(self: &Arc<Self>, settings: TopicSettings) {
        let aftermath = {
            let mut role = self.role.lock();
            let leader_config = settings.leader_config();
            self.set_throttled(&settings);
            self.log.set_config(settings.log);
            let offsets = self.offsets();
            let effects = self
                .context
                .at_this_moment(|moment| role.replica.on_config(leader_config, offsets, moment));
            let aftermath = self.carry_out(effects);
            self.publish(&role);
            Aftermath {
                wake_all: true,
                ..aftermath
            }
        };
        self.finish(aftermath);
    }

    /// Judges the leader epoch that a request names, and that this broker leads.
    ///
    /// # Errors
    /// [`PartitionError::Fenced`] or [`PartitionError::NotLeader`].
    pub fn check_leader(&self, requested_epoch: Option<LeaderEpoch>) -> Result<(), PartitionError> {
        self.check_readable(requested_epoch, true).map(drop)
    }

    /// As [`check_leader`](Self::check_leader), but a follower may serve the request too unless `leader_only`.
    ///
    /// # Errors
    /// As there.
    pub fn check_served(
        &self,
        requested_epoch: Option<LeaderEpoch>,
        leader_only: bool,
    ) -> Result<(), PartitionError> {
        self.check_readable(requested_epoch, leader_only).map(drop)
    }

    /// Judges the leader epoch that a request names, and that this broker may serve it.
    pub(super) fn check_readable(
        &self,
        requested_epoch: Option<LeaderEpoch>,
        leader_only: bool,
    ) -> Result<arc_swap::Guard<Arc<PartitionView>>, PartitionError> {
        let view = self.view.load();
        check_leader_epoch(view.leader_epoch, requested_epoch)?;
        match view.role {
            RoleView::Leader { .. } => Ok(view),
            RoleView::Follower if !leader_only => Ok(view),
            RoleView::Follower | RoleView::None => Err(view.not_leader()),
        }
    }

    /// Refuses what another leader may answer otherwise by now, if there can be another.
    pub(super) fn check_session(&self, view: &PartitionView) -> Result<(), PartitionError> {
        let has_followers = matches!(
            view.role,
            RoleView::Leader {
                has_followers: true,
                ..
            }
        );
        if has_followers && self.context.is_session_expired() {
            return Err(view.not_leader());
        }
        Ok(())
    }

    /// Where the log stands.
    fn offsets(&self) -> LogOffsets {
        FollowerLog::offsets(&*self.log)
    }

    /// Does what can be done under the role lock.
    fn carry_out(&self, effects: LeaderEffects) -> Aftermath {
        if let Some(high_watermark) = effects.high_watermark {
            self.log.set_high_watermark(high_watermark);
        }
        Aftermath {
            high_watermark: effects.high_watermark,
            proposal: effects.proposal,
            wake_all: effects.isr_changed,
        }
    }

    /// Makes the role known to those who do not take the lock.
    fn publish(&self, role: &Role) {
        let mut leadership = role.leadership.clone();
        let view = match role.replica.role() {
            ReplicaRole::None => RoleView::None,
            ReplicaRole::Follower => RoleView::Follower,
            ReplicaRole::Leader(leader) => {
                leadership.isr = leader.isr().committed().to_vec();
                leadership.partition_epoch = leader.partition_epoch();
                role_view(leader)
            }
        };
        let next = PartitionView {
            leadership,
            role: view,
        };
        self.count_isr_change(&self.view.load(), &next);
        self.view.store(Arc::new(next));
    }

    /// Counts a change of the in-sync replicas within one leadership.
    fn count_isr_change(&self, before: &PartitionView, next: &PartitionView) {
        let is_same_leadership =
            before.is_leader() && next.is_leader() && before.leader_epoch == next.leader_epoch;
        if is_same_leadership {
            let metrics = self.context.metrics();
            match next.isr.len().cmp(&before.isr.len()) {
                std::cmp::Ordering::Greater => metrics.isr_expands.add(1),
                std::cmp::Ordering::Less => metrics.isr_shrinks.add(1),
                std::cmp::Ordering::Equal => {}
            }
        }
    }

    /// Does what is done without the role lock.
    fn finish(self: &Arc<Self>, aftermath: Aftermath) {
        if aftermath.wake_all {
            self.wake_all();
        } else if let Some(high_watermark) = aftermath.high_watermark {
            self.high_watermark_watch.advance(high_watermark);
        }
        if let Some(proposal) = aftermath.proposal {
            self.context.proposals().submit(Arc::clone(self), proposal);
        }
    }
}

fn role_view(leader: &LeaderState) -> RoleView {
    RoleView::Leader {
        led_since: leader.led_since(),
        epoch_start_offset: leader.epoch_start_offset(),
        maximal_isr: leader.isr().maximal_len(),
        effective_min_isr: leader.effective_min_isr(),
        potential_isr: leader.potential_isr(),
        has_followers: !leader.followers().is_empty(),
    }
}

#[cfg(test)]
mod tests;
