//! The temporary folder of a playground, and those that killed ones left behind.
//!
//! A playground holds the lock of a file in its folder as long as it runs; the operating system lets go of it however the
//! process ends. Nodes hold locks in their data directories, so that the folder of nodes that still stop is left alone.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use highwater_storage::log_manager::is_in_use;
use tempfile::TempDir;

/// What the name of every such folder begins with.
const PREFIX: &str = "highwater-playground-";
/// The file that a running playground has locked. It has this name only while it is locked.
const LOCK_FILE: &str = "playground.lock";

/// The folder of this playground.
#[derive(Debug)]
pub(super) struct TemporaryFolder {
    folder: TempDir,
    _lock: File,
}

impl TemporaryFolder {
    /// Makes one in `parent`, for this user alone.
    pub(super) fn make(parent: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let before = folder.path().join("playground.lock.new");
        let lock = File::create(&before)?;
        lock.try_lock()?;
        fs::rename(&before, folder.path().join(LOCK_FILE))?;
        Ok(TemporaryFolder {
            folder,
            _lock: lock,
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes it with all that is in it.
    pub(super) fn remove(self) -> io::Result<()> {
        self.folder.close()
    }
}

/// Removes the folders in `parent` whose playground is gone, and gives them. What is not surely one of this user's is left,
/// and so is one that cannot be removed: there may always be another time.
pub(super) fn sweep(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else {
        return Vec::new();
    };
    let named_so = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
    });
    let mut removed = Vec::new();
    for path in named_so.map(|entry| entry.path()) {
        match is_left_behind(&path) {
            // Held until the folder is gone.
            Ok(Some(_lock)) => match fs::remove_dir_all(&path) {
                Ok(()) => removed.push(path),
                Err(error) => {
                    tracing::debug!(%error, path = %path.display(), "the folder stays");
                }
            },
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(%error, path = %path.display(), "no folder of a playground");
            }
        }
    }
    removed
}

/// The lock of a folder that nobody uses; `None` of another.
fn is_left_behind(path: &Path) -> io::Result<Option<File>> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    let lock = File::open(path.join(LOCK_FILE))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        Err(fs::TryLockError::Error(error)) => return Err(error),
    }
    for entry in fs::read_dir(path)? {
        if is_in_use(&entry?.path()).map_err(io::Error::other)? {
            return Ok(None);
        }
    }
    Ok(Some(lock))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As when the playground was killed: nothing of it runs, and nothing was removed.
    fn killed(folder: TemporaryFolder) -> PathBuf {
        folder.folder.keep()
    }

    #[test]
    fn only_the_folder_of_a_playground_that_is_gone_is_removed() {
        let parent = tempfile::tempdir().expect("a folder");
        let running = TemporaryFolder::make(parent.path()).expect("made");
        let gone = killed(TemporaryFolder::make(parent.path()).expect("made"));
        let node = gone.join("broker-1");
        fs::create_dir_all(node.join("t-0")).expect("made");
        fs::write(node.join("t-0/log"), "records").expect("written");
        let of_node = File::create(node.join(".lock")).expect("made");
        of_node.try_lock().expect("locked");
        let unknown = parent.path().join(format!("{PREFIX}unknown"));
        fs::create_dir(&unknown).expect("made");
        let elsewhere = parent.path().join("elsewhere");
        fs::create_dir(&elsewhere).expect("made");
        fs::write(elsewhere.join(LOCK_FILE), "").expect("written");
        let link = parent.path().join(format!("{PREFIX}link"));
        std::os::unix::fs::symlink(&elsewhere, &link).expect("linked");

        assert_eq!(sweep(parent.path()), Vec::<PathBuf>::new());
        assert!(node.join("t-0/log").exists(), "its node runs");
        drop(of_node);
        assert_eq!(sweep(parent.path()), std::slice::from_ref(&gone));
        assert!(!gone.exists());
        assert!(elsewhere.join(LOCK_FILE).exists() && link.is_symlink() && unknown.exists());
        let path = running.path().to_owned();
        assert!(path.join(LOCK_FILE).exists());
        running.remove().expect("removed");
        assert!(!path.exists());
    }
}
