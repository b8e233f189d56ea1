//! A produced batch is refused, or stored so that everyone can read it.
#![no_main]

use bytes::Bytes;
use highwater_storage::AppendOrigin;
use highwater_storage::record_batch::{
    Compression, DecompressLimits, TimestampType, ValidationRules, decode_records,
    validate_produced, verify_crc,
};
use libfuzzer_sys::fuzz_target;

const LIMITS: DecompressLimits = DecompressLimits { max_bytes: 1 << 20 };

fuzz_target!(|input: &[u8]| {
    let Some((choice, batch)) = input.split_first() else { return };
    let mut batch = batch.to_vec();
    if let Some(length) = batch.get(8..12) {
        let length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
        let end = usize::try_from(i64::from(length) + 12).unwrap_or(0).min(batch.len());
        if end > 21 {
            let crc = crc32c::crc32c(&batch[21..end]);
            batch[17..21].copy_from_slice(&crc.to_be_bytes());
        }
    }
    let rules = ValidationRules {
        max_message_bytes: 1 << 20,
        limits: LIMITS,
        requires_key: choice & 1 != 0,
        codec: (choice & 2 != 0)
            .then(|| Compression::from_id((choice >> 4) % 5).unwrap_or_default().into()),
        timestamp_type: match choice & 4 {
            0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        },
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: i64::MAX,
    };
    let origin = match choice & 8 {
        0 => AppendOrigin::Client,
        _ => AppendOrigin::Coordinator,
    };
    let Ok(validated) = validate_produced(&Bytes::from(batch), &rules, origin, 1_700_000_000_000)
    else {
        return;
    };
    let mut stored = validated.patched_header(7, 1).to_vec();
    stored.extend_from_slice(validated.records());
    verify_crc(&stored).expect("checksum of an accepted batch");
    let records: Vec<_> = decode_records(&Bytes::from(stored), LIMITS)
        .expect("an accepted batch inflates")
        .collect::<Result<_, _>>()
        .expect("an accepted batch decodes");
    let header = validated.header();
    assert_eq!(records.len() as i32, header.records_count);
    for (index, record) in records.iter().enumerate() {
        assert_eq!(record.offset, 7 + index as i64);
        assert!(record.timestamp <= header.max_timestamp);
        assert!(record.key.is_some() || !rules.requires_key);
    }
});
