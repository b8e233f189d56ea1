//! What is read, and what comes of it.

use regex::Regex;

use super::Fetched;
use crate::tools::ToolError;
use crate::tools::client::TopicPartition;
use crate::tools::patterns;

/// What is read.
#[derive(Debug, Clone)]
pub(crate) enum Subscription {
    /// Topics by name.
    Topics(Vec<String>),
    /// All topics whose whole name matches.
    Pattern(Regex),
    /// One partition, from a place on.
    Partition(TopicPartition, Start),
}

impl Subscription {
    /// The topics that `--include` stands for.
    ///
    /// # Errors
    /// When it is no regular expression.
    pub(crate) fn including(pattern: &str) -> Result<Self, ToolError> {
        match Regex::new(&format!("^(?:{pattern})$")) {
            Ok(pattern) => Ok(Subscription::Pattern(pattern)),
            Err(error) => ToolError::refuse(format!(
                "--include {pattern} is no regular expression: {}",
                patterns::reason(&error)
            )),
        }
    }
}

/// A place in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// The first record.
    Earliest,
    /// Behind the last record.
    Latest,
    /// An offset.
    At(i64),
}

/// A record that was read.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// Where it is from.
    pub(crate) partition: TopicPartition,
    /// The record.
    pub(crate) fetched: Fetched,
}
