//! A partition that leads.

use std::future::Future;
use std::time::Duration;

use super::*;
use crate::runtime::commit_wait::CommitWait;
use crate::runtime::settings::ReplicaSettings;
use crate::state::alter_partition::AlteredPartition;
use crate::state::replica_selector::ReplicaSelector;
use highwater_storage::{LogConfig, PartitionEpoch};

fn accepted(proposal: &IsrProposal) -> AlteredPartition {
    AlteredPartition {
        leader: Some(B1),
        leader_epoch: proposal.leader_epoch,
        partition_epoch: PartitionEpoch(proposal.partition_epoch.0 + 1),
        isr: proposal.isr.iter().map(|member| member.broker).collect(),
    }
}

fn set_min_insync_replicas(fixture: &Fixture, min_insync_replicas: i32) {
    let config = LogConfig {
        min_insync_replicas,
        ..LogConfig::default()
    };
    fixture.partition.set_topic_settings(config.into());
}

/// What a wait gives if it is over.
async fn now_or_waiting(wait: &CommitWait) -> Option<Result<(), PartitionError>> {
    let mut committed = Box::pin(wait.committed());
    std::future::poll_fn(|context| {
        Poll::Ready(match committed.as_mut().poll(context) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test]
async fn acks_all_waits_for_the_second_fetch_of_every_in_sync_replica() {
    let fixture = Fixture::leading(2, ALL);
    let appended = fixture.append(1, Acks::All).expect("appended");
    let commit = appended.commit.expect("not committed yet");
    for (replica, offset) in [(B2, 0), (B3, 0), (B2, 1)] {
        let read = fixture.fetch(replica, offset);
        assert_eq!(read.records_bytes() > 0, offset == 0);
        assert_eq!(fixture.high_watermark(), 0);
        assert!(now_or_waiting(&commit).await.is_none());
    }
    let read = fixture.fetch(B3, 1);
    assert_eq!(
        read.high_watermark, 1,
        "the last to acknowledge hears of it"
    );
    assert!(matches!(now_or_waiting(&commit).await, Some(Ok(()))));
}

#[tokio::test]
async fn an_isr_of_one_commits_with_the_append() {
    let fixture = Fixture::leading(1, &[B1]);
    let appended = fixture.append(3, Acks::All).expect("appended");
    assert!(appended.commit.is_none());
    assert_eq!(fixture.high_watermark(), 3);
}

#[tokio::test]
async fn too_few_in_sync_replicas_refuse_acks_all_before_anything_is_written() {
    let fixture = Fixture::leading(2, &[B1]);
    let refused = fixture.append(1, Acks::All);
    assert!(matches!(
        refused,
        Err(PartitionError::NotEnoughReplicas { isr: 1, min_isr: 2 })
    ));
    assert_eq!(fixture.log_end_offset(), 0);
    assert!(fixture.append(1, Acks::Leader).is_ok());
    assert_eq!(fixture.high_watermark(), 0);
}

#[tokio::test]
async fn losing_the_leadership_ends_waits_even_if_it_comes_back_at_once() {
    let fixture = Fixture::leading(2, &[B1, B2]);
    let appended = fixture.append(1, Acks::All).expect("appended");
    let commit = appended.commit.expect("not committed yet");
    assert!(now_or_waiting(&commit).await.is_none());
    fixture.become_as(leadership(Some(B2), 2, 2, &[B1, B2]));
    fixture.become_as(leadership(Some(B1), 3, 3, &[B1, B2]));
    fixture.fetch(B2, 1);
    assert_eq!(fixture.high_watermark(), 1);
    assert!(matches!(
        now_or_waiting(&commit).await,
        Some(Err(PartitionError::NotLeader { .. }))
    ));
}

#[tokio::test]
async fn an_election_that_keeps_the_leader_keeps_the_waits() {
    let fixture = Fixture::leading(2, &[B1, B2]);
    let appended = fixture.append(1, Acks::All).expect("appended");
    let commit = appended.commit.expect("not committed yet");
    fixture.become_as(leadership(Some(B1), 2, 2, &[B1, B2]));
    assert!(now_or_waiting(&commit).await.is_none());
    fixture.fetch(B2, 1);
    assert!(matches!(now_or_waiting(&commit).await, Some(Ok(()))));
}

#[tokio::test]
async fn an_isr_that_shrank_after_the_commit_is_too_small() {
    let fixture = Fixture::leading(2, &[B1, B2]);
    let appended = fixture.append(1, Acks::All).expect("appended");
    let commit = appended.commit.expect("not committed yet");
    fixture.fetch(B2, 1);
    fixture.become_as(leadership(Some(B1), 1, 2, &[B1]));
    assert!(matches!(
        now_or_waiting(&commit).await,
        Some(Err(PartitionError::NotEnoughReplicasAfterAppend))
    ));
}

#[tokio::test]
async fn a_lower_minimum_completes_what_waits() {
    let fixture = Fixture::leading(3, &[B1, B2]);
    fixture.append(1, Acks::Leader).expect("appended");
    let led_since = LeaderEpoch(1);
    let commit = CommitWait::new(Arc::clone(&fixture.partition), led_since, 1);
    fixture.fetch(B2, 1);
    assert!(now_or_waiting(&commit).await.is_none());
    set_min_insync_replicas(&fixture, 2);
    assert!(matches!(now_or_waiting(&commit).await, Some(Ok(()))));
}

#[tokio::test]
async fn a_parked_follower_fetch_is_woken_by_an_append() {
    let fixture = Fixture::leading(1, ALL);
    let notify = Arc::new(Notify::new());
    let watch = fixture.partition.log_end_watch();
    let _registration = watch.register(1, Arc::clone(&notify));
    assert!(!woken(&notify).await);
    fixture.append(1, Acks::None).expect("appended");
    assert!(woken(&notify).await);
}

#[tokio::test]
async fn a_change_of_leadership_wakes_everyone() {
    let fixture = Fixture::leading(1, ALL);
    let notifies = [(); 3].map(|()| Arc::new(Notify::new()));
    let partition = &fixture.partition;
    let _registrations = [
        partition.high_watermark_watch(),
        partition.log_end_watch(),
        partition.low_watermark_watch(),
    ]
    .into_iter()
    .zip(&notifies)
    .map(|(watch, notify)| watch.register(i64::MAX, Arc::clone(notify)))
    .collect::<Vec<_>>();
    fixture.become_as(leadership(Some(B2), 2, 2, ALL));
    for notify in &notifies {
        assert!(woken(notify).await);
    }
}

#[test]
fn the_checks_of_a_follower_fetch_come_in_kafkas_order() {
    let fixture = Fixture::leading(1, &[B1]);
    let stranger = BrokerId(9);
    let fetch = |epoch, replica| fixture.fetch_in(epoch, replica, 0, None);
    assert!(matches!(
        fetch(0, stranger),
        Err(PartitionError::Fenced(fence)) if fence == fenced(0, 1)
    ));
    assert!(matches!(
        fetch(2, stranger),
        Err(PartitionError::Fenced(fence)) if fence == unknown(2, 1)
    ));
    assert!(matches!(
        fetch(1, stranger),
        Err(PartitionError::NotAReplica {
            names_leader_epoch: true,
            ..
        })
    ));
    fixture.become_as(leadership(Some(B2), 2, 2, ALL));
    assert!(matches!(
        fetch(2, stranger),
        Err(PartitionError::NotLeader { .. })
    ));
}

#[test]
fn a_diverging_fetch_gets_the_place_and_no_records_and_changes_nothing() {
    let fixture = Fixture::leading(1, &[B1]);
    fixture.append(5, Acks::Leader).expect("appended");
    fixture.become_as(leadership(Some(B1), 3, 3, &[B1]));
    fixture.append(5, Acks::Leader).expect("appended");
    let read = fixture.fetch_in(3, B2, 8, Some(2)).expect("an answer");
    assert_eq!(read.diverging_epoch, Some((LeaderEpoch(1), 5)));
    assert_eq!(read.records_bytes(), 0);
    let read = fixture.fetch_in(3, B2, 12, Some(3)).expect("an answer");
    assert_eq!(read.diverging_epoch, Some((LeaderEpoch(3), 10)));
    assert_eq!(fixture.proposal(), None, "it is at the log end or beyond");
    let read = fixture.fetch_in(3, B2, 5, Some(1)).expect("an answer");
    assert_eq!(read.diverging_epoch, None);
    assert!(read.records_bytes() > 0);
}

#[test]
fn an_epoch_beyond_all_known_is_out_of_range() {
    let fixture = Fixture::leading(1, &[B1]);
    fixture.append(5, Acks::Leader).expect("appended");
    for (offset, epoch) in [(5, Some(2)), (6, None)] {
        assert!(matches!(
            fixture.fetch_in(1, B2, offset, epoch),
            Err(PartitionError::OffsetOutOfRange { .. })
        ));
    }
}

#[test]
fn only_the_first_look_at_a_fetch_acknowledges() {
    let fixture = Fixture::leading(1, &[B1, B2]);
    fixture.append(1, Acks::Leader).expect("appended");
    let again = follower_read(B2, 1, false);
    let read = fixture.partition.read_for_follower(read_request(1), again);
    assert!(read.is_ok());
    assert_eq!(fixture.high_watermark(), 0);
    fixture.fetch(B2, 1);
    assert_eq!(fixture.high_watermark(), 1);
}

#[test]
fn a_follower_reads_beyond_the_high_watermark_and_a_consumer_does_not() {
    let fixture = Fixture::leading(1, ALL);
    fixture.append(1, Acks::Leader).expect("appended");
    assert!(fixture.fetch(B2, 0).records_bytes() > 0);
    let read = fixture.partition.read(read_request(0), "").expect("read");
    assert_eq!(read.records_bytes(), 0);
}

#[test]
fn a_follower_that_catches_up_is_proposed_and_joins() {
    let fixture = Fixture::leading(1, &[B1]);
    fixture.append(1, Acks::Leader).expect("appended");
    set_min_insync_replicas(&fixture, 2);
    fixture.append(1, Acks::Leader).expect("appended");
    assert_eq!(fixture.high_watermark(), 1);
    fixture.fetch(B2, 0);
    assert_eq!(fixture.proposal(), None);
    fixture.fetch(B2, 1);
    let proposal = fixture.proposal().expect("caught up");
    assert!(matches!(
        fixture.append(1, Acks::All),
        Err(PartitionError::NotEnoughReplicas { .. })
    ));
    let reply = Ok(accepted(&proposal));
    let partition = &fixture.partition;
    assert_eq!(partition.on_alter_partition_reply(&proposal, reply), None);
    assert_eq!(partition.view().isr, [B1, B2]);
    assert_eq!(partition.view().partition_epoch, PartitionEpoch(2));
    fixture.fetch(B2, 2);
    assert_eq!(fixture.high_watermark(), 2);
    assert!(fixture.append(1, Acks::All).is_ok());
}

#[test]
fn a_fenced_replica_is_not_waited_for_any_more_once_the_metadata_says_so() {
    let fixture = Fixture::leading(1, &[B1]);
    fixture.fetch(B2, 0);
    let proposal = fixture.proposal().expect("caught up");
    let refused = Err(crate::state::alter_partition::AlterPartitionError::IneligibleReplica);
    fixture
        .partition
        .on_alter_partition_reply(&proposal, refused);
    fixture.append(1, Acks::Leader).expect("appended");
    assert_eq!(fixture.high_watermark(), 0, "B2 is about to join");
    fixture.context.set_image(image(&[B2]));
    fixture.partition.on_brokers_changed();
    assert_eq!(fixture.high_watermark(), 1);
}

#[test]
fn the_latest_offset_is_not_available_until_the_new_leader_knows_what_is_committed() {
    let fixture = Fixture::leading(1, &[B1, B2]);
    fixture.append(5, Acks::Leader).expect("appended");
    fixture.fetch(B2, 3);
    fixture.become_as(leadership(Some(B2), 2, 2, &[B1, B2]));
    fixture.become_as(leadership(Some(B1), 3, 3, &[B1, B2]));
    let list = |query, isolation| {
        fixture
            .partition
            .list_offset(query, isolation, None, true)
            .map(|found| found.map(|found| found.offset))
    };
    for query in [OffsetQuery::Latest, OffsetQuery::AtTimestamp(NOW_MS + 1)] {
        assert!(matches!(
            list(query, ReadIsolation::HighWatermark),
            Err(PartitionError::OffsetNotAvailable {
                high_watermark: 3,
                epoch_start_offset: 5,
            })
        ));
    }
    let as_replica = list(OffsetQuery::Latest, ReadIsolation::LogEnd);
    assert_eq!(as_replica.expect("a replica may know"), Some(5));
    let earliest = list(OffsetQuery::Earliest, ReadIsolation::HighWatermark);
    assert_eq!(earliest.expect("known"), Some(0));
    fixture.fetch(B2, 5);
    let latest = list(OffsetQuery::Latest, ReadIsolation::HighWatermark);
    assert_eq!(latest.expect("known now"), Some(5));
}

#[test]
fn a_coordinator_appends_in_its_own_epoch_only() {
    let fixture = Fixture::leading(1, &[B1]);
    let append = |epoch| {
        fixture.partition.append_as_leader_in(
            LeaderEpoch(epoch),
            &batch(0, -1, 1),
            Acks::All,
            highwater_storage::AppendOrigin::Coordinator,
            NOW_MS,
        )
    };
    assert!(append(1).is_ok());
    assert!(matches!(append(0), Err(PartitionError::Fenced(_))));
    assert_eq!(fixture.log_end_offset(), 1);
}

#[test]
fn a_leader_whose_session_has_expired_answers_for_nothing_alone() {
    let fixture = Fixture::leading(1, ALL);
    let now = tokio::time::Instant::now();
    fixture.context.set_session_end(now);
    for acks in [Acks::None, Acks::Leader] {
        assert!(matches!(
            fixture.append(1, acks),
            Err(PartitionError::NotLeader { .. })
        ));
    }
    let latest = |fixture: &Fixture| {
        fixture.partition.list_offset(
            OffsetQuery::Latest,
            ReadIsolation::HighWatermark,
            None,
            true,
        )
    };
    assert!(matches!(
        latest(&fixture),
        Err(PartitionError::NotLeader { .. })
    ));
    // It is committed only if the in-sync replicas follow this leader still.
    let appended = fixture.append(1, Acks::All).expect("appended");
    assert!(appended.commit.is_some(), "not by itself");
    fixture
        .context
        .set_session_end(now + Duration::from_secs(600));
    assert!(fixture.append(1, Acks::Leader).is_ok());

    // Nobody else can lead what has one replica.
    let fixture = Fixture::new(1);
    fixture.become_as(Leadership {
        replicas: vec![B1],
        ..leadership(Some(B1), 1, 1, &[B1])
    });
    fixture.context.set_session_end(now);
    assert!(fixture.append(1, Acks::Leader).is_ok());
    assert!(latest(&fixture).is_ok());
}

#[tokio::test]
async fn the_low_watermark_waits_for_live_followers() {
    let fixture = Fixture::leading(1, ALL);
    fixture.append(5, Acks::Leader).expect("appended");
    let partition = &fixture.partition;
    assert_eq!(partition.low_watermark().expect("leads"), -1);
    let notify = Arc::new(Notify::new());
    let _registration = partition
        .low_watermark_watch()
        .register(0, Arc::clone(&notify));
    fixture.fetch(B2, 5);
    assert!(!woken(&notify).await, "B3 has not told yet");
    fixture.fetch(B3, 5);
    assert!(woken(&notify).await);
    assert_eq!(partition.low_watermark().expect("leads"), 0);
}

#[test]
fn a_lag_check_proposes_that_a_silent_member_leaves() {
    let fixture = Fixture::leading(1, &[B1, B2]);
    fixture.append(1, Acks::Leader).expect("appended");
    fixture.partition.on_lag_check();
    assert_eq!(fixture.proposal(), None);
    fixture.context.configure(ReplicaSettings {
        replica_lag_time_max_ms: -1,
        ..ReplicaSettings::default()
    });
    fixture.partition.on_lag_check();
    let proposal = fixture.proposal().expect("B2 lags");
    assert_eq!(proposal.isr.len(), 1);
    assert_eq!(
        fixture.partition.view().isr,
        [B1, B2],
        "until it is committed"
    );
}

#[test]
fn a_consumer_is_sent_to_an_in_sync_replica_of_its_rack() {
    let fixture = Fixture::leading(1, &[B1, B2]);
    fixture.append(5, Acks::Leader).expect("appended");
    let preferred = |rack, offset| fixture.partition.preferred_read_replica(rack, offset);
    fixture.fetch(B2, 5);
    assert_eq!(preferred("r2", 0), None, "no selector is set");
    fixture.context.configure(ReplicaSettings {
        replica_selector: ReplicaSelector::RackAware,
        ..ReplicaSettings::default()
    });
    assert_eq!(preferred("r2", 0), Some(B2));
    assert_eq!(preferred("r2", 6), None, "B2 ends at 5");
    assert_eq!(preferred("r1", 0), None, "the leader is there");
    assert_eq!(preferred("r3", 0), None, "B3 is not in sync");
    fixture.context.set_image(image(&[B2]));
    assert_eq!(preferred("r2", 0), None, "B2 is fenced");
    fixture.context.set_image(image(&[]));
    fixture.become_as(leadership(Some(B2), 2, 2, ALL));
    assert_eq!(preferred("r2", 0), None, "only a leader sends elsewhere");
}
