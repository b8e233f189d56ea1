//! `configs`: the settings of topics, brokers and groups.

mod alter;
mod describe;
mod entity;
mod parse;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::{EitherBootstrap, ToolError};
use entity::Entity;

/// Options of the tool.
#[derive(Debug, Args)]
pub(crate) struct ConfigsArguments {
    #[command(flatten)]
    bootstrap: EitherBootstrap,

    /// Properties file of the client
    #[arg(long, value_name = "FILE")]
    command_config: Option<PathBuf>,

    /// Print settings
    #[arg(long, help_heading = "Action")]
    describe: bool,

    /// Change settings
    #[arg(long, help_heading = "Action")]
    alter: bool,

    /// Describe: all settings, also those that nobody has changed
    #[arg(long)]
    all: bool,

    /// Settings to set; brackets around a value with commas: k1=v1,k2=[v1,v2],k3=v3
    #[arg(long, value_name = "KEY=VALUE,...")]
    add_config: Option<String>,

    /// Properties file with settings to set
    #[arg(long, value_name = "FILE")]
    add_config_file: Option<PathBuf>,

    /// Settings to take back
    #[arg(long, value_name = "KEY,...", value_delimiter = ',')]
    delete_config: Vec<String>,

    #[command(flatten)]
    entity: EntityOptions,
}

/// Whose settings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Whose settings")]
struct EntityOptions {
    /// topics, brokers, broker-loggers, groups or client-metrics
    #[arg(long, value_name = "TYPE")]
    entity_type: Vec<String>,

    /// Name of a topic, id of a broker and so on
    #[arg(long, value_name = "NAME")]
    entity_name: Vec<String>,

    /// What all brokers have
    #[arg(long)]
    entity_default: bool,

    /// The topic with this name
    #[arg(long, value_name = "NAME")]
    topic: Option<String>,

    /// The broker with this id
    #[arg(long, value_name = "ID")]
    broker: Option<String>,

    /// What all brokers have
    #[arg(long)]
    broker_defaults: bool,

    /// The log levels of the broker with this id
    #[arg(long, value_name = "ID")]
    broker_logger: Option<String>,

    /// The group with this id
    #[arg(long, value_name = "ID")]
    group: Option<String>,

    /// The subscription of client metrics with this name
    #[arg(long, value_name = "NAME")]
    client_metrics: Option<String>,

    /// Kafka's quotas of a client: not supported
    #[arg(long, value_name = "ID", hide = true)]
    client: Option<String>,

    /// Kafka's quotas of all clients: not supported
    #[arg(long, hide = true)]
    client_defaults: bool,

    /// Kafka's quotas and credentials of a user: not supported
    #[arg(long, value_name = "NAME", hide = true)]
    user: Option<String>,

    /// Kafka's quotas of all users: not supported
    #[arg(long, hide = true)]
    user_defaults: bool,

    /// Kafka's quotas of an address: not supported
    #[arg(long, value_name = "ADDRESS", hide = true)]
    ip: Option<String>,

    /// Kafka's quotas of all addresses: not supported
    #[arg(long, hide = true)]
    ip_defaults: bool,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Describe,
    Alter,
}

/// Runs the tool.
pub(super) async fn run(arguments: ConfigsArguments, out: &mut dyn Write) -> Result<(), ToolError> {
    let (action, entity) = check(&arguments)?;
    let cluster = arguments
        .bootstrap
        .cluster(arguments.command_config.as_deref())?;
    let result = match action {
        Action::Describe => describe::describe(&cluster, &entity, arguments.all, out).await,
        Action::Alter => alter::alter(&arguments, &cluster, &entity, out).await,
    };
    // What the cluster refuses is told as Kafka's tool tells it.
    result.map_err(|error| match error {
        alter::Failure::Cluster(error) => ToolError::failed(format!(
            "Error while executing config command: {}",
            error.in_full()
        )),
        alter::Failure::Tool(error) => error,
    })
}

fn check(arguments: &ConfigsArguments) -> Result<(Action, Entity), ToolError> {
    let action = match (arguments.describe, arguments.alter) {
        (true, false) => Action::Describe,
        (false, true) => Action::Alter,
        _ => {
            return Err(ToolError::failed(
                "Command must include exactly one action: --describe, --alter",
            ));
        }
    };
    let has_changes = arguments.add_config.is_some() || !arguments.delete_config.is_empty();
    if action == Action::Describe && has_changes {
        let option = match arguments.add_config {
            Some(_) => "add-config",
            None => "delete-config",
        };
        let text = format!("Option \"[describe]\" can't be used with option \"[{option}]\"");
        return Err(ToolError::failed(text));
    }
    let entity = entity::choose(&arguments.entity, action)?;
    if action == Action::Alter {
        if arguments.add_config.is_some() && arguments.add_config_file.is_some() {
            return Err(ToolError::failed(
                "Only one of --add-config or --add-config-file must be specified",
            ));
        }
        if !has_changes && arguments.add_config_file.is_none() {
            return Err(ToolError::failed(
                "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter",
            ));
        }
    }
    Ok((action, entity))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: ConfigsArguments,
    }

    fn checked(line: &str) -> Result<(Action, Entity), String> {
        let words = ["configs", "--bootstrap-server", "h:1"];
        let words = words.into_iter().chain(line.split_whitespace());
        let line = Line::try_parse_from(words).expect("parses");
        check(&line.arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn one_action_with_its_options() {
        assert!(
            checked("--topic t")
                .expect_err("none")
                .starts_with("Command must include")
        );
        assert!(checked("--describe --topic t --delete-config a").is_err());
        assert!(
            checked("--alter --topic t")
                .expect_err("nothing")
                .starts_with("At least one of --add")
        );
        assert!(checked("--alter --topic t --add-config a=b --add-config-file f").is_err());
        let (action, _) = checked("--alter --topic t --delete-config a,b").expect("fine");
        assert_eq!(action, Action::Alter);
    }
}
