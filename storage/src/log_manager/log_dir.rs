//! One of `log.dirs`: its lock, its checkpoints, and the files in it that wait to be unlinked.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, fcntl_lock, flock};

use crate::checkpoint::{
    CLEANER_OFFSET_CHECKPOINT, CleanShutdownMark, LOG_START_OFFSET_CHECKPOINT, OffsetCheckpoint,
    RECOVERY_POINT_CHECKPOINT, REPLICATION_OFFSET_CHECKPOINT,
};
use crate::errors::StorageError;
use crate::mapped_file::SyncError;
use crate::segment::Segment;
use crate::types::TopicPartition;

const LOCK_FILE: &str = ".lock";

/// What forces files to disk. Tests put a disk in its place that fails.
pub(crate) trait Disk: fmt::Debug + Send + Sync {
    /// Forces a segment's log and indexes to disk.
    fn sync(&self, segment: &Segment) -> Result<(), SyncError>;
}

/// Who is told that a log has failed. It is called while locks of the log may be held, so it must not wait.
#[derive(Clone)]
pub(super) struct FailureListener(pub(super) Arc<dyn Fn(&TopicPartition) + Send + Sync>);

impl fmt::Debug for FailureListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FailureListener")
    }
}

/// The disk as the operating system gives it.
#[derive(Debug)]
struct SystemDisk;

impl Disk for SystemDisk {
    fn sync(&self, segment: &Segment) -> Result<(), SyncError> {
        segment.sync()
    }
}

/// A log directory that this process has locked.
#[derive(Debug)]
pub(crate) struct LogDir {
    path: PathBuf,
    disk: Box<dyn Disk>,
    /// Holds the lock for as long as it is open.
    _lock: File,
    /// The mark that the last stop left.
    clean_mark: Option<CleanShutdownMark>,
    /// Whether the mark is still on the disk.
    is_marked: Mutex<bool>,
    /// Log starts that are not a segment's beginning.
    pub(crate) log_start_offsets: OffsetCheckpoint,
    /// What is on disk of each partition.
    pub(crate) recovery_points: OffsetCheckpoint,
    /// High watermarks: hints for the next start.
    pub(crate) high_watermarks: OffsetCheckpoint,
    /// The first offset of each compacted partition that was not compacted yet.
    pub(crate) cleaner_offsets: OffsetCheckpoint,
    waiting: Mutex<Vec<Waiting>>,
    /// The disk was full at the last try: files that wait to be unlinked go at once.
    is_full: AtomicBool,
    failure_listener: OnceLock<FailureListener>,
}

/// A file or directory that is to be removed.
#[derive(Debug)]
struct Waiting {
    path: PathBuf,
    delay_ms: i64,
    /// Set by the first sweep after it was put here.
    due_ms: Option<i64>,
}

impl LogDir {
    /// Makes the directory if need be and locks it. The clean-shutdown mark stays until
    /// [`Self::take_mark_off`].
    pub(crate) fn open(path: &Path) -> Result<Self, StorageError> {
        Self::open_on(path, Box::new(SystemDisk))
    }

    /// As [`Self::open`], on a disk of its own.
    pub(crate) fn open_on(path: &Path, disk: Box<dyn Disk>) -> Result<Self, StorageError> {
        std::fs::create_dir_all(path).map_err(|error| StorageError::io("create", path, error))?;
        let lock = lock(path)?;
        let clean_mark = CleanShutdownMark::read(path)?;
        Ok(Self {
            path: path.to_owned(),
            disk,
            _lock: lock,
            clean_mark,
            is_marked: Mutex::new(clean_mark.is_some()),
            log_start_offsets: OffsetCheckpoint::open(path, LOG_START_OFFSET_CHECKPOINT),
            recovery_points: OffsetCheckpoint::open(path, RECOVERY_POINT_CHECKPOINT),
            high_watermarks: OffsetCheckpoint::open(path, REPLICATION_OFFSET_CHECKPOINT),
            cleaner_offsets: OffsetCheckpoint::open(path, CLEANER_OFFSET_CHECKPOINT),
            waiting: Mutex::new(Vec::new()),
            is_full: AtomicBool::new(false),
            failure_listener: OnceLock::new(),
        })
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// From now on `listener` is told of logs that fail; only the first one is.
    pub(super) fn watch_failures(&self, listener: FailureListener) {
        let _ = self.failure_listener.set(listener);
    }

    /// A log in this directory has failed.
    pub(crate) fn on_log_failure(&self, topic_partition: &TopicPartition) {
        if let Some(FailureListener(listener)) = self.failure_listener.get() {
            listener(topic_partition);
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The mark of the last stop; None when it was not clean.
    pub(crate) fn clean_mark(&self) -> Option<CleanShutdownMark> {
        self.clean_mark
    }

    /// Removes the mark from the disk, durably: from here on an end without a word is a crash.
    pub(crate) fn take_mark_off(&self) -> Result<(), StorageError> {
        let mut is_marked = self.is_marked.lock();
        if *is_marked {
            CleanShutdownMark::remove(&self.path)?;
            *is_marked = false;
        }
        Ok(())
    }

    /// Puts the mark that was found back on the disk.
    pub(crate) fn put_mark_back(&self) -> Result<(), StorageError> {
        let mut is_marked = self.is_marked.lock();
        if let Some(mark) = self.clean_mark
            && !*is_marked
        {
            mark.write(&self.path)?;
            *is_marked = true;
        }
        Ok(())
    }

    /// Takes note of an error, in case it says that the disk is full.
    pub(crate) fn note_error(&self, error: &StorageError) {
        if error.is_storage_full() {
            self.is_full.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the disk was full at the last try.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Files, or directories, to be removed in `delay_ms`.
    pub(crate) fn unlink_later(&self, paths: Vec<PathBuf>, delay_ms: i64) {
        self.waiting
            .lock()
            .extend(paths.into_iter().map(|path| Waiting {
                path,
                delay_ms,
                due_ms: None,
            }));
    }

    /// Removes what has waited long enough; all of it if the disk was found full.
    pub(crate) fn unlink_deleted(&self, now_ms: i64) {
        let is_full = self.is_full.swap(false, Ordering::Relaxed);
        let due: Vec<Waiting> = {
            let mut waiting = self.waiting.lock();
            let (due, later) = std::mem::take(&mut *waiting)
                .into_iter()
                .map(|mut item| {
                    item.due_ms
                        .get_or_insert(now_ms.saturating_add(item.delay_ms));
                    item
                })
                .partition(|item| is_full || now_ms == i64::MAX || item.due_ms <= Some(now_ms));
            *waiting = later;
            due
        };
        for item in due {
            let result = match std::fs::symlink_metadata(&item.path) {
                Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(&item.path),
                Ok(_) => std::fs::remove_file(&item.path),
                Err(error) => Err(error),
            };
            match result {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    tracing::error!(path = %item.path.display(), %error, "cannot remove what was deleted");
                }
                _ => tracing::debug!(path = %item.path.display(), "removed"),
            }
        }
    }

    /// Total and usable bytes of the file system; zeros when it does not say.
    pub(crate) fn space(&self) -> (u64, u64) {
        match rustix::fs::statvfs(&self.path) {
            Ok(space) => (
                space.f_blocks * space.f_frsize,
                space.f_bavail * space.f_frsize,
            ),
            Err(error) => {
                tracing::warn!(log_dir = %self.path.display(), %error, "cannot tell the space on the disk");
                (0, 0)
            }
        }
    }
}

/// Opens the file by which a directory is locked. That it can be shows that the directory can be written to.
///
/// # Errors
/// When it cannot be opened or made.
pub(super) fn open_lock_file(dir: &Path) -> Result<File, StorageError> {
    let path = dir.join(LOCK_FILE);
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| StorageError::io("open", &path, error))
}

/// Whether a broker uses this directory now; not for a process that uses it itself, whose lock would end.
///
/// # Errors
/// When its lock file cannot be looked at.
pub fn is_in_use(dir: &Path) -> Result<bool, StorageError> {
    if !dir.join(LOCK_FILE).exists() {
        return Ok(false);
    }
    match lock(dir) {
        Ok(_) => Ok(false),
        Err(StorageError::DirectoryInUse { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Locks the directory against other brokers: against those of this project by `flock`, which holds between two
/// in one process as well, and against Apache Kafka by a record lock.
fn lock(dir: &Path) -> Result<File, StorageError> {
    let path = dir.join(LOCK_FILE);
    let file = open_lock_file(dir)?;
    for result in [
        flock(&file, FlockOperation::NonBlockingLockExclusive),
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive),
    ] {
        match result {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::ACCESS) => {
                return Err(StorageError::DirectoryInUse {
                    path: dir.to_owned(),
                });
            }
            Err(error) => return Err(StorageError::io("lock", &path, error)),
        }
    }
    Ok(file)
}
