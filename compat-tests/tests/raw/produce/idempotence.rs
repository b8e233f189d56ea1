//! Producer ids, their epochs and sequences.

use super::*;

#[test]
fn forgotten_producer_may_go_on_with_any_sequence() {
    let options = BrokerOptions::new()
        .set("producer.id.expiration.ms", 5000)
        .set("producer.id.expiration.check.interval.ms", 100);
    for_each_broker_with(&options, |broker| {
        let topic = "produce-expired";
        let mut connection = one_record(broker, topic);
        // A producer is as old as the time in its last batch.
        let at = |sequence: i32| {
            let batch = Batch::of(vec![Record::new("k", "v")]);
            batch.from_producer(72_000, 0, sequence).encode()
        };
        produce_ok(&mut connection, topic, 0, at(0));
        let gap = produce(&mut connection, topic, 0, at(7)).error_code;
        assert_eq!(gap, code::OUT_OF_ORDER_SEQUENCE_NUMBER);
        eventually(Duration::from_secs(60), "the producer is forgotten", || {
            let found = produce(&mut connection, topic, 0, at(7)).error_code;
            (found == code::NONE).then_some(())
        });
        produce_ok(&mut connection, topic, 0, at(8));
    });
}

#[test]
fn repeats_of_the_last_five_batches_get_the_original_answer() {
    for_each_broker(|broker| {
        let topic = "produce-idempotent";
        let mut connection = one_record(broker, topic);
        let (id, epoch) = new_producer(&mut connection);
        let at = |sequence: i32| batch(2).from_producer(id, epoch, sequence).encode();
        let bases: Vec<i64> = (0..7)
            .map(|i| produce_ok(&mut connection, topic, 0, at(i * 2)))
            .collect();
        assert_eq!(bases, [1, 3, 5, 7, 9, 11, 13]);
        for i in 2..7 {
            let repeat = produce(&mut connection, topic, 0, at(i * 2));
            assert_eq!(
                (repeat.error_code, repeat.base_offset),
                (code::NONE, 1 + 2 * i64::from(i))
            );
        }
        for (what, sequence) in [("sixth back", 2), ("a gap", 16), ("an overlap", 13)] {
            let reply = produce(&mut connection, topic, 0, at(sequence));
            assert_eq!(
                reply.error_code,
                code::OUT_OF_ORDER_SEQUENCE_NUMBER,
                "{what}"
            );
        }
        let partly = batch(1).from_producer(id, epoch, 12).encode();
        let reply = produce(&mut connection, topic, 0, partly);
        assert_eq!(
            reply.error_code,
            code::OUT_OF_ORDER_SEQUENCE_NUMBER,
            "part of the last"
        );
        assert_eq!(list_offsets(&mut connection, topic, 0, -1).offset, 15);
        produce_ok(&mut connection, topic, 0, at(14));
    });
}

#[test]
fn older_producer_epoch_is_fenced_and_a_newer_one_starts_at_0() {
    for_each_broker(|broker| {
        let topic = "produce-epoch";
        let mut connection = one_record(broker, topic);
        let (id, epoch) = new_producer(&mut connection);
        let at = |epoch: i16, sequence: i32| batch(1).from_producer(id, epoch, sequence).encode();
        produce_ok(&mut connection, topic, 0, at(epoch, 0));
        let late = produce(&mut connection, topic, 0, at(epoch + 1, 5));
        assert_eq!(late.error_code, code::OUT_OF_ORDER_SEQUENCE_NUMBER);
        produce_ok(&mut connection, topic, 0, at(epoch + 1, 0));
        let fenced = produce(&mut connection, topic, 0, at(epoch, 1));
        assert_eq!(fenced.error_code, code::INVALID_PRODUCER_EPOCH);
    });
}

#[test]
fn unknown_producer_may_start_at_any_sequence_and_sequences_wrap() {
    for_each_broker(|broker| {
        let topic = "produce-any-sequence";
        let mut connection = one_record(broker, topic);
        let (id, epoch) = new_producer(&mut connection);
        let at = |sequence: i32| batch(2).from_producer(id, epoch, sequence).encode();
        produce_ok(&mut connection, topic, 0, at(i32::MAX - 1));
        produce_ok(&mut connection, topic, 0, at(0));
        let (id, epoch) = new_producer(&mut connection);
        let at = |sequence: i32| batch(2).from_producer(id, epoch, sequence).encode();
        produce_ok(&mut connection, topic, 0, at(i32::MAX));
        produce_ok(&mut connection, topic, 0, at(1));
        let repeat = produce(&mut connection, topic, 0, at(i32::MAX));
        assert_eq!((repeat.error_code, repeat.base_offset), (code::NONE, 5));
    });
}

#[test]
fn sequences_live_on_after_kill() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        let topic = "produce-kill";
        let mut connection = one_record(broker, topic);
        let (id, epoch) = new_producer(&mut connection);
        let at = |sequence: i32| batch(1).from_producer(id, epoch, sequence).encode();
        for i in 0..5 {
            produce_ok(&mut connection, topic, 0, at(i));
        }
        broker.kill().unwrap();
        broker.start_again().unwrap();
        crate::support::wait_until_served(broker, topic, 1);
        let mut connection = connect(broker);
        // Apache Kafka knows the last one only; a second copy never comes about on either.
        let first_known = if broker.is_highwater() { 0 } else { 4 };
        for i in 0..5 {
            let repeat = produce(&mut connection, topic, 0, at(i));
            let expected = if i >= first_known {
                (code::NONE, 1 + i64::from(i))
            } else {
                (code::OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
            };
            if repeat.error_code != code::NONE || i >= first_known {
                assert_eq!(
                    (repeat.error_code, repeat.base_offset),
                    expected,
                    "sequence {i}"
                );
            }
        }
        assert_eq!(list_offsets(&mut connection, topic, 0, -1).offset, 6);
        produce_ok(&mut connection, topic, 0, at(5));
        let (other, _) = new_producer(&mut connection);
        assert!(other > id, "a producer id is never given twice");
    });
}

#[test]
fn transactional_batch_without_a_transactional_id_is_refused() {
    for_each_broker(|broker| {
        let topic = "produce-transactional";
        let mut connection = one_record(broker, topic);
        let (id, epoch) = new_producer(&mut connection);
        let bytes = Batch {
            attributes: 1 << 4,
            ..batch(1).from_producer(id, epoch, 0)
        }
        .encode();
        let reply = produce(&mut connection, topic, 0, bytes);
        let expected = [53, 48, code::INVALID_RECORD, code::INVALID_REQUEST];
        let expected = if broker.is_highwater() {
            &expected[..]
        } else {
            &expected[..1]
        };
        assert!(expected.contains(&reply.error_code), "{reply:?}");
        assert_eq!(list_offsets(&mut connection, topic, 0, -1).offset, 1);
    });
}
