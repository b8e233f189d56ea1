//! Tools that are started in the wrong way or find nobody: one clear sentence and Kafka's exit code. And the names
//! under which a tool is started.

use std::os::unix::fs::symlink;
use std::process::Command;

use compat_tests::cluster::for_each_shared_cluster;
use compat_tests::process::free_port;
use compat_tests::{highwater, own_tools};

use super::frame::file_of;

fn run(tool: &str, args: &[&str]) -> (i32, String, String) {
    let run = own_tools::run(tool, args, b"").unwrap();
    (run.status, run.out, run.err)
}

#[test]
fn an_unknown_option_ends_with_1_and_help_and_version_with_0() {
    for tool in [
        "topics",
        "configs",
        "get-offsets",
        "leader-election",
        "reassign-partitions",
        "log-dirs",
        "delete-records",
        "broker-api-versions",
        "metadata-quorum",
        "consumer-groups",
        "console-consumer",
        "console-producer",
        "consumer-perf-test",
        "producer-perf-test",
        "dump-log",
    ] {
        let (status, out, err) = run(tool, &["--no-such-option"]);
        assert_eq!((status, out.as_str()), (1, ""), "{tool}: {err}");
        let expected =
            format!("no-such-option is not a recognized option\nTry 'highwater {tool} --help'.\n");
        assert_eq!(err, expected);
        let (status, out, _) = run(tool, &["--help"]);
        assert_eq!(status, 0, "{tool}");
        assert!(out.contains("Usage: "), "{tool}: {out}");
        let (status, _, err) = run(tool, &[]);
        assert_eq!(status, 1, "{tool}: {err}");
        let (status, out, err) = run(tool, &["--version"]);
        assert_eq!((status, err.as_str()), (0, ""), "{tool}: {out}");
        assert!(
            out.trim_end()
                .split('.')
                .all(|part| part.parse::<u32>().is_ok()),
            "{tool}: {out}"
        );
    }
}

#[test]
fn nobody_there_is_said_in_one_sentence() {
    let file = file_of("default.api.timeout.ms=1500\n");
    let config = file.path().to_str().unwrap();
    let nobody = format!("127.0.0.1:{}", free_port().unwrap());
    let (status, out, err) = run(
        "log-dirs",
        &[
            "--bootstrap-server",
            &nobody,
            "--command-config",
            config,
            "--describe",
        ],
    );
    assert_eq!((status, out.as_str()), (1, ""), "{err}");
    let last = err.lines().last().unwrap();
    assert!(
        last.contains("TimeoutException: Timed out waiting for a node assignment."),
        "{err}"
    );
    assert!(last.contains("Connection refused"), "{err}");

    for (args, text) in [
        (
            &["--bootstrap-server", "here"][..],
            "Invalid url in bootstrap.servers: here",
        ),
        (
            &[
                "--bootstrap-server",
                "a:1",
                "--command-config",
                "/no/such/file",
            ],
            "/no/such/file: No such file or directory",
        ),
    ] {
        let (status, _, err) = run("log-dirs", &[args, &["--describe"]].concat());
        assert_eq!(status, 1, "{err}");
        assert!(err.contains(text) && err.lines().count() == 1, "{err}");
    }
    let (status, _, err) = run(
        "log-dirs",
        &["--bootstrap-server", "nobody.invalid:9092", "--describe"],
    );
    assert_eq!(status, 1);
    assert!(
        err.ends_with("No resolvable bootstrap urls given in bootstrap.servers\n"),
        "{err}"
    );
    let file = file_of("security.protocol=SSL\n");
    let config = file.path().to_str().unwrap();
    let args = [
        "--bootstrap-server",
        "a:1",
        "--command-config",
        config,
        "--describe",
    ];
    let (status, _, err) = run("log-dirs", &args);
    assert_eq!(status, 1);
    assert!(
        err.contains("security.protocol=SSL is not supported"),
        "{err}"
    );
}

/// The first address of the list does not answer; the second does.
#[test]
fn every_bootstrap_address_is_tried_and_links_have_kafkas_names() {
    for_each_shared_cluster(|cluster| {
        cluster.create_topic("linked", &[&[1]], &[]);
        let folder = tempfile::tempdir().unwrap();
        let nobody = free_port().unwrap();
        let bootstrap = format!("localhost:{nobody},{}", cluster.bootstrap());
        for name in ["kafka-topics.sh", "kafka-topics"] {
            let link = folder.path().join(name);
            symlink(highwater::binary().unwrap(), &link).unwrap();
            let mut command = Command::new(&link);
            command.args([
                "--bootstrap-server",
                &bootstrap,
                "--list",
                "--topic",
                "linked",
            ]);
            let run = own_tools::output(command, b"").unwrap();
            assert_eq!((run.status, run.out.as_str()), (0, "linked\n"), "{run:?}");
        }
    });
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let (status, out, _) = run("completions", &[shell]);
        assert_eq!(status, 0);
        assert!(out.contains("under-min-isr-partitions"), "{shell}");
        assert!(out.contains("kafka-topics.sh"), "{shell}");
    }
}
