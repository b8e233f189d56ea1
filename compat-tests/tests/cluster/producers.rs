//! What producers are told: by the next leader, which recognises each of their last batches, and of several partitions at
//! once.

use compat_tests::cluster::{Cluster, ClusterOptions, Follower, for_each_cluster};
use compat_tests::process::eventually;
use compat_tests::raw::{Batch, Connection, code, produce_request};

use crate::following::{self, MIN_ISR_2, followed};
use crate::registration::small;
use crate::support::{
    LATEST, LONG, elect_preferred, new_producer, offset_at, one, produce, reassign,
};

const TOPIC: &str = "producers";

/// The error and the base offset of a batch of one record.
#[track_caller]
fn send(connection: &mut Connection, (id, epoch): (i64, i16), sequence: i32) -> (i16, i64) {
    let batch = Batch::small(1).from_producer(id, epoch, sequence);
    let reply = produce(connection, TOPIC, -1, LONG, batch.encode());
    (reply.error_code, reply.base_offset)
}

/// What every leader must make of batches 0 to 6, of which all but the first are remembered.
#[track_caller]
fn the_last_five_are_known(connection: &mut Connection, producer: (i64, i16), last: i32) {
    for sequence in last - 4..=last {
        let known = (code::NONE, i64::from(sequence));
        assert_eq!(send(connection, producer, sequence), known);
    }
    for unknown in [last - 5, last + 2] {
        let (error, _) = send(connection, producer, unknown);
        assert_eq!(error, code::OUT_OF_ORDER_SEQUENCE_NUMBER, "{unknown}");
    }
    let end = (code::NONE, i64::from(last) + 1);
    assert_eq!(offset_at(connection, TOPIC, LATEST), end);
}

#[test]
fn the_next_leader_recognises_the_last_five_batches_of_a_producer() {
    let options = ClusterOptions::new()
        .with_controller_apart()
        .set("auto.leader.rebalance.enable", "false");
    for_each_cluster(&options, |cluster| {
        cluster.create_topic(TOPIC, &[&[1, 2, 3]], &[("min.insync.replicas", "2")]);
        let mut first = cluster.connect(1).unwrap();
        let producer = new_producer(&mut first);
        for sequence in 0..7 {
            let appended = (code::NONE, i64::from(sequence));
            assert_eq!(send(&mut first, producer, sequence), appended);
        }
        the_last_five_are_known(&mut first, producer, 6);
        // From what it followed.
        cluster.kill(1).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 2, &[2, 3]);
        let mut second = cluster.connect(2).unwrap();
        the_last_five_are_known(&mut second, producer, 6);
        assert_eq!(send(&mut second, producer, 7), (code::NONE, 7));
        // From its disk, less what the crash lost, and from what it followed since.
        cluster.lose_tail(1, TOPIC, 0, 4).unwrap();
        cluster.start_again(1).unwrap();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 2, &[1, 2, 3]);
        assert_eq!(elect_preferred(cluster, TOPIC), code::NONE);
        cluster.wait_for_leader_and_isr(TOPIC, 0, 1, &[1, 2, 3]);
        let mut first = cluster.connect(1).unwrap();
        the_last_five_are_known(&mut first, producer, 7);
        assert_eq!(send(&mut first, producer, 8), (code::NONE, 8));
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
        let mut leader = cluster.connect(1).unwrap();
        let mut at = Follower {
            leader_epoch: 0,
            fetch_offset: 0,
            last_fetched_epoch: -1,
        };
        eventually(Cluster::PATIENCE, "the record is committed", || {
            let data = replica.broker.fetch(&mut leader, id, at).unwrap();
            if !data.records.unwrap_or_default().is_empty() {
                (at.fetch_offset, at.last_fetched_epoch) = (1, 0);
            }
            (data.high_watermark == 1).then_some(())
        });
        // Its leader goes.
        reassign(cluster, quick, &[101, 1]);
        assert_eq!(elect_preferred(cluster, quick), code::NONE);
        eventually(Cluster::PATIENCE, "broker 1 does not lead it", || {
            let reply = produce(&mut leader, quick, 1, LONG, one("no"));
            (reply.error_code == code::NOT_LEADER_OR_FOLLOWER).then_some(())
        });
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
