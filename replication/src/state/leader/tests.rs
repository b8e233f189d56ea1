//! The numbers are those of the scenarios of the replication rules (A1 to A4).

use super::super::leadership::BrokerStanding;
use super::*;

const B1: BrokerId = BrokerId(1);
const B2: BrokerId = BrokerId(2);
const B3: BrokerId = BrokerId(3);
const LAG_MAX_MS: i64 = 10_000;

/// A leader on broker 1 with its log, a clock, and the brokers as the metadata has them.
struct Leading {
    state: LeaderState,
    log: LogOffsets,
    now_ms: i64,
    standings: Vec<(BrokerId, BrokerStanding)>,
}

fn active(broker_epoch: i64) -> BrokerStanding {
    BrokerStanding {
        broker_epoch: BrokerEpoch(broker_epoch),
        is_active: true,
    }
}

fn leadership(leader_epoch: i32, partition_epoch: i32, isr: &[BrokerId]) -> Leadership {
    Leadership {
        leader: Some(B1),
        leader_epoch: LeaderEpoch(leader_epoch),
        partition_epoch: PartitionEpoch(partition_epoch),
        replicas: vec![B1, B2, B3],
        isr: isr.to_vec(),
    }
}

fn offsets(high_watermark: i64, log_end_offset: i64) -> LogOffsets {
    LogOffsets {
        log_start_offset: 0,
        high_watermark,
        log_end_offset,
    }
}

fn all_active() -> Vec<(BrokerId, BrokerStanding)> {
    vec![(B1, active(10)), (B2, active(20)), (B3, active(30))]
}

macro_rules! with_moment {
    ($leading:expr, |$moment:ident| $body:expr) => {{
        let standings = $leading.standings.clone();
        let directory = move |broker: BrokerId| -> Option<BrokerStanding> {
            let found = standings.iter().find(|(known, _)| *known == broker)?;
            Some(found.1)
        };
        let $moment = Moment {
            now_ms: $leading.now_ms,
            replica_lag_time_max_ms: LAG_MAX_MS,
            brokers: &directory,
        };
        $body
    }};
}

impl Leading {
    fn new(isr: &[BrokerId], min_insync_replicas: usize, log: LogOffsets) -> Self {
        let mut leading = Self {
            state: LeaderState {
                local_broker: B1,
                led_since: LeaderEpoch(0),
                leader_epoch: LeaderEpoch(0),
                partition_epoch: PartitionEpoch(0),
                epoch_start_offset: 0,
                isr: IsrState::committed_as(Vec::new()),
                followers: Vec::new(),
                config: LeaderConfig::default(),
                last_proposal: 0,
            },
            log,
            now_ms: 1_000_000,
            standings: all_active(),
        };
        let config = LeaderConfig {
            min_insync_replicas,
            observers: Vec::new(),
        };
        let (state, effects) = with_moment!(leading, |moment| {
            LeaderState::on_become_leader(B1, &leadership(1, 1, isr), config, log, &moment)
        });
        leading.state = state;
        leading.carry_out(&effects);
        leading
    }

    fn carry_out(&mut self, effects: &LeaderEffects) {
        if let Some(high_watermark) = effects.high_watermark {
            assert!(high_watermark > self.log.high_watermark, "never goes back");
            assert!(high_watermark <= self.log.log_end_offset);
            self.log.high_watermark = high_watermark;
        }
    }

    fn append(&mut self, records: i64) {
        self.log.log_end_offset += records;
        let high_watermark = with_moment!(self, |moment| self.state.on_append(self.log, &moment));
        self.log.high_watermark = high_watermark.unwrap_or(self.log.high_watermark);
    }

    fn try_fetch(
        &mut self,
        replica: BrokerId,
        fetch_offset: i64,
        broker_epoch: i64,
    ) -> Result<LeaderEffects, FollowerFetchRefusal> {
        let fetch = FollowerFetch {
            replica,
            broker_epoch: BrokerEpoch(broker_epoch),
            fetch_offset,
            log_start_offset: 0,
        };
        let epoch = self.state.leader_epoch();
        let end = self.log.log_end_offset;
        let log = self.log;
        let effects = with_moment!(self, |moment| {
            self.state
                .on_follower_fetch(&fetch, epoch, end, log, &moment)
        });
        if let Ok(effects) = &effects {
            self.carry_out(effects);
        }
        effects
    }

    fn fetch(&mut self, replica: BrokerId, fetch_offset: i64) -> Option<IsrProposal> {
        let broker_epoch = i64::from(replica.0) * 10;
        self.try_fetch(replica, fetch_offset, broker_epoch)
            .expect("taken note of")
            .proposal
    }

    fn fetch_as(
        &mut self,
        replica: BrokerId,
        offset: i64,
        broker_epoch: i64,
    ) -> Option<IsrProposal> {
        self.try_fetch(replica, offset, broker_epoch)
            .expect("taken note of")
            .proposal
    }

    fn lag_check(&mut self) -> Option<IsrProposal> {
        let log = self.log;
        let effects = with_moment!(self, |moment| self.state.on_lag_check(log, &moment));
        self.carry_out(&effects);
        effects.proposal
    }

    fn told(&mut self, leader_epoch: i32, partition_epoch: i32, isr: &[BrokerId]) -> LeaderEffects {
        let log = self.log;
        let effects = with_moment!(self, |moment| {
            self.state.on_leadership(
                &leadership(leader_epoch, partition_epoch, isr),
                log,
                &moment,
            )
        });
        self.carry_out(&effects);
        effects
    }

    fn reply(
        &mut self,
        proposal: &IsrProposal,
        reply: Result<AlteredPartition, AlterPartitionError>,
    ) -> (ProposalOutcome, LeaderEffects) {
        let log = self.log;
        let (outcome, effects) = with_moment!(self, |moment| {
            self.state
                .on_alter_partition_reply(proposal, reply, log, &moment)
        });
        self.carry_out(&effects);
        (outcome, effects)
    }

    fn accept(&mut self, proposal: &IsrProposal) -> ProposalOutcome {
        self.reply(proposal, Ok(accepted(proposal))).0
    }

    fn high_watermark(&self) -> i64 {
        self.log.high_watermark
    }
}

fn accepted(proposal: &IsrProposal) -> AlteredPartition {
    AlteredPartition {
        leader: Some(B1),
        leader_epoch: proposal.leader_epoch,
        partition_epoch: PartitionEpoch(proposal.partition_epoch.0 + 1),
        isr: proposal.isr.iter().map(|member| member.broker).collect(),
    }
}

fn members(proposal: &IsrProposal) -> Vec<(i32, i64)> {
    let pair = |member: &IsrMember| (member.broker.0, member.broker_epoch.0);
    proposal.isr.iter().map(pair).collect()
}

const ALL: &[BrokerId] = &[B1, B2, B3];

#[test]
fn the_high_watermark_needs_two_fetches_of_every_in_sync_replica() {
    let mut leading = Leading::new(ALL, 2, offsets(0, 0));
    leading.append(1);
    for (replica, offset, high_watermark) in [(B2, 0, 0), (B3, 0, 0), (B2, 1, 0), (B3, 1, 1)] {
        leading.fetch(replica, offset);
        assert_eq!(leading.high_watermark(), high_watermark);
    }
}

#[test]
fn an_isr_of_one_commits_at_once() {
    let mut leading = Leading::new(&[B1], 1, offsets(0, 0));
    leading.append(3);
    assert_eq!(leading.high_watermark(), 3);
}

#[test]
fn a_caught_up_replica_outside_of_the_isr_is_waited_for() {
    // It joins with a proposal, so the case is that of a proposal that was refused.
    let mut leading = Leading::new(&[B1], 1, offsets(0, 5));
    let proposal = leading.fetch(B2, 5).expect("eligible");
    let _ = leading.reply(&proposal, Err(AlterPartitionError::IneligibleReplica));
    leading.append(3);
    assert_eq!(leading.high_watermark(), 5);
    leading.now_ms += LAG_MAX_MS + 1;
    let _ = leading.lag_check();
    assert_eq!(leading.high_watermark(), 8, "its lag has expired");
}

#[test]
fn a_fenced_or_stopping_replica_outside_of_the_isr_is_not_waited_for() {
    let mut leading = Leading::new(&[B1], 1, offsets(0, 5));
    leading.standings[1].1.is_active = false;
    assert_eq!(leading.fetch(B2, 5), None);
    leading.append(3);
    assert_eq!(leading.high_watermark(), 8);
}

#[test]
fn a_new_leader_waits_for_the_first_fetch_of_every_member() {
    let mut leading = Leading::new(&[B1, B3], 2, offsets(3, 5));
    assert_eq!(leading.high_watermark(), 3);
    leading.append(1);
    assert_eq!(leading.high_watermark(), 3);
    leading.fetch(B3, 5);
    assert_eq!(leading.high_watermark(), 5);
}

#[test]
fn the_high_watermark_goes_on_when_the_same_leader_is_elected_again() {
    let mut leading = Leading::new(ALL, 2, offsets(0, 4));
    leading.fetch(B2, 4);
    leading.fetch(B3, 4);
    assert_eq!(leading.high_watermark(), 4);
    leading.append(2);
    leading.fetch(B2, 6);
    let effects = leading.told(2, 2, &[B1, B2]);
    assert_eq!(effects.epoch_start, Some((LeaderEpoch(2), 6)));
    assert_eq!(leading.high_watermark(), 6, "B2 is known, B3 holds nothing");
}

#[test]
fn window_one_of_acks_all_counts_committed_members_only() {
    let mut leading = Leading::new(&[B1], 2, offsets(0, 0));
    assert!(!leading.state.admits_append(Acks::All));
    assert!(leading.state.admits_append(Acks::Leader));
    leading.append(1);
    assert_eq!(leading.high_watermark(), 0);
    let proposal = leading.fetch(B2, 1).expect("eligible");
    assert!(!leading.state.admits_append(Acks::All), "still pending");
    assert_eq!(leading.high_watermark(), 0);
    leading.accept(&proposal);
    assert!(leading.state.admits_append(Acks::All));
    assert_eq!(leading.high_watermark(), 1);
}

#[test]
fn window_two_of_acks_all_counts_the_maximal_isr() {
    let mut leading = Leading::new(&[B1, B2], 2, offsets(0, 0));
    leading.append(1);
    assert_eq!(leading.state.commit_status(0, 1), CommitStatus::Waiting);
    leading.fetch(B2, 1);
    let log = leading.high_watermark();
    assert_eq!(leading.state.commit_status(log, 1), CommitStatus::Committed);
    let _ = leading.told(1, 2, &[B1]);
    assert_eq!(
        leading.state.commit_status(log, 1),
        CommitStatus::NotEnoughReplicasAfterAppend
    );
    let _ = leading.fetch(B2, 1).expect("B2 joins again");
    assert_eq!(leading.state.commit_status(log, 1), CommitStatus::Committed);
}

#[test]
fn the_minimum_is_capped_by_the_replicas_that_can_be_in_sync() {
    let mut leading = Leading::new(ALL, 5, offsets(0, 0));
    assert_eq!(leading.state.effective_min_isr(), 3);
    let log = leading.log;
    let config = LeaderConfig {
        min_insync_replicas: 5,
        observers: vec![B3],
    };
    let _ = with_moment!(leading, |moment| {
        leading.state.on_config(config, log, &moment)
    });
    assert_eq!(leading.state.effective_min_isr(), 2);
}

#[test]
fn raising_the_minimum_freezes_the_high_watermark_and_lowering_it_lets_it_go() {
    let mut leading = Leading::new(&[B1, B2], 3, offsets(0, 0));
    leading.append(4);
    leading.fetch(B2, 4);
    assert_eq!(leading.high_watermark(), 0);
    let log = leading.log;
    let effects = with_moment!(leading, |moment| {
        leading
            .state
            .on_config(LeaderConfig::default(), log, &moment)
    });
    assert_eq!(effects.high_watermark, Some(4));
}

#[test]
fn a_member_leaves_by_time_and_not_by_count() {
    let mut leading = Leading::new(ALL, 2, offsets(0, 0));
    leading.append(1_000);
    leading.fetch(B3, 0);
    leading.now_ms += LAG_MAX_MS;
    leading.fetch(B2, 1_000);
    assert_eq!(leading.lag_check(), None, "not later than the limit");
    leading.now_ms += 1;
    let proposal = leading.lag_check().expect("B3 lags");
    assert_eq!(members(&proposal), [(1, 10), (2, 20)]);
    assert_eq!(leading.state.isr().leaving(), [B3]);
    assert_eq!(leading.lag_check(), None, "one change at a time");
}

#[test]
fn a_follower_that_is_always_one_batch_behind_stays() {
    let mut leading = Leading::new(&[B1, B2], 1, offsets(0, 0));
    let mut reached = 0;
    for _ in 0..100 {
        leading.append(10);
        leading.fetch(B2, reached);
        reached = leading.log.log_end_offset;
        leading.append(10);
        leading.now_ms += LAG_MAX_MS / 2;
        assert_eq!(leading.lag_check(), None);
    }
}

#[test]
fn a_silent_follower_of_an_idle_partition_stays() {
    let mut leading = Leading::new(&[B1, B2], 1, offsets(0, 5));
    leading.fetch(B2, 5);
    leading.now_ms += 3_600_000;
    assert_eq!(leading.lag_check(), None);
}

#[test]
fn the_leader_never_leaves_by_itself() {
    let mut leading = Leading::new(&[B1], 1, offsets(0, 5));
    leading.now_ms += 3_600_000;
    assert_eq!(leading.lag_check(), None);
}

#[test]
fn while_a_shrink_is_pending_the_old_set_holds_the_high_watermark() {
    let mut leading = Leading::new(ALL, 2, offsets(0, 0));
    leading.append(10);
    leading.now_ms += LAG_MAX_MS + 1;
    leading.fetch(B2, 10);
    let proposal = leading.lag_check().expect("B3 lags");
    assert_eq!(leading.high_watermark(), 0);
    leading.append(1);
    leading.fetch(B2, 11);
    assert_eq!(leading.high_watermark(), 0);
    assert_eq!(leading.accept(&proposal), ProposalOutcome::Committed);
    assert_eq!(leading.high_watermark(), 11);
    assert_eq!(leading.state.isr().committed(), [B1, B2]);
}

#[test]
fn while_an_expansion_is_pending_the_new_set_holds_the_high_watermark() {
    let mut leading = Leading::new(&[B1, B2], 2, offsets(0, 7));
    leading.fetch(B2, 7);
    let proposal = leading.fetch(B3, 7).expect("eligible");
    leading.append(3);
    leading.fetch(B2, 10);
    assert_eq!(leading.high_watermark(), 7);
    // Even when it no longer counts as caught up: it may be a member by now.
    leading.now_ms += LAG_MAX_MS + 1;
    leading.standings[2].1.is_active = false;
    leading.append(1);
    leading.fetch(B2, 11);
    assert_eq!(leading.high_watermark(), 7);
    let refused = Err(AlterPartitionError::IneligibleReplica);
    let (outcome, _) = leading.reply(&proposal, refused);
    assert_eq!(outcome, ProposalOutcome::RolledBack);
    assert_eq!(leading.high_watermark(), 11);
}

#[test]
fn a_candidate_must_have_reached_the_start_of_the_leader_epoch() {
    let mut leading = Leading::new(&[B1, B2], 2, offsets(3, 6));
    assert_eq!(leading.fetch(B3, 4), None, "4 is past the stale watermark");
    assert!(leading.fetch(B3, 6).is_some());
}

#[test]
fn a_candidate_must_have_reached_the_high_watermark() {
    let mut leading = Leading::new(&[B1], 1, offsets(0, 0));
    leading.append(9);
    assert_eq!(leading.high_watermark(), 9);
    assert_eq!(leading.fetch(B3, 8), None);
    assert!(leading.fetch(B3, 9).is_some());
}

#[test]
fn one_change_is_proposed_after_the_other() {
    let mut leading = Leading::new(&[B1], 1, offsets(0, 5));
    let first = leading.fetch(B2, 5).expect("eligible");
    assert_eq!(members(&first), [(1, 10), (2, 20)]);
    assert_eq!(leading.fetch(B3, 5), None);
    leading.accept(&first);
    let second = leading.fetch(B3, 5).expect("eligible");
    assert_eq!(members(&second), [(1, 10), (2, 20), (3, 30)]);
    assert_eq!(second.partition_epoch, PartitionEpoch(2));
    assert_ne!(first.id, second.id);
}

#[test]
fn the_controllers_errors_roll_back_wait_or_are_tried_again() {
    use AlterPartitionError as E;
    use ProposalOutcome::{AwaitingMetadata, Retry, RolledBack};
    for (error, expected) in [
        (E::OperationNotAttempted, RolledBack),
        (E::IneligibleReplica, RolledBack),
        (E::FencedLeaderEpoch, AwaitingMetadata),
        (E::InvalidUpdateVersion, AwaitingMetadata),
        (E::UnknownTopicOrPartition, AwaitingMetadata),
        (E::UnknownTopicId, AwaitingMetadata),
        (E::InvalidRequest, AwaitingMetadata),
        (E::NewLeaderElected, AwaitingMetadata),
        (E::Other(41), Retry),
    ] {
        let mut leading = Leading::new(&[B1, B2], 2, offsets(0, 5));
        leading.fetch(B2, 5);
        let proposal = leading.fetch(B3, 5).expect("eligible");
        leading.append(1);
        leading.fetch(B2, 6);
        let (outcome, effects) = leading.reply(&proposal, Err(error));
        assert_eq!(outcome, expected, "{error}");
        let resent = (expected == Retry).then(|| proposal.clone());
        assert_eq!(effects.proposal, resent, "{error}");
        let still_pending = expected != RolledBack;
        let pending = leading.state.isr().pending();
        assert_eq!(pending, still_pending.then_some(&proposal), "{error}");
        assert_eq!(leading.high_watermark(), 5, "B3 is waited for either way");
        if still_pending {
            assert_eq!(leading.fetch(B3, 6), None, "{error}: nothing is sent");
            let _ = leading.told(1, 5, ALL);
            assert_eq!(leading.state.isr(), &IsrState::committed_as(ALL.to_vec()));
        }
    }
}

#[test]
fn a_late_answer_is_ignored() {
    let mut leading = Leading::new(&[B1], 1, offsets(0, 5));
    let first = leading.fetch(B2, 5).expect("eligible");
    let _ = leading.told(1, 2, &[B1]);
    let second = leading.fetch(B2, 5).expect("again");
    for reply in [
        Ok(accepted(&first)),
        Err(AlterPartitionError::IneligibleReplica),
    ] {
        let (outcome, effects) = leading.reply(&first, reply);
        assert_eq!(outcome, ProposalOutcome::Ignored);
        assert_eq!(effects, LeaderEffects::default());
    }
    assert_eq!(leading.state.isr().pending(), Some(&second));
}

#[test]
fn an_accepted_change_of_another_leader_epoch_is_ignored() {
    let mut leading = Leading::new(&[B1], 1, offsets(0, 5));
    let proposal = leading.fetch(B2, 5).expect("eligible");
    let moved = AlteredPartition {
        leader_epoch: LeaderEpoch(2),
        ..accepted(&proposal)
    };
    let (outcome, _) = leading.reply(&proposal, Ok(moved));
    assert_eq!(outcome, ProposalOutcome::Ignored);
    assert!(leading.state.isr().is_maximal_member(B2));
}

#[test]
fn metadata_that_comes_after_the_answer_is_not_taken_twice() {
    let mut leading = Leading::new(&[B1], 1, offsets(0, 5));
    let first = leading.fetch(B2, 5).expect("eligible");
    leading.accept(&first);
    assert_eq!(leading.state.partition_epoch(), PartitionEpoch(2));
    let second = leading.fetch(B3, 5).expect("eligible");
    let older = leading.told(1, 1, &[B1]);
    let same = leading.told(1, 2, &[B1, B2]);
    assert_eq!(older, LeaderEffects::default());
    assert_eq!(same, LeaderEffects::default());
    assert_eq!(
        leading.state.isr().pending(),
        Some(&second),
        "B3 may be a member by now"
    );
}

#[test]
fn a_lost_answer_ends_with_the_metadata() {
    let mut leading = Leading::new(&[B1], 1, offsets(0, 5));
    let proposal = leading.fetch(B2, 5).expect("eligible");
    let again = Err(AlterPartitionError::InvalidUpdateVersion);
    let (outcome, _) = leading.reply(&proposal, again);
    assert_eq!(outcome, ProposalOutcome::AwaitingMetadata);
    let _ = leading.told(1, 2, &[B1, B2]);
    assert_eq!(leading.state.isr().committed(), [B1, B2]);
    assert_eq!(leading.state.isr().pending(), None);
}

#[test]
fn a_fetch_of_an_older_run_changes_nothing() {
    let mut leading = Leading::new(ALL, 2, offsets(0, 5));
    leading.standings[2].1 = active(35);
    let before = leading.state.clone();
    let refused = leading.try_fetch(B3, 5, 30);
    assert!(matches!(
        refused,
        Err(FollowerFetchRefusal::StaleBrokerEpoch(_))
    ));
    assert_eq!(leading.state, before);
}

#[test]
fn a_run_that_the_leader_has_not_heard_of_is_taken_but_not_proposed() {
    let mut leading = Leading::new(&[B1], 1, offsets(0, 5));
    let effects = leading.try_fetch(B3, 5, 35).expect("taken note of");
    assert_eq!(effects.proposal, None, "the metadata knows run 30");
    leading.standings[2].1 = active(35);
    let proposal = leading.fetch_as(B3, 5, 35).expect("now it does");
    assert_eq!(members(&proposal), [(1, 10), (3, 35)]);
}

#[test]
fn a_fetch_that_was_checked_in_another_epoch_changes_nothing() {
    let mut leading = Leading::new(ALL, 2, offsets(0, 5));
    let _ = leading.told(2, 2, &[B1, B2]);
    let before = leading.state.clone();
    let fetch = FollowerFetch {
        replica: B3,
        broker_epoch: BrokerEpoch(30),
        fetch_offset: 5,
        log_start_offset: 0,
    };
    let log = leading.log;
    let refused = with_moment!(leading, |moment| {
        leading
            .state
            .on_follower_fetch(&fetch, LeaderEpoch(1), 5, log, &moment)
    });
    assert_eq!(
        refused,
        Err(FollowerFetchRefusal::AnotherLeaderEpoch {
            checked: LeaderEpoch(1),
            current: LeaderEpoch(2),
        })
    );
    assert_eq!(leading.state, before);
}

#[test]
fn a_broker_that_is_no_replica_is_refused() {
    let mut leading = Leading::new(ALL, 2, offsets(0, 5));
    let refused = leading.try_fetch(BrokerId(9), 5, 90);
    assert_eq!(refused, Err(FollowerFetchRefusal::NotAReplica(BrokerId(9))));
}

#[test]
fn a_replica_that_was_removed_and_added_again_starts_from_nothing() {
    let mut leading = Leading::new(&[B1, B2], 1, offsets(0, 5));
    let _ = leading.fetch(B3, 5).expect("eligible");
    let without = Leadership {
        replicas: vec![B1, B2],
        ..leadership(1, 2, &[B1, B2])
    };
    let log = leading.log;
    let _ = with_moment!(leading, |moment| {
        leading.state.on_leadership(&without, log, &moment)
    });
    assert_eq!(leading.state.follower(B3), None);
    let _ = leading.told(1, 3, &[B1, B2]);
    assert_eq!(leading.state.follower(B3), Some(&ReplicaProgress::UNKNOWN));
}

#[test]
fn an_observer_never_joins_is_not_waited_for_and_leaves() {
    let mut leading = Leading::new(ALL, 1, offsets(0, 5));
    let log = leading.log;
    let config = LeaderConfig {
        min_insync_replicas: 1,
        observers: vec![B3],
    };
    let _ = with_moment!(leading, |moment| {
        leading.state.on_config(config, log, &moment)
    });
    let proposal = leading.lag_check().expect("B3 is an observer now");
    assert_eq!(members(&proposal), [(1, 10), (2, -1)]);
    leading.accept(&proposal);
    assert_eq!(leading.fetch(B3, 5), None);
    leading.fetch(B2, 5);
    leading.append(3);
    leading.fetch(B2, 8);
    assert_eq!(leading.high_watermark(), 8);
}

#[test]
fn the_low_watermark_is_the_latest_start_that_all_live_replicas_have() {
    let mut leading = Leading::new(ALL, 1, offsets(0, 5));
    assert_eq!(leading.state.low_watermark(4, |_| true), -1);
    leading.fetch(B2, 5);
    leading.fetch(B3, 5);
    assert_eq!(leading.state.low_watermark(4, |_| true), 0);
    assert_eq!(leading.state.low_watermark(4, |_| false), 4);
}
