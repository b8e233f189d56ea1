//! Producer snapshots as files: `<offset, 20 digits>.snapshot` in the partition's directory.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::snapshot::ProducerSnapshot;
use crate::errors::StorageError;

const SUFFIX: &str = ".snapshot";

/// Name of the snapshot at `offset`.
pub fn snapshot_file_name(offset: i64) -> String {
    format!("{offset:020}{SUFFIX}")
}

/// Offset of the snapshot with this file name; `None` for any other file.
pub fn snapshot_offset(file_name: &str) -> Option<i64> {
    let digits = file_name.strip_suffix(SUFFIX)?;
    (digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

/// The snapshots in a directory with their offsets, oldest first.
///
/// # Errors
/// [`StorageError::Io`] if the directory cannot be read.
pub fn list_snapshots(dir: &Path) -> Result<Vec<(i64, PathBuf)>, StorageError> {
    let failed = |error| StorageError::io("list", dir, error);
    let mut snapshots = Vec::new();
    for file in fs::read_dir(dir).map_err(failed)? {
        let file = file.map_err(failed)?;
        if let Some(offset) = file.file_name().to_str().and_then(snapshot_offset) {
            snapshots.push((offset, file.path()));
        }
    }
    snapshots.sort_unstable();
    Ok(snapshots)
}

/// Writes the snapshot at `offset`, beside and then in place of any other at it, and gives its path.
/// `sync` forces it to disk first; without, a crash of the machine may leave a file that
/// [`read_snapshot`] refuses.
///
/// # Errors
/// [`StorageError::Io`]; the old file, if any, is whole then.
pub fn write_snapshot(
    dir: &Path,
    offset: i64,
    snapshot: &ProducerSnapshot,
    sync: bool,
) -> Result<PathBuf, StorageError> {
    let path = dir.join(snapshot_file_name(offset));
    let unfinished = path.with_extension("snapshot.tmp");
    let written = File::create(&unfinished).and_then(|mut file| {
        file.write_all(&snapshot.encode())?;
        if sync { file.sync_all() } else { Ok(()) }
    });
    written.map_err(|error| StorageError::io("write", &unfinished, error))?;
    fs::rename(&unfinished, &path).map_err(|error| StorageError::io("rename to", &path, error))?;
    Ok(path)
}

/// Reads a snapshot.
///
/// # Errors
/// [`StorageError::Corrupt`] if it is not what was written: the caller deletes it and falls back to
/// an older one. [`StorageError::Io`] if it cannot be read.
pub fn read_snapshot(path: &Path) -> Result<ProducerSnapshot, StorageError> {
    let bytes = fs::read(path).map_err(|error| StorageError::io("read", path, error))?;
    ProducerSnapshot::decode(&bytes).map_err(|error| StorageError::corrupt(path, error.to_string()))
}
