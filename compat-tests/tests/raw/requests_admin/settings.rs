//! Requests about configurations.

use super::*;

pub(super) fn describe_configs(version: i16, on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
    let request = |kind: i8, name: &str, keys: Option<Vec<&str>>| {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(s(name))
            .with_configuration_keys(keys.map(|keys| keys.into_iter().map(s).collect()));
        RequestKind::DescribeConfigs(
            DescribeConfigsRequest::default()
                .with_resources(vec![resource])
                .with_include_synonyms(version % 2 == 0),
        )
    };
    let broker_keys = vec![
        "log.retention.ms",
        "num.partitions",
        "message.max.bytes",
        "compression.type",
        "auto.create.topics.enable",
        "group.initial.rebalance.delay.ms",
        "no.such.key",
    ];
    vec![
        ("topic, all", request(TOPIC, &on.topic, None)),
        (
            "topic, some",
            request(TOPIC, &on.topic, Some(vec!["retention.ms", "no.such.key"])),
        ),
        ("topic, none", request(TOPIC, &on.topic, Some(vec![]))),
        ("unknown topic", request(TOPIC, UNKNOWN, None)),
        ("invalid topic", request(TOPIC, "a b", None)),
        (
            "broker, some",
            request(BROKER, "1", Some(broker_keys.clone())),
        ),
        ("broker default", request(BROKER, "", Some(broker_keys))),
        ("another broker", request(BROKER, "7", None)),
        ("no number", request(BROKER, "seven", None)),
        ("no such type", request(99, "x", None)),
    ]
}

/// Key, value, and what is wrong with it.
const BAD_SETTINGS: &[(&str, Option<&str>, &str)] = &[
    ("no.such.key", Some("1"), "unknown key"),
    ("retention.ms", Some("soon"), "no number"),
    ("cleanup.policy", Some("keep"), "no such policy"),
    ("segment.bytes", Some("1"), "too small"),
    ("compression.type", Some("rar"), "no such codec"),
];

pub(super) fn alter_configs(on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::alter_configs_request::{AlterConfigsResource, AlterableConfig};
    let request = |kind: i8, name: &str, settings: &[(&str, Option<&str>)], validate_only: bool| {
        let configs = settings.iter().map(|(key, value)| {
            AlterableConfig::default()
                .with_name(s(key))
                .with_value(value.map(s))
        });
        let resource = AlterConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(s(name))
            .with_configs(configs.collect());
        RequestKind::AlterConfigs(
            AlterConfigsRequest::default()
                .with_resources(vec![resource])
                .with_validate_only(validate_only),
        )
    };
    let mut out = vec![
        (
            "set",
            request(
                TOPIC,
                &on.topic,
                &[("retention.ms", Some("777777777"))],
                false,
            ),
        ),
        (
            "validate only",
            request(TOPIC, &on.topic, &[("retention.ms", Some("5"))], true),
        ),
        (
            "null value",
            request(TOPIC, &on.topic, &[("retention.ms", None)], false),
        ),
        ("same key twice", {
            let twice = [("retention.ms", Some("5")), ("retention.ms", Some("6"))];
            request(TOPIC, &on.topic, &twice, false)
        }),
        (
            "unknown topic",
            request(TOPIC, UNKNOWN, &[("retention.ms", Some("5"))], false),
        ),
        ("no such type", request(99, "x", &[], false)),
        (
            "another broker",
            request(BROKER, "7", &[("log.retention.ms", Some("5"))], false),
        ),
        ("clear", request(TOPIC, &on.topic, &[], false)),
    ];
    for (key, value, what) in BAD_SETTINGS {
        out.push((what, request(TOPIC, &on.topic, &[(key, *value)], false)));
    }
    out
}

pub(super) fn incremental_alter_configs(on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::incremental_alter_configs_request::{
        AlterConfigsResource, AlterableConfig,
    };
    const SET: i8 = 0;
    const DELETE: i8 = 1;
    const APPEND: i8 = 2;
    const SUBTRACT: i8 = 3;
    let request = |kind: i8, name: &str, changes: &[(&str, i8, Option<&str>)], only: bool| {
        let configs = changes.iter().map(|(key, operation, value)| {
            AlterableConfig::default()
                .with_name(s(key))
                .with_config_operation(*operation)
                .with_value(value.map(s))
        });
        let resource = AlterConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(s(name))
            .with_configs(configs.collect());
        RequestKind::IncrementalAlterConfigs(
            IncrementalAlterConfigsRequest::default()
                .with_resources(vec![resource])
                .with_validate_only(only),
        )
    };
    let on_topic = |changes: &[(&str, i8, Option<&str>)]| request(TOPIC, &on.topic, changes, false);
    let mut out = vec![
        ("set", on_topic(&[("retention.ms", SET, Some("888888888"))])),
        ("delete", on_topic(&[("retention.ms", DELETE, None)])),
        (
            "append",
            on_topic(&[("cleanup.policy", APPEND, Some("compact"))]),
        ),
        (
            "subtract",
            on_topic(&[("cleanup.policy", SUBTRACT, Some("compact"))]),
        ),
        (
            "append to no list",
            on_topic(&[("retention.ms", APPEND, Some("1"))]),
        ),
        ("same key twice", {
            on_topic(&[
                ("retention.ms", SET, Some("5")),
                ("retention.ms", DELETE, None),
            ])
        }),
        ("one good, one bad", {
            on_topic(&[
                ("retention.ms", SET, Some("5")),
                ("segment.ms", SET, Some("soon")),
            ])
        }),
        ("null value", on_topic(&[("retention.ms", SET, None)])),
        (
            "validate only",
            request(TOPIC, &on.topic, &[("retention.ms", SET, Some("5"))], true),
        ),
        (
            "unknown topic",
            request(TOPIC, UNKNOWN, &[("retention.ms", SET, Some("5"))], false),
        ),
        ("no such type", request(99, "x", &[], false)),
        (
            "no such operation",
            on_topic(&[("retention.ms", 9, Some("5"))]),
        ),
        (
            "another broker",
            request(BROKER, "7", &[("log.retention.ms", SET, Some("5"))], false),
        ),
    ];
    for (key, value, what) in BAD_SETTINGS {
        out.push((what, on_topic(&[(key, SET, *value)])));
    }
    out
}
