//! Produce: what is taken, what is refused and how (C).

use bytes::Bytes;
use std::time::Duration;

use compat_tests::broker::{Broker, BrokerOptions};
use compat_tests::each_broker::{for_each_broker, for_each_broker_with};
use compat_tests::process::eventually;
use compat_tests::raw::{Batch, Connection, Record, set_crc};

use crate::support::{
    NOW_MS, PRODUCE, batch, batch_ranges, code, connect, create_topic, create_topic_with, fetch,
    gzip, list_offsets, new_producer, on_highwater, produce, produce_at, produce_ok,
    produce_request,
};

/// A changed field and the codes that may follow: the first is Apache Kafka's.
fn refuses(connection: &mut Connection, topic: &str, what: &str, bytes: Bytes, codes: &[i16]) {
    let reply = produce(connection, topic, 0, bytes);
    assert!(
        codes.contains(&reply.error_code),
        "{what}: {reply:?} where {codes:?} is right"
    );
    assert_eq!(reply.base_offset, -1, "{what}");
    assert_eq!(
        list_offsets(connection, topic, 0, -1).offset,
        1,
        "{what}: nothing is appended"
    );
}

/// A topic with one record, so that "nothing appended" can be told from "nothing there".
fn one_record(broker: &Broker, topic: &str) -> Connection {
    create_topic(broker, topic, 2);
    let mut connection = connect(broker);
    produce_ok(&mut connection, topic, 0, batch(1).encode());
    connection
}

#[test]
fn batches_of_a_wrong_shape_are_refused() {
    for_each_broker(|broker| {
        let topic = "produce-shape";
        let mut connection = one_record(broker, topic);
        let good = batch(2).encode();
        let mut with = |what: &str, bytes: Vec<u8>, expected: &[i16]| {
            refuses(&mut connection, topic, what, bytes.into(), expected);
        };
        with("no batch", vec![], &[code::INVALID_RECORD]);
        with(
            "two batches",
            [&good[..], &good[..]].concat(),
            &[code::INVALID_RECORD],
        );
        for magic in [0, 1] {
            let old = Batch { magic, ..batch(2) };
            with(
                "an old magic",
                old.encode().to_vec(),
                &[code::INVALID_RECORD],
            );
        }
        let three = Batch {
            magic: 3,
            ..batch(2)
        };
        with("magic 3", three.encode().to_vec(), &[code::CORRUPT_MESSAGE]);
        with(
            "cut in the header",
            good[..40].to_vec(),
            &[code::INVALID_RECORD],
        );
        with(
            "cut in the records",
            good[..good.len() - 3].to_vec(),
            &[code::INVALID_RECORD],
        );
    });
}

#[test]
fn fewer_bytes_than_a_header_behind_a_batch_are_dropped() {
    for_each_broker(|broker| {
        let topic = "produce-tail";
        let mut connection = one_record(broker, topic);
        let sent = batch(1).encode();
        produce_ok(
            &mut connection,
            topic,
            0,
            [&sent[..], b"tail"].concat().into(),
        );
        let records = fetch(&mut connection, topic, 0, 1)
            .records
            .expect("records");
        assert_eq!(records.len(), sent.len(), "the tail is not stored");
    });
}

#[test]
fn batch_lengths_that_lie_are_refused() {
    for_each_broker(|broker| {
        let topic = "produce-length";
        let mut connection = one_record(broker, topic);
        for (length, expected) in [
            (0, code::CORRUPT_MESSAGE),
            (-5, code::CORRUPT_MESSAGE),
            (i32::MIN, code::CORRUPT_MESSAGE),
            (48, code::CORRUPT_MESSAGE),
            (4000, code::INVALID_RECORD),
            (i32::MAX, code::UNKNOWN_SERVER_ERROR),
        ] {
            let lying = Batch {
                batch_length: Some(length),
                ..batch(2)
            };
            let either = [expected, code::CORRUPT_MESSAGE, code::INVALID_RECORD];
            let codes = if broker.is_highwater() {
                &either[..]
            } else {
                &either[..1]
            };
            refuses(
                &mut connection,
                topic,
                &format!("length {length}"),
                lying.encode(),
                codes,
            );
        }
    });
}

#[test]
fn header_fields_that_lie_are_refused() {
    for_each_broker(|broker| {
        let topic = "produce-header";
        let mut connection = one_record(broker, topic);
        let good = || batch(3);
        let cases: Vec<(&str, Batch, i16)> = vec![
            (
                "crc",
                Batch {
                    crc: Some(7),
                    ..good()
                },
                code::CORRUPT_MESSAGE,
            ),
            (
                "count 0",
                Batch {
                    records_count: Some(0),
                    ..good()
                },
                code::INVALID_RECORD,
            ),
            (
                "count -1",
                Batch {
                    records_count: Some(-1),
                    ..good()
                },
                code::INVALID_RECORD,
            ),
            (
                "count high",
                Batch {
                    records_count: Some(4),
                    ..good()
                },
                code::INVALID_RECORD,
            ),
            (
                "count low",
                Batch {
                    records_count: Some(2),
                    ..good()
                },
                code::INVALID_RECORD,
            ),
            (
                "count max",
                Batch {
                    records_count: Some(i32::MAX),
                    ..good()
                },
                code::INVALID_RECORD,
            ),
            (
                "delta high",
                Batch {
                    last_offset_delta: Some(9),
                    ..good()
                },
                code::INVALID_RECORD,
            ),
            (
                "delta -1",
                Batch {
                    last_offset_delta: Some(-1),
                    ..good()
                },
                code::INVALID_RECORD,
            ),
            (
                "both max",
                Batch {
                    records_count: Some(i32::MAX),
                    last_offset_delta: Some(i32::MAX - 1),
                    ..good()
                },
                code::INVALID_RECORD,
            ),
            (
                "base offset",
                Batch {
                    base_offset: 5,
                    ..good()
                },
                code::INVALID_RECORD,
            ),
            (
                "control",
                Batch {
                    attributes: 1 << 5,
                    ..good()
                },
                code::INVALID_RECORD,
            ),
            (
                "negative sequence",
                good().from_producer(900, 0, -3),
                code::INVALID_RECORD,
            ),
        ];
        for (what, lying, expected) in cases {
            refuses(&mut connection, topic, what, lying.encode(), &[expected]);
        }
        let empty = Batch::of(vec![]);
        refuses(
            &mut connection,
            topic,
            "no records",
            empty.encode(),
            &[code::INVALID_RECORD],
        );
    });
}

#[test]
fn records_that_do_not_fit_their_batch_are_refused() {
    for_each_broker(|broker| {
        let topic = "produce-records";
        let mut connection = one_record(broker, topic);
        let good = batch(2);
        let records = good.encoded_records();
        let body = |body: Vec<u8>| {
            Batch {
                body: Some(body),
                ..good.clone()
            }
            .encode()
        };
        let cases = [
            ("cut", body(records[..records.len() - 1].to_vec())),
            (
                "bytes behind the last",
                body([&records[..], &[1, 2, 3]].concat()),
            ),
            ("nothing", body(vec![])),
            (
                "a length of 2^60",
                body(vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f]),
            ),
            ("only 0xff", body(vec![0xff; 40])),
        ];
        for (what, bytes) in cases {
            let any = [
                code::INVALID_RECORD,
                code::CORRUPT_MESSAGE,
                code::UNKNOWN_SERVER_ERROR,
            ];
            let codes = if broker.is_highwater() {
                &any[..2]
            } else {
                &any[..]
            };
            refuses(&mut connection, topic, what, bytes, codes);
        }
    });
}

#[test]
fn bad_partition_does_not_fail_its_siblings() {
    for_each_broker(|broker| {
        create_topic(broker, "produce-siblings", 2);
        let mut connection = connect(broker);
        let mut corrupt = batch(1).encode().to_vec();
        corrupt[40] ^= 1;
        let parts = vec![
            (0, corrupt.into()),
            (1, batch(1).encode()),
            (9, batch(1).encode()),
        ];
        let request = produce_request("produce-siblings", parts);
        let reply = connection.call(PRODUCE, &request).unwrap();
        let mut codes: Vec<_> = reply.responses[0]
            .partition_responses
            .iter()
            .map(|p| (p.index, p.error_code))
            .collect();
        codes.sort_unstable();
        let expected = [
            (0, 2),
            (1, code::NONE),
            (9, code::UNKNOWN_TOPIC_OR_PARTITION),
        ];
        assert_eq!(codes, expected);
        assert_eq!(
            list_offsets(&mut connection, "produce-siblings", 1, -1).offset,
            1
        );
    });
}

#[test]
fn unusual_acks_are_refused() {
    for_each_broker(|broker| {
        let mut connection = one_record(broker, "produce-acks");
        for acks in [-2, 2, i16::MAX, i16::MIN] {
            let request = produce_request("produce-acks", vec![(0, batch(1).encode())]);
            let reply = connection.call(PRODUCE, &request.with_acks(acks)).unwrap();
            let code = reply.responses[0].partition_responses[0].error_code;
            assert_eq!(code, code::INVALID_REQUIRED_ACKS, "acks {acks}");
        }
        assert_eq!(
            list_offsets(&mut connection, "produce-acks", 0, -1).offset,
            1
        );
    });
}

#[test]
fn null_key_on_a_compacted_topic_names_the_record() {
    for_each_broker(|broker| {
        let topic = "produce-compacted";
        create_topic_with(broker, topic, 1, &[("cleanup.policy", "compact")]);
        let mut connection = connect(broker);
        let keyless = Record {
            value: Some(b"v".to_vec()),
            ..Record::default()
        };
        let records = vec![Record::new("k", "v"), keyless.clone(), keyless];
        let mixed = Batch::of(records).at(*NOW_MS, &[]);
        let reply = produce(&mut connection, topic, 0, mixed.encode());
        assert_eq!(reply.error_code, code::INVALID_RECORD, "{reply:?}");
        let named: Vec<_> = reply.record_errors.iter().map(|e| e.batch_index).collect();
        assert_eq!(named, [1, 2]);
        assert!(
            reply
                .record_errors
                .iter()
                .all(|e| e.batch_index_error_message.is_some())
        );
        assert!(reply.error_message.is_some());
        assert_eq!(list_offsets(&mut connection, topic, 0, -1).offset, 0);
    });
}

#[test]
fn header_counts_that_lie_are_refused() {
    for_each_broker(|broker| {
        let topic = "produce-header-count";
        let mut connection = one_record(broker, topic);
        // A record: attributes, timestamp and offset deltas, null key, null value, then the count.
        for count in [
            &[0xfe, 0xff, 0xff, 0xff, 0x0f][..],
            &[0x80, 0x80, 0x80, 0x10],
            &[1],
            &[2],
        ] {
            let record = [&[0, 0, 0, 1, 1][..], count].concat();
            let body = [&[2 * record.len() as u8][..], &record].concat();
            let lying = Batch {
                body: Some(body),
                ..batch(1)
            };
            let any = [
                code::INVALID_RECORD,
                code::CORRUPT_MESSAGE,
                code::UNKNOWN_SERVER_ERROR,
            ];
            let codes = if broker.is_highwater() {
                &any[..2]
            } else {
                &any[..]
            };
            let what = format!("header count {count:?}");
            refuses(&mut connection, topic, &what, lying.encode(), codes);
        }
    });
}

#[test]
fn forgotten_producer_may_go_on_with_any_sequence() {
    let options = BrokerOptions::new()
        .set("producer.id.expiration.ms", 1000)
        .set("producer.id.expiration.check.interval.ms", 100);
    for_each_broker_with(&options, |broker| {
        let topic = "produce-expired";
        let mut connection = one_record(broker, topic);
        let at = |sequence: i32| batch(1).from_producer(72_000, 0, sequence).encode();
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
fn zstd_needs_version_7() {
    for_each_broker(|broker| {
        let topic = "produce-zstd";
        let mut connection = one_record(broker, topic);
        let zstd = Batch {
            attributes: 4,
            body: Some(ZSTD_OF_TWO.to_vec()),
            ..batch(2)
        }
        .encode();
        for version in 3..7 {
            let reply = produce_at(&mut connection, version, topic, 0, zstd.clone());
            assert_eq!(
                reply.error_code,
                code::UNSUPPORTED_COMPRESSION_TYPE,
                "v{version}"
            );
        }
    });
}

/// Never decompressed: the version gate comes first.
const ZSTD_OF_TWO: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd, 0, 0, 1, 0, 0];

#[test]
fn compressed_payloads_that_do_not_inflate_are_refused() {
    for_each_broker(|broker| {
        let topic = "produce-inflate";
        // Records must be looked at for the key check, so that even a lazy broker inflates.
        create_topic_with(broker, topic, 1, &[("cleanup.policy", "compact")]);
        let mut connection = connect(broker);
        produce_ok(&mut connection, topic, 0, batch(1).encode());
        for codec in 1..=7 {
            let garbage = Batch {
                attributes: codec,
                body: Some(vec![0x5a; 64]),
                ..batch(2)
            };
            let codes = [
                code::UNKNOWN_SERVER_ERROR,
                code::CORRUPT_MESSAGE,
                code::INVALID_RECORD,
                code::UNSUPPORTED_COMPRESSION_TYPE,
            ];
            let what = format!("codec {codec}");
            refuses(&mut connection, topic, &what, garbage.encode(), &codes);
        }
    });
}

#[test]
fn size_limit_is_on_the_stored_batch() {
    for_each_broker(|broker| {
        let topic = "produce-limit";
        create_topic_with(broker, topic, 2, &[("max.message.bytes", "2000")]);
        let mut connection = connect(broker);
        let request = produce_request(
            topic,
            vec![
                (0, Batch::of_size(2001).encode()),
                (1, Batch::of_size(2000).encode()),
            ],
        );
        let reply = connection.call(PRODUCE, &request).unwrap();
        let mut codes: Vec<_> = reply.responses[0]
            .partition_responses
            .iter()
            .map(|p| (p.index, p.error_code))
            .collect();
        codes.sort_unstable();
        assert_eq!(codes, [(0, code::MESSAGE_TOO_LARGE), (1, code::NONE)]);
        // 10 KB that become few bytes may pass.
        let large = Batch::of(vec![Record::new("k", &"x".repeat(10_000))]).at(*NOW_MS, &[]);
        let small = Batch {
            attributes: 1,
            body: Some(gzip(&large.encoded_records())),
            ..large
        };
        produce_ok(&mut connection, topic, 0, small.encode());
    });
}

#[test]
fn decompression_bomb_costs_no_memory() {
    // Apache Kafka streams records and has no cap (A14).
    on_highwater(&BrokerOptions::new(), |broker| {
        // Looking at the records is forced by compaction's key check.
        create_topic_with(broker, "bomb", 1, &[("cleanup.policy", "compact")]);
        let mut connection = connect(broker);
        produce_ok(&mut connection, "bomb", 0, batch(1).encode());
        let before = crate::process::resident_bytes(broker);
        // One record of 1 GiB of zeros, in about 1 MiB of gzip.
        let size: i64 = 1 << 30;
        let mut plain = Vec::new();
        put_varint(&mut plain, size + 20);
        plain.extend([0, 0, 0, 2, b'k']);
        put_varint(&mut plain, size);
        plain.resize(plain.len() + size as usize, 0);
        let body = gzip(&plain);
        drop(plain);
        assert!(body.len() < 2 << 20);
        let bomb = Batch {
            attributes: 1,
            body: Some(body),
            ..batch(1)
        };
        let reply = produce(&mut connection, "bomb", 0, bomb.encode());
        assert_ne!(reply.error_code, code::NONE);
        let grown = crate::process::peak_resident_bytes(broker).saturating_sub(before);
        assert!(
            grown < 300 << 20,
            "a bomb of 1 GiB took {} MiB",
            grown >> 20
        );
        produce_ok(&mut connection, "bomb", 0, batch(1).encode());
    });
}

fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut raw = ((value << 1) ^ (value >> 63)) as u64;
    while raw >= 0x80 {
        out.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

#[test]
fn timestamps_far_from_now_are_refused() {
    for_each_broker(|broker| {
        let topic = "produce-time";
        let mut connection = one_record(broker, topic);
        let hour = 3_600_000;
        for (what, at) in [
            ("microseconds", *NOW_MS * 1000),
            ("in two hours", *NOW_MS + 2 * hour),
        ] {
            let reply = produce(&mut connection, topic, 0, batch(2).at(at, &[]).encode());
            assert_eq!(
                reply.error_code,
                code::INVALID_TIMESTAMP,
                "{what}: {reply:?}"
            );
            let named: Vec<_> = reply.record_errors.iter().map(|e| e.batch_index).collect();
            assert_eq!(named, [0, 1], "{what}");
        }
        // The past is free by default.
        produce_ok(&mut connection, topic, 0, batch(1).at(1000, &[]).encode());
        let topic = "produce-time-before";
        create_topic_with(
            broker,
            topic,
            1,
            &[("message.timestamp.before.max.ms", "1800000")],
        );
        let old = batch(1).at(*NOW_MS - hour, &[]);
        let reply = produce(&mut connection, topic, 0, old.encode());
        assert_eq!(reply.error_code, code::INVALID_TIMESTAMP);
        produce_ok(&mut connection, topic, 0, batch(1).encode());
    });
}

#[test]
fn log_append_time_is_told_and_stored() {
    for_each_broker(|broker| {
        let topic = "produce-append-time";
        create_topic_with(
            broker,
            topic,
            1,
            &[("message.timestamp.type", "LogAppendTime")],
        );
        let mut connection = connect(broker);
        let old = batch(2).at(1000, &[0, 5]);
        let reply = produce(&mut connection, topic, 0, old.encode());
        assert_eq!(reply.error_code, code::NONE);
        assert!(reply.log_append_time_ms >= *NOW_MS, "{reply:?}");
        let records = fetch(&mut connection, topic, 0, 0)
            .records
            .expect("records");
        let mut stored = records.to_vec();
        assert_eq!(
            i16::from_be_bytes([stored[21], stored[22]]) & 8,
            8,
            "the attribute bit"
        );
        let max = i64::from_be_bytes(stored[35..43].try_into().unwrap());
        assert_eq!(max, reply.log_append_time_ms);
        let crc = stored[17..21].to_vec();
        set_crc(&mut stored);
        assert_eq!(stored[17..21], crc[..], "the checksum was made anew");
        // CreateTime says nothing of it.
        let mut connection = one_record(broker, "produce-create-time");
        let reply = produce(&mut connection, "produce-create-time", 0, batch(1).encode());
        assert_eq!(reply.log_append_time_ms, -1);
    });
}

#[test]
fn batches_are_stored_as_received() {
    for_each_broker(|broker| {
        let topic = "produce-verbatim";
        let mut connection = one_record(broker, topic);
        let mut record = Record::new("key", "value");
        record.headers = vec![
            ("h".into(), None),
            ("h".into(), Some(vec![0, 255])),
            ("".into(), None),
        ];
        let sent = Batch::of(vec![record, Record::default()])
            .at(*NOW_MS, &[7, 3])
            .encode();
        let base = produce_ok(&mut connection, topic, 0, sent.clone());
        assert_eq!(base, 1);
        let records = fetch(&mut connection, topic, 0, 1)
            .records
            .expect("records");
        assert_eq!(batch_ranges(&records), [(1, 2)]);
        let mut expected = sent.to_vec();
        expected[..8].copy_from_slice(&1_i64.to_be_bytes());
        expected[12..16].copy_from_slice(&0_i32.to_be_bytes());
        assert_eq!(
            records[..],
            expected[..],
            "only base offset and leader epoch change"
        );
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
fn min_insync_replicas_above_the_replicas_is_capped() {
    for_each_broker(|broker| {
        let topic = "produce-min-isr";
        create_topic_with(broker, topic, 1, &[("min.insync.replicas", "2")]);
        let mut connection = connect(broker);
        produce_ok(&mut connection, topic, 0, batch(1).encode());
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
