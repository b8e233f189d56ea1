//! Three brokers of `compose.yaml`: our demonstrations, and the programs of the texts where there are texts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use compat_tests::cache::run;
use compat_tests::clients::Client;
use compat_tests::process::eventually;
use regex::Regex;

use crate::daemon::{Docker, LIMIT, Project, docker, second_docker};
use crate::texts;

const NODES: [&str; 6] = [
    "controller1",
    "controller2",
    "controller3",
    "kafka1",
    "kafka2",
    "kafka3",
];
/// All that the partition's consumers see, a line per record.
const READ_ALL: &str = r#"
import sys
from confluent_kafka import Consumer, TopicPartition
topic = sys.argv[1]
consumer = Consumer({"bootstrap.servers": "localhost:9092", "group.id": "reader", "isolation.level": "read_committed"})
_, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
consumer.assign([TopicPartition(topic, 0, 0)])
offset = -1
while offset + 1 < end:
    message = consumer.poll(30)
    assert message is not None and message.error() is None, message
    offset = message.offset()
    print(message.value().decode())
"#;

#[test]
fn our_demonstrations_show_what_they_say_and_leave_nothing() {
    let Some(docker) = docker() else { return };
    let _ports = docker.ports();
    on_three_brokers(docker, |project, python| {
        by_hand(project);
        our_demonstrations(docker, python);
    });
}

#[test]
fn the_programs_of_the_texts_run_as_they_stand() {
    let Some(texts) = texts::folder() else {
        eprintln!("skipped: HIGHWATER_SEEDS names no folder of texts");
        return;
    };
    let Some(docker) = second_docker() else {
        return;
    };
    on_three_brokers(docker, |project, python| {
        // The programs make them if they are not there, but then ask some broker for them at once, which may not have
        // heard of them yet: on a busy machine that is told as a topic without partitions.
        make_topic(project, "learn.09.killdemo", 3);
        make_topic(project, "learn.09.minisr", 1);
        let programs = Programs {
            docker,
            python,
            folder: docker.folder_of_root("texts"),
            texts,
        };
        programs.kill_leader();
        programs.min_isr();
    });
}

/// Starts the cluster, calls `body` with a Python that has confluent-kafka, and removes the cluster.
fn on_three_brokers(docker: &'static Docker, body: impl FnOnce(&Project, &Path)) {
    let project = Project::up(docker, "compose.yaml");
    for node in NODES {
        docker.until_healthy(node);
    }
    let python = Client::ConfluentKafka.command().unwrap();
    body(&project, Path::new(python.get_program()));
    project.compose(&["stop", "--timeout", "60"]).unwrap();
    for node in NODES {
        let state = docker.inspect(node)["State"].take();
        assert_eq!(state["ExitCode"], 0, "{node}: {state}");
    }
    project.down();
}

/// Makes a topic with three replicas, and waits until every broker knows it.
fn make_topic(project: &Project, topic: &str, partitions: usize) {
    let create = format!(
        "--create --topic {topic} --partitions {partitions} --replication-factor 3 --config min.insync.replicas=2"
    );
    topics(project, "kafka1", &create).unwrap();
    for service in ["kafka1", "kafka2", "kafka3"] {
        eventually(LIMIT, &format!("{service} knows {topic}"), || {
            let described = topics(project, service, &format!("--describe --topic {topic}"));
            (described.ok()?.matches("Leader: ").count() == partitions).then_some(())
        });
    }
}

/// `kafka-topics.sh` in the container of a broker.
fn topics(project: &Project, service: &str, arguments: &str) -> Result<String> {
    let tool = "kafka-topics.sh --bootstrap-server";
    let command = format!("exec -T {service} {tool} {service}:19092 {arguments}");
    project.compose(&command.split(' ').collect::<Vec<_>>())
}

/// What README.md tells one to type: a broker stops, and Kafka's tools tell what that means for the partitions.
fn by_hand(project: &Project) {
    let topics = |service: &str, arguments: &str| topics(project, service, arguments).unwrap();
    topics(
        "kafka1",
        "--create --topic orders --partitions 3 --replication-factor 3",
    );
    let described = topics("kafka1", "--describe --topic orders");
    assert!(described.contains("min.insync.replicas=2"), "{described}");
    // Partitions by leader, with the number of in-sync replicas of each.
    let leaders = |described: &str| {
        let line =
            Regex::new(r"Partition: [0-9]\tLeader: ([0-9])\tReplicas: [0-9,]+\tIsr: ([0-9,]+)")
                .unwrap();
        let mut found: Vec<(u32, usize)> = line
            .captures_iter(described)
            .map(|found| (found[1].parse().unwrap(), found[2].split(',').count()))
            .collect();
        found.sort_unstable();
        found
    };
    assert_eq!(leaders(&described), [(1, 3), (2, 3), (3, 3)], "{described}");
    for list in ["under-replicated", "at-min-isr", "unavailable"] {
        let listed = topics("kafka1", &format!("--describe --{list}-partitions"));
        assert_eq!(listed.trim(), "", "{list}");
    }

    project.compose(&["stop", "kafka1"]).unwrap();
    let described = topics("kafka2", "--describe --topic orders");
    let found = leaders(&described);
    assert_eq!(found.len(), 3, "{described}");
    assert!(
        found.iter().all(|&(leader, isr)| leader != 1 && isr == 2),
        "{described}"
    );
    for list in ["under-replicated", "at-min-isr"] {
        let listed = topics("kafka2", &format!("--describe --{list}-partitions"));
        assert_eq!(
            listed.matches("Topic: orders").count(),
            3,
            "{list}: {listed}"
        );
    }
    let unavailable = topics("kafka2", "--describe --unavailable-partitions");
    assert_eq!(unavailable.trim(), "");

    project.compose(&["start", "kafka1"]).unwrap();
    eventually(LIMIT, "all replicas are in sync", || {
        let listed = topics("kafka2", "--describe --under-replicated-partitions");
        listed.trim().is_empty().then_some(())
    });
}

/// Each ends with another exit code than 0 if it shows something else than it should.
fn our_demonstrations(docker: &Docker, python: &Path) {
    let mut command = docker.command(docker.compose_folder().join("demos/run"));
    let told = run(command.env("PYTHON", python)).unwrap();
    for expected in [
        "-> nothing acknowledged is missing",
        "-> min.insync.replicas holds acks=all back, and only acks=all",
        "-> it was written: whoever sends again without idempotence has it twice",
        "-> the acknowledged record is there",
        "-> the refusal is counted",
        "-> what only the isolated leader had is gone",
    ] {
        assert!(told.contains(expected), "{expected} is missing:\n{told}");
    }
    let mut watch = docker.command(docker.compose_folder().join("demos/run"));
    watch.args(["watch_isr", "demo.kill-leader", "1"]);
    let told = run(watch.env("PYTHON", python)).unwrap();
    let line = Regex::new(
        r"^[0-9][0-9]:[0-9][0-9]:[0-9][0-9] partition 0: leader [0-9], leader epoch [0-9]+, in sync \[[0-9], [0-9], [0-9]\], out of sync \[\]\n$",
    );
    assert!(line.unwrap().is_match(&told), "{told}");
}

/// The programs of the texts, as they stand.
struct Programs<'a> {
    docker: &'a Docker,
    python: &'a Path,
    texts: PathBuf,
    folder: PathBuf,
}

impl Programs<'_> {
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let program = texts::extract(&self.texts, program, &self.folder);
        let mut command = self.docker.command(self.python);
        command.arg("-u").arg(program).args(arguments);
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = self.command(program, arguments);
        let told = run(command
            .arg("--compose-dir")
            .arg(self.docker.compose_folder()))?;
        let commands = told.lines().filter(|line| line.starts_with("[shell]"));
        anyhow::ensure!(
            commands.count() > 0,
            "it has used no docker compose:\n{told}"
        );
        Ok(told)
    }

    /// The leader moves, leaves the ISR and comes back, the preferred leader returns, nothing acknowledged is missing;
    /// and the watcher, which runs meanwhile, sees it.
    fn kill_leader(&self) {
        let topic = "learn.09.killdemo";
        let watched = self.folder.join("observe_isr.out");
        let arguments = ["--topic", topic, "--interval", "0.2"];
        let mut watcher = self
            .command("observe_isr.py", &arguments)
            .stdin(Stdio::null())
            .stdout(File::create(&watched).unwrap())
            .spawn()
            .unwrap();
        let told = self.run("kill_leader_demo.py", &["--down-secs", "3"]);
        let told = told.unwrap_or_else(|error| {
            watcher.kill().ok();
            panic!("{error:#}")
        });
        let seen = |text: &str| {
            let page = fs::read_to_string(&watched).unwrap();
            page.rsplit("=== Kafka ISR Watcher ===")
                .next()
                .unwrap()
                .contains(text)
                .then_some(())
        };
        eventually(LIMIT, "the watcher sees three in-sync replicas", || {
            seen("3/3").filter(|()| seen("under-replicated").is_none())
        });
        watcher.kill().unwrap();
        watcher.wait().unwrap();
        let pages = fs::read_to_string(&watched).unwrap();
        assert!(
            pages.contains("2/3") && pages.contains("under-replicated"),
            "{pages}"
        );

        let before = numbers(
            &told,
            r"\[init\] [^ ]+-P0 Leader=([0-9])  ISR=\[[0-9], [0-9], [0-9]\]",
        );
        let [leader] = before.as_slice() else {
            panic!("{told}")
        };
        let after = numbers(&told, r"\[result\] .* = ([0-9]), ISR=\[[0-9], [0-9]\]\n");
        let [successor] = after.as_slice() else {
            panic!("{told}")
        };
        assert_ne!(leader, successor, "{told}");
        let watched = numbers(
            &told,
            r"\[watch\] [0-9:]+ Leader=([0-9]) ISR=\[[0-9], [0-9], [0-9]\] ",
        );
        // Back in the ISR as a follower, then elected.
        assert!(watched.contains(successor), "{told}");
        assert_eq!(watched.last(), Some(leader), "{told}");
        let sums = Regex::new(r"\[summary\] [^0-9]+([0-9]+) [^0-9]+([0-9]+)").unwrap();
        let sums = sums.captures(&told).unwrap_or_else(|| panic!("{told}"));
        let acknowledged: usize = sums[1].parse().unwrap();
        assert!(acknowledged > 100, "{told}");
        assert_eq!(&sums[2], "0", "{told}");

        // They are sent in order and once each, so all that was acknowledged is a beginning of all that is there.
        let mut command = self.docker.command(self.python);
        let read = run(command.args(["-c", READ_ALL, topic])).unwrap();
        let read: Vec<&str> = read.lines().collect();
        assert!(
            read.len() >= acknowledged,
            "{} of {acknowledged}",
            read.len()
        );
        for (index, value) in read.iter().enumerate() {
            assert!(
                value.starts_with(&format!("msg-{index}-")),
                "{index}: {value}"
            );
        }
    }

    /// All good with three in-sync replicas, all refused with one, all good again.
    fn min_isr(&self) {
        let told = self.run("min_isr_demo.py", &[]).unwrap();
        let statistics =
            Regex::new(r"\[stat:([a-z-]+)\] [^0-9]+=([0-9]+)  [^0-9]+=([0-9]+)  [^ ]+=(\{.*\})")
                .unwrap();
        let statistics: Vec<_> = statistics
            .captures_iter(&told)
            .map(|found| found.extract::<4>().1)
            .collect();
        assert_eq!(
            statistics,
            [
                ["steady", "50", "0", "{}"],
                ["after-shrink", "0", "50", "{'NOT_ENOUGH_REPLICAS': 50}"],
                ["recovered", "50", "0", "{}"],
            ],
            "{told}"
        );
        // The controllers told of the smaller ISR while two of three brokers were down.
        let shrunk = Regex::new(r"\[meta\] [^ ]+  Leader=([0-9])  ISR=\[([0-9])\] ").unwrap();
        let mut shrunk = shrunk.captures_iter(&told);
        assert!(shrunk.any(|found| found[1] == found[2]), "{told}");
        assert!(told.trim_end().lines().count() > 30, "{told}");
    }
}

/// What the group of `pattern` matches, each time.
fn numbers(text: &str, pattern: &str) -> Vec<u32> {
    let pattern = Regex::new(pattern).unwrap();
    let found = pattern.captures_iter(text).map(|found| found[1].parse());
    found.collect::<Result<_, _>>().context("a number").unwrap()
}
