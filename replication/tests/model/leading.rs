//! A broker that leads: it asks the product's `LeaderState` and carries out what that decides.

use std::sync::Arc;

use highwater_replication::cluster::ClusterImage;
use highwater_replication::state::alter_partition::{
    AlterPartitionError, AlteredPartition, ErrorAction,
};
use highwater_replication::state::fencing::check_leader_epoch;
use highwater_replication::state::fetch_position::{PositionVerdict, judge_position};
use highwater_replication::state::follower::{FetchAnswer, FetchPosition, LeaderError};
use highwater_replication::state::high_watermark::{HighWatermarkInput, next_high_watermark};
use highwater_replication::state::isr::IsrProposal;
use highwater_replication::state::leader::{LeaderEffects, LeaderState};
use highwater_replication::state::replica_progress::FollowerFetch;
use highwater_replication::state::truncation::{EpochEnd, FollowerLog};
use highwater_storage::{BrokerId, LeaderEpoch};

use super::around::Around;
use super::broker::Broker;
use super::errors::{fence_error, refusal_error};
use super::message::{Body, Channel, LogEnd, Node, Purpose};
use super::rules::Rule;
use super::setup::join;

/// Calls a method of the leader's state with everything it looks at. Gives `None` when the broker does not lead.
macro_rules! ask_leader {
    ($broker:expr, $around:expr, |$state:ident, $log:ident, $moment:ident| $call:expr) => {{
        let now_ms = $broker.clock.read($around.now_ms);
        let $log = highwater_replication::state::truncation::FollowerLog::offsets(&$broker.log);
        match &mut $broker.run {
            Some(run) => match (&run.image, run.replica.as_leader_mut()) {
                (Some(image), Some($state)) => {
                    let directory = $around.directory(image);
                    let $moment = &highwater_replication::state::leadership::Moment {
                        now_ms,
                        replica_lag_time_max_ms: $around.setup.replica_lag_time_max_ms,
                        brokers: &directory,
                    };
                    Some($call)
                }
                _ => None,
            },
            None => None,
        }
    }};
}
pub(super) use ask_leader;

impl Broker {
    /// The leader's state, if it leads.
    pub(crate) fn leading(&self) -> Option<&LeaderState> {
        self.run.as_ref()?.replica.as_leader()
    }

    /// Carries out what the leader's state decided.
    pub(crate) fn carry_out(&mut self, effects: LeaderEffects, around: &mut Around<'_>) {
        let id = self.id;
        if let Some((epoch, offset)) = effects.epoch_start {
            self.log.assign_epoch_start(epoch, offset);
        }
        self.move_high_watermark(effects.high_watermark, around);
        if let Some(proposal) = effects.proposal {
            around.notes.add(|| {
                let members = join(proposal.isr.iter().map(|member| member.broker));
                format!(
                    "{id}: proposes the ISR {members} (leader epoch {}, partition epoch {})",
                    proposal.leader_epoch, proposal.partition_epoch
                )
            });
            if let Some(run) = &mut self.run {
                run.proposal = Some(proposal);
            }
        }
        self.look_at_parked(around);
    }

    /// Moves the leader's high watermark to where its state says, or further where a rule is off.
    pub(super) fn move_high_watermark(&mut self, next: Option<i64>, around: &mut Around<'_>) {
        let Some(leader) = self.leading() else { return };
        let leader_epoch = leader.leader_epoch();
        let from = self.log.high_watermark();
        let Some(to) = next.max(self.careless_high_watermark(leader, around)) else {
            return;
        };
        let id = self.id;
        around
            .notes
            .add(|| format!("{id}: high watermark {from} -> {to}"));
        self.log.set_high_watermark(to);
        around
            .history
            .on_leader_high_watermark(id, leader_epoch, &self.log, from);
    }

    /// The next high watermark by a rule that forgets pending changes of the ISR.
    fn careless_high_watermark(&self, leader: &LeaderState, around: &Around<'_>) -> Option<i64> {
        let isr = leader.isr();
        let counts: &dyn Fn(BrokerId) -> bool = match around.off? {
            Rule::PendingExpansion => &|broker| isr.committed().contains(&broker),
            Rule::PendingShrink => {
                &|broker| isr.is_maximal_member(broker) && !isr.leaving().contains(&broker)
            }
            _ => return None,
        };
        let input = HighWatermarkInput {
            high_watermark: self.log.high_watermark(),
            log_end_offset: self.log.end_offset(),
            committed_isr: isr.committed().len(),
            effective_min_isr: leader.effective_min_isr(),
        };
        let followers = leader.followers().iter();
        let followers =
            followers.map(|(broker, progress)| (progress.log_end_offset, || counts(*broker)));
        next_high_watermark(input, followers)
    }

    /// A request of a follower arrived.
    pub(crate) fn on_follower_request(
        &mut self,
        channel: Channel,
        body: Body,
        around: &mut Around<'_>,
    ) {
        let reply = match body {
            Body::Fetch { position, fetch } => self.on_fetch(position, fetch, around),
            Body::ListOffset { leader_epoch, end } => Body::ListedOffset {
                leader_epoch,
                end,
                offset: self.check_leads(leader_epoch, around).map(|()| match end {
                    LogEnd::Start => self.log.start_offset(),
                    LogEnd::End => self.log.end_offset(),
                }),
            },
            Body::EpochEnd {
                leader_epoch,
                epoch,
            } => Body::EpochEnded {
                leader_epoch,
                end: self.check_leads(leader_epoch, around).map(|()| {
                    let end = self.log.end_offset_for_epoch(epoch);
                    end.map(|(epoch, end_offset)| EpochEnd { epoch, end_offset })
                }),
            },
            _ => return,
        };
        around.network.send(channel.back(), reply);
    }

    fn on_fetch(
        &mut self,
        sent: FetchPosition,
        fetch: FollowerFetch,
        around: &mut Around<'_>,
    ) -> Body {
        let leader_high_watermark = self.log.high_watermark();
        let log_start_offset = self.log.start_offset();
        let mut records = Vec::new();
        let answer = match self.judge_fetch(sent, fetch, around) {
            Ok(None) => {
                records = self.log.read(
                    sent.fetch_offset,
                    self.log.end_offset(),
                    around.setup.fetch_records,
                );
                FetchAnswer::Records {
                    high_watermark: leader_high_watermark,
                    log_start_offset,
                }
            }
            Ok(Some(diverging)) => FetchAnswer::Diverging(diverging),
            Err(error) => FetchAnswer::Error(error),
        };
        Body::Fetched {
            sent,
            answer,
            leader_high_watermark,
            records,
        }
    }

    /// The checks of a follower's fetch in Kafka's order; the first three under one lock with what the leader learns.
    fn judge_fetch(
        &mut self,
        sent: FetchPosition,
        fetch: FollowerFetch,
        around: &mut Around<'_>,
    ) -> Result<Option<EpochEnd>, LeaderError> {
        let id = self.id;
        let replica = fetch.replica;
        self.check_leads(sent.leader_epoch, around)?;
        if self
            .leading()
            .is_none_or(|leader| leader.follower(replica).is_none())
        {
            return Err(LeaderError::UnknownLeaderEpoch);
        }
        match judge_position(fetch.fetch_offset, sent.last_fetched_epoch, &self.log) {
            PositionVerdict::Prefix => {}
            PositionVerdict::Diverging(_)
                if around.is_off(Rule::Divergence)
                    && fetch.fetch_offset <= self.log.end_offset() => {}
            PositionVerdict::Diverging(end) => return Ok(Some(end)),
            PositionVerdict::OutOfRange => return Err(LeaderError::OffsetOutOfRange),
        }
        let read_log_end_offset = self.log.end_offset();
        let learned = ask_leader!(self, around, |state, log, moment| {
            let checked_in = match around.is_off(Rule::FetchEpoch) {
                true => state.leader_epoch(),
                false => sent.leader_epoch,
            };
            state.on_follower_fetch(&fetch, checked_in, read_log_end_offset, log, moment)
        });
        match learned {
            Some(Ok(effects)) => self.carry_out(effects, around),
            Some(Err(refusal)) => {
                around
                    .notes
                    .add(|| format!("{id}: takes no note of the fetch: {refusal}"));
                return Err(refusal_error(refusal));
            }
            None => return Err(LeaderError::NotLeaderOrFollower),
        }
        Ok(None)
    }

    /// Whether it leads, and in this leader epoch.
    fn check_leads(
        &self,
        leader_epoch: LeaderEpoch,
        around: &Around<'_>,
    ) -> Result<(), LeaderError> {
        let run = self.run.as_ref().ok_or(LeaderError::NotLeaderOrFollower)?;
        if !self.has_log || run.image.is_none() {
            return Err(LeaderError::UnknownTopicOrPartition);
        }
        if !around.is_off(Rule::FetchEpoch) {
            check_leader_epoch(run.replica.leader_epoch(), Some(leader_epoch))
                .map_err(fence_error)?;
        }
        match run.replica.as_leader() {
            Some(_) => Ok(()),
            None => Err(LeaderError::NotLeaderOrFollower),
        }
    }

    /// The lag timer.
    pub(crate) fn lag_check(&mut self, around: &mut Around<'_>) -> bool {
        let effects = ask_leader!(self, around, |state, log, moment| {
            state.on_lag_check(log, moment)
        });
        let leads = effects.is_some();
        if let Some(effects) = effects {
            self.carry_out(effects, around);
        }
        leads
    }

    /// Sends the proposal that waits, if none is on its way.
    pub(crate) fn send_proposal(&mut self, to: Node, around: &mut Around<'_>) -> bool {
        let pending = self.pending_proposal().cloned();
        let Some(run) = &mut self.run else {
            return false;
        };
        run.proposal = run
            .proposal
            .take()
            .filter(|proposal| Some(proposal) == pending.as_ref());
        let (Some(broker_epoch), Some(proposal), None) = (run.epoch, &run.proposal, run.alter)
        else {
            return false;
        };
        let channel = around
            .network
            .connect(Purpose::Alter, Node::Broker(self.id), to);
        run.alter = Some(channel);
        let body = Body::Alter {
            broker_epoch,
            proposal: proposal.clone(),
        };
        around.network.send(channel, body);
        true
    }

    /// The controller answered AlterPartition.
    pub(crate) fn on_altered(
        &mut self,
        channel: Channel,
        proposal: &IsrProposal,
        result: Option<Result<AlteredPartition, AlterPartitionError>>,
        around: &mut Around<'_>,
    ) {
        let broker = self.id;
        let Some(run) = &mut self.run else { return };
        if run.alter == Some(channel.back()) {
            run.alter = None;
        }
        let Some(mut result) = result else {
            return;
        };
        if let Err(error) = result
            && error.action() == ErrorAction::AwaitMetadata
            && around.is_off(Rule::AmbiguousProposal)
        {
            result = Err(AlterPartitionError::OperationNotAttempted);
        }
        let answered = ask_leader!(self, around, |state, log, moment| {
            state.on_alter_partition_reply(proposal, result, log, moment)
        });
        let Some((outcome, effects)) = answered else {
            return;
        };
        around
            .notes
            .add(|| format!("{broker}: its proposal is {outcome:?}"));
        if let Some(run) = &mut self.run {
            // It is in the effects if it is to be sent again.
            run.proposal = run.proposal.take().filter(|waiting| waiting != proposal);
        }
        self.carry_out(effects, around);
    }

    /// The proposal that is pending in the leader's state.
    pub(crate) fn pending_proposal(&self) -> Option<&IsrProposal> {
        self.leading()?.isr().pending()
    }

    /// The metadata that it acts on.
    pub(crate) fn image(&self) -> Option<&Arc<ClusterImage>> {
        self.run.as_ref()?.image.as_ref()
    }
}
