//! Each rule of validation; what Apache Kafka 4.4.0 answers to the same batch was looked up on it.

mod topic_rules;

use bytes::Bytes;
use proptest::prelude::*;

use super::header::compute_crc;
use super::tests::{ALL_CODECS, append_fields, record_fields, some_bytes};
use super::varint::{put_varint, put_varlong};
use super::*;
use crate::errors::AppendError;
use crate::log::AppendOrigin;

const NOW_MS: i64 = 1_700_000_000_000;
const HOUR_MS: i64 = 3_600_000;

fn rules() -> ValidationRules {
    ValidationRules {
        max_message_bytes: 1 << 20,
        limits: DecompressLimits::default(),
        requires_key: false,
        codec: None,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: HOUR_MS,
    }
}

fn builder() -> RecordBatchBuilder {
    RecordBatchBuilder::new()
}

/// Two records, one minute apart.
fn two_records(mut builder: RecordBatchBuilder) -> Bytes {
    builder.append(NOW_MS, Some(b"k1"), Some(b"v1"));
    builder.append(NOW_MS + 60_000, Some(b"k2"), Some(b"v2"));
    builder.build().unwrap()
}

/// The batch with its header changed, and the checksum made right again.
fn with_header(batch: &[u8], change: impl FnOnce(&mut BatchHeader)) -> Bytes {
    let mut header = BatchHeader::parse(batch).unwrap();
    change(&mut header);
    with_payload(header, &batch[BATCH_HEADER_BYTES..])
}

fn with_payload(mut header: BatchHeader, payload: &[u8]) -> Bytes {
    header.batch_length = 49 + payload.len() as i32;
    let mut batch = header.to_bytes().to_vec();
    batch.extend_from_slice(payload);
    let crc = compute_crc(&batch);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    Bytes::from(batch)
}

/// A batch of `count` records with this payload.
fn raw(payload: &[u8], count: i32, codec: Compression) -> Bytes {
    let mut header = BatchHeader::parse(&two_records(builder())).unwrap();
    header.attributes = i16::from(codec.id());
    header.records_count = count;
    header.last_offset_delta = count - 1;
    with_payload(header, payload)
}

fn validate(records: &Bytes) -> Result<ValidatedBatch, AppendError> {
    validate_by(records, &rules())
}

fn validate_by(records: &Bytes, rules: &ValidationRules) -> Result<ValidatedBatch, AppendError> {
    validate_produced(records, rules, AppendOrigin::Client, NOW_MS)
}

#[track_caller]
fn assert_corrupt(records: &Bytes) {
    let result = validate(records);
    assert!(
        matches!(result, Err(AppendError::CorruptMessage(_))),
        "{result:?}"
    );
}

fn assert_not_one_batch(records: &Bytes) {
    let result = validate(records);
    assert!(
        matches!(&result, Err(AppendError::NotOneBatch(_))),
        "{result:?}"
    );
}

#[track_caller]
fn assert_invalid(records: &Bytes) {
    let result = validate(records);
    assert!(
        matches!(&result, Err(AppendError::InvalidRecord { record_errors, .. }) if record_errors.is_empty()),
        "{result:?}"
    );
}

fn stored(validated: &ValidatedBatch) -> Bytes {
    let mut batch = validated.patched_header(40, 3).to_vec();
    batch.extend_from_slice(validated.records());
    verify_crc(&batch).unwrap();
    Bytes::from(batch)
}

fn records_of(batch: &Bytes) -> Vec<Record> {
    decode_records(batch, DecompressLimits::default())
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

fn record_bytes(offset_delta: i32, key_length: i32, tail: &[u8]) -> Vec<u8> {
    let mut body = vec![0];
    put_varlong(&mut body, 0);
    put_varint(&mut body, offset_delta);
    put_varint(&mut body, key_length);
    body.extend_from_slice(tail);
    let mut record = Vec::new();
    put_varint(&mut record, body.len() as i32);
    record.extend_from_slice(&body);
    record
}

#[test]
fn a_sound_batch_is_taken_as_it_is() {
    for codec in ALL_CODECS {
        let batch = two_records(builder().compression(codec).producer(1, 0, 0));
        let validated = validate(&batch).unwrap();
        assert_eq!(validated.bytes(), &batch);
        assert_eq!(validated.bytes().as_ptr(), batch.as_ptr(), "not copied");
        assert_eq!(validated.log_append_time(), None);
        assert_eq!(validated.header(), BatchHeader::parse(&batch).unwrap());
        let stored = stored(&validated);
        assert_eq!(BatchHeader::parse(&stored).unwrap().base_offset, 40);
        assert_eq!(
            BatchHeader::parse(&stored).unwrap().partition_leader_epoch,
            3
        );
        assert_eq!(stored[17..], batch[17..]);
    }
}

#[test]
fn there_must_be_exactly_one_batch() {
    let batch = two_records(builder());
    assert_not_one_batch(&Bytes::new());
    assert_not_one_batch(&Bytes::from([&batch[..], &batch[..]].concat()));
    assert_not_one_batch(&batch.slice(..batch.len() - 1));
}

#[test]
fn bytes_after_the_batch_that_are_no_batch_are_left_out() {
    let batch = two_records(builder());
    for tail in [&b"abcde"[..], &batch[..batch.len() - 3], &[0; 11]] {
        let validated = validate(&Bytes::from([&batch[..], tail].concat())).unwrap();
        assert_eq!(validated.bytes(), &batch);
    }
    // A size or a magic that no batch can have is not waited for.
    assert_corrupt(&Bytes::from([&batch[..], &[0; 30]].concat()));
    let mut foreign = batch[..20].to_vec();
    foreign[16] = 9;
    assert_corrupt(&Bytes::from([&batch[..], &foreign].concat()));
}

#[test]
fn other_format_versions_are_refused() {
    let batch = two_records(builder());
    for (magic, is_corrupt) in [(0, false), (1, false), (3, true), (-1, true)] {
        let changed = with_header(&batch, |header| header.magic = magic);
        if is_corrupt {
            assert_corrupt(&changed)
        } else {
            assert_not_one_batch(&changed)
        }
    }
}

#[test]
fn lengths_that_lie_are_refused() {
    let batch = two_records(builder());
    let with_length = |length: i32| {
        let mut batch = batch.to_vec();
        batch[8..12].copy_from_slice(&length.to_be_bytes());
        Bytes::from(batch)
    };
    for length in [i32::MIN, -1, 0, 13, 14, 48, 50] {
        assert_corrupt(&with_length(length));
    }
    for length in [5000, i32::MAX] {
        assert_not_one_batch(&with_length(length));
    }
}

#[test]
fn a_wrong_checksum_is_a_corrupt_message() {
    let batch = two_records(builder());
    for at in [17, 21, 30, 60, batch.len() - 1] {
        let mut batch = batch.to_vec();
        batch[at] ^= 0x10;
        assert_corrupt(&Bytes::from(batch));
    }
}

#[test]
fn base_offset_comes_before_size_before_checksum_before_counts() {
    let (small, usual) = (
        ValidationRules {
            max_message_bytes: 70,
            ..rules()
        },
        rules(),
    );
    let mut wrong =
        with_header(&two_records(builder()), |header| header.records_count = 0).to_vec();
    wrong[20] ^= 1;
    let kind = |wrong: &[u8], rules| match validate_by(&Bytes::copy_from_slice(wrong), rules) {
        Err(AppendError::InvalidRecord { .. }) => "invalid",
        Err(AppendError::MessageTooLarge { .. }) => "large",
        Err(AppendError::CorruptMessage(_)) => "corrupt",
        _ => "other",
    };
    assert_eq!(kind(&wrong, &usual), "corrupt");
    assert_eq!(kind(&wrong, &small), "large");
    wrong[7] = 5;
    assert_eq!(kind(&wrong, &small), "invalid");
}

#[test]
fn a_batch_may_be_as_large_as_the_limit_and_no_larger() {
    let batch = two_records(builder());
    let at_most = |max_message_bytes| ValidationRules {
        max_message_bytes,
        ..rules()
    };
    assert!(validate_by(&batch, &at_most(batch.len())).is_ok());
    assert!(matches!(
        validate_by(&batch, &at_most(batch.len() - 1)),
        Err(AppendError::MessageTooLarge { size_bytes, max_bytes })
            if size_bytes == batch.len() && max_bytes == size_bytes - 1
    ));
    let metadata = validate_produced(&batch, &at_most(1), AppendOrigin::Controller, NOW_MS);
    assert!(metadata.is_ok());
}

#[test]
fn counts_and_offsets_must_fit() {
    let batch = two_records(builder());
    for (count, delta) in [
        (0, 0),
        (0, -1),
        (-1, 0),
        (2, 0),
        (1, 1),
        (2, -5),
        (i32::MAX, 1),
    ] {
        assert_invalid(&with_header(&batch, |header| {
            header.records_count = count;
            header.last_offset_delta = delta;
        }));
    }
    // Counts that fit each other but not the payload.
    for count in [1, 3, i32::MAX] {
        assert_invalid(&with_header(&batch, |header| {
            header.records_count = count;
            header.last_offset_delta = count - 1;
        }));
    }
    assert_invalid(&with_header(&batch, |header| header.base_offset = 5));
}

#[test]
fn clients_may_not_write_control_records() {
    let marker = EndTransactionMarker {
        is_commit: true,
        coordinator_epoch: 1,
    };
    let batch = RecordBatchBuilder::end_transaction(marker, 1, 0, NOW_MS)
        .build()
        .unwrap();
    assert_invalid(&batch);
    assert!(validate_produced(&batch, &rules(), AppendOrigin::Coordinator, NOW_MS).is_ok());
}

#[test]
fn a_producer_id_needs_a_sequence() {
    assert_invalid(&two_records(builder().producer(7, 0, -1)));
    assert!(validate(&two_records(builder().producer(7, 0, 0))).is_ok());
    assert!(validate(&two_records(builder().producer(-1, 2, 3))).is_ok());
}

#[test]
fn records_whose_framing_lies_are_refused_in_every_codec() {
    let good = record_bytes(0, -1, &[1, 0]);
    let header = |fields: &[u8]| record_bytes(0, -1, &[&[1], fields].concat());
    let cases: [Vec<u8>; 14] = [
        Vec::new(),
        good[..good.len() - 1].to_vec(),
        [&good[..], b"x"].concat(),
        [good.clone(), good.clone()].concat(),
        vec![0],
        vec![1],
        vec![0x90, 0x80, 0x80, 0x80, 0x80, 0x00],
        record_bytes(5, -1, &[1, 0]),
        record_bytes(-1, -1, &[1, 0]),
        record_bytes(0, 20, &[0; 3]),
        record_bytes(0, -1, &[1, 0, 9, 9]),
        header(&[1]),
        header(&[2, 1, 2, b'a']),
        header(&[0x80, 0x89, 0x7a]),
    ];
    for codec in ALL_CODECS {
        let compressed = |payload: &[u8]| super::codec::compress(codec.into(), payload).unwrap();
        assert!(validate(&raw(&compressed(&good), 1, codec)).is_ok());
        for case in &cases {
            assert_invalid(&raw(&compressed(case), 1, codec));
        }
        // A key's claim that reaches beyond its record but not beyond the batch.
        let mut spilling = record_bytes(0, 20, &[0; 3]);
        spilling.extend_from_slice(&[0; 30]);
        assert_invalid(&raw(&compressed(&spilling), 1, codec));
        // Null is any negative length, as for the Java client.
        let odd = record_bytes(0, -5, &[13, 2, 2, b'a', 13]);
        assert!(validate(&raw(&compressed(&odd), 1, codec)).is_ok());
    }
}

#[test]
fn payloads_that_do_not_inflate_are_corrupt() {
    for codec in ALL_CODECS.into_iter().skip(1) {
        assert_corrupt(&raw(b"garbage", 1, codec));
        let mut payload =
            super::codec::compress(codec.into(), &record_bytes(0, -1, &[1, 0])).unwrap();
        payload.truncate(payload.len() - 5);
        // A frame that lacks its end mark alone has all records, or too few.
        assert!(
            validate(&raw(&payload[..payload.len() - 4], 1, codec)).is_err(),
            "{codec:?}"
        );
    }
    for unknown in 5..8 {
        assert_corrupt(&with_header(&two_records(builder()), |header| {
            header.attributes = unknown
        }));
    }
}

#[test]
fn a_bomb_is_refused_at_the_cap() {
    let rules = ValidationRules {
        limits: DecompressLimits { max_bytes: 1 << 20 },
        ..rules()
    };
    let zeros = vec![0; 2 << 20];
    for codec in [
        Compression::Gzip,
        Compression::Lz4,
        Compression::Zstd,
        Compression::Snappy,
    ] {
        let mut bomb = builder().compression(codec);
        bomb.append(NOW_MS, None, Some(&zeros));
        let bomb = bomb.build().unwrap();
        assert!(bomb.len() < 1 << 18);
        for rules in [
            rules,
            ValidationRules {
                codec: Some(Compression::None.into()),
                ..rules
            },
        ] {
            assert!(matches!(
                validate_by(&bomb, &rules),
                Err(AppendError::MessageTooLarge { max_bytes, .. }) if max_bytes == 1 << 20
            ));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn whatever_is_built_is_valid_and_kept(
        fields in proptest::collection::vec(record_fields(), 1..20),
        codec in prop::sample::select(ALL_CODECS.as_slice()),
    ) {
        let mut builder = builder().compression(codec);
        for record in &fields {
            append_fields(&mut builder, record);
        }
        let batch = builder.build().unwrap();
        let rules = ValidationRules { timestamp_after_max_ms: i64::MAX, ..rules() };
        let validated = validate_by(&batch, &rules).unwrap();
        prop_assert_eq!(validated.bytes(), &batch);
        prop_assert_eq!(validated.header(), BatchHeader::parse(&batch).unwrap());
    }

    /// What is accepted can be read by whoever fetches it.
    #[test]
    fn a_payload_that_is_accepted_can_be_decoded(
        fields in proptest::collection::vec(record_fields(), 1..4),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        codec in prop::sample::select(ALL_CODECS.as_slice()),
    ) {
        let mut builder = builder().compression(codec);
        for record in &fields {
            append_fields(&mut builder, record);
        }
        let batch = builder.build().unwrap();
        let mut payload = batch[BATCH_HEADER_BYTES..].to_vec();
        for (at, value) in damage {
            let at = at.index(payload.len());
            payload[at] = value;
        }
        let batch = with_payload(BatchHeader::parse(&batch).unwrap(), &payload);
        let rules = ValidationRules { timestamp_after_max_ms: i64::MAX, ..rules() };
        if let Ok(validated) = validate_by(&batch, &rules) {
            let batch = stored(&validated);
            let read: Result<Vec<_>, _> =
                decode_records(&batch, DecompressLimits::default()).unwrap().collect();
            prop_assert_eq!(read.unwrap().len(), fields.len());
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_panic(bytes in some_bytes(200)) {
        prop_assert!(validate(&Bytes::from(bytes)).is_err());
    }
}
