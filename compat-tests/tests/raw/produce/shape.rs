//! Batches whose bytes lie about themselves.

use super::*;

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
