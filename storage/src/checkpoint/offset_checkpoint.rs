//! Offsets of many partitions in one file: `recovery-point-offset-checkpoint`, `replication-offset-checkpoint`,
//! `log-start-offset-checkpoint`, `cleaner-offset-checkpoint`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::{Durability, counted_lines, read_text, write_atomically};
use crate::errors::StorageError;
use crate::types::TopicPartition;

/// What is known to be on disk.
pub(crate) const RECOVERY_POINT_CHECKPOINT: &str = "recovery-point-offset-checkpoint";
/// High watermarks.
pub(crate) const REPLICATION_OFFSET_CHECKPOINT: &str = "replication-offset-checkpoint";
/// Log starts that are not a segment's beginning.
pub(crate) const LOG_START_OFFSET_CHECKPOINT: &str = "log-start-offset-checkpoint";

/// Offsets by partition, as a file.
pub(crate) struct OffsetCheckpoint;

impl OffsetCheckpoint {
    /// Reads the file `name` in `dir`. No file means no offsets. A damaged one counts as absent, and is
    /// reported: every offset in it can be done without.
    pub(crate) fn read(dir: &Path, name: &str) -> BTreeMap<TopicPartition, i64> {
        match Self::try_read(&dir.join(name)) {
            Ok(offsets) => offsets,
            Err(error) => {
                tracing::warn!(%error, "going on without an offset checkpoint");
                BTreeMap::new()
            }
        }
    }

    fn try_read(path: &Path) -> Result<BTreeMap<TopicPartition, i64>, StorageError> {
        let Some(text) = read_text(path)? else {
            return Ok(BTreeMap::new());
        };
        counted_lines(path, &text)?
            .into_iter()
            .map(|line| {
                parse_line(line)
                    .ok_or_else(|| StorageError::corrupt(path, format!("bad line {line:?}")))
            })
            .collect()
    }

    /// Writes the file `name` in `dir`, durably.
    pub(crate) fn write<'a>(
        dir: &Path,
        name: &str,
        offsets: impl ExactSizeIterator<Item = (&'a TopicPartition, i64)>,
    ) -> Result<(), StorageError> {
        let mut text = String::with_capacity(16 + 40 * offsets.len());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "0\n{}", offsets.len());
        for (topic_partition, offset) in offsets {
            let TopicPartition { topic, partition } = topic_partition;
            let _ = writeln!(text, "{topic} {partition} {offset}");
        }
        write_atomically(dir, name, text.as_bytes(), Durability::Synced)
    }
}

fn parse_line(line: &str) -> Option<(TopicPartition, i64)> {
    let mut fields = line.split_ascii_whitespace();
    let topic = fields.next()?;
    let partition = fields.next()?.parse().ok()?;
    let offset = fields.next()?.parse().ok()?;
    match fields.next() {
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
        let offsets = BTreeMap::from([
            (TopicPartition::new("a", 0), 5),
            (TopicPartition::new("a.b-c", 12), i64::MAX),
        ]);
        OffsetCheckpoint::write(dir.path(), "x", offsets.iter().map(|(tp, at)| (tp, *at)))
            .expect("written");
        assert_eq!(
            std::fs::read_to_string(dir.path().join("x")).expect("read"),
            "0\n2\na 0 5\na.b-c 12 9223372036854775807\n"
        );
        assert_eq!(OffsetCheckpoint::read(dir.path(), "x"), offsets);
        assert!(!dir.path().join("x.tmp").exists());
    }

    #[test]
    fn absent_and_damaged_files_count_as_empty() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(OffsetCheckpoint::read(dir.path(), "absent").is_empty());
        for text in [
            "",
            "1\n0\n",
            "0\n2\na 0 5\n",
            "0\n1\na 0\n",
            "0\n1\na 0 5 6\n",
        ] {
            std::fs::write(dir.path().join("x"), text).expect("written");
            assert!(
                OffsetCheckpoint::try_read(&dir.path().join("x")).is_err(),
                "{text:?}"
            );
            assert!(OffsetCheckpoint::read(dir.path(), "x").is_empty());
        }
    }
}
