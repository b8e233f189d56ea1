use super::*;
use crate::state::epochs::Epochs;

const EPOCH: LeaderEpoch = LeaderEpoch(7);

fn log() -> Epochs {
    Epochs(vec![(2, 0), (4, 10)], 12, 20)
}

fn follower() -> FollowerState {
    let (state, truncate_to) = FollowerState::on_become_follower(EPOCH, &log());
    assert_eq!(truncate_to, None);
    state
}

fn records() -> FetchAnswer {
    FetchAnswer::Records {
        high_watermark: 15,
        log_start_offset: 3,
    }
}

#[test]
fn a_follower_begins_at_its_log_end_with_its_latest_epoch() {
    assert_eq!(
        follower().position(),
        FetchPosition {
            fetch_offset: 20,
            leader_epoch: EPOCH,
            last_fetched_epoch: Some(LeaderEpoch(4)),
        }
    );
}

#[test]
fn a_log_without_epochs_is_cut_to_its_high_watermark_first() {
    let (state, truncate_to) =
        FollowerState::on_become_follower(EPOCH, &Epochs(Vec::new(), 12, 20));
    assert_eq!(truncate_to, Some(12));
    assert_eq!(state.position().fetch_offset, 12);
    assert_eq!(state.position().last_fetched_epoch, None);
    let (_, truncate_to) = FollowerState::on_become_follower(EPOCH, &Epochs(Vec::new(), 0, 0));
    assert_eq!(truncate_to, None, "an empty log has nothing to cut");
}

#[test]
fn records_are_appended_up_to_the_epoch_of_the_fetch() {
    let state = follower();
    let step = state.on_fetch_answer(state.position(), records(), &log(), 0);
    assert_eq!(
        step,
        FollowerStep::Append {
            up_to_epoch: EPOCH,
            high_watermark: 15,
            log_start_offset: 3,
        }
    );
}

#[test]
fn an_answer_to_another_offset_is_dropped() {
    let mut state = follower();
    let sent = state.position();
    state.on_log_changed(&Epochs(vec![(2, 0)], 10, 10));
    let step = state.on_fetch_answer(sent, records(), &log(), 0);
    assert_eq!(step, FollowerStep::Drop);
}

#[test]
fn an_answer_to_another_leader_epoch_is_dropped() {
    let state = follower();
    let sent = FetchPosition {
        leader_epoch: LeaderEpoch(6),
        ..state.position()
    };
    for answer in [
        records(),
        FetchAnswer::Error(LeaderError::FencedLeaderEpoch),
    ] {
        let step = state.on_fetch_answer(sent, answer, &log(), 0);
        assert_eq!(step, FollowerStep::Drop);
    }
}

#[test]
fn an_answer_from_before_the_log_came_back_to_the_offset_is_dropped() {
    let state = follower();
    let sent = FetchPosition {
        last_fetched_epoch: Some(LeaderEpoch(0)),
        ..state.position()
    };
    let diverging = FetchAnswer::Diverging(EpochEnd {
        epoch: LeaderEpoch(0),
        end_offset: 1,
    });
    let step = state.on_fetch_answer(sent, diverging, &log(), 0);
    assert_eq!(step, FollowerStep::Drop);
}

#[test]
fn an_answer_while_it_rests_or_has_failed_is_dropped() {
    let mut state = follower();
    state.on_back_off(100);
    assert!(!state.is_ready(99));
    assert_eq!(
        state.on_fetch_answer(state.position(), records(), &log(), 99),
        FollowerStep::Drop
    );
    assert!(state.is_ready(100));
    state.on_failed();
    assert!(!state.is_ready(1_000));
    state.on_back_off(0);
    state.on_log_changed(&log());
    assert!(!state.is_ready(1_000), "only a new leader epoch helps");
}

#[test]
fn a_diverging_answer_truncates_and_nothing_else() {
    let state = follower();
    let end = EpochEnd {
        epoch: LeaderEpoch(2),
        end_offset: 8,
    };
    let step = state.on_fetch_answer(state.position(), FetchAnswer::Diverging(end), &log(), 0);
    assert_eq!(
        step,
        FollowerStep::Truncate(Truncation {
            offset: 8,
            is_complete: true
        })
    );
}

#[test]
fn each_error_has_its_step() {
    let state = follower();
    for (error, step) in [
        (LeaderError::OffsetOutOfRange, FollowerStep::FindOffset),
        (LeaderError::FencedLeaderEpoch, FollowerStep::Fail),
        (LeaderError::UnknownLeaderEpoch, FollowerStep::BackOff),
        (LeaderError::NotLeaderOrFollower, FollowerStep::BackOff),
        (LeaderError::UnknownTopicOrPartition, FollowerStep::BackOff),
        (LeaderError::UnknownTopicId, FollowerStep::BackOff),
        (LeaderError::InconsistentTopicId, FollowerStep::BackOff),
        (LeaderError::Other(56), FollowerStep::BackOff),
    ] {
        let answer = FetchAnswer::Error(error);
        assert_eq!(
            state.on_fetch_answer(state.position(), answer, &log(), 0),
            step
        );
    }
}

#[test]
fn an_answer_without_records_keeps_the_last_fetched_epoch() {
    let mut state = follower();
    state.on_appended(20, None, 20);
    assert_eq!(state.position().last_fetched_epoch, Some(LeaderEpoch(4)));
    state.on_appended(25, Some(LeaderEpoch(7)), 20);
    assert_eq!(
        state.position(),
        FetchPosition {
            fetch_offset: 25,
            leader_epoch: EPOCH,
            last_fetched_epoch: Some(LeaderEpoch(7)),
        }
    );
}

#[test]
fn it_is_in_sync_when_it_has_what_is_committed() {
    let mut state = follower();
    assert!(!state.is_in_sync(), "not known before the first answer");
    state.on_appended(20, None, 21);
    assert!(!state.is_in_sync());
    assert_eq!(state.lag(), Some(1));
    state.on_appended(21, None, 21);
    assert!(state.is_in_sync());
}

#[test]
fn a_longer_log_is_cut_to_the_leaders_end() {
    let state = follower();
    assert_eq!(
        state.on_leader_log_end_offset(19, &log()),
        LogEndStep::TruncateTo(19)
    );
    assert_eq!(
        state.on_leader_log_end_offset(20, &log()),
        LogEndStep::FindLogStart
    );
}

#[test]
fn a_log_that_ends_below_the_leaders_start_begins_anew_there() {
    let state = follower();
    assert_eq!(
        state.on_leader_log_start_offset(21, &log()),
        LogStartStep::RestartAt(21)
    );
    assert_eq!(
        state.on_leader_log_start_offset(20, &log()),
        LogStartStep::FindEpochEnd(LeaderEpoch(4))
    );
    assert_eq!(
        state.on_leader_log_start_offset(0, &Epochs(Vec::new(), 0, 20)),
        LogStartStep::FetchAgain
    );
}

#[test]
fn the_high_watermark_follows_the_leader_within_the_log_even_down() {
    let log = LogOffsets {
        log_start_offset: 5,
        high_watermark: 12,
        log_end_offset: 20,
    };
    assert_eq!(follower_high_watermark(15, log), 15);
    assert_eq!(follower_high_watermark(9, log), 9);
    assert_eq!(follower_high_watermark(99, log), 20);
    assert_eq!(follower_high_watermark(-1, log), 5);
}

#[test]
fn the_log_start_follows_the_leader_up_to_the_high_watermark() {
    let log = LogOffsets {
        log_start_offset: 5,
        high_watermark: 12,
        log_end_offset: 20,
    };
    assert_eq!(follower_log_start_offset(9, log), Some(9));
    assert_eq!(follower_log_start_offset(12, log), Some(12));
    assert_eq!(follower_log_start_offset(13, log), None);
    assert_eq!(follower_log_start_offset(5, log), None);
    assert_eq!(follower_log_start_offset(4, log), None);
}
