//! What a partition does as leader: appends, follower fetches, in-sync replicas, commits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use highwater_storage::{AppendError, AppendInfo, AppendOrigin, BrokerId, LeaderEpoch};

use super::{Partition, PartitionView, Role, RoleView};
use crate::runtime::commit_wait::CommitWait;
use crate::runtime::error::PartitionError;
use crate::runtime::read::{PartitionRead, PartitionReadRequest, ReadIsolation};
use crate::state::alter_partition::{AlterPartitionError, AlteredPartition};
use crate::state::commit::{Acks, CommitStatus, commit_status};
use crate::state::fencing::check_leader_epoch;
use crate::state::isr::IsrProposal;
use crate::state::leader::{FollowerFetchRefusal, LeaderEffects, LeaderState, ProposalOutcome};
use crate::state::leadership::Moment;
use crate::state::replica_progress::FollowerFetch;

/// What an append did.
#[derive(Debug)]
pub struct Appended {
    /// Offsets and times, as the log gave them.
    pub info: AppendInfo,
    /// For `acks=all` that is not committed yet: completes when it is, or fails.
    pub commit: Option<CommitWait>,
}

/// A follower that reads.
#[derive(Debug, Clone, Copy)]
pub struct FollowerRead {
    /// Who it is, and what its fetch tells.
    pub fetch: FollowerFetch,
    /// Whether this is the first look at its fetch. Later ones, after it was parked, read only:
    /// the fetch acknowledges what the follower had when it sent it, and that once.
    pub is_first_look: bool,
}

impl Partition {
    /// Appends as the leader and moves the high watermark if it may move.
    ///
    /// # Errors
    /// Not the leader; too few in-sync replicas for `acks=all`; whatever the log refuses. Nothing
    /// is written then. If the flush fails that `flush.messages` asks for, the records are in the
    /// log, as for Kafka: whether they last is unknown.
    pub fn append_as_leader(
        self: &Arc<Self>,
        records: &Bytes,
        acks: Acks,
        origin: AppendOrigin,
        now_ms: i64,
    ) -> Result<Appended, PartitionError> {
        self.append(None, records, acks, origin, now_ms)
    }

    /// As [`append_as_leader`](Self::append_as_leader), but only in this leader epoch: for a
    /// coordinator whose state belongs to it.
    ///
    /// # Errors
    /// As there, and when the leader epoch is another one.
    pub fn append_as_leader_in(
        self: &Arc<Self>,
        leader_epoch: LeaderEpoch,
        records: &Bytes,
        acks: Acks,
        origin: AppendOrigin,
        now_ms: i64,
    ) -> Result<Appended, PartitionError> {
        self.append(Some(leader_epoch), records, acks, origin, now_ms)
    }

    fn append(
        self: &Arc<Self>,
        leader_epoch: Option<LeaderEpoch>,
        records: &Bytes,
        acks: Acks,
        origin: AppendOrigin,
        now_ms: i64,
    ) -> Result<Appended, PartitionError> {
        // Before the lock, which a replica that follows may hold while it cuts its log.
        self.check_leader(leader_epoch)?;
        let (info, high_watermark, led_since, is_committed) = {
            let role = self.role.lock();
            let leader = self.leader_of(&role)?;
            // What all in-sync replicas have is safe whoever leads by now: they follow another leader then, and this
            // append is not committed. What this broker answers for alone might be lost.
            if acks != Acks::All
                && !leader.followers().is_empty()
                && self.context.is_session_expired()
            {
                return Err(self.view.load().not_leader());
            }
            check_leader_epoch(leader.leader_epoch(), leader_epoch)?;
            if !leader.admits_append(acks) {
                return Err(PartitionError::NotEnoughReplicas {
                    isr: leader.isr().committed().len(),
                    min_isr: leader.effective_min_isr(),
                });
            }
            let epoch = leader.leader_epoch();
            let appended = self.log.append_as_leader(records, epoch, origin, now_ms);
            let info = appended.inspect_err(|error| self.on_append_error(error))?;
            let next = if leader.followers().is_empty() {
                leader.on_append(self.offsets(), &Moment::IRRELEVANT)
            } else {
                self.context
                    .at_this_moment(|moment| leader.on_append(self.offsets(), moment))
            };
            if let Some(next) = next {
                self.log.set_high_watermark(next);
            }
            // Judged under the lock: later, another leader's records may lie there.
            let is_committed = self.log.high_watermark() > info.last_offset;
            (info, next, leader.led_since(), is_committed)
        };
        if let Some(high_watermark) = high_watermark {
            self.high_watermark_watch.advance(high_watermark);
        }
        let required_offset = info.last_offset + 1;
        self.log_end_watch.advance(required_offset);
        if info.is_flush_due {
            self.log.flush_below(required_offset)?;
        }
        let commit = (acks == Acks::All && !is_committed)
            .then(|| CommitWait::new(Arc::clone(self), led_since, required_offset));
        Ok(Appended { info, commit })
    }

    /// A leader that cannot append for want of space lets another one lead, see
    /// [`wanted_assignments`](crate::runtime::replica_manager::ReplicaManager::wanted_assignments).
    fn on_append_error(&self, error: &AppendError) {
        let AppendError::Storage(error) = error else {
            return;
        };
        if error.is_storage_full() && !self.is_out_of_space.swap(true, Ordering::Relaxed) {
            let topic_partition = &self.topic_partition;
            tracing::warn!(%topic_partition, %error, "no space to lead: another in-sync replica shall, if there is one");
            self.context.on_places_changed();
        }
    }

    /// Where an `acks=all` produce stands that ends before `required_offset` and was appended in
    /// the leadership that began in epoch `led_since`.
    ///
    /// # Errors
    /// When that leadership is over: what was appended may be gone.
    pub fn commit_status(
        &self,
        led_since: LeaderEpoch,
        required_offset: i64,
    ) -> Result<CommitStatus, PartitionError> {
        // Before the view: if the leadership still lasts then, it did when this was read.
        let high_watermark = self.log.high_watermark();
        let view = self.view.load();
        match view.role {
            RoleView::Leader {
                led_since: since,
                maximal_isr,
                effective_min_isr,
                ..
            } if since == led_since => Ok(commit_status(
                high_watermark,
                required_offset,
                maximal_isr,
                effective_min_isr,
            )),
            _ => Err(view.not_leader()),
        }
    }

    /// Reads for a follower, and takes note of what its fetch acknowledges.
    ///
    /// # Errors
    /// As [`read`](Self::read); when the follower is not a replica, or was started anew since.
    /// Nothing has been taken note of then.
    pub fn read_for_follower(
        self: &Arc<Self>,
        request: PartitionReadRequest,
        follower: FollowerRead,
    ) -> Result<PartitionRead, PartitionError> {
        let request = PartitionReadRequest {
            isolation: ReadIsolation::LogEnd,
            leader_only: true,
            ..request
        };
        let view = self.check_readable(request.current_leader_epoch, true)?;
        let replica = follower.fetch.replica;
        if !view.replicas.contains(&replica) {
            return Err(PartitionError::NotAReplica {
                replica,
                names_leader_epoch: request.current_leader_epoch.is_some(),
            });
        }
        let checked_in = view.leader_epoch;
        let log_end_offset = self.log.log_end_offset();
        let is_throttled = self.is_leader_throttled.load(Ordering::Relaxed);
        let mut read = if is_throttled && self.has_to_wait(&view, replica) {
            self.read_log(PartitionReadRequest {
                max_bytes: 0,
                at_least_one_batch: false,
                ..request
            })?
        } else {
            self.read_log(request)?
        };
        if read.diverging_epoch.is_some() || !follower.is_first_look {
            // What was read belongs to the epoch that was checked only if that lasts.
            self.check_same_leadership(checked_in, request.current_leader_epoch)?;
        } else {
            self.on_follower_fetch(&follower.fetch, checked_in, log_end_offset, request)?;
        }
        // The follower's own log end bounds what it makes of these.
        read.log_start_offset = self.log.log_start_offset();
        read.high_watermark = self.log.high_watermark();
        Ok(read)
    }

    /// Whether a throttled follower gets nothing for now. One that is in sync is never held back.
    fn has_to_wait(&self, view: &PartitionView, replica: BrokerId) -> bool {
        !view.isr.contains(&replica)
            && self
                .context
                .leader_throttle()
                .is_exceeded(self.context.now_ms())
    }

    /// Records of this partition are sent to a follower.
    pub fn on_sent_to_follower(&self, read: &PartitionRead) {
        let bytes = read.records_bytes() as u64;
        self.context.metrics().replication_bytes_out.add(bytes);
        if self.is_leader_throttled.load(Ordering::Relaxed) {
            let throttle = self.context.leader_throttle();
            throttle.record(bytes, self.context.now_ms());
        }
    }

    fn check_same_leadership(
        &self,
        checked_in: LeaderEpoch,
        requested_epoch: Option<LeaderEpoch>,
    ) -> Result<(), PartitionError> {
        let view = self.check_readable(requested_epoch, true)?;
        if view.leader_epoch == checked_in {
            Ok(())
        } else {
            Err(view.not_leader())
        }
    }

    fn on_follower_fetch(
        self: &Arc<Self>,
        fetch: &FollowerFetch,
        checked_in: LeaderEpoch,
        read_log_end_offset: i64,
        request: PartitionReadRequest,
    ) -> Result<(), PartitionError> {
        let (aftermath, low_watermark) = {
            let mut role = self.role.lock();
            let offsets = self.offsets();
            let leader = self.leader_of_mut(&mut role)?;
            let effects = self.context.at_this_moment(|moment| {
                leader.on_follower_fetch(fetch, checked_in, read_log_end_offset, offsets, moment)
            });
            let effects = effects.map_err(|refusal| match refusal {
                FollowerFetchRefusal::AnotherLeaderEpoch { current, .. } => {
                    match check_leader_epoch(current, request.current_leader_epoch) {
                        Err(fenced) => PartitionError::Fenced(fenced),
                        Ok(()) => self.view.load().not_leader(),
                    }
                }
                FollowerFetchRefusal::NotAReplica(replica) => PartitionError::NotAReplica {
                    replica,
                    names_leader_epoch: request.current_leader_epoch.is_some(),
                },
                FollowerFetchRefusal::StaleBrokerEpoch(stale) => {
                    PartitionError::StaleBrokerEpoch(stale)
                }
            })?;
            let low_watermark = (self.low_watermark_watch.waiting() > 0)
                .then(|| self.low_watermark_of(leader, offsets.log_start_offset));
            self.log_proposal(leader, &effects);
            let aftermath = self.carry_out(effects);
            if aftermath.wake_all {
                self.publish(&role);
            }
            (aftermath, low_watermark)
        };
        if let Some(low_watermark) = low_watermark {
            self.low_watermark_watch.advance(low_watermark);
        }
        self.finish(aftermath);
        Ok(())
    }

    /// The lag timer: proposes that members leave that lag for too long, and moves the high
    /// watermark past replicas that are not waited for any more.
    pub fn on_lag_check(self: &Arc<Self>) {
        if !self.leads_followers() {
            return;
        }
        self.lead(|leader, partition| {
            let offsets = partition.offsets();
            partition
                .context
                .at_this_moment(|moment| leader.on_lag_check(offsets, moment))
        });
    }

    /// The metadata of brokers changed: a replica that was fenced is not waited for any more.
    pub fn on_brokers_changed(self: &Arc<Self>) {
        if !self.leads_followers() {
            return;
        }
        self.lead(|leader, partition| {
            let offsets = partition.offsets();
            let high_watermark = partition
                .context
                .at_this_moment(|moment| leader.on_append(offsets, moment));
            LeaderEffects {
                high_watermark,
                ..LeaderEffects::default()
            }
        });
    }

    /// The controller answered a proposal. Gives the proposal if it is to be sent again.
    pub fn on_alter_partition_reply(
        self: &Arc<Self>,
        proposal: &IsrProposal,
        reply: Result<AlteredPartition, AlterPartitionError>,
    ) -> Option<IsrProposal> {
        let error = reply.as_ref().err().copied();
        let mut again = None;
        self.lead(|leader, partition| {
            let offsets = partition.offsets();
            let (outcome, mut effects) = partition.context.at_this_moment(|moment| {
                leader.on_alter_partition_reply(proposal, reply, offsets, moment)
            });
            let metrics = partition.context.metrics();
            let topic_partition = &partition.topic_partition;
            let (partition_epoch, isr) = (leader.partition_epoch(), leader.isr().committed());
            match (outcome, error) {
                (ProposalOutcome::Committed, _) => {
                    tracing::info!(%topic_partition, %partition_epoch, ?isr, "in-sync replicas changed");
                }
                (ProposalOutcome::Ignored, _) => {
                    tracing::debug!(%topic_partition, ?proposal, ?error, "ignoring a late answer about in-sync replicas");
                }
                (outcome, Some(error)) => {
                    metrics.failed_isr_updates.add(1);
                    tracing::warn!(%topic_partition, %error, ?outcome, leader_epoch = %proposal.leader_epoch, partition_epoch = %proposal.partition_epoch, ?isr, "the controller refuses a change of in-sync replicas");
                }
                (outcome, None) => {
                    tracing::debug!(%topic_partition, ?proposal, ?outcome, "the controller changed in-sync replicas; its metadata is waited for");
                }
            }
            again = effects.proposal.take();
            effects
        });
        again
    }

    /// The smallest log start offset of the live replicas.
    ///
    /// # Errors
    /// When this broker does not lead the partition.
    pub fn low_watermark(&self) -> Result<i64, PartitionError> {
        let role = self.role.lock();
        let leader = self.leader_of(&role)?;
        Ok(self.low_watermark_of(leader, self.log.log_start_offset()))
    }

    /// Runs an event of the leader and carries its effects out; nothing when this broker does not
    /// lead.
    fn lead(self: &Arc<Self>, event: impl FnOnce(&mut LeaderState, &Self) -> LeaderEffects) {
        let aftermath = {
            let mut role = self.role.lock();
            let Some(leader) = role.replica.as_leader_mut() else {
                return;
            };
            let effects = event(leader, self);
            self.log_proposal(leader, &effects);
            let aftermath = self.carry_out(effects);
            if aftermath.wake_all {
                self.publish(&role);
            }
            aftermath
        };
        self.finish(aftermath);
    }

    fn leads_followers(&self) -> bool {
        let view = self.view.load();
        matches!(
            view.role,
            RoleView::Leader {
                has_followers: true,
                ..
            }
        )
    }

    fn leader_of<'a>(&self, role: &'a Role) -> Result<&'a LeaderState, PartitionError> {
        let leader = role.replica.as_leader();
        leader.ok_or_else(|| self.view.load().not_leader())
    }

    fn leader_of_mut<'a>(&self, role: &'a mut Role) -> Result<&'a mut LeaderState, PartitionError> {
        let leader = role.replica.as_leader_mut();
        leader.ok_or_else(|| self.view.load().not_leader())
    }

    fn low_watermark_of(&self, leader: &LeaderState, log_start_offset: i64) -> i64 {
        let image = self.context.image();
        let is_alive = |broker| image.broker(broker).is_some_and(|broker| !broker.fenced);
        leader.low_watermark(log_start_offset, is_alive)
    }

    fn log_proposal(&self, leader: &LeaderState, effects: &LeaderEffects) {
        if effects.proposal.is_none() {
            return;
        }
        let topic_partition = &self.topic_partition;
        let isr = leader.isr();
        let log_end_offset = self.log.log_end_offset();
        let high_watermark = self.log.high_watermark();
        let (leader_epoch, partition_epoch) = (leader.leader_epoch(), leader.partition_epoch());
        match isr.candidate() {
            Some(candidate) => {
                tracing::info!(%topic_partition, %candidate, isr = ?isr.committed(), %leader_epoch, %partition_epoch, high_watermark, "expanding the in-sync replicas");
            }
            None => {
                let followers = leader.followers();
                tracing::info!(%topic_partition, leaving = ?isr.leaving(), isr = ?isr.committed(), %leader_epoch, %partition_epoch, high_watermark, log_end_offset, ?followers, "shrinking the in-sync replicas");
            }
        }
    }
}
