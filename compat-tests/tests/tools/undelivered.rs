//! Records for a partition that nobody can write to: they are given up in time, with Kafka's words.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use compat_tests::cluster::{Cluster, ClusterOptions, for_each_cluster};
use compat_tests::java_tools::{self, ToolRun, blank};
use compat_tests::own_tools;

use super::frame::{both, both_plain, both_via, ours};

/// As in a tool that has a JVM of its own: then what it logs is on its standard error.
fn console_producers(args: &[&str], input: &[u8]) -> [ToolRun; 2] {
    let name = "console-producer";
    let commands = [java_tools::command(name), own_tools::command(name)];
    commands.map(|command| {
        let mut command = command.unwrap();
        command.args(args);
        own_tools::output(command, input).unwrap()
    })
}

/// The failures that a run told, each in one line and without times: Apache Kafka's tool logs them with the exception
/// in a line of its own.
fn failures(run: &ToolRun) -> Vec<String> {
    let logger = " (org.apache.kafka.clients.producer.internals.ErrorLoggingCallback)";
    let joined = run.err.replace(&format!("{logger}\n"), " ");
    let lines = joined.lines().filter_map(|line| {
        let text = match line.split_once("] ERROR ") {
            Some((_, text)) => text,
            None => line,
        };
        let thrown = text.replace("java.util.concurrent.ExecutionException: ", "");
        let is_failure = text.starts_with("Error when sending") || thrown.starts_with("org.apache");
        is_failure.then(|| blank(&thrown, &["-0:", "blocking time "]))
    });
    lines.collect()
}

const EXPIRED: &str = "-0:* ms has passed since batch creation. The request has not been sent, or no server response \
                       has been received yet.";
const TIMEOUT: &str = "org.apache.kafka.common.errors.TimeoutException:";
const NO_ROOM: &str = "org.apache.kafka.clients.producer.BufferExhaustedException: Failed to allocate 886 bytes within \
                       the configured max blocking time * ms. Total memory: 1000 bytes. Available memory: 114 bytes. \
                       Poolable size: 100 bytes";

fn failed(topic: &str, size: usize, error: &str) -> String {
    format!(
        "Error when sending message to topic {topic} with key: null, value: {size} bytes with error: {error}"
    )
}

/// Broker 3 has left, so its partition has no leader; broker 2 is dead, and the controller does not know yet.
fn with_lost_leaders(cluster: &mut Cluster) -> String {
    cluster.create_topic("lost", &[&[3]], &[("min.insync.replicas", "1")]);
    cluster.create_topic("dead", &[&[2]], &[("min.insync.replicas", "1")]);
    cluster.stop(3).unwrap();
    cluster.kill(2).unwrap();
    cluster.wait_for_partition("lost", 0, "nobody leads", |view| view.leader == -1);
    cluster.bootstrap_of(&[1])
}

fn options() -> ClusterOptions {
    ClusterOptions::new()
        .with_controller_apart()
        .set("broker.session.timeout.ms", 600_000)
}

#[test]
fn what_finds_no_leader_is_given_up_alike() {
    for_each_cluster(&options(), |cluster| {
        let bootstrap = with_lost_leaders(cluster);
        let quick = ["--request-timeout-ms", "1000", "--timeout", "500"];
        let in_time = ["--command-property", "delivery.timeout.ms=4000"];
        for topic in ["lost", "dead"] {
            let to = ["--bootstrap-server", &bootstrap, "--topic", topic];
            let to = [&to[..], &quick, &in_time].concat();
            let [java, own] = console_producers(&to, b"1\n22\n");
            assert_eq!((java.status, own.status), (0, 0), "{java:?} {own:?}");
            let expiring = format!("{TIMEOUT} Expiring 2 record(s) for {topic}{EXPIRED}");
            let expected = [1, 2].map(|size| failed(topic, size, &expiring));
            assert_eq!(failures(&java), expected, "{java:?}");
            assert_eq!(failures(&own), expected, "{own:?}");

            let [java, own] = console_producers(&[&to[..], &["--sync"]].concat(), b"1\n22\n");
            assert_eq!((java.status, own.status), (1, 1), "{java:?} {own:?}");
            let expected = format!("{TIMEOUT} Expiring 1 record(s) for {topic}{EXPIRED}");
            assert_eq!(failures(&java)[0], expected, "{java:?}");
            assert_eq!(failures(&own), [expected.as_str()], "{own:?}");

            let tight = ["--max-memory-bytes", "1000", "--batch-size", "100"];
            let tight = [&to[..], &tight, &["--max-block-ms", "1000"]].concat();
            let line = "x".repeat(800) + "\n";
            let [java, own] = console_producers(&tight, line.repeat(3).as_bytes());
            assert_eq!((java.status, own.status), (0, 0), "{java:?} {own:?}");
            let expiring = format!("{TIMEOUT} Expiring 1 record(s) for {topic}{EXPIRED}");
            let expected = [NO_ROOM, NO_ROOM, &expiring].map(|error| failed(topic, 800, error));
            assert_eq!(failures(&java), expected, "{java:?}");
            assert_eq!(failures(&own), expected, "{own:?}");
        }
        let args = [
            "--topic",
            "lost",
            "--throughput",
            "-1",
            "--num-records",
            "3",
        ];
        let args = [&args[..], &["--record-size", "800", "--command-property"]].concat();
        let hasty = ["delivery.timeout.ms=4000", "request.timeout.ms=1000"];
        let tight = ["buffer.memory=1000", "batch.size=100", "max.block.ms=1000"];
        for properties in [&hasty[..], &[&hasty[..], &tight].concat()] {
            let args = [&args[..], properties].concat();
            let both = both_via(&bootstrap, cluster, "producer-perf-test", &args);
            assert_eq!(both.same_failures(failures).len(), 3);
        }
    });
}

#[test]
fn what_can_never_be_sent_is_refused_alike() {
    for_each_cluster(&options(), |cluster| {
        cluster.create_topic("refused", &[&[1]], &[]);
        let bootstrap = cluster.bootstrap();
        let to = ["--bootstrap-server", &bootstrap, "--topic", "refused"];
        let args = [&to[..], &["--max-memory-bytes", "1000"]].concat();
        both_plain("console-producer", &args, b"1\n").refused_with(
            "Attempt to allocate 16384 bytes, but there is a hard limit of 1000 on memory allocations.",
        );
        let short = ["--command-property", "delivery.timeout.ms=2499"];
        let args = [&to[..], &short].concat();
        both_plain("console-producer", &args, b"1\n").refused_with(
            "delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms",
        );
        // One that is just long enough is not.
        let enough = ["--command-property", "delivery.timeout.ms=2500"];
        let args = [&to[..], &enough].concat();
        both_plain("console-producer", &args, b"1\n").same();
        let read = [
            "--topic",
            "refused",
            "--from-beginning",
            "--max-messages",
            "2",
        ];
        both(cluster, "console-consumer", &read).same();
    });
}

/// A line that is given up is told while nobody types, and the next one finds the leader that has come back.
#[test]
fn after_what_was_given_up_the_rest_is_sent() {
    // A controller of Apache Kafka may take a broker that has left for one that lives until its session ends.
    let options = options().set("broker.session.timeout.ms", 20_000);
    for_each_cluster(&options, |cluster| {
        let bootstrap = with_lost_leaders(cluster);
        let mut child = own_tools::command("console-producer")
            .unwrap()
            .args(["--bootstrap-server", &bootstrap, "--topic", "lost"])
            .args(["--command-property", "delivery.timeout.ms=4000"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
        for line in ["first\n", "second\n"] {
            input.write_all(line.as_bytes()).unwrap();
            let told = errors.next().unwrap().unwrap();
            assert!(told.contains("Expiring 1 record(s) for lost-0:"), "{told}");
        }
        cluster.start_again(3).unwrap();
        cluster.wait_for_partition("lost", 0, "3 leads", |view| view.leader == 3);
        input.write_all(b"third\nfourth\n").unwrap();
        drop(input);
        assert!(child.wait().unwrap().success());
        let rest: Vec<_> = errors.map(Result::unwrap).collect();
        assert_eq!(rest, [""; 0]);
        let read = ["--topic", "lost", "--from-beginning", "--partition", "0"];
        let read = [&read[..], &["--timeout-ms", "3000"]].concat();
        assert_eq!(ours(cluster, "console-consumer", &read), "third\nfourth\n");
    });
}
