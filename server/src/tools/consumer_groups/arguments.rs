//! What `consumer-groups` can be asked.

use std::path::PathBuf;

use clap::Args;

use super::super::CLIENT_ID;
use super::super::client::{ClientProperties, Cluster};
use super::ToolError;

/// Options of the tool.
#[derive(Debug, Args)]
pub(crate) struct ConsumerGroupsArguments {
    /// Brokers to start from; needed for all but --validate-regex
    #[arg(long, value_name = "HOST:PORT,...")]
    pub(super) bootstrap_server: Option<String>,

    /// Properties file of the client
    #[arg(long, value_name = "FILE")]
    pub(super) command_config: Option<PathBuf>,

    /// Milliseconds that a request may take with all its attempts
    #[arg(long, value_name = "MS", default_value_t = 30_000)]
    pub(super) timeout: u64,

    /// List groups
    #[arg(long)]
    pub(super) list: bool,

    /// Describe groups: committed offsets and lag, or --members, or --state
    #[arg(long)]
    pub(super) describe: bool,

    /// Delete groups
    #[arg(long)]
    pub(super) delete: bool,

    /// Set the offsets of groups without members; a specification (--to-...) says to what
    #[arg(long)]
    pub(super) reset_offsets: bool,

    /// Delete offsets of a group's topics
    #[arg(long)]
    pub(super) delete_offsets: bool,

    /// Say whether a regular expression follows the syntax of RE2
    #[arg(long, value_name = "REGEX")]
    pub(super) validate_regex: Option<String>,

    /// A group; may be given several times
    #[arg(long, value_name = "GROUP")]
    pub(super) group: Vec<String>,

    /// All groups
    #[arg(long)]
    pub(super) all_groups: bool,

    /// A topic, or partitions of it as topic:0,1,2; may be given several times
    #[arg(long, value_name = "TOPIC")]
    pub(super) topic: Vec<String>,

    /// All topics that the group has offsets of
    #[arg(long)]
    pub(super) all_topics: bool,

    /// With --describe: the members
    #[arg(long)]
    pub(super) members: bool,

    /// With --describe: the offsets, also without this option
    #[arg(long)]
    pub(super) offsets: bool,

    /// With --describe: the state; with --list: the states, or only the groups in these states
    #[arg(long, value_name = "STATE,...", num_args = 0..=1, default_missing_value = "")]
    pub(super) state: Option<String>,

    /// With --list: the types, or only the groups of these types
    #[arg(id = "type", long = "type", value_name = "TYPE,...", num_args = 0..=1, default_missing_value = "")]
    pub(super) type_: Option<String>,

    /// With --describe: more about it
    #[arg(long)]
    pub(super) verbose: bool,

    /// With --reset-offsets: only print the new offsets (the default)
    #[arg(long)]
    pub(super) dry_run: bool,

    /// With --reset-offsets: set the new offsets
    #[arg(long)]
    pub(super) execute: bool,

    /// With --reset-offsets: print the new offsets as CSV
    #[arg(long)]
    pub(super) export: bool,

    /// To this offset
    #[arg(long, value_name = "OFFSET")]
    pub(super) to_offset: Option<i64>,

    /// To the offsets in a CSV file
    #[arg(long, value_name = "FILE")]
    pub(super) from_file: Option<PathBuf>,

    /// To the first records from a time on, as 2026-01-31T12:00:00.000
    #[arg(long, value_name = "TIME")]
    pub(super) to_datetime: Option<String>,

    /// To the first records of the last so long, as P1DT2H3M4S
    #[arg(long, value_name = "DURATION")]
    pub(super) by_duration: Option<String>,

    /// To the first records
    #[arg(long)]
    pub(super) to_earliest: bool,

    /// Behind the last records
    #[arg(long)]
    pub(super) to_latest: bool,

    /// To the committed offsets
    #[arg(long)]
    pub(super) to_current: bool,

    /// By so many offsets, forward or back
    #[arg(long, value_name = "COUNT")]
    pub(super) shift_by: Option<i64>,
}

/// The one thing that is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action<'a> {
    List,
    Describe,
    Delete,
    ResetOffsets,
    DeleteOffsets,
    ValidateRegex(&'a str),
}

const STATES: [&str; 7] = [
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
];

impl ConsumerGroupsArguments {
    /// The action; refuses options that do not go together.
    pub(super) fn checked(&self) -> Result<Action<'_>, ToolError> {
        let actions = [
            (self.list, Action::List),
            (self.describe, Action::Describe),
            (self.delete, Action::Delete),
            (self.reset_offsets, Action::ResetOffsets),
            (self.delete_offsets, Action::DeleteOffsets),
        ];
        let mut chosen: Vec<_> = actions
            .into_iter()
            .filter_map(|(is_chosen, action)| is_chosen.then_some(action))
            .collect();
        chosen.extend(self.validate_regex.as_deref().map(Action::ValidateRegex));
        let [action] = chosen[..] else {
            return refuse(
                "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, \
                 --delete-offsets, --validate-regex",
            );
        };
        if matches!(action, Action::ValidateRegex(_)) {
            return Ok(action);
        }
        if self.bootstrap_server.is_none() {
            return refuse("Missing required argument \"[bootstrap-server]\"");
        }
        self.check_scope(action)?;
        match action {
            Action::Describe => self.check_describe()?,
            Action::ResetOffsets => self.check_reset()?,
            _ => {}
        }
        Ok(action)
    }

    fn check_scope(&self, action: Action<'_>) -> Result<(), ToolError> {
        let has_groups = !self.group.is_empty() || self.all_groups;
        if !self.group.is_empty() && self.all_groups {
            return refuse("Option \"[group]\" can't be used with option \"[all-groups]\"");
        }
        match action {
            Action::Describe | Action::Delete | Action::ResetOffsets if !has_groups => {
                let name = match action {
                    Action::Describe => "describe",
                    Action::Delete => "delete",
                    _ => "reset-offsets",
                };
                refuse(&format!(
                    "Option [{name}] takes one of these options: [group], [all-groups]"
                ))
            }
            Action::DeleteOffsets if self.group.len() != 1 || self.topic.is_empty() => {
                refuse("Option [delete-offsets] takes the following options: [group], [topic]")
            }
            Action::List if !self.group.is_empty() => {
                refuse("Option \"[group]\" can't be used with option \"[list]\"")
            }
            Action::Delete if !self.topic.is_empty() => refuse(
                "The consumer does not support topic-specific offset deletion from a consumer group.",
            ),
            Action::List | Action::Describe if !self.topic.is_empty() => refuse(&format!(
                "Option \"[topic]\" can't be used with option \"[{}]\"",
                if action == Action::List {
                    "list"
                } else {
                    "describe"
                }
            )),
            _ => self.check_availability(action),
        }
    }

    /// Options that only one action has.
    fn check_availability(&self, action: Action<'_>) -> Result<(), ToolError> {
        let of_describe = [
            (self.members, "members"),
            (self.offsets, "offsets"),
            (self.verbose, "verbose"),
        ];
        let of_list = [(self.type_.is_some(), "type")];
        let of_both = [(self.state.is_some(), "state")];
        let first = |options: &[(bool, &str)]| {
            let mut options = options.iter();
            options.find_map(|(is_given, name)| is_given.then(|| (*name).to_owned()))
        };
        let unavailable = match action {
            Action::Describe => first(&of_list),
            Action::List => first(&of_describe),
            _ => first(&of_describe)
                .or_else(|| first(&of_list))
                .or_else(|| first(&of_both)),
        };
        match unavailable {
            Some(name) => refuse(&format!(
                "Option(s) [{name}] are unavailable given other options on the command line"
            )),
            None => Ok(()),
        }
    }

    fn check_describe(&self) -> Result<(), ToolError> {
        let forms = [self.members, self.offsets, self.state.is_some()];
        if forms.into_iter().filter(|is_given| *is_given).count() > 1 {
            return refuse(
                "Option [describe] takes at most one of these options: [members], [offsets], [state]",
            );
        }
        match self.state.as_deref() {
            None | Some("") => Ok(()),
            Some(_) => refuse("Option [describe] does not take a value for [state]"),
        }
    }

    fn check_reset(&self) -> Result<(), ToolError> {
        if self.dry_run && self.execute {
            return refuse("Option [reset-offsets] only accepts one of [execute] and [dry-run]");
        }
        if !self.dry_run && !self.execute {
            ToolError::warn(
                "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will \
                 require either --dry-run or --execute to be specified. You should add the --dry-run option explicitly \
                 if you are scripting this command and want to keep the current default behavior without prompting.",
            );
        }
        let given = self.specifications();
        if let [first, second, ..] = given[..] {
            return refuse(&format!(
                "Option \"[{first}]\" can't be used with option \"[{second}]\""
            ));
        }
        Ok(())
    }

    /// The names of the specifications that are given.
    pub(super) fn specifications(&self) -> Vec<&'static str> {
        [
            (self.to_offset.is_some(), "to-offset"),
            (self.to_datetime.is_some(), "to-datetime"),
            (self.by_duration.is_some(), "by-duration"),
            (self.to_earliest, "to-earliest"),
            (self.to_latest, "to-latest"),
            (self.to_current, "to-current"),
            (self.shift_by.is_some(), "shift-by"),
            (self.from_file.is_some(), "from-file"),
        ]
        .into_iter()
        .filter_map(|(is_given, name)| is_given.then_some(name))
        .collect()
    }

    /// The states to list, in Kafka's spelling.
    pub(super) fn states(&self) -> Result<Vec<String>, ToolError> {
        let input = self.state.as_deref().unwrap_or_default();
        let states = STATES.map(str::to_owned);
        choose(input, &states).map_err(|()| {
            ToolError::failed(format!(
                "Invalid state list '{input}'. Valid states are: {}",
                states.join(", ")
            ))
        })
    }

    /// The types to list, in Kafka's spelling.
    pub(super) fn types(&self) -> Result<Vec<String>, ToolError> {
        let input = self.type_.as_deref().unwrap_or_default();
        let types = ["Classic", "Consumer"].map(str::to_owned);
        choose(input, &types).map_err(|()| {
            ToolError::failed(format!(
                "Invalid types list '{input}'. Valid types are: {}",
                types.join(", ")
            ))
        })
    }

    /// The client.
    pub(super) fn cluster(&self) -> Result<Cluster, ToolError> {
        let mut properties = ClientProperties::load(self.command_config.as_deref())?;
        properties.set("default.api.timeout.ms", &self.timeout.to_string());
        let servers = self.bootstrap_server.as_deref().unwrap_or_default();
        Ok(Cluster::new(servers, &properties, CLIENT_ID)?)
    }
}

fn refuse<T>(text: &str) -> Result<T, ToolError> {
    Err(ToolError::failed(text))
}

/// The entries of a list, in the spelling of `known`; an error if one is not known.
fn choose(input: &str, known: &[String]) -> Result<Vec<String>, ()> {
    if input.is_empty() {
        return Ok(Vec::new());
    }
    let bare = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
    input
        .split(',')
        .map(|entry| {
            let entry = bare(entry.trim());
            known
                .iter()
                .find(|known| bare(known) == entry)
                .cloned()
                .ok_or(())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: ConsumerGroupsArguments,
    }

    fn check(line: &str) -> Result<String, String> {
        let words = ["consumer-groups", "--bootstrap-server", "a:1"];
        let words = words.into_iter().chain(line.split_whitespace());
        let arguments = Line::try_parse_from(words).expect("parses").arguments;
        let action = arguments.checked().map_err(|error| error.to_string())?;
        Ok(format!("{action:?}"))
    }

    #[test]
    fn one_action_with_what_it_needs() {
        for (line, action) in [
            ("--list --state --type", "List"),
            ("--describe --group g --members --verbose", "Describe"),
            ("--describe --all-groups --state", "Describe"),
            ("--delete --group a --group b", "Delete"),
            (
                "--reset-offsets --group g --all-topics --to-earliest --dry-run",
                "ResetOffsets",
            ),
            ("--delete-offsets --group g --topic t", "DeleteOffsets"),
            ("--validate-regex a.*", "ValidateRegex(\"a.*\")"),
        ] {
            assert_eq!(check(line).as_deref(), Ok(action), "{line}");
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (line, text) in [
            ("--group g", "exactly one action"),
            ("--list --describe --group g", "exactly one action"),
            ("--describe", "takes one of these options"),
            ("--describe --group g --all-groups", "can't be used"),
            ("--describe --group g --members --state", "at most one"),
            (
                "--describe --group g --state stable",
                "does not take a value",
            ),
            ("--list --members", "unavailable"),
            ("--delete --group g --topic t", "topic-specific"),
            ("--delete-offsets --group g", "following options"),
            (
                "--reset-offsets --group g --dry-run --execute",
                "only accepts one",
            ),
            (
                "--reset-offsets --group g --to-latest --to-earliest --dry-run",
                "can't be used",
            ),
        ] {
            let error = check(line).expect_err(line);
            assert!(error.contains(text), "{line}: {error}");
        }
    }

    #[test]
    fn states_and_types_are_found_in_any_case() {
        let known = STATES.map(str::to_owned);
        assert_eq!(
            choose("stable, preparing_rebalance", &known),
            Ok(vec!["Stable".to_owned(), "PreparingRebalance".to_owned()])
        );
        assert_eq!(choose("bogus", &known), Err(()));
        assert_eq!(choose("", &known), Ok(Vec::new()));
    }
}
