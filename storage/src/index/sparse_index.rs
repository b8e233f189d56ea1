//! What the offset index and the time index share: fixed-size entries in ascending order, of which some are in
//! the file and the newest few still in memory.
//!
//! An index may always lack entries: look-ups then start earlier in the log and scan a little more. So a failed
//! write loses nothing, and a file that does not make sense is emptied and built again by whoever notices.

use std::io::{self, IoSlice};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::mapped_file::{FileMap, MappedFile, SyncError, is_resident, unless_absent};

/// This many new entries are kept in memory before they are written together.
const PENDING_ENTRIES: usize = 64;
/// When they cannot be written (a full disk), at most this many are kept; further ones are dropped.
const MAX_PENDING_ENTRIES: usize = 1024;
/// `entries_in_file` before the file was looked at.
const NOT_LOADED: usize = usize::MAX;

/// An entry of fixed size.
pub(crate) trait Entry: Copy + std::fmt::Debug {
    /// Its size in the file.
    const BYTES: usize;
    /// Writes it behind what is in `out`.
    fn encode(&self, base_offset: i64, out: &mut Vec<u8>);
    /// Reads it from exactly [`Entry::BYTES`] bytes.
    fn decode(base_offset: i64, bytes: &[u8]) -> Self;
    /// Whether `self` may come right after `earlier`.
    fn follows(&self, earlier: &Self) -> bool;
    /// Whether it can be in a segment that begins at `base_offset` at all.
    fn is_sane(&self, base_offset: i64) -> bool;
}

/// An index file of entries `E`.
#[derive(Debug)]
pub(crate) struct SparseIndex<E> {
    base_offset: i64,
    max_bytes: u64,
    file: MappedFile,
    entries_in_file: AtomicUsize,
    /// Entries that are not in the file yet. Held for moments only, never while the file is written.
    pending: Mutex<Vec<E>>,
    entry: PhantomData<E>,
}

impl<E: Entry> SparseIndex<E> {
    pub(crate) fn new(dir: Arc<Path>, name: String, base_offset: i64, max_bytes: u32) -> Self {
        Self {
            base_offset,
            max_bytes: u64::from(max_bytes),
            file: MappedFile::new(dir, name),
            entries_in_file: AtomicUsize::new(NOT_LOADED),
            pending: Mutex::new(Vec::new()),
            entry: PhantomData,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.file.path()
    }

    /// Makes an empty file.
    pub(crate) fn create(&self) -> io::Result<()> {
        self.pending.lock().clear();
        self.file.create()?;
        self.entries_in_file.store(0, Ordering::Release);
        Ok(())
    }

    /// Whether the file is there and its length is a whole number of entries: all that can be said without
    /// reading it.
    pub(crate) fn looks_whole(&self) -> bool {
        self.file
            .file_len()
            .is_ok_and(|len| len.is_multiple_of(E::BYTES as u64))
    }

    /// How many entries are in the file; reads and checks it the first time. Zeros at the end, as Apache Kafka
    /// leaves them in the index of an active segment after a crash, make no sense.
    fn load(&self) -> io::Result<usize> {
        let entries = self.entries_in_file.load(Ordering::Acquire);
        if entries != NOT_LOADED {
            return Ok(entries);
        }
        let len = self.file.file_len()?;
        if !len.is_multiple_of(E::BYTES as u64) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("length {len} is not a whole number of entries"),
            ));
        }
        let entries = (len / E::BYTES as u64) as usize;
        if entries > 0 {
            let map = self.map(entries)?;
            self.check_order(&map, entries)?;
        }
        // Lost to a concurrent load of the same file, or to an append after one: theirs is newer.
        match self.entries_in_file.compare_exchange(
            NOT_LOADED,
            entries,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => Ok(entries),
            Err(newer) => Ok(newer),
        }
    }

    fn check_order(&self, map: &FileMap, entries: usize) -> io::Result<()> {
        let mut earlier: Option<E> = None;
        for number in 0..entries {
            let entry = self.entry_in(map, number);
            if !entry.is_sane(self.base_offset)
                || earlier.is_some_and(|earlier| !entry.follows(&earlier))
            {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("entry {number} cannot be: {entry:?} after {earlier:?}"),
                ));
            }
            earlier = Some(entry);
        }
        Ok(())
    }

    fn map(&self, entries: usize) -> io::Result<Arc<FileMap>> {
        self.file.map((entries * E::BYTES) as u64, self.max_bytes)
    }

    fn entry_in(&self, map: &FileMap, number: usize) -> E {
        let bytes = map.get(number * E::BYTES..(number + 1) * E::BYTES);
        E::decode(self.base_offset, bytes)
    }

    /// Whether another entry would exceed the largest size.
    pub(crate) fn is_full(&self) -> bool {
        let in_file = match self.entries_in_file.load(Ordering::Acquire) {
            NOT_LOADED => 0,
            entries => entries,
        };
        let entries = in_file + self.pending.lock().len();
        ((entries + 1) * E::BYTES) as u64 > self.max_bytes
    }

    /// The last entry, if there is one.
    pub(crate) fn last(&self) -> io::Result<Option<E>> {
        if let Some(entry) = self.pending.lock().last() {
            return Ok(Some(*entry));
        }
        match self.load()? {
            0 => Ok(None),
            entries => Ok(Some(self.entry_in(&*self.map(entries)?, entries - 1))),
        }
    }

    /// The last entry for which `is_before` holds; it must hold for a first part of the entries and for none
    /// after. The newest entries are looked at first.
    pub(crate) fn last_where(&self, is_before: impl Fn(&E) -> bool) -> io::Result<Option<E>> {
        // Pending first: an entry moves from there to the file, never back, so none is missed.
        {
            let pending = self.pending.lock();
            match pending.partition_point(&is_before) {
                0 => {}
                count => return Ok(Some(pending[count - 1])),
            }
        }
        let entries = self.load()?;
        if entries == 0 {
            return Ok(None);
        }
        let map = self.map(entries)?;
        let (mut low, mut high) = (0, entries);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(&self.entry_in(&map, middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(match low {
            0 => None,
            count => Some(self.entry_in(&map, count - 1)),
        })
    }

    /// Whether a look-up would not wait for the disk.
    pub(crate) fn is_resident(&self) -> bool {
        match self.entries_in_file.load(Ordering::Acquire) {
            NOT_LOADED => self.file.file_len().is_ok_and(|len| len == 0),
            0 => true,
            entries => self
                .map(entries)
                .is_ok_and(|map| is_resident(map.get(0..entries * E::BYTES))),
        }
    }

    /// Adds an entry behind the last. One that does not fit or cannot be written is left out.
    pub(crate) fn append(&self, entry: E) {
        if self.is_full() {
            return;
        }
        let due = {
            let mut pending = self.pending.lock();
            if pending.len() >= MAX_PENDING_ENTRIES {
                return;
            }
            pending.push(entry);
            pending.len().is_multiple_of(PENDING_ENTRIES)
        };
        if due && let Err(error) = self.write_pending() {
            tracing::warn!(index = %self.path().display(), %error, "cannot write index entries, trying again later");
        }
    }

    /// Writes the entries that are only in memory. Must not run beside another write of the same index; the
    /// log's writer lock sees to that.
    pub(crate) fn write_pending(&self) -> io::Result<()> {
        let (bytes, count) = {
            let pending = self.pending.lock();
            let mut bytes = Vec::with_capacity(pending.len() * E::BYTES);
            for entry in pending.iter() {
                entry.encode(self.base_offset, &mut bytes);
            }
            (bytes, pending.len())
        };
        if count == 0 {
            return Ok(());
        }
        self.file.open_or_create()?;
        let entries = match self.load() {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                // Too damaged to continue; what is in memory is the beginning of a new one.
                self.file.set_len(0)?;
                self.entries_in_file.store(0, Ordering::Release);
                0
            }
            Err(error) => return Err(error),
        };
        self.file
            .write_at((entries * E::BYTES) as u64, &mut [IoSlice::new(&bytes)])?;
        let mut pending = self.pending.lock();
        self.entries_in_file
            .store(entries + count, Ordering::Release);
        pending.drain(..count);
        if pending.is_empty() {
            pending.shrink_to(PENDING_ENTRIES);
        }
        Ok(())
    }

    /// Writes what is only in memory and forces the file to disk.
    pub(crate) fn sync(&self) -> Result<(), SyncError> {
        self.write_pending()?;
        unless_absent(self.file.sync())
    }

    /// To be called before the path is given to another file; see [`MappedFile::retire`].
    pub(crate) fn retire(&self) {
        let end = self.load().unwrap_or(0) * E::BYTES;
        if let Err(error) = self.file.retire(end as u64) {
            tracing::debug!(index = %self.path().display(), %error, "an old index cannot be mapped, look-ups in it will scan");
        }
    }

    /// Replaces the whole index: the file is written anew beside the old one and renamed over it, since the old
    /// one may be mapped. On a full disk the index is empty then, and look-ups scan.
    pub(crate) fn replace(&self, entries: &[E]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(entries.len() * E::BYTES);
        for entry in entries {
            entry.encode(self.base_offset, &mut bytes);
        }
        let path = self.path();
        let mut new_path = path.clone().into_os_string();
        new_path.push(".tmp");
        let written = std::fs::write(&new_path, &bytes)
            .and_then(|()| std::fs::rename(&new_path, &path))
            .map(|()| entries.len());
        let entries_in_file = match written {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                tracing::warn!(index = %path.display(), %error, "going on without the index");
                for path in [Path::new(&new_path), &path] {
                    match std::fs::remove_file(path) {
                        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                        _ => {}
                    }
                }
                0
            }
            written => written?,
        };
        self.pending.lock().clear();
        self.file.close();
        self.entries_in_file
            .store(entries_in_file, Ordering::Release);
        Ok(())
    }

    /// All entries, in order.
    pub(crate) fn entries(&self) -> io::Result<Vec<E>> {
        let in_file = self.load()?;
        let mut entries = Vec::with_capacity(in_file);
        if in_file > 0 {
            let map = self.map(in_file)?;
            entries.extend((0..in_file).map(|number| self.entry_in(&map, number)));
        }
        entries.extend(self.pending.lock().iter());
        Ok(entries)
    }

    /// Writes what is only in memory, then closes descriptor and map. What cannot be written stays in memory.
    pub(crate) fn close(&self) -> io::Result<()> {
        let result = self.write_pending();
        self.file.close();
        let mut pending = self.pending.lock();
        if pending.is_empty() {
            *pending = Vec::new();
        }
        result
    }
}
