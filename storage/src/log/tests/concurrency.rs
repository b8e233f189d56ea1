//! Readers beside a writer that appends, truncates, deletes, compacts and closes idle files.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::errors::ReadError;
use crate::log_config::CleanupPolicy;
use crate::record_batch::verify_crc;

/// Reads all over the log until `is_over`; gives how many batches it has looked at.
fn read_until(log: &Log, is_over: &AtomicBool, seed: i64) -> usize {
    let (mut seen, mut at) = (0, seed);
    while !is_over.load(Ordering::Relaxed) || seen == 0 {
        at = at
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(seed);
        let (start, end) = (log.log_start_offset(), log.log_end_offset());
        let bound = log.high_watermark();
        let offset = start + (at >> 33).rem_euclid((end - start).max(1));
        let read = match log.read(offset, 2_000, bound, true) {
            Ok(read) => read,
            // The log has moved on meanwhile.
            Err(ReadError::OffsetOutOfRange { .. }) => continue,
            Err(error) => panic!("{error}"),
        };
        let mut next = 0;
        for batch in Batches::new(&read.records) {
            let (header, bytes) = batch.expect("whole batches");
            verify_crc(bytes).expect("sound");
            assert!(
                header.base_offset >= next
                    && header.last_offset() >= offset.min(header.last_offset())
            );
            assert!(header.next_offset() <= bound, "nothing above the bound");
            next = header.next_offset();
            seen += 1;
        }
        if seed % 2 == 0 {
            let _ = log.read_if_resident(offset, 2_000, bound, true);
            let _ = log.offset_for_timestamp(NOW_MS + offset, bound);
        }
    }
    seen
}

fn write(log: &Log) {
    for round in 0..1_500i64 {
        let mut builder = RecordBatchBuilder::new();
        for number in 0..3 {
            let key = [(round % 7) as u8];
            builder.append(NOW_MS + 3 * round + number, Some(&key), Some(b"value"));
        }
        let batch = builder.build().expect("a batch");
        log.append_as_leader(&batch, LeaderEpoch(0), AppendOrigin::Client, NOW_MS)
            .expect("appended");
        // Truncations stay above it, as those of a follower do.
        log.set_high_watermark(log.log_end_offset() - 30);
        match round % 100 {
            20 => log
                .truncate_to(log.log_end_offset() - 20)
                .expect("truncated"),
            40 | 41 => log.sweep(NOW_MS).expect("swept"),
            60 => {
                let start = (log.log_start_offset() + 50).min(log.high_watermark());
                log.increment_log_start_offset(start).expect("moved");
                log.enforce_retention(NOW_MS).expect("retention");
            }
            80 => {
                if let Some(filth) = log.filth(NOW_MS).expect("readable") {
                    log.compact(&filth, 1 << 20, &Throttle::new(f64::MAX), NOW_MS)
                        .expect("compacted");
                }
                log.log_dir.unlink_deleted(i64::MAX);
            }
            _ => {}
        }
    }
}

#[test]
fn readers_see_sound_batches_whatever_the_writer_does() {
    let fixture = Fixture::new(LogConfig {
        cleanup_policy: CleanupPolicy {
            delete: false,
            compact: true,
        },
        min_cleanable_dirty_ratio: 0.0,
        ..small_segments()
    });
    let log = fixture.open();
    append(&log, &batch_with_key()).expect("appended");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (1..4)
            .map(|seed| {
                let (log, is_over) = (&log, &is_over);
                scope.spawn(move || read_until(log, is_over, seed))
            })
            .collect();
        write(&log);
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().expect("no panic") > 0);
        }
    });
}

fn batch_with_key() -> Bytes {
    let mut builder = RecordBatchBuilder::new();
    builder.append(NOW_MS, Some(b"k"), Some(b"v"));
    builder.build().expect("a batch")
}
