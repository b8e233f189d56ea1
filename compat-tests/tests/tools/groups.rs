//! kafka-consumer-groups.sh.

use std::process::{Child, Stdio};
use std::time::Duration;

use compat_tests::cluster::{Cluster, for_each_shared_cluster};
use compat_tests::own_tools;
use compat_tests::process::poll;

use super::frame::{both, both_plain, file_of, ours, path};

/// Produces records with these keys, one line each.
fn produce(cluster: &Cluster, topic: &str, keys: &[&str]) {
    let lines: String = keys
        .iter()
        .map(|key| format!("{key}\tvalue {key}\n"))
        .collect();
    let bootstrap = cluster.bootstrap();
    let args = ["--bootstrap-server", &bootstrap, "--topic", topic];
    let args = [&args[..], &["--reader-property", "parse.key=true"]].concat();
    let run = own_tools::run("console-producer", &args, lines.as_bytes()).unwrap();
    assert_eq!(run.status, 0, "{run:?}");
}

/// Reads so many records as a member of a group, which leaves the group with committed offsets.
fn consume(cluster: &Cluster, group: &str, topic: &str, count: &str) {
    let args = ["--group", group, "--topic", topic, "--from-beginning"];
    let args = [
        &args[..],
        &["--max-messages", count, "--timeout-ms", "60000"],
    ]
    .concat();
    ours(cluster, "console-consumer", &args);
}

/// A member that stays.
struct Member(Child);

impl Member {
    fn join(cluster: &Cluster, group: &str, topic: &str) -> Self {
        let mut command = own_tools::command("console-consumer").unwrap();
        command.args(["--bootstrap-server", &cluster.bootstrap()]);
        command.args(["--group", group, "--topic", topic, "--from-beginning"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let member = Member(command.spawn().unwrap());
        let is_stable = || {
            let state = ours(
                cluster,
                "consumer-groups",
                &["--describe", "--group", group, "--state"],
            );
            state.contains("Stable").then_some(())
        };
        poll(Duration::from_secs(60), is_stable).expect("the group becomes stable");
        member
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn set_up(cluster: &Cluster, name: &str) {
    cluster.create_topic(name, &[&[1, 2], &[2, 3], &[3, 1]], &[]);
    produce(cluster, name, &["a", "b", "c", "d", "e", "f"]);
    consume(cluster, name, name, "6");
}

/// What `--reset-offsets` prints; Kafka's tool prints partitions in no order.
fn reset(cluster: &Cluster, args: &[&str]) -> Vec<String> {
    let args = [&["--reset-offsets"], args].concat();
    both(cluster, "consumer-groups", &args).same_lines()
}

#[test]
fn groups_are_listed_and_described_alike() {
    for_each_shared_cluster(|cluster| {
        set_up(cluster, "cg-desc");
        let groups = |args: &[&str]| both(cluster, "consumer-groups", args);
        // Other tests have groups too.
        let own = |text: &str| -> String {
            let lines = text.lines().filter(|line| line.starts_with("cg-desc"));
            let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            words.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(groups(&["--list"]).same_after(own), "cg-desc");
        assert_eq!(
            groups(&["--list", "--state", "--type"]).same_after(own),
            "cg-desc Classic Empty"
        );
        groups(&["--list", "--type", "classic"]).same_after(own);
        assert_eq!(groups(&["--list", "--state", "stable"]).same_after(own), "");
        for form in [
            &["--offsets"][..],
            &["--verbose"],
            &["--members", "--verbose"],
            &["--state"],
            &["--state", "--verbose"],
        ] {
            groups(&[&["--describe", "--group", "cg-desc"], form].concat()).same();
        }
        // What is not there is told on stdout, with exit code 0.
        let missing = groups(&["--describe", "--group", "cg-nothing"]).same();
        assert!(missing.contains("GroupIdNotFoundException"), "{missing}");
        let member = Member::join(cluster, "cg-desc", "cg-desc");
        let stable = groups(&["--describe", "--group", "cg-desc"]).same();
        assert!(stable.contains("console-consumer-"), "{stable}");
        groups(&["--describe", "--group", "cg-desc", "--members", "--verbose"]).same();
        groups(&["--describe", "--group", "cg-desc", "--state", "--verbose"]).same();
        let refused = reset(
            cluster,
            &[
                "--group",
                "cg-desc",
                "--all-topics",
                "--to-latest",
                "--dry-run",
            ],
        );
        assert!(
            refused.iter().any(|line| line.contains("is inactive")),
            "{refused:?}"
        );
        groups(&["--delete", "--group", "cg-desc"]).same();
        groups(&[
            "--delete-offsets",
            "--group",
            "cg-desc",
            "--topic",
            "cg-desc",
        ])
        .same();
        drop(member);
    });
}

#[test]
fn offsets_are_reset_alike() {
    for_each_shared_cluster(|cluster| {
        set_up(cluster, "cg-reset");
        let group = &["--group", "cg-reset", "--dry-run"][..];
        let plan = |args: &[&str]| reset(cluster, &[group, args].concat());
        for specification in [
            &["--to-earliest"][..],
            &["--to-latest"],
            &["--to-current"],
            &["--to-offset", "1"],
            &["--to-offset", "99"],
            &["--shift-by", "-1"],
            &["--shift-by", "5"],
            &["--by-duration", "PT1H"],
            &["--by-duration", "PT0S"],
            &["--to-datetime", "2001-02-03T04:05:06.789"],
            &["--to-datetime", "2999-02-03T04:05:06.789+01:00"],
        ] {
            plan(&[specification, &["--all-topics"]].concat());
        }
        plan(&["--topic", "cg-reset:0,2", "--to-earliest"]);
        plan(&["--topic", "cg-reset", "--to-earliest", "--export"]);
        let file = file_of("cg-reset,0,1\ncg-reset,2,0\n");
        let printed = plan(&["--from-file", path(&file)]);
        assert_eq!(printed.len(), 4, "{printed:?}");
        let other = file_of("g,cg-reset,0,1\n");
        plan(&["--from-file", path(&other)]);
        for wrong in [
            &["--topic", "cg-reset:7", "--to-latest"][..],
            &["--topic", "nothing", "--to-latest"],
            &["--topic", "cg-reset", "--to-datetime", "noon"],
            &["--topic", "cg-reset", "--by-duration", "soon"],
        ] {
            let printed = plan(wrong);
            assert!(
                printed.iter().any(|line| line.starts_with("Error: ")),
                "{printed:?}"
            );
        }
        let execute = [
            "--group",
            "cg-re-@",
            "--topic",
            "cg-reset",
            "--to-offset",
            "1",
            "--execute",
        ];
        reset(cluster, &execute);
        let described = both(
            cluster,
            "consumer-groups",
            &["--describe", "--group", "cg-re-@"],
        )
        .same();
        assert_eq!(described.matches("\ncg-re-@").count(), 3, "{described}");
        let groups = |args: &[&str]| both(cluster, "consumer-groups", args);
        groups(&[
            "--delete-offsets",
            "--group",
            "cg-re-@",
            "--topic",
            "cg-reset:0",
        ])
        .same();
        groups(&[
            "--delete-offsets",
            "--group",
            "cg-re-@",
            "--topic",
            "nothing",
        ])
        .same();
        groups(&["--delete", "--group", "cg-re-@"]).same();
        groups(&["--delete", "--group", "cg-re-@"]).same();
    });
}

#[test]
fn what_cannot_be_is_refused_alike() {
    for_each_shared_cluster(|cluster| {
        for args in [
            &["--list", "--group", "g"][..],
            &["--describe", "--group", "g", "--members", "--state"],
            &["--delete", "--group", "g", "--topic", "t"],
            &[
                "--reset-offsets",
                "--group",
                "g",
                "--to-latest",
                "--dry-run",
            ],
            &[
                "--reset-offsets",
                "--group",
                "g",
                "--topic",
                "t:x",
                "--to-latest",
                "--dry-run",
            ],
        ] {
            both(cluster, "consumer-groups", args).refused();
        }
    });
}

#[test]
fn expressions_are_judged_alike() {
    for regex in [
        "a.*", "a.*(", "a(?=b)", "[z-a]", "a**", "x{2,1}", "\\1", "a{", "[a", "*",
    ] {
        both_plain("consumer-groups", &["--validate-regex", regex], b"").same();
    }
}
