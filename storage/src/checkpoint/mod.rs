//! Kafka's small files beside the logs. Each is written whole to a temporary file that then takes the old one's
//! place, so that a crash leaves the old or the new one and never half of it.

mod clean_shutdown;
mod leader_epochs;
mod meta_properties;
mod offset_checkpoint;
mod partition_metadata;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use crate::errors::StorageError;

pub(crate) use clean_shutdown::CleanShutdownMark;
pub(crate) use leader_epochs::{
    LEADER_EPOCH_CHECKPOINT, read_leader_epochs, sync_leader_epochs, write_leader_epochs,
};
pub use meta_properties::MetaProperties;
pub(crate) use offset_checkpoint::{
    CLEANER_OFFSET_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, OffsetCheckpoint,
    RECOVERY_POINT_CHECKPOINT, REPLICATION_OFFSET_CHECKPOINT,
};
pub(crate) use partition_metadata::{
    PARTITION_METADATA, read_partition_metadata, write_partition_metadata,
};

/// How sure a small file must be once it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Survives a power cut.
    Synced,
    /// Survives the end of this process.
    Cached,
}

/// Writes `text` as the file `name` in `dir`, in one step.
pub(crate) fn write_atomically(
    dir: &Path,
    name: &str,
    text: &[u8],
    durability: Durability,
) -> Result<(), StorageError> {
    let path = dir.join(name);
    let temporary = dir.join(format!("{name}.tmp"));
    let write = || -> io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(text)?;
        if durability == Durability::Synced {
            file.sync_data()?;
        }
        drop(file);
        std::fs::rename(&temporary, &path)?;
        if durability == Durability::Synced {
            sync_dir(dir)?;
        }
        Ok(())
    };
    write().map_err(|error| {
        // The old file is still good; the half-written one would only take space.
        let _ = std::fs::remove_file(&temporary);
        StorageError::io("write", &path, error)
    })
}

/// Forces the names in `dir` to disk.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// The file's text; None when there is none.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, StorageError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(StorageError::corrupt(path, "not a text"))
        }
        Err(error) => Err(StorageError::io("read", path, error)),
    }
}

/// The body of a file that begins with a version and a count of lines, as Kafka's checkpoints do.
fn counted_lines<'a>(path: &Path, text: &'a str) -> Result<Vec<&'a str>, StorageError> {
    let corrupt = |reason: &str| StorageError::corrupt(path, reason);
    let mut lines = text.lines();
    let version = lines.next().ok_or_else(|| corrupt("empty"))?;
    if version.trim() != "0" {
        return Err(corrupt("unknown version"));
    }
    let count: usize = lines
        .next()
        .and_then(|line| line.trim().parse().ok())
        .ok_or_else(|| corrupt("no count of entries"))?;
    let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
    if lines.len() != count {
        return Err(corrupt("the count of entries is not the number of lines"));
    }
    Ok(lines)
}
