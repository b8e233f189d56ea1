//! What acks=all promises with `min.insync.replicas` 2 and 3, 2, 1 and 0 replicas in sync.

use std::time::Duration;

use compat_tests::cluster::{Cluster, ClusterOptions, for_each_cluster};
use compat_tests::process::eventually;
use compat_tests::raw::code;

use crate::support::{LATEST, LONG, fetch, offset_at, one, produce, produce_all};

const TOPIC: &str = "table";

/// The error and base offset of a record sent to broker 1 with these acks.
fn send(cluster: &Cluster, acks: i16, value: &str) -> (i16, i64) {
    let mut connection = cluster.connect(1).unwrap();
    let reply = produce(&mut connection, TOPIC, acks, LONG, one(value));
    (reply.error_code, reply.base_offset)
}

/// What consumers see of broker 1: the end, and how far a fetch from the start gets.
fn visible(cluster: &Cluster) -> (i64, i64) {
    let mut connection = cluster.connect(1).unwrap();
    let (error, latest) = offset_at(&mut connection, TOPIC, LATEST);
    assert_eq!(error, code::NONE);
    let fetched = fetch(&mut connection, TOPIC, 0);
    assert_eq!(fetched.error_code, code::NONE);
    (latest, fetched.high_watermark)
}

#[test]
fn acks_all_is_refused_below_min_insync_replicas_and_nothing_is_written_then() {
    for_each_cluster(&ClusterOptions::new().with_controller_apart(), |cluster| {
        cluster.create_topic(TOPIC, &[&[1, 2, 3]], &[("min.insync.replicas", "2")]);

        // Three in sync.
        assert_eq!(send(cluster, -1, "three"), (code::NONE, 0));
        assert_eq!(send(cluster, 1, "three, acks 1"), (code::NONE, 1));

        // Two in sync.
        cluster.stop(3).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 2]);
        assert_eq!(send(cluster, -1, "two"), (code::NONE, 2));
        assert_eq!(visible(cluster), (3, 3));

        // One in sync: nothing of acks=all is written, what is written with acks=1 is not shown to anybody.
        cluster.stop(2).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1]);
        assert_eq!(send(cluster, -1, "one"), (code::NOT_ENOUGH_REPLICAS, -1));
        assert_eq!(send(cluster, 1, "one, acks 1"), (code::NONE, 3));
        assert_eq!(
            send(cluster, -1, "one again"),
            (code::NOT_ENOUGH_REPLICAS, -1)
        );
        assert_eq!(send(cluster, 1, "one, acks 1 again"), (code::NONE, 4));
        assert_eq!(visible(cluster), (3, 3));

        // Two again: what was written is shown, and acks=all is taken.
        cluster.start_again(2).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 2]);
        assert_eq!(send(cluster, -1, "two again"), (code::NONE, 5));
        assert_eq!(visible(cluster), (6, 6));

        // None in sync: 3 is alive, but has not all that was acknowledged; it leads nothing and takes nothing.
        cluster.stop(2).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1]);
        cluster.stop(1).unwrap();
        cluster.spawn(3).unwrap();
        cluster.wait_until_ready(3, &[3]).unwrap();
        let view = cluster.wait_for_partition(TOPIC, 0, "nobody leads", |view| view.leader == -1);
        assert_eq!(view.error_code, code::LEADER_NOT_AVAILABLE, "{view:?}");
        let mut connection = cluster.connect(3).unwrap();
        for acks in [-1, 1] {
            let reply = produce(&mut connection, TOPIC, acks, LONG, one("none"));
            assert_eq!(reply.error_code, code::NOT_LEADER_OR_FOLLOWER, "{reply:?}");
        }

        // All again, nothing lost: the last leader comes back first.
        cluster.start_again(1).unwrap();
        cluster.start_again(2).unwrap();
        cluster.wait_for_partition(TOPIC, 0, "all are in sync", |view| view.isr == [1, 2, 3]);
        let leader = cluster.partition(1, TOPIC, 0).unwrap().leader;
        let mut connection = cluster.connect(leader).unwrap();
        assert_eq!(produce_all(&mut connection, TOPIC, "all"), 6);
        assert_eq!(fetch(&mut connection, TOPIC, 0).high_watermark, 7);
    });
}

#[test]
fn a_write_whose_replicas_fall_behind_after_the_append_times_out_and_stays() {
    // Broker 2 stays alive and stops fetching: it leaves the ISR by its lag, not by its session.
    let options = ClusterOptions::new()
        .with_controller_apart()
        .with_network()
        .set("broker.session.timeout.ms", 60_000);
    for_each_cluster(&options, |cluster| {
        cluster.create_topic(TOPIC, &[&[1, 2]], &[("min.insync.replicas", "2")]);
        assert_eq!(send(cluster, -1, "replicated"), (code::NONE, 0));
        cluster.network().unwrap().cut(1, 2);
        let mut connection = cluster.connect(1).unwrap();
        let waits = Duration::from_secs(20);
        let reply = produce(&mut connection, TOPIC, -1, waits, one("stuck"));
        assert_eq!(reply.error_code, code::REQUEST_TIMED_OUT, "{reply:?}");
        // It tells where the record lies all the same.
        assert_eq!((reply.base_offset, reply.log_start_offset), (1, 0));
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1]);
        assert_eq!(
            visible(cluster),
            (1, 1),
            "the high watermark stays below min.insync.replicas"
        );
        assert_eq!(send(cluster, -1, "no"), (code::NOT_ENOUGH_REPLICAS, -1));
        cluster.network().unwrap().heal();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 2]);
        eventually(Cluster::PATIENCE, "the stuck record is shown", || {
            (visible(cluster) == (2, 2)).then_some(())
        });
        assert_eq!(send(cluster, -1, "next"), (code::NONE, 2));
    });
}

#[test]
fn min_insync_replicas_beyond_the_replication_factor_asks_for_all_replicas() {
    for_each_cluster(&ClusterOptions::new().with_controller_apart(), |cluster| {
        cluster.create_topic(TOPIC, &[&[1]], &[("min.insync.replicas", "2")]);
        assert_eq!(send(cluster, -1, "alone"), (code::NONE, 0));
        assert_eq!(visible(cluster), (1, 1));
    });
}
