//! Any bytes of any file changed: the log opens, what it serves is sound, and stays so.

use proptest::prelude::*;

use super::*;
use crate::record_batch::{EndTransactionMarker, verify_crc};

/// A log of plain, idempotent and transactional batches, left as a crash leaves it.
fn crashed() -> Fixture {
    let fixture = Fixture::new(small_segments());
    let log = fixture.open();
    for number in 0..14i32 {
        let mut builder = match number % 3 {
            0 => RecordBatchBuilder::new(),
            1 => RecordBatchBuilder::new().producer(5, 0, number / 3),
            _ => RecordBatchBuilder::new()
                .producer(6, 0, number / 3)
                .transactional(),
        };
        builder.append(NOW_MS + i64::from(number), Some(b"k"), Some(b"v"));
        append(&log, &builder.build().expect("a batch")).expect("appended");
        if number % 6 == 5 {
            let marker = EndTransactionMarker {
                is_commit: false,
                coordinator_epoch: 0,
            };
            let marker = RecordBatchBuilder::end_transaction(marker, 6, 0, NOW_MS).build();
            log.append_as_leader(
                &marker.expect("a marker"),
                LeaderEpoch(0),
                AppendOrigin::Coordinator,
                NOW_MS,
            )
            .expect("appended");
        }
    }
    log.set_high_watermark(log.log_end_offset());
    log.close_files_for_test();
    fixture
}

/// Makes the checksums right that a change has made wrong.
fn correct_checksums(bytes: &mut [u8]) {
    let mut batches = Batches::new(bytes);
    let mut ends = Vec::new();
    while let Some(Ok(_)) = batches.next() {
        ends.push(batches.position());
    }
    let mut start = 0;
    for end in ends {
        let crc = crc32c::crc32c(&bytes[start + 21..end]);
        bytes[start + 17..start + 21].copy_from_slice(&crc.to_be_bytes());
        start = end;
    }
}

#[derive(Debug, Clone)]
struct Change {
    file: prop::sample::Index,
    at: prop::sample::Index,
    bytes: Vec<u8>,
    cut: bool,
}

fn change() -> impl Strategy<Value = Change> {
    let byte = prop_oneof![Just(0u8), Just(0xff), Just(0x7f), Just(0x80), any::<u8>()];
    (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        proptest::collection::vec(byte, 1..9),
        proptest::bool::weighted(0.1),
    )
        .prop_map(|(file, at, bytes, cut)| Change {
            file,
            at,
            bytes,
            cut,
        })
}

/// All bytes that can be read, each batch sound.
fn sound_bytes(log: &Log) -> Vec<u8> {
    let (mut all, mut offset, end) = (Vec::new(), log.log_start_offset(), log.log_end_offset());
    while offset < end {
        let read = log.read(offset, 1 << 20, end, true).expect("recovered");
        if read.records.is_empty() {
            break;
        }
        for batch in Batches::new(&read.records) {
            let (header, bytes) = batch.expect("whole batches");
            verify_crc(bytes).expect("sound");
            assert!(header.next_offset() > offset, "the offsets ascend");
            offset = header.next_offset();
        }
        all.extend_from_slice(&read.records);
    }
    // Records may be malformed under a good checksum; whatever these say, they say it.
    let _ = log.offset_for_timestamp(NOW_MS, end);
    let _ = log.offset_of_max_timestamp(end);
    let _ = log.aborted_transactions(0, end);
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn a_log_opens_whatever_was_changed(
        changes in proptest::collection::vec(change(), 1..5),
        corrects in any::<bool>(),
        was_clean in any::<bool>(),
    ) {
        let fixture = crashed();
        let paths = files(&fixture.dir(), "");
        for change in &changes {
            let path = change.file.get(&paths);
            let mut bytes = std::fs::read(path).expect("read");
            if bytes.is_empty() {
                continue;
            }
            let at = change.at.index(bytes.len());
            if change.cut {
                bytes.truncate(at);
            }
            for (old, new) in bytes.iter_mut().skip(at).zip(&change.bytes) {
                *old = *new;
            }
            if corrects && path.extension().is_some_and(|kind| kind == "log") {
                correct_checksums(&mut bytes);
            }
            std::fs::write(path, bytes).expect("written");
        }
        // What nobody has looked at since a clean stop may be damaged; then only the opening is checked.
        let log = fixture.open_with(was_clean, if was_clean { 16 } else { 0 });
        let end = log.log_end_offset();
        if end < i64::MAX - 10 {
            append(&log, &batch(0, 1)).expect("appended");
        }
        if was_clean {
            return Ok(());
        }
        let bytes = sound_bytes(&log);
        let end = log.log_end_offset();
        log.close().expect("closed");
        let log = fixture.open_with(true, end);
        prop_assert_eq!(log.log_end_offset(), end);
        prop_assert_eq!(&sound_bytes(&log), &bytes);
        drop(log);
        let log = fixture.open_after_crash(0);
        prop_assert_eq!(log.log_end_offset(), end);
        prop_assert_eq!(&sound_bytes(&log), &bytes);
    }
}
