//! Batches as Apache Kafka's own client wrote them, and batches of all kinds there and back.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

const CODECS_LOG: &[u8] = include_bytes!("../../testdata/kafka-4.4.0/codecs.log");
const TRANSACTIONS_LOG: &[u8] = include_bytes!("../../testdata/kafka-4.4.0/transactions.log");

pub(super) const ALL_CODECS: [Compression; 5] = [
    Compression::None,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

type HeaderFields = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// A record's time, key, value and headers.
pub(super) type RecordFields = (i64, Option<Vec<u8>>, Option<Vec<u8>>, HeaderFields);

pub(super) fn some_bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..max)
}

pub(super) fn record_fields() -> impl Strategy<Value = RecordFields> {
    (
        0i64..2_000_000_000_000,
        proptest::option::of(some_bytes(20)),
        proptest::option::of(some_bytes(200)),
        proptest::collection::vec((some_bytes(9), proptest::option::of(some_bytes(20))), 0..3),
    )
}

pub(super) fn append_fields(builder: &mut RecordBatchBuilder, fields: &RecordFields) {
    let (timestamp, key, value, headers) = fields;
    let headers: Vec<_> = headers
        .iter()
        .map(|(key, value)| (&key[..], value.as_deref()))
        .collect();
    builder.append_with_headers(*timestamp, key.as_deref(), value.as_deref(), &headers);
}

fn fields_of(record: &Record) -> RecordFields {
    let headers = record
        .headers
        .iter()
        .map(|header| {
            (
                header.key.to_vec(),
                header.value.as_ref().map(|value| value.to_vec()),
            )
        })
        .collect();
    (
        record.timestamp,
        record.key.as_ref().map(|key| key.to_vec()),
        record.value.as_ref().map(|value| value.to_vec()),
        headers,
    )
}

fn read_all(batch: &[u8]) -> Result<Vec<Record>, BatchError> {
    decode_records(&Bytes::copy_from_slice(batch), DecompressLimits::default())?.collect()
}

#[test]
fn batches_of_the_java_client_are_read_in_every_codec() {
    let batches: Vec<_> = Batches::new(CODECS_LOG).collect::<Result<_, _>>().unwrap();
    let codecs: Vec<_> = batches
        .iter()
        .map(|(header, _)| header.compression().unwrap())
        .collect();
    assert_eq!(codecs, ALL_CODECS);
    for (index, (header, batch)) in batches.iter().enumerate() {
        verify_crc(batch).unwrap();
        assert_eq!(header.base_offset, index as i64 * 3);
        assert_eq!(header.producer_id, index as i64);
        let records = read_all(batch).unwrap();
        let keys: Vec<_> = records
            .iter()
            .map(|record| record.key.clone().unwrap())
            .collect();
        assert_eq!(keys, ["key1", "key2", "key3"]);
        assert_eq!(records[2].offset, header.last_offset());
        assert_eq!(
            records[1].value.as_deref(),
            Some("value 2 ".repeat(6).trim_end().as_bytes())
        );
    }
}

#[test]
fn a_batch_of_the_java_client_is_built_byte_for_byte() {
    for log in [CODECS_LOG, TRANSACTIONS_LOG] {
        for batch in Batches::new(log) {
            let (header, batch) = batch.unwrap();
            if header.compression().unwrap() != Compression::None {
                continue;
            }
            let mut builder = RecordBatchBuilder::new()
                .base_offset(header.base_offset)
                .leader_epoch(header.partition_leader_epoch)
                .producer(
                    header.producer_id,
                    header.producer_epoch,
                    header.base_sequence,
                );
            if header.is_transactional() {
                builder = builder.transactional();
            }
            if header.is_control() {
                builder = builder.control();
            }
            for record in read_all(batch).unwrap() {
                builder.append_record(&record);
            }
            assert_eq!(builder.build().unwrap(), batch);
        }
    }
}

#[test]
fn a_marker_of_the_transaction_coordinator_is_built_byte_for_byte() {
    let mut markers = 0;
    for batch in Batches::new(TRANSACTIONS_LOG) {
        let (header, batch) = batch.unwrap();
        if !header.is_control() {
            continue;
        }
        let record = &read_all(batch).unwrap()[0];
        let ControlRecord::EndTransaction(marker) =
            ControlRecord::parse(record.key.as_deref(), record.value.as_deref()).unwrap()
        else {
            panic!("not a marker");
        };
        assert!(marker.is_commit);
        let ours = RecordBatchBuilder::end_transaction(
            marker,
            header.producer_id,
            header.producer_epoch,
            record.timestamp,
        )
        .base_offset(header.base_offset)
        .leader_epoch(header.partition_leader_epoch)
        .build()
        .unwrap();
        assert_eq!(ours, batch);
        markers += 1;
    }
    assert_eq!(markers, 3);
}

#[test]
fn a_batch_that_is_cut_off_ends_the_walk_before_it() {
    let cut = &TRANSACTIONS_LOG[..TRANSACTIONS_LOG.len() - 1];
    let mut batches = Batches::new(cut);
    let last = batches.by_ref().map(Result::unwrap).last().unwrap();
    assert_eq!(last.0.next_offset(), 32);
    assert_eq!(batches.remaining().len(), 77);
    assert_eq!(batches.position() + 77, cut.len());
}

#[test]
fn a_header_that_cannot_be_ends_the_walk_with_an_error() {
    let mut log = CODECS_LOG.to_vec();
    log[16] = 9;
    let mut batches = Batches::new(&log);
    assert_eq!(batches.next(), Some(Err(BatchError::UnsupportedMagic(9))));
    assert_eq!(batches.next(), None);
}

#[test]
fn a_batch_without_records_is_read() {
    let batch = RecordBatchBuilder::new()
        .compression(Compression::Zstd)
        .base_offset(7)
        .last_offset_delta(2)
        .max_timestamp(5)
        .producer(1, 2, 3)
        .build()
        .unwrap();
    assert_eq!(batch.len(), BATCH_HEADER_BYTES);
    verify_crc(&batch).unwrap();
    let header = BatchHeader::parse(&batch).unwrap();
    assert_eq!((header.last_offset(), header.last_sequence()), (9, 5));
    assert_eq!((header.records_count, header.max_timestamp), (0, 5));
    assert_eq!(header.compression(), Ok(Compression::None));
    assert_eq!(read_all(&batch).unwrap(), []);
}

#[test]
fn records_of_log_append_time_have_the_time_of_their_batch() {
    let mut builder = RecordBatchBuilder::new().log_append_time(500);
    builder.append(1, None, None).append(2, None, None);
    let records = read_all(&builder.build().unwrap()).unwrap();
    assert_eq!(
        records
            .iter()
            .map(|record| record.timestamp)
            .collect::<Vec<_>>(),
        [500, 500]
    );
}

#[test]
fn counts_from_the_wire_take_no_memory() {
    for count in [-1, i32::MIN, i32::MAX] {
        let mut header = BatchHeader::parse(CODECS_LOG).unwrap();
        header.records_count = count;
        let mut batch = CODECS_LOG[..header.size_in_bytes()].to_vec();
        batch[..BATCH_HEADER_BYTES].copy_from_slice(&header.to_bytes());
        assert!(read_all(&batch).is_err(), "count {count}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn what_is_built_is_read_again(
        fields in proptest::collection::vec(record_fields(), 1..20),
        codec in prop::sample::select(ALL_CODECS.as_slice()),
        base_offset in 0i64..1 << 50,
        delete_horizon in proptest::option::of(0i64..2_000_000_000_000),
    ) {
        let mut builder = RecordBatchBuilder::new()
            .compression(codec)
            .base_offset(base_offset)
            .delete_horizon_ms(delete_horizon)
            .producer(4, 5, 6);
        for record in &fields {
            append_fields(&mut builder, record);
        }
        let batch = builder.build().unwrap();
        prop_assert_eq!(verify_crc(&batch), Ok(()));
        let header = BatchHeader::parse(&batch).unwrap();
        prop_assert_eq!(header.size_in_bytes(), batch.len());
        prop_assert_eq!(header.delete_horizon_ms(), delete_horizon);
        prop_assert_eq!(header.max_timestamp, fields.iter().map(|record| record.0).max().unwrap());
        let records = read_all(&batch).unwrap();
        prop_assert_eq!(records.iter().map(fields_of).collect::<Vec<_>>(), fields);
        for (index, record) in records.iter().enumerate() {
            prop_assert_eq!(record.offset, base_offset + index as i64);
        }
        prop_assert_eq!(Batches::new(&batch).map(Result::unwrap).count(), 1);
    }

    #[test]
    fn arbitrary_bytes_after_a_header_neither_panic_nor_pass_the_cap(
        payload in some_bytes(300),
        attributes in 0i16..8,
        count in prop_oneof![Just(1i32), Just(3), Just(i32::MAX), any::<i32>()],
    ) {
        let mut header = BatchHeader::parse(CODECS_LOG).unwrap();
        header.attributes = attributes;
        header.records_count = count;
        header.batch_length = 49 + payload.len() as i32;
        let mut batch = header.to_bytes().to_vec();
        batch.extend_from_slice(&payload);
        let limits = DecompressLimits { max_bytes: 4096 };
        if let Ok(records) = decode_records(&Bytes::from(batch), limits) {
            // Each record takes seven bytes at least.
            prop_assert!(records.count() <= 4096 / 7 + 1);
        }
    }

    #[test]
    fn arbitrary_bytes_are_walked_over_without_panic(bytes in some_bytes(300)) {
        for batch in Batches::new(&bytes) {
            let _ = batch;
        }
    }
}
