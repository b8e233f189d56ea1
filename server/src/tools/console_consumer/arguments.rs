//! What `console-consumer` can be asked.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::formatter::{DEFAULT, Formatter};
use crate::tools::ToolError;
use crate::tools::client::{ClientProperties, TopicPartition, key_value};
use crate::tools::consumer::{Start, Subscription};
use crate::tools::properties::Properties;

/// Options of the tool.
#[derive(Debug, Args)]
pub(crate) struct ConsoleConsumerArguments {
    /// Brokers to start from
    #[arg(long, value_name = "HOST:PORT,...")]
    pub(super) bootstrap_server: String,

    /// Topic to read
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,

    /// Regular expression for the topics to read
    #[arg(long, value_name = "REGEX")]
    include: Option<String>,

    /// Read only this partition, without a group
    #[arg(long, value_name = "PARTITION")]
    partition: Option<i32>,

    /// With --partition: where to begin, an offset, earliest or latest
    #[arg(long, value_name = "OFFSET")]
    offset: Option<String>,

    /// Begin with the first record where no offset is committed
    #[arg(long)]
    from_beginning: bool,

    /// Be a member of this group
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,

    /// End after so many records; -1 for no limit
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = -1,
        hide_default_value = true,
        allow_negative_numbers = true
    )]
    max_messages: i64,

    /// End when no record comes for so long
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    timeout_ms: Option<i64>,

    /// read_committed leaves out what is not committed or aborted
    #[arg(long, value_name = "LEVEL")]
    isolation_level: Option<String>,

    /// Go on after a record that cannot be printed
    #[arg(long)]
    pub(super) skip_message_on_error: bool,

    /// Class that prints records: DefaultMessageFormatter, LoggingMessageFormatter, NoOpMessageFormatter,
    /// OffsetsMessageFormatter, GroupMetadataMessageFormatter, TransactionLogMessageFormatter
    #[arg(long, value_name = "CLASS", default_value = DEFAULT)]
    formatter: String,

    /// Property of the formatter: print.timestamp, print.partition, print.offset, print.epoch, print.headers,
    /// print.key, print.value, key.separator, line.separator, headers.separator, null.literal, key.deserializer,
    /// value.deserializer, headers.deserializer
    #[arg(long, value_name = "KEY=VALUE")]
    formatter_property: Vec<String>,

    /// Old name of --formatter-property
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "formatter_property")]
    property: Vec<String>,

    /// Properties file of the formatter
    #[arg(long, value_name = "FILE")]
    formatter_config: Option<PathBuf>,

    /// Class that reads keys
    #[arg(long, value_name = "CLASS")]
    key_deserializer: Option<String>,

    /// Class that reads values
    #[arg(long, value_name = "CLASS")]
    value_deserializer: Option<String>,

    /// Property of the consumer
    #[arg(long, value_name = "KEY=VALUE")]
    command_property: Vec<String>,

    /// Old name of --command-property
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "command_property")]
    consumer_property: Vec<String>,

    /// Properties file of the consumer
    #[arg(long, value_name = "FILE")]
    command_config: Option<PathBuf>,

    /// Old name of --command-config
    #[arg(
        long = "consumer.config",
        id = "consumer.config",
        value_name = "FILE",
        conflicts_with = "command_config"
    )]
    consumer_config: Option<PathBuf>,

    /// Refused: it is for Kafka's own system tests
    #[arg(long)]
    enable_systest_events: bool,
}

/// What follows from the options.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) subscription: Subscription,
    pub(super) properties: ClientProperties,
    pub(super) formatter: Formatter,
    /// How long to wait for a record.
    pub(super) timeout: Option<Duration>,
}

impl ConsoleConsumerArguments {
    /// Whether so many records are less than were asked for. No negative number but -1 is one that can be reached, as in
    /// Kafka.
    pub(super) fn wants_more(&self, count: u64) -> bool {
        self.max_messages == -1 || i128::from(count) < i128::from(self.max_messages)
    }

    /// What Kafka's tool says about options with old names.
    pub(super) fn deprecations(&self) -> impl Iterator<Item = String> {
        [
            (!self.consumer_property.is_empty(), "consumer-property", "command-property"),
            (self.consumer_config.is_some(), "consumer.config", "command-config"),
            (!self.property.is_empty(), "property", "formatter-property"),
        ]
        .into_iter()
        .filter(|(is_given, ..)| *is_given)
        .map(|(_, old, new)| {
            format!("Option --{old} is deprecated and will be removed in a future version. Use --{new} instead.")
        })
    }

    /// Works out what is to be done; refuses options that do not go together.
    pub(super) fn plan(&self) -> Result<Plan, ToolError> {
        if self.enable_systest_events {
            return ToolError::refuse("--enable-systest-events is not supported.");
        }
        if self.topic.is_some() == self.include.is_some() {
            return ToolError::refuse(
                "Exactly one of the following arguments is required: [topic], [include]",
            );
        }
        if self.partition.is_some() {
            if self.topic.is_none() {
                return ToolError::refuse("The topic is required when partition is specified.");
            }
            if self.from_beginning && self.offset.is_some() {
                return ToolError::refuse(
                    "Options from-beginning and offset cannot be specified together.",
                );
            }
        } else if self.offset.is_some() {
            return ToolError::refuse("The partition is required when offset is specified.");
        }
        Ok(Plan {
            subscription: self.subscription()?,
            properties: self.properties()?,
            formatter: self.formatter()?,
            timeout: self
                .timeout_ms
                .and_then(|timeout| u64::try_from(timeout).ok())
                .map(Duration::from_millis),
        })
    }

    fn subscription(&self) -> Result<Subscription, ToolError> {
        if let Some(pattern) = &self.include {
            return Subscription::including(pattern);
        }
        let topic = self.topic.clone().unwrap_or_default();
        match self.partition {
            Some(partition) => Ok(Subscription::Partition(
                TopicPartition::new(topic, partition),
                self.start()?,
            )),
            None => Ok(Subscription::Topics(vec![topic])),
        }
    }

    fn start(&self) -> Result<Start, ToolError> {
        let Some(offset) = &self.offset else {
            return Ok(match self.from_beginning {
                true => Start::Earliest,
                false => Start::Latest,
            });
        };
        match offset.to_ascii_lowercase().as_str() {
            "earliest" => Ok(Start::Earliest),
            "latest" => Ok(Start::Latest),
            other => match other.parse() {
                Ok(number @ 0i64..) => Ok(Start::At(number)),
                Ok(_) | Err(_) => ToolError::refuse(format!(
                    "The provided offset value '{offset}' is incorrect. Valid values are 'earliest', 'latest', or a \
                     non-negative long."
                )),
            },
        }
    }

    fn properties(&self) -> Result<ClientProperties, ToolError> {
        let file = self
            .command_config
            .as_ref()
            .or(self.consumer_config.as_ref());
        let mut properties = ClientProperties::load(file.map(PathBuf::as_path))?;
        let mut groups: BTreeSet<String> = self.group.iter().cloned().collect();
        groups.extend(properties.get("group.id").map(str::to_owned));
        for property in self.command_property.iter().chain(&self.consumer_property) {
            let (key, value) = key_value(property)?;
            if key == "group.id" {
                groups.insert(value.to_owned());
            }
            properties.set(key, value);
        }
        if groups.len() > 1 {
            let groups: Vec<_> = groups.iter().map(|group| format!("'{group}'")).collect();
            return ToolError::refuse(format!(
                "The group ids provided in different places (directly using '--group', via '--command-property', or \
                 via '--command-config') do not match. Detected group ids: {}",
                groups.join(", ")
            ));
        }
        if !groups.is_empty() && self.partition.is_some() {
            return ToolError::refuse("Options group and partition cannot be specified together.");
        }
        if let Some(group) = &self.group {
            properties.set("group.id", group);
        }
        match properties.get("auto.offset.reset") {
            Some(reset) if self.from_beginning && reset != "earliest" => {
                return ToolError::refuse(format!(
                    "Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove one \
                     option"
                ));
            }
            Some(_) => {}
            None if self.from_beginning => properties.set("auto.offset.reset", "earliest"),
            None => properties.set("auto.offset.reset", "latest"),
        }
        if let Some(level) = &self.isolation_level {
            properties.set("isolation.level", level);
        }
        Ok(properties)
    }

    fn formatter(&self) -> Result<Formatter, ToolError> {
        let file = self.formatter_config.as_deref();
        let mut properties = Properties::load(file).map_err(ToolError::failed)?;
        for (key, class) in [
            ("key.deserializer", &self.key_deserializer),
            ("value.deserializer", &self.value_deserializer),
        ] {
            if let Some(class) = class {
                properties.set(key, class);
            }
        }
        for property in self.formatter_property.iter().chain(&self.property) {
            let (key, value) = key_value(property)?;
            properties.set(key, value);
        }
        Formatter::new(&self.formatter, &properties).map_err(ToolError::failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: ConsoleConsumerArguments,
    }

    fn plan(line: &str) -> Result<Plan, String> {
        let words = ["tool", "--bootstrap-server", "a:1"];
        let words = words.into_iter().chain(line.split_whitespace());
        let arguments = Line::try_parse_from(words).expect("parses").arguments;
        arguments.plan().map_err(|error| error.to_string())
    }

    #[test]
    fn no_count_and_minus_one_are_no_limit() {
        let wants = |options: &str, count| {
            let words = format!("tool --bootstrap-server a:1 --topic t {options}");
            let line = Line::try_parse_from(words.split_whitespace()).expect("parses");
            line.arguments.wants_more(count)
        };
        assert!(wants("", u64::MAX) && wants("--max-messages -1", u64::MAX));
        assert!(wants("--max-messages 2", 1) && !wants("--max-messages 2", 2));
        assert!(!wants("--max-messages 0", 0) && !wants("--max-messages -2", 0));
    }

    #[test]
    fn a_plan_follows_from_the_options() {
        let plan = plan("--topic t --partition 1 --offset 5 --timeout-ms 9").expect("sound");
        assert!(matches!(
            plan.subscription,
            Subscription::Partition(partition, Start::At(5)) if partition.partition == 1
        ));
        assert_eq!(plan.timeout, Some(Duration::from_millis(9)));
        let plan = super::tests::plan("--include a|b --from-beginning --group g").expect("sound");
        assert_eq!(plan.properties.get("auto.offset.reset"), Some("earliest"));
        assert_eq!(plan.properties.get("group.id"), Some("g"));
        let Subscription::Pattern(pattern) = plan.subscription else {
            panic!("a pattern is expected");
        };
        assert!(pattern.is_match("b") && !pattern.is_match("ab"));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (line, text) in [
            ("", "Exactly one"),
            ("--topic t --include t", "Exactly one"),
            ("--topic t --offset 5", "partition is required"),
            ("--include t --partition 5", "topic is required"),
            ("--topic t --partition 1 --offset=-5", "is incorrect"),
            ("--topic t --partition 1 --group g", "cannot be specified"),
            (
                "--topic t --group g --command-property group.id=h",
                "do not match",
            ),
            (
                "--topic t --from-beginning --command-property auto.offset.reset=latest",
                "simultaneously",
            ),
            ("--topic t --formatter x", "not known"),
        ] {
            let error = plan(line).expect_err(line);
            assert!(error.contains(text), "{line}: {error}");
        }
    }
}
