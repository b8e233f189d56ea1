//! Who leaves and who joins, what the controller answers, and whose fetches count.

use super::*;

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
    let outcome = leading.accept(&proposal);
    assert_eq!(outcome, ProposalOutcome::AwaitingMetadata);
    assert_eq!(leading.high_watermark(), 0);
    let _ = leading.told(1, 2, &[B1, B2]);
    assert_eq!(leading.high_watermark(), 11);
    assert_eq!(leading.state.isr().committed(), [B1, B2]);
}

#[test]
fn a_member_that_left_is_waited_for_until_min_insync_replicas_is_known_to_be_enough() {
    let mut leading = Leading::new(ALL, 2, offsets(0, 0));
    leading.append(10);
    leading.now_ms += LAG_MAX_MS + 1;
    leading.fetch(B2, 10);
    let proposal = leading.lag_check().expect("B3 lags");
    // The controller knows that it is 3 by now, and keeps B3 as an eligible leader replica.
    leading.accept(&proposal);
    assert_eq!(leading.high_watermark(), 0);
    let (log, config) = (
        leading.log,
        LeaderConfig {
            min_insync_replicas: 3,
            observers: Vec::new(),
        },
    );
    let _ = with_moment!(leading, |moment| {
        leading.state.on_config(config, log, &moment)
    });
    let _ = leading.told(1, 2, &[B1, B2]);
    assert_eq!(leading.high_watermark(), 0);
    assert_eq!(leading.state.isr().pending(), None);
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
    let _ = leading.told(1, 2, &[B1, B2]);
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
