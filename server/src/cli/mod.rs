//! The command line: what may be asked for, and the way from there to a running broker.

mod cluster;
mod completions;
mod health;
mod link_tools;
mod logging;
mod playground;
mod ready;
mod runtime;
mod settings;
mod signals;
mod start;
mod wrong_arguments;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::config;
use crate::tools::{self, Tool};

/// Exit code when the broker cannot start or ends by an error.
const FAILURE: u8 = 1;

/// Exit code of wrong arguments, those of Kafka's tools excepted.
const WRONG_ARGUMENTS: u8 = 2;

/// Arguments of the process.
#[derive(Debug, Parser)]
#[command(
    name = "highwater",
    version,
    about = "A broker that speaks Apache Kafka's wire protocol.",
    long_about = "A broker that speaks Apache Kafka's wire protocol.\n\nWithout a command it starts: on 127.0.0.1:9092, \
                  with its data in ./highwater-data.",
    after_help = "Examples:\n  highwater\n  highwater start server.properties --override log.dirs=/var/lib/highwater\n  \
                  highwater cluster --brokers 3\n  highwater playground\n  \
                  KAFKA_LISTENERS=PLAINTEXT://:9092 highwater start",
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the broker (also without any command)
    Start(StartArguments),
    /// Start several brokers on this machine as one cluster, to see replication
    Cluster(cluster::ClusterArguments),
    /// Ask the node that these settings start whether it works; the exit code is 0 if so
    Health(health::HealthArguments),
    /// Make links with the names of Kafka's scripts (kafka-topics.sh) that are this program's tools
    LinkTools(link_tools::LinkToolsArguments),
    /// Start three brokers and a page on which replication can be seen, broken and repaired
    Playground(playground::PlaygroundArguments),
    /// Print the documentation of all configuration keys as Markdown
    ConfigDocs,
    /// Print the completions of a shell, also for the names of Kafka's scripts: `source <(highwater completions bash)`
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    #[command(flatten)]
    Tool(Box<Tool>),
}

/// How the broker is started.
#[derive(Debug, Clone, Args)]
pub struct StartArguments {
    #[command(flatten)]
    settings: settings::SettingsArguments,

    /// Id of the cluster: an empty data directory gets it, one with another id is refused [env: CLUSTER_ID]
    #[arg(long, value_name = "ID")]
    cluster_id: Option<String>,

    /// What is logged on stderr, as info or highwater=debug,warn [env: HIGHWATER_LOG] [default: info]
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,

    /// How it is logged [env: HIGHWATER_LOG_FORMAT] [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,

    /// Stop when stdin ends: for a process that must not leave its brokers behind
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

/// Form of the log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

/// Runs the command that these arguments (with the program's name first) ask for; gives the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let called = Called::of(arguments);
    let command = match called.parse() {
        Ok(arguments) => arguments.command,
        Err(error) => return called.refuse(&error),
    };
    match command {
        Command::Start(arguments) => start::start(&arguments),
        Command::Cluster(arguments) => cluster::cluster(&arguments),
        Command::Health(arguments) => health::health(&arguments),
        Command::LinkTools(arguments) => link_tools::link_tools(&arguments),
        Command::Playground(arguments) => playground::playground(&arguments),
        Command::ConfigDocs => print(&config::markdown()),
        Command::Completions { shell } => print(&completions::script(shell)),
        Command::Tool(tool) => tool.run(),
    }
}

/// The definition of all arguments.
fn definition() -> clap::Command {
    tools::with_kafka_values(Arguments::command())
}

/// How the program was called.
struct Called {
    /// All arguments, from the program's name on.
    arguments: Vec<OsString>,
    /// The tool that the program's name stands for: `kafka-topics.sh --list` is `highwater topics --list`.
    script_of: Option<OsString>,
}

impl Called {
    fn of(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let program = arguments.first();
        let script_of = program.and_then(|name| tools::named_by_program(name));
        Called {
            arguments,
            script_of,
        }
    }

    fn parse(&self) -> Result<Arguments, clap::Error> {
        let mut arguments = self.arguments.clone();
        if let Some(tool) = &self.script_of {
            if let Some(definition) = definition_of_tool(tool) {
                // On its own, so that help and errors name the script.
                definition.try_get_matches_from(&arguments)?;
            }
            arguments.insert(1, tool.clone());
        }
        parse(arguments)
    }

    fn is_tool(&self) -> bool {
        self.script_of.is_some()
            || self
                .arguments
                .get(1)
                .is_some_and(|name| tools::is_tool(name))
    }

    /// What the help belongs to: `kafka-topics.sh`, `highwater topics`, or `highwater`.
    fn program(&self) -> String {
        let program = self.arguments.first().map(Path::new);
        let name = program.and_then(Path::file_name);
        let name = name.unwrap_or(OsStr::new("highwater")).to_string_lossy();
        let command = self.arguments.get(1).and_then(|command| command.to_str());
        let commands = definition();
        match command.filter(|command| commands.find_subcommand(command).is_some()) {
            Some(command) if self.script_of.is_none() => format!("{name} {command}"),
            _ => name.into_owned(),
        }
    }

    /// Prints what was asked for instead of a command, or what is wrong; gives the exit code.
    fn refuse(&self, error: &clap::Error) -> ExitCode {
        let is_tool = self.is_tool();
        match error.kind() {
            // The version alone, as Kafka's tools print it.
            ErrorKind::DisplayVersion if is_tool => {
                return print(concat!(env!("CARGO_PKG_VERSION"), "\n"));
            }
            ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelp
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                // Nobody is left to tell it to when the output is gone.
                let _ = error.print();
            }
            _ => {
                let prefix = if is_tool { "" } else { "highwater: " };
                let text = wrong_arguments::told(error, &self.program());
                let _ = write!(std::io::stderr().lock(), "{prefix}{text}");
            }
        }
        match error.exit_code() {
            0 => ExitCode::SUCCESS,
            // Kafka's tools end with 1 where others end with 2.
            _ if is_tool => ExitCode::from(FAILURE),
            _ => ExitCode::from(WRONG_ARGUMENTS),
        }
    }
}

/// The definition of a tool's arguments alone.
fn definition_of_tool(tool: &OsStr) -> Option<clap::Command> {
    definition().find_subcommand(tool).cloned()
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let arguments = with_default_command(arguments);
    let first = arguments.get(1).map(PathBuf::from);
    let parsed = definition()
        .try_get_matches_from(arguments)
        .and_then(|mut matches| Arguments::from_arg_matches_mut(&mut matches));
    parsed.map_err(|error| match first {
        Some(first)
            if error.kind() == ErrorKind::InvalidSubcommand && looks_like_a_file(&first) =>
        {
            let first = first.display();
            let text = format!(
                "'{first}' is no command; to start with this file: highwater start {first}"
            );
            definition().error(ErrorKind::InvalidSubcommand, text)
        }
        _ => error,
    })
}

fn looks_like_a_file(path: &Path) -> bool {
    path.is_file()
        || path
            .extension()
            .is_some_and(|extension| extension == "properties")
}

/// An error with all its causes, each of them once: the texts of most errors have their cause in them.
fn in_full(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Tells on stderr why a command failed, and gives the exit code.
fn failed(error: &anyhow::Error) -> ExitCode {
    // Nothing is left to tell it to when stderr is gone.
    let _ = writeln!(std::io::stderr().lock(), "highwater: {}", in_full(error));
    ExitCode::from(FAILURE)
}

/// Puts `start` in where no command is given: `highwater --override a=b` starts too.
fn with_default_command(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let is_option = |argument: &OsString| argument.as_encoded_bytes().starts_with(b"-");
    let about_the_program = ["-h", "--help", "-V", "--version"]
        .map(OsString::from)
        .to_vec();
    match arguments.get(1) {
        Some(first) if !is_option(first) || about_the_program.contains(first) => {}
        _ => arguments.insert(arguments.len().min(1), OsString::from("start")),
    }
    arguments
}

/// Writes to stdout; a reader that has gone away is no failure.
fn print(text: &str) -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(FAILURE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Command, String> {
        let arguments = std::iter::once("highwater").chain(arguments.iter().copied());
        super::parse(arguments.map(OsString::from))
            .map(|arguments| arguments.command)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_definition_of_the_arguments_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn without_a_command_the_broker_starts() {
        assert!(matches!(parse(&[]), Ok(Command::Start(_))));
        let Ok(Command::Start(start)) = parse(&["--override", "a=b", "--override", "c=d=e"]) else {
            panic!("start is expected");
        };
        assert_eq!(start.settings.overrides, ["a=b", "c=d=e"]);
        assert!(matches!(parse(&["config-docs"]), Ok(Command::ConfigDocs)));
    }

    #[test]
    fn the_file_comes_before_or_after_the_overrides() {
        for arguments in [
            ["start", "f", "--override", "a=b"],
            ["start", "--override", "a=b", "f"],
        ] {
            let Ok(Command::Start(start)) = parse(&arguments) else {
                panic!("start is expected")
            };
            assert_eq!(start.settings.file, Some(PathBuf::from("f")));
            assert_eq!(start.settings.overrides, ["a=b"]);
        }
    }

    #[test]
    fn a_wrong_command_is_not_taken_for_a_file() {
        assert!(
            parse(&["strat"])
                .expect_err("no such command")
                .contains("start")
        );
        assert!(parse(&["start", "--no-such-option"]).is_err());
    }

    #[test]
    fn a_file_without_a_command_is_pointed_at_start() {
        for file in ["no/such/server.properties", "Cargo.toml"] {
            let error = parse(&[file]).expect_err("no command");
            assert!(
                error.contains(&format!("highwater start {file}\n")),
                "{error}"
            );
        }
        let error = parse(&["strat"]).expect_err("no such command");
        assert!(!error.contains("highwater start strat"), "{error}");
    }

    #[test]
    fn a_cause_is_told_once() {
        let cause = std::io::Error::other("disk gone");
        let error = anyhow::Error::new(highwater_storage::StorageError::io("open", "/x", cause));
        assert_eq!(in_full(&error), "open /x: disk gone");
        let error = error.context("cannot start");
        assert_eq!(in_full(&error), "cannot start: open /x: disk gone");
    }
}
