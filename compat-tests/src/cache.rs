//! Where things fetched from package registries are kept: outside the tree, shared by all runs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};

/// The cache directory: `HIGHWATER_COMPAT_CACHE`, else `highwater-compat` under the user's cache directory.
///
/// # Errors
/// When neither that variable nor `XDG_CACHE_HOME` nor `HOME` says where it is.
pub fn directory() -> Result<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    if let Some(directory) = set("HIGHWATER_COMPAT_CACHE") {
        return Ok(directory);
    }
    let base = set("XDG_CACHE_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".cache")))
        .context("set HIGHWATER_COMPAT_CACHE: there is no HOME to keep a cache in")?;
    Ok(base.join("highwater-compat"))
}

/// Returns the cache's folder `name`, filled by `install` when it is not there yet.
///
/// `install` gets a temporary folder that is renamed into place only when it succeeds, and a lock keeps
/// other test processes from doing the same work at once. Put a version or a digest of the inputs into
/// `name`: an existing folder is taken as it is.
///
/// # Errors
/// What `install` returned, or I/O errors.
pub fn get_or_install(name: &str, install: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let cache = directory()?;
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let done = cache.join(name);
    if done.is_dir() {
        return Ok(done);
    }
    let lock = File::create(cache.join(format!("{name}.lock")))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    if done.is_dir() {
        return Ok(done);
    }
    let unfinished = cache.join(format!("{name}.unfinished"));
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    fs::create_dir_all(&unfinished)?;
    install(&unfinished).with_context(|| format!("cannot install {name}"))?;
    fs::rename(&unfinished, &done)?;
    Ok(done)
}

/// A short digest of file contents, to key cache folders by what they are made from.
#[must_use]
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut crc = 0;
    let mut length = 0;
    for part in parts {
        crc = crc32c::crc32c_append(crc, part);
        length += part.len();
    }
    format!("{crc:08x}{length:x}")
}

/// The project's root folder.
#[must_use]
pub fn workspace_root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// The folder of a client's sources, `compat-tests/clients/NAME`.
#[must_use]
pub fn client_sources(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("clients")
        .join(name)
}

/// Runs a command to its end; its output is part of the error when it fails.
///
/// # Errors
/// When the program is missing or exits with another status than 0.
pub fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .with_context(|| format!("cannot run {program}: is it installed?"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!(
            "{command:?} failed with {}:\n{text}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(text)
}

/// Copies a folder with all that is in it; `to` may exist.
///
/// # Errors
/// I/O errors.
pub fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
