//! The end of a broker's log as it lies on disk: also of one that does not run.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use highwater_storage::record_batch::{Batches, DecompressLimits, decode_records};

use super::view::TailRecord;

/// Records that are shown of a log.
const TAIL_RECORDS: usize = 14;
/// The most that is read at a time, in bytes.
const READ_BYTES: u64 = 1 << 20;
/// The longest part of a value that is shown, in letters.
const VALUE_LETTERS: usize = 24;

/// Reads a log again and again, each time only what is new.
#[derive(Debug, Default)]
pub(super) struct LogTail {
    /// The file that was read, and which one of that name it was.
    file: Option<(PathBuf, u64)>,
    position: u64,
    records: VecDeque<TailRecord>,
    end: i64,
}

impl LogTail {
    /// Reads what is new in the log in `dir`. A log that was cut, or another of that name, is read anew.
    ///
    /// # Errors
    /// When the log is there and cannot be read.
    pub(super) fn read(&mut self, dir: &Path) -> io::Result<()> {
        let Some(path) = last_segment(dir)? else {
            *self = LogTail::default();
            return Ok(());
        };
        let mut file = File::open(&path)?;
        let metadata = file.metadata()?;
        let is_same = self.file.as_ref() == Some(&(path.clone(), metadata.ino()));
        if !is_same || metadata.len() < self.position {
            *self = LogTail {
                end: base_offset(&path).unwrap_or(0),
                file: Some((path, metadata.ino())),
                ..LogTail::default()
            };
        }
        if metadata.len() > self.position {
            file.seek(SeekFrom::Start(self.position))?;
            let mut bytes = Vec::new();
            file.take(READ_BYTES).read_to_end(&mut bytes)?;
            self.take(&Bytes::from(bytes));
        }
        Ok(())
    }

    /// Takes in whole batches; what follows them is read the next time.
    fn take(&mut self, bytes: &Bytes) {
        let mut batches = Batches::new(bytes);
        while let Some(Ok((header, batch))) = batches.next() {
            let batch = bytes.slice_ref(batch);
            self.end = header.next_offset();
            let Ok(records) = decode_records(&batch, DecompressLimits::default()) else {
                continue;
            };
            for record in records.flatten() {
                let value = record.value.as_deref().unwrap_or_default();
                let value = String::from_utf8_lossy(value);
                self.records.push_back(TailRecord {
                    offset: record.offset,
                    leader_epoch: header.partition_leader_epoch,
                    value: value.chars().take(VALUE_LETTERS).collect(),
                });
                if self.records.len() > TAIL_RECORDS {
                    self.records.pop_front();
                }
            }
        }
        self.position += batches.position() as u64;
    }

    /// The last records.
    pub(super) fn records(&self) -> Vec<TailRecord> {
        self.records.iter().cloned().collect()
    }

    /// The offset after the last of them; `None` when there is no log.
    pub(super) fn end(&self) -> Option<i64> {
        self.file.as_ref().map(|_| self.end)
    }
}

/// The last segment of a log; `None` when there is no log.
fn last_segment(dir: &Path) -> io::Result<Option<PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let segments = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    // Their names are numbers of the same length.
    Ok(segments.max())
}

fn base_offset(segment: &Path) -> Option<i64> {
    segment.file_stem()?.to_str()?.parse().ok()
}

/// The leader epochs of a log and where they begin, from its checkpoint; none when it cannot be read.
pub(super) fn epochs(dir: &Path) -> Vec<(i32, i64)> {
    let text = std::fs::read_to_string(dir.join("leader-epoch-checkpoint")).unwrap_or_default();
    parse_epochs(&text)
}

fn parse_epochs(checkpoint: &str) -> Vec<(i32, i64)> {
    // Version and count come first.
    let lines = checkpoint.lines().skip(2);
    lines
        .filter_map(|line| {
            let (epoch, start) = line.split_once(' ')?;
            Some((epoch.parse().ok()?, start.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use highwater_storage::record_batch::RecordBatchBuilder;

    use super::*;

    fn batch(offset: i64, epoch: i32, value: &str) -> Bytes {
        let mut builder = RecordBatchBuilder::new()
            .base_offset(offset)
            .leader_epoch(epoch);
        builder.append(1, None, Some(value.as_bytes()));
        builder.build().expect("a batch")
    }

    fn values(tail: &LogTail) -> Vec<String> {
        let records = tail.records().into_iter();
        records
            .map(|record| format!("{}:{}:{}", record.offset, record.leader_epoch, record.value))
            .collect()
    }

    #[test]
    fn what_is_new_is_read_and_a_cut_log_anew() {
        let dir = tempfile::tempdir().expect("a directory");
        let segment = dir.path().join("00000000000000000000.log");
        let mut tail = LogTail::default();
        tail.read(&dir.path().join("none")).expect("no log");
        assert_eq!(tail.end(), None);
        let mut bytes = [batch(0, 0, "m0"), batch(1, 0, "dirty")].concat();
        std::fs::write(&segment, &bytes).expect("written");
        tail.read(dir.path()).expect("read");
        assert_eq!(
            (values(&tail), tail.end()),
            (vec!["0:0:m0".into(), "1:0:dirty".into()], Some(2))
        );
        // Half a batch is left for later.
        let next = batch(2, 1, "m2");
        bytes.extend(&next[..next.len() / 2]);
        std::fs::write(&segment, &bytes).expect("written");
        tail.read(dir.path()).expect("read");
        assert_eq!(tail.end(), Some(2));
        // Cut by renaming a shorter copy, as a truncation does.
        let copy = dir.path().join("copy");
        std::fs::write(
            &copy,
            [batch(0, 0, "m0"), batch(1, 1, "clean"), batch(2, 1, "m2")].concat(),
        )
        .expect("written");
        std::fs::rename(&copy, &segment).expect("renamed");
        tail.read(dir.path()).expect("read");
        assert_eq!(values(&tail), ["0:0:m0", "1:1:clean", "2:1:m2"]);
    }

    #[test]
    fn only_the_last_records_are_kept() {
        let mut tail = LogTail::default();
        let many: Vec<Bytes> = (0..40).map(|offset| batch(offset, 0, "x")).collect();
        tail.take(&Bytes::from(many.concat()));
        assert_eq!(tail.records().len(), TAIL_RECORDS);
        assert_eq!(tail.records()[TAIL_RECORDS - 1].offset, 39);
    }

    #[test]
    fn epochs_are_read_from_kafkas_file() {
        assert_eq!(parse_epochs("0\n2\n0 0\n4 17\n"), [(0, 0), (4, 17)]);
        assert_eq!(parse_epochs(""), []);
    }
}
