//! A look at what the directories hold before any log is opened.

use std::io;
use std::path::{Path, PathBuf};

use crate::errors::StorageError;

use super::names::{DirName, parse_dir_name};
use super::{CLUSTER_METADATA_TOPIC, LogManager};

/// A snapshot of the metadata.
const SNAPSHOT_SUFFIX: &str = ".checkpoint";
const LOG_SUFFIX: &str = ".log";

impl LogManager {
    /// Whether there is a metadata log with anything in it, or a snapshot of one.
    ///
    /// # Errors
    /// When a directory cannot be listed.
    pub fn has_metadata(&self) -> Result<bool, StorageError> {
        let is_metadata = |name: &DirName| matches!(name, DirName::Partition(found) if &*found.topic == CLUSTER_METADATA_TOPIC);
        Ok(self
            .find_filled(&[LOG_SUFFIX, SNAPSHOT_SUFFIX], is_metadata)?
            .is_some())
    }

    /// The directory of a partition that has records, if there is one; the metadata log does not count.
    ///
    /// # Errors
    /// When a directory cannot be listed.
    pub fn find_records(&self) -> Result<Option<PathBuf>, StorageError> {
        let is_other = |name: &DirName| matches!(name, DirName::Partition(found) if &*found.topic != CLUSTER_METADATA_TOPIC);
        self.find_filled(&[LOG_SUFFIX], is_other)
    }

    /// A directory whose name is wanted and that has a file that is not empty and has one of these suffixes.
    fn find_filled(
        &self,
        suffixes: &[&str],
        is_wanted: impl Fn(&DirName) -> bool,
    ) -> Result<Option<PathBuf>, StorageError> {
        for log_dir in &self.dirs {
            let listed = find_in(log_dir.path(), suffixes, &is_wanted);
            let found = listed.map_err(|error| StorageError::io("list", log_dir.path(), error))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

fn find_in(
    log_dir: &Path,
    suffixes: &[&str],
    is_wanted: impl Fn(&DirName) -> bool,
) -> io::Result<Option<PathBuf>> {
    for entry in std::fs::read_dir(log_dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_wanted = name
            .to_str()
            .map(parse_dir_name)
            .as_ref()
            .is_some_and(&is_wanted);
        if is_wanted && entry.file_type()?.is_dir() && is_filled(&entry.path(), suffixes)? {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

fn is_filled(dir: &Path, suffixes: &[&str]) -> io::Result<bool> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_kind = |suffix: &&str| name.as_encoded_bytes().ends_with(suffix.as_bytes());
        if suffixes.iter().any(is_kind) && entry.metadata()?.len() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}
