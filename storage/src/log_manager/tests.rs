use super::*;
use crate::log::AppendOrigin;
use crate::record_batch::RecordBatchBuilder;
use crate::types::LeaderEpoch;

const NOW_MS: i64 = 1_700_000_000_000;

fn open(dirs: &[&Path]) -> LogManager {
    LogManager::open(LogManagerSettings {
        log_dirs: dirs.iter().map(|dir| dir.to_path_buf()).collect(),
        ..LogManagerSettings::default()
    })
    .expect("opened")
}

fn tp(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition::new(topic, partition)
}

fn create(logs: &LogManager, topic_partition: &TopicPartition) -> Arc<Log> {
    logs.get_or_create(topic_partition, None, LogConfig::default(), NOW_MS)
        .expect("created")
}

fn append(log: &Log) {
    let mut builder = RecordBatchBuilder::new();
    builder.append(NOW_MS, Some(b"k"), Some(b"v"));
    let batch = builder.build().expect("a batch");
    log.append_as_leader(&batch, LeaderEpoch(0), AppendOrigin::Client, NOW_MS)
        .expect("appended");
    log.set_high_watermark(log.log_end_offset());
}

fn load(logs: &LogManager) {
    let second = logs.load_logs(&|_| LogConfig::default(), NOW_MS);
    assert!(second.is_empty(), "{second:?}");
}

#[test]
fn a_directory_belongs_to_one_manager_at_a_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = open(&[dir.path()]);
    let second = LogManager::open(LogManagerSettings {
        log_dirs: vec![dir.path().to_owned()],
        ..LogManagerSettings::default()
    });
    assert!(matches!(second, Err(StorageError::DirectoryInUse { .. })));
    drop(first);
    open(&[dir.path()]);
}

#[test]
fn logs_offsets_and_ids_survive_a_clean_stop_and_a_crash() {
    let dir = tempfile::tempdir().expect("a directory");
    let id = TopicId::random();
    let logs = open(&[dir.path()]);
    for partition in 0..20 {
        let log = logs
            .get_or_create(&tp("t", partition), Some(id), LogConfig::default(), NOW_MS)
            .expect("created");
        (0..partition).for_each(|_| append(&log));
    }
    create(&logs, &tp("__cluster_metadata", 0));
    logs.close(17).expect("closed");
    drop(logs);
    for was_clean in [true, false] {
        let logs = open(&[dir.path()]);
        let status = &logs.log_dirs()[0];
        assert_eq!(status.was_clean, was_clean);
        assert_eq!(
            status.previous_broker_epoch,
            if was_clean { 17 } else { -1 }
        );
        assert!(status.total_bytes >= status.usable_bytes && status.total_bytes > 0);
        load(&logs);
        assert_eq!(logs.logs().len(), 20);
        assert!(logs.get(&tp("__cluster_metadata", 0)).is_none());
        for partition in 0..20 {
            let log = logs.get(&tp("t", partition)).expect("there");
            assert_eq!(log.log_end_offset(), i64::from(partition));
            assert_eq!(log.high_watermark(), i64::from(partition));
            assert_eq!(log.topic_id(), Some(id));
        }
        let other = logs.get_or_create(
            &tp("t", 3),
            Some(TopicId::random()),
            LogConfig::default(),
            NOW_MS,
        );
        assert!(matches!(
            other,
            Err(StorageError::InconsistentTopicId { .. })
        ));
        // Dropped without a word, as a crash does.
    }
}

#[test]
fn a_start_that_writes_nothing_leaves_the_mark_of_the_clean_stop() {
    let dir = tempfile::tempdir().expect("a directory");
    let mark = dir.path().join(".kafka_cleanshutdown");
    let logs = open(&[dir.path()]);
    append(&create(&logs, &tp("t", 0)));
    logs.close(17).expect("closed");
    drop(logs);
    let found = std::fs::read(&mark).expect("a mark");
    // Ends before a log is opened.
    drop(open(&[dir.path()]));
    assert_eq!(std::fs::read(&mark).expect("a mark"), found);
    // Ends after one was opened.
    let logs = open(&[dir.path()]);
    create(&logs, &tp("t", 0));
    assert!(!mark.exists());
    logs.leave_unchanged().expect("marked");
    drop(logs);
    assert_eq!(std::fs::read(&mark).expect("a mark"), found);
    let logs = open(&[dir.path()]);
    load(&logs);
    assert!(!mark.exists());
    assert!(logs.log_dirs()[0].was_clean);
    drop(logs);
    // There is none to put back after a crash.
    let logs = open(&[dir.path()]);
    logs.leave_unchanged().expect("nothing to do");
    assert!(!mark.exists());
}

#[test]
fn records_and_metadata_are_found_without_opening_a_log() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let logs = open(&[dirs[0].path(), dirs[1].path()]);
    create(&logs, &tp("t", 0));
    create(&logs, &tp("__cluster_metadata", 0));
    assert_eq!(logs.find_records().expect("listed"), None);
    assert!(!logs.has_metadata().expect("listed"));
    append(&create(&logs, &tp("t", 2)));
    append(&create(&logs, &tp("t", 1)));
    append(&create(&logs, &tp("__cluster_metadata", 0)));
    let found = logs.find_records().expect("listed").expect("records");
    let of_partition =
        |number| move |dir: &tempfile::TempDir| dir.path().join(format!("t-{number}"));
    let mut possible = dirs
        .iter()
        .map(of_partition(1))
        .chain(dirs.iter().map(of_partition(2)));
    assert!(possible.any(|path| path == found), "{}", found.display());
    assert!(logs.has_metadata().expect("listed"));
    let metadata = dirs
        .iter()
        .map(|dir| dir.path().join("__cluster_metadata-0"));
    let metadata = metadata.rev().find(|path| path.exists()).expect("there");
    std::fs::write(metadata.join("00000000000000000000.log"), "").expect("written");
    assert!(!logs.has_metadata().expect("listed"));
    std::fs::write(
        metadata.join("00000000000000000001-0000000001.checkpoint"),
        "x",
    )
    .expect("written");
    assert!(logs.has_metadata().expect("listed"));
    for topic_partition in [tp("t", 1), tp("t", 2)] {
        logs.set_aside(&topic_partition, NOW_MS).expect("set aside");
    }
    assert_eq!(logs.find_records().expect("listed"), None);
}

#[test]
fn a_garbled_checkpoint_is_told_and_a_missing_or_empty_one_is_not() {
    let dir = tempfile::tempdir().expect("a directory");
    for name in [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
    ] {
        let path = dir.path().join(name);
        let open_with = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("written");
            crate::log::tests::logged(|| open(&[dir.path()])).1
        };
        let zeros = [0; 30];
        for garbled in [
            &b"0\n1\nt 0 1x\n"[..],
            b"0\n2\nt 0 1\n",
            b"\xff\xfe",
            &zeros,
        ] {
            let text = open_with(garbled);
            assert!(text.contains(" WARN ") && text.contains(name), "{text}");
        }
        // Apache Kafka makes the files before it has anything to write.
        assert_eq!(open_with(b""), "");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(crate::log::tests::logged(|| open(&[dir.path()])).1, "");
    }
}

#[test]
fn one_bad_partition_takes_only_itself_offline() {
    let dir = tempfile::tempdir().expect("a directory");
    let logs = open(&[dir.path()]);
    for partition in 0..4 {
        append(&create(&logs, &tp("t", partition)));
    }
    logs.close(1).expect("closed");
    drop(logs);
    let log_file = dir.path().join("t-2/00000000000000000000.log");
    std::fs::remove_file(&log_file).expect("removed");
    std::fs::create_dir(&log_file).expect("created");
    let logs = open(&[dir.path()]);
    load(&logs);
    assert_eq!(logs.logs().len(), 3);
    let offline = logs.offline_partitions();
    assert_eq!(offline.len(), 1);
    assert_eq!(offline[0].0, tp("t", 2));
    let again = logs.get_or_create(&tp("t", 2), None, LogConfig::default(), NOW_MS);
    assert!(matches!(again, Err(StorageError::Offline { .. })));
    append(&logs.get(&tp("t", 1)).expect("there"));
    logs.close(1).expect("closed");
    drop(logs);
    // Not looked after, so not clean.
    let logs = open(&[dir.path()]);
    assert!(!logs.log_dirs()[0].was_clean);
    load(&logs);
    logs.delete(&tp("t", 2), NOW_MS).expect("deleted");
    assert!(logs.offline_partitions().is_empty());
    assert_eq!(create(&logs, &tp("t", 2)).log_end_offset(), 0);
}

#[test]
fn a_log_that_cannot_be_written_fails_by_itself_and_is_told_once() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let logs = open(&[dirs[0].path(), dirs[1].path()]);
    let told: Arc<Mutex<Vec<TopicPartition>>> = Arc::default();
    let listener = Arc::clone(&told);
    logs.watch_failures(Arc::new(move |topic_partition| {
        listener.lock().push(topic_partition.clone());
    }));
    let config = LogConfig {
        segment_bytes: 200,
        ..LogConfig::default()
    };
    let [one, other] = [0, 1].map(|partition| {
        logs.get_or_create(&tp("t", partition), None, config.clone(), NOW_MS)
            .expect("created")
    });
    assert_ne!(one.log_dir(), other.log_dir());
    append(&one);
    // The next file cannot be made.
    std::fs::rename(one.dir(), dirs[1].path().join("gone")).expect("renamed");
    let mut builder = RecordBatchBuilder::new();
    builder.append(NOW_MS, Some(b"k"), Some(&[7; 50]));
    let batch = builder.build().expect("a batch");
    let epoch = LeaderEpoch(0);
    let mut errors = (0..9).filter_map(|_| {
        one.append_as_leader(&batch, epoch, AppendOrigin::Client, NOW_MS)
            .err()
    });
    assert!(errors.next().is_some(), "the directory is gone");
    assert!(one.failure().is_some());
    let again = one.append_as_follower(&batch, epoch, NOW_MS);
    assert!(again.is_err(), "for good");
    assert_eq!(*told.lock(), [tp("t", 0)]);
    (0..9).for_each(|_| append(&other));
    assert!(other.failure().is_none());
}

#[test]
fn a_new_log_goes_where_one_can_be_made() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let logs = open(&[dirs[0].path(), dirs[1].path()]);
    let gone = dirs[1].path().join("gone");
    std::fs::rename(dirs[0].path(), &gone).expect("renamed");
    for partition in 0..3 {
        let log = create(&logs, &tp("t", partition));
        assert_eq!(log.log_dir(), dirs[1].path());
    }
    std::fs::rename(&gone, dirs[0].path()).expect("renamed");
    let places = [3, 4].map(|partition| create(&logs, &tp("t", partition)).log_dir());
    assert_ne!(places[0], places[1], "in turn again");
}

#[test]
fn a_log_that_failed_is_offline_and_leaves_no_clean_mark() {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = crate::log::tests::FaultyDisk::default();
    let log_dir = LogDir::open_on(dir.path(), Box::new(disk.clone())).expect("opened");
    let logs = LogManager::over(LogManagerSettings::default(), vec![Arc::new(log_dir)]);
    for partition in 0..3 {
        append(&create(&logs, &tp("t", partition)));
    }
    disk.fail_next();
    assert!(logs.get(&tp("t", 1)).expect("there").flush().is_err());
    assert!(logs.get(&tp("t", 1)).is_none());
    let again = logs.get_or_create(&tp("t", 1), None, LogConfig::default(), NOW_MS);
    assert!(matches!(again, Err(StorageError::Offline { .. })));
    let offline = logs.offline_partitions();
    assert_eq!(offline.len(), 1);
    assert_eq!(offline[0].0, tp("t", 1));
    // The others go on.
    logs.run_flush(NOW_MS);
    logs.run_retention(NOW_MS);
    append(&logs.get(&tp("t", 0)).expect("there"));
    logs.get(&tp("t", 0))
        .expect("there")
        .flush()
        .expect("flushed");
    assert!(matches!(logs.close(1), Err(StorageError::Offline { .. })));
    drop(logs);
    let logs = open(&[dir.path()]);
    assert!(!logs.log_dirs()[0].was_clean);
    load(&logs);
    assert_eq!(
        logs.get(&tp("t", 1)).expect("recovered").log_end_offset(),
        1
    );
    logs.delete(&tp("t", 1), NOW_MS).expect("deleted");
}

#[test]
fn a_deleted_and_recreated_partition_has_nothing_of_the_old_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let logs = open(&[dir.path()]);
    let old = create(&logs, &tp("t", 0));
    (0..9).for_each(|_| append(&old));
    let slice = old.read(0, 1 << 20, 9, true).expect("readable").records;
    old.increment_log_start_offset(5).expect("moved");
    logs.write_checkpoints().expect("written");
    logs.delete(&tp("t", 0), NOW_MS).expect("deleted");
    assert!(matches!(
        logs.delete(&tp("t", 0), NOW_MS),
        Err(StorageError::UnknownPartition(_))
    ));
    assert!(old.read(5, 100, 9, true).is_err());
    let new = create(&logs, &tp("t", 0));
    assert_eq!((new.log_start_offset(), new.log_end_offset()), (0, 0));
    assert_eq!(new.latest_epoch(), None);
    append(&new);
    drop((old, new, logs));
    let logs = open(&[dir.path()]);
    load(&logs);
    let new = logs.get(&tp("t", 0)).expect("there");
    assert_eq!((new.log_start_offset(), new.log_end_offset()), (0, 1));
    // The old directory goes, the bytes that were read stay.
    let count = || {
        std::fs::read_dir(dir.path())
            .expect("listed")
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().ends_with("-delete"))
            .count()
    };
    assert_eq!(count(), 1);
    logs.delete_renamed(NOW_MS);
    assert_eq!(count(), 0);
    assert_eq!(
        crate::record_batch::Batches::new(&slice)
            .filter_map(Result::ok)
            .count(),
        9
    );
}

#[test]
fn deleted_directories_wait_for_their_delay() {
    let dir = tempfile::tempdir().expect("a directory");
    let logs = open(&[dir.path()]);
    create(&logs, &tp("t", 0));
    logs.delete(&tp("t", 0), NOW_MS).expect("deleted");
    let count = || {
        std::fs::read_dir(dir.path())
            .expect("listed")
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().ends_with("-delete"))
            .count()
    };
    logs.delete_renamed(NOW_MS);
    logs.delete_renamed(NOW_MS + 59_999);
    assert_eq!(count(), 1);
    logs.delete_renamed(NOW_MS + 60_000);
    assert_eq!(count(), 0);
}

#[test]
fn new_logs_go_to_the_directories_in_turn() {
    let (a, b) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let logs = open(&[a.path(), b.path()]);
    for partition in 0..6 {
        append(&create(&logs, &tp("t", partition)));
    }
    let in_a = logs
        .logs()
        .iter()
        .filter(|log| log.log_dir() == a.path())
        .count();
    assert_eq!(in_a, 3);
    logs.close(1).expect("closed");
    drop(logs);
    let logs = open(&[a.path(), b.path()]);
    load(&logs);
    assert_eq!(logs.logs().len(), 6);
    assert!(logs.logs().iter().all(|log| log.log_end_offset() == 1));
}

#[test]
fn the_cleaner_compacts_the_filthiest_log() {
    let dir = tempfile::tempdir().expect("a directory");
    let logs = open(&[dir.path()]);
    let overrides = [
        ("cleanup.policy", "compact"),
        ("internal.segment.bytes", "200"),
    ];
    let config = LogConfig::from_overrides(&BTreeMap::new(), overrides).expect("valid");
    let log = logs
        .get_or_create(&tp("t", 0), None, config, NOW_MS)
        .expect("created");
    (0..20).for_each(|_| append(&log));
    let before = log.size_in_bytes();
    assert!(logs.run_cleaner(NOW_MS));
    assert!(!logs.run_cleaner(NOW_MS));
    assert!(log.size_in_bytes() < before);
    assert_eq!(log.log_end_offset(), 20);
}
