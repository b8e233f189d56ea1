//! A topic's settings, and bad ones.

use super::*;

/// Settings that no topic may have.
const BAD_SETTINGS: &[(&str, &str)] = &[
    ("no.such.key", "1"),
    ("retention.ms", "soon"),
    ("retention.ms", "-2"),
    ("cleanup.policy", "keep"),
    ("segment.bytes", "1"),
    ("segment.bytes", "9999999999"),
    ("segment.ms", "0"),
    ("max.message.bytes", "-1"),
    ("compression.type", "rar"),
    ("message.timestamp.type", "Sometimes"),
    ("min.insync.replicas", "0"),
    ("min.cleanable.dirty.ratio", "1.5"),
    ("unclean.leader.election.enable", "maybe"),
    ("index.interval.bytes", "-1"),
    ("flush.messages", "0"),
    ("delete.retention.ms", "-1"),
    ("min.compaction.lag.ms", "-1"),
    ("max.compaction.lag.ms", "0"),
    ("file.delete.delay.ms", "-1"),
    ("segment.index.bytes", "3"),
    ("preallocate", "yes"),
];

#[test]
fn bad_settings_are_refused_alike_by_all_three_ways() {
    use kafka_protocol::messages::alter_configs_request as alter;
    use kafka_protocol::messages::incremental_alter_configs_request as incremental;
    for_each_broker(|broker| {
        let topic = "topics-settings";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        for (key, value) in BAD_SETTINGS {
            let config = CreatableTopicConfig::default()
                .with_name(s(key))
                .with_value(Some(s(value)));
            let new = new_topic("topics-settings-new", 1, 1).with_configs(vec![config]);
            let found = create(&mut connection, vec![new]);
            assert_eq!(
                found[0].1,
                code::INVALID_CONFIG,
                "create with {key}={value}"
            );

            let config = alter::AlterableConfig::default()
                .with_name(s(key))
                .with_value(Some(s(value)));
            let resource = alter::AlterConfigsResource::default()
                .with_resource_type(2)
                .with_resource_name(s(topic))
                .with_configs(vec![config]);
            let request = AlterConfigsRequest::default().with_resources(vec![resource]);
            let reply = connection.call(2, &request).unwrap();
            let found = reply.responses[0].error_code;
            assert_eq!(found, code::INVALID_CONFIG, "alter to {key}={value}");

            let config = incremental::AlterableConfig::default()
                .with_name(s(key))
                .with_config_operation(0)
                .with_value(Some(s(value)));
            let resource = incremental::AlterConfigsResource::default()
                .with_resource_type(2)
                .with_resource_name(s(topic))
                .with_configs(vec![config]);
            let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
            let reply = connection.call(1, &request).unwrap();
            let found = reply.responses[0].error_code;
            assert_eq!(found, code::INVALID_CONFIG, "set {key}={value}");
        }
    });
}

#[test]
fn incremental_changes_are_atomic_and_know_lists() {
    use kafka_protocol::messages::incremental_alter_configs_request::{
        AlterConfigsResource, AlterableConfig,
    };
    for_each_broker(|broker| {
        let topic = "topics-incremental";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        let change = |connection: &mut Connection, changes: &[(&str, i8, Option<&str>)]| {
            let configs = changes.iter().map(|(key, operation, value)| {
                AlterableConfig::default()
                    .with_name(s(key))
                    .with_config_operation(*operation)
                    .with_value(value.map(s))
            });
            let resource = AlterConfigsResource::default()
                .with_resource_type(2)
                .with_resource_name(s(topic))
                .with_configs(configs.collect());
            let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
            connection.call(1, &request).unwrap().responses[0].error_code
        };
        let expect = |connection: &mut Connection, key: &str, value: &str, source: i8| {
            eventually(Duration::from_secs(10), &format!("{key}={value}"), || {
                let found = describe_one(connection, topic, key);
                (found == (Some(value.to_owned()), source)).then_some(())
            });
        };
        const TOPIC: i8 = 1;
        const DEFAULT: i8 = 5;
        assert_eq!(
            change(&mut connection, &[("cleanup.policy", 2, Some("compact"))]),
            code::NONE
        );
        expect(&mut connection, "cleanup.policy", "delete,compact", TOPIC);
        assert_eq!(
            change(&mut connection, &[("cleanup.policy", 3, Some("delete"))]),
            code::NONE
        );
        expect(&mut connection, "cleanup.policy", "compact", TOPIC);
        assert_eq!(
            change(&mut connection, &[("cleanup.policy", 1, None)]),
            code::NONE
        );
        expect(&mut connection, "cleanup.policy", "delete", DEFAULT);
        let mixed = [
            ("retention.ms", 0, Some("5000")),
            ("segment.ms", 0, Some("soon")),
        ];
        assert_eq!(change(&mut connection, &mixed), code::INVALID_CONFIG);
        expect(&mut connection, "retention.ms", "604800000", DEFAULT);
        let twice = [("retention.ms", 0, Some("5000")), ("retention.ms", 1, None)];
        assert_eq!(change(&mut connection, &twice), code::INVALID_REQUEST);
        let appended = change(&mut connection, &[("retention.ms", 2, Some("5000"))]);
        assert_eq!(appended, code::INVALID_CONFIG);
        assert_eq!(
            change(&mut connection, &[("retention.ms", 0, Some("5000"))]),
            code::NONE
        );
        expect(&mut connection, "retention.ms", "5000", TOPIC);
    });
}

#[test]
fn changed_size_limit_acts_at_once() {
    use kafka_protocol::messages::incremental_alter_configs_request::{
        AlterConfigsResource, AlterableConfig,
    };
    for_each_broker(|broker| {
        let topic = "topics-limit";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        let large = || compat_tests::raw::Batch::of_size(5000).encode();
        produce_ok(&mut connection, topic, 0, large());
        let config = AlterableConfig::default()
            .with_name(s("max.message.bytes"))
            .with_config_operation(0)
            .with_value(Some(s("2000")));
        let resource = AlterConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(s(topic))
            .with_configs(vec![config]);
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        assert_eq!(
            connection.call(1, &request).unwrap().responses[0].error_code,
            code::NONE
        );
        eventually(Duration::from_secs(10), "the limit acts", || {
            let found = produce(&mut connection, topic, 0, large()).error_code;
            (found == code::MESSAGE_TOO_LARGE).then_some(())
        });
    });
}
