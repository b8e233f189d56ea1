//! kafka-configs.sh.

use std::collections::BTreeMap;

use compat_tests::broker::{Broker, BrokerOptions};
use compat_tests::each_broker::{for_each_broker, for_each_broker_with};

use super::refused;
use crate::support::{create_topic, tool, unique, until_seen};

#[test]
fn topic_configs_are_added_described_and_deleted() {
    for_each_broker(|broker| {
        let topic = unique("configs-tool");
        let entity = ["--entity-type", "topics", "--entity-name", topic.as_str()];
        let configs = |args: &[&str]| tool(broker, "configs", &[args, &entity].concat());
        assert_eq!(
            configs(&["--describe"]),
            format!("The topic '{topic}' doesn't exist and doesn't have dynamic config.\n")
        );
        create_topic(broker, &topic, 1, &[]);
        assert_eq!(
            configs(&[
                "--alter",
                "--add-config",
                "retention.ms=5000,segment.bytes=2000000"
            ]),
            format!("Completed updating config for topic {topic}.\n")
        );
        let segment_bytes = "  segment.bytes=2000000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:\
                             segment.bytes=2000000, DEFAULT_CONFIG:log.segment.bytes=1073741824}\n";
        until_seen(
            || configs(&["--describe"]),
            format!(
                "Dynamic configs for topic {topic} are:\n  retention.ms=5000 sensitive=false \
                 synonyms={{DYNAMIC_TOPIC_CONFIG:retention.ms=5000}}\n{segment_bytes}"
            ),
        );
        configs(&["--alter", "--delete-config", "retention.ms"]);
        until_seen(
            || configs(&["--describe"]),
            format!("Dynamic configs for topic {topic} are:\n{segment_bytes}"),
        );
        let alter = |entry| [&["--alter", "--add-config", entry], &entity[..]].concat();
        refused(
            broker,
            "configs",
            &alter("retention.ms=soon"),
            "Invalid value soon for configuration retention.ms",
        );
        refused(
            broker,
            "configs",
            &alter("no.such.key=1"),
            "Unknown topic config name: no.such.key",
        );
        assert_eq!(
            configs(&["--describe"]),
            format!("Dynamic configs for topic {topic} are:\n{segment_bytes}")
        );
    });
}

/// `key -> the rest of its line` of a description.
fn described(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter_map(|line| line.split_once('='))
        .map(|(key, rest)| (key.to_owned(), rest.to_owned()))
        .collect()
}

fn all_topic_configs(broker: &Broker) -> BTreeMap<String, String> {
    let topic = unique("all-configs");
    create_topic(broker, &topic, 1, &[("max.message.bytes", "2000")]);
    let text = tool(
        broker,
        "configs",
        &[
            "--describe",
            "--all",
            "--entity-type",
            "topics",
            "--entity-name",
            &topic,
        ],
    );
    assert!(text.starts_with(&format!("All configs for topic {topic} are:\n")));
    described(&text)
}

#[test]
fn every_topic_key_has_kafkas_default_and_synonyms() {
    for_each_broker(|broker| {
        let all = all_topic_configs(broker);
        let expected = [
            (
                "cleanup.policy",
                "delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}",
            ),
            (
                "compression.gzip.level",
                "-1 sensitive=false synonyms={DEFAULT_CONFIG:compression.gzip.level=-1}",
            ),
            (
                "compression.lz4.level",
                "9 sensitive=false synonyms={DEFAULT_CONFIG:compression.lz4.level=9}",
            ),
            (
                "compression.type",
                "producer sensitive=false synonyms={DEFAULT_CONFIG:compression.type=producer}",
            ),
            (
                "compression.zstd.level",
                "3 sensitive=false synonyms={DEFAULT_CONFIG:compression.zstd.level=3}",
            ),
            (
                "delete.retention.ms",
                "86400000 sensitive=false synonyms={DEFAULT_CONFIG:log.cleaner.delete.retention.ms=86400000}",
            ),
            (
                "file.delete.delay.ms",
                "60000 sensitive=false synonyms={DEFAULT_CONFIG:log.segment.delete.delay.ms=60000}",
            ),
            (
                "flush.messages",
                "9223372036854775807 sensitive=false \
                 synonyms={DEFAULT_CONFIG:log.flush.interval.messages=9223372036854775807}",
            ),
            (
                "flush.ms",
                "9223372036854775807 sensitive=false synonyms={}",
            ),
            (
                "index.interval.bytes",
                "4096 sensitive=false synonyms={DEFAULT_CONFIG:log.index.interval.bytes=4096}",
            ),
            (
                "max.compaction.lag.ms",
                "9223372036854775807 sensitive=false \
                 synonyms={DEFAULT_CONFIG:log.cleaner.max.compaction.lag.ms=9223372036854775807}",
            ),
            (
                "max.message.bytes",
                "2000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:max.message.bytes=2000, \
                 DEFAULT_CONFIG:message.max.bytes=1048588}",
            ),
            (
                "message.timestamp.after.max.ms",
                "3600000 sensitive=false synonyms={DEFAULT_CONFIG:log.message.timestamp.after.max.ms=3600000}",
            ),
            (
                "message.timestamp.before.max.ms",
                "9223372036854775807 sensitive=false \
                 synonyms={DEFAULT_CONFIG:log.message.timestamp.before.max.ms=9223372036854775807}",
            ),
            (
                "message.timestamp.type",
                "CreateTime sensitive=false synonyms={DEFAULT_CONFIG:log.message.timestamp.type=CreateTime}",
            ),
            (
                "min.cleanable.dirty.ratio",
                "0.5 sensitive=false synonyms={DEFAULT_CONFIG:log.cleaner.min.cleanable.ratio=0.5}",
            ),
            (
                "min.compaction.lag.ms",
                "0 sensitive=false synonyms={DEFAULT_CONFIG:log.cleaner.min.compaction.lag.ms=0}",
            ),
            (
                "preallocate",
                "false sensitive=false synonyms={DEFAULT_CONFIG:log.preallocate=false}",
            ),
            (
                "retention.bytes",
                "-1 sensitive=false synonyms={DEFAULT_CONFIG:log.retention.bytes=-1}",
            ),
            ("retention.ms", "604800000 sensitive=false synonyms={}"),
            (
                "segment.bytes",
                "1073741824 sensitive=false synonyms={DEFAULT_CONFIG:log.segment.bytes=1073741824}",
            ),
            (
                "segment.index.bytes",
                "10485760 sensitive=false synonyms={DEFAULT_CONFIG:log.index.size.max.bytes=10485760}",
            ),
            ("segment.jitter.ms", "0 sensitive=false synonyms={}"),
            ("segment.ms", "604800000 sensitive=false synonyms={}"),
            (
                "unclean.leader.election.enable",
                "false sensitive=false synonyms={DEFAULT_CONFIG:unclean.leader.election.enable=false}",
            ),
        ];
        for (key, value) in expected {
            assert_eq!(all.get(key).map(String::as_str), Some(value), "{key}");
        }
        assert!(
            all["min.insync.replicas"].starts_with("1 sensitive=false"),
            "{}",
            all["min.insync.replicas"]
        );
    });
}

#[test]
fn broker_configs_change_at_run_time_for_one_and_for_all() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        create_topic(broker, "follows", 1, &[]);
        let configs = |args: &[&str]| {
            tool(
                broker,
                "configs",
                &[args, &["--entity-type", "brokers"]].concat(),
            )
        };
        assert_eq!(
            configs(&[
                "--alter",
                "--entity-default",
                "--add-config",
                "log.retention.ms=100000000"
            ]),
            "Completed updating default config for brokers in the cluster.\n"
        );
        until_seen(
            || described(&configs(&["--describe", "--entity-default"])).remove("log.retention.ms"),
            Some(
                "100000000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=100000000}"
                    .to_owned(),
            ),
        );
        let of_topic = || {
            let entity = [
                "--describe",
                "--all",
                "--entity-type",
                "topics",
                "--entity-name",
                "follows",
            ];
            described(&tool(broker, "configs", &entity))
                .remove("retention.ms")
                .unwrap()
        };
        until_seen(
            of_topic,
            "100000000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=100000000, \
             DEFAULT_CONFIG:log.retention.hours=168}",
        );
        assert_eq!(
            configs(&[
                "--alter",
                "--entity-name",
                "1",
                "--add-config",
                "log.retention.ms=200000000"
            ]),
            "Completed updating config for broker 1.\n"
        );
        until_seen(
            of_topic,
            "200000000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=200000000, \
             DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=100000000, DEFAULT_CONFIG:log.retention.hours=168}",
        );
        configs(&[
            "--alter",
            "--entity-name",
            "1",
            "--delete-config",
            "log.retention.ms",
        ]);
        configs(&[
            "--alter",
            "--entity-default",
            "--delete-config",
            "log.retention.ms",
        ]);
        until_seen(of_topic, "604800000 sensitive=false synonyms={}");
        // A key that only a restart can change.
        refused(
            broker,
            "configs",
            &[
                "--alter",
                "--entity-type",
                "brokers",
                "--entity-name",
                "1",
                "--add-config",
                "log.dirs=/tmp/x",
            ],
            "log.dirs",
        );
    });
}
