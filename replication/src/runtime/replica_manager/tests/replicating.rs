//! What the cluster does.

use super::*;
use crate::cluster::reassign::{Reassignment, alter_partition_reassignments};

#[tokio::test(start_paused = true)]
async fn what_is_acknowledged_is_on_all_replicas() {
    let cluster = Cluster::start();
    cluster.create_topic(&ALL);
    for _ in 0..20 {
        cluster.produce_all(B1).await;
    }
    cluster.until_same_logs(&ALL).await;
    assert_eq!(cluster.log(B3).1, 20, "the high watermark too");
    let summary = cluster.replicas(B2).fetcher_summary();
    assert_eq!((summary.fetchers, summary.partitions), (1, 1));
    assert_eq!(cluster.replicas(B1).fetcher_summary().partitions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_is_cut_off_leaves_the_isr_and_comes_back() {
    let cluster = Cluster::start();
    cluster.create_topic(&ALL);
    cluster.produce_all(B1).await;
    cluster.isolate(B3);
    let appended = cluster.produce(B1, Acks::All).expect("appended");
    let commit = appended.commit.expect("B3 is waited for");
    commit.committed().await.expect("once B3 has left");
    assert_eq!(cluster.isr(), [B1, B2]);
    cluster.produce_all(B1).await;
    cluster.heal(B3);
    cluster.until("B3 is back", || cluster.isr() == ALL).await;
    cluster.until_same_logs(&ALL).await;
}

#[tokio::test(start_paused = true)]
async fn with_too_few_in_sync_replicas_acks_all_is_refused_and_acks_one_is_not() {
    let cluster = Cluster::start();
    cluster.create_topic(&ALL);
    cluster.produce_all(B1).await;
    cluster.isolate(B2);
    cluster.isolate(B3);
    let _ = cluster.produce(B1, Acks::Leader).expect("appended");
    cluster
        .until("both have left", || cluster.isr() == [B1])
        .await;
    assert!(matches!(
        cluster.produce(B1, Acks::All),
        Err(PartitionError::NotEnoughReplicas { isr: 1, min_isr: 2 })
    ));
    assert!(cluster.produce(B1, Acks::Leader).is_ok());
    assert_eq!(cluster.log(B1).1, 1, "the high watermark stands still");
    cluster.heal(B2);
    cluster
        .until("B2 is back", || cluster.isr() == [B1, B2])
        .await;
    cluster
        .until("what waited is committed", || cluster.log(B1).1 == 3)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_higher_minimum_that_comes_with_a_smaller_isr_counts_first() {
    let cluster = Cluster::start();
    cluster.create_topic(&ALL);
    cluster.produce_all(B1).await;
    cluster.until_same_logs(&ALL).await;
    cluster.isolate(B3);
    cluster.produce(B1, Acks::Leader).expect("appended");
    cluster.until("B2 has it", || cluster.log(B2).0 == 2).await;
    // Time for the fetch that acknowledges it.
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.isolate(B1);
    cluster.configure_topic("min.insync.replicas", "3");
    cluster.fence(B3);
    cluster.heal(B1);
    assert_eq!(cluster.partition(B1).view().isr, [B1, B2]);
    assert_eq!(cluster.log(B1).1, 1, "B3 may lead, and lacks the second");
    cluster.configure_topic("min.insync.replicas", "2");
    assert_eq!(cluster.log(B1).1, 2);
}

#[tokio::test(start_paused = true)]
async fn a_deposed_leader_drops_its_tail_without_any_new_write() {
    let cluster = Cluster::start();
    cluster.create_topic(&ALL);
    for _ in 0..5 {
        cluster.produce_all(B1).await;
    }
    cluster.isolate(B1);
    let appended = cluster.produce(B1, Acks::All).expect("appended");
    let commit = appended.commit.expect("nobody follows");
    let waited = tokio::time::timeout(Duration::from_secs(60), commit.committed()).await;
    assert!(waited.is_err(), "it is never acknowledged");
    cluster.fence(B1);
    assert_eq!(cluster.partition(B2).view().leader, Some(B2));
    cluster.produce_all(B2).await;
    cluster.heal(B1);
    assert!(matches!(
        commit.committed().await,
        Err(PartitionError::NotLeader { .. })
    ));
    cluster.until_same_logs(&ALL).await;
    assert_eq!(cluster.log(B1).0, 6);
    assert_eq!(cluster.isr(), [B2, B3], "as long as it is fenced");
    cluster.unfence(B1);
    cluster
        .until("B1 is in sync again", || cluster.isr() == ALL)
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_election_without_writes_cuts_the_old_leaders_tail_too() {
    let cluster = Cluster::start();
    cluster.create_topic(&ALL);
    cluster.produce_all(B1).await;
    cluster.isolate(B1);
    let _ = cluster.produce(B1, Acks::Leader).expect("appended");
    cluster.fence(B1);
    cluster.heal(B1);
    cluster
        .until("the tail is gone", || cluster.log(B1).0 == 1)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_reassignment_moves_a_replica_with_its_log() {
    let cluster = Cluster::start();
    cluster.create_topic(&[B1, B2]);
    for _ in 0..5 {
        cluster.produce_all(B1).await;
    }
    assert!(cluster.replicas(B3).partition(TOPIC, 0).is_err());
    let image = Arc::clone(&cluster.0.image.lock());
    let moved = Reassignment {
        topic: TOPIC.to_owned(),
        partition: 0,
        replicas: Some(vec![1, 3]),
    };
    let (records, _) =
        alter_partition_reassignments(&image, &DEFAULTS, &[moved], false).expect("allowed");
    cluster.0.commit(&records);
    cluster
        .until("it is done", || cluster.isr() == [B1, B3])
        .await;
    cluster.until_same_logs(&[B1, B3]).await;
    let gone = cluster.replicas(B2).partition(TOPIC, 0);
    assert!(matches!(gone, Err(PartitionError::NotHosted)));
    let topic_partition = TopicPartition::new(TOPIC, 0);
    assert!(cluster.replicas(B2).logs().get(&topic_partition).is_none());
    assert_eq!(cluster.replicas(B2).fetcher_summary().partitions, 0);
    cluster.produce_all(B1).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_topic_takes_its_logs_and_fetchers_along() {
    let cluster = Cluster::start();
    let topic_id = cluster.create_topic(&ALL);
    cluster.produce_all(B1).await;
    let appended = {
        cluster.isolate(B3);
        cluster.produce(B1, Acks::All).expect("appended")
    };
    let commit = appended.commit.expect("B3 is waited for");
    cluster.0.commit(&[RemoveTopicRecord {
        topic_id: topic_id.0,
    }
    .into()]);
    assert!(matches!(
        commit.committed().await,
        Err(PartitionError::NotLeader { .. })
    ));
    for broker in [B1, B2] {
        let replicas = cluster.replicas(broker);
        assert!(replicas.partition(TOPIC, 0).is_err());
        assert!(replicas.logs().logs().is_empty());
        assert_eq!(replicas.fetcher_summary().partitions, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_partition_without_a_leader_is_followed_by_nobody_and_served_by_nobody() {
    let cluster = Cluster::start();
    cluster.create_topic(&[B1, B2]);
    cluster.produce_all(B1).await;
    cluster.fence(B2);
    cluster.fence(B1);
    let leader = cluster.partition(B2).view().leader;
    assert_eq!(leader, None);
    assert_eq!(cluster.replicas(B2).fetcher_summary().partitions, 0);
    assert!(matches!(
        cluster.produce(B1, Acks::Leader),
        Err(PartitionError::NotLeader { leader: None, .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_everything_that_was_begun() {
    let cluster = Cluster::start();
    cluster.create_topic(&ALL);
    cluster.produce_all(B1).await;
    cluster.replicas(B2).stop().await;
    let end = cluster.log(B2).0;
    let _ = cluster.produce(B1, Acks::Leader).expect("appended");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(cluster.log(B2).0, end);
}

#[tokio::test(start_paused = true)]
async fn a_follower_whose_log_fails_is_offline() {
    let cluster = Cluster::start();
    cluster.create_topic(&ALL);
    cluster.produce_all(B1).await;
    let partition = cluster.partition(B3);
    let error = highwater_storage::StorageError::io("write", "x", std::io::Error::other("EIO"));
    cluster.replicas(B3).on_log_failure(&partition, error);
    assert!(matches!(
        cluster.replicas(B3).partition(TOPIC, 0),
        Err(PartitionError::Offline(_))
    ));
    assert_eq!(cluster.replicas(B3).offline_count(), 1);
    assert_eq!(cluster.replicas(B3).fetcher_summary().partitions, 0);
    let _ = cluster.produce(B1, Acks::Leader).expect("appended");
    cluster
        .until("B3 has left", || cluster.isr() == [B1, B2])
        .await;
    assert!(
        cluster.replicas(B3).partition(TOPIC, 0).is_err(),
        "for good"
    );
}

#[tokio::test(start_paused = true)]
async fn another_number_of_fetchers_takes_effect_at_once() {
    let cluster = Cluster::start();
    cluster.create_topic(&ALL);
    cluster.produce_all(B1).await;
    for broker in [B2, B3] {
        cluster.replicas(broker).configure(ReplicaSettings {
            num_replica_fetchers: 7,
            ..ReplicaSettings::default()
        });
    }
    cluster.produce_all(B1).await;
    assert_eq!(cluster.replicas(B2).fetcher_summary().partitions, 1);
}

#[tokio::test(start_paused = true)]
async fn changes_of_the_isr_and_replicated_bytes_are_counted() {
    let cluster = Cluster::start();
    cluster.create_topic(&ALL);
    cluster.produce_all(B1).await;
    cluster.isolate(B3);
    cluster.produce_all(B1).await;
    cluster.heal(B3);
    cluster.until("B3 is back", || cluster.isr() == ALL).await;
    let metrics = cluster.replicas(B1).context().metrics();
    assert_eq!(
        (metrics.isr_shrinks.get(), metrics.isr_expands.get()),
        (1, 1)
    );
    let size = cluster.log(B1).2.len() as u64;
    let follower = cluster.replicas(B2).context().metrics();
    assert_eq!(follower.replication_bytes_in.get(), size);
    assert!(metrics.replication_bytes_out.get() >= 2 * size);
}
