//! `reassign-partitions`: replicas move to other brokers or directories.

mod execute;
mod generate;
mod log_dirs;
mod plan;
mod throttle;
mod verify;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::client::{Cluster, KafkaError};
use super::lists::joined;
use super::topics::{Reassignment, list_reassignments};
use super::{EitherBootstrap, ToolError, json};

/// Options of the tool.
#[derive(Debug, Args)]
pub(crate) struct ReassignPartitionsArguments {
    #[command(flatten)]
    bootstrap: EitherBootstrap,

    /// Properties file of the client
    #[arg(long, value_name = "FILE")]
    command_config: Option<PathBuf>,

    /// Propose where replicas could go; nothing is changed
    #[arg(long, help_heading = "Action")]
    generate: bool,

    /// Start the reassignment of the file
    #[arg(long, help_heading = "Action")]
    execute: bool,

    /// See how far the reassignment of the file is; when it is done, throttles are taken away
    #[arg(long, help_heading = "Action")]
    verify: bool,

    /// Stop the reassignment of the file
    #[arg(long, help_heading = "Action")]
    cancel: bool,

    /// List all reassignments under way
    #[arg(long, help_heading = "Action")]
    list: bool,

    /// JSON file with the new replicas; log_dirs, one for each replica, is a directory or "any" and may be left out:
    /// {"partitions": [{"topic": "foo", "partition": 1, "replicas": [1,2,3], "log_dirs": ["any","any","any"]}], "version": 1}
    #[arg(long, value_name = "FILE")]
    reassignment_json_file: Option<PathBuf>,

    /// Generate: JSON file with the topics: {"topics": [{"topic": "foo"}], "version": 1}
    #[arg(long, value_name = "FILE")]
    topics_to_move_json_file: Option<PathBuf>,

    /// Generate: the brokers that shall have the replicas
    #[arg(long, value_name = "ID,...")]
    broker_list: Option<String>,

    /// Generate: do not spread replicas over racks
    #[arg(long)]
    disable_rack_aware: bool,

    /// Execute: most bytes a second from broker to broker
    #[arg(long, value_name = "BYTES", default_value_t = -1, hide_default_value = true)]
    throttle: i64,

    /// Execute: most bytes a second from directory to directory
    #[arg(long, value_name = "BYTES", default_value_t = -1, hide_default_value = true)]
    replica_alter_log_dirs_throttle: i64,

    /// Execute: also while other reassignments are under way; changes their throttle too
    #[arg(long)]
    additional: bool,

    /// Execute: refuse where the number of replicas would change
    #[arg(long)]
    disallow_replication_factor_change: bool,

    /// Verify and cancel: leave throttles alone
    #[arg(long)]
    preserve_throttles: bool,

    /// Execute and cancel: milliseconds for moves between directories to begin
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    timeout: u64,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Generate,
    Execute,
    Verify,
    Cancel,
    List,
}

/// Why the tool fails: what is meant for people is printed as it is, other errors with "Error: " before them.
#[derive(Debug)]
enum Failure {
    /// A sentence of its own.
    Terse(String),
    /// Any other error.
    Other(ToolError),
}

impl<E: Into<ToolError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Other(error.into())
    }
}

/// Runs the tool. Kafka's tells what went wrong on stdout.
pub(super) async fn run(
    arguments: ReassignPartitionsArguments,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let action = check(&arguments)?;
    let text = match act(action, &arguments, out).await {
        Ok(()) => return Ok(()),
        Err(Failure::Terse(text)) => text,
        Err(Failure::Other(ToolError::Failed(text))) => format!("Error: {text}"),
        Err(Failure::Other(error)) => return Err(error),
    };
    writeln!(out, "{text}")?;
    Err(ToolError::Exit(1))
}

async fn act(
    action: Action,
    arguments: &ReassignPartitionsArguments,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let cluster = arguments
        .bootstrap
        .cluster(arguments.command_config.as_deref())?;
    let plan = match &arguments.reassignment_json_file {
        Some(file) => plan::parse(&json::read_file(file)?)?,
        None => plan::Plan::default(),
    };
    match action {
        Action::Generate => generate::generate(arguments, &cluster, out).await,
        Action::Execute => execute::execute(arguments, &plan, &cluster, out).await,
        Action::Verify => verify::verify(&plan, arguments.preserve_throttles, &cluster, out).await,
        Action::Cancel => execute::cancel(arguments, &plan, &cluster, out).await,
        Action::List => list(&cluster, out).await,
    }
}

async fn list(cluster: &Cluster, out: &mut dyn Write) -> Result<(), Failure> {
    let reassignments = list_reassignments(cluster, None).await?;
    if reassignments.is_empty() {
        writeln!(out, "No partition reassignments found.")?;
        return Ok(());
    }
    writeln!(out, "Current partition reassignments:")?;
    for (partition, reassignment) in &reassignments {
        writeln!(out, "{partition}: {}", describe(reassignment))?;
    }
    Ok(())
}

fn describe(reassignment: &Reassignment) -> String {
    let mut text = format!("replicas: {}.", joined(&reassignment.replicas));
    for (what, ids) in [
        ("adding", &reassignment.adding),
        ("removing", &reassignment.removing),
    ] {
        if !ids.is_empty() {
            text.push_str(&format!(" {what}: {}.", joined(ids)));
        }
    }
    text
}

/// Finds the action, and refuses options that do not go with it.
fn check(arguments: &ReassignPartitionsArguments) -> Result<Action, ToolError> {
    use Action::{Cancel, Execute, Generate, List, Verify};
    let actions = [
        (arguments.generate, Generate),
        (arguments.execute, Execute),
        (arguments.verify, Verify),
        (arguments.cancel, Cancel),
        (arguments.list, List),
    ];
    let mut asked = actions.into_iter().filter(|(is_asked, _)| *is_asked);
    let (Some((_, action)), None) = (asked.next(), asked.next()) else {
        return Err(ToolError::failed(
            "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list",
        ));
    };
    let of_file = arguments.reassignment_json_file.is_some();
    let options: [(&str, bool, &[Action]); 11] = [
        (
            "reassignment-json-file",
            of_file,
            &[Execute, Verify, Cancel],
        ),
        (
            "topics-to-move-json-file",
            arguments.topics_to_move_json_file.is_some(),
            &[Generate],
        ),
        ("broker-list", arguments.broker_list.is_some(), &[Generate]),
        (
            "disable-rack-aware",
            arguments.disable_rack_aware,
            &[Generate],
        ),
        ("throttle", arguments.throttle != -1, &[Execute]),
        (
            "replica-alter-log-dirs-throttle",
            arguments.replica_alter_log_dirs_throttle != -1,
            &[Execute],
        ),
        ("additional", arguments.additional, &[Execute]),
        (
            "disallow-replication-factor-change",
            arguments.disallow_replication_factor_change,
            &[Execute],
        ),
        (
            "preserve-throttles",
            arguments.preserve_throttles,
            &[Verify, Cancel],
        ),
        ("timeout", arguments.timeout != 10_000, &[Execute, Cancel]),
        (
            "bootstrap-controller",
            arguments.bootstrap.bootstrap_controller.is_some(),
            &[Cancel, List],
        ),
    ];
    // The first three are needed wherever they are taken.
    for (option, is_set, actions) in &options[..3] {
        if actions.contains(&action) && !is_set {
            let text = format!("Missing required argument \"[{option}]\"");
            return Err(ToolError::failed(text));
        }
    }
    let mut wrong = options.iter();
    match wrong.find(|(_, is_set, actions)| *is_set && !actions.contains(&action)) {
        None => Ok(action),
        Some((option, ..)) => Err(ToolError::failed(format!(
            "Option \"[{option}]\" can't be used with action \"[{}]\"",
            format!("{action:?}").to_ascii_lowercase()
        ))),
    }
}

/// The error of a topic that is not there, as this tool words it.
fn not_found(error: KafkaError, topic: &str) -> KafkaError {
    match error.class {
        "UnknownTopicOrPartitionException" => KafkaError {
            message: format!("Topic {topic} not found."),
            ..error
        },
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: ReassignPartitionsArguments,
    }

    fn checked(line: &str) -> Result<Action, String> {
        let words = ["reassign", "--bootstrap-server", "h:1"];
        let words = words.into_iter().chain(line.split_whitespace());
        let line = Line::try_parse_from(words).expect("parses");
        check(&line.arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn an_action_has_its_options() {
        assert_eq!(checked("--list"), Ok(Action::List));
        let line = "--execute --reassignment-json-file f --throttle 5 --additional";
        assert_eq!(checked(line), Ok(Action::Execute));
        for (line, text) in [
            ("", "Command must include exactly one action"),
            ("--list --verify", "Command must include exactly one action"),
            (
                "--execute",
                "Missing required argument \"[reassignment-json-file]\"",
            ),
            (
                "--generate --topics-to-move-json-file f",
                "Missing required argument \"[broker-list]\"",
            ),
            (
                "--execute --reassignment-json-file f --preserve-throttles",
                "Option \"[preserve-throttles]\" can't be used with action \"[execute]\"",
            ),
        ] {
            let error = checked(line).expect_err(line);
            assert!(error.starts_with(text), "{error}");
        }
    }

    #[test]
    fn a_reassignment_is_a_line() {
        let mut reassignment = Reassignment {
            replicas: vec![1, 2, 3],
            adding: vec![3],
            removing: vec![1],
        };
        assert_eq!(
            describe(&reassignment),
            "replicas: 1,2,3. adding: 3. removing: 1."
        );
        reassignment.removing.clear();
        assert_eq!(describe(&reassignment), "replicas: 1,2,3. adding: 3.");
    }
}
