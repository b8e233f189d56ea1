//! Offsets of many partitions in one file: `recovery-point-offset-checkpoint`, `replication-offset-checkpoint`,
//! `log-start-offset-checkpoint`, `cleaner-offset-checkpoint`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::{Durability, counted_lines, read_text, write_atomically};
use crate::errors::StorageError;
use crate::types::TopicPartition;

/// What is known to be on disk.
pub(crate) const RECOVERY_POINT_CHECKPOINT: &str = "recovery-point-offset-checkpoint";
/// High watermarks.
pub(crate) const REPLICATION_OFFSET_CHECKPOINT: &str = "replication-offset-checkpoint";
/// Log starts that are not a segment's beginning.
pub(crate) const LOG_START_OFFSET_CHECKPOINT: &str = "log-start-offset-checkpoint";

/// Where compaction goes on.
pub(crate) const CLEANER_OFFSET_CHECKPOINT: &str = "cleaner-offset-checkpoint";

/// A file of offsets by partition, and what is in it.
#[derive(Debug)]
pub(crate) struct OffsetCheckpoint {
    dir: PathBuf,
    name: &'static str,
    offsets: Mutex<BTreeMap<TopicPartition, i64>>,
}

impl OffsetCheckpoint {
    /// Reads the file `name` in `dir`. No file means no offsets. A damaged one counts as absent, and is reported:
    /// every offset in it can be done without.
    pub(crate) fn open(dir: &Path, name: &'static str) -> Self {
        let offsets = read(&dir.join(name)).unwrap_or_else(|error| {
            tracing::warn!(%error, "going on without an offset checkpoint");
            BTreeMap::new()
        });
        Self {
            dir: dir.to_owned(),
            name,
            offsets: Mutex::new(offsets),
        }
    }

    /// The partition's offset in the file.
    pub(crate) fn get(&self, topic_partition: &TopicPartition) -> Option<i64> {
        self.offsets.lock().get(topic_partition).copied()
    }

    /// Makes the file hold these offsets and no others.
    pub(crate) fn replace(
        &self,
        offsets: BTreeMap<TopicPartition, i64>,
    ) -> Result<(), StorageError> {
        self.change(|known| *known = offsets)
    }

    /// Puts one offset into the file.
    pub(crate) fn set(
        &self,
        topic_partition: &TopicPartition,
        offset: i64,
    ) -> Result<(), StorageError> {
        self.change(|known| {
            known.insert(topic_partition.clone(), offset);
        })
    }

    /// Lowers the partition's offset, if it has a higher one.
    pub(crate) fn lower(
        &self,
        topic_partition: &TopicPartition,
        offset: i64,
    ) -> Result<(), StorageError> {
        self.change(|known| {
            if let Some(known) = known.get_mut(topic_partition) {
                *known = offset.min(*known);
            }
        })
    }

    /// Takes a partition out of the file.
    pub(crate) fn remove(&self, topic_partition: &TopicPartition) -> Result<(), StorageError> {
        self.change(|known| {
            known.remove(topic_partition);
        })
    }

    /// Changes what the file holds, durably, if that is a change. After an error it holds what it did.
    fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<TopicPartition, i64>),
    ) -> Result<(), StorageError> {
        let mut known = self.offsets.lock();
        let mut changed = known.clone();
        change(&mut changed);
        if *known != changed {
            write(&self.dir, self.name, &changed)?;
            *known = changed;
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<BTreeMap<TopicPartition, i64>, StorageError> {
    let Some(text) = read_text(path)? else {
        return Ok(BTreeMap::new());
    };
    // Apache Kafka leaves the cleaner's file empty until it has something to say.
    if text.is_empty() {
        return Ok(BTreeMap::new());
    }
    counted_lines(path, &text)?
        .into_iter()
        .map(|line| {
            parse_line(line)
                .ok_or_else(|| StorageError::corrupt(path, format!("bad line {line:?}")))
        })
        .collect()
}

fn write(
    dir: &Path,
    name: &str,
    offsets: &BTreeMap<TopicPartition, i64>,
) -> Result<(), StorageError> {
    let mut text = String::with_capacity(16 + 40 * offsets.len());
    // Writing to a string cannot fail.
    let _ = writeln!(text, "0\n{}", offsets.len());
    for (TopicPartition { topic, partition }, offset) in offsets {
        let _ = writeln!(text, "{topic} {partition} {offset}");
    }
    write_atomically(dir, name, text.as_bytes(), Durability::Synced)
}

fn parse_line(line: &str) -> Option<(TopicPartition, i64)> {
    let mut fields = line.split_ascii_whitespace();
    let topic = fields.next()?;
    let partition = fields.next()?.parse().ok()?;
    let offset = fields.next()?.parse().ok()?;
    match fields.next() {
        None if offset < 0 => None,
        None => Some((TopicPartition::new(topic, partition), offset)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_survive_a_round_trip_in_kafkas_format() {
        let dir = tempfile::tempdir().expect("a directory");
        let (a, b) = (
            TopicPartition::new("a", 0),
            TopicPartition::new("a.b-c", 12),
        );
        let checkpoint = OffsetCheckpoint::open(dir.path(), "x");
        checkpoint.set(&b, i64::MAX).expect("written");
        checkpoint.set(&a, 5).expect("written");
        let text = || std::fs::read_to_string(dir.path().join("x")).expect("read");
        assert_eq!(text(), "0\n2\na 0 5\na.b-c 12 9223372036854775807\n");
        assert!(!dir.path().join("x.tmp").exists());
        let again = OffsetCheckpoint::open(dir.path(), "x");
        assert_eq!((again.get(&a), again.get(&b)), (Some(5), Some(i64::MAX)));
        again.lower(&a, 7).expect("no change");
        again.lower(&b, 7).expect("written");
        again.remove(&a).expect("written");
        assert_eq!(text(), "0\n1\na.b-c 12 7\n");
    }

    #[test]
    fn absent_and_damaged_files_count_as_empty() {
        let dir = tempfile::tempdir().expect("a directory");
        let tp = TopicPartition::new("a", 0);
        assert_eq!(OffsetCheckpoint::open(dir.path(), "absent").get(&tp), None);
        for text in [
            "1\n0\n",
            "0\n2\na 0 5\n",
            "0\n1\na 0\n",
            "0\n1\na 0 -5\n",
            "0\n1\na 0 5 6\n",
        ] {
            std::fs::write(dir.path().join("x"), text).expect("written");
            assert!(read(&dir.path().join("x")).is_err(), "{text:?}");
            assert_eq!(OffsetCheckpoint::open(dir.path(), "x").get(&tp), None);
        }
    }
}
