//! kafka-topics.sh.

use compat_tests::broker::BrokerOptions;
use compat_tests::each_broker::{for_each_broker, for_each_broker_with};

use super::{blank, refused};
use crate::support::{tool, unique, until_seen};

/// Apache Kafka sets `min.insync.replicas` for the whole cluster when it formats its storage (KIP-966), so it is
/// listed with every topic there. Ours has no such setting until eligible leader replicas come.
fn without_cluster_default(described: &str) -> String {
    described
        .replace("min.insync.replicas=1,", "")
        .replace("Configs: min.insync.replicas=1", "Configs: ")
}

#[test]
fn topics_are_created_described_altered_and_deleted() {
    for_each_broker(|broker| {
        let topic = unique("topics.tool");
        let topics = |args: &[&str]| tool(broker, "topics", &[args, &["--topic", &topic]].concat());
        let created = topics(&[
            "--create",
            "--partitions",
            "2",
            "--config",
            "retention.ms=1000000",
            "--config",
            "cleanup.policy=compact",
        ]);
        assert_eq!(
            created,
            format!(
                "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could \
                 collide. To avoid issues it is best to use either, but not both.\nCreated topic {topic}.\n"
            )
        );
        until_seen(|| topics(&["--list"]), format!("{topic}\n"));
        let described = without_cluster_default(&blank(&topics(&["--describe"]), &["TopicId: "]));
        assert_eq!(
            described,
            format!(
                "Topic: {topic}\tTopicId: *\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: \
                 cleanup.policy=compact,retention.ms=1000000\n\
                 \tTopic: {topic}\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n\
                 \tTopic: {topic}\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
            )
        );
        assert_eq!(topics(&["--alter", "--partitions", "4"]), "");
        until_seen(|| topics(&["--describe"]).lines().count(), 5);
        assert!(topics(&["--list"]).lines().eq([topic.as_str()]));
        assert_eq!(topics(&["--delete"]), "");
        until_seen(|| topics(&["--list"]), "\n");
        let gone = format!(
            "Error while executing topic command : Topic '{topic}' does not exist as expected"
        );
        refused(broker, "topics", &["--describe", "--topic", &topic], &gone);
        refused(broker, "topics", &["--delete", "--topic", &topic], &gone);
        assert_eq!(topics(&["--describe", "--if-exists"]), "");
        assert_eq!(topics(&["--delete", "--if-exists"]), "");
    });
}

#[test]
fn impossible_topics_are_refused_with_the_reason() {
    for_each_broker(|broker| {
        let topic = unique("refused.tool");
        let failed = "Error while executing topic command : ";
        let refused = |args: &[&str], reason: &str| {
            refused(broker, "topics", args, &format!("{failed}{reason}"))
        };
        tool(
            broker,
            "topics",
            &["--create", "--topic", &topic, "--partitions", "3"],
        );
        refused(
            &["--create", "--topic", &topic],
            &format!("Topic '{topic}' already exists."),
        );
        assert_eq!(
            tool(
                broker,
                "topics",
                &["--create", "--topic", &topic, "--if-not-exists"]
            )
            .lines()
            .count(),
            1,
            "only the warning about names"
        );
        let other = topic.replace('.', "_");
        refused(
            &["--create", "--topic", &other],
            &format!("Topic '{other}' collides with existing topic: {topic}"),
        );
        refused(
            &["--alter", "--topic", &topic, "--partitions", "2"],
            &format!("The topic {topic} currently has 3 partition(s); 2 would not be an increase."),
        );
        refused(&["--create", "--topic", "no good"], "");
        refused(
            &[
                "--create",
                "--topic",
                &unique("rf"),
                "--replication-factor",
                "3",
            ],
            "",
        );
        refused(
            &[
                "--create",
                "--topic",
                &unique("config"),
                "--config",
                "retention.ms=soon",
            ],
            "",
        );
    });
}

#[test]
fn partition_filters_list_what_they_name() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        tool(
            broker,
            "topics",
            &["--create", "--topic", "plain", "--partitions", "1"],
        );
        let overridden = [
            "--create",
            "--topic",
            "overridden",
            "--partitions",
            "1",
            "--config",
            "retention.ms=7000000",
        ];
        tool(broker, "topics", &overridden);
        let filtered = |filter: &str| tool(broker, "topics", &["--describe", filter]);
        for filter in [
            "--under-replicated-partitions",
            "--under-min-isr-partitions",
            "--unavailable-partitions",
        ] {
            assert_eq!(filtered(filter), "", "{filter}");
        }
        let at_min_isr = filtered("--at-min-isr-partitions");
        let mut lines: Vec<_> = at_min_isr.split_inclusive('\n').collect();
        lines.sort_unstable();
        assert_eq!(
            lines.concat(),
            "\tTopic: overridden\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n\
             \tTopic: plain\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
        );
        let with_overrides =
            without_cluster_default(&blank(&filtered("--topics-with-overrides"), &["TopicId: "]));
        assert_eq!(
            with_overrides
                .lines()
                .find(|line| line.starts_with("Topic: overridden")),
            Some(
                "Topic: overridden\tTopicId: *\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: retention.ms=7000000"
            )
        );
        assert_eq!(tool(broker, "topics", &["--list"]), "overridden\nplain\n");
        assert_eq!(
            tool(broker, "topics", &["--list", "--exclude-internal"]),
            "overridden\nplain\n"
        );
    });
}
