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

mod isr;

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
