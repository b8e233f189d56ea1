//! ListOffsets, OffsetForLeaderEpoch and DeleteRecords (E, H10).

use compat_tests::broker::BrokerOptions;
use compat_tests::each_broker::{for_each_broker, for_each_broker_with};
use compat_tests::raw::{Batch, Connection, Record};
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{BrokerId, DeleteRecordsRequest, OffsetForLeaderEpochRequest};

use crate::support::{
    NOW_MS, batch, batch_ranges, code, connect, create_topic, create_topic_with, fetch, gzip,
    list_offsets, list_offsets_request, produce_ok, topic_name, wait_until_served,
};

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;

/// A batch with one record at each of these times after [`NOW_MS`] less one hour.
fn at(deltas: &[i64]) -> Batch {
    Batch::of(deltas.iter().map(|_| Record::new("k", "v")).collect()).at(base_ms(), deltas)
}

fn base_ms() -> i64 {
    *NOW_MS - 3_600_000
}

fn found(connection: &mut Connection, topic: &str, delta: i64) -> (i64, i64) {
    let reply = list_offsets(connection, topic, 0, base_ms() + delta);
    assert_eq!(reply.error_code, code::NONE);
    let delta = if reply.timestamp < 0 {
        reply.timestamp
    } else {
        reply.timestamp - base_ms()
    };
    (reply.offset, delta)
}

#[test]
fn timestamp_look_up_gives_the_first_record_at_or_after_it() {
    for_each_broker(|broker| {
        let topic = "offsets-time";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        produce_ok(&mut connection, topic, 0, at(&[2, 4]).encode());
        produce_ok(&mut connection, topic, 0, at(&[6, 8]).encode());
        let expected = [
            (0, 2),
            (0, 2),
            (1, 4),
            (1, 4),
            (2, 6),
            (2, 6),
            (3, 8),
            (3, 8),
            (-1, -1),
        ];
        for (delta, expected) in (1..).zip(expected) {
            assert_eq!(
                found(&mut connection, topic, delta),
                expected,
                "asked for {delta}"
            );
        }
        assert_eq!(list_offsets(&mut connection, topic, 0, 0).offset, 0);
        let none = list_offsets(&mut connection, topic, 0, i64::MAX);
        assert_eq!(
            (none.error_code, none.offset, none.timestamp),
            (code::NONE, -1, -1)
        );
        assert_eq!(none.leader_epoch, -1);
    });
}

#[test]
fn timestamp_look_up_is_in_offset_order_when_times_are_not() {
    for_each_broker(|broker| {
        let topic = "offsets-unordered";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        let times: &[&[i64]] = &[&[5, 50, 20], &[10], &[70, 60], &[65, 30]];
        for deltas in times {
            produce_ok(&mut connection, topic, 0, at(deltas).encode());
        }
        let flat: Vec<i64> = times
            .iter()
            .flat_map(|deltas| deltas.iter().copied())
            .collect();
        for target in 1..75 {
            let expected = flat
                .iter()
                .position(|time| *time >= target)
                .map_or((-1, -1), |offset| (offset as i64, flat[offset]));
            assert_eq!(
                found(&mut connection, topic, target),
                expected,
                "asked for {target}"
            );
        }
        let max = list_offsets(&mut connection, topic, 0, MAX_TIMESTAMP);
        assert_eq!((max.offset, max.timestamp - base_ms()), (4, 70));
    });
}

#[test]
fn timestamp_look_up_sees_into_compressed_batches() {
    for_each_broker(|broker| {
        let topic = "offsets-compressed";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        for deltas in [[3_i64, 90, 40], [100, 5, 100]] {
            let plain = at(&deltas);
            let body = Some(gzip(&plain.encoded_records()));
            let squeezed = Batch {
                attributes: 1,
                body,
                ..plain
            };
            produce_ok(&mut connection, topic, 0, squeezed.encode());
        }
        for (target, expected) in [(1, (0, 3)), (4, (1, 90)), (91, (3, 100)), (101, (-1, -1))] {
            assert_eq!(
                found(&mut connection, topic, target),
                expected,
                "asked for {target}"
            );
        }
        let max = list_offsets(&mut connection, topic, 0, MAX_TIMESTAMP);
        assert_eq!(
            (max.offset, max.timestamp - base_ms()),
            (3, 100),
            "the earlier one of two"
        );
    });
}

#[test]
fn timestamp_look_up_crosses_segments_and_a_restart() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        let topic = "offsets-segments";
        create_topic_with(broker, topic, 1, &[("segment.bytes", "1048576")]);
        let mut connection = connect(broker);
        for i in 0..30 {
            let filler = Batch::of_size(200_000).records.remove(0);
            let record = Record {
                timestamp_delta: i * 10,
                ..filler
            };
            let batch = Batch::of(vec![record]).at(base_ms(), &[i * 10]);
            produce_ok(&mut connection, topic, 0, batch.encode());
        }
        let check = |connection: &mut Connection| {
            for i in 0..30 {
                assert_eq!(found(connection, topic, i * 10 - 5), (i, i * 10));
                assert_eq!(found(connection, topic, i * 10), (i, i * 10));
            }
            assert_eq!(found(connection, topic, 291), (-1, -1));
            let max = list_offsets(connection, topic, 0, MAX_TIMESTAMP);
            assert_eq!((max.offset, max.timestamp - base_ms()), (29, 290));
        };
        check(&mut connection);
        broker.kill().unwrap();
        broker.start_again().unwrap();
        wait_until_served(broker, topic, 1);
        check(&mut connect(broker));
    });
}

#[test]
fn special_timestamps_have_no_time_and_depend_on_the_version() {
    for_each_broker(|broker| {
        let topic = "offsets-special";
        create_topic(broker, topic, 2);
        let mut connection = connect(broker);
        produce_ok(&mut connection, topic, 0, batch(3).encode());
        for (special, offset) in [(LATEST, 3), (EARLIEST, 0), (-4, 0), (-5, -1)] {
            let reply = list_offsets(&mut connection, topic, 0, special);
            assert_eq!(
                (reply.error_code, reply.offset, reply.timestamp),
                (0, offset, -1),
                "{special}"
            );
        }
        for version in 1..=10 {
            for (special, since) in [
                (-3, 7),
                (-4, 8),
                (-5, 9),
                (-6, 11),
                (-7, 99),
                (i64::MIN, 99),
            ] {
                let request = list_offsets_request(topic, 0, special);
                let reply = connection.call(version, &request).unwrap();
                let code = reply.topics[0].partitions[0].error_code;
                let expected = if version >= since {
                    code::NONE
                } else {
                    code::UNSUPPORTED_VERSION
                };
                assert_eq!(code, expected, "v{version}, special {special}");
                // The version is looked at before the topic.
                let request = list_offsets_request("no-such-topic", 0, special);
                let reply = connection.call(version, &request).unwrap();
                let expected = if version >= since {
                    code::UNKNOWN_TOPIC_OR_PARTITION
                } else {
                    code::UNSUPPORTED_VERSION
                };
                assert_eq!(reply.topics[0].partitions[0].error_code, expected);
            }
        }
        let empty = list_offsets(&mut connection, topic, 1, MAX_TIMESTAMP);
        assert_eq!(
            (empty.error_code, empty.offset, empty.timestamp),
            (code::NONE, -1, -1)
        );
    });
}

#[test]
fn duplicate_partitions_of_list_offsets_are_refused_apart() {
    for_each_broker(|broker| {
        create_topic(broker, "offsets-twice", 2);
        let mut connection = connect(broker);
        let mut request = list_offsets_request("offsets-twice", 0, LATEST);
        let same = request.topics[0].partitions[0].clone();
        request.topics[0].partitions.push(same);
        let reply = connection.call(9, &request).unwrap();
        let codes: Vec<_> = reply.topics[0]
            .partitions
            .iter()
            .map(|p| (p.partition_index, p.error_code))
            .collect();
        assert!(!codes.is_empty());
        assert!(
            codes.iter().all(|code| *code == (0, code::INVALID_REQUEST)),
            "{codes:?}"
        );
    });
}

#[test]
fn epoch_end_offsets_are_told() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        let topic = "offsets-epochs";
        create_topic(broker, topic, 1);
        produce_ok(&mut connect(broker), topic, 0, batch(3).encode());
        broker.stop().unwrap();
        broker.start_again().unwrap();
        wait_until_served(broker, topic, 1);
        let mut connection = connect(broker);
        produce_ok(&mut connection, topic, 0, batch(2).encode());
        let current = crate::support::metadata(&mut connection, topic).partitions[0].leader_epoch;
        let mut ask = |current: i32, epoch: i32| {
            let part = OffsetForLeaderPartition::default()
                .with_partition(0)
                .with_current_leader_epoch(current)
                .with_leader_epoch(epoch);
            let request = OffsetForLeaderEpochRequest::default()
                .with_replica_id(BrokerId(-1))
                .with_topics(vec![
                    OffsetForLeaderTopic::default()
                        .with_topic(topic_name(topic))
                        .with_partitions(vec![part]),
                ]);
            let reply = connection.call(4, &request).unwrap();
            let found = &reply.topics[0].partitions[0];
            (found.error_code, found.leader_epoch, found.end_offset)
        };
        assert_eq!(ask(-1, current), (code::NONE, current, 5));
        assert_eq!(ask(current, current), (code::NONE, current, 5));
        if current > 0 {
            assert_eq!(ask(-1, 0), (code::NONE, 0, 3));
            assert_eq!(ask(current - 1, current).0, code::FENCED_LEADER_EPOCH);
        }
        assert_eq!(ask(-1, current + 5), (code::NONE, -1, -1));
        assert_eq!(ask(current + 1, current).0, code::UNKNOWN_LEADER_EPOCH);
    });
}

fn delete_records(connection: &mut Connection, topic: &str, offset: i64) -> (i16, i64) {
    let part = DeleteRecordsPartition::default()
        .with_partition_index(0)
        .with_offset(offset);
    let topic = DeleteRecordsTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![part]);
    let request = DeleteRecordsRequest::default()
        .with_timeout_ms(10_000)
        .with_topics(vec![topic]);
    let reply = connection
        .call(2, &request)
        .expect("DeleteRecords is answered");
    let found = &reply.topics[0].partitions[0];
    (found.error_code, found.low_watermark)
}

#[test]
fn delete_records_moves_the_start_and_only_forward() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        let topic = "offsets-delete";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        for _ in 0..4 {
            produce_ok(&mut connection, topic, 0, batch(5).encode());
        }
        assert_eq!(
            delete_records(&mut connection, topic, 21).0,
            code::OFFSET_OUT_OF_RANGE
        );
        assert_eq!(
            delete_records(&mut connection, topic, -2).0,
            code::OFFSET_OUT_OF_RANGE
        );
        assert_eq!(delete_records(&mut connection, topic, 7), (code::NONE, 7));
        assert_eq!(
            delete_records(&mut connection, topic, 3),
            (code::NONE, 7),
            "not back"
        );
        let check = |connection: &mut Connection| {
            assert_eq!(list_offsets(connection, topic, 0, EARLIEST).offset, 7);
            assert_eq!(
                fetch(connection, topic, 0, 6).error_code,
                code::OFFSET_OUT_OF_RANGE
            );
            let found = fetch(connection, topic, 0, 7);
            assert_eq!(found.log_start_offset, 7);
            assert_eq!(batch_ranges(&found.records.expect("records"))[0], (5, 9));
            // A look-up by time does not see what is deleted.
            assert_eq!(list_offsets(connection, topic, 0, 0).offset, 7);
        };
        check(&mut connection);
        broker.stop().unwrap();
        broker.start_again().unwrap();
        wait_until_served(broker, topic, 1);
        let mut connection = connect(broker);
        check(&mut connection);
        // All of it; the end stays.
        assert_eq!(delete_records(&mut connection, topic, -1), (code::NONE, 20));
        assert_eq!(list_offsets(&mut connection, topic, 0, EARLIEST).offset, 20);
        assert_eq!(list_offsets(&mut connection, topic, 0, LATEST).offset, 20);
        assert_eq!(fetch(&mut connection, topic, 0, 20).error_code, code::NONE);
        broker.stop().unwrap();
        broker.start_again().unwrap();
        wait_until_served(broker, topic, 1);
        let mut connection = connect(broker);
        assert_eq!(list_offsets(&mut connection, topic, 0, EARLIEST).offset, 20);
        assert_eq!(produce_ok(&mut connection, topic, 0, batch(1).encode()), 20);
    });
}

#[test]
fn delete_records_keeps_what_producers_have_sent() {
    for_each_broker(|broker| {
        let topic = "offsets-delete-producer";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        let at = |sequence: i32| batch(1).from_producer(70_000, 0, sequence).encode();
        for i in 0..3 {
            produce_ok(&mut connection, topic, 0, at(i));
        }
        assert_eq!(delete_records(&mut connection, topic, -1), (code::NONE, 3));
        assert_eq!(
            produce_ok(&mut connection, topic, 0, at(2)),
            2,
            "still a duplicate"
        );
        assert_eq!(produce_ok(&mut connection, topic, 0, at(3)), 3);
    });
}

#[test]
fn delete_records_of_a_compacted_topic_is_against_its_policy() {
    for_each_broker(|broker| {
        let topic = "offsets-delete-compacted";
        create_topic_with(broker, topic, 1, &[("cleanup.policy", "compact")]);
        let mut connection = connect(broker);
        produce_ok(&mut connection, topic, 0, batch(2).encode());
        assert_eq!(
            delete_records(&mut connection, topic, 1).0,
            code::POLICY_VIOLATION
        );
    });
}
