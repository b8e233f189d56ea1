//! Creating and deleting topics.

use super::*;

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
