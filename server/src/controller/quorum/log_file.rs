//! The file behind the quorum's log: records that are only ever appended, each with its checksum.
//!
//! A record is its length, a CRC-32C of what follows, the position up to which the file was on disk when it was
//! written, and its content. A record that does not check out at the end is one whose write was cut off by a crash, and
//! is cut away; one that lies before what is known to have been on disk is damage, and is refused.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use highwater_storage::StorageError;

use crate::metadata::MetadataError;

/// Begins the file: its kind, and the version of the format.
const MAGIC: &[u8; 8] = b"hwquorum";
const VERSION: u32 = 1;
const HEADER_BYTES: u64 = 12;
/// Length, checksum and durable position before each record's content.
const FRAME_BYTES: usize = 16;
/// The longest record; a longer claim is no record.
const MAX_RECORD_BYTES: usize = 256 << 20;
/// Space is reserved in steps of this size.
const RESERVE_STEP_BYTES: u64 = 64 << 10;

/// Where a record lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    position: u64,
    /// Bytes of the content.
    len: u32,
}

impl Place {
    /// The bytes that the record takes in the file.
    pub(super) fn size_bytes(self) -> u64 {
        FRAME_BYTES as u64 + u64::from(self.len)
    }
}

/// An open log file.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    end: u64,
    synced: u64,
    reserved: u64,
}

impl LogFile {
    /// Opens the file, or makes an empty one, and gives each record to `on_record` in order. Blocks on the disk.
    pub(super) fn open(
        path: &Path,
        mut on_record: impl FnMut(&[u8], Place) -> Result<(), MetadataError>,
    ) -> Result<Self, MetadataError> {
        let failed = |error| StorageError::io("open", path, error);
        let is_new = !path.exists();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let mut log = Self {
            path: path.to_owned(),
            file,
            end: HEADER_BYTES,
            synced: 0,
            reserved: len,
        };
        if len < HEADER_BYTES {
            // New, or the write of the header was cut off: nothing was ever appended.
            log.write_header()?;
            if is_new {
                log.sync_dir()?;
            }
            return Ok(log);
        }
        log.check_header()?;
        while log.end < len {
            match log.read_frame(log.end, len)? {
                Some((content, _)) => {
                    let place = Place {
                        position: log.end,
                        len: content.len() as u32,
                    };
                    on_record(&content, place)?;
                    log.end += place.size_bytes();
                }
                None => {
                    log.cut_torn_tail(len)?;
                    break;
                }
            }
        }
        log.synced = log.end;
        Ok(log)
    }

    /// Where the next record will be.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// How much of the file is on disk for sure.
    #[cfg(test)]
    pub(super) fn synced(&self) -> u64 {
        self.synced.max(HEADER_BYTES)
    }

    /// Has every write from now on fail, as on a disk that is gone.
    #[cfg(test)]
    pub(super) fn fail_writes(&mut self) {
        self.file = File::open(&self.path).expect("the file opens");
    }

    /// Appends records with one write; they are not forced to disk yet. After an error the file is as before.
    pub(super) fn append(&mut self, contents: &[Vec<u8>]) -> Result<Vec<Place>, MetadataError> {
        let total = contents.iter().map(|content| FRAME_BYTES + content.len());
        let mut buffer = Vec::with_capacity(total.sum());
        let mut places = Vec::with_capacity(contents.len());
        for content in contents {
            places.push(Place {
                position: self.end + buffer.len() as u64,
                len: content.len() as u32,
            });
            put_frame(&mut buffer, self.synced, content);
        }
        if let Err(error) = self.file.write_all_at(&buffer, self.end) {
            // What is left behind the end is overwritten by the next append, or cut away at the next start.
            let _ = self.file.set_len(self.end);
            self.reserved = self.end;
            return Err(StorageError::io("append to", &self.path, error).into());
        }
        self.end += buffer.len() as u64;
        Ok(places)
    }

    /// Forces everything that was appended to disk.
    pub(super) fn sync(&mut self) -> Result<(), MetadataError> {
        if self.synced == self.end {
            return Ok(());
        }
        self.file
            .sync_data()
            .map_err(|error| StorageError::io("flush", &self.path, error))?;
        self.synced = self.end;
        Ok(())
    }

    /// The content of a record.
    pub(super) fn read(&self, place: Place) -> Result<Vec<u8>, MetadataError> {
        let limit = place.position + place.size_bytes();
        match self.read_frame(place.position, limit)? {
            Some((content, _)) => Ok(content),
            None => Err(self.corrupt(format!("the record at {} is damaged", place.position))),
        }
    }

    /// Reserves space for `bytes` more, and a step beyond, so that appends of so much do not fail on a full disk. A
    /// file system that cannot reserve is no error.
    pub(super) fn reserve(&mut self, bytes: u64) -> Result<(), MetadataError> {
        let needed = self.end + bytes + RESERVE_STEP_BYTES;
        if needed <= self.reserved {
            return Ok(());
        }
        let target = needed.next_multiple_of(RESERVE_STEP_BYTES);
        let mode = rustix::fs::FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, mode, 0, target).map_err(io::Error::from) {
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(()),
            Err(error) => Err(StorageError::io("reserve space for", &self.path, error).into()),
            Ok(()) => {
                self.reserved = target;
                Ok(())
            }
        }
    }

    /// Puts a new file with these records in place of this one: whole, or not at all.
    pub(super) fn rewrite(&mut self, contents: &[Vec<u8>]) -> Result<Vec<Place>, MetadataError> {
        let temporary = self.path.with_extension("tmp");
        let create = || -> io::Result<File> {
            match std::fs::remove_file(&temporary) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&temporary)
        };
        let mut new = Self {
            file: create().map_err(|error| StorageError::io("create", &temporary, error))?,
            path: temporary.clone(),
            end: HEADER_BYTES,
            synced: 0,
            reserved: 0,
        };
        let written = new
            .write_header()
            .and_then(|()| new.append(contents))
            .and_then(|places| new.sync().map(|()| places));
        let places = match written {
            Ok(places) => places,
            Err(error) => {
                let _ = std::fs::remove_file(&temporary);
                return Err(error);
            }
        };
        std::fs::rename(&temporary, &self.path)
            .map_err(|error| StorageError::io("rename", &temporary, error))?;
        new.path.clone_from(&self.path);
        *self = new;
        self.sync_dir()?;
        Ok(places)
    }

    fn write_header(&mut self) -> Result<(), MetadataError> {
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&VERSION.to_be_bytes());
        self.file
            .set_len(0)
            .and_then(|()| self.file.write_all_at(&header, 0))
            .map_err(|error| StorageError::io("write", &self.path, error).into())
    }

    fn check_header(&self) -> Result<(), MetadataError> {
        let mut header = [0; HEADER_BYTES as usize];
        self.file
            .read_exact_at(&mut header, 0)
            .map_err(|error| StorageError::io("read", &self.path, error))?;
        if header[..MAGIC.len()] != MAGIC[..] {
            return Err(self.corrupt("it is no log of a quorum".to_owned()));
        }
        if header[MAGIC.len()..] != VERSION.to_be_bytes() {
            return Err(self.corrupt("its format is of another release".to_owned()));
        }
        Ok(())
    }

    /// The record at `position` and the durable position in it, if it checks out and ends before `limit`.
    fn read_frame(
        &self,
        position: u64,
        limit: u64,
    ) -> Result<Option<(Vec<u8>, u64)>, MetadataError> {
        let failed = |error| StorageError::io("read", &self.path, error);
        let rest = limit.saturating_sub(position);
        if rest < FRAME_BYTES as u64 {
            return Ok(None);
        }
        let mut frame = [0; FRAME_BYTES];
        self.file
            .read_exact_at(&mut frame, position)
            .map_err(failed)?;
        let len = be_u32(&frame[..4]) as usize;
        if len > MAX_RECORD_BYTES || (len + FRAME_BYTES) as u64 > rest {
            return Ok(None);
        }
        let mut content = vec![0; len];
        self.file
            .read_exact_at(&mut content, position + FRAME_BYTES as u64)
            .map_err(failed)?;
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&frame[8..]), &content);
        let durable = u64::from(be_u32(&frame[8..12])) << 32 | u64::from(be_u32(&frame[12..]));
        Ok((checksum == be_u32(&frame[4..8])).then_some((content, durable)))
    }

    /// Cuts away a record that was not written whole, unless a later one says that it had been on disk.
    fn cut_torn_tail(&mut self, len: u64) -> Result<(), MetadataError> {
        let mut rest = vec![0; usize::try_from(len - self.end).unwrap_or(usize::MAX)];
        self.file
            .read_exact_at(&mut rest, self.end)
            .map_err(|error| StorageError::io("read", &self.path, error))?;
        for position in 1..rest.len() {
            let Some(frame) = rest[position..].first_chunk::<FRAME_BYTES>() else {
                break;
            };
            let content_len = be_u32(&frame[..4]) as usize;
            let Some(content) = rest[position + FRAME_BYTES..].get(..content_len) else {
                continue;
            };
            let durable = u64::from(be_u32(&frame[8..12])) << 32 | u64::from(be_u32(&frame[12..]));
            if durable <= self.end || durable > len {
                continue;
            }
            if crc32c::crc32c_append(crc32c::crc32c(&frame[8..]), content) == be_u32(&frame[4..8]) {
                return Err(self.corrupt(format!(
                    "the record at {} is damaged, and was whole when later ones were written",
                    self.end
                )));
            }
        }
        tracing::warn!(path = %self.path.display(), position = self.end, bytes = rest.len(), "cutting off a record that was not written whole");
        self.file
            .set_len(self.end)
            .map_err(|error| StorageError::io("cut", &self.path, error))?;
        self.reserved = self.end;
        Ok(())
    }

    fn sync_dir(&self) -> Result<(), MetadataError> {
        let Some(dir) = self.path.parent() else {
            return Ok(());
        };
        File::open(dir)
            .and_then(|dir| dir.sync_all())
            .map_err(|error| StorageError::io("flush", dir, error).into())
    }

    fn corrupt(&self, reason: String) -> MetadataError {
        MetadataError::Corrupt {
            path: self.path.display().to_string(),
            reason,
        }
    }
}

fn put_frame(buffer: &mut Vec<u8>, synced: u64, content: &[u8]) {
    let durable = synced.to_be_bytes();
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&durable), content);
    buffer.extend_from_slice(&(content.len() as u32).to_be_bytes());
    buffer.extend_from_slice(&checksum.to_be_bytes());
    buffer.extend_from_slice(&durable);
    buffer.extend_from_slice(content);
}

/// The first four bytes as a number; zeros where there are fewer.
fn be_u32(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk::<4>()
        .map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Result<(LogFile, Vec<Vec<u8>>), MetadataError> {
        let mut records = Vec::new();
        let log = LogFile::open(path, |content, _| {
            records.push(content.to_vec());
            Ok(())
        })?;
        Ok((log, records))
    }

    fn record(number: u8) -> Vec<u8> {
        vec![number; usize::from(number) * 7 + 1]
    }

    /// A file with these records, each forced to disk.
    fn written(path: &Path, numbers: &[u8]) -> Vec<Place> {
        let (mut log, _) = open(path).expect("opened");
        let mut places = Vec::new();
        for number in numbers {
            places.extend(log.append(&[record(*number)]).expect("appended"));
            log.sync().expect("on disk");
        }
        places
    }

    #[test]
    fn what_was_appended_is_read_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let places = written(&path, &[1, 2, 3]);
        let (mut log, records) = open(&path).expect("opened");
        assert_eq!(records, [record(1), record(2), record(3)]);
        assert_eq!(log.read(places[1]).expect("read"), record(2));
        let more = log.append(&[record(4), record(5)]).expect("appended");
        assert_eq!(log.read(more[1]).expect("read"), record(5));
        let kept = log.rewrite(&[record(3), record(5)]).expect("rewritten");
        assert_eq!(log.read(kept[0]).expect("read"), record(3));
        log.append(&[record(6)]).expect("appended");
        drop(log);
        assert_eq!(
            open(&path).expect("opened").1,
            [record(3), record(5), record(6)]
        );
    }

    #[test]
    fn wherever_the_last_write_is_cut_off_the_records_before_it_stay() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let places = written(&path, &[1, 2]);
        let whole = std::fs::read(&path).expect("read");
        for len in places[1].position..whole.len() as u64 {
            std::fs::write(&path, &whole[..len as usize]).expect("written");
            let (mut log, records) = open(&path).expect("opened");
            assert_eq!(records, [record(1)], "{len}");
            log.append(&[record(9)]).expect("appended");
            drop(log);
            assert_eq!(open(&path).expect("opened").1, [record(1), record(9)]);
        }
    }

    #[test]
    fn a_flipped_bit_in_a_record_that_was_on_disk_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let places = written(&path, &[1, 2, 3]);
        let whole = std::fs::read(&path).expect("read");
        let (from, to) = (places[1].position, places[2].position);
        for position in from..to {
            for bit in [1, 0x80] {
                let mut damaged = whole.clone();
                damaged[position as usize] ^= bit;
                std::fs::write(&path, &damaged).expect("written");
                let error = open(&path).expect_err("damaged");
                assert!(error.to_string().contains("is damaged"), "{error}");
            }
        }
        // In the last one it cannot be told from a write that was cut off.
        let mut damaged = whole.clone();
        *damaged.last_mut().expect("bytes") ^= 1;
        std::fs::write(&path, &damaged).expect("written");
        assert_eq!(open(&path).expect("opened").1.len(), 2);
        // Another kind of file.
        std::fs::write(&path, b"something else altogether").expect("written");
        assert!(open(&path).is_err());
    }
}
