//! The quorum of controllers, with and without a majority.

use std::time::Duration;

use compat_tests::cluster::{Cluster, ClusterOptions, Shape, for_each_cluster};
use compat_tests::process::eventually;
use compat_tests::raw::{Connection, code, topic_name};
use kafka_protocol::messages::CreateTopicsRequest;
use kafka_protocol::messages::create_topics_request::CreatableTopic;

use crate::support::{LATEST, LONG, fetch, offset_at, one, produce, produce_all};

/// Brokers take themselves for fenced after so long without a controller.
const SESSION: Duration = Duration::from_secs(3);
/// Longer than a broker tries to hand a request on.
const FORWARDING: Duration = Duration::from_secs(90);

fn options(controllers: i32) -> ClusterOptions {
    let shape = Shape::Separate {
        controllers,
        brokers: 2,
    };
    ClusterOptions::new()
        .shape(shape)
        .set("broker.session.timeout.ms", SESSION.as_millis())
        .set("offsets.topic.replication.factor", "2")
}

#[test]
fn five_controllers_go_on_with_two_down() {
    for_each_cluster(&options(5), |cluster| {
        let all = [3001, 3002, 3003, 3004, 3005];
        let before = cluster.quorum(1).unwrap();
        assert!(before.voters.keys().eq(&all), "{before:?}");
        cluster.create_topic("before", &[&[1, 2]], &[]);
        // The active one, and one that is not.
        let other = all.into_iter().find(|id| *id != before.leader).unwrap();
        cluster.kill(other).unwrap();
        cluster.kill(before.leader).unwrap();
        let after = eventually(Cluster::PATIENCE, "another active controller", || {
            let now = cluster.quorum(1).ok()?;
            let is_other = now.leader > 0 && now.leader != before.leader && now.leader != other;
            is_other.then_some(now)
        });
        assert!(after.epoch > before.epoch, "{after:?}");
        cluster.create_topic("after", &[&[1, 2]], &[]);
        for id in [other, before.leader] {
            cluster.start_again(id).unwrap();
        }
        eventually(Cluster::PATIENCE, "all five have all", || {
            let now = cluster.quorum(1).ok()?;
            let have_all = now
                .voters
                .values()
                .all(|end| *end >= now.high_watermark - 1);
            (now.voters.len() == 5 && have_all).then_some(())
        });
        for topic in ["before", "after"] {
            assert_eq!(
                produce_all(&mut cluster.connect(1).unwrap(), topic, "one"),
                0
            );
        }
    });
}

#[test]
fn without_a_controller_brokers_serve_what_they_lead_and_change_nothing() {
    for_each_cluster(&options(1), |cluster| {
        let topic = "goes-on";
        cluster.create_topic(topic, &[&[1, 2]], &[("min.insync.replicas", "2")]);
        cluster.create_topic("alone", &[&[1]], &[("min.insync.replicas", "1")]);
        let mut connection = cluster.connect(1).unwrap();
        assert_eq!(produce_all(&mut connection, topic, "0"), 0);
        cluster.kill(3001).unwrap();
        // Past the session: the broker cannot know whether others lead by now.
        std::thread::sleep(SESSION + Duration::from_secs(2));
        for offset in 1..4 {
            let value = offset.to_string();
            assert_eq!(produce_all(&mut connection, topic, &value), offset);
        }
        assert_eq!(fetch(&mut connection, topic, 0).high_watermark, 4);
        // Nobody else can lead what has one replica.
        assert_eq!(
            produce(&mut connection, "alone", 1, LONG, one("0")).error_code,
            code::NONE
        );
        assert_eq!(offset_at(&mut connection, "alone", LATEST), (code::NONE, 1));
        if cluster.is_highwater() {
            // What it would answer for alone it does not; Apache Kafka does.
            let reply = produce(&mut connection, topic, 1, LONG, one("lost?"));
            assert_eq!(reply.error_code, code::NOT_LEADER_OR_FOLLOWER, "{reply:?}");
            let (error, _) = offset_at(&mut connection, topic, LATEST);
            assert_eq!(error, code::NOT_LEADER_OR_FOLLOWER);
        }
        let view = cluster.partition(2, topic, 0).unwrap();
        assert_eq!((view.leader, view.isr), (1, vec![1, 2]));
        assert_eq!(create_topic(cluster, "too-early"), code::REQUEST_TIMED_OUT);

        cluster.start_again(3001).unwrap();
        eventually(Cluster::PATIENCE, "acks=1 is taken again", || {
            let reply = produce(&mut connection, topic, 1, LONG, one("again"));
            (reply.error_code == code::NONE).then_some(())
        });
        assert_eq!(create_topic(cluster, "in-time"), code::NONE);
    });
}

/// The error of a request that only the controller can serve.
fn create_topic(cluster: &Cluster, name: &str) -> i16 {
    let mut connection: Connection = cluster.connect(1).unwrap();
    connection
        .stream()
        .set_read_timeout(Some(FORWARDING))
        .unwrap();
    let topic = CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(1)
        .with_replication_factor(2);
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(5_000);
    let reply = connection.call(7, &request).unwrap();
    reply.topics[0].error_code
}
