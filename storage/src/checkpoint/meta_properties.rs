//! `meta.properties` in a log directory: which cluster and node it belongs to.

use std::path::Path;

use super::{Durability, read_text, write_atomically};
use crate::errors::StorageError;
use crate::types::TopicId;

const META_PROPERTIES: &str = "meta.properties";

/// What `meta.properties` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaProperties {
    /// The cluster's id (`cluster.id`).
    pub cluster_id: String,
    /// The node's id (`node.id`).
    pub node_id: i32,
    /// The directory's own id (`directory.id`, KIP-858).
    pub directory_id: TopicId,
}

impl MetaProperties {
    /// Reads `meta.properties` in `log_dir`; None when there is none.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when a field is missing or wrong, or the version is not 1.
    pub fn read(log_dir: &Path) -> Result<Option<Self>, StorageError> {
        let path = log_dir.join(META_PROPERTIES);
        let Some(text) = read_text(&path)? else {
            return Ok(None);
        };
        let field = |name: &str| {
            text.lines()
                .filter(|line| !line.trim_start().starts_with(['#', '!']))
                .find_map(|line| {
                    let (key, value) = line.split_once('=')?;
                    // Java writes its properties with some characters escaped.
                    (key.trim() == name).then(|| value.trim().replace('\\', ""))
                })
                .ok_or_else(|| StorageError::corrupt(&path, format!("no {name}")))
        };
        let bad = |name: &str| StorageError::corrupt(&path, format!("bad {name}"));
        if field("version")? != "1" {
            return Err(bad("version"));
        }
        Ok(Some(Self {
            cluster_id: field("cluster.id")?,
            node_id: field("node.id")?.parse().map_err(|_| bad("node.id"))?,
            directory_id: field("directory.id")?
                .parse()
                .map_err(|_| bad("directory.id"))?,
        }))
    }

    /// Writes `meta.properties` in `log_dir`, durably.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, log_dir: &Path) -> Result<(), StorageError> {
        let text = format!(
            "version=1\ncluster.id={}\nnode.id={}\ndirectory.id={}\n",
            self.cluster_id, self.node_id, self.directory_id
        );
        write_atomically(
            log_dir,
            META_PROPERTIES,
            text.as_bytes(),
            Durability::Synced,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_properties_survive_a_round_trip() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(MetaProperties::read(dir.path()).expect("no file"), None);
        let properties = MetaProperties {
            cluster_id: "5L6g3nShT-eMCtK--X86sw".to_owned(),
            node_id: 7,
            directory_id: TopicId::random(),
        };
        properties.write(dir.path()).expect("written");
        assert_eq!(
            MetaProperties::read(dir.path()).expect("read"),
            Some(properties)
        );
    }

    #[test]
    fn a_file_as_apache_kafka_writes_it_is_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let text = "#\n#Sun Nov 29 19:58:10 UTC 2026\ncluster.id=5L6g3nShT-eMCtK--X86sw\n\
                    directory.id=vN2ZMhuwnmiZMzg8gWrGaw\nnode.id=1\nversion=1\n";
        std::fs::write(dir.path().join(META_PROPERTIES), text).expect("written");
        let properties = MetaProperties::read(dir.path())
            .expect("read")
            .expect("there");
        assert_eq!(properties.node_id, 1);
        assert_eq!(properties.cluster_id, "5L6g3nShT-eMCtK--X86sw");
    }

    #[test]
    fn missing_fields_are_corrupt() {
        let dir = tempfile::tempdir().expect("a directory");
        for text in [
            "",
            "version=1\ncluster.id=x\nnode.id=y\ndirectory.id=z\n",
            "version=0\n",
        ] {
            std::fs::write(dir.path().join(META_PROPERTIES), text).expect("written");
            assert!(MetaProperties::read(dir.path()).is_err(), "{text:?}");
        }
    }
}
