//! Three failures of a partition with three replicas and `min.insync.replicas` 2, each from the healthy state to the
//! healthy state, under a producer with acks=all and idempotence: a slow follower, a crashed leader, a split network.

use std::time::Duration;

use compat_tests::cluster::{Cluster, ClusterOptions, Link, for_each_cluster};
use compat_tests::process::eventually;
use compat_tests::raw::code;
use serde_json::json;

use crate::librdkafka::{Background, burst, wait_until_observed};
use crate::support::{
    LONG, elect_preferred, end_offset_of_epoch, epochs_of_batches, fetch, fetch_in_epoch, one,
    produce, produce_all, sizes_on_disk,
};

const TOPIC: &str = "learn.09.orders";
const MIN_ISR: &[(&str, &str)] = &[("min.insync.replicas", "2")];

fn healthy(cluster: &Cluster) {
    cluster.create_topic(TOPIC, &[&[1, 2, 3], &[2, 3, 1], &[3, 1, 2]], MIN_ISR);
}

#[test]
fn slow_follower_leaves_the_isr_and_returns_when_it_has_caught_up() {
    // Small pieces, so that a slow follower gets one within its time-outs.
    let options = ClusterOptions::new()
        .with_controller_apart()
        .with_network()
        .set("replica.fetch.max.bytes", 65_536)
        .set("replica.fetch.response.max.bytes", 65_536);
    for_each_cluster(&options, |cluster| {
        healthy(cluster);
        let producer = Background::start(cluster, TOPIC, 0, 1000, 100);
        producer.wait_for_more(100);

        // 100 KB a second are written, and follower 3 gets 20.
        let slow = Link {
            bytes_per_second: Some(20_000),
            ..Link::default()
        };
        cluster.network().unwrap().set_link(1, 3, slow);
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 2]);
        // Two are enough: writes go on and are shown, slow follower or not.
        producer.wait_for_more(200);
        assert_eq!(producer.deliveries().failed, 0);
        let view = cluster.partition(1, TOPIC, 0).unwrap();
        assert_eq!(view.isr, [1, 2], "it does not flap");
        assert!(view.offline.is_empty(), "it is slow, not gone: {view:?}");

        cluster.network().unwrap().heal();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 2, 3]);
        producer.wait_for_more(100);
        let view = cluster.partition(1, TOPIC, 0).unwrap();
        assert_eq!(view.leader_epoch, 0, "a change of the ISR alone: {view:?}");
        let deliveries = producer.end();
        assert_eq!(deliveries.failed, 0, "{deliveries:?}");
        let end = i64::try_from(deliveries.ok).unwrap();
        let written = epochs_of_batches(cluster, 1, TOPIC, end);
        for follower in [2, 3] {
            assert_eq!(epochs_of_batches(cluster, follower, TOPIC, end), written);
        }
    });
}

#[test]
fn crashed_leader_is_replaced_returns_by_leader_epoch_and_leads_again_by_preferred_election() {
    let options = ClusterOptions::new().with_controller_apart().with_network();
    for_each_cluster(&options, |cluster| {
        healthy(cluster);
        let mut first = cluster.connect(1).unwrap();
        for value in ["a", "b", "c"] {
            produce_all(&mut first, TOPIC, value);
        }
        // What only the leader has when it crashes: its followers do not hear of it any more.
        cluster.network().unwrap().partition(&[1], &[2, 3]);
        for value in ["lost", "lost too"] {
            let reply = produce(&mut first, TOPIC, 1, LONG, one(value));
            assert_eq!(reply.error_code, code::NONE, "{reply:?}");
        }
        cluster.kill(1).unwrap();
        cluster.network().unwrap().heal();

        // The next in the assignment leads, one epoch later.
        let view = cluster.wait_for_leader_and_isr(TOPIC, 0, 2, &[2, 3]);
        assert_eq!(view.leader_epoch, 1, "{view:?}");
        let rest = json!([
            [2, [1, 2, 3], [2, 3]],
            [2, [2, 3, 1], [2, 3]],
            [3, [3, 1, 2], [2, 3]]
        ]);
        wait_until_observed(cluster, TOPIC, json!([2, 3]), rest);
        let mut second = cluster.connect(2).unwrap();
        assert_eq!(produce_all(&mut second, TOPIC, "d"), 3);

        // It returns as a follower: epoch 0 ends at 3, so its own 3 and 4 have to go.
        assert_eq!(
            end_offset_of_epoch(&mut second, TOPIC, 1, 0),
            (code::NONE, 0, 3)
        );
        assert_eq!(
            end_offset_of_epoch(&mut second, TOPIC, 1, 1),
            (code::NONE, 1, 4)
        );
        cluster.start_again(1).unwrap();
        let view = cluster.wait_for_leader_and_isr(TOPIC, 0, 2, &[1, 2, 3]);
        assert_eq!(view.leader_epoch, 1, "{view:?}");
        let written = vec![(0, 0), (1, 0), (2, 0), (3, 1)];
        for id in [1, 2, 3] {
            assert_eq!(
                epochs_of_batches(cluster, id, TOPIC, 4),
                written,
                "on broker {id}"
            );
        }

        // It leads again only when it is told to.
        assert_eq!(elect_preferred(cluster, TOPIC), code::NONE);
        let view = cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 2, 3]);
        assert_eq!(view.leader_epoch, 2, "{view:?}");
        assert_eq!(elect_preferred(cluster, TOPIC), code::ELECTION_NOT_NEEDED);
        let mut first = cluster.connect(1).unwrap();
        assert_eq!(produce_all(&mut first, TOPIC, "e"), 4);
        assert_eq!(
            end_offset_of_epoch(&mut first, TOPIC, 2, 0),
            (code::NONE, 0, 3)
        );
        assert_eq!(
            end_offset_of_epoch(&mut first, TOPIC, 2, 1),
            (code::NONE, 1, 4)
        );
        assert_eq!(
            end_offset_of_epoch(&mut first, TOPIC, 2, 2),
            (code::NONE, 2, 5)
        );
        let written = vec![(0, 0), (1, 0), (2, 0), (3, 1), (4, 2)];
        for id in [1, 2, 3] {
            assert_eq!(
                epochs_of_batches(cluster, id, TOPIC, 5),
                written,
                "on broker {id}"
            );
        }
    });
}

#[test]
fn producer_goes_on_through_the_crash_of_the_leader_and_its_return() {
    for_each_cluster(&ClusterOptions::new(), |cluster| {
        healthy(cluster);
        let producer = Background::start(cluster, TOPIC, 0, 100, 20);
        producer.wait_for_more(20);
        cluster.kill(1).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 2, &[2, 3]);
        producer.wait_for_more(20);
        cluster.start_again(1).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 2, &[1, 2, 3]);
        assert_eq!(elect_preferred(cluster, TOPIC), code::NONE);
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 2, 3]);
        producer.wait_for_more(20);
        let deliveries = producer.end();
        assert_eq!(deliveries.failed, 0, "{deliveries:?}");
        // Each once, in spite of all retries.
        let end = i64::try_from(deliveries.ok).unwrap();
        for id in [1, 2, 3] {
            epochs_of_batches(cluster, id, TOPIC, end);
        }
    });
}

#[test]
fn follower_without_a_way_to_its_leader_leaves_the_isr_and_nobody_is_fenced() {
    let options = ClusterOptions::new().with_controller_apart().with_network();
    for_each_cluster(&options, |cluster| {
        healthy(cluster);
        cluster.network().unwrap().cut(1, 2);
        // A follower that has all that its leader has is in sync however long it is silent.
        let mut first = cluster.connect(1).unwrap();
        let reply = produce(&mut first, TOPIC, 1, LONG, one("not on all"));
        assert_eq!(reply.error_code, code::NONE, "{reply:?}");
        let view = cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 3]);
        assert!(view.offline.is_empty(), "{view:?}");
        assert_eq!(view.leader_epoch, 0, "{view:?}");
        assert_eq!(produce_all(&mut first, TOPIC, "two of three"), 1);
        cluster.network().unwrap().heal();
        let view = cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 2, 3]);
        assert_eq!(view.leader_epoch, 0, "{view:?}");
        assert_eq!(epochs_of_batches(cluster, 2, TOPIC, 2), [(0, 0), (1, 0)]);
    });
}

#[test]
fn isolated_leader_acknowledges_nothing_and_drops_its_tail_when_the_network_heals() {
    let options = ClusterOptions::new().with_controller_apart().with_network();
    for_each_cluster(&options, |cluster| {
        healthy(cluster);
        let mut first = cluster.connect(1).unwrap();
        assert_eq!(produce_all(&mut first, TOPIC, "kept"), 0);
        cluster.network().unwrap().partition(&[1], &[2, 3, 3001]);

        // It does not know yet, and takes the record: it is in its log, and acknowledged to nobody.
        let waits = Duration::from_secs(3);
        let reply = produce(&mut first, TOPIC, -1, waits, one("not acknowledged"));
        assert_eq!(reply.error_code, code::REQUEST_TIMED_OUT, "{reply:?}");
        assert_eq!(fetch(&mut first, TOPIC, 0).high_watermark, 1);

        // The others go on without it.
        let others = [2, 3];
        let view = cluster.wait_for_partition_via(&others, TOPIC, 0, "2 leads", |view| {
            view.leader == 2 && view.isr == [2, 3] && view.offline == [1]
        });
        assert_eq!(view.leader_epoch, 1, "{view:?}");
        let brokers = cluster.metadata(2, &[TOPIC]).unwrap().brokers;
        assert_eq!(
            brokers.len(),
            2,
            "a fenced broker is not shown: {brokers:?}"
        );

        // Whoever knows the new epoch is not served by the old leader; acks=all never succeeds there.
        let newer = fetch_in_epoch(&mut first, TOPIC, 0, 1);
        assert_eq!(newer.error_code, code::UNKNOWN_LEADER_EPOCH, "{newer:?}");
        let reply = produce(&mut first, TOPIC, -1, waits, one("nor this"));
        assert_ne!(reply.error_code, code::NONE, "{reply:?}");
        let older = fetch(&mut first, TOPIC, 0);
        assert!(older.high_watermark <= 1, "{older:?}");

        // Without any new write it drops what the new leader does not have.
        cluster.network().unwrap().heal();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 2, &[1, 2, 3]);
        eventually(Cluster::PATIENCE, "the three logs are alike", || {
            let sizes = [1, 2, 3].map(|id| sizes_on_disk(cluster, id, TOPIC));
            (sizes[0] == sizes[1] && sizes[1] == sizes[2]).then_some(())
        });
        assert_eq!(epochs_of_batches(cluster, 1, TOPIC, 1), [(0, 0)]);

        // The offset of the dropped record is the next one's.
        let mut second = cluster.connect(2).unwrap();
        assert_eq!(produce_all(&mut second, TOPIC, "after"), 1);
        for id in [1, 2, 3] {
            assert_eq!(epochs_of_batches(cluster, id, TOPIC, 2), [(0, 0), (1, 1)]);
        }
        let reply = produce(&mut first, TOPIC, -1, waits, one("to the old leader"));
        assert_eq!(reply.error_code, code::NOT_LEADER_OR_FOLLOWER, "{reply:?}");
    });
}

#[test]
fn producer_is_told_not_enough_replicas_until_the_followers_are_back() {
    for_each_cluster(&ClusterOptions::new().with_controller_apart(), |cluster| {
        cluster.create_topic(TOPIC, &[&[1, 2, 3]], MIN_ISR);
        let steady = burst(cluster, TOPIC, 50, 60_000);
        assert_eq!((steady.ok, steady.failed), (50, 0), "{steady:?}");
        cluster.stop(2).unwrap();
        cluster.stop(3).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1]);
        let shrunk = burst(cluster, TOPIC, 50, 8_000);
        assert_eq!((shrunk.ok, shrunk.failed), (0, 50), "{shrunk:?}");
        cluster.start_again(2).unwrap();
        cluster.start_again(3).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 2, 3]);
        let recovered = burst(cluster, TOPIC, 50, 60_000);
        assert_eq!((recovered.ok, recovered.failed), (50, 0), "{recovered:?}");
        let mut first = cluster.connect(1).unwrap();
        assert_eq!(fetch(&mut first, TOPIC, 0).high_watermark, 100);
    });
}
