//! What `consumer-perf-test` can be asked.

use std::path::PathBuf;

use clap::Args;

use super::date::DateFormat;
use crate::network::client::random;
use crate::tools::ToolError;
use crate::tools::client::ClientProperties;
use crate::tools::consumer::Subscription;

/// Options of the tool.
#[derive(Debug, Args)]
pub(crate) struct ConsumerPerfTestArguments {
    /// Brokers to start from
    #[arg(long, value_name = "HOST:PORT,...")]
    pub(super) bootstrap_server: String,

    /// Topic to read
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,

    /// Regular expression for the topics to read
    #[arg(long, value_name = "REGEX")]
    include: Option<String>,

    /// Records to consume
    #[arg(long, value_name = "COUNT")]
    num_records: Option<u64>,

    /// Old name of --num-records
    #[arg(long, value_name = "COUNT", conflicts_with = "num_records")]
    messages: Option<u64>,

    /// Be a member of this group; without it one with a random name
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,

    /// Bytes of one partition that a fetch brings at most
    #[arg(long, value_name = "BYTES", default_value_t = 1024 * 1024)]
    fetch_size: u32,

    /// Begin behind the last record where no offset is committed
    #[arg(long)]
    from_latest: bool,

    /// How long to wait for a record
    #[arg(long, value_name = "MS", num_args = 0..=1, default_value_t = 10_000, default_missing_value = "10000")]
    pub(super) timeout: u64,

    /// Print a line of progress in each interval instead of one for all
    #[arg(long)]
    pub(super) show_detailed_stats: bool,

    /// How often progress is printed
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    pub(super) reporting_interval: u64,

    /// Form of times, as Java's SimpleDateFormat; times are in UTC
    #[arg(long, value_name = "FORMAT", default_value = "yyyy-MM-dd HH:mm:ss:SSS")]
    date_format: String,

    /// Print no heading
    #[arg(long)]
    pub(super) hide_header: bool,

    /// Properties of the consumer
    #[arg(long, value_name = "KEY=VALUE")]
    command_property: Vec<String>,

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

    /// Refused: the operating system sizes the socket's buffers
    #[arg(long, value_name = "BYTES")]
    socket_buffer_size: Option<u32>,

    /// Refused: there are no Java metrics
    #[arg(long)]
    print_metrics: bool,
}

/// What follows from the options.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) subscription: Subscription,
    pub(super) properties: ClientProperties,
    pub(super) records: u64,
    pub(super) date_format: DateFormat,
}

impl ConsumerPerfTestArguments {
    /// What Kafka's tool says about options with old names.
    pub(super) fn deprecations(&self) -> impl Iterator<Item = String> {
        [
            (self.messages.is_some(), "messages", "num-records"),
            (
                self.consumer_config.is_some(),
                "consumer.config",
                "command-config",
            ),
        ]
        .into_iter()
        .filter(|(is_given, ..)| *is_given)
        .map(|(_, old, new)| format!("Warning: --{old} is deprecated. Use --{new} instead."))
    }

    /// Works out what is to be done; refuses what cannot be.
    pub(super) fn plan(&self) -> Result<Plan, ToolError> {
        if self.print_metrics {
            return ToolError::refuse(
                "--print-metrics is not supported: the metrics are those of Kafka's Java client.",
            );
        }
        if self.socket_buffer_size.is_some() {
            return ToolError::refuse("--socket-buffer-size is not supported.");
        }
        if self.reporting_interval == 0 {
            return ToolError::refuse("Reporting interval must be greater than 0.");
        }
        let Some(records) = self.num_records.or(self.messages) else {
            return ToolError::refuse(
                "Exactly one of the following arguments is required: [num-records], [messages]",
            );
        };
        let subscription = match (&self.topic, &self.include) {
            (Some(topic), None) => Subscription::Topics(vec![topic.clone()]),
            (None, Some(pattern)) => Subscription::including(pattern)?,
            _ => {
                return ToolError::refuse(
                    "Exactly one of the following arguments is required: [topic], [include]",
                );
            }
        };
        Ok(Plan {
            subscription,
            properties: self.properties()?,
            records,
            date_format: DateFormat::parse(&self.date_format).map_err(ToolError::failed)?,
        })
    }

    fn properties(&self) -> Result<ClientProperties, ToolError> {
        let file = self
            .command_config
            .as_ref()
            .or(self.consumer_config.as_ref());
        let options = &self.command_property;
        let mut properties = ClientProperties::load_with(file.map(PathBuf::as_path), options)?;
        let group = self.group.clone();
        let group = group.unwrap_or_else(|| format!("perf-consumer-{}", random() % 100_000));
        properties.set("group.id", &group);
        properties.set("max.partition.fetch.bytes", &self.fetch_size.to_string());
        let reset = if self.from_latest {
            "latest"
        } else {
            "earliest"
        };
        properties.set("auto.offset.reset", reset);
        Ok(properties)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: ConsumerPerfTestArguments,
    }

    fn plan(line: &str) -> Result<Plan, String> {
        let words = "tool --bootstrap-server a:1".split_whitespace();
        let words = words.chain(line.split_whitespace());
        let arguments = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        arguments
            .arguments
            .plan()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_plan_follows_from_the_options() {
        let plan = plan("--topic t --messages 5 --from-latest").expect("sound");
        assert_eq!(plan.records, 5);
        assert_eq!(plan.properties.get("auto.offset.reset"), Some("latest"));
        assert!(plan.properties.get("group.id").is_some());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (line, text) in [
            ("--topic t", "num-records"),
            ("--num-records 5", "topic"),
            ("--topic t --include t --num-records 5", "topic"),
            ("--topic t --num-records 5 --messages 5", "cannot be used"),
            ("--topic t --num-records 5 --print-metrics", "print-metrics"),
            (
                "--topic t --num-records 5 --reporting-interval 0",
                "greater than 0",
            ),
            ("--topic t --num-records 5 --date-format z", "not supported"),
        ] {
            let error = plan(line).expect_err(line);
            assert!(error.contains(text), "{line}: {error}");
        }
    }
}
