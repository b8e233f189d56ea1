//! kafka-topics.sh.

use compat_tests::cluster::{Cluster, for_each_shared_cluster};
use compat_tests::java_tools::blank;
use rustix::process::Signal;

use super::frame::{both, both_via, ours};

fn without_ids(text: &str) -> String {
    blank(text, &["TopicId: "])
}

#[test]
fn topics_are_created_described_grown_and_deleted() {
    for_each_shared_cluster(|cluster| {
        let topics = |args: &[&str]| both(cluster, "topics", args);
        topics(&[
            "--create",
            "--topic",
            "tt-@",
            "--partitions",
            "2",
            "--config",
            "retention.ms=5000",
            "--config=cleanup.policy=compact",
        ])
        .same();
        topics(&[
            "--create",
            "--topic=dots.tt_@",
            "--replica-assignment",
            "1:2,2:3",
        ])
        .same();
        topics(&["--create", "--topic", "tt-@", "--if-not-exists"]).same();
        let refused = topics(&["--create", "--topic", "tt-@"]).refused();
        assert_eq!(
            refused,
            "Error while executing topic command : Topic 'tt-@' already exists."
        );
        cluster.wait_for_partition("tt-viaours", 1, "a leader", |view| view.leader >= 0);
        cluster.wait_for_partition("tt-viajava", 1, "a leader", |view| view.leader >= 0);
        cluster.wait_for_partition("dots.tt_viaours", 1, "a leader", |view| view.leader >= 0);
        cluster.wait_for_partition("dots.tt_viajava", 1, "a leader", |view| view.leader >= 0);
        let described = topics(&["--describe", "--topic", "dots.tt_@"]).same_after(without_ids);
        assert!(
            described.contains("Partition: 1\tLeader: 2\tReplicas: 2,3\tIsr: 2,3"),
            "{described}"
        );
        topics(&[
            "--alter",
            "--topic",
            "dots.tt_@",
            "--partitions",
            "3",
            "--replica-assignment",
            "1:2,2:3,3:1",
        ])
        .same();
        topics(&["--alter", "--topic", "tt-@", "--partitions", "3"]).same();
        let refused = topics(&["--alter", "--topic", "tt-@", "--partitions", "2"]).refused();
        assert!(refused.contains("partition"), "{refused}");
        topics(&["--delete", "--topic", "dots.tt_@"]).same();
        topics(&["--delete", "--topic", "(dots.)?tt[-_]@"]).same();
        let refused = topics(&["--delete", "--topic", "tt-@"]).refused();
        assert_eq!(
            refused,
            "Error while executing topic command : Topic 'tt-@' does not exist as expected"
        );
        topics(&["--delete", "--topic", "tt-@", "--if-exists"]).same();
        topics(&[
            "--alter",
            "--topic",
            "tt-@",
            "--if-exists",
            "--partitions",
            "9",
        ])
        .same();
    });
}

#[test]
fn topics_are_listed_and_described_alike() {
    for_each_shared_cluster(|cluster| {
        for (name, assignment) in [
            ("ld-a", &[&[1, 2, 3][..], &[2, 3, 1]][..]),
            ("ld-b", &[&[3]]),
            ("ld-c.d", &[&[2, 1], &[1, 3], &[3, 2]]),
        ] {
            cluster.create_topic(
                name,
                assignment,
                &[
                    ("segment.bytes", "1048576"),
                    ("cleanup.policy", "compact,delete"),
                    ("min.insync.replicas", "1"),
                ],
            );
        }
        let topics = |args: &[&str]| both(cluster, "topics", args);
        topics(&["--list", "--topic", "ld-.*"]).same();
        topics(&["--list", "--exclude-internal", "--topic", "ld-a,ld-b"]).same();
        topics(&["--list", "--topic", "nothing"]).same();
        let all = topics(&["--describe", "--topic", "ld-.*"]).same();
        assert_eq!(all.lines().count(), 9, "{all}");
        topics(&["--describe", "--topic", "ld-.*", "--topics-with-overrides"]).same();
        topics(&[
            "--describe",
            "--topic",
            "ld-.*",
            "--partition-size-limit-per-response",
            "1",
        ])
        .same();
        topics(&["--describe", "--topic", "ld-.*", "--at-min-isr-partitions"]).same();
        topics(&["--describe", "--topic", "nothing", "--if-exists"]).same();
        topics(&[
            "--describe",
            "--exclude-internal",
            "--topic",
            "__.*",
            "--if-exists",
        ])
        .same();
        let id = all
            .lines()
            .next()
            .unwrap()
            .split(['\t', ' '])
            .nth(3)
            .unwrap();
        let by_id = topics(&["--describe", "--topic-id", id]).same();
        assert!(by_id.contains("Elr: N/A"), "{by_id}");
        for args in [
            &["--describe", "--topic", "nothing"][..],
            &["--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAQ"],
            &["--describe", "--topic", "ld-["],
            &["--create", "--topic", "x", "--partitions", "0"],
            &["--create", "--topic", "x", "--replication-factor", "0"],
            &["--create", "--topic", "x", "--replication-factor", "4"],
            &["--create", "--topic", "x", "--config", "nonsense"],
            &["--create", "--topic", "x", "--config", "nonsense=1"],
            &["--create", "--topic", "x", "--config", "retention.ms=soon"],
            &["--create", "--topic", "x", "--replica-assignment", "1:1"],
            &["--create", "--topic", "x", "--replica-assignment", "1:2,2"],
            &["--create", "--topic", "x", "--replica-assignment", "1:x"],
            &["--create", "--topic", "x", "--replica-assignment", "1:9"],
            &["--create", "--topic", "not/a/name"],
            &["--create"],
            &["--list", "--describe"],
            &["--list", "--partitions", "1"],
            &["--describe", "--if-exists"],
            &["--alter", "--topic", "x"],
            &[
                "--create",
                "--topic",
                "x",
                "--replica-assignment",
                "1",
                "--partitions",
                "1",
            ],
        ] {
            topics(args).refused();
        }
    });
}

/// A broker that answers no more is missed in the ISR, and what shows that is the same.
#[test]
fn partitions_in_need_are_found() {
    for_each_shared_cluster(|cluster| {
        let min_isr = [("min.insync.replicas", "2")];
        cluster.create_topic("need-a", &[&[1, 2, 3], &[2, 3, 1]], &min_isr);
        cluster.create_topic("need-b", &[&[1, 3], &[3, 1]], &min_isr);
        cluster.create_topic("need-c", &[&[3]], &[]);
        cluster.node(3).unwrap().signal(Signal::STOP).unwrap();
        let is_missed = |topic: &str, partition| {
            cluster.wait_for_partition_via(&[1, 2], topic, partition, "3 is missed", |view| {
                !view.isr.contains(&3) || view.leader < 0
            });
        };
        is_missed("need-a", 0);
        is_missed("need-b", 0);
        is_missed("need-b", 1);
        is_missed("need-c", 0);
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| compare(cluster)));
        cluster.node(3).unwrap().signal(Signal::CONT).unwrap();
        if let Err(panic) = seen {
            std::panic::resume_unwind(panic);
        }
        cluster.wait_for_partition("need-b", 0, "3 is back", |view| view.isr.contains(&3));
    });
}

#[track_caller]
fn compare(cluster: &Cluster) {
    let bootstrap = cluster.bootstrap_of(&[1, 2]);
    for filter in [
        "--under-replicated-partitions",
        "--unavailable-partitions",
        "--under-min-isr-partitions",
        "--at-min-isr-partitions",
    ] {
        let args = ["--describe", "--topic", "need-.*", filter];
        let shown = both_via(&bootstrap, cluster, "topics", &args).same();
        assert!(!shown.is_empty(), "{filter}");
    }
    let args = ["--describe", "--topic", "need-.*"];
    both_via(&bootstrap, cluster, "topics", &args).same();
}

/// What one tool makes, the other sees.
#[test]
fn ours_lists_what_apache_kafkas_tool_creates() {
    for_each_shared_cluster(|cluster| {
        both(cluster, "topics", &["--create", "--topic", "seen-@"]).same();
        let list = ours(cluster, "topics", &["--list"]);
        assert!(list.contains("seen-viajava\nseen-viaours\n"), "{list}");
    });
}
