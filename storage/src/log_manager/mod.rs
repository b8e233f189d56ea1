//! All of a broker's logs. TEMPORARY bodies: only the signatures are final in this commit.
#![allow(clippy::unimplemented, unused_variables, missing_docs)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::errors::StorageError;
use crate::log::Log;
use crate::log_config::LogConfig;
use crate::types::{TopicId, TopicPartition};

/// What a manager needs to know; the broker's keys in brackets.
#[derive(Debug, Clone)]
pub struct LogManagerSettings {
    /// The log directories (`log.dirs`).
    pub log_dirs: Vec<PathBuf>,
    /// Threads per directory for opening logs (`num.recovery.threads.per.data.dir`).
    pub recovery_threads_per_dir: usize,
    /// When an idle producer is forgotten (`producer.id.expiration.ms`).
    pub producer_id_expiration_ms: i64,
    /// Whether compaction runs (`log.cleaner.enable`).
    pub cleaner_enabled: bool,
    /// Memory for compaction's key map (`log.cleaner.dedupe.buffer.size`).
    pub cleaner_dedupe_buffer_bytes: usize,
}

impl Default for LogManagerSettings {
    fn default() -> Self {
        unimplemented!()
    }
}

/// `meta.properties` of a log directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaProperties {
    pub cluster_id: String,
    pub node_id: i32,
    /// The directory's own id (KIP-858).
    pub directory_id: TopicId,
}

impl MetaProperties {
    /// Reads `meta.properties` in `log_dir`; None when there is none.
    pub fn read(log_dir: &Path) -> Result<Option<Self>, StorageError> {
        unimplemented!()
    }
    /// Writes `meta.properties` in `log_dir`, durably.
    pub fn write(&self, log_dir: &Path) -> Result<(), StorageError> {
        unimplemented!()
    }
}

/// One of `log.dirs` as found at start.
#[derive(Debug, Clone)]
pub struct LogDirStatus {
    pub path: PathBuf,
    pub meta_properties: Option<MetaProperties>,
    /// Whether the last stop was clean.
    pub was_clean: bool,
    /// The broker epoch at the last clean stop, -1 when unknown.
    pub previous_broker_epoch: i64,
    /// Total and usable bytes of the file system (DescribeLogDirs v4).
    pub total_bytes: u64,
    pub usable_bytes: u64,
}

/// All of a broker's logs.
#[derive(Debug)]
pub struct LogManager {}

impl LogManager {
    /// Makes and locks the directories; opens no log yet.
    pub fn open(settings: LogManagerSettings) -> Result<Self, StorageError> {
        unimplemented!()
    }
    pub fn log_dirs(&self) -> Vec<LogDirStatus> {
        unimplemented!()
    }
    /// Opens every log in the directories, but not `__cluster_metadata`, on a few threads. A log that cannot be
    /// opened is logged and kept as offline.
    pub fn load_logs(&self, config_of: &(dyn Fn(&str) -> LogConfig + Sync), now_ms: i64) {
        unimplemented!()
    }
    pub fn get(&self, topic_partition: &TopicPartition) -> Option<Arc<Log>> {
        unimplemented!()
    }
    /// The log, opened or made. Also how the metadata log is opened, before `load_logs`.
    pub fn get_or_create(
        &self,
        topic_partition: &TopicPartition,
        topic_id: Option<TopicId>,
        config: LogConfig,
        now_ms: i64,
    ) -> Result<Arc<Log>, StorageError> {
        unimplemented!()
    }
    pub fn logs(&self) -> Vec<Arc<Log>> {
        unimplemented!()
    }
    /// The partitions whose logs could not be opened, and why.
    pub fn offline_partitions(&self) -> Vec<(TopicPartition, StorageError)> {
        unimplemented!()
    }
    /// Closes the log and renames its directory away; the files go in [`LogManager::delete_renamed`].
    pub fn delete(
        &self,
        topic_partition: &TopicPartition,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        unimplemented!()
    }
    /// Rolls what is old, deletes what retention says, expires producers. Gives the logs whose start moved.
    pub fn run_retention(&self, now_ms: i64) -> Vec<TopicPartition> {
        unimplemented!()
    }
    /// Flushes logs whose `flush.ms` is over, and segments that were rolled; closes cold files.
    pub fn run_flush(&self, now_ms: i64) {
        unimplemented!()
    }
    /// Writes recovery points, high watermarks and log starts.
    pub fn write_checkpoints(&self) -> Result<(), StorageError> {
        unimplemented!()
    }
    /// Compacts the filthiest log, if one is due; whether one was.
    pub fn run_cleaner(&self, now_ms: i64) -> bool {
        unimplemented!()
    }
    /// Removes files and directories whose `file.delete.delay.ms` is over.
    pub fn delete_renamed(&self, now_ms: i64) {
        unimplemented!()
    }
    /// Flushes everything, writes snapshots and checkpoints, and the clean-shutdown mark last.
    pub fn close(&self, broker_epoch: i64) -> Result<(), StorageError> {
        unimplemented!()
    }
}
