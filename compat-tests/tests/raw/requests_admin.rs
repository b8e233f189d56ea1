//! The requests of [`crate::requests`] for the APIs that administrate.

use kafka_protocol::messages::{
    AlterConfigsRequest, ApiKey, BrokerId, CreatePartitionsRequest, CreateTopicsRequest,
    DeleteGroupsRequest, DeleteRecordsRequest, DeleteTopicsRequest, DescribeConfigsRequest,
    DescribeLogDirsRequest, DescribeProducersRequest, DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest, OffsetDeleteRequest, RequestKind,
};
use uuid::Uuid;

use crate::requests::{Subject, Variant};
use crate::support::{group_id, s, topic_name};

const UNKNOWN: &str = "no-such-topic";
const TOPIC: i8 = 2;
const BROKER: i8 = 4;

pub(crate) fn variants(key: ApiKey, version: i16, on: &Subject) -> Vec<Variant> {
    match key {
        ApiKey::CreateTopics => create_topics(version, on),
        ApiKey::DeleteTopics => delete_topics(version),
        ApiKey::DeleteRecords => delete_records(on),
        ApiKey::DescribeConfigs => describe_configs(version, on),
        ApiKey::AlterConfigs => alter_configs(on),
        ApiKey::IncrementalAlterConfigs => incremental_alter_configs(on),
        ApiKey::DescribeLogDirs => describe_log_dirs(on),
        ApiKey::CreatePartitions => create_partitions(version, on),
        ApiKey::DeleteGroups => delete_groups(),
        ApiKey::OffsetDelete => offset_delete(on),
        ApiKey::DescribeProducers => describe_producers(on),
        ApiKey::DescribeTopicPartitions => describe_topic_partitions(on),
        _ => crate::requests_cluster::variants(key, version, on),
    }
}

fn create_topics(version: i16, on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::create_topics_request::{
        CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
    };
    let topic = |name: &str, partitions: i32, replicas: i16| {
        CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(partitions)
            .with_replication_factor(replicas)
    };
    let request = |topics: Vec<CreatableTopic>, validate_only: bool| {
        RequestKind::CreateTopics(
            CreateTopicsRequest::default()
                .with_topics(topics)
                .with_timeout_ms(10_000)
                .with_validate_only(validate_only),
        )
    };
    let config = |name: &str, value: Option<&str>| {
        CreatableTopicConfig::default()
            .with_name(s(name))
            .with_value(value.map(s))
    };
    let assigned = |partition: i32, brokers: &[i32]| {
        CreatableReplicaAssignment::default()
            .with_partition_index(partition)
            .with_broker_ids(brokers.iter().map(|id| BrokerId(*id)).collect())
    };
    let own = format!("created-v{version}");
    let by_hand = |name: &str, assignments| topic(name, -1, -1).with_assignments(assignments);
    let mut out = vec![
        (
            "new with a config",
            request(
                vec![topic(&own, 3, 1).with_configs(vec![config("retention.ms", Some("1000"))])],
                false,
            ),
        ),
        ("exists", request(vec![topic(&on.topic, 1, 1)], false)),
        (
            "validate only",
            request(vec![topic("only-tried", 2, 1)], true),
        ),
        (
            "bad names",
            request(
                vec![topic("", 1, 1), topic("..", 1, 1), topic("a b", 1, 1)],
                false,
            ),
        ),
        (
            "long name",
            request(vec![topic(&"n".repeat(250), 1, 1)], false),
        ),
        (
            "collides",
            request(vec![topic("compare.empty", 1, 1)], false),
        ),
        (
            "twice",
            request(vec![topic("twice", 1, 1), topic("twice", 2, 1)], false),
        ),
        (
            "no partitions",
            request(vec![topic("t", 0, 1), topic("u", -2, 1)], false),
        ),
        ("replication factors", {
            request(
                vec![topic("t", 1, 0), topic("u", 1, -2), topic("v", 1, 3)],
                false,
            )
        }),
        ("unknown key", {
            request(
                vec![topic("t", 1, 1).with_configs(vec![config("no.such.key", Some("1"))])],
                false,
            )
        }),
        ("bad values", {
            let with = |name: &str, key: &str, value: Option<&str>| {
                topic(name, 1, 1).with_configs(vec![config(key, value)])
            };
            request(
                vec![
                    with("t", "retention.ms", Some("soon")),
                    with("u", "cleanup.policy", Some("keep")),
                    with("v", "segment.bytes", Some("-1")),
                    with("w", "retention.ms", None),
                ],
                false,
            )
        }),
        (
            "assigned by hand",
            request(
                vec![by_hand(&format!("{own}-a"), vec![assigned(0, &[1])])],
                false,
            ),
        ),
        ("count and assignment", {
            request(
                vec![topic("t", 1, 1).with_assignments(vec![assigned(0, &[1])])],
                false,
            )
        }),
        ("assignment with a gap", {
            request(
                vec![by_hand("t", vec![assigned(0, &[1]), assigned(2, &[1])])],
                false,
            )
        }),
        (
            "assigned twice",
            request(vec![by_hand("t", vec![assigned(0, &[1, 1])])], false),
        ),
        (
            "unknown broker",
            request(vec![by_hand("t", vec![assigned(0, &[9])])], false),
        ),
        (
            "to no broker",
            request(vec![by_hand("t", vec![assigned(0, &[])])], false),
        ),
        ("no topics", request(vec![], false)),
    ];
    if version >= 4 {
        let name = format!("{own}-d");
        out.push(("defaults", request(vec![topic(&name, -1, -1)], false)));
    }
    out
}

fn delete_topics(version: i16) -> Vec<Variant> {
    use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
    let request = |names: Vec<&str>| {
        let request = DeleteTopicsRequest::default().with_timeout_ms(10_000);
        RequestKind::DeleteTopics(if version >= 6 {
            let topics = names
                .iter()
                .map(|n| DeleteTopicState::default().with_name(Some(topic_name(n))));
            request.with_topics(topics.collect())
        } else {
            request.with_topic_names(names.iter().map(|n| topic_name(n)).collect())
        })
    };
    // Topics that CreateTopics made: one a version is left for each of ours.
    let made = [
        "created-v2",
        "created-v3",
        "created-v4",
        "created-v5",
        "created-v6",
        "created-v7",
    ];
    let mut out = vec![
        ("known", request(vec![made[(version - 1) as usize]])),
        ("unknown", request(vec![UNKNOWN])),
        ("twice", request(vec![UNKNOWN, UNKNOWN])),
        ("none", request(vec![])),
    ];
    if version >= 6 {
        let by_id = |name: Option<&str>, id: Uuid| {
            let topic = DeleteTopicState::default()
                .with_name(name.map(topic_name))
                .with_topic_id(id);
            RequestKind::DeleteTopics(
                DeleteTopicsRequest::default()
                    .with_timeout_ms(10_000)
                    .with_topics(vec![topic]),
            )
        };
        out.push(("unknown id", by_id(None, Uuid::from_u128(77))));
        out.push(("name and id", by_id(Some(UNKNOWN), Uuid::from_u128(77))));
    }
    out
}

fn delete_records(on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::delete_records_request::{
        DeleteRecordsPartition, DeleteRecordsTopic,
    };
    let request = |name: &str, partition: i32, offset: i64| {
        let part = DeleteRecordsPartition::default()
            .with_partition_index(partition)
            .with_offset(offset);
        let topic = DeleteRecordsTopic::default()
            .with_name(topic_name(name))
            .with_partitions(vec![part]);
        RequestKind::DeleteRecords(
            DeleteRecordsRequest::default()
                .with_timeout_ms(10_000)
                .with_topics(vec![topic]),
        )
    };
    vec![
        ("to the start", request(&on.topic, 0, 0)),
        ("past the end", request(&on.topic, 0, 9999)),
        ("negative", request(&on.topic, 0, -2)),
        ("all of an empty one", request("compare-empty", 0, -1)),
        ("unknown topic", request(UNKNOWN, 0, 0)),
        ("unknown partition", request(&on.topic, 99, 0)),
    ]
}

fn describe_configs(version: i16, on: &Subject) -> Vec<Variant> {
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

fn alter_configs(on: &Subject) -> Vec<Variant> {
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

fn incremental_alter_configs(on: &Subject) -> Vec<Variant> {
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

fn describe_log_dirs(on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
    let request = |topics: Option<Vec<(&str, Vec<i32>)>>| {
        let topics = topics.map(|topics| {
            let topics = topics.into_iter().map(|(name, partitions)| {
                DescribableLogDirTopic::default()
                    .with_topic(topic_name(name))
                    .with_partitions(partitions)
            });
            topics.collect()
        });
        RequestKind::DescribeLogDirs(DescribeLogDirsRequest::default().with_topics(topics))
    };
    vec![
        ("one partition", request(Some(vec![(&on.topic, vec![0])]))),
        ("unknown topic", request(Some(vec![(UNKNOWN, vec![0])]))),
        (
            "unknown partition",
            request(Some(vec![(&on.topic, vec![99])])),
        ),
        ("no topics", request(Some(vec![]))),
        ("all", request(None)),
    ]
}

fn create_partitions(version: i16, on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::create_partitions_request::{
        CreatePartitionsAssignment, CreatePartitionsTopic,
    };
    let topic = |name: &str, count: i32, brokers: Option<Vec<i32>>| {
        let assignments = brokers.map(|brokers| {
            vec![
                CreatePartitionsAssignment::default()
                    .with_broker_ids(brokers.into_iter().map(BrokerId).collect()),
            ]
        });
        CreatePartitionsTopic::default()
            .with_name(topic_name(name))
            .with_count(count)
            .with_assignments(assignments)
    };
    let request = |topics: Vec<CreatePartitionsTopic>, validate_only: bool| {
        RequestKind::CreatePartitions(
            CreatePartitionsRequest::default()
                .with_topics(topics)
                .with_timeout_ms(10_000)
                .with_validate_only(validate_only),
        )
    };
    let next = 2 + i32::from(version);
    vec![
        (
            "one more",
            request(vec![topic("compare-grows", next, None)], false),
        ),
        (
            "the same",
            request(vec![topic("compare-grows", next, None)], false),
        ),
        (
            "fewer",
            request(vec![topic("compare-grows", 1, None)], false),
        ),
        (
            "negative",
            request(vec![topic("compare-grows", -3, None)], false),
        ),
        (
            "validate only",
            request(vec![topic(&on.topic, 9, None)], true),
        ),
        (
            "unknown topic",
            request(vec![topic(UNKNOWN, 9, None)], false),
        ),
        ("twice", {
            let twice = vec![
                topic("compare-grows", 50, None),
                topic("compare-grows", 51, None),
            ];
            request(twice, false)
        }),
        (
            "unknown broker",
            request(vec![topic("compare-grows", next + 1, Some(vec![9]))], false),
        ),
        (
            "too few assigned",
            request(vec![topic("compare-grows", next + 2, Some(vec![1]))], false),
        ),
    ]
}

fn delete_groups() -> Vec<Variant> {
    let request = |names: &[&str]| {
        RequestKind::DeleteGroups(
            DeleteGroupsRequest::default()
                .with_groups_names(names.iter().map(|name| group_id(name)).collect()),
        )
    };
    vec![
        ("unknown", request(&["no-such-group"])),
        ("empty id", request(&[""])),
        ("none", request(&[])),
    ]
}

fn offset_delete(on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::offset_delete_request::{
        OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
    };
    let request = |group: &str, name: &str| {
        let topic = OffsetDeleteRequestTopic::default()
            .with_name(topic_name(name))
            .with_partitions(vec![
                OffsetDeleteRequestPartition::default().with_partition_index(0),
            ]);
        RequestKind::OffsetDelete(
            OffsetDeleteRequest::default()
                .with_group_id(group_id(group))
                .with_topics(vec![topic]),
        )
    };
    vec![
        ("committed", request(&on.group, &on.topic)),
        ("unknown topic", request(&on.group, UNKNOWN)),
        ("unknown group", request("no-such-group", &on.topic)),
    ]
}

fn describe_producers(on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::describe_producers_request::TopicRequest;
    let request = |name: &str, partitions: Vec<i32>| {
        let topic = TopicRequest::default()
            .with_name(topic_name(name))
            .with_partition_indexes(partitions);
        RequestKind::DescribeProducers(DescribeProducersRequest::default().with_topics(vec![topic]))
    };
    vec![
        ("two partitions", request(&on.topic, vec![0, 1])),
        ("unknown partition", request(&on.topic, vec![99])),
        ("unknown topic", request(UNKNOWN, vec![0])),
    ]
}

fn describe_topic_partitions(on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
    let request = |names: &[&str], limit: i32, cursor: Option<(&str, i32)>| {
        let topics = names
            .iter()
            .map(|n| TopicRequest::default().with_name(topic_name(n)));
        let cursor = cursor.map(|(name, index)| {
            Cursor::default()
                .with_topic_name(topic_name(name))
                .with_partition_index(index)
        });
        RequestKind::DescribeTopicPartitions(
            DescribeTopicPartitionsRequest::default()
                .with_topics(topics.collect())
                .with_response_partition_limit(limit)
                .with_cursor(cursor),
        )
    };
    vec![
        ("one topic", request(&[&on.topic], 2000, None)),
        ("unknown topic", request(&[UNKNOWN], 2000, None)),
        (
            "first page",
            request(&["compare-empty", &on.topic], 2, None),
        ),
        (
            "second page",
            request(&["compare-empty", &on.topic], 2, Some((&on.topic, 1))),
        ),
        (
            "cursor elsewhere",
            request(&[&on.topic], 2, Some((UNKNOWN, 0))),
        ),
        (
            "negative cursor",
            request(&[&on.topic], 2, Some((&on.topic, -1))),
        ),
        ("no room", request(&[&on.topic], 0, None)),
    ]
}
