//! kafka-leader-election.sh.

use compat_tests::cluster::for_each_shared_cluster;

use super::frame::{both, create_both, file_of, path};

#[test]
fn elections_are_told_alike() {
    for_each_shared_cluster(|cluster| {
        create_both(cluster, "le-@", &[&[1, 2], &[2, 3], &[3, 1]]);
        let elect = |args: &[&str]| both(cluster, "leader-election", args);
        let told = elect(&[
            "--election-type",
            "preferred",
            "--topic",
            "le-@",
            "--partition",
            "1",
        ])
        .same();
        assert_eq!(
            told,
            "Valid replica already elected for partitions le-@-1\n"
        );
        elect(&["--election-type", "PREFERRED", "--all-topic-partitions"]).same();
        elect(&[
            "--election-type",
            "unclean",
            "--topic",
            "le-@",
            "--partition",
            "1",
        ])
        .same();
        let entries: Vec<_> = (0..3)
            .map(|partition| format!(r#"{{"topic":"le-viajava","partition":{partition}}}"#))
            .collect();
        let file = file_of(&format!(r#"{{"partitions":[{}]}}"#, entries.join(",")));
        elect(&[
            "--election-type",
            "preferred",
            "--path-to-json-file",
            path(&file),
        ])
        .same();
        elect(&[
            "--election-type",
            "preferred",
            "--topic",
            "le-@",
            "--partition",
            "9",
        ])
        .refused();
        elect(&[
            "--election-type",
            "preferred",
            "--topic",
            "nothing",
            "--partition",
            "0",
        ])
        .refused();
        let twice = file_of(&format!(r#"{{"partitions":[{0},{0}]}}"#, entries[0]));
        elect(&[
            "--election-type",
            "preferred",
            "--path-to-json-file",
            path(&twice),
        ])
        .refused();
        let nothing = file_of("{}");
        elect(&[
            "--election-type",
            "preferred",
            "--path-to-json-file",
            path(&nothing),
        ])
        .refused();
        elect(&["--election-type", "any", "--all-topic-partitions"])
            .refused_with("Cannot parse argument 'any' of option election-type");
    });
}

/// The leader leaves, comes back, and is elected again.
#[test]
fn the_preferred_leader_is_elected() {
    for_each_shared_cluster(|cluster| {
        create_both(cluster, "pl-@", &[&[1, 2]]);
        for topic in ["pl-viajava", "pl-viaours"] {
            let text = |ids: &str| {
                format!(
                    r#"{{"partitions":[{{"topic":"{topic}","partition":0,"replicas":[{ids}]}}]}}"#
                )
            };
            let swapped = file_of(&text("2,1"));
            let args = ["--execute", "--reassignment-json-file", path(&swapped)];
            super::frame::ours(cluster, "reassign-partitions", &args);
            cluster.wait_for_partition(topic, 0, "2 is preferred", |view| view.replicas == [2, 1]);
        }
        let elect = |args: &[&str]| both(cluster, "leader-election", args);
        let told = elect(&[
            "--election-type",
            "preferred",
            "--topic",
            "pl-@",
            "--partition",
            "0",
        ])
        .same();
        assert_eq!(
            told,
            "Successfully completed leader election (PREFERRED) for partitions pl-@-0\n"
        );
        cluster.wait_for_partition("pl-viaours", 0, "2 leads", |view| view.leader == 2);
    });
}
