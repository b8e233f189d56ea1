//! Throttled replicas, and observers.

use super::*;
use crate::cluster::topic_rules::OBSERVER_REPLICAS;
use crate::state::replication_quota::QuotaConfig;

/// Broker 3 has left the ISR and lacks 20 batches; then it is reached again.
async fn lagging(cluster: &Cluster) {
    cluster.create_topic(&ALL);
    cluster.produce_all(B1).await;
    cluster.isolate(B3);
    cluster.produce_all(B1).await;
    assert_eq!(cluster.isr(), [B1, B2]);
    for _ in 0..20 {
        cluster.produce_all(B1).await;
    }
}

/// How long broker 3 needs to be in sync again.
async fn time_to_catch_up(cluster: &Cluster) -> Duration {
    let before = tokio::time::Instant::now();
    cluster.heal(B3);
    cluster.until("B3 is back", || cluster.isr() == ALL).await;
    before.elapsed()
}

fn throttled(rate: i64, as_leader: bool) -> ReplicaSettings {
    // A small window, so that what was replicated before is soon forgotten.
    let throttle = QuotaConfig {
        window_num: 2,
        ..QuotaConfig::of(rate)
    };
    let mut settings = ReplicaSettings {
        // One batch a fetch.
        replica_fetch_max_bytes: 1,
        replica_lag_time_max_ms: 10_000,
        ..ReplicaSettings::default()
    };
    match as_leader {
        true => settings.leader_throttle = throttle,
        false => settings.follower_throttle = throttle,
    }
    settings
}

#[tokio::test(start_paused = true)]
async fn a_throttled_follower_catches_up_slowly() {
    let cluster = Cluster::start();
    lagging(&cluster).await;
    cluster.configure_topic("follower.replication.throttled.replicas", "0:3");
    // A batch has about 70 bytes: one or two in each window.
    cluster.replicas(B3).configure(throttled(50, false));
    assert!(time_to_catch_up(&cluster).await > Duration::from_secs(15));
}

#[tokio::test(start_paused = true)]
async fn a_throttled_leader_holds_followers_back_that_are_not_in_sync() {
    let cluster = Cluster::start();
    lagging(&cluster).await;
    cluster.configure_topic("leader.replication.throttled.replicas", "0:1");
    cluster.replicas(B1).configure(throttled(50, true));
    cluster.replicas(B3).configure(throttled(i64::MAX, false));
    cluster.heal(B3);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(cluster.isr(), [B1, B2]);
    // Those in sync are not held back, though what they get counts.
    for _ in 0..20 {
        cluster.produce_all(B1).await;
    }
    assert_eq!(cluster.isr(), [B1, B2]);
    cluster.configure_topic("leader.replication.throttled.replicas", "");
    cluster.until("B3 is back", || cluster.isr() == ALL).await;
}

#[tokio::test(start_paused = true)]
async fn replicas_that_are_not_named_are_not_throttled() {
    let cluster = Cluster::start();
    lagging(&cluster).await;
    cluster.configure_topic("follower.replication.throttled.replicas", "0:2,1:3");
    cluster.configure_topic("leader.replication.throttled.replicas", "0:2");
    cluster.replicas(B3).configure(throttled(0, false));
    cluster.replicas(B1).configure(throttled(0, true));
    assert!(time_to_catch_up(&cluster).await < Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn an_observer_has_everything_but_is_never_in_sync() {
    let cluster = Cluster::start();
    cluster.create_topic(&ALL);
    cluster.configure_topic(OBSERVER_REPLICAS, "3");
    cluster
        .until("B3 has left", || cluster.isr() == [B1, B2])
        .await;
    for _ in 0..5 {
        cluster.produce_all(B1).await;
    }
    cluster.until_same_logs(&ALL).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(cluster.isr(), [B1, B2]);
    // Nobody waits for it.
    cluster.isolate(B3);
    let before = tokio::time::Instant::now();
    cluster.produce_all(B1).await;
    assert!(before.elapsed() < Duration::from_secs(2));
    // And it serves reads.
    cluster.heal(B3);
    cluster.until_same_logs(&ALL).await;
    let read = cluster.partition(B3).read(
        PartitionReadRequest {
            leader_only: false,
            ..read_request(0)
        },
        "",
    );
    assert!(read.expect("it follows").records_bytes() > 0);
}
