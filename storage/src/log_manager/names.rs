//! Kafka's names of partitions' directories.

use uuid::Uuid;

use crate::types::TopicPartition;

/// The longest name most file systems take.
const MAX_NAME_BYTES: usize = 255;

/// What a directory's name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DirName {
    /// A partition: `topic-0`.
    Partition(TopicPartition),
    /// One that was deleted and waits to be removed: `topic-0.<32 hex digits>-delete`.
    Deleted,
    /// Anything else.
    Other,
}

/// Reads a directory's name.
pub(super) fn parse_dir_name(name: &str) -> DirName {
    if let Some((_, unique)) = name
        .strip_suffix("-delete")
        .and_then(|name| name.rsplit_once('.'))
    {
        return if unique.len() == 32 && unique.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            DirName::Deleted
        } else {
            DirName::Other
        };
    }
    let partition = name.rsplit_once('-').and_then(|(topic, partition)| {
        let is_number =
            !partition.is_empty() && partition.bytes().all(|byte| byte.is_ascii_digit());
        let number = partition.parse().ok().filter(|_| is_number)?;
        (!topic.is_empty()).then(|| TopicPartition::new(topic, number))
    });
    partition.map_or(DirName::Other, DirName::Partition)
}

/// Why a partition's directory is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its topic was deleted: the files go.
    Deleted,
    /// Nothing says whose it is: the files stay.
    Stray,
}

/// A name for the directory of a partition that is taken away, which nothing else has.
pub(super) fn unique_dir_name(topic_partition: &TopicPartition, fate: Fate) -> String {
    let suffix = format!(
        "-{}.{}-{}",
        topic_partition.partition,
        Uuid::new_v4().simple(),
        match fate {
            Fate::Deleted => "delete",
            Fate::Stray => "stray",
        }
    );
    let mut keep = topic_partition
        .topic
        .len()
        .min(MAX_NAME_BYTES - suffix.len());
    while !topic_partition.topic.is_char_boundary(keep) {
        keep -= 1;
    }
    format!("{}{suffix}", &topic_partition.topic[..keep])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_partitions_are_read() {
        let partition = |topic, number| DirName::Partition(TopicPartition::new(topic, number));
        assert_eq!(parse_dir_name("a-0"), partition("a", 0));
        assert_eq!(parse_dir_name("a.b-c-12"), partition("a.b-c", 12));
        assert_eq!(
            parse_dir_name("__consumer_offsets-49"),
            partition("__consumer_offsets", 49)
        );
        for name in [
            "a",
            "-1",
            "a-",
            "a-x",
            "a-99999999999",
            "a-0-future",
            "a-+1",
            "lost+found",
        ] {
            assert_eq!(parse_dir_name(name), DirName::Other, "{name}");
        }
    }

    #[test]
    fn names_of_deleted_partitions_are_read_and_fit() {
        let name = unique_dir_name(&TopicPartition::new("a", 3), Fate::Deleted);
        assert_eq!(parse_dir_name(&name), DirName::Deleted);
        let name = unique_dir_name(
            &TopicPartition::new("a".repeat(249), 100_000),
            Fate::Deleted,
        );
        assert_eq!(name.len(), 255);
        assert_eq!(parse_dir_name(&name), DirName::Deleted);
    }
}
