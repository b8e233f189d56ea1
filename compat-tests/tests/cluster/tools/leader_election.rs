//! kafka-leader-election.sh.

use compat_tests::cluster::{Cluster, ClusterOptions, for_each_cluster};

use super::{file_of, refused, tool};

const TOPIC: &str = "led";

/// Asks for the preferred leaders of these partitions.
#[track_caller]
fn elect(cluster: &Cluster, what: &[&str]) -> String {
    let preferred = ["--election-type", "preferred"];
    tool(cluster, "leader-election", &[&preferred, what].concat())
}

#[test]
fn preferred_election_gives_leadership_back() {
    for_each_cluster(&ClusterOptions::new(), |cluster| {
        cluster.create_topic(TOPIC, &[&[1, 2, 3], &[2, 3, 1]], &[]);
        cluster.create_topic("other", &[&[1, 2, 3]], &[]);
        let partition = ["--topic", TOPIC, "--partition", "0"];
        assert_eq!(
            elect(cluster, &partition),
            "Valid replica already elected for partitions led-0\n"
        );

        cluster.kill(1).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 2, &[2, 3]);
        let failed = refused(
            cluster,
            "leader-election",
            &[&["--election-type", "preferred"], &partition[..]].concat(),
        );
        let said = "Error completing leader election (PREFERRED) for partition: led-0: \
                    org.apache.kafka.common.errors.PreferredLeaderNotAvailableException";
        assert!(failed.contains(said), "{failed}");
        cluster.start_again(1).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 2, &[1, 2, 3]);
        cluster.wait_for_leader_and_isr("other", 0, 2, &[1, 2, 3]);

        assert_eq!(
            elect(cluster, &partition),
            "Successfully completed leader election (PREFERRED) for partitions led-0\n"
        );
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 2, 3]);
        // What is led by its preferred replica already is not mentioned.
        let all = elect(cluster, &["--all-topic-partitions"]);
        assert!(
            all.contains("Successfully completed leader election (PREFERRED) for partitions "),
            "{all}"
        );
        assert!(all.contains("other-0") && !all.contains("led-"), "{all}");
        cluster.wait_for_leader_and_isr("other", 0, 1, &[1, 2, 3]);
        let file = file_of(r#"{"partitions": [{"topic": "led", "partition": 1}]}"#);
        assert_eq!(
            elect(
                cluster,
                &["--path-to-json-file", file.path().to_str().unwrap()]
            ),
            "Valid replica already elected for partitions led-1\n"
        );
    });
}

#[test]
fn unclean_election_is_for_partitions_that_nobody_leads() {
    for_each_cluster(&ClusterOptions::new().with_controller_apart(), |cluster| {
        cluster.create_topic(TOPIC, &[&[1, 2]], &[("min.insync.replicas", "1")]);
        let unclean = [
            "--election-type",
            "unclean",
            "--topic",
            TOPIC,
            "--partition",
            "0",
        ];
        assert_eq!(
            tool(cluster, "leader-election", &unclean),
            "Valid replica already elected for partitions led-0\n"
        );
        cluster.kill(2).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1]);
        cluster.kill(1).unwrap();
        cluster.start_again(2).unwrap();
        cluster.wait_for_partition(TOPIC, 0, "nobody leads", |view| view.leader == -1);
        assert_eq!(
            tool(cluster, "leader-election", &unclean),
            "Successfully completed leader election (UNCLEAN) for partitions led-0\n"
        );
        cluster.wait_for_leader_and_isr(TOPIC, 0, 2, &[2]);
        cluster.start_again(1).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 2, &[1, 2]);
    });
}
