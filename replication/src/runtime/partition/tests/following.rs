//! A partition that follows.

use super::*;
use crate::state::follower::FetchPosition;

const EPOCH: LeaderEpoch = LeaderEpoch(1);

/// Follows broker 2 in epoch 1.
fn following() -> Fixture {
    let fixture = Fixture::new(1);
    let change = fixture.become_as(leadership(Some(B2), 1, 1, ALL));
    let restart = FetcherChange::Restart {
        leader: Some(B2),
        leader_epoch: EPOCH,
    };
    assert_eq!(change, restart);
    fixture
}

fn at(fetch_offset: i64) -> FetchPosition {
    FetchPosition {
        fetch_offset,
        leader_epoch: EPOCH,
        last_fetched_epoch: None,
    }
}

fn append(
    fixture: &Fixture,
    position: FetchPosition,
    records: &bytes::Bytes,
    (high_watermark, log_start_offset): (i64, i64),
) -> Result<FollowerAppend, FollowError> {
    fixture.partition.append_as_follower(
        position,
        records,
        high_watermark,
        log_start_offset,
        NOW_MS,
    )
}

fn joined(batches: &[bytes::Bytes]) -> bytes::Bytes {
    batches.concat().into()
}

#[test]
fn what_the_leader_has_is_appended_as_it_is() {
    let fixture = following();
    let records = joined(&[batch(0, 0, 3), batch(3, 1, 2)]);
    let appended = append(&fixture, at(0), &records, (4, 0)).expect("appended");
    assert_eq!(
        appended,
        FollowerAppend {
            log_end_offset: 5,
            last_epoch: Some(LeaderEpoch(1)),
            size_bytes: records.len(),
        }
    );
    let log = fixture.partition.log();
    assert_eq!(fixture.high_watermark(), 4);
    let read = log.read(0, 1 << 20, 5, true).expect("read");
    assert_eq!(read.records, records, "byte for byte");
    let end = log.end_offset_for_epoch(LeaderEpoch(0));
    assert_eq!(end, Some((LeaderEpoch(0), 3)));
}

#[test]
fn batches_of_an_epoch_after_the_fetch_are_left_out() {
    let fixture = following();
    let records = joined(&[batch(0, 1, 3), batch(3, 4, 2), batch(5, 1, 1)]);
    let appended = append(&fixture, at(0), &records, (9, 0)).expect("appended");
    assert_eq!(appended.log_end_offset, 3);
    assert_eq!(appended.last_epoch, Some(LeaderEpoch(1)));
    assert_eq!(fixture.high_watermark(), 3);
}

#[test]
fn the_high_watermark_is_the_leaders_even_when_it_is_lower() {
    let fixture = following();
    let nothing = bytes::Bytes::new();
    append(&fixture, at(0), &batch(0, 1, 5), (5, 0)).expect("appended");
    assert_eq!(fixture.high_watermark(), 5);
    append(&fixture, at(5), &nothing, (3, 0)).expect("taken over");
    assert_eq!(fixture.high_watermark(), 3);
}

#[test]
fn the_log_start_follows_the_leaders_up_to_the_high_watermark() {
    let fixture = following();
    let nothing = bytes::Bytes::new();
    append(&fixture, at(0), &batch(0, 1, 5), (2, 4)).expect("appended");
    let log = fixture.partition.log();
    assert_eq!(log.log_start_offset(), 0, "4 is not known to be committed");
    append(&fixture, at(5), &nothing, (5, 4)).expect("taken over");
    assert_eq!(log.log_start_offset(), 4);
}

#[test]
fn an_answer_to_another_offset_or_epoch_changes_nothing() {
    let fixture = following();
    append(&fixture, at(0), &batch(0, 1, 5), (0, 0)).expect("appended");
    let elsewhere = append(&fixture, at(3), &batch(3, 1, 5), (9, 0));
    assert!(matches!(elsewhere, Err(FollowError::Stale)));
    fixture.become_as(leadership(Some(B2), 2, 2, ALL));
    let earlier = append(&fixture, at(5), &batch(5, 1, 5), (9, 0));
    assert!(matches!(earlier, Err(FollowError::Stale)));
    let cut = fixture.partition.truncate_as_follower(EPOCH, 0);
    assert!(matches!(cut, Err(FollowError::Stale)));
    let anew = fixture.partition.restart_as_follower(EPOCH, 9);
    assert!(matches!(anew, Err(FollowError::Stale)));
    assert_eq!((fixture.log_end_offset(), fixture.high_watermark()), (5, 0));
}

#[test]
fn a_replica_that_has_become_leader_takes_nothing_from_others() {
    let fixture = following();
    fixture.become_as(leadership(Some(B1), 2, 2, ALL));
    let late = append(&fixture, at(0), &batch(0, 1, 5), (5, 0));
    assert!(matches!(late, Err(FollowError::Stale)));
    assert!(matches!(
        fixture.partition.start_following(LeaderEpoch(2)),
        Err(FollowError::Stale)
    ));
    assert_eq!(fixture.log_end_offset(), 0);
}

#[test]
fn a_damaged_batch_is_refused_and_the_log_stays() {
    let fixture = following();
    let mut damaged = batch(0, 1, 5).to_vec();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let refused = append(&fixture, at(0), &damaged.into(), (5, 0));
    assert!(matches!(refused, Err(FollowError::Corrupt(_))));
    assert_eq!((fixture.log_end_offset(), fixture.high_watermark()), (0, 0));
}

#[test]
fn an_empty_log_within_a_batch_begins_at_the_batch() {
    let fixture = following();
    fixture
        .partition
        .restart_as_follower(EPOCH, 5)
        .expect("anew");
    append(&fixture, at(5), &batch(3, 1, 4), (7, 5)).expect("appended");
    let log = fixture.partition.log();
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (5, 7));
}

#[test]
fn batches_that_do_not_follow_on_are_refused() {
    let fixture = following();
    append(&fixture, at(0), &batch(0, 1, 5), (0, 0)).expect("appended");
    let refused = append(&fixture, at(5), &batch(3, 1, 5), (0, 0));
    assert!(matches!(refused, Err(FollowError::Unexpected(_))));
    assert_eq!(fixture.log_end_offset(), 5);
}

#[test]
fn following_begins_at_the_log_end_with_the_latest_epoch() {
    let fixture = following();
    append(&fixture, at(0), &batch(0, 1, 5), (2, 0)).expect("appended");
    fixture.become_as(leadership(Some(B3), 4, 4, ALL));
    let state = fixture
        .partition
        .start_following(LeaderEpoch(4))
        .expect("follows");
    assert_eq!(
        state.position(),
        FetchPosition {
            fetch_offset: 5,
            leader_epoch: LeaderEpoch(4),
            last_fetched_epoch: Some(LeaderEpoch(1)),
        }
    );
}

#[test]
fn consumers_may_read_up_to_the_high_watermark_of_a_follower() {
    let fixture = following();
    let records = joined(&[batch(0, 1, 3), batch(3, 1, 2)]);
    append(&fixture, at(0), &records, (3, 0)).expect("appended");
    let read = |fetch_offset, epoch: Option<i32>| {
        fixture.partition.read(
            PartitionReadRequest {
                leader_only: false,
                current_leader_epoch: epoch.map(LeaderEpoch),
                ..read_request(fetch_offset)
            },
            "",
        )
    };
    let first = read(0, Some(1)).expect("read");
    assert_eq!(first.records_bytes(), batch(0, 1, 3).len());
    assert_eq!(read(4, None).expect("not committed").records_bytes(), 0);
    assert!(matches!(
        read(6, None),
        Err(PartitionError::OffsetOutOfRange { .. })
    ));
    assert!(matches!(read(0, Some(0)), Err(PartitionError::Fenced(_))));
    assert!(matches!(read(0, Some(2)), Err(PartitionError::Fenced(_))));
    assert!(matches!(
        fixture.partition.read(read_request(0), ""),
        Err(PartitionError::NotLeader { .. })
    ));
}

#[tokio::test]
async fn a_consumer_that_waits_at_a_follower_is_woken_by_its_high_watermark() {
    let fixture = following();
    append(&fixture, at(0), &batch(0, 1, 3), (0, 0)).expect("appended");
    let notify = Arc::new(Notify::new());
    let watch = fixture.partition.high_watermark_watch();
    let _registration = watch.register(1, Arc::clone(&notify));
    append(&fixture, at(3), &bytes::Bytes::new(), (3, 0)).expect("taken over");
    assert!(woken(&notify).await);
}

#[test]
fn a_replica_that_was_taken_away_serves_nothing() {
    let fixture = following();
    append(&fixture, at(0), &batch(0, 1, 3), (3, 0)).expect("appended");
    fixture.partition.resign();
    let read = fixture.partition.read(
        PartitionReadRequest {
            leader_only: false,
            ..read_request(0)
        },
        "",
    );
    assert!(matches!(read, Err(PartitionError::NotLeader { .. })));
    let late = append(&fixture, at(3), &batch(3, 1, 1), (3, 0));
    assert!(matches!(late, Err(FollowError::Stale)));
}

#[test]
fn a_follower_leads_from_the_end_of_its_log() {
    let fixture = following();
    append(&fixture, at(0), &batch(0, 1, 5), (3, 0)).expect("appended");
    fixture.become_as(leadership(Some(B1), 2, 2, ALL));
    let log = fixture.partition.log();
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch(2)));
    let end = log.end_offset_for_epoch(LeaderEpoch(1));
    assert_eq!(end, Some((LeaderEpoch(1), 5)));
    assert_eq!(
        fixture.high_watermark(),
        3,
        "until its followers have fetched"
    );
}
