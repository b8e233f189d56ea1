//! Who leads when a leader goes: in the order of the assignment, from the ISR, from the eligible leader replicas
//! (KIP-966), or nobody, unless an unclean election is allowed. Hand-made brokers lead and follow.

use compat_tests::cluster::{Cluster, HandMadeBroker, for_each_cluster};
use compat_tests::process::eventually;
use compat_tests::raw::code;
use uuid::Uuid;

use crate::registration::{small, wait_until_shown};
use crate::support::{elect, elect_preferred, set_topic_config};

const TOPIC: &str = "elected";
const UNCLEAN: i8 = 1;

/// Hand-made brokers with these ids, and a topic with partition 0 on them in this order.
fn brokers_with_topic<const N: usize>(
    cluster: &Cluster,
    ids: [i32; N],
    configs: &[(&str, &str)],
) -> ([HandMadeBroker; N], Uuid) {
    let brokers = ids.map(|id| HandMadeBroker::running(cluster, id));
    for id in ids {
        wait_until_shown(cluster, id, true);
    }
    let topic = cluster.create_topic(TOPIC, &[&ids], configs);
    (brokers, topic)
}

/// Lets the leader set the ISR to itself and these others.
#[track_caller]
fn change_isr(
    leader: &mut HandMadeBroker,
    topic: Uuid,
    (leader_epoch, partition_epoch): (i32, i32),
    others: &[(i32, i64)],
) {
    let isr = [&[(leader.id(), leader.epoch)], others].concat();
    let request = leader.isr_change(topic, leader_epoch, partition_epoch, &isr);
    let answer = leader.alter_partition(&request).unwrap().unwrap();
    assert_eq!(answer.error_code, code::NONE, "{answer:?}");
}

#[track_caller]
fn wait_for_nobody(cluster: &Cluster) {
    cluster.wait_for_partition(TOPIC, 0, "nobody leads", |view| view.leader == -1);
}

/// Waits until the topic shows these eligible leader replicas.
#[track_caller]
fn wait_for_elr(cluster: &Cluster, wanted: &[i32]) {
    eventually(
        Cluster::PATIENCE,
        &format!("eligible leader replicas {wanted:?}"),
        || (cluster.eligible_leader_replicas(1, TOPIC, 0).unwrap().0 == wanted).then_some(()),
    );
}

#[test]
fn next_leader_is_the_first_in_the_assignment_that_is_in_sync() {
    for_each_cluster(&small(), |cluster| {
        let (brokers, topic) =
            brokers_with_topic(cluster, [103, 102, 101], &[("min.insync.replicas", "1")]);
        let [mut first, mut second, third] = brokers;
        // The second in the assignment is not in sync.
        change_isr(&mut first, topic, (0, 0), &[(101, third.epoch)]);
        first.fall_silent();
        let view = cluster.wait_for_leader_and_isr(TOPIC, 0, 101, &[101]);
        assert_eq!(view.leader_epoch, 1, "{view:?}");
        assert_eq!(
            elect_preferred(cluster, TOPIC),
            code::PREFERRED_LEADER_NOT_AVAILABLE
        );
        assert_eq!(elect(cluster, TOPIC, UNCLEAN), code::ELECTION_NOT_NEEDED);
        second.fall_silent();
        wait_until_shown(cluster, 102, false);
        let view = cluster.partition(1, TOPIC, 0).unwrap();
        assert_eq!(
            (view.leader, view.leader_epoch),
            (101, 1),
            "a follower that goes changes nothing: {view:?}"
        );
        assert_eq!(view.offline, [102, 103]);
    });
}

#[test]
fn replica_out_of_sync_leads_only_by_an_unclean_election_that_somebody_asks_for() {
    for_each_cluster(&small(), |cluster| {
        let (brokers, topic) =
            brokers_with_topic(cluster, [101, 102], &[("min.insync.replicas", "1")]);
        let [mut leader, follower] = brokers;
        change_isr(&mut leader, topic, (0, 0), &[]);
        leader.fall_silent();
        wait_for_nobody(cluster);
        assert_eq!(
            elect_preferred(cluster, TOPIC),
            code::PREFERRED_LEADER_NOT_AVAILABLE
        );
        assert_eq!(elect(cluster, TOPIC, UNCLEAN), code::NONE);
        cluster.wait_for_leader_and_isr(TOPIC, 0, 102, &[102]);
        assert_eq!(elect(cluster, TOPIC, UNCLEAN), code::ELECTION_NOT_NEEDED);
        drop(follower);
        wait_for_nobody(cluster);
        assert_eq!(
            elect(cluster, TOPIC, UNCLEAN),
            code::ELIGIBLE_LEADERS_NOT_AVAILABLE
        );
    });
}

#[test]
fn last_in_sync_replica_leads_again_when_it_is_back() {
    for_each_cluster(&small(), |cluster| {
        let (brokers, topic) =
            brokers_with_topic(cluster, [101, 102], &[("min.insync.replicas", "1")]);
        let [mut leader, _follower] = brokers;
        change_isr(&mut leader, topic, (0, 0), &[]);
        leader.fall_silent();
        wait_for_nobody(cluster);
        leader.unfence().unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 101, &[101]);
    });
}

#[test]
fn unclean_election_happens_by_itself_where_the_topic_allows_it() {
    let options = small().set("unclean.leader.election.interval.ms", 1000);
    for_each_cluster(&options, |cluster| {
        let (brokers, topic) =
            brokers_with_topic(cluster, [101, 102], &[("min.insync.replicas", "1")]);
        let [mut leader, mut follower] = brokers;
        change_isr(&mut leader, topic, (0, 0), &[]);
        leader.fall_silent();
        wait_for_nobody(cluster);
        set_topic_config(cluster, TOPIC, "unclean.leader.election.enable", "true");
        cluster.wait_for_leader_and_isr(TOPIC, 0, 102, &[102]);
        // From now on without a pause: 102 goes while 101, which is not in sync, is there.
        leader.unfence().unwrap();
        wait_until_shown(cluster, 101, true);
        follower.fall_silent();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 101, &[101]);
    });
}

#[test]
fn replica_that_left_below_min_insync_replicas_stays_eligible_until_it_restarts_uncleanly() {
    for_each_cluster(&small(), |cluster| {
        let (brokers, topic) =
            brokers_with_topic(cluster, [101, 102, 103], &[("min.insync.replicas", "2")]);
        let [mut first, second, mut third] = brokers;
        let three = (103, third.epoch);
        change_isr(&mut first, topic, (0, 0), &[three]);
        wait_for_elr(cluster, &[]);
        change_isr(&mut first, topic, (0, 1), &[]);
        wait_for_elr(cluster, &[103]);
        // Back above the minimum, nobody is needed.
        change_isr(&mut first, topic, (0, 2), &[three]);
        wait_for_elr(cluster, &[]);
        change_isr(&mut first, topic, (0, 3), &[]);
        wait_for_elr(cluster, &[103]);

        // The last in sync goes: the eligible one leads.
        first.fall_silent();
        let view = cluster.wait_for_leader_and_isr(TOPIC, 0, 103, &[103]);
        assert_eq!(view.leader_epoch, 1, "{view:?}");
        wait_for_elr(cluster, &[101]);

        // 101 lost its tail: it says so by not naming its last epoch.
        first.epoch = -1;
        first.incarnation = Uuid::new_v4();
        assert_eq!(first.register().unwrap(), code::NONE);
        wait_for_elr(cluster, &[]);
        first.unfence().unwrap();

        // Now the only eligible one goes: nobody leads, though two are alive; it comes back, and leads.
        third.fall_silent();
        wait_for_nobody(cluster);
        wait_for_elr(cluster, &[103]);
        assert_eq!(cluster.partition(1, TOPIC, 0).unwrap().isr, [] as [i32; 0]);
        third.unfence().unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 103, &[103]);
        drop(second);
    });
}

#[test]
fn broker_that_stopped_cleanly_stays_eligible_when_it_registers_again() {
    for_each_cluster(&small(), |cluster| {
        let (brokers, topic) =
            brokers_with_topic(cluster, [101, 102], &[("min.insync.replicas", "2")]);
        let [mut first, mut second] = brokers;
        change_isr(&mut first, topic, (0, 0), &[]);
        wait_for_elr(cluster, &[102]);
        second.fall_silent();
        wait_until_shown(cluster, 102, false);
        // It names the epoch of its last life, as one does that found its mark of a clean stop.
        second.incarnation = Uuid::new_v4();
        assert_eq!(second.register().unwrap(), code::NONE);
        second.unfence().unwrap();
        wait_until_shown(cluster, 102, true);
        wait_for_elr(cluster, &[102]);
        first.fall_silent();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 102, &[102]);
    });
}

#[test]
fn leaders_go_back_to_the_preferred_replicas_by_themselves() {
    let options = small()
        .set("leader.imbalance.check.interval.seconds", 1)
        .set("leader.imbalance.per.broker.percentage", 0);
    for_each_cluster(&options, |cluster| {
        let (brokers, topic) =
            brokers_with_topic(cluster, [101, 102], &[("min.insync.replicas", "1")]);
        let [mut first, mut second] = brokers;
        first.fall_silent();
        let view = cluster.wait_for_leader_and_isr(TOPIC, 0, 102, &[102]);
        assert_eq!(view.leader_epoch, 1);
        first.unfence().unwrap();
        wait_until_shown(cluster, 101, true);
        change_isr(&mut second, topic, (1, 1), &[(101, first.epoch)]);
        let view = cluster.wait_for_leader_and_isr(TOPIC, 0, 101, &[101, 102]);
        assert_eq!(view.leader_epoch, 2, "{view:?}");
    });
}
