//! Offsets of groups: committed, fetched, forgotten, and still there after `kill -9`.

use super::*;

#[test]
fn commits_are_fenced() {
    for_each_broker(|broker| {
        let group = "groups-fenced";
        let topic = "groups-fenced-topic";
        let mut connection = prepare(broker, group);
        // Nobody lives in it: a simple commit is taken.
        assert_eq!(commit(&mut connection, group, "", -1, topic, 1), code::NONE);
        let unknown = commit(&mut connection, "groups-none", "nobody", 3, topic, 1);
        assert_eq!(unknown, code::ILLEGAL_GENERATION);
        let request = commit_request("groups-none", "nobody", 3, topic, 1);
        let reply = connection.call(9, &request).unwrap();
        assert_eq!(
            reply.topics[0].partitions[0].error_code,
            code::GROUP_ID_NOT_FOUND
        );

        let member = alone(&mut connection, group);
        let mut expect = |member: &str, generation: i32, topic: &str, expected: i16| {
            let found = commit(&mut connection, group, member, generation, topic, 2);
            assert_eq!(
                found, expected,
                "member {member:?}, generation {generation}, {topic}"
            );
        };
        expect(&member, 1, topic, code::NONE);
        expect(&member, 2, topic, code::ILLEGAL_GENERATION);
        expect(&member, 0, topic, code::ILLEGAL_GENERATION);
        expect("nobody", 1, topic, code::UNKNOWN_MEMBER_ID);
        expect("", -1, topic, code::UNKNOWN_MEMBER_ID);
        expect(
            &member,
            1,
            "no-such-topic",
            code::UNKNOWN_TOPIC_OR_PARTITION,
        );
        let mut long = commit_request(group, &member, 1, topic, 3);
        long.topics[0].partitions[0].committed_metadata = Some(s(&"x".repeat(4097)));
        let reply = connection.call(8, &long).unwrap();
        assert_eq!(
            reply.topics[0].partitions[0].error_code,
            code::OFFSET_METADATA_TOO_LARGE
        );
        assert_eq!(committed(&mut connection, group, topic), 2);
        // For simple commits the empty group is one like any other.
        assert_eq!(commit(&mut connection, "", "", -1, topic, 2), code::NONE);
    });
}

#[test]
fn offset_fetch_tells_all_some_and_none() {
    for_each_broker(|broker| {
        let group = "groups-offsets";
        let topic = "groups-offsets-topic";
        let mut connection = prepare(broker, group);
        assert_eq!(
            commit(&mut connection, group, "", -1, topic, 42),
            code::NONE
        );
        for version in 2..=7 {
            let request = OffsetFetchRequest::default()
                .with_group_id(group_id(group))
                .with_topics(None);
            let reply = connection.call(version, &request).unwrap();
            assert_eq!(reply.error_code, code::NONE);
            assert_eq!(reply.topics.len(), 1, "v{version}");
            assert_eq!(reply.topics[0].partitions[0].committed_offset, 42);
            assert_eq!(reply.topics[0].partitions[0].metadata, Some(s("note")));
            let nobody = request.with_group_id(group_id("groups-nobody"));
            assert!(connection.call(version, &nobody).unwrap().topics.is_empty());
        }
        for version in 8..=9 {
            let of = |group: &str, topics: Option<Vec<&str>>| {
                let topics = topics.map(|topics| {
                    let topics = topics.into_iter().map(|name| {
                        OffsetFetchRequestTopics::default()
                            .with_name(topic_name(name))
                            .with_partition_indexes(vec![0, 9])
                    });
                    topics.collect()
                });
                OffsetFetchRequestGroup::default()
                    .with_group_id(group_id(group))
                    .with_topics(topics)
            };
            let groups = vec![
                of(group, None),
                of(group, Some(vec![topic, "no-such-topic"])),
                of("groups-nobody", Some(vec![topic])),
                of(group, Some(vec![])),
            ];
            // The same group may be asked once only by real clients: ask apart.
            let mut found = Vec::new();
            for group in groups {
                let request = OffsetFetchRequest::default().with_groups(vec![group]);
                let mut reply = connection.call(version, &request).unwrap();
                let group = reply.groups.remove(0);
                assert_eq!(group.error_code, code::NONE);
                let offsets: Vec<Vec<i64>> = group
                    .topics
                    .iter()
                    .map(|t| t.partitions.iter().map(|p| p.committed_offset).collect())
                    .collect();
                found.push(offsets);
            }
            let expected: Vec<Vec<Vec<i64>>> = vec![
                vec![vec![42]],
                vec![vec![42, -1], vec![-1, -1]],
                vec![vec![-1, -1]],
                vec![],
            ];
            assert_eq!(found, expected, "v{version}");
        }
        // Version 1 knows no null.
        connection
            .send_body(9, 1, &[0, 1, b'g', 0xff, 0xff, 0xff, 0xff])
            .unwrap();
        assert!(
            connection.read_frame().unwrap().is_none(),
            "OffsetFetch v1 of null closes"
        );
    });
}

/// A compact string.
fn compact(text: &str) -> Vec<u8> {
    let mut out = vec![text.len() as u8 + 1];
    out.extend(text.as_bytes());
    out
}

#[test]
fn version_10_names_topics_by_id() {
    for_each_broker(|broker| {
        let group = "groups-v10";
        wait_for_coordinator(broker, group);
        let id = create_topic(broker, "groups-v10-topic", 1);
        let unknown = uuid::Uuid::from_u128(404);
        let mut connection = connect(broker);
        // The codec stops at version 9: these bytes are made by hand.
        let mut body = compact(group);
        body.extend((-1_i32).to_be_bytes()); // generation
        body.extend([1, 0, 3]); // member "", no instance, two topics
        for topic in [id, unknown] {
            body.extend(topic.as_bytes());
            body.push(2); // one partition
            body.extend(0_i32.to_be_bytes());
            body.extend(77_i64.to_be_bytes());
            body.extend((-1_i32).to_be_bytes()); // leader epoch
            body.extend(compact("note"));
            body.extend([0, 0]); // tags of the partition and of the topic
        }
        body.push(0);
        connection.send_body(8, 10, &body).unwrap();
        let reply = connection.receive::<OffsetCommitRequest>(10).unwrap();
        let mut codes: Vec<_> = reply
            .topics
            .iter()
            .map(|topic| (topic.topic_id == id, topic.partitions[0].error_code))
            .collect();
        codes.sort_unstable();
        assert_eq!(codes, [(false, code::UNKNOWN_TOPIC_ID), (true, code::NONE)]);

        let mut body = vec![2]; // one group
        body.extend(compact(group));
        body.push(0); // no member id
        body.extend((-1_i32).to_be_bytes());
        body.push(3); // two topics
        for topic in [id, unknown] {
            body.extend(topic.as_bytes());
            body.push(2);
            body.extend(0_i32.to_be_bytes());
            body.push(0);
        }
        body.extend([0, 0, 0]); // tags of the group, not require_stable, tags
        connection.send_body(9, 10, &body).unwrap();
        let reply = connection.receive::<OffsetFetchRequest>(10).unwrap();
        assert_eq!(reply.groups[0].error_code, code::NONE);
        let mut found: Vec<_> = reply.groups[0]
            .topics
            .iter()
            .map(|topic| {
                let part = &topic.partitions[0];
                (topic.topic_id == id, part.committed_offset, part.error_code)
            })
            .collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [(false, -1, code::UNKNOWN_TOPIC_ID), (true, 77, code::NONE)]
        );
    });
}

#[test]
fn offsets_of_a_deleted_topic_are_gone() {
    for_each_broker(|broker| {
        let group = "groups-deleted";
        let topic = "groups-deleted-topic";
        let mut connection = prepare(broker, group);
        assert_eq!(commit(&mut connection, group, "", -1, topic, 7), code::NONE);
        assert_eq!(committed(&mut connection, group, topic), 7);
        delete_topic(broker, topic);
        create_topic(broker, topic, 1);
        eventually(Duration::from_secs(20), "the commit is dropped", || {
            (committed(&mut connection, group, topic) == -1).then_some(())
        });
    });
}

#[test]
fn offsets_and_generations_live_on_after_kill() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        let group = "groups-kill";
        let topic = "groups-kill-topic";
        let mut connection = prepare(broker, group);
        let member = alone(&mut connection, group);
        assert_eq!(
            commit(&mut connection, group, &member, 1, topic, 33),
            code::NONE
        );
        broker.kill().unwrap();
        broker.start_again().unwrap();
        wait_for_coordinator(broker, group);
        let mut connection = connect(broker);
        assert_eq!(committed(&mut connection, group, topic), 33);
        assert_eq!(
            heartbeat(&mut connection, group, &member, 1),
            code::NONE,
            "still a member"
        );
        assert_eq!(
            commit(&mut connection, group, &member, 1, topic, 34),
            code::NONE
        );
    });
}

#[test]
fn subscribed_topics_keep_their_offsets() {
    for_each_broker(|broker| {
        let group = "groups-subscribed";
        let topic = "groups-subscribed-topic";
        let mut connection = prepare(broker, group);
        // A subscription, version 0: the topics and no user data.
        let mut subscription = vec![0, 0, 0, 0, 0, 1, 0, topic.len() as u8];
        subscription.extend(topic.as_bytes());
        subscription.extend([0xff; 4]);
        let range = JoinGroupRequestProtocol::default()
            .with_name(s("range"))
            .with_metadata(Bytes::from(subscription));
        let request =
            |member: &str| join_request(group, member).with_protocols(vec![range.clone()]);
        let member = connection.call(JOIN, &request("")).unwrap().member_id;
        let joined = connection.call(JOIN, &request(&member)).unwrap();
        assert_eq!(joined.error_code, code::NONE);
        sync(&mut connection, group, &member, 1, &[(&member, b"x")]);
        assert_eq!(
            commit(&mut connection, group, &member, 1, topic, 1),
            code::NONE
        );
        let topics = OffsetDeleteRequestTopic::default()
            .with_name(topic_name(topic))
            .with_partitions(vec![
                OffsetDeleteRequestPartition::default().with_partition_index(0),
            ]);
        let request = OffsetDeleteRequest::default()
            .with_group_id(group_id(group))
            .with_topics(vec![topics]);
        let reply = connection.call(0, &request).unwrap();
        assert_eq!(reply.error_code, code::NONE);
        let found = reply.topics[0].partitions[0].error_code;
        assert_eq!(found, code::GROUP_SUBSCRIBED_TO_TOPIC);
        assert_eq!(committed(&mut connection, group, topic), 1);
    });
}
