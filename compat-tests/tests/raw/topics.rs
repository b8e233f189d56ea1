//! Metadata, topics and configurations (B, H).

use std::time::Duration;

use compat_tests::broker::BrokerOptions;
use compat_tests::each_broker::{for_each_broker, for_each_broker_with};
use compat_tests::process::{eventually, free_port};
use compat_tests::raw::Connection;
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    AlterConfigsRequest, BrokerId, CreateTopicsRequest, DeleteTopicsRequest,
    DescribeClusterRequest, DescribeConfigsRequest, DescribeTopicPartitionsRequest,
    FindCoordinatorRequest, IncrementalAlterConfigsRequest, MetadataRequest,
};
use uuid::Uuid;

use crate::support::{
    batch, code, connect, create_topic, create_topic_with, delete_topic, list_offsets, metadata,
    produce, produce_ok, s, topic_name,
};

fn named(name: &str) -> MetadataRequestTopic {
    MetadataRequestTopic::default().with_name(Some(topic_name(name)))
}

#[test]
fn all_topics_and_no_topics_are_told_apart_in_every_version() {
    for_each_broker(|broker| {
        create_topic(broker, "topics-all", 1);
        let mut connection = connect(broker);
        for version in 0..=13 {
            let all = if version == 0 { Some(vec![]) } else { None };
            let request = MetadataRequest::default().with_topics(all);
            let reply = connection.call(version, &request).unwrap();
            let found = reply
                .topics
                .iter()
                .any(|t| t.name == Some(topic_name("topics-all")));
            assert!(found, "v{version}");
            if version > 0 {
                let request = MetadataRequest::default().with_topics(Some(vec![]));
                let reply = connection.call(version, &request).unwrap();
                assert!(reply.topics.is_empty(), "v{version}");
                assert_eq!(reply.brokers.len(), 1);
            }
        }
    });
}

#[test]
fn metadata_creates_only_when_allowed() {
    for_each_broker(|broker| {
        let mut connection = connect(broker);
        let ask = |connection: &mut Connection, name: &str, allow: bool| {
            let request = MetadataRequest::default()
                .with_topics(Some(vec![named(name)]))
                .with_allow_auto_topic_creation(allow);
            connection.call(9, &request).unwrap().topics[0].error_code
        };
        let unknown = code::UNKNOWN_TOPIC_OR_PARTITION;
        for _ in 0..3 {
            assert_eq!(ask(&mut connection, "topics-forbidden", false), unknown);
        }
        assert_eq!(
            ask(&mut connection, "topics-auto", true),
            unknown,
            "the first answer"
        );
        eventually(Duration::from_secs(10), "the topic is created", || {
            (ask(&mut connection, "topics-auto", true) == code::NONE).then_some(())
        });
        eventually(Duration::from_secs(10), "the topic takes records", || {
            let reply = produce(&mut connection, "topics-auto", 0, batch(1).encode());
            (reply.error_code == code::NONE).then_some(())
        });
        for bad in ["a/b", "..", &"n".repeat(250)] {
            assert_eq!(
                ask(&mut connection, bad, true),
                code::INVALID_TOPIC,
                "{bad}"
            );
        }
        assert_eq!(ask(&mut connection, "topics-forbidden", false), unknown);
    });
}

#[test]
fn too_few_brokers_for_automatic_creation_fail_that_topic_alone() {
    let options = BrokerOptions::new().set("default.replication.factor", 3);
    for_each_broker_with(&options, |broker| {
        let mut connection = connect(broker);
        create_replicated_once(&mut connection, "topics-there");
        let request = MetadataRequest::default()
            .with_topics(Some(vec![named("topics-three"), named("topics-there")]))
            .with_allow_auto_topic_creation(true);
        let mut ask = || {
            let reply = connection.call(9, &request).unwrap();
            let mut codes: Vec<_> = reply.topics.iter().map(|t| t.error_code).collect();
            codes.sort_unstable();
            codes
        };
        eventually(Duration::from_secs(10), "the other topic is served", || {
            (ask()[0] == code::NONE).then_some(())
        });
        for _ in 0..3 {
            // Creation goes on behind the answer: it never says what is wrong with it.
            assert_eq!(ask(), [code::NONE, code::UNKNOWN_TOPIC_OR_PARTITION]);
        }
    });
}

fn create_replicated_once(connection: &mut Connection, name: &str) {
    expect_one(connection, new_topic(name, 1, 1), code::NONE);
}

#[test]
fn recreated_topic_has_a_new_id_and_nothing_of_the_old() {
    for_each_broker(|broker| {
        let topic = "topics-recreated";
        let old = create_topic_with(broker, topic, 2, &[("retention.ms", "12345678")]);
        let mut connection = connect(broker);
        for i in 0..3 {
            let records = batch(1).from_producer(71_000, 3, i).encode();
            produce_ok(&mut connection, topic, 0, records);
        }
        delete_topic(broker, topic);
        let new = create_topic(broker, topic, 1);
        assert_ne!(old, new);
        assert_eq!(metadata(&mut connection, topic).topic_id, new);
        assert_eq!(list_offsets(&mut connection, topic, 0, -1).offset, 0);
        // Neither epoch nor sequence of the old topic is known.
        let records = batch(1).from_producer(71_000, 0, 7).encode();
        assert_eq!(produce_ok(&mut connection, topic, 0, records), 0);
        let by_id = |id| {
            MetadataRequestTopic::default()
                .with_name(None)
                .with_topic_id(id)
        };
        let request = MetadataRequest::default().with_topics(Some(vec![by_id(old), by_id(new)]));
        let reply = connection.call(12, &request).unwrap();
        let mut codes: Vec<_> = reply
            .topics
            .iter()
            .map(|t| (t.topic_id == new, t.error_code))
            .collect();
        codes.sort_unstable();
        assert_eq!(codes, [(false, code::UNKNOWN_TOPIC_ID), (true, code::NONE)]);
        let shown = describe_one(&mut connection, topic, "retention.ms");
        assert_eq!(
            shown.0.as_deref(),
            Some("604800000"),
            "the old setting is gone"
        );
    });
}

fn describe_one(connection: &mut Connection, topic: &str, key: &str) -> (Option<String>, i8) {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(s(topic))
        .with_configuration_keys(Some(vec![s(key)]));
    let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
    let reply = connection.call(4, &request).unwrap();
    let found = &reply.results[0];
    assert_eq!(found.error_code, code::NONE, "{found:?}");
    let entry = &found.configs[0];
    (
        entry.value.as_ref().map(|value| value.to_string()),
        entry.config_source,
    )
}

#[test]
fn each_listener_tells_its_own_address() {
    let [first, second] = [free_port().expect("a port"), free_port().expect("a port")];
    let options = BrokerOptions::new()
        .set(
            "listeners",
            format!("PLAINTEXT://127.0.0.1:{first},EXTERNAL://127.0.0.1:{second}"),
        )
        .set(
            "advertised.listeners",
            "PLAINTEXT://inside:1111,EXTERNAL://outside:2222",
        )
        .set(
            "listener.security.protocol.map",
            "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        );
    for_each_broker_with(&options, |_broker| {
        for (port, expected) in [(first, ("inside", 1111)), (second, ("outside", 2222))] {
            let mut connection = Connection::open(([127, 0, 0, 1], port).into()).unwrap();
            let reply = connection.call(9, &MetadataRequest::default()).unwrap();
            assert_eq!(
                (reply.brokers[0].host.as_str(), reply.brokers[0].port),
                expected
            );
            let reply = connection
                .call(0, &DescribeClusterRequest::default())
                .unwrap();
            assert_eq!(
                (reply.brokers[0].host.as_str(), reply.brokers[0].port),
                expected
            );
            let request = FindCoordinatorRequest::default().with_coordinator_keys(vec![s("group")]);
            let found = eventually(Duration::from_secs(60), "a coordinator", || {
                let reply = connection.call(4, &request).unwrap();
                (reply.coordinators[0].error_code == code::NONE)
                    .then(|| reply.coordinators[0].clone())
            });
            assert_eq!((found.host.as_str(), found.port), expected);
        }
    });
}

fn create(connection: &mut Connection, topics: Vec<CreatableTopic>) -> Vec<(String, i16)> {
    let request = CreateTopicsRequest::default()
        .with_topics(topics)
        .with_timeout_ms(10_000);
    let reply = connection
        .call(7, &request)
        .expect("CreateTopics is answered");
    for topic in &reply.topics {
        assert_eq!(
            topic.error_code != code::NONE,
            topic.error_message.is_some(),
            "{topic:?}"
        );
    }
    reply
        .topics
        .iter()
        .map(|topic| (topic.name.to_string(), topic.error_code))
        .collect()
}

fn new_topic(name: &str, partitions: i32, replicas: i16) -> CreatableTopic {
    CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(partitions)
        .with_replication_factor(replicas)
}

fn expect_one(connection: &mut Connection, topic: CreatableTopic, expected: i16) {
    let found = create(connection, vec![topic.clone()]);
    assert_eq!(found[0].1, expected, "{topic:?}");
}

#[test]
fn counts_that_cannot_be_are_refused_and_siblings_created() {
    for_each_broker(|broker| {
        let mut connection = connect(broker);
        for (replicas, expected) in [
            (0, code::INVALID_REPLICATION_FACTOR),
            (-2, code::INVALID_REPLICATION_FACTOR),
            (2, code::INVALID_REPLICATION_FACTOR),
            (3, code::INVALID_REPLICATION_FACTOR),
        ] {
            expect_one(
                &mut connection,
                new_topic("topics-replicas", 1, replicas),
                expected,
            );
        }
        for partitions in [0, -2, i32::MIN] {
            let topic = new_topic("topics-partitions", partitions, 1);
            expect_one(&mut connection, topic, code::INVALID_PARTITIONS);
        }
        let mut found = create(
            &mut connection,
            vec![
                new_topic("topics-good", 1, 1),
                new_topic("topics-bad", 1, 9),
            ],
        );
        found.sort();
        let expected = [
            ("topics-bad".to_owned(), code::INVALID_REPLICATION_FACTOR),
            ("topics-good".to_owned(), code::NONE),
        ];
        assert_eq!(found, expected);
        // The defaults.
        expect_one(
            &mut connection,
            new_topic("topics-defaults", -1, -1),
            code::NONE,
        );
        let made = eventually(Duration::from_secs(10), "the topic", || {
            let found = metadata(&mut connection, "topics-defaults");
            (found.error_code == code::NONE).then_some(found)
        });
        assert_eq!(made.partitions.len(), 1);
        assert_eq!(made.partitions[0].replica_nodes, [BrokerId(1)]);
    });
}

#[test]
fn names_that_cannot_be_are_refused() {
    for_each_broker(|broker| {
        let mut connection = connect(broker);
        for name in ["", ".", "..", "a b", "a/b", "ä", "a\0b", &"n".repeat(250)] {
            expect_one(&mut connection, new_topic(name, 1, 1), code::INVALID_TOPIC);
        }
        expect_one(
            &mut connection,
            new_topic("topics.same_name", 1, 1),
            code::NONE,
        );
        for name in ["topics.same.name", "topics_same_name"] {
            expect_one(&mut connection, new_topic(name, 1, 1), code::INVALID_TOPIC);
        }
        let topic = new_topic("topics.same_name", 1, 1);
        expect_one(&mut connection, topic, code::TOPIC_ALREADY_EXISTS);
        let twice = vec![
            new_topic("topics-twice", 1, 1),
            new_topic("topics-twice", 2, 1),
        ];
        for (_, found) in create(&mut connection, twice) {
            assert_eq!(found, code::INVALID_REQUEST);
        }
    });
}

#[test]
fn assignments_are_checked() {
    for_each_broker(|broker| {
        let mut connection = connect(broker);
        let by_hand = |name: &str, parts: &[(i32, &[i32])]| {
            let parts = parts.iter().map(|(index, brokers)| {
                CreatableReplicaAssignment::default()
                    .with_partition_index(*index)
                    .with_broker_ids(brokers.iter().map(|id| BrokerId(*id)).collect())
            });
            new_topic(name, -1, -1).with_assignments(parts.collect())
        };
        expect_one(
            &mut connection,
            by_hand("topics-by-hand", &[(0, &[1]), (1, &[1])]),
            code::NONE,
        );
        let bad: [&[(i32, &[i32])]; 7] = [
            &[(0, &[1]), (2, &[1])],
            &[(1, &[1])],
            &[(0, &[1]), (0, &[1])],
            &[(0, &[1, 1])],
            &[(0, &[9])],
            &[(0, &[])],
            &[(-1, &[1])],
        ];
        for parts in bad {
            let topic = by_hand("topics-assigned", parts);
            expect_one(&mut connection, topic, code::INVALID_REPLICA_ASSIGNMENT);
        }
        for (partitions, replicas) in [(1, -1), (-1, 1), (1, 1)] {
            let mut topic = by_hand("topics-assigned", &[(0, &[1])]);
            topic.num_partitions = partitions;
            topic.replication_factor = replicas;
            expect_one(&mut connection, topic, code::INVALID_REQUEST);
        }
    });
}

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

#[test]
fn deleting_by_id_and_by_both_is_told_apart() {
    for_each_broker(|broker| {
        let id = create_topic(broker, "topics-by-id", 1);
        let mut connection = connect(broker);
        let mut delete = |name: Option<&str>, id: Uuid| {
            let topic = DeleteTopicState::default()
                .with_name(name.map(topic_name))
                .with_topic_id(id);
            let request = DeleteTopicsRequest::default()
                .with_topics(vec![topic])
                .with_timeout_ms(10_000);
            connection.call(6, &request).unwrap().responses[0].error_code
        };
        assert_eq!(delete(Some("topics-by-id"), id), code::INVALID_REQUEST);
        assert_eq!(delete(None, Uuid::from_u128(5)), code::UNKNOWN_TOPIC_ID);
        assert_eq!(
            delete(Some("no-such-topic"), Uuid::nil()),
            code::UNKNOWN_TOPIC_OR_PARTITION
        );
        assert_eq!(delete(None, id), code::NONE);
        assert_eq!(delete(None, id), code::UNKNOWN_TOPIC_ID);
    });
}

#[test]
fn topic_partitions_are_paged() {
    for_each_broker(|broker| {
        let topics = ["paging-b", "paging-a", "paging-c"];
        for topic in topics {
            create_topic(broker, topic, 10);
        }
        let mut connection = connect(broker);
        let mut page = |names: &[&str], limit: i32, cursor: Option<Cursor>| {
            let topics = names
                .iter()
                .map(|n| TopicRequest::default().with_name(topic_name(n)));
            let request = DescribeTopicPartitionsRequest::default()
                .with_topics(topics.collect())
                .with_response_partition_limit(limit)
                .with_cursor(cursor);
            connection.call(0, &request).unwrap()
        };
        let mut seen = Vec::new();
        let mut cursor = None;
        for _ in 0..20 {
            let reply = page(&topics, 4, cursor.clone());
            let mut here = 0;
            for topic in &reply.topics {
                assert_eq!(topic.error_code, code::NONE);
                for partition in &topic.partitions {
                    let name = topic.name.as_ref().expect("a name").to_string();
                    seen.push((name, partition.partition_index));
                    here += 1;
                }
            }
            assert!(here <= 4);
            let Some(next) = reply.next_cursor else { break };
            cursor = Some(
                Cursor::default()
                    .with_topic_name(next.topic_name)
                    .with_partition_index(next.partition_index),
            );
        }
        let mut expected = Vec::new();
        for name in ["paging-a", "paging-b", "paging-c"] {
            expected.extend((0..10).map(|index| (name.to_owned(), index)));
        }
        assert_eq!(seen, expected);
        // A cursor outside the list.
        let outside = Cursor::default()
            .with_topic_name(topic_name("zzz"))
            .with_partition_index(0);
        let reply = page(&["paging-a"], 4, Some(outside));
        assert!(
            reply
                .topics
                .iter()
                .all(|t| t.error_code == code::INVALID_REQUEST),
            "{reply:?}"
        );
    });
}
