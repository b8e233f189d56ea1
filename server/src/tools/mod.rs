//! Kafka's command-line tools: the options and the output of `kafka-*.sh`, without a JVM.
//!
//! Every tool is a file or folder with its arguments and `async fn run(arguments, out)`. What a tool asks for and what
//! it prints is worked out by functions without I/O; [`client`] does the asking.

mod broker_api_versions;
mod client;
mod configs;
mod console_consumer;
mod console_producer;
mod consumer;
mod consumer_groups;
mod consumer_perf_test;
mod delete_records;
mod dump_log;
mod error;
mod fixed;
mod get_offsets;
mod java_order;
mod json;
mod leader_election;
mod lists;
mod log_dirs;
mod metadata_quorum;
mod patterns;
mod producer;
mod producer_perf_test;
mod properties;
mod reassign;
mod records;
mod signals;
mod table;
mod topics;

use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use client::{ClientProperties, Cluster, Endpoint, KafkaError};
pub(crate) use error::ToolError;

/// Exit code of a tool that failed, and of one that was started in the wrong way, as in Kafka.
const FAILURE: u8 = 1;
/// The client id of tools that Kafka gives none of their own.
const CLIENT_ID: &str = "adminclient-1";

/// The tools; the name of each is that of Kafka's script without `kafka-` and `.sh`.
#[derive(Debug, Subcommand)]
pub(crate) enum Tool {
    /// Create, list, describe, change and delete topics
    #[command(display_order = 100)]
    Topics(topics::TopicsArguments),

    /// Print and change settings of topics, brokers and groups
    #[command(display_order = 101)]
    Configs(configs::ConfigsArguments),

    /// Print the offsets of partitions at a time
    #[command(display_order = 105)]
    GetOffsets(get_offsets::GetOffsetsArguments),

    /// Elect leaders: the preferred replicas, or any
    #[command(display_order = 106)]
    LeaderElection(leader_election::LeaderElectionArguments),

    /// Move replicas to other brokers or directories
    #[command(display_order = 107)]
    ReassignPartitions(reassign::ReassignPartitionsArguments),

    /// Print the directories of replicas and their sizes
    #[command(display_order = 108)]
    LogDirs(log_dirs::LogDirsArguments),

    /// Delete the records of partitions up to an offset
    #[command(display_order = 110)]
    DeleteRecords(delete_records::DeleteRecordsArguments),
    /// List, describe and delete consumer groups, and set their offsets
    #[command(display_order = 120)]
    ConsumerGroups(consumer_groups::ConsumerGroupsArguments),
    /// Print the records of topics
    #[command(display_order = 130)]
    ConsoleConsumer(console_consumer::ConsoleConsumerArguments),
    /// Make records of the lines of standard input
    #[command(display_order = 131)]
    ConsoleProducer(console_producer::ConsoleProducerArguments),
    /// Measure how fast records are consumed
    #[command(display_order = 210)]
    ConsumerPerfTest(consumer_perf_test::ConsumerPerfTestArguments),
    /// Measure how fast records are produced
    #[command(display_order = 211)]
    ProducerPerfTest(producer_perf_test::ProducerPerfTestArguments),
    /// Print what is in the files of a partition
    #[command(display_order = 200)]
    DumpLog(dump_log::DumpLogArguments),

    /// Print the versions of each API that the brokers serve
    #[command(display_order = 111)]
    BrokerApiVersions(broker_api_versions::BrokerApiVersionsArguments),

    /// Print the controllers, and how far each is
    #[command(display_order = 112)]
    MetadataQuorum(metadata_quorum::MetadataQuorumArguments),
}

impl Tool {
    /// Does what the tool is asked to; its output goes to stdout, an error to stderr.
    pub(crate) fn run(self) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let result = match runtime {
            Ok(runtime) => {
                let mut out = BufWriter::new(io::stdout().lock());
                let result = runtime.block_on(self.dispatch(&mut out));
                // What was printed before an error is seen before it.
                result.and(out.flush().map_err(ToolError::from))
            }
            Err(error) => Err(ToolError::failed(format!("cannot start: {error}"))),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            // A reader that has gone away is no failure.
            Err(ToolError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            Err(ToolError::Exit(code)) => ExitCode::from(code),
            Err(error) => {
                ToolError::warn(&error.to_string());
                ExitCode::from(FAILURE)
            }
        }
    }

    async fn dispatch(self, out: &mut dyn Write) -> Result<(), ToolError> {
        match self {
            Tool::Topics(arguments) => topics::run(arguments, out).await,
            Tool::Configs(arguments) => configs::run(arguments, out).await,
            Tool::GetOffsets(arguments) => get_offsets::run(arguments, out).await,
            Tool::LeaderElection(arguments) => leader_election::run(arguments, out).await,
            Tool::ReassignPartitions(arguments) => reassign::run(arguments, out).await,
            Tool::LogDirs(arguments) => log_dirs::run(arguments, out).await,
            Tool::BrokerApiVersions(arguments) => broker_api_versions::run(arguments, out).await,
            Tool::MetadataQuorum(arguments) => metadata_quorum::run(arguments, out).await,
            Tool::DeleteRecords(arguments) => delete_records::run(arguments, out).await,
            Tool::ConsumerGroups(arguments) => consumer_groups::run(arguments, out).await,
            Tool::ConsoleConsumer(arguments) => console_consumer::run(arguments, out).await,
            Tool::ConsoleProducer(arguments) => console_producer::run(arguments, out).await,
            Tool::ConsumerPerfTest(arguments) => consumer_perf_test::run(arguments, out).await,
            Tool::ProducerPerfTest(arguments) => producer_perf_test::run(arguments, out).await,
            Tool::DumpLog(arguments) => dump_log::run(&arguments, out),
        }
    }
}

/// Where the cluster is, for the tools whose options are named so.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterOptions {
    /// Brokers to start from; the first that answers names the others
    #[arg(long, value_name = "HOST:PORT,...")]
    bootstrap_server: String,

    /// Properties file of the client
    #[arg(long, value_name = "FILE")]
    command_config: Option<PathBuf>,
}

impl ClusterOptions {
    /// The client of that cluster.
    ///
    /// # Errors
    /// When an address or a property is wrong.
    fn cluster(&self) -> Result<Cluster, KafkaError> {
        self.cluster_named(CLIENT_ID)
    }

    /// As [`cluster`](Self::cluster), where the brokers are told this client id.
    ///
    /// # Errors
    /// When an address or a property is wrong.
    fn cluster_named(&self, client_id: &str) -> Result<Cluster, KafkaError> {
        let properties = ClientProperties::load(self.command_config.as_deref())?;
        Cluster::new(&self.bootstrap_server, &properties, client_id)
    }
}

/// Where the cluster is, for the tools that may ask the controllers too.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct EitherBootstrap {
    /// Brokers to start from; the first that answers names the others
    #[arg(long, value_name = "HOST:PORT,...")]
    bootstrap_server: Option<String>,

    /// Controllers to start from, in place of brokers
    #[arg(long, value_name = "HOST:PORT,...")]
    bootstrap_controller: Option<String>,
}

impl EitherBootstrap {
    /// The client of that cluster.
    ///
    /// # Errors
    /// When an address or a property is wrong.
    fn cluster(&self, command_config: Option<&Path>) -> Result<Cluster, KafkaError> {
        let properties = ClientProperties::load(command_config)?;
        match (&self.bootstrap_controller, &self.bootstrap_server) {
            (Some(controllers), _) => {
                Cluster::of(Endpoint::Controllers, controllers, &properties, CLIENT_ID)
            }
            (None, brokers) => {
                let brokers = brokers.as_deref().unwrap_or_default();
                Cluster::new(brokers, &properties, CLIENT_ID)
            }
        }
    }
}

/// The client of the cluster with these brokers; `defaults` are properties where the file has none.
///
/// # Errors
/// When an address or a property is wrong.
fn connect(
    bootstrap_server: &str,
    command_config: Option<&Path>,
    defaults: &[(&str, &str)],
) -> Result<Cluster, KafkaError> {
    let mut properties = ClientProperties::load(command_config)?;
    for (key, value) in defaults {
        if properties.get(key).is_none() {
            properties.set(key, value);
        }
    }
    Cluster::new(bootstrap_server, &properties, CLIENT_ID)
}

/// Whether a subcommand is one of the tools.
pub(crate) fn is_tool(name: &OsStr) -> bool {
    name.to_str().is_some_and(Tool::has_subcommand)
}

/// The names of Kafka's scripts that are tools here.
pub(crate) fn scripts() -> impl Iterator<Item = String> {
    let tools = Tool::augment_subcommands(clap::Command::new("tools"));
    let names: Vec<String> = tools
        .get_subcommands()
        .map(|tool| format!("kafka-{}.sh", tool.get_name()))
        .collect();
    names.into_iter()
}

/// The tool that a program of this name is: `kafka-topics.sh` or `kafka-topics`, in any directory.
pub(crate) fn named_by_program(program: &OsStr) -> Option<OsString> {
    let name = Path::new(program).file_name()?.to_str()?;
    let name = name.strip_prefix("kafka-")?;
    let name = name.strip_suffix(".sh").unwrap_or(name);
    Tool::has_subcommand(name).then(|| OsString::from(name))
}

/// Makes the options of the tools take what Kafka's take: a value may begin with a dash (`--time -1`), and there is
/// `--version`.
pub(crate) fn with_kafka_values(command: clap::Command) -> clap::Command {
    command.mut_subcommands(|command| match is_tool(OsStr::new(command.get_name())) {
        true => take_hyphen_values(command)
            .version(env!("CARGO_PKG_VERSION"))
            .arg_required_else_help(true),
        false => command,
    })
}

fn take_hyphen_values(command: clap::Command) -> clap::Command {
    command
        .mut_args(|argument| {
            let takes_value = argument.get_action().takes_values();
            // What may stand without a value does so in front of the next option, and what takes several ends there.
            let takes_one = argument
                .get_num_args()
                .is_none_or(|count| (count.min_values(), count.max_values()) == (1, 1));
            argument.allow_hyphen_values(takes_value && takes_one)
        })
        .mut_subcommands(take_hyphen_values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_is_a_tool_where_kafka_has_such_a_script() {
        let named = |program: &str| named_by_program(OsStr::new(program));
        let tool = Some(OsString::from("delete-records"));
        assert_eq!(named("/opt/kafka/bin/kafka-delete-records.sh"), tool);
        assert_eq!(named("kafka-delete-records"), tool);
        for other in [
            "highwater",
            "delete-records",
            "kafka-nothing.sh",
            "kafka-.sh",
            "",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
