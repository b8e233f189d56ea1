//! Taking the data directories at start: locks them, gives empty ones an identity, and refuses those of others.
//!
//! There is no separate format step. A directory without anything in it becomes one of this node in this cluster;
//! `meta.properties` is what Apache Kafka's `kafka-storage format` writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use highwater_storage::{
    LogManager, LogManagerSettings, MetaProperties, StorageError, TopicId, UnusableLogDir,
};

/// Why the data directories cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogDirError {
    /// Locking, reading or writing one failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A directory cannot be made or listed.
    #[error("cannot use the data directory {path}: {source}", path = path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file lies where it should be, or on the way there.
    #[error("cannot use the data directory {path}: {file} is a file, not a directory",
        path = path.display(), file = file.display())]
    File {
        /// The directory.
        path: PathBuf,
        /// The file.
        file: PathBuf,
    },
    /// Something else than a broker keeps its files there.
    #[error(
        "{path} holds files (such as {example}) but no meta.properties, so it is no data directory of a broker: \
         use an empty one",
        path = path.display()
    )]
    NotADataDirectory {
        /// The directory.
        path: PathBuf,
        /// A file in it.
        example: String,
    },
    /// Another node of the cluster wrote it.
    #[error("{path} belongs to node {found}, but node.id is {expected}", path = path.display())]
    OtherNode {
        /// The directory.
        path: PathBuf,
        /// The id in `meta.properties`.
        found: i32,
        /// The configured id.
        expected: i32,
    },
    /// It is part of another cluster than the one asked for, or than the other directories.
    #[error("{path} belongs to cluster {found}, but {expected_by} is of cluster {expected}", path = path.display())]
    OtherCluster {
        /// The directory.
        path: PathBuf,
        /// The id in its `meta.properties`.
        found: String,
        /// The other id.
        expected: String,
        /// Who says so: another directory, or the cluster id asked for.
        expected_by: String,
    },
    /// Two directories have one id: one is a copy of the other.
    #[error("{first} and {second} have the same directory.id {id}: one is a copy of the other",
        first = first.display(), second = second.display())]
    SameDirectoryId {
        /// The first directory.
        first: PathBuf,
        /// The second directory.
        second: PathBuf,
        /// The id of both.
        id: TopicId,
    },
    /// There are records, but nothing that says which topics they are of.
    #[error(
        "{partition} holds records, but __cluster_metadata-0, the log that tells the topics, is missing or empty in all \
         of log.dirs: put it back, or name its directory in log.dirs too; to begin anew, use an empty directory",
        partition = partition.display()
    )]
    MetadataLost {
        /// The directory of one of the partitions.
        partition: PathBuf,
    },
    /// The cluster id asked for is not one.
    #[error(
        "'{0}' is no cluster id: 22 characters of URL-safe base64, as kafka-storage random-uuid prints, are expected"
    )]
    InvalidClusterId(String),
}

impl LogDirError {
    /// Whether it says that the disk does not do what it must, and not whose the directory is.
    fn is_of_the_disk(&self) -> bool {
        match self {
            Self::Unusable { .. } | Self::File { .. } => true,
            Self::Storage(error) => error.is_disk_failure(),
            _ => false,
        }
    }
}

/// The data directories, locked and with an identity.
#[derive(Debug)]
pub struct LogDirs {
    /// Opens, makes and deletes the logs in them; it holds the locks.
    pub manager: LogManager,
    /// Id of the cluster.
    pub cluster_id: String,
    /// `directory.id` of each, in the order of `log.dirs`.
    pub directory_ids: Vec<TopicId>,
    /// Directories that were empty and have got their identity now.
    pub formatted: Vec<PathBuf>,
}

/// Takes the directories for node `node_id`. `cluster_id` is the one asked for, if any; else that of the directories
/// counts, and a random one if there is none. A disk that fails costs its directory only (KIP-112), unless it is the first,
/// where the metadata lie.
///
/// # Errors
/// When the first directory cannot be used, or one is in use or belongs to someone else.
pub fn open(
    mut settings: LogManagerSettings,
    node_id: i32,
    cluster_id: Option<&str>,
) -> Result<LogDirs, LogDirError> {
    let mut found = Vec::with_capacity(settings.log_dirs.len());
    let mut unusable = Vec::new();
    let mut last_failure = None;
    for path in std::mem::take(&mut settings.log_dirs) {
        match look_at(&path) {
            Ok(properties) => found.push((path, properties)),
            // The metadata lie in the first one.
            Err(error) if error.is_of_the_disk() && !found.is_empty() => {
                tracing::error!(dir = %path.display(), %error, "starting without a log directory, its replicas are offline");
                let reason = error.to_string();
                unusable.push(UnusableLogDir { path, reason });
                last_failure = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    settings.log_dirs = found.iter().map(|(path, _)| path.clone()).collect();
    let manager = LogManager::open(settings)?;
    if let Some(error) = last_failure
        && !manager.has_metadata()?
    {
        // Metadata that were begun anew would be older than what lies there.
        return Err(error);
    }
    let manager = manager.without(unusable);
    let cluster_id = agree(&found, node_id, cluster_id)?;
    let mut directory_ids = Vec::with_capacity(found.len());
    let mut formatted = Vec::new();
    for (path, properties) in found {
        let properties = match properties {
            Some(properties) => properties,
            None => {
                let properties = MetaProperties {
                    cluster_id: cluster_id.clone(),
                    node_id,
                    directory_id: TopicId::random(),
                };
                properties.write(&path)?;
                formatted.push(path);
                properties
            }
        };
        directory_ids.push(properties.directory_id);
    }
    Ok(LogDirs {
        manager,
        cluster_id,
        directory_ids,
        formatted,
    })
}

/// Makes the directory if need be and reads whose it is; `None` when it has no identity yet.
fn look_at(dir: &Path) -> Result<Option<MetaProperties>, LogDirError> {
    fs::create_dir_all(dir).map_err(|source| unusable(dir, source))?;
    refuse_foreign_files(dir)?;
    LogManager::check_usable(dir)?;
    Ok(MetaProperties::read(dir)?)
}

/// The cluster that a data directory belongs to; `None` when it is not there or has no identity yet.
///
/// # Errors
/// When it has one that cannot be read.
pub fn read_cluster_id(dir: &Path) -> Result<Option<String>, LogDirError> {
    let properties = MetaProperties::read(dir)?;
    Ok(properties.map(|properties| properties.cluster_id))
}

/// A random id for a new cluster.
#[must_use]
pub fn new_cluster_id() -> String {
    TopicId::random().to_string()
}

fn unusable(path: &Path, source: io::Error) -> LogDirError {
    let path = path.to_owned();
    match path.ancestors().find(|ancestor| ancestor.is_file()) {
        Some(file) => LogDirError::File {
            file: file.to_owned(),
            path,
        },
        None => LogDirError::Unusable { path, source },
    }
}

/// What an interrupted format leaves.
const HALF_WRITTEN: &str = "meta.properties.tmp";

/// A directory without `meta.properties` must be empty, but for what a file system, a lock or an interrupted format puts
/// there.
fn refuse_foreign_files(dir: &Path) -> Result<(), LogDirError> {
    let mut example = None;
    for entry in fs::read_dir(dir).map_err(|source| unusable(dir, source))? {
        let name = entry.map_err(|source| unusable(dir, source))?.file_name();
        let name = name.to_string_lossy();
        if name == "meta.properties" {
            return Ok(());
        }
        if !name.starts_with('.') && name != "lost+found" && name != HALF_WRITTEN {
            example = Some(name.into_owned());
        }
    }
    match example {
        Some(example) => Err(LogDirError::NotADataDirectory {
            path: dir.to_owned(),
            example,
        }),
        None => Ok(()),
    }
}

impl LogDirs {
    /// Refuses records whose topics nobody knows. For a node that is the whole quorum: with empty metadata it would own
    /// no topic and set every log aside. Others get the metadata from the controllers.
    ///
    /// # Errors
    /// [`LogDirError::MetadataLost`], or when a directory cannot be listed.
    pub fn refuse_lost_metadata(&self) -> Result<(), LogDirError> {
        if self.manager.has_metadata()? {
            return Ok(());
        }
        match self.manager.find_records()? {
            Some(partition) => Err(LogDirError::MetadataLost { partition }),
            None => Ok(()),
        }
    }
}

/// The cluster id of all directories, or the error that keeps them from being this node's.
fn agree(
    found: &[(PathBuf, Option<MetaProperties>)],
    node_id: i32,
    asked_for: Option<&str>,
) -> Result<String, LogDirError> {
    if let Some(id) = asked_for
        && !id
            .parse::<TopicId>()
            .is_ok_and(|parsed| parsed.to_string() == id)
    {
        return Err(LogDirError::InvalidClusterId(id.to_owned()));
    }
    let mut cluster = asked_for.map(|id| (id.to_owned(), "the cluster id asked for".to_owned()));
    for (index, (path, properties)) in found.iter().enumerate() {
        let Some(properties) = properties else {
            continue;
        };
        if properties.node_id != node_id {
            return Err(LogDirError::OtherNode {
                path: path.clone(),
                found: properties.node_id,
                expected: node_id,
            });
        }
        match &cluster {
            Some((id, by)) if *id != properties.cluster_id => {
                return Err(LogDirError::OtherCluster {
                    path: path.clone(),
                    found: properties.cluster_id.clone(),
                    expected: id.clone(),
                    expected_by: by.clone(),
                });
            }
            Some(_) => {}
            None => cluster = Some((properties.cluster_id.clone(), path.display().to_string())),
        }
        let same_id = |(_, other): &&(PathBuf, Option<MetaProperties>)| {
            other
                .as_ref()
                .is_some_and(|other| other.directory_id == properties.directory_id)
        };
        if let Some((first, _)) = found[..index].iter().find(same_id) {
            return Err(LogDirError::SameDirectoryId {
                first: first.clone(),
                second: path.clone(),
                id: properties.directory_id,
            });
        }
    }
    Ok(cluster.map_or_else(new_cluster_id, |(id, _)| id))
}

#[cfg(test)]
mod tests;
