//! kcat, a Debian package built on an older librdkafka.

use std::io::Write;
use std::process::{Command, Stdio};

use compat_tests::broker::Broker;
use compat_tests::clients::Client;
use compat_tests::each_broker::for_each_broker;
use compat_tests::process::eventually;

use crate::support::{Batch, LIMIT, consume, create_topic, now_ms, produce, succeed, tool, unique};

fn kcat(broker: &Broker, args: &[&str]) -> Command {
    let mut command = Command::new("kcat");
    command.args(["-b", &broker.bootstrap()]).args(args);
    command
}

#[track_caller]
fn send(broker: &Broker, args: &[&str], lines: &str) {
    let mut child = kcat(broker, args)
        .stdin(Stdio::piped())
        .spawn()
        .expect("kcat is installed");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn kcat_writes_and_reads_every_codec_and_acks() {
    for_each_broker(|broker| {
        let topic = unique("kcat");
        let mut expected = String::new();
        for (number, codec) in ["none", "gzip", "snappy", "lz4", "zstd"]
            .into_iter()
            .enumerate()
        {
            for (step, acks) in ["0", "1", "-1"].into_iter().enumerate() {
                let codec_setting = format!("compression.codec={codec}");
                let acks_setting = format!("acks={acks}");
                let args = [
                    "-P",
                    "-t",
                    &topic,
                    "-K",
                    ":",
                    "-H",
                    "codec=x",
                    "-X",
                    &codec_setting,
                    "-X",
                    &acks_setting,
                ];
                let value = format!("{codec} with acks {acks}");
                send(broker, &args, &format!("key:{value}\n"));
                expected.push_str(&format!("0 {} key {value} codec=x\n", number * 3 + step));
            }
        }
        let read = [
            "-C",
            "-t",
            &topic,
            "-o",
            "beginning",
            "-e",
            "-q",
            "-f",
            "%p %o %k %s %h\\\n",
        ];
        assert_eq!(succeed(&kcat(broker, &read)), expected);
        let last = ["-C", "-t", &topic, "-o", "-1", "-e", "-q", "-f", "%o\\\n"];
        assert_eq!(succeed(&kcat(broker, &last)), "14\n");
    });
}

#[test]
fn kcat_lists_the_cluster_and_finds_offsets_by_time() {
    for_each_broker(|broker| {
        let topic = unique("kcat-list");
        create_topic(broker, &topic, 2, &[]);
        let listed = succeed(&kcat(broker, &["-L", "-t", &topic, "-J"]));
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed["controllerid"], 1);
        assert_eq!(
            listed["brokers"],
            serde_json::json!([{ "id": 1, "name": broker.bootstrap() }])
        );
        let partition = |number| {
            serde_json::json!({
                "partition": number, "leader": 1, "replicas": [{ "id": 1 }], "isrs": [{ "id": 1 }]
            })
        };
        assert_eq!(
            listed["topics"],
            serde_json::json!([{ "topic": topic, "partitions": [partition(0), partition(1)] }])
        );
        let base_timestamp = now_ms() - 60_000;
        produce(
            Client::FranzGo,
            broker,
            Batch {
                base_timestamp,
                ..Batch::new(&topic, 0, 10)
            },
        );
        let at = format!("{topic}:0:{}", base_timestamp + 4);
        assert_eq!(
            succeed(&kcat(broker, &["-Q", "-t", &at])),
            format!("{topic} [0] offset 4\n")
        );
    });
}

/// The balanced consumer of kcat: it prints its assignments on standard error.
#[test]
fn kcat_members_share_a_group_with_another_client() {
    for_each_broker(|broker| {
        let topic = unique("kcat-group");
        let group = unique("kcat-group");
        create_topic(broker, &topic, 2, &[]);
        let errors = [
            tempfile::NamedTempFile::new().unwrap(),
            tempfile::NamedTempFile::new().unwrap(),
        ];
        let mut members: Vec<_> = errors
            .iter()
            .map(|file| {
                kcat(
                    broker,
                    &[
                        "-G",
                        &group,
                        "-f",
                        "%p %o\\\n",
                        &topic,
                        "-X",
                        "auto.offset.reset=earliest",
                    ],
                )
                .stdout(Stdio::null())
                .stderr(std::fs::File::create(file.path()).unwrap())
                .spawn()
                .expect("kcat is installed")
            })
            .collect();
        let said = |number: usize| std::fs::read_to_string(errors[number].path()).unwrap();
        let own = |number: usize, partition: i32| {
            said(number)
                .lines()
                .rfind(|line| line.contains("rebalanced") && line.contains("assigned"))
                .is_some_and(|line| line.ends_with(&format!("assigned: {topic} [{partition}]")))
        };
        eventually(LIMIT, "each of two members owns one partition", || {
            ((own(0, 0) && own(1, 1)) || (own(0, 1) && own(1, 0))).then_some(())
        });
        produce(Client::FranzGo, broker, Batch::new(&topic, 0, 10));
        assert_eq!(
            consume(Client::ConfluentKafka, broker, &topic, 10).len(),
            10
        );
        for member in &mut members {
            let pid = rustix::process::Pid::from_raw(i32::try_from(member.id()).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            eventually(LIMIT, "kcat ends", || member.try_wait().unwrap());
        }
        let state = tool(
            broker,
            "consumer-groups",
            &["--describe", "--group", &group, "--state"],
        );
        assert!(state.contains("Empty"), "{state}");
    });
}
