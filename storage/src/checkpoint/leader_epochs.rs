//! `leader-epoch-checkpoint` in a partition's directory: where each epoch begins.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use super::{Durability, counted_lines, read_text, sync_dir, write_atomically};
use crate::errors::StorageError;

pub(crate) const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";

/// Reads epochs and their start offsets, in the order they are written. No file means none.
pub(crate) fn read_leader_epochs(partition_dir: &Path) -> Result<Vec<(i32, i64)>, StorageError> {
    let path = partition_dir.join(LEADER_EPOCH_CHECKPOINT);
    let Some(text) = read_text(&path)? else {
        return Ok(Vec::new());
    };
    counted_lines(&path, &text)?
        .into_iter()
        .map(|line| {
            line.split_once(' ')
                .and_then(|(epoch, start)| {
                    Some((epoch.trim().parse().ok()?, start.trim().parse().ok()?))
                })
                .ok_or_else(|| StorageError::corrupt(&path, format!("bad line {line:?}")))
        })
        .collect()
}

/// Writes epochs and their start offsets.
pub(crate) fn write_leader_epochs(
    partition_dir: &Path,
    epochs: &[(i32, i64)],
    durability: Durability,
) -> Result<(), StorageError> {
    let mut text = format!("0\n{}\n", epochs.len());
    for (epoch, start_offset) in epochs {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{epoch} {start_offset}");
    }
    write_atomically(
        partition_dir,
        LEADER_EPOCH_CHECKPOINT,
        text.as_bytes(),
        durability,
    )
}

/// Forces the file that is there to disk.
pub(crate) fn sync_leader_epochs(partition_dir: &Path) -> Result<(), StorageError> {
    let path = partition_dir.join(LEADER_EPOCH_CHECKPOINT);
    File::open(&path)
        .and_then(|file| file.sync_data())
        .and_then(|()| sync_dir(partition_dir))
        .map_err(|error| StorageError::io("flush", &path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_survive_a_round_trip_in_kafkas_format() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(read_leader_epochs(dir.path()).expect("no file"), vec![]);
        write_leader_epochs(dir.path(), &[(0, 0), (3, 17)], Durability::Synced).expect("written");
        let path = dir.path().join(LEADER_EPOCH_CHECKPOINT);
        assert_eq!(
            std::fs::read_to_string(&path).expect("read"),
            "0\n2\n0 0\n3 17\n"
        );
        assert_eq!(
            read_leader_epochs(dir.path()).expect("read"),
            vec![(0, 0), (3, 17)]
        );
        for text in ["", "0\n1\n", "0\n1\n3\n", "0\n1\n3 x\n"] {
            std::fs::write(&path, text).expect("written");
            assert!(read_leader_epochs(dir.path()).is_err(), "{text:?}");
        }
    }
}
