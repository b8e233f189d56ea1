//! `get-offsets`: the offsets of partitions at a time.

use std::collections::BTreeSet;
use std::io::Write;
use std::ops::Range;

use clap::Args;
use highwater_replication::cluster::topic_name::is_internal;

use super::client::{TopicListing, TopicPartition};
use super::patterns::TopicPattern;
use super::{ClusterOptions, ToolError};

/// The offset where there is none for the time.
const NO_OFFSET: i64 = -1;
/// Offsets up to the high watermark.
const READ_UNCOMMITTED: i8 = 0;

/// Options of the tool.
#[derive(Debug, Args)]
pub(crate) struct GetOffsetsArguments {
    #[command(flatten)]
    cluster: ClusterOptions,

    /// Topics, a regular expression; without it all
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,

    /// Partitions; without it all
    #[arg(long, value_name = "INDEX,...")]
    partitions: Option<String>,

    /// Topics with partitions: a partition 1, a range 0-3 without its end, 5- from there on, -3 up to there
    #[arg(long, value_name = "TOPIC:PARTITIONS,...")]
    topic_partitions: Option<String>,

    /// A timestamp in milliseconds, or latest (-1), earliest (-2), max-timestamp (-3), earliest-local (-4),
    /// latest-tiered (-5), earliest-pending-upload (-6)
    #[arg(long, value_name = "TIME", default_value = "latest")]
    time: String,

    /// Leave Kafka's own topics out
    #[arg(long)]
    exclude_internal_topics: bool,
}

/// Runs the tool.
pub(super) async fn run(
    arguments: GetOffsetsArguments,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    print_offsets(arguments, out)
        .await
        .map_err(|error| match error {
            ToolError::Failed(text) => ToolError::failed(format!("Error occurred: {text}")),
            error => error,
        })
}

async fn print_offsets(
    arguments: GetOffsetsArguments,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let filter = Filter::of(&arguments)?;
    let timestamp = parse_time(&arguments.time)?;
    let cluster = arguments.cluster.cluster_named("GetOffsetShell")?;
    let topics = cluster.list_topics().await?;
    let partitions = filter.choose(&topics, arguments.exclude_internal_topics);
    if partitions.is_empty() {
        return Err(ToolError::failed(
            "Could not match any topic-partitions with the specified filters",
        ));
    }
    let offsets = cluster
        .list_offsets(partitions, timestamp, READ_UNCOMMITTED)
        .await?;
    let mut lines: Vec<_> = offsets.into_iter().collect();
    lines.sort_by_key(|(partition, _)| partition.to_string());
    for (partition, offset) in lines {
        match offset {
            Ok(NO_OFFSET) => {}
            Ok(offset) => writeln!(out, "{}:{}:{offset}", partition.topic, partition.partition)?,
            Err(error) => ToolError::warn(&format!(
                "Skip getting offsets for topic-partition {partition} due to error: {}",
                error.in_full()
            )),
        }
    }
    Ok(())
}

fn parse_time(text: &str) -> Result<i64, ToolError> {
    match text {
        "latest" => Ok(-1),
        "earliest" => Ok(-2),
        "max-timestamp" => Ok(-3),
        "earliest-local" => Ok(-4),
        "latest-tiered" => Ok(-5),
        "earliest-pending-upload" => Ok(-6),
        _ => text.parse().map_err(|_| {
            ToolError::failed(format!(
                "Malformed time argument {text}. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / \
                 -4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, or a specified long \
                 format timestamp"
            ))
        }),
    }
}

/// Partitions of topics that a pattern chooses.
#[derive(Debug)]
struct Rule {
    topics: TopicPattern,
    partitions: Partitions,
}

#[derive(Debug)]
enum Partitions {
    Any,
    Of(BTreeSet<i32>),
    In(Range<i32>),
}

/// Which partitions are asked for: those that any rule chooses.
#[derive(Debug)]
struct Filter {
    rules: Vec<Rule>,
}

impl Filter {
    fn of(arguments: &GetOffsetsArguments) -> Result<Self, ToolError> {
        let Some(list) = arguments.topic_partitions.as_deref() else {
            let topics = arguments.topic.as_deref().unwrap_or(".*");
            let rule = Rule {
                topics: TopicPattern::new(topics)?,
                partitions: parse_indexes(arguments.partitions.as_deref().unwrap_or_default())?,
            };
            return Ok(Filter { rules: vec![rule] });
        };
        if arguments.topic.is_some() || arguments.partitions.is_some() {
            return Err(ToolError::failed(
                "--topic-partitions cannot be used with --topic or --partitions",
            ));
        }
        let rules = list.split(',').map(parse_rule).collect::<Result<_, _>>()?;
        Ok(Filter { rules })
    }

    fn choose(&self, topics: &[TopicListing], without_internal: bool) -> Vec<TopicPartition> {
        let topics = topics
            .iter()
            .filter(|topic| !(without_internal && is_internal(&topic.name)));
        let partitions = topics.flat_map(|topic| {
            let indexes = topic.partitions.iter();
            indexes.map(|&index| TopicPartition::new(&topic.name, index))
        });
        partitions
            .filter(|partition| self.rules.iter().any(|rule| rule.chooses(partition)))
            .collect()
    }
}

impl Rule {
    fn chooses(&self, partition: &TopicPartition) -> bool {
        let index = partition.partition;
        let is_chosen = match &self.partitions {
            Partitions::Any => true,
            Partitions::Of(indexes) => indexes.contains(&index),
            Partitions::In(range) => range.contains(&index),
        };
        is_chosen && self.topics.matches(&partition.topic)
    }
}

fn parse_indexes(text: &str) -> Result<Partitions, ToolError> {
    if text.is_empty() {
        return Ok(Partitions::Any);
    }
    let indexes = text.split(',').map(str::parse).collect::<Result<_, _>>();
    indexes.map(Partitions::Of).map_err(|_| {
        ToolError::failed(format!(
            "--partitions expects a comma separated list of numeric partition ids, but received: {text}"
        ))
    })
}

/// Reads `TOPIC`, `TOPIC:1`, `TOPIC:0-3`, `TOPIC:5-` or `TOPIC:-3`; the topic may be left out.
fn parse_rule(text: &str) -> Result<Rule, ToolError> {
    let invalid = || ToolError::failed(format!("Invalid rule specification: {text}"));
    let (topics, partitions) = text.split_once(':').unwrap_or((text, ""));
    let number = |digits: &str, default: i32| match digits {
        "" => Ok(default),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().map_err(|_| invalid())
        }
        _ => Err(invalid()),
    };
    let partitions = match partitions.split_once('-') {
        _ if partitions.is_empty() => Partitions::Any,
        Some((from, to)) => Partitions::In(number(from, 0)?..number(to, i32::MAX)?),
        None => Partitions::Of(BTreeSet::from([number(partitions, 0)?])),
    };
    let topics = if topics.is_empty() { ".*" } else { topics };
    Ok(Rule {
        topics: TopicPattern::new(topics)?,
        partitions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(rules: &str) -> Vec<String> {
        let rules = rules.split(',').map(parse_rule).collect::<Result<_, _>>();
        let filter = Filter {
            rules: rules.expect("rules"),
        };
        let topic = |name: &str| TopicListing {
            name: name.to_owned(),
            id: uuid::Uuid::nil(),
            partitions: vec![0, 1, 2],
        };
        let topics = ["__consumer_offsets", "a", "b"].map(topic);
        let chosen = filter.choose(&topics, true);
        chosen.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_choose_partitions() {
        assert_eq!(chosen("a"), ["a-0", "a-1", "a-2"]);
        assert_eq!(chosen("a:1,:2"), ["a-1", "a-2", "b-2"]);
        assert_eq!(chosen("a:0-2,b:2-"), ["a-0", "a-1", "b-2"]);
        assert_eq!(chosen(".*:-1"), ["a-0", "b-0"]);
        for rule in ["a:x", "a:1-x", "a:99999999999"] {
            let error = parse_rule(rule).expect_err(rule);
            assert_eq!(
                error.to_string(),
                format!("Invalid rule specification: {rule}")
            );
        }
    }

    #[test]
    fn times_have_names_and_numbers() {
        assert_eq!(parse_time("earliest").expect("a time"), -2);
        assert_eq!(parse_time("-3").expect("a time"), -3);
        assert_eq!(
            parse_time("1700000000000").expect("a time"),
            1_700_000_000_000
        );
        assert!(parse_time("noon").is_err());
    }

    #[test]
    fn partitions_are_numbers() {
        assert!(matches!(parse_indexes("1,2"), Ok(Partitions::Of(_))));
        let error = parse_indexes("1,x").expect_err("no number");
        assert!(error.to_string().ends_with("but received: 1,x"));
    }
}
