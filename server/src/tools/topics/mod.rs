//! `topics`: create, list, describe, change and delete topics.

mod change;
mod create;
mod describe;
mod print;
mod reassignments;

use std::io::Write;

use clap::Args;
use highwater_replication::cluster::topic_name::is_internal;

use super::client::{Cluster, KafkaError, TopicListing};
use super::patterns::TopicPattern;
use super::{ClusterOptions, ToolError};

pub(super) use reassignments::{Reassignment, list_reassignments};

/// Options of the tool.
#[derive(Debug, Args)]
pub(crate) struct TopicsArguments {
    #[command(flatten)]
    cluster: ClusterOptions,

    /// Create a topic
    #[arg(long, help_heading = "Action")]
    create: bool,

    /// List the topics
    #[arg(long, help_heading = "Action")]
    list: bool,

    /// Show partitions, leaders, replicas and in-sync replicas of topics
    #[arg(long, help_heading = "Action")]
    describe: bool,

    /// Change the number of partitions (settings are changed with configs)
    #[arg(long, help_heading = "Action")]
    alter: bool,

    /// Delete topics
    #[arg(long, help_heading = "Action")]
    delete: bool,

    /// Name of the topic; a regular expression too, but with --create
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,

    /// Id of the topic to describe
    #[arg(long, value_name = "ID")]
    topic_id: Option<String>,

    /// Number of partitions to create, or to grow to
    #[arg(long, value_name = "COUNT")]
    partitions: Option<i32>,

    /// Replicas of each partition
    #[arg(long, value_name = "COUNT")]
    replication_factor: Option<i32>,

    /// Brokers of each partition's replicas, the preferred leader first: partition 0 on 1 and 2, partition 1 on 2 and 3 is 1:2,2:3
    #[arg(long, value_name = "IDS,...")]
    replica_assignment: Option<String>,

    /// Setting of the topic to create; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    config: Vec<String>,

    /// No longer supported by Kafka, which takes it and says so
    #[arg(long, value_name = "NAME", hide = true)]
    delete_config: Vec<String>,

    /// Describe: only partitions with a replica that is out of sync
    #[arg(long)]
    under_replicated_partitions: bool,

    /// Describe: only partitions without a leader
    #[arg(long)]
    unavailable_partitions: bool,

    /// Describe: only partitions with fewer in-sync replicas than min.insync.replicas
    #[arg(long)]
    under_min_isr_partitions: bool,

    /// Describe: only partitions with exactly min.insync.replicas in-sync replicas
    #[arg(long)]
    at_min_isr_partitions: bool,

    /// Describe: only topics with settings of their own
    #[arg(long)]
    topics_with_overrides: bool,

    /// Leave Kafka's own topics out
    #[arg(long)]
    exclude_internal: bool,

    /// Do nothing where the topic does not exist
    #[arg(long)]
    if_exists: bool,

    /// Do not fail where the topic exists
    #[arg(long)]
    if_not_exists: bool,

    /// Describe: partitions that one response may have
    #[arg(long, value_name = "COUNT")]
    partition_size_limit_per_response: Option<i32>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Create,
    List,
    Describe,
    Alter,
    Delete,
}

/// Runs the tool. Kafka's tells what went wrong on stdout.
pub(super) async fn run(arguments: TopicsArguments, out: &mut dyn Write) -> Result<(), ToolError> {
    let action = check(&arguments)?;
    if !arguments.delete_config.is_empty() {
        ToolError::warn(
            "delete-config option is no longer supported and deprecated since version 4.0. \
             The config will be fully removed in future releases.",
        );
    }
    let cluster = arguments.cluster.cluster()?;
    match act(action, &arguments, &cluster, out).await {
        Err(ToolError::Failed(text)) => {
            writeln!(out, "Error while executing topic command : {text}")?;
            Err(ToolError::Exit(1))
        }
        result => result,
    }
}

async fn act(
    action: Action,
    arguments: &TopicsArguments,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    match action {
        Action::Create => create::create(arguments, cluster, out).await,
        Action::List => list(arguments, cluster, out).await,
        Action::Describe => describe::describe(arguments, cluster, out).await,
        Action::Alter => change::alter(arguments, cluster).await,
        Action::Delete => change::delete(arguments, cluster).await,
    }
}

/// An error of the protocol as this tool words it: without the class.
fn plain(error: KafkaError) -> ToolError {
    ToolError::Failed(error.message)
}

async fn list(
    arguments: &TopicsArguments,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let topics = chosen(arguments, cluster).await?;
    let names: Vec<_> = topics.into_iter().map(|topic| topic.name).collect();
    writeln!(out, "{}", names.join("\n"))?;
    Ok(())
}

/// The topics that `--topic` and `--exclude-internal` leave, by name.
async fn chosen(
    arguments: &TopicsArguments,
    cluster: &Cluster,
) -> Result<Vec<TopicListing>, ToolError> {
    let pattern = arguments.topic.as_deref().map(TopicPattern::new);
    let pattern = pattern.transpose()?;
    let mut topics = cluster.list_topics().await.map_err(plain)?;
    topics.retain(|topic| {
        let is_wanted = pattern
            .as_ref()
            .is_none_or(|pattern| pattern.matches(&topic.name));
        is_wanted && !(arguments.exclude_internal && is_internal(&topic.name))
    });
    Ok(topics)
}

/// As [`chosen`]; a `--topic` that is none is an error, but with `--if-exists`.
async fn existing(
    arguments: &TopicsArguments,
    cluster: &Cluster,
) -> Result<Vec<TopicListing>, ToolError> {
    let topics = chosen(arguments, cluster).await?;
    match arguments.topic.as_deref() {
        Some(topic) if topics.is_empty() && !topic.is_empty() && !arguments.if_exists => Err(
            ToolError::failed(format!("Topic '{topic}' does not exist as expected")),
        ),
        _ => Ok(topics),
    }
}

/// Finds the action, and refuses options that do not go with it or each other.
fn check(arguments: &TopicsArguments) -> Result<Action, ToolError> {
    let actions = [
        (arguments.create, Action::Create),
        (arguments.list, Action::List),
        (arguments.describe, Action::Describe),
        (arguments.alter, Action::Alter),
        (arguments.delete, Action::Delete),
    ];
    let mut asked = actions.into_iter().filter(|(is_asked, _)| *is_asked);
    let (Some((_, action)), None) = (asked.next(), asked.next()) else {
        return Err(ToolError::failed(
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete",
        ));
    };
    let needs_topic = !matches!(action, Action::List | Action::Describe);
    if needs_topic && arguments.topic.is_none() {
        return Err(missing("topic"));
    }
    if action == Action::Describe
        && arguments.if_exists
        && arguments.topic.is_none()
        && arguments.topic_id.is_none()
    {
        return Err(ToolError::failed(
            "--topic or --topic-id is required to describe a topic",
        ));
    }
    if action == Action::Alter {
        if !arguments.config.is_empty() {
            return Err(ToolError::failed(
                "Option combination \"[bootstrap-server],[config]\" can't be used with option \"[alter]\" \
                 (To alter topic configurations, the kafka-configs tool can be used.)",
            ));
        }
        if arguments.partitions.is_none() {
            return Err(missing("partitions"));
        }
    }
    check_combinations(arguments, action)?;
    Ok(action)
}

fn missing(option: &str) -> ToolError {
    ToolError::failed(format!("Missing required argument \"[{option}]\""))
}

fn check_combinations(arguments: &TopicsArguments, action: Action) -> Result<(), ToolError> {
    use Action::{Alter, Create, Delete, Describe, List};
    let goes_with: [(&str, bool, &[Action]); 12] = [
        ("config", !arguments.config.is_empty(), &[Alter, Create]),
        (
            "partitions",
            arguments.partitions.is_some(),
            &[Alter, Create],
        ),
        (
            "replication-factor",
            arguments.replication_factor.is_some(),
            &[Create],
        ),
        (
            "replica-assignment",
            arguments.replica_assignment.is_some(),
            &[Alter, Create],
        ),
        (
            "under-replicated-partitions",
            arguments.under_replicated_partitions,
            &[Describe],
        ),
        (
            "under-min-isr-partitions",
            arguments.under_min_isr_partitions,
            &[Describe],
        ),
        (
            "at-min-isr-partitions",
            arguments.at_min_isr_partitions,
            &[Describe],
        ),
        (
            "unavailable-partitions",
            arguments.unavailable_partitions,
            &[Describe],
        ),
        (
            "topics-with-overrides",
            arguments.topics_with_overrides,
            &[Describe],
        ),
        ("if-exists", arguments.if_exists, &[Alter, Delete, Describe]),
        ("if-not-exists", arguments.if_not_exists, &[Create]),
        (
            "exclude-internal",
            arguments.exclude_internal,
            &[List, Describe],
        ),
    ];
    let wrong = goes_with
        .iter()
        .find(|(_, is_set, actions)| *is_set && !actions.contains(&action));
    if let Some((option, ..)) = wrong {
        return Err(apart(option, action.name()));
    }
    if action == Create && arguments.replica_assignment.is_some() {
        if arguments.partitions.is_some() {
            return Err(apart("replica-assignment", "partitions"));
        }
        if arguments.replication_factor.is_some() {
            return Err(apart("replica-assignment", "replication-factor"));
        }
    }
    let reports: Vec<_> = goes_with[4..9]
        .iter()
        .filter(|(_, is_set, _)| *is_set)
        .collect();
    match reports[..] {
        [first, second, ..] => Err(apart(first.0, second.0)),
        _ => Ok(()),
    }
}

fn apart(one: &str, other: &str) -> ToolError {
    ToolError::failed(format!(
        "Option \"[{one}]\" can't be used with option \"[{other}]\""
    ))
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Action::Create => "create",
            Action::List => "list",
            Action::Describe => "describe",
            Action::Alter => "alter",
            Action::Delete => "delete",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: TopicsArguments,
    }

    pub(super) fn parse(line: &str) -> TopicsArguments {
        let words = ["topics", "--bootstrap-server", "h:1"];
        let words = words.into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).expect("parses").arguments
    }

    fn checked(line: &str) -> Result<Action, String> {
        check(&parse(line)).map_err(|error| error.to_string())
    }

    #[test]
    fn exactly_one_action_is_needed() {
        assert_eq!(checked("--list"), Ok(Action::List));
        assert!(
            checked("")
                .expect_err("none")
                .starts_with("Command must include exactly one")
        );
        assert!(checked("--list --describe").is_err());
    }

    #[test]
    fn what_an_action_needs_and_refuses() {
        for (line, option) in [
            ("--create", "topic"),
            ("--delete", "topic"),
            ("--alter --topic t", "partitions"),
        ] {
            let text = format!("Missing required argument \"[{option}]\"");
            assert_eq!(checked(line), Err(text));
        }
        for line in [
            "--list --partitions 3",
            "--create --topic t --if-exists",
            "--delete --topic t --exclude-internal",
            "--create --topic t --replica-assignment 1:2 --partitions 1",
            "--create --topic t --replica-assignment 1:2 --replication-factor 1",
            "--describe --unavailable-partitions --topics-with-overrides",
            "--alter --topic t --partitions 2 --config a=b",
            "--describe --if-exists",
        ] {
            assert!(checked(line).is_err(), "{line}");
        }
        assert_eq!(
            checked("--describe --topic t --if-exists"),
            Ok(Action::Describe)
        );
        assert_eq!(
            checked("--alter --topic t --partitions 2"),
            Ok(Action::Alter)
        );
    }
}
