//! What a leader makes of its followers' fetches, step by step: broker 1 leads, hand-made brokers follow.

use std::time::{Duration, Instant};

use compat_tests::cluster::{Cluster, Follower, HandMadeBroker, for_each_cluster};
use compat_tests::process::eventually;
use compat_tests::raw::{Batch, Connection, batch_ranges, code};
use kafka_protocol::messages::fetch_response::PartitionData;
use uuid::Uuid;

use crate::registration::{small, wait_until_shown};
use crate::support::{
    LATEST, LONG, elect_preferred, fetch, new_producer, offset_at, one, produce, produce_later,
    reassign, set_topic_config,
};

pub(crate) const TOPIC: &str = "followed";
pub(crate) const MIN_ISR_2: &[(&str, &str)] = &[("min.insync.replicas", "2")];
const LAG: Duration = Duration::from_secs(2);

/// A hand-made broker that follows partition 0 of the topic.
pub(crate) struct Replica {
    pub(crate) broker: HandMadeBroker,
    leader: Connection,
    pub(crate) topic: Uuid,
    pub(crate) at: Follower,
}

impl Replica {
    fn of(cluster: &Cluster, broker: HandMadeBroker, topic: Uuid) -> Self {
        Self {
            broker,
            leader: cluster.connect(1).unwrap(),
            topic,
            at: Follower {
                leader_epoch: 0,
                fetch_offset: 0,
                last_fetched_epoch: -1,
            },
        }
    }

    /// One fetch from where it stands, which is told to the leader by that; it stays there.
    #[track_caller]
    fn ask(&mut self) -> PartitionData {
        self.broker
            .fetch(&mut self.leader, self.topic, self.at)
            .unwrap()
    }

    /// One fetch, and takes what comes.
    #[track_caller]
    pub(crate) fn follow(&mut self) -> PartitionData {
        let data = self.ask();
        assert_eq!(data.error_code, code::NONE, "{data:?}");
        let records = data.records.clone().unwrap_or_default();
        if let Some(&(_, last)) = batch_ranges(&records).last() {
            self.at.fetch_offset = last + 1;
            self.at.last_fetched_epoch = self.at.leader_epoch;
        }
        data
    }

    /// Fetches from where it stands until the leader acts on the epoch that its metadata shows already.
    #[track_caller]
    fn wait_until_served(&mut self) {
        eventually(Cluster::PATIENCE, "the leader leads in this epoch", || {
            (self.ask().error_code == code::NONE).then_some(())
        });
    }

    /// The error of a fetch from elsewhere.
    #[track_caller]
    fn error_at(&mut self, at: Follower) -> i16 {
        let data = self.broker.fetch(&mut self.leader, self.topic, at).unwrap();
        data.error_code
    }
}

/// Topic with partition 0 on broker 1 and on hand-made brokers 101, 102, …, all in sync.
pub(crate) fn followed(
    cluster: &Cluster,
    followers: &[i32],
    configs: &[(&str, &str)],
) -> Vec<Replica> {
    let brokers: Vec<_> = followers
        .iter()
        .map(|&id| HandMadeBroker::running(cluster, id))
        .collect();
    let replicas = [&[1], followers].concat();
    // The tool's answer may come from a broker that has not heard of the last of them yet.
    eventually(Cluster::PATIENCE, "all brokers are shown", || {
        let shown = cluster.metadata(1, &[]).unwrap().brokers.len();
        (shown == replicas.len()).then_some(())
    });
    let topic = cluster.create_topic(TOPIC, &[&replicas], configs);
    let follow = |broker| {
        let mut replica = Replica::of(cluster, broker, topic);
        replica.wait_until_served();
        replica
    };
    brokers.into_iter().map(follow).collect()
}

/// What consumers see on broker 1.
fn latest(cluster: &Cluster) -> i64 {
    let (error, offset) = offset_at(&mut cluster.connect(1).unwrap(), TOPIC, LATEST);
    assert_eq!(error, code::NONE);
    offset
}

#[test]
fn high_watermark_moves_when_the_last_follower_asks_for_what_comes_after() {
    for_each_cluster(&small(), |cluster| {
        let [mut second, mut third] =
            <[Replica; 2]>::try_from(followed(cluster, &[101, 102], MIN_ISR_2))
                .ok()
                .unwrap();
        let producer = produce_later(cluster, 1, TOPIC, -1, LONG, one("first"));
        // Both get the record; to have got it is not to have it.
        for replica in [&mut second, &mut third] {
            eventually(Cluster::PATIENCE, "the record comes", || {
                let data = replica.follow();
                assert_eq!(data.high_watermark, 0);
                (replica.at.fetch_offset == 1).then_some(())
            });
        }
        assert_eq!(latest(cluster), 0);
        let mut consumer = cluster.connect(1).unwrap();
        assert_eq!(
            fetch(&mut consumer, TOPIC, 0)
                .records
                .unwrap_or_default()
                .len(),
            0
        );
        assert_eq!(second.follow().high_watermark, 0);
        assert!(!producer.is_finished());
        assert_eq!(latest(cluster), 0);
        third.follow();
        let reply = producer.join().unwrap();
        assert_eq!((reply.error_code, reply.base_offset), (code::NONE, 0));
        assert_eq!(latest(cluster), 1);
        // Each follower hears of it in the answer to a later fetch.
        assert_eq!(second.follow().high_watermark, 1);
        assert_eq!(third.follow().high_watermark, 1);
    });
}

#[test]
fn record_with_acks_1_is_answered_at_once_and_shown_later() {
    for_each_cluster(&small(), |cluster| {
        let mut replica = followed(cluster, &[101], MIN_ISR_2).remove(0);
        let mut producer = cluster.connect(1).unwrap();
        let reply = produce(&mut producer, TOPIC, 1, LONG, one("quick"));
        assert_eq!((reply.error_code, reply.base_offset), (code::NONE, 0));
        assert_eq!(latest(cluster), 0);
        replica.follow();
        assert_eq!(latest(cluster), 0);
        replica.follow();
        assert_eq!(latest(cluster), 1);
    });
}

#[test]
fn retried_batch_waits_for_its_replicas_like_the_first_and_is_not_written_twice() {
    for_each_cluster(&small(), |cluster| {
        let mut replica = followed(cluster, &[101], MIN_ISR_2).remove(0);
        let mut connection = cluster.connect(1).unwrap();
        let (id, epoch) = new_producer(&mut connection);
        let batch = Batch::small(3).from_producer(id, epoch, 0).encode();
        let first = produce_later(cluster, 1, TOPIC, -1, LONG, batch.clone());
        eventually(Cluster::PATIENCE, "the batch comes", || {
            replica.follow();
            (replica.at.fetch_offset == 3).then_some(())
        });
        let waits = Duration::from_millis(500);
        let retry = produce(&mut connection, TOPIC, -1, waits, batch.clone());
        assert_eq!(retry.error_code, code::REQUEST_TIMED_OUT, "{retry:?}");
        let retry = produce_later(cluster, 1, TOPIC, -1, LONG, batch);
        replica.follow();
        for answer in [first, retry] {
            let reply = answer.join().unwrap();
            assert_eq!((reply.error_code, reply.base_offset), (code::NONE, 0));
        }
        assert_eq!(latest(cluster), 3);
        assert_eq!(replica.follow().high_watermark, 3);
    });
}

#[test]
fn fetches_of_other_epochs_and_of_strangers_are_refused_with_kafkas_codes() {
    for_each_cluster(&small(), |cluster| {
        let mut replica = followed(cluster, &[101], MIN_ISR_2).remove(0);
        // One more leader epoch, and two records in each.
        let mut producer = cluster.connect(1).unwrap();
        let put = |producer: &mut Connection| {
            let reply = produce(producer, TOPIC, 1, LONG, Batch::small(2).encode());
            assert_eq!(reply.error_code, code::NONE);
        };
        put(&mut producer);
        replica.follow();
        replica.follow();
        bounce_leader(cluster, &mut replica);
        put(&mut producer);
        let here = Follower {
            leader_epoch: replica.at.leader_epoch,
            fetch_offset: 2,
            last_fetched_epoch: 0,
        };
        let with = |change: fn(&mut Follower)| {
            let mut at = here;
            change(&mut at);
            at
        };
        assert_eq!(replica.error_at(here), code::NONE);
        let older = with(|at| at.leader_epoch -= 1);
        assert_eq!(replica.error_at(older), code::FENCED_LEADER_EPOCH);
        let newer = with(|at| at.leader_epoch += 1);
        assert_eq!(replica.error_at(newer), code::UNKNOWN_LEADER_EPOCH);
        let unheard_of = with(|at| at.last_fetched_epoch = 77);
        assert_eq!(replica.error_at(unheard_of), code::OFFSET_OUT_OF_RANGE);
        let beyond = with(|at| {
            at.fetch_offset = 9;
            at.last_fetched_epoch = -1;
        });
        assert_eq!(replica.error_at(beyond), code::OFFSET_OUT_OF_RANGE);
        let topic = std::mem::replace(&mut replica.topic, Uuid::from_u128(77));
        assert_eq!(replica.error_at(here), code::UNKNOWN_TOPIC_ID);
        replica.topic = topic;

        // One that is no replica: it may be one soon if it knows an epoch.
        let stranger = HandMadeBroker::running(cluster, 103);
        let mut stranger = Replica::of(cluster, stranger, topic);
        assert_eq!(stranger.error_at(here), code::UNKNOWN_LEADER_EPOCH);
        let without_epoch = with(|at| at.leader_epoch = -1);
        assert_eq!(
            stranger.error_at(without_epoch),
            code::NOT_LEADER_OR_FOLLOWER
        );
    });
}

#[test]
fn diverging_follower_is_told_where_its_epoch_ends_and_gets_no_records() {
    for_each_cluster(&small(), |cluster| {
        let mut replica = followed(cluster, &[101], MIN_ISR_2).remove(0);
        let mut producer = cluster.connect(1).unwrap();
        let put = |producer: &mut Connection| {
            let reply = produce(producer, TOPIC, 1, LONG, Batch::small(2).encode());
            assert_eq!(reply.error_code, code::NONE);
        };
        put(&mut producer);
        replica.follow();
        replica.follow();
        bounce_leader(cluster, &mut replica);
        let second = replica.at.leader_epoch;
        put(&mut producer);
        // The leader has epoch 0 up to 2, and the present one from there to 4.
        let mut diverges = |fetch_offset: i64, last_fetched_epoch: i32| {
            let at = Follower {
                leader_epoch: second,
                fetch_offset,
                last_fetched_epoch,
            };
            let data = replica
                .broker
                .fetch(&mut replica.leader, replica.topic, at)
                .unwrap();
            assert_eq!(data.error_code, code::NONE, "{data:?}");
            let end = data.diverging_epoch;
            if end.end_offset >= 0 {
                assert_eq!(data.records.unwrap_or_default().len(), 0);
            }
            (end.epoch, end.end_offset)
        };
        assert_eq!(diverges(2, 0), (-1, -1), "it is where epoch 0 ends");
        assert_eq!(diverges(1, 0), (-1, -1), "it is behind");
        assert_eq!(
            diverges(3, 0),
            (0, 2),
            "it has one record too many of epoch 0"
        );
        assert_eq!(diverges(2, 1), (0, 2), "the leader has nothing of epoch 1");
        assert_eq!(diverges(9, 1), (0, 2));
        assert_eq!(
            diverges(7, second),
            (second, 4),
            "it is longer in the same epoch"
        );

        // None of that told the leader that anything is replicated.
        let mut consumer = cluster.connect(1).unwrap();
        assert_eq!(fetch(&mut consumer, TOPIC, 0).high_watermark, 2);
        assert_eq!(diverges(4, second), (-1, -1), "it has all");
        assert_eq!(latest(cluster), 4);
    });
}

/// Makes the follower the leader for a moment, so that broker 1 leads again in a later epoch.
#[track_caller]
pub(crate) fn bounce_leader(cluster: &Cluster, replica: &mut Replica) {
    let other = replica.broker.id();
    reassign(cluster, TOPIC, &[other, 1]);
    assert_eq!(elect_preferred(cluster, TOPIC), code::NONE);
    cluster.wait_for_partition(TOPIC, 0, "the follower leads", |view| view.leader == other);
    reassign(cluster, TOPIC, &[1, other]);
    assert_eq!(elect_preferred(cluster, TOPIC), code::NONE);
    let view = cluster.wait_for_partition(TOPIC, 0, "broker 1 leads", |view| view.leader == 1);
    replica.at.leader_epoch = view.leader_epoch;
    replica.wait_until_served();
}

#[test]
fn new_leader_does_not_say_where_the_end_is_before_its_high_watermark_has_come_to_its_epoch() {
    for_each_cluster(&small(), |cluster| {
        let mut replica = followed(cluster, &[101], MIN_ISR_2).remove(0);
        let mut producer = cluster.connect(1).unwrap();
        for count in [3, 2] {
            let reply = produce(&mut producer, TOPIC, 1, LONG, Batch::small(count).encode());
            assert_eq!(reply.error_code, code::NONE);
            if count == 3 {
                replica.follow();
                assert_eq!(replica.at.fetch_offset, 3);
                replica.follow();
            }
        }
        // The high watermark is 3 and the log ends at 5 when the new epoch begins.
        replica.at.fetch_offset = 3;
        bounce_leader(cluster, &mut replica);
        let mut consumer = cluster.connect(1).unwrap();
        let (error, _) = offset_at(&mut consumer, TOPIC, LATEST);
        assert_eq!(error, code::OFFSET_NOT_AVAILABLE);
        assert_eq!(offset_at(&mut consumer, TOPIC, -2), (code::NONE, 0));
        let data = fetch(&mut consumer, TOPIC, 0);
        assert_eq!((data.error_code, data.high_watermark), (code::NONE, 3));
        replica.at.last_fetched_epoch = 0;
        replica.at.fetch_offset = 5;
        assert_eq!(replica.ask().error_code, code::NONE);
        assert_eq!(offset_at(&mut consumer, TOPIC, LATEST), (code::NONE, 5));
    });
}

#[test]
fn follower_that_stopped_leaves_the_isr_by_time_and_returns_with_its_last_record() {
    let options = small().set("replica.lag.time.max.ms", LAG.as_millis());
    for_each_cluster(&options, |cluster| {
        let mut replica = followed(cluster, &[101], MIN_ISR_2).remove(0);
        let mut producer = cluster.connect(1).unwrap();
        let reply = produce(&mut producer, TOPIC, 1, LONG, Batch::small(10).encode());
        assert_eq!(reply.error_code, code::NONE);
        for _ in 0..2 {
            assert_eq!(replica.follow().error_code, code::NONE);
        }
        let caught_up = Instant::now();
        assert_eq!(replica.follow().high_watermark, 10);
        let reply = produce(&mut producer, TOPIC, 1, LONG, Batch::small(1000).encode());
        assert_eq!(reply.error_code, code::NONE);
        let view = cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1]);
        assert!(caught_up.elapsed() >= LAG, "{:?}", caught_up.elapsed());
        assert_eq!(view.leader_epoch, 0, "{view:?}");
        let reply = produce(&mut producer, TOPIC, -1, LONG, one("no"));
        assert_eq!(reply.error_code, code::NOT_ENOUGH_REPLICAS);

        // Behind the high watermark, which waits for a second replica, it is not taken back, however often it asks.
        replica.at.last_fetched_epoch = 0;
        replica.at.fetch_offset = 9;
        for _ in 0..3 {
            assert_eq!(replica.ask().error_code, code::NONE);
        }
        assert_eq!(cluster.partition(1, TOPIC, 0).unwrap().isr, [1]);
        replica.at.fetch_offset = 1010;
        assert_eq!(replica.ask().error_code, code::NONE);
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 101]);
        assert_eq!(replica.ask().high_watermark, 1010);
    });
}

#[test]
fn follower_one_batch_behind_and_one_that_is_silent_with_nothing_to_fetch_stay_in_the_isr() {
    let options = small().set("replica.lag.time.max.ms", LAG.as_millis());
    for_each_cluster(&options, |cluster| {
        let mut replica = followed(cluster, &[101], MIN_ISR_2).remove(0);
        let mut producer = cluster.connect(1).unwrap();
        let begun = Instant::now();
        // Each fetch gets where the log ended at the fetch before.
        while begun.elapsed() < 2 * LAG {
            let reply = produce(&mut producer, TOPIC, 1, LONG, one("again"));
            assert_eq!(reply.error_code, code::NONE);
            replica.follow();
            std::thread::sleep(LAG / 20);
        }
        assert_eq!(cluster.partition(1, TOPIC, 0).unwrap().isr, [1, 101]);
        replica.follow();
        assert_eq!(replica.follow().records.unwrap_or_default().len(), 0);
        std::thread::sleep(2 * LAG);
        assert_eq!(cluster.partition(1, TOPIC, 0).unwrap().isr, [1, 101]);
        let version_of_isr = cluster.partition(1, TOPIC, 0).unwrap().leader_epoch;
        assert_eq!(version_of_isr, 0);
    });
}

#[test]
fn replica_joins_the_isr_only_with_all_that_the_leader_had_when_its_epoch_began() {
    let options = small().set("replica.lag.time.max.ms", LAG.as_millis());
    for_each_cluster(&options, |cluster| {
        let [mut second, mut third] =
            <[Replica; 2]>::try_from(followed(cluster, &[101, 102], MIN_ISR_2))
                .ok()
                .unwrap();
        let mut producer = cluster.connect(1).unwrap();
        let put = |producer: &mut Connection, count: usize| {
            let reply = produce(producer, TOPIC, 1, LONG, Batch::small(count).encode());
            assert_eq!(reply.error_code, code::NONE);
        };
        // The third leaves, the second goes on: high watermark 3, end 6, ISR of two.
        put(&mut producer, 3);
        second.follow();
        eventually(Cluster::PATIENCE, "the third is out", || {
            second.follow();
            (cluster.partition(1, TOPIC, 0).unwrap().isr == [1, 101]).then_some(())
        });
        assert_eq!(latest(cluster), 3);
        put(&mut producer, 3);
        // A new epoch of broker 1 begins at 6; nobody is known to have more than 3, and the second is gone.
        reassign(cluster, TOPIC, &[101, 1, 102]);
        assert_eq!(elect_preferred(cluster, TOPIC), code::NONE);
        cluster.wait_for_partition(TOPIC, 0, "101 leads", |view| view.leader == 101);
        second.broker.fall_silent();
        let view = cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1]);

        third.at = Follower {
            leader_epoch: view.leader_epoch,
            fetch_offset: 4,
            last_fetched_epoch: 0,
        };
        third.wait_until_served();
        for _ in 0..3 {
            let data = third.ask();
            assert_eq!((data.error_code, data.high_watermark), (code::NONE, 3));
        }
        assert_eq!(
            cluster.partition(1, TOPIC, 0).unwrap().isr,
            [1],
            "4 is past the high watermark, not past 6"
        );
        third.at.fetch_offset = 6;
        assert_eq!(third.ask().error_code, code::NONE);
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 102]);
        assert_eq!(latest(cluster), 6);
    });
}

#[test]
fn earlier_life_of_a_broker_and_a_fenced_broker_do_not_count_as_followers() {
    let options = small().set("replica.lag.time.max.ms", LAG.as_millis());
    for_each_cluster(&options, |cluster| {
        let mut replica = followed(cluster, &[101], MIN_ISR_2).remove(0);
        let mut producer = cluster.connect(1).unwrap();
        let reply = produce(&mut producer, TOPIC, 1, LONG, Batch::small(5).encode());
        assert_eq!(reply.error_code, code::NONE);

        // Fenced: it leaves the ISR at once, and does not come back by fetching.
        replica.broker.fall_silent();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1]);
        wait_until_shown(cluster, 101, false);
        replica.at.fetch_offset = 5;
        replica.at.last_fetched_epoch = 0;
        assert_eq!(replica.ask().error_code, code::NONE);
        assert_eq!(cluster.partition(1, TOPIC, 0).unwrap().isr, [1]);

        // A new life: a fetch that the old one had sent is refused, from the moment at which the leader knows.
        let old_epoch = replica.broker.epoch;
        replica.broker.incarnation = Uuid::new_v4();
        assert_eq!(replica.broker.register().unwrap(), code::NONE);
        replica.broker.unfence().unwrap();
        let new_epoch = std::mem::replace(&mut replica.broker.epoch, old_epoch);
        eventually(Cluster::PATIENCE, "the leader knows the new epoch", || {
            (replica.ask().error_code == code::NOT_LEADER_OR_FOLLOWER).then_some(())
        });
        assert_eq!(cluster.partition(1, TOPIC, 0).unwrap().isr, [1]);
        replica.broker.epoch = new_epoch;
        // Until the leader has heard that it is unfenced too, fetching gets it nowhere.
        eventually(Cluster::PATIENCE, "the new life joins the ISR", || {
            assert_eq!(replica.ask().error_code, code::NONE);
            let view = cluster.partition(1, TOPIC, 0).unwrap();
            (view.isr == [1, 101]).then_some(())
        });
        assert_eq!(latest(cluster), 5);
    });
}

#[test]
fn raised_min_insync_replicas_holds_for_the_next_write() {
    for_each_cluster(&small(), |cluster| {
        let mut replicas = followed(cluster, &[101, 102], MIN_ISR_2);
        let third = replicas.pop().unwrap();
        let mut second = replicas.pop().unwrap();
        drop(third);
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 101]);
        let writes = produce_later(cluster, 1, TOPIC, -1, LONG, one("two"));
        eventually(Cluster::PATIENCE, "the write succeeds", || {
            second.follow();
            writes.is_finished().then_some(())
        });
        assert_eq!(writes.join().unwrap().error_code, code::NONE);
        set_topic_config(cluster, TOPIC, "min.insync.replicas", "3");
        let mut producer = cluster.connect(1).unwrap();
        eventually(Cluster::PATIENCE, "acks=all is refused", || {
            let reply = produce(
                &mut producer,
                TOPIC,
                -1,
                Duration::from_millis(300),
                one("three"),
            );
            (reply.error_code == code::NOT_ENOUGH_REPLICAS).then_some(())
        });
        set_topic_config(cluster, TOPIC, "min.insync.replicas", "2");
        eventually(Cluster::PATIENCE, "acks=all is taken", || {
            let writes = produce_later(cluster, 1, TOPIC, -1, LONG, one("two"));
            while !writes.is_finished() {
                second.follow();
            }
            (writes.join().unwrap().error_code == code::NONE).then_some(())
        });
    });
}
