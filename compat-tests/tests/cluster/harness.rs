//! The harness itself: clusters of each shape start, and what is done to their nodes and links takes effect.

use compat_tests::cluster::{Cluster, ClusterOptions, Shape, for_each_cluster};
use compat_tests::process::eventually;

#[test]
fn three_combined_nodes_start_lose_one_and_take_it_back() {
    for_each_cluster(&ClusterOptions::new(), |cluster| {
        cluster.create_topic("kept", &[&[1, 2, 3], &[2, 3, 1], &[3, 1, 2]], &[]);
        cluster.kill(1).unwrap();
        cluster.wait_for_leader_and_isr("kept", 0, 2, &[2, 3]);
        cluster.start_again(1).unwrap();
        for (partition, leader) in [(0, 2), (1, 2), (2, 3)] {
            cluster.wait_for_leader_and_isr("kept", partition, leader, &[1, 2, 3]);
        }
        cluster.stop(3).unwrap();
        cluster.wait_for_leader_and_isr("kept", 2, 1, &[1, 2]);
        cluster.start_again(3).unwrap();
        cluster.wait_for_leader_and_isr("kept", 2, 1, &[1, 2, 3]);
    });
}

#[test]
fn controllers_apart_from_brokers_elect_another_when_the_active_one_ends() {
    let shape = Shape::Separate {
        controllers: 3,
        brokers: 2,
    };
    let options = ClusterOptions::new().shape(shape);
    for_each_cluster(&options, |cluster| {
        let before = cluster.quorum(1).unwrap();
        assert!(before.voters.keys().eq(&[3001, 3002, 3003]), "{before:?}");
        assert!(before.observers.keys().eq(&[1, 2]), "{before:?}");
        cluster.kill(before.leader).unwrap();
        let after = eventually(Cluster::PATIENCE, "another active controller", || {
            let now = cluster.quorum(1).ok()?;
            (now.leader != before.leader && now.leader > 0).then_some(now)
        });
        assert!(after.epoch > before.epoch, "{after:?}");
        cluster.create_topic("after", &[&[1, 2]], &[]);
    });
}

#[test]
fn a_broker_cut_off_from_the_others_is_fenced_until_the_network_heals() {
    let options = ClusterOptions::new().with_controller_apart().with_network();
    for_each_cluster(&options, |cluster| {
        cluster.create_topic("cut", &[&[1, 2, 3]], &[]);
        let network = cluster.network().unwrap();
        network.partition(&[1], &[2, 3, 3001]);
        cluster.wait_for_partition_via(&[2, 3], "cut", 0, "2 leads without 1", |view| {
            view.leader == 2 && view.isr == [2, 3] && view.offline == [1]
        });
        let stale = cluster.partition(1, "cut", 0).unwrap();
        assert_eq!(stale.leader, 1, "1 cannot know: {stale:?}");
        network.heal();
        cluster.wait_for_leader_and_isr("cut", 0, 2, &[1, 2, 3]);
    });
}

#[test]
fn a_paused_broker_is_fenced_and_comes_back() {
    let options = ClusterOptions::new().with_controller_apart();
    for_each_cluster(&options, |cluster| {
        cluster.create_topic("paused", &[&[1, 2, 3]], &[]);
        cluster.pause(1).unwrap();
        cluster.wait_for_leader_and_isr("paused", 0, 2, &[2, 3]);
        cluster.resume(1).unwrap();
        cluster.wait_for_leader_and_isr("paused", 0, 2, &[1, 2, 3]);
    });
}
