//! What Metadata and DescribeTopicPartitions tell, and creating by asking.

use super::*;

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
