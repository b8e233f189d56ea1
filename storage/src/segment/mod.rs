//! One segment of a log: the file with the batches and its indexes.

mod file_names;
mod index_builder;
mod list;
mod scan;

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::errors::StorageError;
use crate::index::{OffsetIndex, TimeEntry, TimeIndex, TransactionIndex};
use crate::log_config::LogConfig;
use crate::mapped_file::{FileMap, MappedFile, SyncError, is_resident, unless_full, will_need};

pub(crate) use file_names::{
    CLEANED_SUFFIX, DELETED_SUFFIX, INDEX_SUFFIX, LOG_FIRST, LOG_LAST, LOG_SUFFIX, SWAP_SUFFIX,
    TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, base_offset_of, file_name,
};
pub(crate) use index_builder::IndexBuilder;
pub(crate) use list::SegmentList;
pub(crate) use scan::Found;

/// How much is read ahead of a reader of old data, which mostly goes on to the end.
const READ_AHEAD_BYTES: usize = 8 << 20;
/// Data that this process appended stays in the page cache for at least this many bytes.
const HOT_BYTES: u32 = 16 << 20;

/// One segment. Appends go through the log's writer lock; reads need no lock.
#[derive(Debug)]
pub(crate) struct Segment {
    base_offset: i64,
    log: MappedFile,
    /// Bytes that readers may look at. Grows, and never shrinks while the log is open.
    size: AtomicU32,
    /// What was appended by this process begins here.
    appended_from: u32,
    map_capacity: u64,
    pub(crate) offset_index: OffsetIndex,
    pub(crate) time_index: TimeIndex,
    pub(crate) txn_index: TransactionIndex,
    /// The largest timestamp, once known. Kept up to date by appends.
    max_timestamp: Mutex<Option<TimeEntry>>,
    /// Set by every use; the sweep over idle files clears it.
    was_used: AtomicBool,
    /// A look-up found that an index does not fit the log.
    needs_repair: AtomicBool,
}

impl Segment {
    fn new(dir: &Arc<Path>, base_offset: i64, suffix: &str, size: u32, config: &LogConfig) -> Self {
        let name = |kind: &str| format!("{}{suffix}", file_name(base_offset, kind));
        let index_bytes = config.segment_index_bytes;
        let index = |kind| (Arc::clone(dir), name(kind));
        let (offsets, times, txns) = (
            index(INDEX_SUFFIX),
            index(TIME_INDEX_SUFFIX),
            index(TXN_INDEX_SUFFIX),
        );
        Self {
            base_offset,
            log: MappedFile::new(Arc::clone(dir), name(LOG_SUFFIX)),
            size: AtomicU32::new(size),
            appended_from: size,
            map_capacity: u64::from(config.segment_bytes),
            offset_index: OffsetIndex::new(offsets.0, offsets.1, base_offset, index_bytes),
            time_index: TimeIndex::new(times.0, times.1, base_offset, index_bytes),
            txn_index: TransactionIndex::new(txns.0, txns.1, base_offset),
            max_timestamp: Mutex::new(None),
            was_used: AtomicBool::new(false),
            needs_repair: AtomicBool::new(false),
        }
    }

    /// Makes the empty files of a new segment in `dir`; what was there under their names is gone.
    pub(crate) fn create(
        dir: &Arc<Path>,
        base_offset: i64,
        config: &LogConfig,
    ) -> Result<Self, StorageError> {
        Self::create_with_suffix(dir, base_offset, "", config)
    }

    /// As [`Self::create`], with names that end in `suffix`.
    pub(crate) fn create_with_suffix(
        dir: &Arc<Path>,
        base_offset: i64,
        suffix: &str,
        config: &LogConfig,
    ) -> Result<Self, StorageError> {
        let segment = Self::new(dir, base_offset, suffix, 0, config);
        let create = || -> io::Result<()> {
            segment.log.create()?;
            segment.offset_index.create()?;
            segment.time_index.create()?;
            segment.txn_index.create()
        };
        create().map_err(|error| StorageError::io("create", segment.path(), error))?;
        if config.preallocate
            && let Err(error) = segment.log.reserve(u64::from(config.segment_bytes))
        {
            segment.log.close();
            return Err(StorageError::io("reserve space for", segment.path(), error));
        }
        Ok(segment)
    }

    /// A segment whose files are there. Only the log's length is looked at.
    pub(crate) fn open(
        dir: &Arc<Path>,
        base_offset: i64,
        config: &LogConfig,
    ) -> Result<Self, StorageError> {
        let segment = Self::new(dir, base_offset, "", 0, config);
        let len = segment
            .log
            .file_len()
            .map_err(|error| StorageError::io("open", segment.path(), error))?;
        let size = u32::try_from(len)
            .ok()
            .filter(|size| i32::try_from(*size).is_ok())
            .ok_or_else(|| {
                StorageError::corrupt(segment.path(), format!("{len} bytes are too many"))
            })?;
        Ok(Self {
            size: AtomicU32::new(size),
            appended_from: size,
            ..segment
        })
    }

    pub(crate) fn base_offset(&self) -> i64 {
        self.base_offset
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.log.path()
    }

    /// The published bytes.
    pub(crate) fn size(&self) -> u32 {
        self.size.load(Ordering::Acquire)
    }

    /// Publishes what was written; the log end must have been published before.
    pub(crate) fn publish_size(&self, size: u32) {
        self.size.store(size, Ordering::Release);
    }

    /// Writes bytes at the published end without publishing them.
    pub(crate) fn write_at_end(&self, parts: &mut [IoSlice<'_>]) -> Result<(), StorageError> {
        self.note_use();
        self.log
            .write_at(u64::from(self.size()), parts)
            .map_err(|error| StorageError::io("append to", self.path(), error))
    }

    /// Reserves space on disk for `bytes` more behind the published end. A file system that cannot is no error.
    pub(crate) fn reserve_space(&self, bytes: u64) -> Result<(), StorageError> {
        match self.log.reserve(u64::from(self.size()) + bytes) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
            result => {
                result.map_err(|error| StorageError::io("reserve space for", self.path(), error))
            }
        }
    }

    /// Cuts off what a failed append may have left behind the published end.
    pub(crate) fn cut_unpublished(&self) -> Result<(), StorageError> {
        self.log
            .set_len(u64::from(self.size()))
            .map_err(|error| StorageError::io("cut", self.path(), error))
    }

    /// Cuts the segment to `size`; only while nobody reads, as when a log is opened.
    pub(crate) fn cut_to(&mut self, size: u32) -> Result<(), StorageError> {
        self.log.close();
        self.log
            .set_len(u64::from(size))
            .map_err(|error| StorageError::io("cut", self.path(), error))?;
        self.size = AtomicU32::new(size);
        self.appended_from = self.appended_from.min(size);
        *self.max_timestamp.get_mut() = None;
        Ok(())
    }

    fn note_use(&self) {
        // Read first: all readers of the segment share this.
        if !self.was_used.load(Ordering::Relaxed) {
            self.was_used.store(true, Ordering::Relaxed);
        }
    }

    /// A map over the published bytes up to `end`.
    pub(crate) fn map(&self, end: u32) -> Result<Arc<FileMap>, StorageError> {
        self.note_use();
        self.log
            .map(u64::from(end), self.map_capacity)
            .map_err(|error| StorageError::io("map", self.path(), error))
    }

    /// The bytes from `position` to `end` as a slice of the map.
    pub(crate) fn slice(&self, position: u32, end: u32) -> Result<Bytes, StorageError> {
        Ok(self.map(end)?.slice(position as usize..end as usize))
    }

    /// Whether the bytes from `position` on were appended by this process not long ago.
    pub(crate) fn is_hot(&self, position: u32) -> bool {
        position >= self.appended_from && position >= self.size().saturating_sub(HOT_BYTES)
    }

    /// Whether finding `offset` and reading `bytes` from there would not wait for the disk.
    pub(crate) fn is_resident_from(&self, offset: i64, bytes: usize) -> Result<bool, StorageError> {
        if !self.offset_index.is_resident() {
            return Ok(false);
        }
        let end = self.size();
        let position = self.indexed_position(offset, end);
        if self.is_hot(position) {
            return Ok(true);
        }
        let map = self.map(end)?;
        let until = (position as usize).saturating_add(bytes).min(end as usize);
        Ok(is_resident(map.get(position as usize..until)))
    }

    /// Starts to read what finding `offset` and reading `bytes` from there will touch, and what comes behind it.
    pub(crate) fn read_ahead(&self, offset: i64, bytes: usize) -> Result<(), StorageError> {
        let end = self.size();
        let position = self.indexed_position(offset, end) as usize;
        let until = position
            .saturating_add(bytes)
            .saturating_add(READ_AHEAD_BYTES)
            .min(end as usize);
        will_need(self.map(end)?.get(position..until));
        Ok(())
    }

    /// Where the index says to look for `offset`, unproved.
    fn indexed_position(&self, offset: i64, end: u32) -> u32 {
        match self.offset_index.lookup(offset) {
            Ok(Some(entry)) if entry.position < end => entry.position,
            _ => 0,
        }
    }

    /// Notes the largest timestamp after an append.
    pub(crate) fn set_max_timestamp(&self, max: Option<TimeEntry>) {
        *self.max_timestamp.lock() = max;
    }

    /// The largest timestamp, and the last offset of the batch that has it; None for an empty segment. Asks the
    /// time index of a segment that was not appended to since the start.
    pub(crate) fn max_timestamp(&self) -> Result<Option<TimeEntry>, StorageError> {
        if let Some(max) = *self.max_timestamp.lock() {
            return Ok(Some(max));
        }
        let size = self.size();
        if size == 0 {
            return Ok(None);
        }
        let max = match self.time_index.last() {
            Ok(Some(entry)) if self.is_entry_of_batch(&entry, size) => Some(entry),
            Ok(Some(_)) => {
                self.note_damage("the last time index entry is not of a batch");
                self.scan_max_timestamp(size)?
            }
            // Never written, or damaged: the batches know.
            Ok(None) => self.scan_max_timestamp(size)?,
            Err(error) => {
                self.note_damage(&error.to_string());
                self.scan_max_timestamp(size)?
            }
        };
        *self.max_timestamp.lock() = max;
        Ok(max)
    }

    /// When the log file was last changed, in ms.
    pub(crate) fn modified_ms(&self) -> Option<i64> {
        let modified = std::fs::metadata(self.path()).ok()?.modified().ok()?;
        let since = modified.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    }

    /// Notes that an index does not fit the log; the log builds it again soon.
    pub(crate) fn note_damage(&self, reason: &str) {
        if !self.needs_repair.swap(true, Ordering::Relaxed) {
            tracing::warn!(segment = %self.path().display(), reason, "index does not fit its log, it will be built again");
        }
    }

    /// Whether an index is to be built again; asking clears the mark.
    pub(crate) fn take_needs_repair(&self) -> bool {
        self.needs_repair.swap(false, Ordering::Relaxed)
    }

    /// Forces log and indexes to disk.
    pub(crate) fn sync(&self) -> Result<(), SyncError> {
        self.log.sync()?;
        unless_full(self.offset_index.sync())?;
        unless_full(self.time_index.sync())?;
        self.txn_index.sync()
    }

    /// Writes index entries that are still in memory.
    pub(crate) fn write_pending(&self) -> Result<(), StorageError> {
        without_space(self.offset_index.write_pending())
            .and_then(|()| without_space(self.time_index.write_pending()))
            .and_then(|()| self.txn_index.write_pending())
            .map_err(|error| StorageError::io("write the indexes of", self.path(), error))
    }

    /// Closes descriptors and maps unless they were used since the last call. Whether any is still open.
    pub(crate) fn close_if_idle(&self) -> bool {
        if self.was_used.swap(false, Ordering::Relaxed) {
            return true;
        }
        self.close();
        false
    }

    /// Closes descriptors and maps. Slices in flight stay good.
    pub(crate) fn close(&self) {
        self.log.close();
        for result in [self.offset_index.close(), self.time_index.close()] {
            if let Err(error) = result {
                tracing::warn!(segment = %self.path().display(), %error, "cannot write index entries");
            }
        }
        self.txn_index.close();
    }

    /// To be called before another segment gets the names of this one's files: readers that still hold this one
    /// go on with what is mapped now.
    pub(crate) fn retire(&self) -> Result<(), StorageError> {
        self.offset_index.retire();
        self.time_index.retire();
        self.log
            .retire(u64::from(self.size()))
            .map_err(|error| StorageError::io("map", self.path(), error))
    }

    /// Makes the files as old as those of `other`, which they replace.
    pub(crate) fn copy_modified_time(&self, other: &Self) -> io::Result<()> {
        let modified = std::fs::metadata(other.path())?.modified()?;
        std::fs::File::options()
            .write(true)
            .open(self.path())?
            .set_modified(modified)
    }

    /// Gives the files of a segment with names in `from` names in `to`. `order` says which goes when.
    pub(crate) fn rename_files(
        dir: &Path,
        base_offset: i64,
        order: [&str; 4],
        from: &str,
        to: &str,
    ) -> Result<(), StorageError> {
        for kind in order {
            let name = file_name(base_offset, kind);
            let old = dir.join(format!("{name}{from}"));
            match std::fs::rename(&old, dir.join(format!("{name}{to}"))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StorageError::io("rename", &old, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The paths of the segment's files that exist.
    fn files(&self) -> Vec<PathBuf> {
        [
            self.log.path(),
            self.offset_index.path(),
            self.time_index.path(),
            self.txn_index.path(),
        ]
        .into_iter()
        .filter(|path| path.exists())
        .collect()
    }

    /// Renames the files to `….deleted` and gives their new paths; the log goes first, so that a crash in
    /// between leaves indexes without a log, which the next start removes.
    pub(crate) fn rename_to_deleted(&self) -> Result<Vec<PathBuf>, StorageError> {
        self.retire()?;
        let mut renamed = Vec::new();
        for path in self.files() {
            let mut to = path.clone().into_os_string();
            to.push(DELETED_SUFFIX);
            std::fs::rename(&path, &to)
                .map_err(|error| StorageError::io("rename", &path, error))?;
            renamed.push(PathBuf::from(to));
        }
        Ok(renamed)
    }
}

/// A sparse index whose entries find no space stays as it is; that must not keep the log from being flushed.
fn without_space(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(()),
        other => other,
    }
}
