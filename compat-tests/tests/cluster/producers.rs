//! What the next leader knows of producers: each of the last batches is recognised, wherever it leads.

use compat_tests::cluster::{ClusterOptions, for_each_cluster};
use compat_tests::raw::{Batch, Connection, code};

use crate::support::{LATEST, LONG, elect_preferred, new_producer, offset_at, produce};

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
