//! A partition's leader: what it knows of its followers, when the high watermark moves, and which
//! in-sync replicas it asks the controller for.
//!
//! Events in, effects out; the log, the clock and the metadata are arguments.

use highwater_storage::{BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch};

use super::alter_partition::{AlterPartitionError, AlteredPartition, ErrorAction};
use super::commit::{self, Acks, CommitStatus};
use super::high_watermark::{HighWatermarkInput, next_high_watermark};
use super::isr::{IsrMember, IsrProposal, IsrProposalId, IsrState};
use super::leadership::{Leadership, LogOffsets, Moment};
use super::replica_progress::{
    FollowerFetch, ReplicaProgress, StaleBrokerEpoch, UNSPECIFIED_BROKER_EPOCH,
};

/// The settings of a partition that its leader looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderConfig {
    /// `min.insync.replicas`.
    pub min_insync_replicas: usize,
    /// Replicas that follow and serve reads but are never in sync nor elected.
    pub observers: Vec<BrokerId>,
}

impl Default for LeaderConfig {
    fn default() -> Self {
        Self {
            min_insync_replicas: 1,
            observers: Vec::new(),
        }
    }
}

/// What is to be done after an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "effects are to be carried out"]
pub struct LeaderEffects {
    /// Note in the log's leader epoch cache that this epoch begins at this offset, before anything
    /// else.
    pub epoch_start: Option<(LeaderEpoch, i64)>,
    /// Move the high watermark here.
    pub high_watermark: Option<i64>,
    /// Send this to the controller.
    pub proposal: Option<IsrProposal>,
    /// The committed or the maximal in-sync replicas are others than before.
    pub isr_changed: bool,
}

/// Why a follower's fetch is not taken note of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FollowerFetchRefusal {
    /// Its offsets were checked in another leader epoch than the present one, and say nothing in
    /// this one.
    #[error("the fetch was checked in leader epoch {checked}, now it is {current}")]
    AnotherLeaderEpoch {
        /// The epoch in which it was checked.
        checked: LeaderEpoch,
        /// The epoch in which this broker leads now.
        current: LeaderEpoch,
    },
    /// It is not among the assigned replicas, as far as this broker has heard.
    #[error("broker {0} is not a replica of the partition")]
    NotAReplica(BrokerId),
    /// It comes from a run of the broker that is over.
    #[error(transparent)]
    StaleBrokerEpoch(#[from] StaleBrokerEpoch),
}

/// What became of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalOutcome {
    /// The answer is to another proposal than the pending one, or to one of another epoch.
    Ignored,
    /// The controller's in-sync replicas are now the committed ones.
    Committed,
    /// Refused for certain; the committed in-sync replicas are as before.
    RolledBack,
    /// It stays pending until the metadata tells.
    AwaitingMetadata,
    /// It stays pending and is in the effects to be sent again.
    Retry,
}

/// The leader of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderState {
    local_broker: BrokerId,
    led_since: LeaderEpoch,
    leader_epoch: LeaderEpoch,
    partition_epoch: PartitionEpoch,
    epoch_start_offset: i64,
    isr: IsrState,
    /// All assigned replicas but this one, in the order of the assignment.
    followers: Vec<(BrokerId, ReplicaProgress)>,
    config: LeaderConfig,
    last_proposal: u64,
}

impl LeaderState {
    /// This broker, which did not lead the partition before, becomes its leader.
    pub fn on_become_leader(
        local_broker: BrokerId,
        leadership: &Leadership,
        config: LeaderConfig,
        log: LogOffsets,
        moment: &Moment<'_>,
    ) -> (Self, LeaderEffects) {
        let mut state = Self {
            local_broker,
            led_since: leadership.leader_epoch,
            leader_epoch: leadership.leader_epoch,
            partition_epoch: leadership.partition_epoch,
            epoch_start_offset: log.log_end_offset,
            isr: IsrState::committed_as(leadership.isr.clone()),
            followers: Vec::new(),
            config,
            last_proposal: 0,
        };
        state.assign(leadership);
        state.begin_epoch(false, log, moment);
        let effects = LeaderEffects {
            epoch_start: Some((state.leader_epoch, state.epoch_start_offset)),
            high_watermark: state.next_high_watermark(log, moment),
            proposal: None,
            isr_changed: true,
        };
        (state, effects)
    }

    /// The metadata of the partition changed and this broker still leads, in the same epoch or in
    /// a later one. An older state, or the one that is known, changes nothing: then a pending
    /// proposal stays pending, since nobody has said yet what became of it.
    pub fn on_leadership(
        &mut self,
        leadership: &Leadership,
        log: LogOffsets,
        moment: &Moment<'_>,
    ) -> LeaderEffects {
        let is_new_epoch = leadership.leader_epoch > self.leader_epoch;
        if leadership.partition_epoch < self.partition_epoch
            || (leadership.partition_epoch == self.partition_epoch && !is_new_epoch)
        {
            return LeaderEffects::default();
        }
        self.partition_epoch = leadership.partition_epoch;
        // Whatever was pending: its partition epoch is over, so it can only have been applied by now.
        self.isr = IsrState::committed_as(leadership.isr.clone());
        self.assign(leadership);
        let mut epoch_start = None;
        if is_new_epoch {
            self.leader_epoch = leadership.leader_epoch;
            self.epoch_start_offset = log.log_end_offset;
            self.begin_epoch(true, log, moment);
            epoch_start = Some((self.leader_epoch, self.epoch_start_offset));
        }
        LeaderEffects {
            epoch_start,
            high_watermark: self.next_high_watermark(log, moment),
            proposal: None,
            isr_changed: true,
        }
    }

    /// Records were appended.
    #[must_use = "the next high watermark, if it moves"]
    pub fn on_append(&self, log: LogOffsets, moment: &Moment<'_>) -> Option<i64> {
        self.next_high_watermark(log, moment)
    }

    /// A follower fetched, and its fetch passed the checks of epochs and offsets in leader epoch
    /// `checked_in`. `read_log_end_offset` is the log end offset that was sampled before the read.
    ///
    /// # Errors
    /// When the leader epoch is another one by now, when it is not a replica, or when it speaks of
    /// an older run of its broker; nothing has changed then.
    pub fn on_follower_fetch(
        &mut self,
        fetch: &FollowerFetch,
        checked_in: LeaderEpoch,
        read_log_end_offset: i64,
        log: LogOffsets,
        moment: &Moment<'_>,
    ) -> Result<LeaderEffects, FollowerFetchRefusal> {
        if checked_in != self.leader_epoch {
            return Err(FollowerFetchRefusal::AnotherLeaderEpoch {
                checked: checked_in,
                current: self.leader_epoch,
            });
        }
        let standing = moment.brokers.standing(fetch.replica);
        let progress = self
            .follower_mut(fetch.replica)
            .ok_or(FollowerFetchRefusal::NotAReplica(fetch.replica))?;
        let moved = progress.on_fetch(fetch, read_log_end_offset, moment.now_ms, standing)?;
        let proposal = self.maybe_expand_isr(fetch.replica, log, moment);
        let isr_changed = proposal.is_some();
        let high_watermark = if moved || isr_changed {
            self.next_high_watermark(log, moment)
        } else {
            None
        };
        Ok(LeaderEffects {
            high_watermark,
            proposal,
            isr_changed,
            ..LeaderEffects::default()
        })
    }

    /// The lag timer (each half of `replica.lag.time.max.ms`): proposes that the members leave
    /// that lack records and have not caught up for too long, or that became observers.
    pub fn on_lag_check(&mut self, log: LogOffsets, moment: &Moment<'_>) -> LeaderEffects {
        // A follower outside of the in-sync replicas may have lagged out of those waited for.
        let high_watermark = self.next_high_watermark(log, moment);
        let mut effects = LeaderEffects {
            high_watermark,
            ..LeaderEffects::default()
        };
        if self.isr.pending().is_some() {
            return effects;
        }
        let lags = |broker: BrokerId| {
            let progress = self.follower(broker).unwrap_or(&ReplicaProgress::UNKNOWN);
            !progress.is_caught_up(log.log_end_offset, moment)
        };
        let (leaving, staying): (Vec<_>, Vec<_>) =
            self.isr.committed().iter().copied().partition(|broker| {
                *broker != self.local_broker && (self.is_observer(*broker) || lags(*broker))
            });
        if leaving.is_empty() {
            return effects;
        }
        let proposal = self.propose(staying, moment);
        self.isr.shrink(leaving, proposal.clone());
        effects.proposal = Some(proposal);
        effects.isr_changed = true;
        effects
    }

    /// The controller answered `proposal`.
    ///
    /// That members may leave is taken up with the metadata only, not with the answer, which may
    /// overtake it: the controller has judged by its `min.insync.replicas`, and may keep those who
    /// leave as eligible leader replicas (KIP-966) where this leader, with an older and smaller
    /// one, would commit without them.
    pub fn on_alter_partition_reply(
        &mut self,
        proposal: &IsrProposal,
        reply: Result<AlteredPartition, AlterPartitionError>,
        log: LogOffsets,
        moment: &Moment<'_>,
    ) -> (ProposalOutcome, LeaderEffects) {
        let Some(pending) = self.isr.pending().filter(|pending| *pending == proposal) else {
            return (ProposalOutcome::Ignored, LeaderEffects::default());
        };
        let outcome = match reply {
            Ok(altered) => {
                if altered.leader_epoch != self.leader_epoch
                    || altered.partition_epoch < self.partition_epoch
                {
                    return (ProposalOutcome::Ignored, LeaderEffects::default());
                }
                if !self.isr.leaving().is_empty() && altered.partition_epoch > self.partition_epoch
                {
                    return (ProposalOutcome::AwaitingMetadata, LeaderEffects::default());
                }
                self.isr = IsrState::committed_as(altered.isr);
                self.partition_epoch = altered.partition_epoch;
                ProposalOutcome::Committed
            }
            Err(error) => match error.action() {
                ErrorAction::RollBack => {
                    self.isr.roll_back();
                    ProposalOutcome::RolledBack
                }
                ErrorAction::AwaitMetadata => {
                    return (ProposalOutcome::AwaitingMetadata, LeaderEffects::default());
                }
                ErrorAction::Retry => {
                    let effects = LeaderEffects {
                        proposal: Some(pending.clone()),
                        ..LeaderEffects::default()
                    };
                    return (ProposalOutcome::Retry, effects);
                }
            },
        };
        let effects = LeaderEffects {
            high_watermark: self.next_high_watermark(log, moment),
            isr_changed: true,
            ..LeaderEffects::default()
        };
        (outcome, effects)
    }

    /// The partition's settings changed. A lower `min.insync.replicas` may move the high watermark.
    pub fn on_config(
        &mut self,
        config: LeaderConfig,
        log: LogOffsets,
        moment: &Moment<'_>,
    ) -> LeaderEffects {
        self.config = config;
        LeaderEffects {
            high_watermark: self.next_high_watermark(log, moment),
            ..LeaderEffects::default()
        }
    }

    /// Window 1 of `acks=all`: whether a produce may be appended. Pending members do not count.
    #[must_use]
    pub fn admits_append(&self, acks: Acks) -> bool {
        commit::admit_append(acks, self.isr.committed().len(), self.effective_min_isr())
    }

    /// Window 2 of `acks=all`: where an append that ends before `required_offset` stands.
    #[must_use]
    pub fn commit_status(&self, high_watermark: i64, required_offset: i64) -> CommitStatus {
        commit::commit_status(
            high_watermark,
            required_offset,
            self.isr.maximal_len(),
            self.effective_min_isr(),
        )
    }

    /// `min.insync.replicas`, capped by the number of replicas that can be in sync at all.
    #[must_use]
    pub fn effective_min_isr(&self) -> usize {
        commit::effective_min_isr(self.config.min_insync_replicas, self.potential_isr())
    }

    /// How many replicas can be in sync: all but the observers.
    #[must_use]
    pub fn potential_isr(&self) -> usize {
        let observers = self.followers.iter();
        let observers = observers.filter(|(broker, _)| self.is_observer(*broker));
        1 + self.followers.len() - observers.count()
    }

    /// The smallest log start offset of the leader and its live followers: before it no live
    /// replica has records. -1 while one has not told.
    #[must_use]
    pub fn low_watermark(&self, log_start_offset: i64, is_alive: impl Fn(BrokerId) -> bool) -> i64 {
        let alive = self
            .followers
            .iter()
            .filter(|(broker, _)| is_alive(*broker));
        alive.fold(log_start_offset, |low, (_, progress)| {
            low.min(progress.log_start_offset)
        })
    }

    /// The epoch in which this broker leads.
    #[must_use]
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch
    }

    /// The epoch since which it leads without a break. As long as this stays, what was appended is
    /// still in the log.
    #[must_use]
    pub fn led_since(&self) -> LeaderEpoch {
        self.led_since
    }

    /// The version of the partition's metadata.
    #[must_use]
    pub fn partition_epoch(&self) -> PartitionEpoch {
        self.partition_epoch
    }

    /// The log end offset when this leader epoch began. Below it lies everything that an earlier
    /// leader may have committed.
    #[must_use]
    pub fn epoch_start_offset(&self) -> i64 {
        self.epoch_start_offset
    }

    /// The in-sync replicas.
    #[must_use]
    pub fn isr(&self) -> &IsrState {
        &self.isr
    }

    /// All assigned replicas but this one, and how far each is.
    #[must_use]
    pub fn followers(&self) -> &[(BrokerId, ReplicaProgress)] {
        &self.followers
    }

    /// How far a follower is; `None` when it is not a replica.
    #[must_use]
    pub fn follower(&self, broker: BrokerId) -> Option<&ReplicaProgress> {
        let mut followers = self.followers.iter();
        let found = followers.find(|(follower, _)| *follower == broker)?;
        Some(&found.1)
    }

    /// Whether a replica is an observer.
    #[must_use]
    pub fn is_observer(&self, broker: BrokerId) -> bool {
        self.config.observers.contains(&broker)
    }

    fn follower_mut(&mut self, broker: BrokerId) -> Option<&mut ReplicaProgress> {
        let mut followers = self.followers.iter_mut();
        let found = followers.find(|(follower, _)| *follower == broker)?;
        Some(&mut found.1)
    }

    /// Takes up the assignment: those who stay keep their progress.
    fn assign(&mut self, leadership: &Leadership) {
        let followers = leadership.replicas.iter().copied();
        self.followers = followers
            .filter(|broker| *broker != self.local_broker)
            .map(|broker| {
                let known = self.follower(broker).copied();
                (broker, known.unwrap_or(ReplicaProgress::UNKNOWN))
            })
            .collect();
    }

    fn begin_epoch(&mut self, was_leader: bool, log: LogOffsets, moment: &Moment<'_>) {
        for (broker, progress) in &mut self.followers {
            let in_isr = self.isr.committed().contains(broker);
            progress.on_new_leader_epoch(was_leader, in_isr, log.log_end_offset, moment.now_ms);
        }
    }

    /// Whether a follower is about to join the in-sync replicas, so that the high watermark waits
    /// for it, or may be proposed.
    fn is_isr_eligible(
        &self,
        broker: BrokerId,
        progress: &ReplicaProgress,
        moment: &Moment<'_>,
    ) -> bool {
        !self.is_observer(broker) && progress.is_isr_eligible(moment.brokers.standing(broker))
    }

    fn next_high_watermark(&self, log: LogOffsets, moment: &Moment<'_>) -> Option<i64> {
        let input = HighWatermarkInput {
            high_watermark: log.high_watermark,
            log_end_offset: log.log_end_offset,
            committed_isr: self.isr.committed().len(),
            effective_min_isr: self.effective_min_isr(),
        };
        let followers = self.followers.iter().map(|(broker, progress)| {
            let is_waited_for = || {
                self.isr.is_maximal_member(*broker)
                    || (progress.is_caught_up(log.log_end_offset, moment)
                        && self.is_isr_eligible(*broker, progress, moment))
            };
            (progress.log_end_offset, is_waited_for)
        });
        next_high_watermark(input, followers)
    }

    /// Proposes that a follower joins, if it has everything that is or may be committed and its
    /// broker is fit for it.
    ///
    /// Reaching the high watermark is not enough: a new leader's may be behind what was committed
    /// before. What counts is the start of its epoch.
    fn maybe_expand_isr(
        &mut self,
        candidate: BrokerId,
        log: LogOffsets,
        moment: &Moment<'_>,
    ) -> Option<IsrProposal> {
        if self.isr.pending().is_some() || self.isr.committed().contains(&candidate) {
            return None;
        }
        let progress = self.follower(candidate)?;
        let has_all = progress.log_end_offset >= log.high_watermark
            && progress.log_end_offset >= self.epoch_start_offset;
        if !has_all || !self.is_isr_eligible(candidate, progress, moment) {
            return None;
        }
        let mut isr = self.isr.committed().to_vec();
        isr.push(candidate);
        let proposal = self.propose(isr, moment);
        self.isr.expand(candidate, proposal.clone());
        Some(proposal)
    }

    fn propose(&mut self, isr: Vec<BrokerId>, moment: &Moment<'_>) -> IsrProposal {
        self.last_proposal += 1;
        let broker_epoch = |broker: BrokerId| -> Option<BrokerEpoch> {
            if broker == self.local_broker {
                Some(moment.brokers.standing(broker)?.broker_epoch)
            } else {
                self.follower(broker)?.broker_epoch
            }
        };
        let members = isr.into_iter().map(|broker| IsrMember {
            broker,
            broker_epoch: broker_epoch(broker).unwrap_or(UNSPECIFIED_BROKER_EPOCH),
        });
        IsrProposal {
            id: IsrProposalId(self.last_proposal),
            leader_epoch: self.leader_epoch,
            partition_epoch: self.partition_epoch,
            isr: members.collect(),
        }
    }
}

#[cfg(test)]
mod tests;
