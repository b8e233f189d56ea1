//! A disk of a node's own that can be filled: a file system in memory, which only root may mount.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Takes the rest of the space.
const FILLER: &str = "filler";

/// A mounted file system of limited size; it is unmounted when this is dropped.
#[derive(Debug)]
pub struct SmallDisk {
    mounted_at: PathBuf,
}

impl SmallDisk {
    /// Whether this process is root's.
    #[must_use]
    pub fn may_be_mounted() -> bool {
        fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
    }

    /// Mounts a disk of so many MiB at an empty folder, which is made.
    ///
    /// # Errors
    /// When this user may not mount.
    pub fn mount(at: &Path, mebibytes: u32) -> Result<Self> {
        fs::create_dir_all(at)?;
        let size = format!("size={mebibytes}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "highwater-small-disk"]);
        let output = mount.arg(at).output().context("cannot run mount")?;
        ensure!(
            output.status.success(),
            "cannot mount a small disk, which only root may: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(Self {
            mounted_at: at.to_owned(),
        })
    }

    /// Writes until there is no space left.
    ///
    /// # Errors
    /// I/O errors other than the one that is wanted.
    pub fn fill(&self) -> Result<()> {
        let mut filler = File::create(self.mounted_at.join(FILLER))?;
        // Smaller pieces at the end, so that not a page is left.
        for piece in [1 << 20, 4096, 1] {
            let piece = vec![0; piece];
            loop {
                match filler.write(&piece) {
                    Ok(written) if written > 0 => {}
                    Ok(_) => break,
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => return Err(error).context("cannot fill the disk"),
                }
            }
        }
        Ok(())
    }

    /// Gives back what [`SmallDisk::fill`] took.
    ///
    /// # Errors
    /// I/O errors; also when nothing was filled.
    pub fn make_space(&self) -> Result<()> {
        fs::remove_file(self.mounted_at.join(FILLER)).context("cannot make space")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that still ends may have files open.
        let unmounted = Command::new("umount")
            .arg("-l")
            .arg(&self.mounted_at)
            .status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("{} stays mounted", self.mounted_at.display());
        }
    }
}
