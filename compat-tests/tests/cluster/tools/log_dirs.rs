//! kafka-log-dirs.sh, kafka-get-offsets.sh and kafka-replica-verification.sh: what lies where.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use compat_tests::cluster::{Cluster, for_each_shared_cluster};
use compat_tests::java_tools::command;
use compat_tests::process::eventually;
use serde_json::Value;

use super::tool;
use crate::support::{produce_all, sizes_on_disk};

fn written(cluster: &Cluster, topic: &str, count: i64) {
    cluster.create_topic(topic, &[&[1, 2, 3]], &[]);
    let mut leader = cluster.connect(1).unwrap();
    for value in 0..count {
        assert_eq!(produce_all(&mut leader, topic, &format!("{value}")), value);
    }
}

#[test]
fn log_dirs_shows_every_replica_with_its_size() {
    for_each_shared_cluster(|cluster| {
        written(cluster, "sized", 30);
        let size = sizes_on_disk(cluster, 1, "sized");
        assert!(size > 30 * 61, "{size}");
        let describe = ["--describe", "--topic-list", "sized"];
        let json = eventually(Cluster::PATIENCE, "no replica lags", || {
            let printed = tool(cluster, "log-dirs", &describe);
            let mut lines = printed.lines();
            assert_eq!(
                lines.next(),
                Some("Querying brokers for log directories information")
            );
            let received = lines.next().unwrap();
            assert!(
                received.starts_with("Received log directory information from brokers "),
                "{printed}"
            );
            let json: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
            let lags = |broker: &Value| broker["logDirs"][0]["partitions"][0]["offsetLag"] == 0;
            json["brokers"]
                .as_array()
                .unwrap()
                .iter()
                .all(lags)
                .then_some(json)
        });
        let mut brokers: Vec<i64> = Vec::new();
        for broker in json["brokers"].as_array().unwrap() {
            let id = broker["broker"].as_i64().unwrap();
            let directory = &broker["logDirs"][0];
            let data = cluster.data(i32::try_from(id).unwrap()).unwrap();
            assert_eq!(directory["logDir"], data.to_str().unwrap());
            assert_eq!(directory["error"], Value::Null);
            let partition = &directory["partitions"][0];
            assert_eq!(partition["partition"], "sized-0");
            assert_eq!(partition["size"], size, "on broker {id}");
            assert_eq!(partition["isFuture"], false);
            brokers.push(id);
        }
        brokers.sort_unstable();
        assert_eq!(brokers, [1, 2, 3]);
        let two = tool(
            cluster,
            "log-dirs",
            &[&describe[..], &["--broker-list", "2"]].concat(),
        );
        assert!(
            two.contains("Received log directory information from brokers 2\n"),
            "{two}"
        );
    });
}

#[test]
fn get_offsets_asks_each_partitions_leader() {
    for_each_shared_cluster(|cluster| {
        written(cluster, "counted", 7);
        cluster.create_topic("counted-2", &[&[2, 3, 1], &[3, 1, 2]], &[]);
        assert_eq!(
            tool(cluster, "get-offsets", &["--topic", "counted"]),
            "counted:0:7\n"
        );
        assert_eq!(
            tool(cluster, "get-offsets", &["--topic", "counted.*"]),
            "counted:0:7\ncounted-2:0:0\ncounted-2:1:0\n"
        );
        assert_eq!(
            tool(
                cluster,
                "get-offsets",
                &["--topic", "counted", "--time", "earliest"]
            ),
            "counted:0:0\n"
        );
    });
}

#[test]
fn replica_verification_finds_no_difference() {
    for_each_shared_cluster(|cluster| {
        written(cluster, "verified", 20);
        // It goes on until it is ended.
        let mut child = command("replica-verification")
            .unwrap()
            .args([
                "--broker-list",
                &cluster.bootstrap(),
                "--topics-include",
                "verified",
            ])
            .args(["--report-interval-ms", "500"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let wanted = "max lag is 0 for partition verified-0 at offset 20 among 1 partitions";
        let mut said = Vec::new();
        let found = loop {
            match lines.recv_timeout(Cluster::PATIENCE) {
                Ok(line) => {
                    let found = line.ends_with(wanted);
                    said.push(line);
                    if found {
                        break true;
                    }
                }
                Err(_) => break false,
            }
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found, "{said:#?}");
        assert!(
            said.iter()
                .any(|line| line.ends_with("verification process is started")),
            "{said:#?}"
        );
    });
}
