//! Requests that wait at their leader: what becomes of them when it changes.

use std::time::{Duration, Instant};

use compat_tests::cluster::{Cluster, Follower, for_each_cluster};
use compat_tests::process::eventually;
use compat_tests::raw::{code, produce_request, topic_name};
use kafka_protocol::messages::DeleteRecordsRequest;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use uuid::Uuid;

use crate::following::{self, MIN_ISR_2, Replica, bounce_leader, followed};
use crate::registration::small;
use crate::support::{LONG, elect_preferred, one, produce, reassign};

const FETCH: i16 = 17;
/// Where a follower stands that has the first record.
const HAS_ONE: Follower = Follower {
    leader_epoch: 0,
    fetch_offset: 1,
    last_fetched_epoch: 0,
};

/// Fetches the only record of a topic as its follower, until the leader knows that it is committed.
#[track_caller]
fn copy(cluster: &Cluster, replica: &Replica, topic: Uuid) {
    let mut leader = cluster.connect(1).unwrap();
    let mut at = Follower {
        leader_epoch: 0,
        fetch_offset: 0,
        last_fetched_epoch: -1,
    };
    eventually(Cluster::PATIENCE, "the record is committed", || {
        let data = replica.broker.fetch(&mut leader, topic, at).unwrap();
        if !data.records.unwrap_or_default().is_empty() {
            at = HAS_ONE;
        }
        (data.high_watermark == 1).then_some(())
    });
}

/// Makes the hand-made broker the leader, and waits until broker 1 knows.
#[track_caller]
fn lead_elsewhere(cluster: &Cluster, topic: &str) {
    reassign(cluster, topic, &[101, 1]);
    assert_eq!(elect_preferred(cluster, topic), code::NONE);
    let mut former = cluster.connect(1).unwrap();
    eventually(Cluster::PATIENCE, "broker 1 does not lead it", || {
        let reply = produce(&mut former, topic, 1, LONG, one("no"));
        (reply.error_code == code::NOT_LEADER_OR_FOLLOWER).then_some(())
    });
}

#[test]
fn what_was_committed_is_not_judged_again_while_others_of_the_request_are_waited_for() {
    for_each_cluster(&small(), |cluster| {
        let (slow, quick) = (following::TOPIC, "quick");
        let mut replica = followed(cluster, &[101], MIN_ISR_2).remove(0);
        let id = cluster.create_topic(quick, &[&[1, 101]], MIN_ISR_2);
        let mut request = produce_request(slow, vec![(0, one("slow"))]).with_acks(-1);
        let more = produce_request(quick, vec![(0, one("quick"))]);
        request.topic_data.extend(more.topic_data);
        request.timeout_ms = i32::try_from(Cluster::PATIENCE.as_millis()).unwrap();
        let mut producer = cluster.connect(1).unwrap();
        producer
            .stream()
            .set_read_timeout(Some(Cluster::PATIENCE))
            .unwrap();
        let answer = std::thread::spawn(move || producer.call(11, &request).unwrap());
        // The one is committed, the other has not been copied.
        copy(cluster, &replica, id);
        lead_elsewhere(cluster, quick);
        assert!(!answer.is_finished());
        replica.follow();
        replica.follow();
        let reply = answer.join().unwrap();
        let told = reply.responses.iter().map(|topic| {
            let partition = &topic.partition_responses[0];
            (partition.error_code, partition.base_offset)
        });
        assert!(told.eq([(code::NONE, 0); 2]), "{reply:?}");
    });
}

#[test]
fn what_was_deleted_everywhere_is_not_judged_again_while_others_of_the_request_are_waited_for() {
    for_each_cluster(&small(), |cluster| {
        let (slow, quick) = (following::TOPIC, "quick");
        let mut replica = followed(cluster, &[101], MIN_ISR_2).remove(0);
        let id = cluster.create_topic(quick, &[&[1, 101]], MIN_ISR_2);
        let mut leader = cluster.connect(1).unwrap();
        for topic in [slow, quick] {
            let reply = produce(&mut leader, topic, 1, LONG, one("deleted"));
            assert_eq!(reply.error_code, code::NONE);
        }
        copy(cluster, &replica, id);
        replica.follow();
        replica.follow();
        let topics = [slow, quick].map(|topic| {
            let partition = DeleteRecordsPartition::default().with_offset(1);
            DeleteRecordsTopic::default()
                .with_name(topic_name(topic))
                .with_partitions(vec![partition])
        });
        let request = DeleteRecordsRequest::default()
            .with_topics(topics.into())
            .with_timeout_ms(i32::try_from(Cluster::PATIENCE.as_millis()).unwrap());
        let mut admin = cluster.connect(1).unwrap();
        admin
            .stream()
            .set_read_timeout(Some(Cluster::PATIENCE))
            .unwrap();
        let answer = std::thread::spawn(move || admin.call(2, &request).unwrap());
        // The follower says where its log begins; gives where the leader's does.
        let mut begins = |topic: Uuid, at_offset: i64| {
            let mut fetch = replica.broker.fetch_request(topic, HAS_ONE, 0);
            fetch.topics[0].partitions[0].log_start_offset = at_offset;
            let reply = leader.call(FETCH, &fetch).unwrap();
            reply.responses[0].partitions[0].log_start_offset
        };
        eventually(Cluster::PATIENCE, "the leader has deleted it", || {
            (begins(id, 0) == 1).then_some(())
        });
        // The request waits for the follower, of both.
        std::thread::sleep(Duration::from_millis(500));
        // Of the one topic it is deleted everywhere.
        begins(id, 1);
        lead_elsewhere(cluster, quick);
        assert!(!answer.is_finished());
        begins(replica.topic, 1);
        let reply = answer.join().unwrap();
        let told = reply.topics.iter().map(|topic| {
            let partition = &topic.partitions[0];
            (partition.error_code, partition.low_watermark)
        });
        assert!(told.eq([(code::NONE, 1); 2]), "{reply:?}");
    });
}

#[test]
fn a_follower_that_waits_for_records_is_answered_when_the_leader_epoch_ends() {
    for_each_cluster(&small(), |cluster| {
        let mut replica = followed(cluster, &[101], MIN_ISR_2).remove(0);
        let mut leader = cluster.connect(1).unwrap();
        let patience = i32::try_from(Cluster::PATIENCE.as_millis()).unwrap();
        let fetch = replica
            .broker
            .fetch_request(replica.topic, replica.at, patience);
        let waiting = std::thread::spawn(move || {
            let stream = leader.stream();
            stream.set_read_timeout(Some(Cluster::PATIENCE)).unwrap();
            let asked = Instant::now();
            let mut reply = leader.call(FETCH, &fetch).unwrap();
            let partition = reply.responses.remove(0).partitions.remove(0);
            (partition, asked.elapsed())
        });
        std::thread::sleep(Duration::from_millis(500));
        assert!(!waiting.is_finished());
        // Another leads for a moment, and broker 1 again, in a later epoch.
        bounce_leader(cluster, &mut replica);
        let (partition, waited) = waiting.join().unwrap();
        assert!(
            [code::NOT_LEADER_OR_FOLLOWER, code::FENCED_LEADER_EPOCH]
                .contains(&partition.error_code),
            "{partition:?}"
        );
        assert!(waited < Cluster::PATIENCE, "{waited:?}");
        assert!(partition.records.unwrap_or_default().is_empty());
    });
}
