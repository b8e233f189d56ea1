//! Compaction of a log on disk; what becomes of a single batch is tested where that is decided.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::log::CompactionError;
use crate::log_config::CleanupPolicy;
use crate::producer_state::snapshot_file;

fn compacted() -> LogConfig {
    LogConfig {
        cleanup_policy: CleanupPolicy {
            delete: false,
            compact: true,
        },
        min_cleanable_dirty_ratio: 0.0,
        ..small_segments()
    }
}

/// A batch of (key, value) records; no value is a tombstone.
fn keyed(records: &[(u8, Option<u8>)]) -> Bytes {
    let mut builder = RecordBatchBuilder::new();
    for (key, value) in records {
        let value = value.map(|value| [value]);
        builder.append(
            NOW_MS,
            Some(&[*key]),
            value.as_ref().map(|value| &value[..]),
        );
    }
    builder.build().expect("a batch")
}

type Table = BTreeMap<Vec<u8>, (i64, Option<Vec<u8>>)>;

/// The latest record of each key, and how many records there are.
fn table(log: &Log) -> (Table, usize) {
    let (mut table, mut count, mut offset) = (Table::new(), 0, log.log_start_offset());
    let end = log.log_end_offset();
    while offset < end {
        let read = log.read(offset, 1 << 20, end, true).expect("readable");
        if read.records.is_empty() {
            break;
        }
        for batch in Batches::new(&read.records) {
            let (header, bytes) = batch.expect("whole batches");
            crate::record_batch::verify_crc(bytes).expect("sound");
            let bytes = Bytes::copy_from_slice(bytes);
            for record in decode_records(&bytes, DecompressLimits::default()).expect("records") {
                let record = record.expect("a record");
                let key = record.key.expect("a key").to_vec();
                let value = record.value.map(|value| value.to_vec());
                table.insert(key, (record.offset, value));
                count += 1;
            }
            offset = header.next_offset();
        }
    }
    (table, count)
}

/// Producer snapshots that lie neither at a segment's beginning nor at the log's end.
fn stray_snapshots(log: &Log) -> Vec<i64> {
    let bases: Vec<_> = log
        .segments
        .load()
        .as_slice()
        .iter()
        .map(|segment| segment.base_offset())
        .collect();
    let snapshots = snapshot_file::list_snapshots(&log.dir()).expect("listed");
    let offsets = snapshots.into_iter().map(|(offset, _)| offset);
    offsets
        .filter(|offset| !bases.contains(offset) && *offset != log.log_end_offset())
        .collect()
}

fn pass(log: &Log, now_ms: i64) -> bool {
    match log.filth(now_ms).expect("readable") {
        None => false,
        Some(filth) => {
            log.compact(&filth, 1 << 20, &Throttle::new(f64::MAX), now_ms)
                .expect("compacted");
            true
        }
    }
}

fn records() -> impl Strategy<Value = Vec<Vec<(u8, Option<u8>)>>> {
    let record = (0u8..12, proptest::option::weighted(0.8, any::<u8>()));
    proptest::collection::vec(proptest::collection::vec(record, 1..5), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn compaction_keeps_the_latest_of_each_key(batches in records(), passes in 1usize..4, crash in any::<bool>()) {
        let fixture = Fixture::new(compacted());
        let mut log = fixture.open();
        let per_pass = batches.len().div_ceil(passes);
        for part in batches.chunks(per_pass) {
            for batch in part {
                append(&log, &keyed(batch)).expect("appended");
            }
            let (before, count_before) = table(&log);
            let in_flight = log.read(log.log_start_offset(), 1 << 20, i64::MAX, true).expect("readable");
            let copy = in_flight.records.to_vec();
            pass(&log, NOW_MS);
            let (after, count_after) = table(&log);
            prop_assert_eq!(&after, &before);
            prop_assert!(count_after <= count_before);
            prop_assert_eq!(&in_flight.records[..], &copy[..]);
            let end = log.log_end_offset();
            if crash {
                log.close_files_for_test();
                drop(log);
                log = fixture.open_after_crash(0);
            } else {
                log.close().expect("closed");
                log = fixture.open_with(true, end);
            }
            log.set_high_watermark(end);
            prop_assert_eq!(log.log_end_offset(), end);
            prop_assert_eq!(&table(&log).0, &before);
        }
    }
}

#[test]
fn nothing_is_due_twice_and_old_files_go() {
    let fixture = Fixture::new(compacted());
    let log = fixture.open();
    for round in 0..40u8 {
        append(&log, &keyed(&[(1, Some(round)), (2, Some(round))])).expect("appended");
    }
    let before = log.size_in_bytes();
    assert!(log.segment_count() > 3);
    assert!(pass(&log, NOW_MS));
    assert!(!pass(&log, NOW_MS));
    assert!(log.size_in_bytes() < before / 2);
    fixture.log_dir.unlink_deleted(i64::MAX);
    for suffix in [".deleted", ".swap", ".cleaned"] {
        assert!(files(&fixture.dir(), suffix).is_empty(), "{suffix}");
    }
    assert_eq!(files(&fixture.dir(), ".log").len(), log.segment_count());
    assert_eq!(stray_snapshots(&log), Vec::<i64>::new());
}

#[test]
fn tombstones_stay_for_delete_retention_after_the_first_pass() {
    let fixture = Fixture::new(LogConfig {
        delete_retention_ms: 1000,
        ..compacted()
    });
    let log = fixture.open();
    append(&log, &keyed(&[(1, Some(1))])).expect("appended");
    append(&log, &keyed(&[(1, None)])).expect("appended");
    let fill = |key: u8| {
        for round in 0..12u8 {
            append(&log, &keyed(&[(key, Some(round))])).expect("appended");
        }
    };
    fill(2);
    assert!(pass(&log, NOW_MS));
    assert_eq!(table(&log).0[&vec![1]], (1, None));
    fill(3);
    assert!(pass(&log, NOW_MS + 999));
    assert_eq!(table(&log).0[&vec![1]], (1, None));
    fill(4);
    assert!(pass(&log, NOW_MS + 1000));
    assert!(!table(&log).0.contains_key(&vec![1]));
}

#[test]
fn young_records_wait_and_old_ones_are_overdue() {
    let fixture = Fixture::new(LogConfig {
        min_compaction_lag_ms: 1000,
        ..compacted()
    });
    let log = fixture.open();
    for round in 0..20u8 {
        append(&log, &keyed(&[(1, Some(round))])).expect("appended");
    }
    assert!(log.filth(NOW_MS + 500).expect("readable").is_none());
    assert!(log.filth(NOW_MS + 1001).expect("readable").is_some());
    log.set_config(LogConfig {
        min_cleanable_dirty_ratio: 1.0,
        max_compaction_lag_ms: 1000,
        ..compacted()
    });
    assert!(log.filth(NOW_MS + 1000).expect("readable").is_none());
    assert!(log.filth(NOW_MS + 1001).expect("readable").is_some());
}

#[test]
fn nothing_beyond_the_stable_offset_is_compacted() {
    let fixture = Fixture::new(compacted());
    let log = fixture.open();
    for round in 0..20u8 {
        log.append_as_leader(
            &keyed(&[(1, Some(round))]),
            LeaderEpoch(0),
            AppendOrigin::Client,
            NOW_MS,
        )
        .expect("appended");
    }
    assert!(log.filth(NOW_MS).expect("readable").is_none());
    log.set_high_watermark(9);
    assert!(pass(&log, NOW_MS));
    let offsets: Vec<_> = read_all(&log, 0)
        .into_iter()
        .map(|(offset, _)| offset)
        .collect();
    assert_eq!(offsets, (8..20).collect::<Vec<_>>());
}

#[test]
fn a_crash_between_any_two_renames_loses_nothing() {
    let fixture = Fixture::new(compacted());
    let log = fixture.open();
    for round in 0..30u8 {
        append(&log, &keyed(&[(round % 5, Some(round))])).expect("appended");
    }
    let before = table(&log).0;
    log.close_files_for_test();
    let old: Vec<_> = std::fs::read_dir(fixture.dir())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (std::fs::read(&path).expect("read"), path))
        .collect();
    pass(&log, NOW_MS);
    log.close_files_for_test();
    let new: Vec<_> = files(&fixture.dir(), "")
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("/00000000000000000000."))
        .filter(|path| !path.to_string_lossy().ends_with(".deleted"))
        .map(|path| (std::fs::read(&path).expect("read"), path))
        .collect();
    drop(log);
    // Which of the new files have which suffix, and how many of the old logs are gone.
    let is_log = |path: &Path| path.extension().is_some_and(|kind| kind == "log");
    let gone_counts = [0, 1, 2];
    for (log_suffix, index_suffix) in [
        (".cleaned", ".cleaned"),
        (".cleaned", ".swap"),
        (".swap", ".swap"),
        ("", ".swap"),
    ] {
        for gone in gone_counts {
            if log_suffix == ".cleaned" && gone > 0 {
                continue;
            }
            std::fs::remove_dir_all(fixture.dir()).expect("removed");
            std::fs::create_dir(fixture.dir()).expect("created");
            for (bytes, path) in &old {
                std::fs::write(path, bytes).expect("written");
            }
            let logs: Vec<_> = files(&fixture.dir(), ".log");
            // All that the group held, when the log is in place.
            let gone = if log_suffix.is_empty() {
                logs.len() - 1
            } else {
                gone
            };
            for path in logs.iter().take(gone) {
                std::fs::remove_file(path).expect("removed");
            }
            for (bytes, path) in &new {
                let suffix = if is_log(path) {
                    log_suffix
                } else {
                    index_suffix
                };
                let mut name = path.clone().into_os_string();
                name.push(suffix);
                std::fs::write(name, bytes).expect("written");
            }
            let log = fixture.open_after_crash(0);
            assert_eq!(table(&log).0, before, "{log_suffix} {index_suffix} {gone}");
            assert_eq!(log.log_end_offset(), 30);
            assert_eq!(
                stray_snapshots(&log),
                Vec::<i64>::new(),
                "{log_suffix} {index_suffix} {gone}"
            );
        }
    }
}

#[test]
fn a_damaged_segment_ends_compaction_but_not_the_log() {
    let fixture = Fixture::new(compacted());
    let log = fixture.open();
    for round in 0..30u8 {
        append(&log, &keyed(&[(1, Some(round))])).expect("appended");
    }
    log.close_files_for_test();
    let path = files(&fixture.dir(), ".log").remove(1);
    let mut bytes = std::fs::read(&path).expect("read");
    bytes[16] = 9;
    std::fs::write(&path, bytes).expect("written");
    drop(log);
    let log = fixture.open_with(true, 30);
    log.set_high_watermark(30);
    let filth = log.filth(NOW_MS).expect("readable").expect("due");
    assert!(matches!(
        log.compact(&filth, 1 << 20, &Throttle::new(f64::MAX), NOW_MS),
        Err(CompactionError::Damaged(_))
    ));
    assert!(files(&fixture.dir(), ".cleaned").is_empty());
    append(&log, &keyed(&[(1, Some(99))])).expect("appended");
}

#[test]
fn a_pass_with_little_memory_goes_on_in_the_next_one() {
    let fixture = Fixture::new(compacted());
    let log = fixture.open();
    for round in 0..60u8 {
        append(&log, &keyed(&[(round % 20, Some(round))])).expect("appended");
    }
    let before = table(&log).0;
    let mut passes = 0;
    while let Some(filth) = log.filth(NOW_MS).expect("readable") {
        log.compact(&filth, 64 * 6, &Throttle::new(f64::MAX), NOW_MS)
            .expect("compacted");
        assert_eq!(table(&log).0, before);
        passes += 1;
        assert!(passes < 40, "no progress");
    }
    assert!(passes > 1);
}

#[test]
fn a_pass_keeps_to_its_rate_and_ends_when_told() {
    let fixture = Fixture::new(compacted());
    let log = fixture.open();
    for round in 0..40u8 {
        append(&log, &keyed(&[(round % 20, Some(round))])).expect("appended");
    }
    let before = log.size_in_bytes();
    let filth = log.filth(NOW_MS).expect("readable").expect("due");
    let slow = Throttle::new(1.0);
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| log.compact(&filth, 1 << 20, &slow, NOW_MS));
        std::thread::sleep(std::time::Duration::from_millis(50));
        slow.stop();
        let stopped = compacting.join().expect("no panic");
        assert!(matches!(stopped, Err(CompactionError::Stopped)));
    });
    assert_eq!(log.size_in_bytes(), before);
    // All but the active segment is read twice, and part of it written: about 6 KB.
    let began = std::time::Instant::now();
    log.compact(&filth, 1 << 20, &Throttle::new(before as f64 * 5.0), NOW_MS)
        .expect("compacted");
    assert!(began.elapsed() >= std::time::Duration::from_millis(300));
    assert!(log.size_in_bytes() < before);
    // In the second half of a pass too, with a segment half written.
    append_and_stop_while_writing(&log, &fixture);
}

fn append_and_stop_while_writing(log: &Log, fixture: &Fixture) {
    for round in 0..40u8 {
        append(log, &keyed(&[(round % 20, Some(round))])).expect("appended");
    }
    let filth = log.filth(NOW_MS).expect("readable").expect("due");
    let before = table(log);
    let throttle = Throttle::new(log.size_in_bytes() as f64);
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| log.compact(&filth, 1 << 20, &throttle, NOW_MS));
        while files(&fixture.dir(), ".cleaned").is_empty() {
            assert!(!compacting.is_finished());
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        throttle.stop();
        let stopped = compacting.join().expect("no panic");
        assert!(matches!(stopped, Err(CompactionError::Stopped)));
    });
    assert!(files(&fixture.dir(), ".cleaned").is_empty());
    assert_eq!(table(log), before);
}
