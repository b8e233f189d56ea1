//! kafka-verifiable-producer.sh, kafka-verifiable-consumer.sh and the two performance tests.

use std::collections::BTreeSet;

use compat_tests::each_broker::for_each_broker;
use compat_tests::java_tools;
use serde_json::Value;

use crate::support::{create_topic, succeed, tool, unique};

fn events(printed: &str, name: &str) -> Vec<Value> {
    printed
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["name"] == name)
        .collect()
}

#[test]
fn verifiable_consumer_sees_what_the_verifiable_producer_sent() {
    for_each_broker(|broker| {
        let topic = unique("verifiable");
        create_topic(broker, &topic, 3, &[]);
        // In a JVM of its own: its last lines come from a shutdown hook.
        let mut producer = java_tools::command("verifiable-producer").unwrap();
        producer.args(["--bootstrap-server", &broker.bootstrap(), "--topic", &topic]);
        let printed = succeed(producer.args(["--max-messages", "1000", "--acks", "-1"]));
        let place = |event: &Value| (event["partition"].as_i64(), event["offset"].as_i64());
        let sent: BTreeSet<_> = events(&printed, "producer_send_success")
            .iter()
            .map(place)
            .collect();
        assert_eq!(sent.len(), 1000);
        let summary = &events(&printed, "tool_data")[0];
        assert_eq!(
            (&summary["sent"], &summary["acked"]),
            (&Value::from(1000), &Value::from(1000))
        );

        let group = unique("verifiable");
        let reader = [
            "--max-messages",
            "1000",
            "--group-id",
            &group,
            "--reset-policy",
            "earliest",
            "--verbose",
        ];
        let printed = tool(
            broker,
            "verifiable-consumer",
            &[&["--topic", topic.as_str()], &reader[..]].concat(),
        );
        let seen: BTreeSet<_> = events(&printed, "record_data").iter().map(place).collect();
        assert_eq!(seen, sent);
        let commits = events(&printed, "offsets_committed");
        assert!(
            !commits.is_empty() && commits.iter().all(|event| event["success"] == true),
            "{commits:?}"
        );
        assert_eq!(
            events(&printed, "partitions_assigned")[0]["partitions"]
                .as_array()
                .map(Vec::len),
            Some(3)
        );
    });
}

#[test]
fn performance_tests_send_and_consume_all_records() {
    for_each_broker(|broker| {
        let topic = unique("perf");
        create_topic(broker, &topic, 2, &[]);
        let args = [
            "--topic",
            &topic,
            "--num-records",
            "20000",
            "--record-size",
            "500",
            "--throughput",
            "-1",
        ];
        let printed = tool(broker, "producer-perf-test", &args);
        let last = printed.lines().last().unwrap();
        assert!(
            last.starts_with("20000 records sent, ") && last.ends_with(" ms 99.9th."),
            "{printed}"
        );
        let printed = tool(
            broker,
            "consumer-perf-test",
            &["--topic", &topic, "--num-records", "20000"],
        );
        let row: Vec<_> = printed.lines().last().unwrap().split(", ").collect();
        assert_eq!(row.len(), 10, "{printed}");
        // The consumer stops after the poll that passes the wanted count.
        assert_eq!(row[4], "20000", "{printed}");
    });
}
