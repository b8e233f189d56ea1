//! kafka-reassign-partitions.sh.

use compat_tests::cluster::for_each_shared_cluster;

use super::frame::{
    both, both_in_turn, both_plain, create_both, file_of, ours, path, without_numbers,
};

fn entry(topic: &str, partition: i32, replicas: &str) -> String {
    format!(r#"{{"topic":"{topic}","partition":{partition},"replicas":[{replicas}]}}"#)
}

fn plan(entries: &[String]) -> tempfile::NamedTempFile {
    file_of(&format!(
        r#"{{"version":1,"partitions":[{}]}}"#,
        entries.join(",")
    ))
}

/// Each tool has a file of its own; its path is in no output.
fn plans(entries: impl Fn(&str) -> Vec<String>) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    for who in ["viajava", "viaours"] {
        let text = format!(
            r#"{{"version":1,"partitions":[{}]}}"#,
            entries(who).join(",")
        );
        std::fs::write(folder.path().join(who), text).unwrap();
    }
    let path = folder.path().join("@").to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn replicas_move_and_throttles_come_and_go() {
    for_each_shared_cluster(|cluster| {
        create_both(cluster, "mv-@", &[&[1, 2], &[2, 3]]);
        let tool = |args: &[&str]| both(cluster, "reassign-partitions", args);
        let (_folder, file) = plans(|who| {
            let topic = format!("mv-{who}");
            vec![entry(&topic, 0, "2,3"), entry(&topic, 1, "3,1")]
        });
        let moved = |topic: &str| {
            for (partition, replicas) in [(0, [2, 3]), (1, [3, 1])] {
                cluster.wait_for_partition(topic, partition, "moved", |view| {
                    view.replicas == replicas && view.isr.len() == 2
                });
            }
        };
        let args = [
            "--execute",
            "--reassignment-json-file",
            &file,
            "--throttle",
            "100000000",
        ];
        let told = both_in_turn(cluster, "reassign-partitions", &args, || {
            moved("mv-viajava")
        })
        .same();
        assert!(
            told.ends_with("Successfully started partition reassignments for mv-@-0,mv-@-1\n"),
            "{told}"
        );
        moved("mv-viaours");
        let throttled = both(cluster, "configs", &["--describe", "--topic", "mv-@"]).same();
        assert!(
            throttled.contains("leader.replication.throttled.replicas=0:1,0:2,1:2,1:3 "),
            "{throttled}"
        );
        tool(&[
            "--verify",
            "--reassignment-json-file",
            &file,
            "--preserve-throttles",
        ])
        .same();
        let told = tool(&["--verify", "--reassignment-json-file", &file]).same();
        assert!(
            told.contains("Clearing topic-level throttles on topic mv-@\n"),
            "{told}"
        );
        let cleared = both(cluster, "configs", &["--describe", "--topic", "mv-@"]).same();
        assert!(!cleared.contains("throttled"), "{cleared}");
        tool(&["--cancel", "--reassignment-json-file", &file]).same();
        tool(&["--list"]).same();
    });
}

#[test]
fn a_proposal_has_every_partition() {
    for_each_shared_cluster(|cluster| {
        cluster.create_topic("gen-a", &[&[1, 2], &[2, 3], &[3, 1]], &[]);
        let topics = file_of(r#"{"topics":[{"topic":"gen-a"}],"version":1}"#);
        let tool = |args: &[&str]| both(cluster, "reassign-partitions", args);
        let generate = |brokers: &'static str| {
            tool(&[
                "--generate",
                "--topics-to-move-json-file",
                path(&topics),
                "--broker-list",
                brokers,
            ])
        };
        // Which broker is first is by chance.
        generate("1,2,3").same_after(without_numbers);
        let args = [
            "--generate",
            "--topics-to-move-json-file",
            path(&topics),
            "--broker-list",
            "1,2",
        ];
        let proposal = ours(cluster, "reassign-partitions", &args);
        let proposal = proposal.lines().last().unwrap();
        assert!(
            proposal.contains(r#""replicas":[1,2]"#) || proposal.contains(r#""replicas":[2,1]"#),
            "{proposal}"
        );
        assert!(!proposal.contains('3'), "{proposal}");
        generate("1").refused();
        generate("1,1").refused();
    });
}

#[test]
fn what_cannot_be_done_is_refused_alike() {
    for_each_shared_cluster(|cluster| {
        cluster.create_topic("no-a", &[&[1, 2]], &[]);
        let tool = |args: &[&str]| both(cluster, "reassign-partitions", args);
        for entries in [
            vec![],
            vec![entry("no-a", 0, "")],
            vec![entry("no-a", 0, "1,1")],
            vec![entry("no-a", 0, "1"), entry("no-a", 0, "2")],
            vec![entry("no-a", 0, "1,9")],
            vec![entry("no-a", 7, "1,2")],
            vec![entry("nothing", 0, "1,2")],
        ] {
            let file = plan(&entries);
            tool(&["--execute", "--reassignment-json-file", path(&file)]).refused();
        }
        let file = plan(&[entry("no-a", 0, "1,2,3")]);
        let args = [
            "--execute",
            "--reassignment-json-file",
            path(&file),
            "--disallow-replication-factor-change",
        ];
        let told = tool(&args).refused();
        assert!(
            told.ends_with("no-a-0: The replication factor is changed from 2 to 3"),
            "{told}"
        );
        let file = plan(&[entry("no-a", 0, "1,3")]);
        tool(&[
            "--verify",
            "--reassignment-json-file",
            path(&file),
            "--preserve-throttles",
        ])
        .same();
        for args in [
            &["--execute"][..],
            &["--list", "--verify"],
            &[
                "--execute",
                "--reassignment-json-file",
                path(&file),
                "--preserve-throttles",
            ],
            &["--generate", "--broker-list", "1"],
        ] {
            tool(args).refused();
        }
        let controllers = cluster.bootstrap_controllers();
        let args = ["--bootstrap-controller", controllers.as_str(), "--list"];
        both_plain("reassign-partitions", &args, b"").same();
    });
}
