//! What a node finds on its disk when it starts again: less than it wrote.
//!
//! The metadata log and `meta.properties` are forced to the disk before anything is answered, so a lost tail never
//! concerns them; [`Cluster::wipe`] takes them too, as a new disk does.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::Cluster;
use crate::cache::copy_folder;

/// Files beside the partitions that say how far their logs can be trusted; they are as old as the logs.
const CHECKPOINTS: [&str; 3] = [
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
];
const METADATA: &str = "__cluster_metadata-0";

/// The partitions of a node as they were at one time.
#[derive(Debug)]
pub struct DataCopy {
    node: i32,
    folder: TempDir,
}

impl Cluster {
    /// Copies a node's partitions as their files are now, also while it runs.
    ///
    /// # Errors
    /// I/O errors.
    pub fn copy_partitions(&self, id: i32) -> Result<DataCopy> {
        let folder = tempfile::Builder::new().prefix("compat-copy-").tempdir()?;
        for path in partition_files(self.data(id)?)? {
            let target = folder.path().join(path.file_name().context("a name")?);
            if path.is_dir() {
                copy_folder(&path, &target)?;
            } else {
                fs::copy(&path, target)?;
            }
        }
        Ok(DataCopy { node: id, folder })
    }

    /// Puts the partitions of a copy in place of the present ones: what was written since was never on the disk.
    /// Partitions that are not in the copy stay.
    ///
    /// # Errors
    /// When the node runs, or I/O errors.
    pub fn put_back(&self, copy: &DataCopy) -> Result<()> {
        let data = self.data_at_rest(copy.node)?;
        for path in partition_files(copy.folder.path())? {
            let target = data.join(path.file_name().context("a name")?);
            if path.is_dir() {
                if target.exists() {
                    fs::remove_dir_all(&target)?;
                }
                copy_folder(&path, &target)?;
            } else {
                fs::copy(&path, target)?;
            }
        }
        remove_if_there(&data.join(".kafka_cleanshutdown"))
    }

    /// Cuts a partition's last segment before the batch that holds `offset`.
    ///
    /// # Errors
    /// When the node runs, the last segment does not hold this offset, or I/O errors.
    pub fn lose_tail(&self, id: i32, topic: &str, partition: i32, offset: i64) -> Result<()> {
        let data = self.data_at_rest(id)?;
        let folder = data.join(format!("{topic}-{partition}"));
        let mut segments: Vec<PathBuf> = fs::read_dir(&folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        segments.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
        let last = segments.iter().max().context("no segment")?;
        let bytes = fs::read(last)?;
        let position = position_of(&bytes, offset)
            .with_context(|| format!("{} does not hold offset {offset}", last.display()))?;
        fs::File::options()
            .write(true)
            .open(last)?
            .set_len(u64::try_from(position)?)?;
        remove_if_there(&data.join(".kafka_cleanshutdown"))
    }

    /// Takes all partitions from a node's disk; it keeps its identity and the cluster's metadata.
    ///
    /// # Errors
    /// When the node runs, or I/O errors.
    pub fn wipe_partitions(&self, id: i32) -> Result<()> {
        let data = self.data_at_rest(id)?;
        for path in partition_files(data)? {
            if path.is_dir() {
                fs::remove_dir_all(path)?;
            } else {
                fs::remove_file(path)?;
            }
        }
        remove_if_there(&data.join(".kafka_cleanshutdown"))
    }

    /// Gives a node a new, empty disk.
    ///
    /// # Errors
    /// When the node runs, or I/O errors.
    pub fn wipe(&self, id: i32) -> Result<()> {
        Ok(fs::remove_dir_all(self.data_at_rest(id)?)?)
    }

    fn data_at_rest(&self, id: i32) -> Result<&Path> {
        ensure!(!self.node(id)?.is_running(), "node {id} runs");
        self.data(id)
    }
}

/// The partition directories (`NAME-NUMBER`) without the metadata log, and the checkpoints.
fn partition_files(data: &Path) -> Result<Vec<PathBuf>> {
    let is_partition = |name: &str| {
        name != METADATA
            && name
                .rsplit_once('-')
                .is_some_and(|(_, number)| number.parse::<i32>().is_ok())
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(data)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| is_partition(name) || CHECKPOINTS.contains(&name)) {
            files.push(path);
        }
    }
    Ok(files)
}

/// Where the batch that holds `offset` begins in a segment's bytes.
fn position_of(segment: &[u8], offset: i64) -> Option<usize> {
    let mut position = 0;
    while let Some(header) = segment.get(position..position + 27) {
        let number = |at: usize| header[at..at + 4].try_into().map(i32::from_be_bytes);
        let base = i64::from_be_bytes(header[..8].try_into().ok()?);
        let last = base + i64::from(number(23).ok()?);
        if (base..=last).contains(&offset) {
            return Some(position);
        }
        position += usize::try_from(number(8).ok()?).ok()? + 12;
    }
    None
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::Batch;

    #[test]
    fn the_batch_of_an_offset_is_found_in_a_segment() {
        let mut segment = Vec::new();
        let mut starts = Vec::new();
        for (base_offset, count) in [(0, 3), (3, 1), (4, 5)] {
            starts.push(segment.len());
            let batch = Batch {
                base_offset,
                ..Batch::small(count)
            };
            segment.extend(batch.encode());
        }
        for (offset, batch) in [(0, 0), (2, 0), (3, 1), (4, 2), (8, 2)] {
            assert_eq!(position_of(&segment, offset), Some(starts[batch]));
        }
        assert_eq!(position_of(&segment, 9), None);
        assert_eq!(position_of(&[], 0), None);
    }
}
