//! A file that is appended to by `pwritev` and read through a memory map.
//!
//! The map is made once, over the file's largest size, and sees what is written later, since both are views of
//! the page cache. The file's length stays the length of its data, so a full disk is an error from a call and
//! not a signal. Two rules make the map safe, and the callers in this crate keep them:
//!
//! 1. Nobody looks past the published end of the data: beyond the file's end a touch raises SIGBUS.
//! 2. Published bytes never change and are never cut off: truncation below the published end copies what is
//!    kept to a new file. Slices handed out stay good after the file was renamed, unlinked or closed.
//!
//! File and map are opened when they are needed and closed when they have been idle, so that ten thousand
//! partitions cost neither descriptors nor maps. This is the only file of the project with `unsafe` in it.
#![allow(unsafe_code)]

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use memmap2::{Advice, Mmap, MmapOptions};

const PAGE_BYTES: usize = 4096;
/// `mincore` is asked about this many pages at a time.
const PAGES_PER_QUESTION: usize = 1024;

/// Why a file may not be on disk.
#[derive(Debug)]
pub(crate) enum SyncError {
    /// It came to no try. What is in the page cache stays there, and a later try may work.
    NotTried(io::Error),
    /// The system tried and failed. It may have dropped what it could not write, so that a later try would succeed
    /// without it.
    Failed(io::Error),
}

impl From<io::Error> for SyncError {
    fn from(error: io::Error) -> Self {
        Self::NotTried(error)
    }
}

impl SyncError {
    /// What the system said.
    pub(crate) fn into_source(self) -> io::Error {
        match self {
            Self::NotTried(error) | Self::Failed(error) => error,
        }
    }

    fn kind(&self) -> io::ErrorKind {
        match self {
            Self::NotTried(error) | Self::Failed(error) => error.kind(),
        }
    }
}

/// As `result`, but fine when there is no such file.
pub(crate) fn unless_absent(result: Result<(), SyncError>) -> Result<(), SyncError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// As `result`, but fine when there was no space.
pub(crate) fn unless_full(result: Result<(), SyncError>) -> Result<(), SyncError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(()),
        other => other,
    }
}

/// A file under one path, with its descriptor and its map while they are needed.
#[derive(Debug)]
pub(crate) struct MappedFile {
    dir: Arc<Path>,
    name: Box<str>,
    file: ArcSwapOption<File>,
    map: ArcSwapOption<FileMap>,
    /// The path will belong to another file, so it must not be opened any more.
    is_retired: AtomicBool,
}

impl MappedFile {
    /// The file `name` in `dir`; nothing is opened.
    pub(crate) fn new(dir: Arc<Path>, name: impl Into<Box<str>>) -> Self {
        Self {
            dir,
            name: name.into(),
            file: ArcSwapOption::empty(),
            map: ArcSwapOption::empty(),
            is_retired: AtomicBool::new(false),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.join(&*self.name)
    }

    /// Makes an empty file; whatever was there is gone. The descriptor is closed again.
    pub(crate) fn create(&self) -> io::Result<()> {
        self.close();
        File::create(self.path()).map(drop)
    }

    /// The open file, for reading and writing.
    fn file(&self) -> io::Result<Arc<File>> {
        if let Some(file) = self.file.load_full() {
            return Ok(file);
        }
        let file = Arc::new(
            File::options()
                .read(true)
                .write(true)
                .create(false)
                .open(self.path())?,
        );
        // Asked after the file was opened: whoever takes the path away has said so before.
        if self.is_retired.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.file.store(Some(Arc::clone(&file)));
        Ok(file)
    }

    /// Opens the file for appending, making it when it is absent.
    pub(crate) fn open_or_create(&self) -> io::Result<()> {
        if self.file.load().is_none() {
            let file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(self.path())?;
            self.file.store(Some(Arc::new(file)));
        }
        Ok(())
    }

    /// The file's length in bytes; an error of kind NotFound when it is absent.
    pub(crate) fn file_len(&self) -> io::Result<u64> {
        match self.file.load().as_ref() {
            Some(file) => file.metadata().map(|metadata| metadata.len()),
            None => std::fs::metadata(self.path()).map(|metadata| metadata.len()),
        }
    }

    /// Writes all of `parts` at `position`. After an error some of it may be in the file.
    pub(crate) fn write_at(&self, mut position: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let file = self.file()?;
        let mut parts = parts;
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            match rustix::io::pwritev(&*file, parts, position) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    position += written as u64;
                    IoSlice::advance_slices(&mut parts, written);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Cuts what lies behind `len`, which must be unpublished, or fills up with zeros.
    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        self.file()?.set_len(len)
    }

    /// Reserves blocks up to `len` without changing the file's length.
    pub(crate) fn reserve(&self, len: u64) -> io::Result<()> {
        let mode = rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&*self.file()?, mode, 0, len).map_err(io::Error::from)
    }

    /// Forces the data to disk.
    pub(crate) fn sync(&self) -> Result<(), SyncError> {
        self.file()?.sync_data().map_err(SyncError::Failed)
    }

    /// A map that covers the first `end` bytes. It is made over `capacity` bytes, or `end` if that is more, and
    /// kept for later calls. `end` must not exceed the published length.
    pub(crate) fn map(&self, end: u64, capacity: u64) -> io::Result<Arc<FileMap>> {
        if let Some(map) = self.map.load_full()
            && map.len() >= end
        {
            return Ok(map);
        }
        let map = Arc::new(FileMap::new(&*self.file()?, end.max(capacity))?);
        self.map.store(Some(Arc::clone(&map)));
        Ok(map)
    }

    /// To be called before the path is given to another file: maps the first `end` bytes for readers that still
    /// hold this one, and opens the path never again.
    pub(crate) fn retire(&self, end: u64) -> io::Result<()> {
        let mapped = self.map(end, end);
        self.is_retired.store(true, Ordering::SeqCst);
        mapped.map(drop)
    }

    /// Closes descriptor and map; slices in flight keep the map alive. Whether anything was open.
    pub(crate) fn close(&self) -> bool {
        let map = self.map.swap(None).is_some();
        let file = self.file.swap(None).is_some();
        map || file
    }
}

/// A read-only map of a file, longer than the file may be.
pub(crate) struct FileMap {
    bytes: Bytes,
}

/// The length only: the map reaches beyond the file's end, where nothing may be read.
impl fmt::Debug for FileMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileMap")
            .field("len", &self.bytes.len())
            .finish()
    }
}

struct MapOwner(Mmap);

impl AsRef<[u8]> for MapOwner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl FileMap {
    fn new(file: &File, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        if len == 0 {
            return Ok(Self {
                bytes: Bytes::new(),
            });
        }
        // SAFETY: a map is unsound when its bytes change or vanish under a reader. Readers only look at published
        // bytes, and those are neither overwritten nor cut off while any process of ours has them mapped (rules 1
        // and 2 above). Other processes are kept out of the directory by its lock file.
        let map = unsafe { MmapOptions::new().len(len).map(file)? };
        // Reading ahead is asked for by `will_need` alone. Left to page faults it happens in whatever touches the
        // marked page: a write to a socket, on a thread that serves other connections.
        map.advise(Advice::Random)?;
        Ok(Self {
            bytes: Bytes::from_owner(MapOwner(map)),
        })
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The published bytes in `range`, borrowed; empty when the range is not covered.
    pub(crate) fn get(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// The published bytes in `range`, sharing the map. The range must be covered.
    pub(crate) fn slice(&self, range: Range<usize>) -> Bytes {
        self.bytes.slice(range)
    }
}

fn page_range(bytes: &[u8]) -> (*const u8, usize) {
    let start = bytes.as_ptr();
    let before = start.addr() % PAGE_BYTES;
    (start.wrapping_sub(before), before + bytes.len())
}

/// Whether all pages of `bytes`, a part of a [`FileMap`], are in the page cache. When the system does not say,
/// they count as absent.
pub(crate) fn is_resident(bytes: &[u8]) -> bool {
    if bytes.is_empty() {
        return true;
    }
    let (start, len) = page_range(bytes);
    let mut states = [0u8; PAGES_PER_QUESTION];
    let mut done = 0;
    while done < len {
        let part = (len - done).min(PAGES_PER_QUESTION * PAGE_BYTES);
        let pages = part.div_ceil(PAGE_BYTES);
        // SAFETY: `start` is page-aligned, the pages are part of a live map (`bytes` borrows from it), and
        // `states` has room for one byte per page asked about. The call reads no memory of the map.
        let result = unsafe {
            libc::mincore(
                start.wrapping_add(done).cast_mut().cast(),
                part,
                states.as_mut_ptr().cast(),
            )
        };
        if result != 0 || states[..pages].iter().any(|state| state & 1 == 0) {
            return false;
        }
        done += part;
    }
    true
}

/// Starts to read all pages of `bytes`, a part of a [`FileMap`], into the page cache, without waiting for them.
/// Where the system cannot, they are read when they are touched.
pub(crate) fn will_need(bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let (start, len) = page_range(bytes);
    // SAFETY: the range is page-aligned and part of a live map; the advice changes no byte.
    let advised =
        unsafe { rustix::mm::madvise(start.cast_mut().cast(), len, rustix::mm::Advice::WillNeed) };
    if let Err(error) = advised {
        tracing::debug!(%error, "pages cannot be read ahead");
    }
}

/// Brings all pages of `bytes`, a part of a [`FileMap`], into the page cache and this process's page table;
/// waits for the disk.
pub(crate) fn prefault(bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    // All at once, not page by page.
    will_need(bytes);
    let (start, len) = page_range(bytes);
    // SAFETY: the range is page-aligned and part of a live map; populating for reading changes no byte.
    let result = unsafe {
        rustix::mm::madvise(
            start.cast_mut().cast(),
            len,
            rustix::mm::Advice::LinuxPopulateRead,
        )
    };
    match result {
        Ok(()) => Ok(()),
        // Linux before 5.14: touch each page instead.
        Err(rustix::io::Errno::INVAL) => {
            let mut sum = 0u8;
            for byte in bytes.iter().step_by(PAGE_BYTES).chain(bytes.last()) {
                sum = sum.wrapping_add(*byte);
            }
            std::hint::black_box(sum);
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_file() -> (tempfile::TempDir, MappedFile) {
        let dir = tempfile::tempdir().expect("a directory");
        let file = MappedFile::new(dir.path().into(), "00000000000000000000.log");
        file.create().expect("created");
        (dir, file)
    }

    #[test]
    fn a_map_made_before_a_write_sees_it() {
        let (_dir, file) = new_file();
        file.write_at(0, &mut [IoSlice::new(b"abc")])
            .expect("written");
        let map = file.map(3, 1 << 20).expect("mapped");
        let later: Vec<u8> = (0..100_000).map(|i| i as u8).collect();
        file.write_at(3, &mut [IoSlice::new(b""), IoSlice::new(&later)])
            .expect("written");
        assert_eq!(map.get(0..3), b"abc");
        assert_eq!(map.get(3..100_003), &later[..]);
        assert_eq!(file.file_len().expect("known"), 100_003);
    }

    #[test]
    fn a_map_beyond_the_end_of_the_file_can_be_shown() {
        let (_dir, file) = new_file();
        file.write_at(0, &mut [IoSlice::new(b"abc")])
            .expect("written");
        let _map = file.map(3, 1 << 20).expect("mapped");
        assert!(format!("{file:?}").contains("FileMap { len: 1048576 }"));
    }

    #[test]
    fn slices_outlive_close_and_unlink() {
        let (_dir, file) = new_file();
        file.write_at(0, &mut [IoSlice::new(b"abcdef")])
            .expect("written");
        let slice = file.map(6, 100).expect("mapped").slice(2..4);
        assert!(file.close());
        assert!(!file.close());
        std::fs::remove_file(file.path()).expect("unlinked");
        assert_eq!(&slice[..], b"cd");
    }

    #[test]
    fn a_longer_end_than_the_map_makes_a_new_map() {
        let (_dir, file) = new_file();
        file.write_at(0, &mut [IoSlice::new(&[7; 10_000])])
            .expect("written");
        assert_eq!(file.map(10, 10).expect("mapped").get(0..10), &[7; 10]);
        assert_eq!(
            file.map(10_000, 10).expect("mapped").get(9_990..10_000),
            &[7; 10]
        );
    }

    #[test]
    fn what_was_just_written_is_resident_and_can_be_prefaulted() {
        let (_dir, file) = new_file();
        file.write_at(0, &mut [IoSlice::new(&[7; 100_000])])
            .expect("written");
        let slice = file
            .map(100_000, 1 << 30)
            .expect("mapped")
            .slice(5_000..100_000);
        assert!(is_resident(&slice));
        prefault(&slice).expect("prefaulted");
        prefault(&slice[..0]).expect("nothing to do");
    }

    #[test]
    fn reserving_space_does_not_change_the_length() {
        let (_dir, file) = new_file();
        match file.reserve(1 << 20) {
            Ok(()) => assert_eq!(file.file_len().expect("known"), 0),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported),
        }
    }

    #[test]
    fn a_retired_file_is_not_mistaken_for_its_successor() {
        let (_dir, file) = new_file();
        file.write_at(0, &mut [IoSlice::new(b"old bytes")])
            .expect("written");
        file.close();
        file.retire(9).expect("mapped");
        std::fs::write(file.path(), b"new").expect("replaced");
        // The successor has other bytes in the same file here; what matters is which map is used.
        assert_eq!(file.map(9, 9).expect("mapped before").len(), 9);
        file.close();
        assert!(file.map(3, 3).is_err());
    }

    #[test]
    fn an_absent_file_is_an_error_not_a_new_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = MappedFile::new(dir.path().into(), "x.log");
        let kind = |error: io::Error| error.kind();
        assert_eq!(
            file.map(0, 10).map_err(kind).err(),
            Some(io::ErrorKind::NotFound)
        );
        assert_eq!(file.file_len().map_err(kind), Err(io::ErrorKind::NotFound));
        assert_eq!(
            file.write_at(0, &mut [IoSlice::new(b"x")]).map_err(kind),
            Err(io::ErrorKind::NotFound)
        );
    }
}
