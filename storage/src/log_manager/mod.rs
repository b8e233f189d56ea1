//! All of a broker's logs: opening them on a few threads, making and deleting them, checkpoints, and the sweeps
//! that the server calls with the time.

mod cleaner;
mod contents;
mod duplicates;
mod log_dir;
mod names;
mod sweeps;
mod unusable;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::errors::StorageError;
use crate::log::{Log, OpenLog, Throttle};
use crate::log_config::LogConfig;
use crate::types::{TopicId, TopicPartition};

pub use crate::checkpoint::MetaProperties;
#[cfg(test)]
pub(crate) use log_dir::Disk;
use log_dir::FailureListener;
pub(crate) use log_dir::LogDir;
pub use log_dir::is_in_use;
use names::{DirName, Fate, parse_dir_name, unique_dir_name};
pub use unusable::UnusableLogDir;

/// The metadata log's topic; it is opened before the others, which need what is in it.
const CLUSTER_METADATA_TOPIC: &str = "__cluster_metadata";

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
    /// What compaction may read and write in a second (`log.cleaner.io.max.bytes.per.second`).
    pub cleaner_io_max_bytes_per_second: f64,
}

impl Default for LogManagerSettings {
    fn default() -> Self {
        Self {
            log_dirs: Vec::new(),
            recovery_threads_per_dir: 2,
            producer_id_expiration_ms: 86_400_000,
            cleaner_enabled: true,
            cleaner_dedupe_buffer_bytes: 128 << 20,
            cleaner_io_max_bytes_per_second: f64::MAX,
        }
    }
}

/// One of `log.dirs` as found at start.
#[derive(Debug, Clone)]
pub struct LogDirStatus {
    /// The directory.
    pub path: PathBuf,
    /// Whether the last stop was clean.
    pub was_clean: bool,
    /// The broker epoch at the last clean stop, -1 when unknown.
    pub previous_broker_epoch: i64,
    /// Size of the file system in bytes, 0 when unknown.
    pub total_bytes: u64,
    /// Free bytes of it that the broker may use.
    pub usable_bytes: u64,
}

/// All of a broker's logs.
#[derive(Debug)]
pub struct LogManager {
    settings: LogManagerSettings,
    dirs: Vec<Arc<LogDir>>,
    /// Those of `log.dirs` that are not among `dirs`.
    unusable: Vec<UnusableLogDir>,
    logs: RwLock<HashMap<TopicPartition, Arc<Log>>>,
    offline: Mutex<BTreeMap<TopicPartition, StorageError>>,
    /// Partitions whose compaction failed for good.
    uncleanable: Mutex<HashSet<TopicPartition>>,
    cleaner_throttle: Throttle,
    /// One log is made or deleted at a time.
    changing: Mutex<()>,
    /// Where the next new log goes.
    next_dir: AtomicUsize,
}

impl LogManager {
    /// Makes and locks the directories, and reads their checkpoints; opens no log yet. The marks of a clean stop
    /// stay on the disk until the first log is opened, so that a start that ends before that changes nothing.
    ///
    /// # Errors
    /// [`StorageError::DirectoryInUse`] when another broker has one of them; else when one cannot be used.
    pub fn open(settings: LogManagerSettings) -> Result<Self, StorageError> {
        let mut dirs = Vec::with_capacity(settings.log_dirs.len());
        for path in &settings.log_dirs {
            dirs.push(Arc::new(LogDir::open(path)?));
        }
        Ok(Self::over(settings, dirs))
    }

    fn over(settings: LogManagerSettings, dirs: Vec<Arc<LogDir>>) -> Self {
        Self {
            cleaner_throttle: Throttle::new(settings.cleaner_io_max_bytes_per_second),
            settings,
            dirs,
            unusable: Vec::new(),
            logs: RwLock::default(),
            offline: Mutex::default(),
            uncleanable: Mutex::default(),
            changing: Mutex::default(),
            next_dir: AtomicUsize::new(0),
        }
    }

    /// The log directories. What `meta.properties` says of each is read with [`MetaProperties::read`].
    pub fn log_dirs(&self) -> Vec<LogDirStatus> {
        self.dirs
            .iter()
            .map(|log_dir| {
                let mark = log_dir.clean_mark();
                let (total_bytes, usable_bytes) = log_dir.space();
                LogDirStatus {
                    path: log_dir.path().to_owned(),
                    was_clean: mark.is_some(),
                    previous_broker_epoch: mark.map_or(-1, |mark| mark.broker_epoch),
                    total_bytes,
                    usable_bytes,
                }
            })
            .collect()
    }

    /// Has `listener` told of every log that fails from now on ([`Log::failure`]), once; only the first call does
    /// anything. It is called while the log is locked, so it must not wait.
    pub fn watch_failures(&self, listener: Arc<dyn Fn(&TopicPartition) + Send + Sync>) {
        for log_dir in &self.dirs {
            log_dir.watch_failures(FailureListener(Arc::clone(&listener)));
        }
    }

    /// Puts back the marks of a clean stop that were found, for a start that ends after logs were opened and before
    /// anything was written to them. The manager must not be used afterwards.
    ///
    /// # Errors
    /// When a mark cannot be written; the next start recovers that directory's logs.
    pub fn leave_unchanged(&self) -> Result<(), StorageError> {
        let mut result = Ok(());
        for log_dir in &self.dirs {
            result = result.and(log_dir.put_mark_back());
        }
        result
    }

    fn take_marks_off(&self) -> Result<(), StorageError> {
        self.dirs
            .iter()
            .try_for_each(|log_dir| log_dir.take_mark_off())
    }

    /// Opens every log in the directories, but not the metadata log, on a few threads. A log that cannot be
    /// opened is reported, and offline until the next start; the others are not affected.
    ///
    /// Gives the logs of partitions that are in use from another directory already: which one counts is for the caller
    /// to [`settle`](LogManager::settle).
    #[must_use = "another log may be the one that counts"]
    pub fn load_logs(
        &self,
        config_of: &(dyn Fn(&str) -> LogConfig + Sync),
        now_ms: i64,
    ) -> Vec<Arc<Log>> {
        let found: Vec<_> = self
            .dirs
            .iter()
            .flat_map(|log_dir| {
                self.find_logs(log_dir)
                    .into_iter()
                    .map(move |log| (log_dir, log))
            })
            .collect();
        if let Err(error) = self.take_marks_off() {
            for (_, (topic_partition, _)) in &found {
                self.put_offline(topic_partition, error.clone());
            }
            return Vec::new();
        }
        let threads = (self.settings.recovery_threads_per_dir.max(1) * self.dirs.len())
            .min(found.len())
            .max(1);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut opened = Vec::new();
            while let Some((log_dir, (topic_partition, dir))) =
                found.get(next.fetch_add(1, Ordering::Relaxed))
            {
                let config = config_of(&topic_partition.topic);
                let open = || self.open_log(log_dir, topic_partition, dir, config, now_ms);
                // Whatever is wrong with one log, the others come up.
                let result = std::panic::catch_unwind(AssertUnwindSafe(open))
                    .unwrap_or_else(|_| Err(StorageError::corrupt(dir, "opening it panicked")));
                match result {
                    Ok(log) => opened.push((topic_partition.clone(), Arc::new(log))),
                    Err(error) => self.put_offline(topic_partition, error),
                }
            }
            opened
        };
        let opened: Vec<_> = if threads == 1 {
            work()
        } else {
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                workers
                    .into_iter()
                    .flat_map(|worker| worker.join().unwrap_or_default())
                    .collect()
            })
        };
        let mut logs = self.logs.write();
        let mut second = Vec::new();
        for (topic_partition, log) in opened {
            match logs.entry(topic_partition) {
                Entry::Occupied(_) => second.push(log),
                Entry::Vacant(free) => {
                    free.insert(log);
                }
            }
        }
        second
    }

    /// The partitions' directories in a log directory. What was deleted before is put on the list to be removed.
    fn find_logs(&self, log_dir: &Arc<LogDir>) -> Vec<(TopicPartition, PathBuf)> {
        let path = log_dir.path();
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::error!(log_dir = %path.display(), %error, "cannot list the log directory");
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name();
            match name.to_str().map(parse_dir_name) {
                Some(DirName::Partition(topic_partition)) => {
                    if &*topic_partition.topic != CLUSTER_METADATA_TOPIC {
                        found.push((topic_partition, entry.path()));
                    }
                }
                Some(DirName::Deleted) => log_dir.unlink_later(vec![entry.path()], 0),
                Some(DirName::Other) | None => {
                    tracing::warn!(dir = %entry.path().display(), "not a partition's directory, ignoring it");
                }
            }
        }
        found
    }

    fn put_offline(&self, topic_partition: &TopicPartition, error: StorageError) {
        tracing::error!(%topic_partition, %error, "cannot open the log, the partition is offline");
        self.offline.lock().insert(topic_partition.clone(), error);
    }

    fn open_log(
        &self,
        log_dir: &Arc<LogDir>,
        topic_partition: &TopicPartition,
        dir: &Path,
        config: LogConfig,
        now_ms: i64,
    ) -> Result<Log, StorageError> {
        OpenLog {
            topic_partition: topic_partition.clone(),
            log_dir: Arc::clone(log_dir),
            dir: dir.to_owned(),
            config,
            was_clean: log_dir.clean_mark().is_some(),
            recovery_point: log_dir.recovery_points.get(topic_partition).unwrap_or(0),
            log_start_offset: log_dir.log_start_offsets.get(topic_partition),
            high_watermark: log_dir.high_watermarks.get(topic_partition),
            producer_id_expiration_ms: self.settings.producer_id_expiration_ms,
            now_ms,
        }
        .open()
    }

    /// The partition's log, if it is here and online.
    pub fn get(&self, topic_partition: &TopicPartition) -> Option<Arc<Log>> {
        self.find(topic_partition)
            .filter(|log| log.failure().is_none())
    }

    fn find(&self, topic_partition: &TopicPartition) -> Option<Arc<Log>> {
        self.logs.read().get(topic_partition).cloned()
    }

    /// The partition's log, opened or made. Also how the metadata log is opened, before
    /// [`LogManager::load_logs`].
    ///
    /// # Errors
    /// When the partition is offline, its directory belongs to another topic id, or cannot be made.
    pub fn get_or_create(
        &self,
        topic_partition: &TopicPartition,
        topic_id: Option<TopicId>,
        config: LogConfig,
        now_ms: i64,
    ) -> Result<Arc<Log>, StorageError> {
        let _changing = self.changing.lock();
        if let Some(error) = self.offline.lock().get(topic_partition) {
            return Err(StorageError::Offline {
                topic_partition: topic_partition.clone(),
                reason: error.to_string(),
            });
        }
        let log = match self.find(topic_partition) {
            Some(log) => log,
            None => {
                self.take_marks_off()?;
                let log = Arc::new(self.create_or_open(topic_partition, config, now_ms)?);
                self.logs
                    .write()
                    .insert(topic_partition.clone(), Arc::clone(&log));
                log
            }
        };
        if let Some(failure) = log.failure() {
            return Err(StorageError::Offline {
                topic_partition: topic_partition.clone(),
                reason: failure.to_string(),
            });
        }
        if let Some(topic_id) = topic_id {
            log.set_topic_id(topic_id)?;
        }
        Ok(log)
    }

    fn create_or_open(
        &self,
        topic_partition: &TopicPartition,
        config: LogConfig,
        now_ms: i64,
    ) -> Result<Log, StorageError> {
        let name = topic_partition.to_string();
        for log_dir in &self.dirs {
            let dir = log_dir.path().join(&name);
            if dir.is_dir() {
                return self.open_log(log_dir, topic_partition, &dir, config, now_ms);
            }
        }
        // Where the turn is, or where there is space and a disk that works.
        let first = self.next_dir.fetch_add(1, Ordering::Relaxed);
        let mut error = StorageError::UnknownPartition(topic_partition.clone());
        for turn in 0..self.dirs.len() {
            let log_dir = &self.dirs[first.wrapping_add(turn) % self.dirs.len()];
            match self.create_in(log_dir, topic_partition, config.clone(), now_ms) {
                Ok(log) => return Ok(log),
                Err(failed) => {
                    tracing::error!(%topic_partition, log_dir = %log_dir.path().display(), error = %failed, "a log cannot be made there");
                    error = failed;
                }
            }
        }
        Err(error)
    }

    fn create_in(
        &self,
        log_dir: &Arc<LogDir>,
        topic_partition: &TopicPartition,
        config: LogConfig,
        now_ms: i64,
    ) -> Result<Log, StorageError> {
        let dir = log_dir.path().join(topic_partition.to_string());
        // A new partition must not begin where an old one of the same name did.
        forget_checkpoints(log_dir, topic_partition)?;
        std::fs::create_dir(&dir).map_err(|error| StorageError::io("create", &dir, error))?;
        let log = OpenLog {
            topic_partition: topic_partition.clone(),
            log_dir: Arc::clone(log_dir),
            dir: dir.clone(),
            config,
            was_clean: true,
            recovery_point: 0,
            log_start_offset: None,
            high_watermark: None,
            producer_id_expiration_ms: self.settings.producer_id_expiration_ms,
            now_ms,
        }
        .open();
        log.inspect_err(|_| {
            // Half a directory would be in the way of the next try.
            let _ = std::fs::remove_dir_all(&dir);
        })
    }

    /// All logs that were opened, also those that have failed since.
    pub fn logs(&self) -> Vec<Arc<Log>> {
        self.logs.read().values().cloned().collect()
    }

    /// The partitions whose logs could not be opened or have failed since, and why.
    pub fn offline_partitions(&self) -> Vec<(TopicPartition, StorageError)> {
        let logs = self.logs();
        let failed = logs
            .iter()
            .filter_map(|log| Some((log.topic_partition(), log.failure()?)));
        let offline = self.offline.lock();
        let all = offline.iter().chain(failed);
        all.map(|(topic_partition, error)| (topic_partition.clone(), error.clone()))
            .collect()
    }

    /// Ends the log and renames its directory away; the files go in [`LogManager::delete_renamed`]. Works for an
    /// offline partition too.
    ///
    /// # Errors
    /// When the partition is not here, or its directory cannot be renamed.
    pub fn delete(
        &self,
        topic_partition: &TopicPartition,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        self.take_away(topic_partition, now_ms, Fate::Deleted)
    }

    /// Closes the log and renames its directory to `….<unique>-stray`, as Apache Kafka does with a
    /// log that belongs to no partition of this broker. Nothing is ever deleted there.
    ///
    /// # Errors
    /// As [`LogManager::delete`].
    pub fn set_aside(
        &self,
        topic_partition: &TopicPartition,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        self.take_away(topic_partition, now_ms, Fate::Stray)
    }

    fn take_away(
        &self,
        topic_partition: &TopicPartition,
        now_ms: i64,
        fate: Fate,
    ) -> Result<(), StorageError> {
        let _changing = self.changing.lock();
        let log = self.logs.write().remove(topic_partition);
        let delay_ms = log
            .as_ref()
            .map_or(0, |log| log.config().file_delete_delay_ms);
        if let Some(log) = &log {
            log.abandon();
        }
        self.uncleanable.lock().remove(topic_partition);
        let was_offline = self.offline.lock().remove(topic_partition).is_some();
        let name = topic_partition.to_string();
        let mut was_found = false;
        for log_dir in &self.dirs {
            let from = log_dir.path().join(&name);
            if !from.is_dir() {
                continue;
            }
            was_found = true;
            let to = log_dir.path().join(unique_dir_name(topic_partition, fate));
            std::fs::rename(&from, &to)
                .map_err(|error| StorageError::io("rename", &from, error))?;
            if fate == Fate::Deleted {
                log_dir.unlink_later(vec![to], delay_ms);
            }
            // On a full disk the entries go when a partition of this name is made again.
            if let Err(error) = forget_checkpoints(log_dir, topic_partition) {
                tracing::warn!(%topic_partition, %error, "cannot take a deleted partition out of the checkpoints");
                log_dir.note_error(&error);
            }
            if log_dir.is_full() {
                log_dir.unlink_deleted(now_ms);
            }
        }
        if log.is_none() && !was_offline && !was_found {
            return Err(StorageError::UnknownPartition(topic_partition.clone()));
        }
        tracing::info!(%topic_partition, now_ms, ?fate, "took the log away");
        Ok(())
    }
}

/// Takes a partition out of the checkpoints of its directory.
fn forget_checkpoints(
    log_dir: &LogDir,
    topic_partition: &TopicPartition,
) -> Result<(), StorageError> {
    for checkpoint in [
        &log_dir.log_start_offsets,
        &log_dir.recovery_points,
        &log_dir.cleaner_offsets,
    ] {
        checkpoint.remove(topic_partition)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
