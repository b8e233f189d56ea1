//! The rules that a topic's configuration makes: keys, timestamps, codec, size.

use super::*;

#[test]
fn records_of_a_compacted_topic_need_keys() {
    let rules = ValidationRules {
        requires_key: true,
        ..rules()
    };
    for codec in ALL_CODECS {
        let mut batch = builder().compression(codec);
        batch
            .append(NOW_MS, Some(b""), None)
            .append(NOW_MS, None, None)
            .append(NOW_MS, None, None);
        let Err(AppendError::InvalidRecord {
            record_errors,
            message,
        }) = validate_by(&batch.build().unwrap(), &rules)
        else {
            panic!("taken");
        };
        assert_eq!(
            record_errors
                .iter()
                .map(|e| e.batch_index)
                .collect::<Vec<_>>(),
            [1, 2]
        );
        assert!(message.starts_with("2 records"), "{message}");
    }
}

#[test]
fn timestamps_must_lie_within_their_bounds() {
    let rules = ValidationRules {
        timestamp_before_max_ms: 1000,
        ..rules()
    };
    for codec in ALL_CODECS {
        let mut batch = builder().compression(codec);
        for timestamp in [
            NOW_MS - 1000,
            NOW_MS - 1001,
            NOW_MS + HOUR_MS,
            NOW_MS + HOUR_MS + 1,
            NO_TIMESTAMP,
            -2,
        ] {
            batch.append(timestamp, Some(b"k"), None);
        }
        let Err(AppendError::InvalidTimestamp { record_errors, .. }) =
            validate_by(&batch.build().unwrap(), &rules)
        else {
            panic!("taken");
        };
        assert_eq!(
            record_errors
                .iter()
                .map(|e| e.batch_index)
                .collect::<Vec<_>>(),
            [1, 3, 5]
        );
    }
}

#[test]
fn a_bad_timestamp_decides_the_error_of_a_batch_with_both() {
    let rules = ValidationRules {
        requires_key: true,
        ..rules()
    };
    let mut batch = builder();
    batch
        .append(NOW_MS, None, None)
        .append(NOW_MS * 1000, Some(b"k"), None);
    let Err(AppendError::InvalidTimestamp { record_errors, .. }) =
        validate_by(&batch.build().unwrap(), &rules)
    else {
        panic!("taken");
    };
    assert_eq!(record_errors.len(), 2);
}

#[test]
fn faulty_records_are_listed_up_to_a_bound() {
    let rules = ValidationRules {
        requires_key: true,
        ..rules()
    };
    let mut batch = builder();
    for _ in 0..5000 {
        batch.append(NOW_MS, None, None);
    }
    let Err(AppendError::InvalidRecord {
        record_errors,
        message,
    }) = validate_by(&batch.build().unwrap(), &rules)
    else {
        panic!("taken");
    };
    assert_eq!(record_errors.len(), 1000);
    assert!(message.starts_with("5000 records"), "{message}");
}

#[test]
fn the_largest_timestamp_is_made_right_if_the_producer_lies() {
    for codec in ALL_CODECS {
        let batch = two_records(builder().compression(codec));
        for claimed in [0, NOW_MS - 1, NOW_MS * 1000, -5] {
            let lying = with_header(&batch, |header| header.max_timestamp = claimed);
            let validated = validate(&lying).unwrap();
            assert_eq!(validated.header().max_timestamp, NOW_MS + 60_000);
            assert_eq!(
                stored(&validated)[BATCH_HEADER_BYTES..],
                batch[BATCH_HEADER_BYTES..]
            );
        }
    }
}

#[test]
fn log_append_time_stamps_the_batch_and_looks_at_no_timestamp() {
    let rules = ValidationRules {
        timestamp_type: TimestampType::LogAppendTime,
        ..rules()
    };
    for codec in ALL_CODECS {
        let mut batch = builder().compression(codec);
        batch
            .append(NOW_MS * 1000, Some(b"k"), None)
            .append(0, Some(b"l"), None);
        let validated = validate_by(&batch.build().unwrap(), &rules).unwrap();
        assert_eq!(validated.log_append_time(), Some(NOW_MS));
        let stored = stored(&validated);
        let header = BatchHeader::parse(&stored).unwrap();
        assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(header.max_timestamp, NOW_MS);
        assert!(
            records_of(&stored)
                .iter()
                .all(|record| record.timestamp == NOW_MS)
        );
    }
}

#[test]
fn a_producer_cannot_choose_log_append_time() {
    let claiming = two_records(builder().log_append_time(NOW_MS + 7));
    // On a topic with CreateTime the claim is taken off, and the records' own times count. (Kafka
    // checks the claimed time in their stead, and so stores theirs unchecked.)
    let validated = validate(&claiming).unwrap();
    assert_eq!(
        validated.header().timestamp_type(),
        TimestampType::CreateTime
    );
    assert_eq!(validated.header().max_timestamp, NOW_MS + 60_000);
    stored(&validated);
    let mut late = builder().log_append_time(NOW_MS);
    late.append(NOW_MS * 2, None, None);
    let late = validate(&late.build().unwrap());
    assert!(matches!(late, Err(AppendError::InvalidTimestamp { .. })));
    // On one with LogAppendTime it is refused.
    let rules = ValidationRules {
        timestamp_type: TimestampType::LogAppendTime,
        ..rules()
    };
    let Err(AppendError::InvalidTimestamp { record_errors, .. }) = validate_by(&claiming, &rules)
    else {
        panic!("taken");
    };
    assert_eq!(record_errors.len(), 2);
}

#[test]
fn a_topic_codec_recompresses_what_comes_in_another() {
    for source in ALL_CODECS {
        for target in ALL_CODECS {
            let rules = ValidationRules {
                codec: Some(target.into()),
                ..rules()
            };
            let batch = two_records(
                builder()
                    .compression(source)
                    .producer(9, 1, 30)
                    .transactional(),
            );
            let validated = validate_by(&batch, &rules).unwrap();
            if source == target {
                assert_eq!(validated.bytes().as_ptr(), batch.as_ptr(), "not copied");
            }
            let stored = stored(&validated);
            let header = BatchHeader::parse(&stored).unwrap();
            assert_eq!(header.compression(), Ok(target));
            assert_eq!((header.producer_id, header.producer_epoch), (9, 1));
            assert_eq!(
                (header.base_sequence, header.is_transactional()),
                (30, true)
            );
            assert_eq!(header.max_timestamp, NOW_MS + 60_000);
            let records = records_of(&stored);
            assert_eq!(records[1].key.as_deref(), Some(&b"k2"[..]));
            assert_eq!((records[0].offset, records[1].offset), (40, 41));
            assert_eq!(records[1].timestamp, NOW_MS + 60_000);
        }
    }
}

#[test]
fn the_size_limit_holds_again_after_recompression() {
    let rules = ValidationRules {
        max_message_bytes: 1000,
        codec: Some(Compression::None.into()),
        ..rules()
    };
    let mut batch = builder().compression(Compression::Gzip);
    batch.append(NOW_MS, None, Some(&[b'a'; 5000]));
    let batch = batch.build().unwrap();
    assert!(batch.len() < 1000);
    assert!(matches!(
        validate_by(&batch, &rules),
        Err(AppendError::MessageTooLarge { .. })
    ));
    assert!(
        validate_by(
            &batch,
            &ValidationRules {
                codec: None,
                ..rules
            }
        )
        .is_ok()
    );
}

#[test]
fn a_record_larger_than_the_window_is_walked_over() {
    let value: Vec<u8> = (0..300_000u32).map(|i| (i * 7 / 13) as u8).collect();
    for codec in ALL_CODECS {
        let mut batch = builder().compression(codec);
        for _ in 0..3 {
            batch.append_with_headers(NOW_MS, Some(b"k"), Some(&value), &[(b"h", Some(&value))]);
        }
        let rules = ValidationRules {
            max_message_bytes: 8 << 20,
            ..rules()
        };
        assert!(
            validate_by(&batch.build().unwrap(), &rules).is_ok(),
            "{codec:?}"
        );
    }
}
