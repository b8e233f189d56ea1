//! A log against a plain model of it, and against crashes.

mod compaction;
mod concurrency;
mod damage;
mod disk_full;
mod failed_flush;
mod model;
mod mutation;
mod verbs;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

pub(crate) use failed_flush::FaultyDisk;

use super::{AppendInfo, AppendOrigin, Log, OpenLog, Throttle};
use crate::errors::AppendError;
use crate::log_config::LogConfig;
use crate::log_manager::LogDir;
use crate::record_batch::{Batches, DecompressLimits, RecordBatchBuilder, decode_records};
use crate::types::{LeaderEpoch, TopicPartition};

pub(super) const NOW_MS: i64 = 1_700_000_000_000;

/// A log in a directory of its own that can be closed, crashed and opened again.
pub(super) struct Fixture {
    root: tempfile::TempDir,
    pub(super) log_dir: Arc<LogDir>,
    pub(super) config: LogConfig,
}

pub(super) fn small_segments() -> LogConfig {
    LogConfig {
        segment_bytes: 700,
        index_interval_bytes: 100,
        ..LogConfig::default()
    }
}

impl Fixture {
    pub(super) fn new(config: LogConfig) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let log_dir = LogDir::open(root.path()).expect("opened");
        Self::in_dir(root, log_dir, config)
    }

    /// On a disk that may fail.
    pub(super) fn on(disk: FaultyDisk, config: LogConfig) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let log_dir = LogDir::open_on(root.path(), Box::new(disk)).expect("opened");
        Self::in_dir(root, log_dir, config)
    }

    fn in_dir(root: tempfile::TempDir, log_dir: LogDir, config: LogConfig) -> Self {
        std::fs::create_dir(root.path().join("t-0")).expect("created");
        Self {
            root,
            log_dir: Arc::new(log_dir),
            config,
        }
    }

    pub(super) fn dir(&self) -> PathBuf {
        self.root.path().join("t-0")
    }

    pub(super) fn open(&self) -> Log {
        self.open_with(true, 0)
    }

    pub(super) fn open_after_crash(&self, recovery_point: i64) -> Log {
        self.open_with(false, recovery_point)
    }

    pub(super) fn open_with(&self, was_clean: bool, recovery_point: i64) -> Log {
        let topic_partition = TopicPartition::new("t", 0);
        OpenLog {
            log_start_offset: self.log_dir.log_start_offsets.get(&topic_partition),
            topic_partition,
            log_dir: Arc::clone(&self.log_dir),
            dir: self.dir(),
            config: self.config.clone(),
            was_clean,
            recovery_point,
            high_watermark: None,
            producer_id_expiration_ms: 86_400_000,
            now_ms: NOW_MS,
        }
        .open()
        .expect("a log opens whatever its files hold")
    }
}

/// A batch of records whose values are the numbers from `first` on, a millisecond apart.
pub(super) fn batch(first: i64, count: i64) -> Bytes {
    let mut builder = RecordBatchBuilder::new();
    for number in first..first + count {
        builder.append(NOW_MS + number, None, Some(number.to_string().as_bytes()));
    }
    builder.build().expect("a batch")
}

pub(super) fn append(log: &Log, records: &Bytes) -> Result<AppendInfo, AppendError> {
    let info = log.append_as_leader(records, LeaderEpoch(0), AppendOrigin::Client, NOW_MS);
    log.set_high_watermark(log.log_end_offset());
    let info = info?;
    if info.is_flush_due {
        log.flush_below(info.last_offset + 1)?;
    }
    Ok(info)
}

/// Offsets and values of all records in whole batches.
pub(super) fn records(bytes: &Bytes) -> Vec<(i64, String)> {
    let mut records = Vec::new();
    for batch in Batches::new(bytes) {
        let (_, batch) = batch.expect("whole batches");
        let limits = DecompressLimits { max_bytes: 1 << 20 };
        for record in decode_records(&Bytes::copy_from_slice(batch), limits).expect("records") {
            let record = record.expect("a record");
            let value = record.value.unwrap_or_default();
            records.push((record.offset, String::from_utf8_lossy(&value).into_owned()));
        }
    }
    records
}

/// All records from `offset` to the log's end.
pub(super) fn read_all(log: &Log, mut offset: i64) -> Vec<(i64, String)> {
    let mut all = Vec::new();
    let end = log.log_end_offset();
    while offset < end {
        let read = log.read(offset, 1 << 20, end, true).expect("readable");
        let part = records(&read.records);
        let Some((last, _)) = part.last() else { break };
        let next = last + 1;
        all.extend(part.into_iter().filter(|(at, _)| *at >= offset));
        offset = next;
    }
    all
}

/// What `work` gives, and what it logs on this thread.
pub(crate) fn logged<T>(work: impl FnOnce() -> T) -> (T, String) {
    #[derive(Clone, Default)]
    struct Lines(Arc<parking_lot::Mutex<Vec<u8>>>);
    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let result = tracing::subscriber::with_default(subscriber, work);
    let text = String::from_utf8_lossy(&lines.0.lock()).into_owned();
    (result, text)
}

pub(super) fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(suffix))
        .collect();
    files.sort();
    files
}
