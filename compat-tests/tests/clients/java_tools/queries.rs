//! kafka-get-offsets.sh, kafka-delete-records.sh, kafka-log-dirs.sh, kafka-cluster.sh and
//! kafka-broker-api-versions.sh.

use std::collections::BTreeMap;
use std::process::Command;

use compat_tests::clients::Client;
use compat_tests::each_broker::for_each_broker;
use compat_tests::java_tools;
use serde_json::Value;

use super::rows;
use crate::support::{Batch, create_topic, now_ms, produce, succeed, tool, unique};

#[test]
fn offsets_are_found_by_time_and_moved_by_deleting_records() {
    for_each_broker(|broker| {
        let topic = unique("get-offsets");
        create_topic(broker, &topic, 2, &[]);
        let base_timestamp = now_ms() - 60_000;
        produce(
            Client::FranzGo,
            broker,
            Batch {
                base_timestamp,
                ..Batch::new(&topic, 0, 10)
            },
        );
        let offsets = |args: &[&str]| {
            tool(
                broker,
                "get-offsets",
                &[args, &["--topic", &topic]].concat(),
            )
        };
        assert_eq!(offsets(&[]), format!("{topic}:0:10\n{topic}:1:0\n"));
        assert_eq!(
            offsets(&["--time", "earliest"]),
            format!("{topic}:0:0\n{topic}:1:0\n")
        );
        // A partition without an answer is left out.
        assert_eq!(
            offsets(&["--time", "max-timestamp"]),
            format!("{topic}:0:9\n")
        );
        let fourth = (base_timestamp + 4).to_string();
        assert_eq!(offsets(&["--time", &fourth]), format!("{topic}:0:4\n"));

        let file = tempfile::NamedTempFile::new().unwrap();
        let wanted = serde_json::json!({
            "partitions": [{ "topic": topic, "partition": 0, "offset": 6 }], "version": 1
        });
        std::fs::write(file.path(), wanted.to_string()).unwrap();
        let deleted = tool(
            broker,
            "delete-records",
            &["--offset-json-file", file.path().to_str().unwrap()],
        );
        assert_eq!(
            deleted,
            format!(
                "Executing records delete operation\nRecords delete operation completed:\n\
                 partition: {topic}-0\tlow_watermark: 6\n"
            )
        );
        assert_eq!(
            offsets(&["--time", "earliest"]),
            format!("{topic}:0:6\n{topic}:1:0\n")
        );
        assert_eq!(offsets(&["--time", &fourth]), format!("{topic}:0:6\n"));
    });
}

#[test]
fn log_dirs_tell_the_directory_and_the_size_of_each_partition() {
    for_each_broker(|broker| {
        let topic = unique("log-dirs");
        create_topic(broker, &topic, 1, &[]);
        produce(Client::FranzGo, broker, Batch::new(&topic, 0, 10));
        let printed = tool(broker, "log-dirs", &["--describe", "--topic-list", &topic]);
        let lines: Vec<_> = printed.lines().collect();
        assert_eq!(
            lines[..2],
            [
                "Querying brokers for log directories information",
                "Received log directory information from brokers 1"
            ]
        );
        let json: Value = serde_json::from_str(lines[2]).unwrap();
        let directory = &json["brokers"][0]["logDirs"][0];
        assert_eq!(directory["logDir"], broker.log_dir().to_str().unwrap());
        assert_eq!(directory["error"], Value::Null);
        let file = broker
            .log_dir()
            .join(format!("{topic}-0/00000000000000000000.log"));
        assert_eq!(
            directory["partitions"],
            serde_json::json!([{
                "partition": format!("{topic}-0"),
                "size": std::fs::metadata(file).unwrap().len(),
                "offsetLag": 0,
                "isFuture": false,
            }])
        );
    });
}

#[test]
fn cluster_tool_names_the_cluster_and_its_only_broker() {
    for_each_broker(|broker| {
        // In JVMs of their own, as a person runs them.
        let run = |command: &str| {
            let mut tool: Command = java_tools::command("cluster").unwrap();
            succeed(tool.args([command, "--bootstrap-server", &broker.bootstrap()]))
        };
        let properties = std::fs::read_to_string(broker.log_dir().join("meta.properties")).unwrap();
        let id = properties
            .lines()
            .find_map(|line| line.strip_prefix("cluster.id="))
            .unwrap();
        assert_eq!(run("cluster-id"), format!("Cluster ID: {id}\n"));
        let endpoints = run("list-endpoints");
        let port = broker.address().port().to_string();
        assert_eq!(
            rows(&endpoints)[1],
            ["1", "127.0.0.1", &port, "null", "unfenced", "broker"]
        );
    });
}

/// `API -> versions` as broker-api-versions prints them.
fn versions(printed: &str) -> BTreeMap<String, String> {
    printed
        .lines()
        .filter_map(|line| line.trim().trim_end_matches(',').split_once(": "))
        .filter(|(name, _)| name.ends_with(')'))
        .map(|(name, versions)| (name.to_owned(), versions.to_owned()))
        .collect()
}

/// The APIs that Highwater serves with Apache Kafka's versions, and the newest of ours where the codec that we build
/// on does not know Kafka's newest.
const APIS: [(&str, &str, Option<&str>); 36] = [
    ("Produce(0)", "0 to 13", None),
    ("Fetch(1)", "4 to 18", None),
    ("ListOffsets(2)", "1 to 11", Some("1 to 10")),
    ("Metadata(3)", "0 to 13", None),
    ("OffsetCommit(8)", "2 to 10", None),
    ("OffsetFetch(9)", "1 to 10", None),
    ("FindCoordinator(10)", "0 to 6", None),
    ("JoinGroup(11)", "0 to 9", None),
    ("Heartbeat(12)", "0 to 4", None),
    ("LeaveGroup(13)", "0 to 5", None),
    ("SyncGroup(14)", "0 to 5", None),
    ("DescribeGroups(15)", "0 to 6", None),
    ("ListGroups(16)", "0 to 5", None),
    ("ApiVersions(18)", "0 to 5", Some("0 to 4")),
    ("CreateTopics(19)", "2 to 7", None),
    ("DeleteTopics(20)", "1 to 6", None),
    ("DeleteRecords(21)", "0 to 2", None),
    ("InitProducerId(22)", "0 to 5", None),
    ("OffsetForLeaderEpoch(23)", "2 to 4", None),
    ("DescribeConfigs(32)", "1 to 4", None),
    ("AlterConfigs(33)", "0 to 2", None),
    ("DescribeLogDirs(35)", "1 to 5", Some("1 to 4")),
    ("CreatePartitions(37)", "0 to 3", None),
    ("DeleteGroups(42)", "0 to 3", Some("0 to 2")),
    ("ElectLeaders(43)", "0 to 2", None),
    ("IncrementalAlterConfigs(44)", "0 to 1", None),
    ("AlterPartitionReassignments(45)", "0 to 1", None),
    ("ListPartitionReassignments(46)", "0", None),
    ("OffsetDelete(47)", "0", None),
    ("DescribeQuorum(55)", "0 to 2", None),
    ("UpdateFeatures(57)", "0 to 2", None),
    ("DescribeCluster(60)", "0 to 2", None),
    ("DescribeProducers(61)", "0", None),
    ("UnregisterBroker(64)", "0", None),
    ("ListConfigResources(74)", "0 to 1", None),
    ("DescribeTopicPartitions(75)", "0", None),
];

#[test]
fn broker_api_versions_are_kafkas() {
    for_each_broker(|broker| {
        let mut tool = java_tools::command("broker-api-versions").unwrap();
        let printed = succeed(tool.args(["--bootstrap-server", &broker.bootstrap()]));
        let head = format!(
            "{} (id: 1 rack: null isFenced: false) -> (",
            broker.bootstrap()
        );
        assert_eq!(printed.lines().next(), Some(head.as_str()));
        let mut versions = versions(&printed);
        for (api, kafkas, ours) in APIS {
            let range = if broker.is_highwater() {
                ours.unwrap_or(kafkas)
            } else {
                kafkas
            };
            let newest = range.rsplit(' ').next().unwrap();
            let expected = format!("{range} [usable: {newest}]");
            assert_eq!(versions.remove(api), Some(expected), "{api}");
        }
        if broker.is_highwater() {
            versions.retain(|_, versions| versions != "UNSUPPORTED");
            assert_eq!(versions, BTreeMap::new(), "served but not in this table");
        }
    });
}
