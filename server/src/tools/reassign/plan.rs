//! The file with the new replicas.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::tools::client::TopicPartition;
use crate::tools::lists::joined;
use crate::tools::{ToolError, json};

/// What leaves the directory to the broker.
const ANY: &str = "any";

/// A replica: its broker and its partition, in the order in which they are told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Replica {
    pub(super) broker: i32,
    pub(super) partition: TopicPartition,
}

impl std::fmt::Display for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.partition, self.broker)
    }
}

/// Replicas of partitions.
pub(super) type Assignment = BTreeMap<TopicPartition, Vec<i32>>;
/// Directories of replicas.
pub(super) type Directories = BTreeMap<Replica, String>;

/// The new replicas, and the directories of those that shall lie in one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// As in the file: a partition may be there twice.
    pub(super) entries: Vec<(TopicPartition, Vec<i32>)>,
    pub(super) directories: Directories,
}

/// Reads the file.
///
/// # Errors
/// In Kafka's words.
pub(super) fn parse(text: &str) -> Result<Plan, ToolError> {
    let document = json::parse(text)?;
    let mut plan = Plan::default();
    if document.get("partitions").is_none() {
        return Ok(plan);
    }
    for entry in json::array(&document, "partitions")? {
        let topic = json::text(entry, "topic")?;
        let partition = TopicPartition::new(topic, json::integer(entry, "partition")?);
        let replicas = ids(entry)?;
        if entry.get("log_dirs").is_some() {
            let directories = texts(entry, "log_dirs")?;
            if directories.len() != replicas.len() {
                return Err(ToolError::failed(format!(
                    "Size of replicas list {replicas:?} is different from size of log dirs list [{}] for partition \
                     {partition}",
                    directories.join(", ")
                )));
            }
            for (&broker, directory) in replicas.iter().zip(directories) {
                if directory != ANY {
                    let replica = Replica {
                        broker,
                        partition: partition.clone(),
                    };
                    plan.directories.insert(replica, directory.to_owned());
                }
            }
        }
        plan.entries.push((partition, replicas));
    }
    Ok(plan)
}

fn ids(entry: &Value) -> Result<Vec<i32>, ToolError> {
    let ids = json::array(entry, "replicas")?.iter().map(|id| {
        let number = id.as_i64().and_then(|id| i32::try_from(id).ok());
        number.ok_or_else(|| ToolError::failed(format!("replicas must be integers in {entry}")))
    });
    ids.collect()
}

fn texts<'a>(entry: &'a Value, key: &str) -> Result<Vec<&'a str>, ToolError> {
    let texts = json::array(entry, key)?.iter().map(|text| {
        let text = text.as_str();
        text.ok_or_else(|| ToolError::failed(format!("{key} must be texts in {entry}")))
    });
    texts.collect()
}

impl Plan {
    /// The replicas by partition, where the plan can be carried out.
    ///
    /// # Errors
    /// In Kafka's words where it is empty or something is there twice.
    pub(super) fn assignment(&self) -> Result<Assignment, ToolError> {
        if self.entries.is_empty() {
            return Err(ToolError::failed(
                "Partition reassignment list cannot be empty",
            ));
        }
        if self.entries.iter().any(|(_, replicas)| replicas.is_empty()) {
            return Err(ToolError::failed("Partition replica list cannot be empty"));
        }
        let repeated = duplicates(self.entries.iter().map(|(partition, _)| partition));
        if !repeated.is_empty() {
            return Err(ToolError::failed(format!(
                "Partition reassignment contains duplicate topic partitions: {}",
                joined(&repeated)
            )));
        }
        let repeated = self.entries.iter().filter_map(|(partition, replicas)| {
            let repeated = duplicates(replicas);
            let text = || {
                let ids = joined(&repeated);
                format!("{partition} contains multiple entries for {ids}")
            };
            (!repeated.is_empty()).then(text)
        });
        let repeated: Vec<_> = repeated.collect();
        if !repeated.is_empty() {
            return Err(ToolError::failed(format!(
                "Partition replica lists may not contain duplicate entries: {}",
                repeated.join(". ")
            )));
        }
        Ok(self.entries.iter().cloned().collect())
    }
}

/// What is there more than once.
pub(super) fn duplicates<T: Ord + Clone>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut seen = BTreeSet::new();
    let mut repeated = BTreeSet::new();
    for item in items {
        if !seen.insert(item.clone()) {
            repeated.insert(item);
        }
    }
    repeated
}

#[derive(Debug, Serialize)]
struct File<'a> {
    version: i32,
    partitions: Vec<FileEntry<'a>>,
}

#[derive(Debug, Serialize)]
struct FileEntry<'a> {
    topic: &'a str,
    partition: i32,
    replicas: &'a [i32],
    log_dirs: Vec<&'a str>,
}

/// The file that would lead to this assignment.
///
/// # Errors
/// When it does not serialize.
pub(super) fn format(
    assignment: &Assignment,
    directories: &Directories,
) -> Result<String, ToolError> {
    let partitions = assignment.iter().map(|(partition, replicas)| {
        let directory = |&broker: &i32| {
            let replica = Replica {
                broker,
                partition: partition.clone(),
            };
            directories.get(&replica).map_or(ANY, String::as_str)
        };
        FileEntry {
            topic: &partition.topic,
            partition: partition.partition,
            replicas,
            log_dirs: replicas.iter().map(directory).collect(),
        }
    });
    let file = File {
        version: 1,
        partitions: partitions.collect(),
    };
    serde_json::to_string(&file).map_err(|error| ToolError::failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"{"version":1,"partitions":[{"topic":"b","partition":1,"replicas":[2,3],"log_dirs":["/x","any"]},{"topic":"a","partition":0,"replicas":[1]}]}"#;

    #[test]
    fn the_file_is_read_and_written() {
        let plan = parse(TWO).expect("parses");
        let replica = Replica {
            broker: 2,
            partition: TopicPartition::new("b", 1),
        };
        assert_eq!(replica.to_string(), "b-1-2");
        assert_eq!(
            plan.directories,
            BTreeMap::from([(replica, "/x".to_owned())])
        );
        let assignment = plan.assignment().expect("sound");
        assert_eq!(
            format(&assignment, &plan.directories).expect("serializes"),
            r#"{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1],"log_dirs":["any"]},{"topic":"b","partition":1,"replicas":[2,3],"log_dirs":["/x","any"]}]}"#
        );
    }

    #[test]
    fn what_cannot_be_carried_out_is_refused() {
        let entry =
            |replicas: &str| format!(r#"{{"topic":"a","partition":0,"replicas":[{replicas}]}}"#);
        let error = |entries: &[String]| {
            let text = format!(r#"{{"partitions":[{}]}}"#, entries.join(","));
            let plan = parse(&text).expect("parses");
            plan.assignment().expect_err("unsound").to_string()
        };
        assert_eq!(error(&[]), "Partition reassignment list cannot be empty");
        assert_eq!(
            error(&[entry("")]),
            "Partition replica list cannot be empty"
        );
        assert_eq!(
            error(&[entry("1"), entry("2")]),
            "Partition reassignment contains duplicate topic partitions: a-0"
        );
        assert_eq!(
            error(&[entry("2,2")]),
            "Partition replica lists may not contain duplicate entries: a-0 contains multiple entries for 2"
        );
        let text =
            r#"{"partitions":[{"topic":"a","partition":0,"replicas":[1,2],"log_dirs":["any"]}]}"#;
        let error = parse(text).expect_err("one directory for two").to_string();
        assert!(
            error.starts_with("Size of replicas list [1, 2] is different"),
            "{error}"
        );
    }
}
