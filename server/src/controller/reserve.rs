//! Space that is kept back for the day the disk is full: then topics can still be deleted, and the broker can still
//! start to do so, although either must write to the metadata log.
//!
//! A file of zeros holds the space. When a write that may use it finds the disk full, the file is removed and the write
//! is tried again; the file is made anew with a later write, when there is space.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use highwater_storage::StorageError;

use crate::metadata::MetadataError;

const FILE_NAME: &str = "reserve";
/// Room for the new leader epochs of 10,000 partitions, or the deletion of as many topics.
const RESERVE_BYTES: usize = 1 << 20;

/// The space that is kept back.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    is_held: bool,
}

impl Reserve {
    /// The reserve in the directory of the metadata log; nothing is made yet.
    pub(super) fn new(metadata_dir: &Path) -> Self {
        let path = metadata_dir.join(FILE_NAME);
        let is_held = path
            .metadata()
            .is_ok_and(|file| file.len() >= RESERVE_BYTES as u64);
        Self { path, is_held }
    }

    /// Does `write`; if the disk is full, gives the space back and does it once more.
    pub(super) fn write_when_full<T>(
        &mut self,
        mut write: impl FnMut() -> Result<T, MetadataError>,
    ) -> Result<T, MetadataError> {
        match write() {
            Err(error) if self.is_held && error.is_storage_full() => {
                tracing::warn!(%error, "the disk is full, using the reserve of the metadata log");
                self.release()?;
                write()
            }
            result => result,
        }
    }

    /// Whether the space is kept back.
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    fn release(&mut self) -> Result<(), MetadataError> {
        self.is_held = false;
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StorageError::io("remove", &self.path, error).into())
            }
            _ => Ok(()),
        }
    }

    /// Whether there is more space than the reserve takes: the last of it belongs to those who write records.
    fn has_room(&self) -> bool {
        let dir = self.path.parent().unwrap_or(&self.path);
        rustix::fs::statvfs(dir).is_ok_and(|space| {
            space.f_bavail.saturating_mul(space.f_frsize) > 4 * RESERVE_BYTES as u64
        })
    }

    /// Keeps the space back again, if it is not. A full disk is no error: it is tried again later.
    pub(super) fn hold(&mut self) {
        if self.is_held || !self.has_room() {
            return;
        }
        let written = File::create(&self.path).and_then(|mut file| {
            file.write_all(&vec![0; RESERVE_BYTES])?;
            // Space is reserved on some file systems only when it is on disk.
            file.sync_data()
        });
        match written {
            Ok(()) => self.is_held = true,
            Err(error) => {
                tracing::debug!(%error, "no reserve for the metadata log");
                // A part of it would take the last space for nothing.
                let _ = std::fs::remove_file(&self.path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> MetadataError {
        StorageError::io("append to", "x", ErrorKind::StorageFull).into()
    }

    fn other() -> MetadataError {
        StorageError::io("append to", "x", ErrorKind::PermissionDenied).into()
    }

    #[test]
    fn a_full_disk_costs_the_reserve_and_the_write_is_done_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut reserve = Reserve::new(dir.path());
        reserve.hold();
        let file = dir.path().join(FILE_NAME);
        assert_eq!(
            file.metadata().expect("the file").len(),
            RESERVE_BYTES as u64
        );
        let mut tries = 0;
        let written = reserve.write_when_full(|| {
            tries += 1;
            if file.exists() {
                Err(full())
            } else {
                Ok(tries)
            }
        });
        assert_eq!(written.expect("written"), 2);
        // Used up: the next full disk is an error at once.
        let mut tries = 0;
        let failed = reserve.write_when_full(|| -> Result<(), _> {
            tries += 1;
            Err(full())
        });
        assert!(failed.is_err());
        assert_eq!(tries, 1);
        reserve.hold();
        assert!(Reserve::new(dir.path()).is_held);
    }

    #[test]
    fn other_errors_leave_the_reserve() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut reserve = Reserve::new(dir.path());
        reserve.hold();
        let failed = reserve.write_when_full(|| -> Result<(), _> { Err(other()) });
        assert!(failed.is_err());
        assert!(dir.path().join(FILE_NAME).exists());
    }
}
