//! Requests about topics and partitions.

use super::*;

pub(super) fn create_topics(version: i16, on: &Subject) -> Vec<Variant> {
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

pub(super) fn delete_topics(version: i16) -> Vec<Variant> {
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

pub(super) fn delete_records(on: &Subject) -> Vec<Variant> {
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

pub(super) fn create_partitions(version: i16, on: &Subject) -> Vec<Variant> {
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

pub(super) fn describe_topic_partitions(on: &Subject) -> Vec<Variant> {
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
