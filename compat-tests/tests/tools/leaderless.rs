//! Partitions that nobody leads, or whose leader is dead: what else there is of the topic is read, and no tool waits
//! longer than Kafka's.

use compat_tests::cluster::{Cluster, ClusterOptions, for_each_cluster};
use compat_tests::own_tools;

use super::frame::{both_via, without_numbers};

/// With this patience a tool that waits for a leader does not end within a test.
const PATIENCE_MS: &str = "600000";
/// `--timeout-ms` of consumers.
const TIMEOUT_MS: &str = "8000";
const OFFSETS: &str = "__consumer_offsets";

/// Each node has a part of the topic for itself, and `coordinator` all groups.
fn with_topics(cluster: &Cluster, coordinator: i32) {
    let compacted = [("cleanup.policy", "compact"), ("min.insync.replicas", "1")];
    cluster.create_topic(OFFSETS, &[&[coordinator]], &compacted);
    let parts: [&[i32]; 3] = [&[1], &[2], &[3]];
    cluster.create_topic("parts", &parts, &[("min.insync.replicas", "1")]);
    let lines: String = (0..60).map(|key| format!("{key}\tvalue {key}\n")).collect();
    let bootstrap = cluster.bootstrap();
    let args = ["--bootstrap-server", &bootstrap, "--topic", "parts"];
    let args = [&args[..], &["--reader-property", "parse.key=true"]].concat();
    let run = own_tools::run("console-producer", &args, lines.as_bytes()).unwrap();
    assert_eq!(run.status, 0, "{run:?}");
}

/// Broker 3 has left, so its partition has no leader.
fn lose_3(cluster: &mut Cluster) {
    cluster.stop(3).unwrap();
    cluster.wait_for_partition("parts", 2, "nobody leads", |view| view.leader == -1);
}

fn options() -> ClusterOptions {
    ClusterOptions::new()
        .with_controller_apart()
        .set("broker.session.timeout.ms", 600_000)
        .set("offsets.topic.num.partitions", 1)
        .set("offsets.topic.replication.factor", 1)
}

/// Runs Highwater's tool, which must end well without the leader that it has all the patience for.
#[track_caller]
fn ours_without_waiting(bootstrap: &str, tool: &str, args: &[&str]) -> String {
    let property = format!("default.api.timeout.ms={PATIENCE_MS}");
    let patience = match tool {
        "consumer-groups" => ["--timeout", PATIENCE_MS],
        _ => ["--command-property", &property],
    };
    let args = [&["--bootstrap-server", bootstrap], &patience[..], args].concat();
    let run = own_tools::run(tool, &args, b"").unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(run.status, 0, "{tool} {args:?}: {run:#?}");
    run.out
}

#[test]
fn the_other_partitions_are_read() {
    for_each_cluster(&options(), |cluster| {
        with_topics(cluster, 1);
        lose_3(cluster);
        // The controller does not know, so that it still is in the metadata as a leader.
        cluster.kill(2).unwrap();
        let bootstrap = cluster.bootstrap_of(&[1]);
        let tool = "console-consumer";
        let read = ["--topic", "parts", "--from-beginning"];
        let read = [&read[..], &["--timeout-ms", TIMEOUT_MS]].concat();
        let healthy = [&read[..], &["--partition", "0"]].concat();
        let healthy = ours_without_waiting(&bootstrap, tool, &healthy);
        let count = healthy.lines().count();
        assert!((1..60).contains(&count), "{healthy}");
        for of_group in [&[][..], &["--group", "@"]] {
            let args = [&read[..], of_group].concat();
            let read = both_via(&bootstrap, cluster, tool, &args).same();
            assert_eq!(read, healthy);
        }
        assert_eq!(ours_without_waiting(&bootstrap, tool, &read), healthy);
        for partition in ["1", "2"] {
            let args = [&read[..], &["--partition", partition]].concat();
            assert_eq!(ours_without_waiting(&bootstrap, tool, &args), "");
        }
        let args = ["--topic", "parts", "--num-records", "60", "--timeout"];
        let args = [&args[..], &[TIMEOUT_MS, "--group", "perf-@"]].concat();
        let tool = "consumer-perf-test";
        both_via(&bootstrap, cluster, tool, &args).same_after(without_numbers);
        let args = ["--topic", "parts", "--num-records", "60", "--timeout"];
        let args = [&args[..], &[TIMEOUT_MS, "--hide-header"]].concat();
        let measured = ours_without_waiting(&bootstrap, tool, &args);
        let row = measured.lines().last().unwrap();
        assert_eq!(
            row.split(", ").nth(4),
            Some(&count.to_string()[..]),
            "{row}"
        );
    });
}

#[test]
fn a_group_without_a_coordinator_is_not_waited_for_any_longer() {
    for_each_cluster(&options(), |cluster| {
        with_topics(cluster, 3);
        lose_3(cluster);
        let bootstrap = cluster.bootstrap_of(&[1, 2]);
        let read = ["--topic", "parts", "--from-beginning", "--group", "g"];
        let read = [&read[..], &["--timeout-ms", TIMEOUT_MS]].concat();
        let nothing = both_via(&bootstrap, cluster, "console-consumer", &read).same();
        assert_eq!(nothing, "");
        assert_eq!(
            ours_without_waiting(&bootstrap, "console-consumer", &read),
            ""
        );
    });
}

#[test]
fn offsets_of_a_group_without_the_leader_of_a_partition() {
    for_each_cluster(&options(), |cluster| {
        with_topics(cluster, 1);
        let all = ["--topic", "parts", "--from-beginning", "--group", "g"];
        let all = [&all[..], &["--max-messages", "60"]].concat();
        ours_without_waiting(&cluster.bootstrap(), "console-consumer", &all);
        lose_3(cluster);
        let bootstrap = cluster.bootstrap_of(&[1, 2]);
        let tool = "consumer-groups";
        let both = |args: &[&str]| {
            ours_without_waiting(&bootstrap, tool, args);
            both_via(&bootstrap, cluster, tool, args).same()
        };
        let described = both(&["--describe", "--group", "g"]);
        let cells = |row: &str| -> Vec<String> {
            let cells = row.split_whitespace().skip(2);
            cells.take(4).map(str::to_owned).collect()
        };
        let rows: Vec<_> = described.lines().skip(2).map(cells).collect();
        assert_eq!(rows.len(), 3, "{described}");
        let [led, lost] = [&rows[0], &rows[2]];
        assert_eq!(led[1..], [&led[2][..], &led[2], "0"], "{described}");
        assert_eq!(lost[2..], ["-", "-"], "{described}");
        assert_ne!(lost[1], "-", "{described}");
        both(&["--describe", "--group", "g", "--verbose"]);

        let of_group = |args: &[&str]| {
            let reset = ["--reset-offsets", "--group", "g"];
            both(&[&reset[..], args].concat())
        };
        let refused = "\nError: Executing consumer group command failed due to The partitions \"parts-2\" have no leader\n";
        let some = ["--topic", "parts:1,2", "--to-earliest", "--execute"];
        assert_eq!(of_group(&some), refused);
        assert_eq!(both(&["--describe", "--group", "g"]), described);
        let all = ["--dry-run", "--all-topics"];
        for to in [
            &["--to-latest"][..],
            &["--to-current"],
            &["--to-offset", "0"],
            &["--shift-by", "-1"],
        ] {
            assert_eq!(of_group(&[&all[..], to].concat()), refused);
        }
        let both_wrong = of_group(&["--dry-run", "--topic", "parts:2,3", "--to-latest"]);
        assert!(
            both_wrong.contains("\"parts-3\" do not exist"),
            "{both_wrong}"
        );
        let led = of_group(&["--topic", "parts:0", "--to-earliest", "--dry-run"]);
        assert_eq!(led.lines().count(), 3, "{led}");
    });
}
