//! What a refused batch is answered beside its code: the log's start, a text, the records at fault.

use bytes::Bytes;
use compat_tests::broker::Broker;
use compat_tests::each_broker::for_each_broker;
use compat_tests::raw::{Batch, Connection, Record, code};
use kafka_protocol::messages::DeleteRecordsRequest;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;

use crate::support::{
    NOW_MS, PRODUCE, batch, connect, create_topic_with, new_producer, produce_at, produce_ok,
    produce_request, topic_name, wait_for_coordinator,
};

/// Where the topics of these tests begin, so that a log's start can be told from its default.
const LOG_START: i64 = 2;

/// A topic whose first records are deleted.
fn topic_from_2(broker: &Broker, name: &str, config: &[(&str, &str)]) -> Connection {
    create_topic_with(broker, name, 1, config);
    let mut connection = connect(broker);
    produce_ok(&mut connection, name, 0, batch(3).encode());
    let partition = DeleteRecordsPartition::default()
        .with_partition_index(0)
        .with_offset(LOG_START);
    let topic = DeleteRecordsTopic::default()
        .with_name(topic_name(name))
        .with_partitions(vec![partition]);
    let request = DeleteRecordsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(30_000);
    let reply = connection.call(2, &request).expect("answered");
    assert_eq!(
        reply.topics[0].partitions[0].low_watermark, LOG_START,
        "{reply:?}"
    );
    connection
}

/// What an answer says beside its code.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    error_code: i16,
    base_offset: i64,
    log_append_time_ms: i64,
    log_start_offset: i64,
    has_message: bool,
    records: Vec<i32>,
}

impl Told {
    fn by(reply: &PartitionProduceResponse) -> Self {
        let records = reply.record_errors.iter();
        assert!(
            records
                .clone()
                .all(|record| record.batch_index_error_message.is_some())
        );
        Self {
            error_code: reply.error_code,
            base_offset: reply.base_offset,
            log_append_time_ms: reply.log_append_time_ms,
            log_start_offset: reply.log_start_offset,
            has_message: reply.error_message.is_some(),
            records: records.map(|record| record.batch_index).collect(),
        }
    }

    /// The code and nothing else.
    fn code(error_code: i16) -> Self {
        Self {
            error_code,
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: -1,
            has_message: false,
            records: Vec::new(),
        }
    }

    /// The code and where the log begins.
    fn with_start(error_code: i16) -> Self {
        Self {
            log_start_offset: LOG_START,
            ..Self::code(error_code)
        }
    }

    /// The records at fault too, and a text.
    fn with_records(error_code: i16, records: &[i32]) -> Self {
        Self {
            has_message: true,
            records: records.to_vec(),
            ..Self::with_start(error_code)
        }
    }
}

/// Produces what is wrong in one way or another, and compares what is told.
struct Prober<'a> {
    connection: &'a mut Connection,
    topic: &'a str,
}

impl Prober<'_> {
    fn expect(&mut self, what: &str, bytes: Bytes, expected: &Told) {
        self.expect_by(PRODUCE, what, bytes, expected);
    }

    fn expect_by(&mut self, version: i16, what: &str, bytes: Bytes, expected: &Told) {
        let reply = produce_at(self.connection, version, self.topic, 0, bytes);
        assert_eq!(
            Told::by(&reply),
            *expected,
            "{what} by v{version}: {reply:?}"
        );
    }
}

fn keyless() -> Record {
    Record {
        value: Some(b"v".to_vec()),
        ..Record::default()
    }
}

#[test]
fn a_batch_that_breaks_a_rule_is_answered_with_the_log_start() {
    for_each_broker(|broker| {
        let topic = "produce-errors-rules";
        let mut connection = topic_from_2(broker, topic, &[]);
        let mut prober = Prober {
            connection: &mut connection,
            topic,
        };
        let good = || batch(2);
        let records = good().encoded_records();
        let with_body = |body: Vec<u8>| {
            Batch {
                body: Some(body),
                ..good()
            }
            .encode()
        };
        let cases = [
            (
                "count",
                Batch {
                    records_count: Some(4),
                    ..good()
                }
                .encode(),
            ),
            (
                "delta",
                Batch {
                    last_offset_delta: Some(9),
                    ..good()
                }
                .encode(),
            ),
            (
                "base offset",
                Batch {
                    base_offset: 5,
                    ..good()
                }
                .encode(),
            ),
            (
                "control",
                Batch {
                    attributes: 1 << 5,
                    ..good()
                }
                .encode(),
            ),
            (
                "negative sequence",
                good().from_producer(900, 0, -3).encode(),
            ),
            ("no records", Batch::of(vec![]).encode()),
            (
                "records that are cut off",
                with_body(records[..records.len() - 1].to_vec()),
            ),
            (
                "bytes behind the records",
                with_body([&records[..], &[1, 2, 3]].concat()),
            ),
        ];
        for (what, bytes) in cases {
            prober.expect(what, bytes, &Told::with_start(code::INVALID_RECORD));
        }
    });
}

#[test]
fn what_is_refused_before_the_log_is_asked_is_answered_with_a_code_alone() {
    for_each_broker(|broker| {
        let topic = "produce-errors-early";
        let config = [
            ("max.message.bytes", "3000000"),
            ("segment.bytes", "1048576"),
        ];
        let mut connection = topic_from_2(broker, topic, &config);
        wait_for_coordinator(broker, "produce-errors");
        let good = || batch(2);
        let two = [good().encode(), good().encode()].concat();
        let unknown = Told::code(code::UNKNOWN_TOPIC_OR_PARTITION);
        let reply = produce_at(
            &mut connection,
            PRODUCE,
            "produce-errors-none",
            0,
            good().encode(),
        );
        assert_eq!(Told::by(&reply), unknown);
        let reply = produce_at(&mut connection, PRODUCE, topic, 7, good().encode());
        assert_eq!(Told::by(&reply), unknown);
        let reply = produce_at(
            &mut connection,
            PRODUCE,
            "__consumer_offsets",
            0,
            good().encode(),
        );
        assert_eq!(Told::by(&reply), Told::code(code::INVALID_TOPIC));
        let acks = produce_request(topic, vec![(0, good().encode())]).with_acks(5);
        let reply = connection.call(PRODUCE, &acks).expect("answered");
        let reply = &reply.responses[0].partition_responses[0];
        assert_eq!(Told::by(reply), Told::code(code::INVALID_REQUIRED_ACKS));

        let mut prober = Prober {
            connection: &mut connection,
            topic,
        };
        let invalid = Told::code(code::INVALID_RECORD);
        prober.expect(
            "an old magic",
            Batch { magic: 1, ..good() }.encode(),
            &invalid,
        );
        prober.expect("nothing", Bytes::new(), &invalid);
        prober.expect("two batches", two.into(), &invalid);
        let corrupt = Batch {
            crc: Some(7),
            ..good()
        }
        .encode();
        for version in [3, PRODUCE] {
            let expected = Told::code(code::CORRUPT_MESSAGE);
            prober.expect_by(version, "a wrong crc", corrupt.clone(), &expected);
        }
        let large = Batch::of_size(1_500_000).encode();
        prober.expect(
            "more than a segment",
            large,
            &Told::code(code::RECORD_LIST_TOO_LARGE),
        );
        let larger = Batch::of_size(3_500_000).encode();
        prober.expect(
            "more than a message",
            larger,
            &Told::code(code::MESSAGE_TOO_LARGE),
        );
        let zstd = Batch {
            attributes: 4,
            ..good()
        }
        .encode();
        let expected = Told::code(code::UNSUPPORTED_COMPRESSION_TYPE);
        prober.expect_by(6, "zstd", zstd, &expected);
    });
}

#[test]
fn records_at_fault_are_named_with_a_text_from_v8_on() {
    for_each_broker(|broker| {
        let topic = "produce-errors-records";
        let config = [
            ("cleanup.policy", "compact,delete"),
            ("message.timestamp.after.max.ms", "1000"),
        ];
        let mut connection = topic_from_2(broker, topic, &config);
        let mut prober = Prober {
            connection: &mut connection,
            topic,
        };
        let two_of_three = Batch::of(vec![Record::new("k", "v"), keyless(), keyless()]).encode();
        let expected = Told::with_records(code::INVALID_RECORD, &[1, 2]);
        prober.expect("no keys", two_of_three.clone(), &expected);
        prober.expect_by(8, "no keys", two_of_three.clone(), &expected);
        let expected = Told::with_start(code::INVALID_RECORD);
        prober.expect_by(7, "no keys", two_of_three.clone(), &expected);
        prober.expect_by(
            4,
            "no keys",
            two_of_three,
            &Told::code(code::INVALID_RECORD),
        );
        let to_come = batch(2).at(*NOW_MS + 100_000_000, &[]).encode();
        let expected = Told::with_records(code::INVALID_TIMESTAMP, &[0, 1]);
        prober.expect("a time to come", to_come, &expected);
    });
}

#[test]
fn sequences_and_epochs_out_of_order_are_answered_with_the_log_start() {
    for_each_broker(|broker| {
        let topic = "produce-errors-sequences";
        let mut connection = topic_from_2(broker, topic, &[]);
        let (id, epoch) = new_producer(&mut connection);
        let at = |epoch: i16, sequence: i32| batch(1).from_producer(id, epoch, sequence).encode();
        produce_ok(&mut connection, topic, 0, at(epoch + 1, 0));
        let mut prober = Prober {
            connection: &mut connection,
            topic,
        };
        let expected = Told::with_start(code::OUT_OF_ORDER_SEQUENCE_NUMBER);
        prober.expect("a gap", at(epoch + 1, 9), &expected);
        prober.expect_by(5, "a gap", at(epoch + 1, 9), &expected);
        let expected = Told::code(code::OUT_OF_ORDER_SEQUENCE_NUMBER);
        prober.expect_by(4, "a gap", at(epoch + 1, 9), &expected);
        let expected = Told::with_start(code::INVALID_PRODUCER_EPOCH);
        prober.expect("an old epoch", at(epoch, 1), &expected);
    });
}
