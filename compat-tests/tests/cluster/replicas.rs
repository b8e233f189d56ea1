//! Replicas that move, are lost, and serve readers: a disk that is new, reassignments that overlap, racks.

use compat_tests::cluster::{Cluster, ClusterOptions, for_each_cluster};
use compat_tests::process::eventually;
use compat_tests::raw::{
    Connection, batch_headers, code, fetch_partition, fetch_request, s, topic_name,
};
use kafka_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use kafka_protocol::messages::fetch_request::FetchTopic;
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, BrokerId, ListPartitionReassignmentsRequest,
};

use crate::support::{LONG, elect_preferred, epochs_of_batches, fetch, one, produce, produce_all};

const FETCH_WITH_RACK: i16 = 12;
const FETCH_BY_ID: i16 = 13;

#[test]
fn a_replica_with_an_empty_disk_copies_everything_before_it_counts_and_leads() {
    let options = ClusterOptions::new().with_controller_apart();
    for_each_cluster(&options, |cluster| {
        let topic = "new-disk";
        cluster.create_topic(topic, &[&[1, 2, 3]], &[("min.insync.replicas", "2")]);
        let mut connection = cluster.connect(1).unwrap();
        for offset in 0..20 {
            assert_eq!(
                produce_all(&mut connection, topic, &offset.to_string()),
                offset
            );
        }
        cluster.kill(1).unwrap();
        cluster.wait_for_leader_and_isr(topic, 0, 2, &[2, 3]);
        // Its identity is gone too: the disk has an id of its own.
        cluster.wipe(1).unwrap();
        cluster.start_again(1).unwrap();
        cluster.wait_for_leader_and_isr(topic, 0, 2, &[1, 2, 3]);
        let on_leader = epochs_of_batches(cluster, 2, topic, 20);
        assert_eq!(epochs_of_batches(cluster, 1, topic, 20), on_leader);
        // It is as good as any: it may lead.
        assert_eq!(elect_preferred(cluster, topic), code::NONE);
        cluster.wait_for_leader_and_isr(topic, 0, 1, &[1, 2, 3]);
        let mut connection = cluster.connect(1).unwrap();
        assert_eq!(produce_all(&mut connection, topic, "20"), 20);
    });
}

#[test]
fn a_replica_that_was_away_while_its_topic_was_made_anew_has_nothing_of_the_old_one() {
    let options = ClusterOptions::new().with_controller_apart();
    for_each_cluster(&options, |cluster| {
        let topic = "again";
        let min_isr = [("min.insync.replicas", "2")];
        let old = cluster.create_topic(topic, &[&[1, 2, 3]], &min_isr);
        let mut connection = cluster.connect(1).unwrap();
        for offset in 0..5 {
            let value = format!("old {offset}");
            assert_eq!(produce_all(&mut connection, topic, &value), offset);
        }
        cluster.kill(3).unwrap();
        cluster.wait_for_leader_and_isr(topic, 0, 1, &[1, 2]);
        cluster.delete_topic(topic).unwrap();
        let new = cluster.create_topic(topic, &[&[1, 2]], &min_isr);
        assert_ne!(old, new);
        let mut connection = cluster.connect(1).unwrap();
        assert_eq!(produce_all(&mut connection, topic, "new"), 0);
        cluster.start_again(3).unwrap();
        // It finds the log of the old topic where that of the new one is to be.
        assert_eq!(reassign(cluster, topic, Some(&[1, 2, 3])), code::NONE);
        cluster.wait_for_leader_and_isr(topic, 0, 1, &[1, 2, 3]);
        let on_leader = epochs_of_batches(cluster, 1, topic, 1);
        assert_eq!(epochs_of_batches(cluster, 3, topic, 1), on_leader);
        let data = fetch(&mut cluster.connect(3).unwrap(), topic, 0);
        let records = data.records.unwrap_or_default();
        assert!(
            records.windows(3).any(|bytes| bytes == b"new"),
            "{records:?}"
        );
        // Who knows the old one by its id is told, on each replica.
        for id in 1..=3 {
            let mut connection = cluster.connect(id).unwrap();
            let by_id = FetchTopic::default()
                .with_topic_id(old)
                .with_partitions(vec![fetch_partition(0, 0)]);
            let request = fetch_request(topic, Vec::new()).with_topics(vec![by_id]);
            let reply = connection.call(FETCH_BY_ID, &request).unwrap();
            let error = reply.responses[0].partitions[0].error_code;
            assert_eq!(error, code::UNKNOWN_TOPIC_ID, "broker {id}: {reply:?}");
        }
    });
}

/// Asks for these replicas of partition 0, or for the end of what is under way; gives the error.
fn reassign(cluster: &Cluster, topic: &str, replicas: Option<&[i32]>) -> i16 {
    let replicas = replicas.map(|ids| ids.iter().map(|&id| BrokerId(id)).collect());
    let partition = ReassignablePartition::default()
        .with_partition_index(0)
        .with_replicas(replicas);
    let wanted = ReassignableTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![partition]);
    let request = AlterPartitionReassignmentsRequest::default()
        .with_topics(vec![wanted])
        .with_timeout_ms(30_000);
    let reply = cluster.connect(1).unwrap().call(0, &request).unwrap();
    assert_eq!(reply.error_code, code::NONE, "{reply:?}");
    reply.responses[0].partitions[0].error_code
}

/// Replicas, those that are added and those that are removed, of the only reassignment.
fn under_way(cluster: &Cluster) -> Option<[Vec<i32>; 3]> {
    let request = ListPartitionReassignmentsRequest::default()
        .with_topics(None)
        .with_timeout_ms(30_000);
    let reply = cluster.connect(1).unwrap().call(0, &request).unwrap();
    assert_eq!(reply.error_code, code::NONE, "{reply:?}");
    let partition = reply.topics.first()?.partitions.first()?;
    let ids = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect();
    Some([
        ids(&partition.replicas),
        ids(&partition.adding_replicas),
        ids(&partition.removing_replicas),
    ])
}

#[test]
fn a_later_reassignment_takes_the_place_of_the_one_before_and_can_be_taken_back() {
    let options = ClusterOptions::new().with_controller_apart();
    for_each_cluster(&options, |cluster| {
        let topic = "moved";
        cluster.create_topic(topic, &[&[1, 2]], &[("min.insync.replicas", "1")]);
        let mut connection = cluster.connect(1).unwrap();
        assert_eq!(produce_all(&mut connection, topic, "0"), 0);
        assert_eq!(
            reassign(cluster, topic, None),
            code::NO_REASSIGNMENT_IN_PROGRESS
        );
        // The new replica cannot copy anything, so that what is begun does not end.
        cluster.pause(3).unwrap();
        assert_eq!(reassign(cluster, topic, Some(&[1, 3])), code::NONE);
        let now = under_way(cluster).unwrap();
        assert_eq!(now, [vec![1, 3, 2], vec![3], vec![2]]);
        assert_eq!(reassign(cluster, topic, Some(&[3, 2])), code::NONE);
        let now = under_way(cluster).unwrap();
        assert_eq!((&now[1], &now[2]), (&vec![3], &vec![1]), "{now:?}");
        assert_eq!(reassign(cluster, topic, None), code::NONE);
        assert_eq!(under_way(cluster), None);
        cluster.wait_for_partition(topic, 0, "as before", |view| {
            let mut replicas = view.replicas.clone();
            replicas.sort_unstable();
            replicas == [1, 2] && view.leader == 1 && view.isr == [1, 2]
        });
        cluster.resume(3).unwrap();
        eventually(Cluster::PATIENCE, "3 is there again", || {
            let brokers = cluster.metadata(1, &[]).unwrap().brokers;
            (brokers.len() == 3).then_some(())
        });
        // Without its leader: another one leads, with everything.
        assert_eq!(reassign(cluster, topic, Some(&[3, 2])), code::NONE);
        cluster.wait_for_partition(topic, 0, "moved", |view| {
            view.replicas == [3, 2] && view.isr == [2, 3] && view.leader != 1
        });
        assert_eq!(under_way(cluster), None);
        let leader = cluster.partition(2, topic, 0).unwrap().leader;
        let mut connection = cluster.connect(leader).unwrap();
        assert_eq!(produce_all(&mut connection, topic, "1"), 1);
        eventually(Cluster::PATIENCE, "its log on 1 goes", || {
            let log = cluster.data(1).unwrap().join("moved-0");
            (!log.exists()).then_some(())
        });
    });
}

/// One fetch of a consumer in a rack.
fn fetch_in_rack(
    connection: &mut Connection,
    topic: &str,
    offset: i64,
    rack: &str,
) -> PartitionData {
    let request = fetch_request(topic, vec![fetch_partition(0, offset)]).with_rack_id(s(rack));
    let mut reply = connection.call(FETCH_WITH_RACK, &request).unwrap();
    reply.responses.remove(0).partitions.remove(0)
}

#[test]
fn a_consumer_reads_from_the_replica_of_its_rack_and_is_never_told_that_its_offset_is_gone() {
    let mut options = ClusterOptions::new().with_controller_apart().set(
        "replica.selector.class",
        "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    );
    for broker in 1..=3 {
        options = options.set_on(broker, "broker.rack", format!("r{broker}"));
    }
    for_each_cluster(&options, |cluster| {
        let topic = "racks";
        cluster.create_topic(topic, &[&[1, 2, 3]], &[("min.insync.replicas", "1")]);
        let mut leader = cluster.connect(1).unwrap();
        let mut follower = cluster.connect(2).unwrap();
        for offset in 0..3 {
            assert_eq!(produce_all(&mut leader, topic, &offset.to_string()), offset);
        }
        let records = |data: &PartitionData| {
            let bytes = data.records.clone().unwrap_or_default();
            batch_headers(&bytes).len()
        };
        // The leader sends its consumer on once the follower has told how far it is.
        let data = eventually(Cluster::PATIENCE, "the follower is preferred", || {
            let data = fetch_in_rack(&mut leader, topic, 0, "r2");
            (data.preferred_read_replica.0 == 2).then_some(data)
        });
        assert_eq!(
            (data.error_code, records(&data)),
            (code::NONE, 0),
            "{data:?}"
        );
        for rack in ["r1", "elsewhere", ""] {
            let data = fetch_in_rack(&mut leader, topic, 0, rack);
            assert_eq!(
                (data.preferred_read_replica.0, records(&data)),
                (-1, 3),
                "{rack}"
            );
        }
        let data = eventually(Cluster::PATIENCE, "the follower has it", || {
            let data = fetch_in_rack(&mut follower, topic, 0, "r2");
            (records(&data) == 3).then_some(data)
        });
        assert_eq!(
            (data.error_code, data.preferred_read_replica.0),
            (code::NONE, -1)
        );
        // At its end it waits; beyond that it is the same answer as the leader's.
        let data = fetch_in_rack(&mut follower, topic, 3, "r2");
        assert_eq!((data.error_code, records(&data)), (code::NONE, 0));
        let data = fetch_in_rack(&mut follower, topic, 4, "r2");
        assert_eq!(data.error_code, code::OFFSET_OUT_OF_RANGE);
        // A follower that lags is not preferred for what it lacks, and who is there already waits.
        cluster.pause(3).unwrap();
        let data = fetch_in_rack(&mut leader, topic, 0, "r3");
        assert_eq!(data.error_code, code::NONE);
        let reply = produce(&mut leader, topic, 1, LONG, one("3"));
        assert_eq!(reply.error_code, code::NONE);
        let data = fetch_in_rack(&mut leader, topic, 4, "r3");
        assert_eq!(
            data.preferred_read_replica.0, -1,
            "it lacks offset 4: {data:?}"
        );
        cluster.resume(3).unwrap();
        cluster.wait_for_leader_and_isr(topic, 0, 1, &[1, 2, 3]);
    });
}
