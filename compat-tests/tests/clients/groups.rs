//! Groups of one to four members that come, go, and are killed (cases.md F02).

use std::collections::BTreeSet;
use std::time::Duration;

use compat_tests::broker::Broker;
use compat_tests::clients::Client;
use compat_tests::each_broker::for_each_broker;
use compat_tests::process::eventually;

use crate::support::{Batch, LIMIT, Member, balanced, create_topic, produce, unique};

const PARTITIONS: i32 = 6;

/// The member that is killed is missed after so long. The others have longer sessions: on a machine that is short of time
/// a group whose members all get lost again and again never comes to rest.
const SESSION_OF_THE_KILLED: Duration = Duration::from_secs(10);

/// Ten records more in each partition; returns where they lie. The members are what is tested: a client that starts in
/// milliseconds produces, where an interpreter or a JVM for each of 24 batches would take most of the test's time.
fn produce_everywhere(broker: &Broker, topic: &str, round: usize) -> BTreeSet<(i64, i64)> {
    let mut places = BTreeSet::new();
    for partition in 0..PARTITIONS {
        let batch = Batch {
            partition,
            ..Batch::new(topic, round * 10, 10)
        };
        let (first, last) = produce(Client::FranzGo, broker, batch);
        places.extend((first..=last).map(|offset| (i64::from(partition), offset)));
    }
    places
}

fn members_come_and_go(kinds: [Client; 4]) {
    for_each_broker(|broker| {
        let topic = unique("group");
        let group = unique("members");
        create_topic(broker, &topic, PARTITIONS, &[]);
        let partitions = i64::from(PARTITIONS);
        let mut expected = produce_everywhere(broker, &topic, 0);
        let mut seen = BTreeSet::new();
        let join = |kind| Member::join(kind, broker, &topic, &group);

        let mut members = vec![join(kinds[0])];
        balanced(&members, partitions);
        members.push(Member::join_for_session(
            kinds[1],
            broker,
            &topic,
            &group,
            SESSION_OF_THE_KILLED,
        ));
        balanced(&members, partitions);
        members.extend([join(kinds[2]), join(kinds[3])]);
        balanced(&members, partitions);
        expected.extend(produce_everywhere(broker, &topic, 1));

        // One is killed: the others get its partitions when its session has timed out.
        seen.extend(members.remove(1).kill().records);
        balanced(&members, partitions);
        // The first, who may lead the group, leaves by itself.
        seen.extend(members.remove(0).leave().records);
        balanced(&members, partitions);
        expected.extend(produce_everywhere(broker, &topic, 2));
        eventually(LIMIT, "all records are consumed", || {
            let mut all = seen.clone();
            all.extend(members.iter().flat_map(|member| member.said().records));
            (all == expected).then_some(())
        });
        for member in members {
            member.leave();
        }

        // All was committed: one who joins now reads only what comes after.
        let late = vec![join(kinds[0])];
        balanced(&late, partitions);
        let fresh = produce_everywhere(broker, &topic, 3);
        eventually(LIMIT, "the new records are consumed", || {
            late[0].said().records.is_superset(&fresh).then_some(())
        });
        assert_eq!(
            late[0].said().records,
            fresh,
            "records consumed again that had been committed"
        );
    });
}

#[test]
fn confluent_kafka_members_come_and_go() {
    members_come_and_go([Client::ConfluentKafka; 4]);
}

#[test]
fn kafka_python_members_come_and_go() {
    members_come_and_go([Client::KafkaPython; 4]);
}

#[test]
fn aiokafka_members_come_and_go() {
    members_come_and_go([Client::Aiokafka; 4]);
}

#[test]
fn franz_go_members_come_and_go() {
    members_come_and_go([Client::FranzGo; 4]);
}

#[test]
fn sarama_members_come_and_go() {
    members_come_and_go([Client::Sarama; 4]);
}

#[test]
fn kafkajs_members_come_and_go() {
    members_come_and_go([Client::KafkaJs; 4]);
}

#[test]
fn java_client_members_come_and_go() {
    members_come_and_go([Client::Java; 4]);
}

#[test]
fn rdkafka_members_come_and_go() {
    members_come_and_go([Client::Rdkafka; 4]);
}

/// These four offer the range assignor by default, whoever leads.
#[test]
fn members_of_four_clients_share_one_group() {
    members_come_and_go([
        Client::ConfluentKafka,
        Client::Java,
        Client::Sarama,
        Client::Rdkafka,
    ]);
}
