//! A full disk (case I05), on a small file system of its own. Mounting one takes root.

use std::process::Command;

use super::*;
use crate::errors::StorageError;
use crate::log_manager::{LogManager, LogManagerSettings};
use crate::types::TopicId;

struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// None where mounting is not allowed, which CI must see as a failure.
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
            .arg(dir.path())
            .status();
        if status.is_ok_and(|status| status.success()) {
            return Some(Self(dir));
        }
        assert!(
            std::env::var_os("CI").is_none(),
            "cannot mount a small tmpfs: run the tests as root"
        );
        None
    }

    /// The logs of a broker whose one directory it is.
    fn logs(&self) -> LogManager {
        let settings = LogManagerSettings {
            log_dirs: vec![self.0.path().to_owned()],
            ..LogManagerSettings::default()
        };
        LogManager::open(settings).expect("opened")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

fn is_full<T: std::fmt::Debug>(result: Result<T, AppendError>) -> bool {
    matches!(result, Err(AppendError::Storage(error)) if error.is_storage_full())
}

#[test]
fn a_full_disk_refuses_appends_and_nothing_else() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let logs = disk.logs();
    let config = LogConfig {
        segment_bytes: 100_000,
        ..LogConfig::default()
    };
    let create = |logs: &LogManager, topic: &str, id| {
        logs.get_or_create(&TopicPartition::new(topic, 0), id, config.clone(), NOW_MS)
    };
    let log = create(&logs, "a", Some(TopicId::random())).expect("created");
    let other = create(&logs, "b", Some(TopicId::random())).expect("created");
    append(&other, &batch(0, 3)).expect("appended");
    logs.write_checkpoints().expect("written");
    let mut number = 0;
    let fill = |log: &Log, number: &mut i64| -> Result<(), AppendError> {
        loop {
            append(log, &batch(*number, 50))?;
            *number += 50;
        }
    };
    assert!(is_full(fill(&log, &mut number)));
    let expected = |from: i64, to: i64| (from..to).map(|n| (n, n.to_string())).collect::<Vec<_>>();
    // Reads go on, and no half batch is visible or becomes so.
    assert_eq!(log.log_end_offset(), number);
    assert_eq!(read_all(&log, 0), expected(0, number));
    assert!(is_full(append(&log, &batch(number, 50))));
    assert_eq!(read_all(&log, 0), expected(0, number));

    // Deleting records makes room at once, without a restart.
    assert_eq!(
        log.increment_log_start_offset(number / 2).expect("moved"),
        number / 2
    );
    append(&log, &batch(number, 50)).expect("there is room again");
    number += 50;
    assert_eq!(read_all(&log, number / 2), expected(number / 2, number));
    assert!(is_full(fill(&log, &mut number)));

    // So does deleting a topic, and what was appended before can be forced to disk.
    log.flush().expect("flushed");
    drop(other);
    let end = number;
    logs.delete(&TopicPartition::new("b", 0), NOW_MS)
        .expect("deleted");
    assert!(logs.get(&TopicPartition::new("b", 0)).is_none());
    append(&log, &batch(end, 1)).expect("there is room again");
    number += 1;

    // And what was acknowledged is there after a crash at this moment.
    assert!(is_full(fill(&log, &mut number)));
    log.close_files_for_test();
    drop((log, logs));
    let logs = disk.logs();
    let second = logs.load_logs(&|_| config.clone(), NOW_MS);
    assert!(second.is_empty(), "{second:?}");
    assert!(
        logs.offline_partitions().is_empty(),
        "{:?}",
        logs.offline_partitions()
    );
    let log = logs.get(&TopicPartition::new("a", 0)).expect("there");
    assert_eq!(log.log_end_offset(), number);
    let start = log.log_start_offset();
    assert_eq!(read_all(&log, start), expected(start, number));
}

#[test]
fn checkpoints_on_a_full_disk_keep_their_old_content() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let logs = disk.logs();
    let log = logs
        .get_or_create(
            &TopicPartition::new("a", 0),
            None,
            LogConfig::default(),
            NOW_MS,
        )
        .expect("created");
    append(&log, &batch(0, 3)).expect("appended");
    logs.write_checkpoints().expect("written");
    append(&log, &batch(3, 3)).expect("appended");
    let filler = disk.0.path().join("filler");
    let _ = std::fs::write(&filler, vec![1; 2 << 20]);
    let result = logs.write_checkpoints();
    assert!(
        matches!(&result, Err(error) if error.is_storage_full()),
        "{result:?}"
    );
    let path = disk.0.path().join("replication-offset-checkpoint");
    assert_eq!(
        std::fs::read_to_string(&path).expect("read"),
        "0\n1\na 0 3\n"
    );
    std::fs::remove_file(filler).expect("removed");
    logs.write_checkpoints().expect("written");
    assert_eq!(
        std::fs::read_to_string(&path).expect("read"),
        "0\n1\na 0 6\n"
    );
    let closed: Result<(), StorageError> = logs.close(1);
    closed.expect("closed");
}

#[test]
fn reserved_space_is_there_when_the_disk_is_full() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let logs = disk.logs();
    let log = logs
        .get_or_create(
            &TopicPartition::new("a", 0),
            None,
            LogConfig::default(),
            NOW_MS,
        )
        .expect("created");
    append(&log, &batch(0, 3)).expect("appended");
    log.reserve_space(100_000).expect("reserved");
    let filler = disk.0.path().join("filler");
    let _ = std::fs::write(&filler, vec![1; 2 << 20]);
    let before = log.size_in_bytes();
    let mut number = 3;
    while log.size_in_bytes() < before + 95_000 {
        append(&log, &batch(number, 50)).expect("there is space");
        number += 50;
    }
    let error = log.reserve_space(100_000).expect_err("the disk is full");
    assert!(error.is_storage_full(), "{error}");
}
