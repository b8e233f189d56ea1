//! The loop: sessions, errors, new partitions, and its end.

use super::*;
use crate::runtime::settings::ReplicaSettings;

#[tokio::test(start_paused = true)]
async fn a_follower_copies_the_log_and_is_acknowledged() {
    let pair = Pair::new();
    pair.elect(1, &[B1, B2]);
    pair.leading.append(3, Acks::Leader).expect("appended");
    pair.leading.append(2, Acks::Leader).expect("appended");
    pair.follow(1);
    pair.catch_up().await;
    pair.assert_same_logs();
    pair.until(|| pair.leading.high_watermark() == 5).await;
    // The follower hears of it with the answer to its next fetch, at the latest after the wait.
    pair.until(|| pair.following.high_watermark() == 5).await;
    let appended = pair.leading.append(1, Acks::All).expect("appended");
    let commit = appended.commit.expect("not committed yet");
    commit.committed().await.expect("replicated");
}

#[tokio::test(start_paused = true)]
async fn within_a_session_only_what_changed_is_said() {
    let pair = Pair::new();
    pair.elect(1, ALL);
    pair.leading.append(3, Acks::Leader).expect("appended");
    pair.follow(1);
    pair.catch_up().await;
    pair.until(|| pair.requests() >= 4).await;
    let requests = pair.leader.requests.lock();
    let said: Vec<_> = requests
        .iter()
        .map(|request| (request.session_epoch, request.partitions.len()))
        .collect();
    assert_eq!(said[..4], [(0, 1), (1, 1), (2, 0), (3, 0)]);
    assert_eq!(requests[1].session_id, 7);
    assert_eq!(requests[1].broker_epoch, BrokerEpoch(10));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_fetched_before_the_broker_is_registered() {
    let pair = Pair::new();
    let context = Arc::new(ReplicaContext::new(B1));
    let fetchers = ReplicaFetcherManager::new(
        Arc::clone(&context),
        Arc::new(Network(Arc::clone(&pair.leader))),
        Arc::new(|_, _| {}),
        Handle::current(),
    );
    pair.elect(1, ALL);
    let partition = Arc::clone(&pair.following.partition);
    fetchers.follow(partition, B2, LeaderEpoch(1));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(pair.requests(), 0);
    context.set_broker_epoch(BrokerEpoch(10));
    pair.until(|| pair.requests() > 0).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_connection_a_new_session_is_opened() {
    let pair = Pair::new();
    pair.elect(1, ALL);
    pair.follow(1);
    pair.until(|| pair.requests() == 2).await;
    let lost = LeaderEndpointError::Disconnected("reset by peer".to_owned());
    pair.leader.instead.lock().push_back(Err(lost));
    pair.until(|| pair.requests() >= 5).await;
    pair.leading.append(3, Acks::Leader).expect("appended");
    pair.catch_up().await;
    let requests = pair.leader.requests.lock();
    let lost_at = requests
        .iter()
        .rposition(|request| request.session_epoch == 0)
        .expect("a full fetch");
    assert!(lost_at > 0);
    assert_eq!(requests[lost_at].session_id, 7, "which is closed thereby");
    assert_eq!(requests[lost_at].partitions.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_the_leader_lost_is_not_mourned() {
    let pair = Pair::new();
    pair.elect(1, ALL);
    pair.follow(1);
    pair.until(|| pair.requests() == 1).await;
    let gone = LeaderEndpointError::Session("FETCH_SESSION_ID_NOT_FOUND".to_owned());
    pair.leader.instead.lock().push_back(Err(gone));
    pair.until(|| pair.requests() >= 3).await;
    let requests = pair.leader.requests.lock();
    assert_eq!((requests[2].session_id, requests[2].session_epoch), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_added_partition_does_not_wait_for_a_parked_fetch() {
    let pair = Pair::new();
    pair.following.context.configure(ReplicaSettings {
        replica_fetch_wait_max_ms: 3_600_000,
        ..ReplicaSettings::default()
    });
    pair.elect(1, ALL);
    pair.follow(1);
    pair.until(|| pair.requests() == 1).await;
    pair.leading.become_as(leadership(Some(B2), 2, 2, ALL));
    pair.following.become_as(leadership(Some(B2), 2, 2, ALL));
    let before = tokio::time::Instant::now();
    pair.follow(2);
    pair.until(|| pair.requests() == 2).await;
    assert!(before.elapsed() < Duration::from_millis(100));
    let epoch = pair.leader.requests.lock()[1].partitions[0].position;
    assert_eq!(epoch.leader_epoch, LeaderEpoch(2));
}

#[tokio::test(start_paused = true)]
async fn an_addition_gives_a_parked_fetch_up() {
    let pair = Pair::new();
    pair.following.context.configure(ReplicaSettings {
        replica_fetch_wait_max_ms: 3_600_000,
        ..ReplicaSettings::default()
    });
    pair.elect(1, ALL);
    pair.follow(1);
    pair.until(|| pair.requests() == 1).await;
    pair.following.become_as(leadership(Some(B2), 1, 2, ALL));
    // Another partition of the same leader: that it is the same one here does not matter.
    pair.follow(1);
    pair.until(|| pair.requests() == 2).await;
    assert_eq!(pair.leader.disconnects.load(Ordering::Relaxed), 1);
    let requests = pair.leader.requests.lock();
    assert_eq!(
        (requests[1].session_epoch, requests[1].partitions.len()),
        (-1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_asked_again_after_the_backoff() {
    for error in [LeaderError::NotLeaderOrFollower, LeaderError::Other(56)] {
        let pair = Pair::new();
        pair.elect(1, ALL);
        pair.leading.append(3, Acks::Leader).expect("appended");
        pair.answer_next(Err(error));
        pair.follow(1);
        tokio::time::sleep(Duration::from_millis(990)).await;
        assert_eq!(pair.requests(), 1, "{error}");
        pair.catch_up().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_fenced_follower_waits_for_the_next_leader_epoch() {
    let pair = Pair::new();
    pair.elect(1, ALL);
    pair.leading.become_as(leadership(Some(B2), 2, 2, ALL));
    pair.leading.append(3, Acks::Leader).expect("appended");
    pair.follow(1);
    pair.until(|| pair.fetchers.summary().failed_partitions == 1)
        .await;
    let asked = pair.requests();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(pair.requests(), asked);
    pair.following.become_as(leadership(Some(B2), 2, 2, ALL));
    pair.follow(2);
    pair.catch_up().await;
    assert_eq!(pair.fetchers.summary().failed_partitions, 0);
}

#[tokio::test(start_paused = true)]
async fn damaged_records_are_fetched_again() {
    let pair = Pair::new();
    pair.elect(1, ALL);
    pair.leading.append(3, Acks::Leader).expect("appended");
    let mut damaged = batch(0, 1, 3).to_vec();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    pair.answer_next(Ok(FetchedRecords {
        high_watermark: 3,
        log_start_offset: 0,
        diverging_epoch: None,
        records: damaged.into(),
    }));
    pair.follow(1);
    pair.catch_up().await;
    pair.assert_same_logs();
    assert_eq!(pair.fetchers.summary().failed_partitions, 0);
}

#[tokio::test(start_paused = true)]
async fn records_that_do_not_fit_fail_the_partition_until_the_next_epoch() {
    let pair = Pair::new();
    pair.elect(1, ALL);
    pair.leading.append(3, Acks::Leader).expect("appended");
    pair.follow(1);
    pair.catch_up().await;
    pair.answer_next(Ok(FetchedRecords {
        high_watermark: 3,
        log_start_offset: 0,
        diverging_epoch: None,
        records: batch(1, 1, 2),
    }));
    pair.until(|| pair.fetchers.summary().failed_partitions == 1)
        .await;
    assert_eq!(pair.following.log_end_offset(), 3);
    assert!(pair.storage_errors.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_fetcher_without_partitions_ends_and_another_one_begins() {
    let pair = Pair::new();
    pair.elect(1, ALL);
    pair.follow(1);
    pair.until(|| pair.requests() == 1).await;
    let (topic_id, partition) = key_of(&pair.following.partition);
    pair.fetchers.unfollow(topic_id, partition);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let asked = pair.requests();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(pair.requests(), asked);
    pair.leading.append(3, Acks::Leader).expect("appended");
    pair.follow(1);
    pair.catch_up().await;
    assert_eq!(pair.fetchers.summary().partitions, 1);
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_all_fetchers_for_good() {
    let pair = Pair::new();
    pair.elect(1, ALL);
    pair.follow(1);
    pair.until(|| pair.requests() == 1).await;
    pair.fetchers.stop().await;
    pair.leading.append(3, Acks::Leader).expect("appended");
    pair.follow(1);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(pair.following.log_end_offset(), 0);
    assert_eq!(pair.fetchers.summary(), FetcherSummary::default());
}

#[tokio::test(start_paused = true)]
async fn a_log_that_cannot_be_written_is_told() {
    let pair = Pair::new();
    pair.elect(1, &[B2]);
    pair.leading.append(3, Acks::Leader).expect("appended");
    // The directory goes, so that no segment can be made where the log is to begin anew.
    std::fs::remove_dir_all(pair.following.partition.log().dir()).expect("removed");
    pair.answer_next(Err(LeaderError::OffsetOutOfRange));
    pair.leading
        .partition
        .delete_records(3)
        .expect("up to the high watermark");
    pair.follow(1);
    pair.until(|| !pair.storage_errors.lock().is_empty()).await;
    assert_eq!(pair.fetchers.summary().failed_partitions, 1);
}
