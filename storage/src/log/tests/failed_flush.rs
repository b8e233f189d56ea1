//! A disk that does not take what it is given.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::errors::{ReadError, StorageError};
use crate::log_manager::Disk;
use crate::mapped_file::SyncError;
use crate::segment::Segment;

/// A disk that fails when it is told to, once.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultyDisk {
    fails: Arc<AtomicBool>,
    has_no_descriptor: Arc<AtomicBool>,
}

impl FaultyDisk {
    /// The next flush fails, as with a bad sector.
    pub(crate) fn fail_next(&self) {
        self.fails.store(true, Ordering::Relaxed);
    }
}

impl Disk for FaultyDisk {
    fn sync(&self, segment: &Segment) -> Result<(), SyncError> {
        if self.has_no_descriptor.swap(false, Ordering::Relaxed) {
            let error = rustix::io::Errno::MFILE.into();
            return Err(SyncError::NotTried(error));
        }
        if self.fails.swap(false, Ordering::Relaxed) {
            let error = rustix::io::Errno::IO.into();
            return Err(SyncError::Failed(error));
        }
        segment.sync()
    }
}

fn is_offline(error: &StorageError) -> bool {
    matches!(error, StorageError::Offline { reason, .. } if reason.contains("Input/output error"))
}

fn assert_offline(log: &Log) {
    let error = append(log, &batch(90, 1)).expect_err("offline");
    assert!(
        matches!(&error, AppendError::Storage(error) if is_offline(error)),
        "{error}"
    );
    let error = log
        .append_as_follower(&batch(90, 1), LeaderEpoch(0), NOW_MS)
        .expect_err("offline");
    assert!(
        matches!(&error, AppendError::Storage(error) if is_offline(error)),
        "{error}"
    );
    let error = log.read(0, 1 << 20, i64::MAX, true).expect_err("offline");
    assert!(
        matches!(&error, ReadError::Storage(error) if is_offline(error)),
        "{error}"
    );
    assert!(is_offline(&log.truncate_to(1).expect_err("offline")));
    // The disk works again by now, which says nothing about what it has dropped.
    assert!(is_offline(&log.flush().expect_err("offline")));
}

#[test]
fn a_failed_flush_takes_the_log_offline_until_a_restart() {
    let disk = FaultyDisk::default();
    let fixture = Fixture::on(disk.clone(), small_segments());
    let log = fixture.open();
    append(&log, &batch(0, 3)).expect("appended");
    log.flush().expect("flushed");
    append(&log, &batch(3, 30)).expect("appended");
    append(&log, &batch(33, 3)).expect("appended");
    disk.fail_next();
    let (result, text) = logged(|| log.flush());
    assert!(matches!(
        result,
        Err(StorageError::Io {
            action: "flush",
            ..
        })
    ));
    assert!(
        text.contains(" ERROR ") && text.contains("offline until a restart"),
        "{text}"
    );
    assert!(log.failure().is_some());
    assert_offline(&log);
    assert_eq!(log.recovery_point(), 3);
    // Told once.
    let (swept, text) = logged(|| log.sweep(NOW_MS));
    swept.expect("nothing to do");
    assert_eq!(text, "");
    assert!(is_offline(&log.close().expect_err("offline")));
    drop(log);
    let log = fixture.open_after_crash(3);
    assert_eq!(log.log_end_offset(), 36);
    append(&log, &batch(36, 1)).expect("appended");
    log.flush().expect("flushed");
}

#[test]
fn with_flush_messages_the_append_whose_flush_fails_is_refused_and_so_is_every_later_one() {
    let disk = FaultyDisk::default();
    let config = LogConfig {
        flush_messages: 1,
        ..small_segments()
    };
    let fixture = Fixture::on(disk.clone(), config);
    let log = fixture.open();
    append(&log, &batch(0, 3)).expect("appended");
    disk.fail_next();
    let error = append(&log, &batch(3, 3)).expect_err("not on disk");
    assert!(matches!(
        error,
        AppendError::Storage(StorageError::Io { .. })
    ));
    assert_offline(&log);
}

#[test]
fn a_sweep_whose_flush_fails_takes_the_log_offline() {
    let disk = FaultyDisk::default();
    let fixture = Fixture::on(
        disk.clone(),
        LogConfig {
            flush_ms: 1000,
            ..small_segments()
        },
    );
    let log = fixture.open();
    append(&log, &batch(0, 3)).expect("appended");
    disk.fail_next();
    assert!(log.sweep(NOW_MS + 1000).is_err());
    assert_offline(&log);
}

#[test]
fn a_flush_that_was_not_tried_is_tried_again() {
    let disk = FaultyDisk::default();
    let fixture = Fixture::on(disk.clone(), small_segments());
    let log = fixture.open();
    append(&log, &batch(0, 3)).expect("appended");
    disk.has_no_descriptor.store(true, Ordering::Relaxed);
    let (result, text) = logged(|| log.flush());
    assert!(result.is_err());
    assert!(text.contains("trying again later"), "{text}");
    assert!(log.failure().is_none());
    assert_eq!(log.recovery_point(), 0);
    append(&log, &batch(3, 3)).expect("appended");
    log.flush().expect("flushed");
    assert_eq!(log.recovery_point(), 6);
}

#[test]
fn compaction_whose_flush_fails_leaves_the_log_as_it_was() {
    let disk = FaultyDisk::default();
    let config = LogConfig {
        cleanup_policy: crate::log_config::CleanupPolicy {
            delete: false,
            compact: true,
        },
        min_cleanable_dirty_ratio: 0.0,
        ..small_segments()
    };
    let fixture = Fixture::on(disk.clone(), config);
    let log = fixture.open();
    for round in 0..40u8 {
        let mut builder = RecordBatchBuilder::new();
        builder.append(NOW_MS, Some(b"k"), Some(&[round]));
        append(&log, &builder.build().expect("a batch")).expect("appended");
    }
    let before = log.size_in_bytes();
    let filth = log.filth(NOW_MS).expect("readable").expect("due");
    disk.fail_next();
    assert!(
        log.compact(&filth, 1 << 20, &Throttle::new(f64::MAX), NOW_MS)
            .is_err()
    );
    assert_eq!(log.size_in_bytes(), before);
    assert!(log.failure().is_none());
    assert!(files(&fixture.dir(), ".cleaned").is_empty());
    log.compact(&filth, 1 << 20, &Throttle::new(f64::MAX), NOW_MS)
        .expect("compacted");
    assert!(log.size_in_bytes() < before);
}
