use super::*;
use crate::errors::{ReadError, StorageError};

#[test]
fn what_was_appended_is_read_from_every_offset() {
    let fixture = Fixture::new(small_segments());
    let log = fixture.open();
    for first in (0..60).step_by(3) {
        let info = append(&log, &batch(first, 3)).expect("appended");
        assert_eq!((info.base_offset, info.last_offset), (first, first + 2));
    }
    assert!(log.segment_count() > 2);
    for offset in 0..60 {
        let expected: Vec<_> = (offset..60).map(|n| (n, n.to_string())).collect();
        assert_eq!(read_all(&log, offset), expected);
    }
    assert!(
        log.read(60, 100, 60, true)
            .expect("the end")
            .records
            .is_empty()
    );
    for offset in [-1, 61] {
        assert!(matches!(
            log.read(offset, 100, 60, true),
            Err(ReadError::OffsetOutOfRange { .. })
        ));
    }
}

#[test]
fn a_clean_reopen_knows_everything() {
    let fixture = Fixture::new(small_segments());
    let log = fixture.open();
    for first in (0..60).step_by(3) {
        append(&log, &batch(first, 3)).expect("appended");
    }
    log.close().expect("closed");
    assert!(append(&log, &batch(60, 1)).is_err());
    let log = fixture.open_with(true, 60);
    assert_eq!(log.log_end_offset(), 60);
    assert_eq!(read_all(&log, 0).len(), 60);
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch(0)));
    append(&log, &batch(60, 5)).expect("appended");
    assert_eq!(read_all(&log, 58).len(), 7);
}

#[test]
fn reads_stay_below_the_bound_and_the_limit() {
    let fixture = Fixture::new(LogConfig::default());
    let log = fixture.open();
    for first in (0..30).step_by(3) {
        append(&log, &batch(first, 3)).expect("appended");
    }
    let size = batch(0, 3).len();
    let read = |offset, max_bytes, bound, one| -> Vec<i64> {
        let read = log.read(offset, max_bytes, bound, one).expect("readable");
        records(&read.records)
            .into_iter()
            .map(|(at, _)| at)
            .collect()
    };
    assert_eq!(read(4, 1 << 20, 9, true), (3..9).collect::<Vec<_>>());
    assert_eq!(read(4, 1 << 20, 8, true), (3..6).collect::<Vec<_>>());
    assert_eq!(read(4, 2 * size, 30, true), (3..9).collect::<Vec<_>>());
    assert_eq!(read(4, 2 * size - 1, 30, true), (3..6).collect::<Vec<_>>());
    assert_eq!(read(4, 1, 30, true), (3..6).collect::<Vec<_>>());
    assert_eq!(read(4, 1, 30, false), Vec::<i64>::new());
    assert_eq!(read(9, 100, 9, true), Vec::<i64>::new());
}

#[test]
fn truncation_keeps_slices_in_flight() {
    let fixture = Fixture::new(LogConfig::default());
    let log = fixture.open();
    for first in (0..30).step_by(3) {
        append(&log, &batch(first, 3)).expect("appended");
    }
    let before = log.read(0, 1 << 20, 30, true).expect("readable").records;
    log.truncate_to(16).expect("truncated");
    assert_eq!(log.log_end_offset(), 15);
    assert_eq!(log.high_watermark(), 15);
    append(&log, &batch(100, 3)).expect("appended");
    assert_eq!(
        records(&before),
        (0..30).map(|n| (n, n.to_string())).collect::<Vec<_>>()
    );
    let after = read_all(&log, 12);
    assert_eq!(after[3], (15, "100".to_owned()));
    assert_eq!(after.len(), 6);
    drop(log);
    let log = fixture.open_after_crash(15);
    assert_eq!(read_all(&log, 12), after);
}

#[test]
fn truncating_fully_begins_anew() {
    let fixture = Fixture::new(small_segments());
    let log = fixture.open();
    for first in (0..60).step_by(3) {
        append(&log, &batch(first, 3)).expect("appended");
    }
    log.truncate_fully_and_start_at(1000).expect("truncated");
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (1000, 1000));
    assert_eq!(log.latest_epoch(), None);
    append(&log, &batch(0, 3)).expect("appended");
    assert_eq!(read_all(&log, 1000).len(), 3);
    drop(log);
    let log = fixture.open_after_crash(0);
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (1000, 1003));
}

#[test]
fn deleted_records_stay_deleted_after_a_crash() {
    let fixture = Fixture::new(small_segments());
    let log = fixture.open();
    for first in (0..60).step_by(3) {
        append(&log, &batch(first, 3)).expect("appended");
    }
    assert!(matches!(
        log.increment_log_start_offset(61),
        Err(StorageError::OffsetOutOfRange { .. })
    ));
    assert_eq!(log.increment_log_start_offset(31).expect("moved"), 31);
    assert_eq!(log.increment_log_start_offset(5).expect("no change"), 31);
    assert!(log.read(30, 100, 60, true).is_err());
    drop(log);
    let log = fixture.open_after_crash(0);
    assert_eq!(log.log_start_offset(), 31);
    assert_eq!(read_all(&log, 31).len(), 29);
    let before = log.segment_count();
    log.set_high_watermark(60);
    assert!(log.enforce_retention(NOW_MS).expect("retention"));
    assert!(log.segment_count() < before);
    assert_eq!(read_all(&log, 31).len(), 29);
}

#[test]
fn everything_expires_and_the_end_stays() {
    let fixture = Fixture::new(LogConfig {
        retention_ms: 1000,
        ..small_segments()
    });
    let log = fixture.open();
    for first in (0..30).step_by(3) {
        append(&log, &batch(first, 3)).expect("appended");
    }
    assert!(
        !log.enforce_retention(NOW_MS + 1000)
            .expect("nothing is old")
    );
    assert!(log.enforce_retention(NOW_MS + 2000).expect("all is old"));
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (30, 30));
    log.close().expect("closed");
    let log = fixture.open();
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (30, 30));
    assert_eq!(
        append(&log, &batch(0, 1)).expect("appended").base_offset,
        30
    );
}

#[test]
fn retention_never_goes_beyond_the_high_watermark() {
    let fixture = Fixture::new(LogConfig {
        retention_ms: 0,
        retention_bytes: 0,
        ..small_segments()
    });
    let log = fixture.open();
    for first in (0..30).step_by(3) {
        log.append_as_leader(
            &batch(first, 3),
            LeaderEpoch(0),
            AppendOrigin::Client,
            NOW_MS,
        )
        .expect("appended");
    }
    assert!(
        !log.enforce_retention(NOW_MS + 100_000)
            .expect("nothing committed")
    );
    log.set_high_watermark(27);
    assert!(log.enforce_retention(NOW_MS + 100_000).expect("some"));
    assert!(log.log_start_offset() <= 27 && log.log_start_offset() > 0);
}

#[test]
fn a_future_timestamp_does_not_keep_a_segment() {
    let fixture = Fixture::new(LogConfig {
        retention_ms: 1000,
        message_timestamp_after_max_ms: i64::MAX,
        ..small_segments()
    });
    let log = fixture.open();
    let mut builder = RecordBatchBuilder::new();
    builder.append(NOW_MS * 1000, None, Some(b"x"));
    append(&log, &builder.build().expect("a batch")).expect("appended");
    // The file was written at the machine's own time.
    let modified = std::fs::metadata(&files(&fixture.dir(), ".log")[0])
        .and_then(|metadata| metadata.modified())
        .expect("known");
    let modified_ms = modified
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970")
        .as_millis() as i64;
    assert!(!log.enforce_retention(modified_ms + 500).expect("not old"));
    assert!(log.enforce_retention(modified_ms + 1500).expect("old"));
}

#[test]
fn retention_by_size_keeps_at_least_the_limit() {
    let fixture = Fixture::new(LogConfig {
        retention_bytes: 1500,
        ..small_segments()
    });
    let log = fixture.open();
    for first in (0..90).step_by(3) {
        append(&log, &batch(first, 3)).expect("appended");
    }
    let before = log.size_in_bytes();
    assert!(log.enforce_retention(NOW_MS).expect("some"));
    let after = log.size_in_bytes();
    assert!(after < before && (1500..1500 + 700).contains(&after));
}

#[test]
fn a_log_rolls_by_the_records_time() {
    let fixture = Fixture::new(LogConfig {
        segment_ms: 10,
        ..LogConfig::default()
    });
    let log = fixture.open();
    append(&log, &batch(0, 1)).expect("appended");
    append(&log, &batch(10, 1)).expect("appended");
    assert_eq!(log.segment_count(), 1);
    append(&log, &batch(11, 1)).expect("appended");
    assert_eq!(log.segment_count(), 2);
}

#[test]
fn a_log_rolls_when_its_index_is_full() {
    let fixture = Fixture::new(LogConfig {
        segment_index_bytes: 24,
        index_interval_bytes: 0,
        ..LogConfig::default()
    });
    let log = fixture.open();
    for first in 0..20 {
        append(&log, &batch(first, 1)).expect("appended");
    }
    assert!(log.segment_count() > 3);
    assert_eq!(read_all(&log, 0).len(), 20);
}

#[test]
fn a_follower_takes_offsets_and_epochs_as_they_are() {
    let leader = Fixture::new(LogConfig::default());
    let leader = (leader.open(), leader);
    for (epoch, first) in [(0, 0), (0, 3), (2, 6), (5, 9)] {
        leader
            .0
            .append_as_leader(
                &batch(first, 3),
                LeaderEpoch(epoch),
                AppendOrigin::Client,
                NOW_MS,
            )
            .expect("appended");
    }
    let bytes = leader
        .0
        .read(0, 1 << 20, 12, true)
        .expect("readable")
        .records;
    let fixture = Fixture::new(small_segments());
    let log = fixture.open();
    let info = log
        .append_as_follower(&bytes, LeaderEpoch(2), NOW_MS)
        .expect("appended");
    assert_eq!(
        (info.base_offset, info.last_offset, info.records_count),
        (0, 8, 9)
    );
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch(2)));
    assert_eq!(
        log.end_offset_for_epoch(LeaderEpoch(0)),
        Some((LeaderEpoch(0), 6))
    );
    assert!(matches!(
        log.append_as_follower(&bytes, LeaderEpoch(5), NOW_MS),
        Err(AppendError::UnexpectedOffset(_))
    ));
    let rest = leader
        .0
        .read(9, 1 << 20, 12, true)
        .expect("readable")
        .records;
    log.append_as_follower(&rest, LeaderEpoch(5), NOW_MS)
        .expect("appended");
    assert_eq!(read_all(&log, 0), read_all(&leader.0, 0));
    log.truncate_to(9).expect("truncated");
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch(2)));
}

#[test]
fn look_ups_by_time_find_the_first_record_in_offset_order() {
    let fixture = Fixture::new(small_segments());
    let log = fixture.open();
    let times: Vec<i64> = (0..40).map(|n| NOW_MS + (n * 7919) % 100).collect();
    for chunk in times.chunks(4) {
        let mut builder = RecordBatchBuilder::new();
        for time in chunk {
            builder.append(*time, None, Some(b"v"));
        }
        append(&log, &builder.build().expect("a batch")).expect("appended");
    }
    let check = |log: &Log, start: i64| {
        for target in NOW_MS - 1..NOW_MS + 101 {
            let expected = times
                .iter()
                .enumerate()
                .map(|(offset, time)| (offset as i64, *time))
                .find(|(offset, time)| *offset >= start && *time >= target);
            let found = log.offset_for_timestamp(target, 40).expect("readable");
            assert_eq!(
                found.map(|found| (found.offset, found.timestamp)),
                expected,
                "{target}"
            );
            let bounded = log.offset_for_timestamp(target, 20).expect("readable");
            assert_eq!(
                bounded.map(|found| found.offset),
                expected
                    .map(|(offset, _)| offset)
                    .filter(|offset| *offset < 20)
            );
        }
    };
    check(&log, 0);
    let max = *times.iter().max().expect("some");
    let max_offset = times.iter().position(|time| *time == max).expect("there") as i64;
    let found = log
        .offset_of_max_timestamp(40)
        .expect("readable")
        .expect("some");
    assert_eq!((found.offset, found.timestamp), (max_offset, max));
    log.increment_log_start_offset(9).expect("moved");
    check(&log, 9);
    log.close().expect("closed");
    let log = fixture.open_with(true, 40);
    check(&log, 9);
    drop(log);
    check(&fixture.open_after_crash(0), 9);
}

#[test]
fn duplicates_are_recognised_across_crash_and_clean_stop() {
    let fixture = Fixture::new(small_segments());
    let idempotent = |sequence: i32| {
        let mut builder = RecordBatchBuilder::new().producer(7, 0, sequence);
        builder.append(NOW_MS, None, Some(b"v"));
        builder.build().expect("a batch")
    };
    let log = fixture.open();
    for sequence in 0..20 {
        append(&log, &idempotent(sequence)).expect("appended");
    }
    let check = |log: &Log| {
        for sequence in 15..20 {
            let info = append(log, &idempotent(sequence)).expect("a duplicate");
            assert!(info.duplicate);
            assert_eq!(info.base_offset, i64::from(sequence));
        }
        for sequence in [14, 22] {
            assert!(matches!(
                append(log, &idempotent(sequence)),
                Err(AppendError::OutOfOrderSequence(_))
            ));
        }
        assert_eq!(log.log_end_offset(), 20);
        assert_eq!(log.active_producers()[0].last_sequence, 19);
    };
    check(&log);
    drop(log);
    let log = fixture.open_after_crash(0);
    check(&log);
    log.close().expect("closed");
    check(&fixture.open_with(true, 20));
    for snapshot in files(&fixture.dir(), ".snapshot") {
        std::fs::remove_file(snapshot).expect("removed");
    }
    check(&fixture.open_after_crash(20));
}

#[test]
fn aborted_transactions_survive_a_crash_and_bound_the_stable_offset() {
    let fixture = Fixture::new(small_segments());
    let transactional = |producer_id: i64, sequence: i32| {
        let mut builder = RecordBatchBuilder::new()
            .producer(producer_id, 0, sequence)
            .transactional();
        builder.append(NOW_MS, None, Some(b"v"));
        builder.build().expect("a batch")
    };
    let marker = |producer_id: i64, is_commit: bool| {
        let marker = crate::record_batch::EndTransactionMarker {
            is_commit,
            coordinator_epoch: 3,
        };
        RecordBatchBuilder::end_transaction(marker, producer_id, 0, NOW_MS)
            .build()
            .expect("a marker")
    };
    let end = |log: &Log, producer_id: i64, is_commit: bool| {
        log.append_as_leader(
            &marker(producer_id, is_commit),
            LeaderEpoch(0),
            AppendOrigin::Coordinator,
            NOW_MS,
        )
        .expect("ended");
        log.set_high_watermark(log.log_end_offset());
    };
    let log = fixture.open();
    append(&log, &transactional(1, 0)).expect("appended");
    append(&log, &transactional(2, 0)).expect("appended");
    assert_eq!(log.last_stable_offset(), 0);
    end(&log, 1, false);
    assert_eq!(log.last_stable_offset(), 1);
    for sequence in 1..10 {
        append(&log, &transactional(2, sequence)).expect("appended");
    }
    assert_eq!(log.last_stable_offset(), 1);
    end(&log, 2, false);
    assert_eq!(log.last_stable_offset(), log.log_end_offset());
    append(&log, &transactional(3, 0)).expect("appended");
    log.set_high_watermark(13);
    drop(log);
    let log = fixture.open_after_crash(0);
    assert_eq!(log.log_end_offset(), 14);
    log.set_high_watermark(14);
    assert_eq!(log.last_stable_offset(), 13);
    let aborted = log.aborted_transactions(0, 14).expect("readable");
    let pairs: Vec<_> = aborted
        .iter()
        .map(|txn| (txn.first_offset, txn.last_offset))
        .collect();
    assert_eq!(pairs, vec![(0, 2), (1, 12)]);
    assert_eq!(log.aborted_transactions(3, 5).expect("readable").len(), 1);
    for index in files(&fixture.dir(), ".txnindex") {
        std::fs::write(index, b"garbage").expect("written");
    }
    drop(log);
    let log = fixture.open_after_crash(14);
    assert_eq!(log.aborted_transactions(0, 14).expect("readable"), aborted);
}

#[test]
fn flush_after_messages_moves_the_recovery_point() {
    let fixture = Fixture::new(LogConfig {
        flush_messages: 5,
        ..LogConfig::default()
    });
    let log = fixture.open();
    append(&log, &batch(0, 3)).expect("appended");
    assert_eq!(log.recovery_point(), 0);
    append(&log, &batch(3, 3)).expect("appended");
    assert_eq!(log.recovery_point(), 6);
    append(&log, &batch(6, 3)).expect("appended");
    assert_eq!(log.recovery_point(), 6);
    log.set_config(LogConfig {
        flush_ms: 100,
        ..LogConfig::default()
    });
    log.sweep(NOW_MS + 99).expect("swept");
    assert_eq!(log.recovery_point(), 6);
    log.sweep(NOW_MS + 100).expect("swept");
    assert_eq!(log.recovery_point(), 9);
}

#[test]
fn rolled_segments_are_flushed_by_the_sweep_and_idle_files_closed() {
    let fixture = Fixture::new(small_segments());
    let log = fixture.open();
    for first in (0..60).step_by(3) {
        append(&log, &batch(first, 3)).expect("appended");
    }
    log.sweep(NOW_MS).expect("swept");
    let flushed = log.recovery_point();
    assert!(flushed > 0 && flushed <= 60);
    log.sweep(NOW_MS).expect("swept");
    log.sweep(NOW_MS).expect("swept");
    assert!(
        !log.has_open_files
            .load(std::sync::atomic::Ordering::Relaxed)
    );
    assert_eq!(read_all(&log, 0).len(), 60);
    append(&log, &batch(60, 3)).expect("appended");
    assert_eq!(read_all(&log, 0).len(), 63);
}

#[test]
fn a_read_of_fresh_data_does_not_wait() {
    let fixture = Fixture::new(small_segments());
    let log = fixture.open();
    for first in (0..60).step_by(3) {
        append(&log, &batch(first, 3)).expect("appended");
    }
    for offset in 0..60 {
        let read = log.read_if_resident(offset, 1, 60, true).expect("readable");
        assert!(read.expect("in the page cache").is_resident());
    }
}
