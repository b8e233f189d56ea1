//! kafka-topics.sh.

use compat_tests::cluster::{Cluster, ClusterOptions, for_each_cluster, for_each_shared_cluster};
use compat_tests::java_tools::blank;

use super::tool;

const TOPIC: &str = "learn.09.orders";

/// The lines of partitions that `--describe` with this filter prints, without what is the same in all.
fn filtered(cluster: &Cluster, filter: &str) -> Vec<String> {
    let printed = tool(cluster, "topics", &["--describe", filter]);
    let mut lines: Vec<String> = printed
        .lines()
        .filter(|line| !line.contains("Topic: __"))
        .map(|line| line.trim_start_matches("\tTopic: ").replace('\t', " "))
        .collect();
    lines.sort_unstable();
    lines
}

#[test]
fn topic_with_three_replicas_is_created_described_and_grows() {
    for_each_shared_cluster(|cluster| {
        let create = [
            "--create",
            "--topic",
            TOPIC,
            "--partitions",
            "3",
            "--replication-factor",
            "3",
            "--config",
            "min.insync.replicas=2",
        ];
        let created = tool(cluster, "topics", &create);
        assert!(
            created.ends_with("Created topic learn.09.orders.\n"),
            "{created}"
        );
        let describe = ["--describe", "--topic", TOPIC];
        let described = blank(&tool(cluster, "topics", &describe), &["TopicId: "]);
        let mut lines = described.lines();
        assert_eq!(
            lines.next(),
            Some(
                "Topic: learn.09.orders\tTopicId: *\tPartitionCount: 3\tReplicationFactor: 3\t\
                 Configs: min.insync.replicas=2"
            )
        );
        let mut leaders = Vec::new();
        for (partition, line) in lines.enumerate() {
            let view = cluster
                .partition(1, TOPIC, i32::try_from(partition).unwrap())
                .unwrap();
            let replicas = view
                .replicas
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(",");
            let leader = view.leader;
            assert_eq!(
                line,
                format!(
                    "\tTopic: {TOPIC}\tPartition: {partition}\tLeader: {leader}\tReplicas: {replicas}\t\
                     Isr: {replicas}\tElr: \tLastKnownElr: "
                )
            );
            assert_eq!(leader, view.replicas[0], "the first leads");
            leaders.push(leader);
        }
        leaders.sort_unstable();
        assert_eq!(leaders, [1, 2, 3], "each broker leads one");

        let grow = ["--alter", "--topic", TOPIC, "--partitions", "5"];
        assert_eq!(tool(cluster, "topics", &grow), "");
        for partition in [3, 4] {
            let view = cluster
                .wait_for_partition(TOPIC, partition, "in sync", |view| view.isr == [1, 2, 3]);
            assert_eq!(view.leader, view.replicas[0]);
        }
        let described = tool(cluster, "topics", &describe);
        assert!(described.contains("PartitionCount: 5"), "{described}");
    });
}

#[test]
fn filters_list_partitions_by_what_is_missing() {
    for_each_cluster(&ClusterOptions::new().with_controller_apart(), |cluster| {
        let create = |topic: &str, assignment: &str, min_isr: &str| {
            let args = [
                "--create",
                "--topic",
                topic,
                "--replica-assignment",
                assignment,
                "--config",
                min_isr,
            ];
            tool(cluster, "topics", &args);
        };
        create("full", "1:2:3,3:1:2", "min.insync.replicas=2");
        create("single", "3", "min.insync.replicas=1");
        cluster.wait_for_leader_and_isr("full", 1, 3, &[1, 2, 3]);
        cluster.wait_for_leader_and_isr("single", 0, 3, &[3]);
        let filters = |cluster: &Cluster| {
            [
                "--under-replicated-partitions",
                "--at-min-isr-partitions",
                "--under-min-isr-partitions",
                "--unavailable-partitions",
            ]
            .map(|filter| filtered(cluster, filter))
        };
        let none: [String; 0] = [];
        let single = "single Partition: 0 Leader: 3 Replicas: 3 Isr: 3 Elr:  LastKnownElr: ";
        let [under_replicated, at_min_isr, under_min_isr, unavailable] = filters(cluster);
        assert_eq!(under_replicated, none);
        assert_eq!(
            at_min_isr,
            [single],
            "its one replica is all that it asks for"
        );
        assert_eq!(under_min_isr, none);
        assert_eq!(unavailable, none);

        // One is missing: at the minimum; what only it had is not available.
        cluster.stop(3).unwrap();
        cluster.wait_for_leader_and_isr("full", 1, 1, &[1, 2]);
        cluster.wait_for_partition("single", 0, "nobody leads", |view| view.leader == -1);
        let full = [
            "full Partition: 0 Leader: 1 Replicas: 1,2,3 Isr: 1,2 Elr:  LastKnownElr: ",
            "full Partition: 1 Leader: 1 Replicas: 3,1,2 Isr: 1,2 Elr:  LastKnownElr: ",
        ];
        let single = "single Partition: 0 Leader: none Replicas: 3 Isr:  Elr: 3 LastKnownElr: 3";
        let [under_replicated, at_min_isr, under_min_isr, unavailable] = filters(cluster);
        assert_eq!(under_replicated, [full[0], full[1], single]);
        assert_eq!(at_min_isr, full);
        assert_eq!(under_min_isr, [single]);
        assert_eq!(unavailable, [single]);

        // Two are missing: below the minimum, and still there to be read.
        cluster.stop(2).unwrap();
        cluster.wait_for_leader_and_isr("full", 1, 1, &[1]);
        let full = [
            "full Partition: 0 Leader: 1 Replicas: 1,2,3 Isr: 1 Elr: 2 LastKnownElr: ",
            "full Partition: 1 Leader: 1 Replicas: 3,1,2 Isr: 1 Elr: 2 LastKnownElr: ",
        ];
        let [under_replicated, at_min_isr, under_min_isr, unavailable] = filters(cluster);
        assert_eq!(under_replicated, [full[0], full[1], single]);
        assert_eq!(at_min_isr, none);
        assert_eq!(under_min_isr, [full[0], full[1], single]);
        assert_eq!(unavailable, [single]);

        cluster.start_again(2).unwrap();
        cluster.start_again(3).unwrap();
        cluster.wait_for_leader_and_isr("full", 0, 1, &[1, 2, 3]);
        cluster.wait_for_leader_and_isr("full", 1, 1, &[1, 2, 3]);
        cluster.wait_for_leader_and_isr("single", 0, 3, &[3]);
        let [under_replicated, _, under_min_isr, unavailable] = filters(cluster);
        assert_eq!(
            (under_replicated, under_min_isr, unavailable),
            (vec![], vec![], vec![])
        );
    });
}
