//! kafka-configs.sh.

use compat_tests::cluster::for_each_shared_cluster;

use super::frame::{both, create_both, file_of, path};

#[test]
fn settings_of_topics_are_changed_and_shown() {
    for_each_shared_cluster(|cluster| {
        create_both(cluster, "ct-@", &[&[1, 2, 3]]);
        let configs = |args: &[&str]| both(cluster, "configs", args);
        configs(&[
            "--alter",
            "--topic",
            "ct-@",
            "--add-config",
            "retention.ms=1000,cleanup.policy=[compact,delete]",
        ])
        .same();
        let shown = configs(&["--describe", "--topic", "ct-@"]).same();
        assert!(shown.contains("cleanup.policy=compact,delete"), "{shown}");
        configs(&[
            "--describe",
            "--entity-type",
            "topics",
            "--entity-name",
            "ct-@",
            "--all",
        ])
        .same();
        let file = file_of("segment.ms=7000\nsegment.bytes = 1048576\n");
        configs(&[
            "--alter",
            "--entity-type",
            "topics",
            "--entity-name",
            "ct-@",
            "--add-config-file",
            path(&file),
        ])
        .same();
        configs(&[
            "--alter",
            "--topic",
            "ct-@",
            "--delete-config",
            "retention.ms,segment.ms",
            "--add-config",
            "flush.ms=9",
        ])
        .same();
        configs(&["--describe", "--topic", "ct-@"]).same();
        configs(&["--describe", "--topic", "nothing"]).same();
        for args in [
            &["--alter", "--topic", "ct-@"][..],
            &["--alter", "--topic", "ct-@", "--add-config", "nothing"],
            &["--alter", "--topic", "ct-@", "--add-config", "a b=1"],
            &[
                "--alter",
                "--topic",
                "ct-@",
                "--add-config",
                "a=1",
                "--add-config-file",
                "f",
            ],
            &["--alter", "--entity-type", "topics", "--add-config", "a=1"],
            &["--alter", "--entity-type", "brokers", "--add-config", "a=1"],
            &["--describe"],
            &["--describe", "--topic", "a", "--entity-type", "topics"],
            &["--describe", "--entity-type", "nothing"],
            &["--describe", "--broker", "x"],
            &["--describe", "--entity-type", "topics", "--entity-default"],
            &["--describe", "--entity-type", "broker-loggers"],
            &["--describe", "--topic", "a", "--delete-config", "b"],
            &["--topic", "a"],
        ] {
            configs(args).refused();
        }
        for (args, text) in [
            (
                &[
                    "--alter",
                    "--topic",
                    "ct-@",
                    "--add-config",
                    "retention.ms=soon",
                ][..],
                "InvalidConfigurationException: Invalid value soon for configuration retention.ms: Not a number of type LONG",
            ),
            (
                &[
                    "--alter",
                    "--topic",
                    "nothing",
                    "--add-config",
                    "retention.ms=5",
                ],
                "UnknownTopicOrPartitionException: The topic 'nothing' does not exist.",
            ),
        ] {
            configs(args).refused_with(text);
        }
    });
}

#[test]
fn settings_of_brokers_are_changed_and_shown() {
    for_each_shared_cluster(|cluster| {
        let configs = |args: &[&str]| both(cluster, "configs", args);
        configs(&[
            "--alter",
            "--broker-defaults",
            "--add-config",
            "log.cleaner.threads=2",
        ])
        .same();
        configs(&[
            "--alter",
            "--broker",
            "2",
            "--add-config",
            "log.cleaner.threads=3",
        ])
        .same();
        let shown = configs(&["--describe", "--entity-type", "brokers"]).same();
        assert!(
            shown.contains("DYNAMIC_BROKER_CONFIG:log.cleaner.threads=3"),
            "{shown}"
        );
        configs(&["--describe", "--broker-defaults"]).same();
        configs(&["--describe", "--entity-type", "brokers", "--entity-default"]).same();
        configs(&["--describe", "--broker", "2", "--all"]).same();
        configs(&["--describe", "--broker", "9"]).same();
        configs(&[
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-name",
            "2",
            "--delete-config",
            "log.cleaner.threads",
        ])
        .same();
        configs(&[
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-default",
            "--delete-config",
            "log.cleaner.threads",
        ])
        .same();
        configs(&["--describe", "--entity-type", "brokers"]).same();
        configs(&[
            "--alter",
            "--broker-logger",
            "1",
            "--add-config",
            "no.such.logger=DEBUG",
        ])
        .refused();
        configs(&["--describe", "--group", "nothing"]).same();
        configs(&["--describe", "--client-metrics", "nothing"]).same();
    });
}
