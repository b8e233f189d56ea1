//! `partition.metadata` in a partition's directory: the id of its topic.

use std::path::Path;

use super::{Durability, read_text, write_atomically};
use crate::errors::StorageError;
use crate::types::TopicId;

pub(crate) const PARTITION_METADATA: &str = "partition.metadata";

/// The topic id; None without a file.
pub(crate) fn read_partition_metadata(
    partition_dir: &Path,
) -> Result<Option<TopicId>, StorageError> {
    let path = partition_dir.join(PARTITION_METADATA);
    let Some(text) = read_text(&path)? else {
        return Ok(None);
    };
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then_some(value.trim())
        })
    };
    let (Some("0"), Some(id)) = (field("version"), field("topic_id")) else {
        return Err(StorageError::corrupt(path, "no version 0 and topic_id"));
    };
    match id.parse::<TopicId>() {
        Ok(id) if !id.is_zero() => Ok(Some(id)),
        _ => Err(StorageError::corrupt(path, format!("bad topic id {id:?}"))),
    }
}

/// Writes the topic id.
pub(crate) fn write_partition_metadata(
    partition_dir: &Path,
    topic_id: TopicId,
    durability: Durability,
) -> Result<(), StorageError> {
    let text = format!("version: 0\ntopic_id: {topic_id}");
    write_atomically(
        partition_dir,
        PARTITION_METADATA,
        text.as_bytes(),
        durability,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topic_id_survives_a_round_trip_and_damage_is_noticed() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(read_partition_metadata(dir.path()).expect("no file"), None);
        let id = TopicId::random();
        write_partition_metadata(dir.path(), id, Durability::Cached).expect("written");
        assert_eq!(read_partition_metadata(dir.path()).expect("read"), Some(id));
        let path = dir.path().join(PARTITION_METADATA);
        for text in [
            "",
            "version: 0",
            "version: 1\ntopic_id: 5L6g3nShT-eMCtK--X86sw",
            "version: 0\ntopic_id: x",
        ] {
            std::fs::write(&path, text).expect("written");
            assert!(read_partition_metadata(dir.path()).is_err(), "{text:?}");
        }
    }
}
