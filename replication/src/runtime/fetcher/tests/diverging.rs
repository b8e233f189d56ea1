//! Logs that are no prefix of the leader's.

use super::*;

/// Appends to a partition as a follower, whoever leads: the log is then what these batches make.
fn write(fixture: &Fixture, batches: &[(i64, i32, usize)]) {
    let last_epoch = batches.last().expect("some").1;
    fixture.become_as(leadership(Some(B3), last_epoch, last_epoch, ALL));
    for (base_offset, epoch, records) in batches {
        let sent = FetchPosition {
            fetch_offset: *base_offset,
            leader_epoch: LeaderEpoch(last_epoch),
            last_fetched_epoch: None,
        };
        let records = batch(*base_offset, *epoch, *records);
        let appended = fixture
            .partition
            .append_as_follower(sent, &records, 0, 0, NOW_MS);
        assert!(appended.is_ok());
    }
}

/// The epochs of a log with where each begins, by its batches.
fn epochs(fixture: &Fixture) -> Vec<(i32, i64)> {
    let log = fixture.partition.log();
    let ends = (0..10).filter_map(|epoch| {
        let (found, end) = log.end_offset_for_epoch(LeaderEpoch(epoch))?;
        (found.0 == epoch && log.epoch_for_offset(end - 1) == Some(found)).then_some((epoch, end))
    });
    ends.collect()
}

#[tokio::test(start_paused = true)]
async fn three_epochs_diverge_and_two_cuts_make_the_logs_equal() {
    let pair = Pair::new();
    write(&pair.leading, &[(0, 0, 5), (5, 0, 2), (7, 2, 5)]);
    write(
        &pair.following,
        &[(0, 0, 5), (5, 1, 5), (10, 3, 5), (15, 4, 5)],
    );
    pair.elect(5, ALL);
    pair.leading.append(9, Acks::Leader).expect("appended");
    pair.follow(5);
    pair.until(|| pair.following.log_end_offset() == 21).await;
    assert_eq!(epochs(&pair.following), epochs(&pair.leading));
    let requests = pair.leader.requests.lock();
    let positions: Vec<_> = requests
        .iter()
        .flat_map(|request| &request.partitions)
        .map(|wanted| {
            let epoch = wanted.position.last_fetched_epoch;
            (wanted.position.fetch_offset, epoch.map(|epoch| epoch.0))
        })
        .take(3)
        .collect();
    assert_eq!(positions, [(20, Some(4)), (10, Some(1)), (5, Some(0))]);
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_is_ahead_is_cut_to_the_leaders_end() {
    let pair = Pair::new();
    write(&pair.leading, &[(0, 1, 2)]);
    write(&pair.following, &[(0, 1, 2), (2, 1, 2)]);
    pair.elect(1, ALL);
    pair.follow(1);
    pair.catch_up().await;
    pair.assert_same_logs();
}

#[tokio::test(start_paused = true)]
async fn an_epoch_that_wrote_nothing_disappears() {
    let pair = Pair::new();
    write(&pair.leading, &[(0, 2, 5)]);
    write(&pair.following, &[(0, 2, 5)]);
    pair.following.become_as(leadership(Some(B1), 3, 3, ALL));
    let log = pair.following.partition.log();
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch(3)));
    pair.elect(4, ALL);
    pair.follow(4);
    pair.until(|| log.latest_epoch() == Some(LeaderEpoch(2)))
        .await;
    pair.leading.append(2, Acks::Leader).expect("appended");
    pair.catch_up().await;
    assert_eq!(
        log.end_offset_for_epoch(LeaderEpoch(3)),
        Some((LeaderEpoch(2), 5))
    );
}

#[tokio::test(start_paused = true)]
async fn a_follower_below_the_leaders_start_begins_anew_there() {
    let pair = Pair::new();
    write(&pair.following, &[(0, 0, 3)]);
    pair.elect(1, &[B2]);
    pair.leading.append(10, Acks::Leader).expect("appended");
    pair.leading.append(5, Acks::Leader).expect("appended");
    pair.leading.partition.delete_records(12).expect("deleted");
    pair.follow(1);
    pair.catch_up().await;
    let log = pair.following.partition.log();
    // Batch [10, 15) holds the leader's start, and is there as a whole.
    pair.until(|| log.log_start_offset() == 12).await;
    assert_eq!(log.log_end_offset(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_longer_log_without_epochs_in_common_is_cut_to_the_leaders_end() {
    let pair = Pair::new();
    write(&pair.following, &[(0, 0, 2), (2, 0, 6)]);
    pair.elect(1, ALL);
    pair.leading.append(2, Acks::Leader).expect("appended");
    pair.answer_next(Err(LeaderError::OffsetOutOfRange));
    pair.follow(1);
    pair.until(|| pair.following.log_end_offset() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn an_offset_within_the_leaders_log_is_judged_by_its_epoch() {
    let pair = Pair::new();
    write(&pair.leading, &[(0, 0, 2), (2, 1, 6)]);
    write(&pair.following, &[(0, 0, 2), (2, 0, 2)]);
    pair.elect(2, ALL);
    pair.answer_next(Err(LeaderError::OffsetOutOfRange));
    pair.follow(2);
    pair.catch_up().await;
    pair.assert_same_logs();
}

#[tokio::test(start_paused = true)]
async fn a_high_watermark_beside_a_divergence_is_not_taken() {
    let pair = Pair::new();
    write(&pair.leading, &[(0, 0, 6), (6, 1, 4)]);
    write(&pair.following, &[(0, 0, 6), (6, 0, 4)]);
    pair.elect(2, ALL);
    pair.answer_next(Ok(FetchedRecords {
        high_watermark: 9,
        log_start_offset: 5,
        diverging_epoch: Some(EpochEnd {
            epoch: LeaderEpoch(0),
            end_offset: 6,
        }),
        records: Bytes::new(),
    }));
    pair.answer_next(Err(LeaderError::NotLeaderOrFollower));
    pair.follow(2);
    pair.until(|| pair.following.log_end_offset() == 6).await;
    assert_eq!(pair.following.high_watermark(), 0);
    let log = pair.following.partition.log();
    assert_eq!(log.log_start_offset(), 0);
}
