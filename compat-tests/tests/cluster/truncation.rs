//! What a follower makes of its leader's answers: broker 1 follows a hand-made leader, whose log differs from its own.

use compat_tests::cluster::{
    Cluster, Follower, HandMadeBroker, HandMadeLeader, LeaderLog, for_each_cluster,
};
use compat_tests::process::eventually;
use compat_tests::raw::{Batch, code};

use crate::registration::{small, wait_until_shown};
use crate::support::{LONG, elect_preferred, epochs_of_batches, fetch, produce, reassign};

const TOPIC: &str = "truncated";
const HAND_MADE: i32 = 101;

/// Broker 1 and a hand-made broker with one partition, which either leads in turn.
struct Pair<'a> {
    cluster: &'a Cluster,
    leader: HandMadeLeader,
    _broker: HandMadeBroker,
}

impl<'a> Pair<'a> {
    /// The hand-made broker leads in epoch 0 with this log.
    #[track_caller]
    fn start(cluster: &'a Cluster, log: LeaderLog) -> Self {
        let leader = HandMadeLeader::listen().unwrap();
        leader.lead(0, log);
        let mut broker = HandMadeBroker::new(cluster, HAND_MADE).unwrap();
        broker.port = leader.port();
        assert_eq!(broker.register().unwrap(), code::NONE);
        broker.unfence().unwrap();
        wait_until_shown(cluster, HAND_MADE, true);
        cluster.create_topic(TOPIC, &[&[HAND_MADE, 1]], &[("min.insync.replicas", "1")]);
        Self {
            cluster,
            leader,
            _broker: broker,
        }
    }

    /// Makes this broker the leader; gives the new epoch.
    #[track_caller]
    fn elect(&self, id: i32) -> i32 {
        let other = if id == 1 { HAND_MADE } else { 1 };
        reassign(self.cluster, TOPIC, &[id, other]);
        assert_eq!(elect_preferred(self.cluster, TOPIC), code::NONE);
        let what = format!("{id} leads");
        let view = self
            .cluster
            .wait_for_partition(TOPIC, 0, &what, |view| view.leader == id);
        view.leader_epoch
    }

    /// Lets broker 1 lead and the hand-made broker after it, with this log for its epoch.
    #[track_caller]
    fn lead_again(&self, log: impl FnOnce(i32) -> LeaderLog) -> i32 {
        let epoch = self.elect(1) + 1;
        // It must be ready before it is elected: the follower asks at once.
        self.leader.lead(epoch, log(epoch));
        assert_eq!(self.elect(HAND_MADE), epoch);
        epoch
    }

    /// Waits until broker 1 has the same log.
    #[track_caller]
    fn wait_until_equal(&self, log: &LeaderLog) {
        let found = epochs_of_batches(self.cluster, 1, TOPIC, log.end_offset());
        assert_eq!(found, log.epochs_of_batches());
        assert_eq!(self.leader.troubles(), [] as [String; 0]);
    }

    /// Where broker 1 asked in the present epoch.
    fn asked(&self) -> Vec<(i64, i32)> {
        let asked = self.leader.asked();
        let asked = asked.iter();
        asked
            .map(|follower: &Follower| (follower.fetch_offset, follower.last_fetched_epoch))
            .collect()
    }
}

#[test]
fn follower_copies_its_leaders_log_with_all_its_epochs() {
    for_each_cluster(&small(), |cluster| {
        let log = LeaderLog::of(&[(0, 5)]);
        let pair = Pair::start(cluster, log.clone());
        pair.wait_until_equal(&log);
        let mut copy = None;
        pair.lead_again(|epoch| {
            copy.insert(LeaderLog::of(&[(0, 5), (1, 7), (epoch, 12)]))
                .clone()
        });
        pair.wait_until_equal(&copy.unwrap());
        assert_eq!(
            pair.asked()[0].0,
            5,
            "it goes on where it stood: {:?}",
            pair.asked()
        );
    });
}

#[test]
fn follower_drops_what_it_wrote_as_a_leader_and_its_new_leader_does_not_have() {
    for_each_cluster(&small(), |cluster| {
        let log = LeaderLog::of(&[(0, 10)]);
        let pair = Pair::start(cluster, log.clone());
        pair.wait_until_equal(&log);
        // Broker 1 leads in epoch 1 and writes 10 to 19; the next leader has 10 to 19 of epoch 0 (KIP-279).
        assert_eq!(pair.elect(1), 1);
        let mut producer = cluster.connect(1).unwrap();
        let reply = produce(&mut producer, TOPIC, 1, LONG, Batch::small(10).encode());
        assert_eq!((reply.error_code, reply.base_offset), (code::NONE, 10));
        let log = LeaderLog::of(&[(0, 20), (2, 30)]);
        pair.leader.lead(2, log.clone());
        assert_eq!(pair.elect(HAND_MADE), 2);
        pair.wait_until_equal(&log);
        assert_eq!(pair.asked()[..2], [(20, 1), (10, 0)], "{:?}", pair.asked());
    });
}

#[test]
fn divergence_in_several_epochs_is_undone_epoch_by_epoch() {
    for_each_cluster(&small(), |cluster| {
        let pair = Pair::start(cluster, LeaderLog::of(&[]));
        pair.lead_again(|_| LeaderLog::of(&[]));
        let theirs = LeaderLog::of(&[(0, 5), (1, 10), (3, 15), (4, 20)]);
        assert_eq!(pair.lead_again(|_| theirs.clone()), 4);
        pair.wait_until_equal(&theirs);
        let ours = LeaderLog::of(&[(0, 7), (2, 12), (6, 21)]);
        assert_eq!(pair.lead_again(|_| ours.clone()), 6);
        pair.wait_until_equal(&ours);
        let asked = pair.asked();
        // Its epoch 5 has no record and goes with the first answer.
        let stops: Vec<i64> = asked.iter().map(|&(offset, _)| offset).collect();
        let mut sorted = stops.clone();
        sorted.dedup();
        assert_eq!(sorted[..3], [20, 10, 5], "{asked:?}");
        assert!(sorted[3..].is_sorted(), "{asked:?}");
    });
}

#[test]
fn follower_without_a_common_epoch_starts_from_nothing() {
    for_each_cluster(&small(), |cluster| {
        let pair = Pair::start(cluster, LeaderLog::of(&[]));
        pair.lead_again(|_| LeaderLog::of(&[]));
        let theirs = LeaderLog::of(&[(3, 3)]);
        assert_eq!(pair.lead_again(|_| theirs.clone()), 4);
        pair.wait_until_equal(&theirs);
        let ours = LeaderLog::of(&[(1, 1), (2, 4)]);
        pair.lead_again(|_| ours.clone());
        pair.wait_until_equal(&ours);
    });
}

#[test]
fn follower_longer_in_the_same_epoch_is_cut_to_its_leaders_end() {
    for_each_cluster(&small(), |cluster| {
        let log = LeaderLog::of(&[(0, 4)]);
        let pair = Pair::start(cluster, log.clone());
        pair.wait_until_equal(&log);
        // As of a leader that lost its tail and did not change its epoch.
        let shorter = LeaderLog::of(&[(0, 2)]);
        pair.leader.lead(0, shorter.clone());
        pair.wait_until_equal(&shorter);
        let longer = LeaderLog::of(&[(0, 6)]);
        pair.leader.lead(0, longer.clone());
        pair.wait_until_equal(&longer);
        assert_eq!(pair.asked()[0], (2, 0));
    });
}

#[test]
fn batches_of_an_epoch_after_the_one_that_was_asked_for_are_not_taken() {
    for_each_cluster(&small(), |cluster| {
        let log = LeaderLog::of(&[(0, 3)]);
        let pair = Pair::start(cluster, log.clone());
        pair.wait_until_equal(&log);
        let from_the_future = LeaderLog::of(&[(0, 5), (3, 8)]);
        pair.leader.lead(0, from_the_future);
        eventually(Cluster::PATIENCE, "it has all of its epoch", || {
            pair.asked().contains(&(5, 0)).then_some(())
        });
        // It asks for the rest again and again, and takes none of it.
        for _ in 0..10 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            assert!(
                pair.asked().iter().all(|&(offset, _)| offset <= 5),
                "{:?}",
                pair.asked()
            );
        }
        let right = LeaderLog::of(&[(0, 8)]);
        pair.leader.lead(0, right.clone());
        pair.wait_until_equal(&right);
    });
}

#[test]
fn follower_below_its_leaders_first_offset_starts_there() {
    for_each_cluster(&small(), |cluster| {
        let log = LeaderLog::of(&[(0, 3)]);
        let pair = Pair::start(cluster, log.clone());
        pair.wait_until_equal(&log);
        let later = LeaderLog::from(100, &[(0, 105)]);
        pair.leader.lead(0, later.clone());
        let mut consumer = cluster.connect(1).unwrap();
        eventually(Cluster::PATIENCE, "broker 1 starts at 100", || {
            let data = fetch(&mut consumer, TOPIC, 100);
            (data.error_code == code::NONE
                && data.log_start_offset == 100
                && data.high_watermark == 105)
                .then_some(())
        });
        let data = fetch(&mut consumer, TOPIC, 2);
        assert_eq!(data.error_code, code::OFFSET_OUT_OF_RANGE, "{data:?}");
        assert_eq!(pair.leader.troubles(), [] as [String; 0]);
    });
}

#[test]
fn corrupt_batch_is_not_taken_and_the_follower_asks_again() {
    for_each_cluster(&small(), |cluster| {
        let log = LeaderLog::of(&[(0, 3)]);
        let pair = Pair::start(cluster, log.clone());
        pair.wait_until_equal(&log);
        let good = LeaderLog::of(&[(0, 6)]);
        pair.leader.lead(0, good.clone().with_corrupt_batch_at(3));
        eventually(Cluster::PATIENCE, "it asks", || {
            (!pair.asked().is_empty()).then_some(())
        });
        std::thread::sleep(std::time::Duration::from_secs(2));
        assert!(
            pair.asked().iter().all(|&(offset, _)| offset == 3),
            "{:?}",
            pair.asked()
        );
        let mut consumer = cluster.connect(1).unwrap();
        assert_eq!(fetch(&mut consumer, TOPIC, 0).high_watermark, 3);
        pair.leader.lead(0, good.clone());
        pair.wait_until_equal(&good);
    });
}

#[test]
fn consumers_of_a_follower_see_what_its_leader_says_is_committed() {
    for_each_cluster(&small(), |cluster| {
        let log = LeaderLog::of(&[(0, 5)]);
        let pair = Pair::start(cluster, log.clone());
        pair.wait_until_equal(&log);
        let longer = LeaderLog::of(&[(0, 9)]);
        pair.leader.lead(0, longer.clone());
        pair.leader.set_high_watermark(6);
        eventually(Cluster::PATIENCE, "it has all", || {
            pair.asked().contains(&(9, 0)).then_some(())
        });
        let mut consumer = cluster.connect(1).unwrap();
        let seen = epochs_of_batches(cluster, 1, TOPIC, 6);
        assert_eq!(seen, LeaderLog::of(&[(0, 6)]).epochs_of_batches());
        // Between the high watermark and the end there is nothing yet, beyond the end never.
        let data = fetch(&mut consumer, TOPIC, 7);
        assert_eq!(
            (data.error_code, data.records.unwrap_or_default().len()),
            (code::NONE, 0)
        );
        let data = fetch(&mut consumer, TOPIC, 10);
        assert_eq!(data.error_code, code::OFFSET_OUT_OF_RANGE);
        pair.leader.set_high_watermark(9);
        pair.wait_until_equal(&longer);
    });
}
