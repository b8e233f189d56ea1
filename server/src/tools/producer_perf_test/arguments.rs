//! What `producer-perf-test` can be asked.

use std::path::PathBuf;

use clap::Args;

use crate::tools::ToolError;
use crate::tools::client::ClientProperties;

/// Options of the tool.
#[derive(Debug, Args)]
pub(crate) struct ProducerPerfTestArguments {
    /// Brokers to start from; wins over the property bootstrap.servers
    #[arg(long, value_name = "HOST:PORT,...")]
    bootstrap_server: Option<String>,

    /// Topic to produce to
    #[arg(long, value_name = "TOPIC")]
    pub(super) topic: String,

    /// Records to produce
    #[arg(long, value_name = "COUNT")]
    pub(super) num_records: u64,

    /// Records a second at most, about; -1 for no limit
    #[arg(long, value_name = "COUNT")]
    pub(super) throughput: f64,

    /// Size of random values in bytes
    #[arg(long, value_name = "BYTES", group = "payload", required_unless_present_any = ["payload_file", "payload_monotonic"])]
    pub(super) record_size: Option<u32>,

    /// File of values, of which each record gets one at random
    #[arg(long, value_name = "FILE", group = "payload")]
    pub(super) payload_file: Option<PathBuf>,

    /// Values are the numbers of the records
    #[arg(long, group = "payload")]
    payload_monotonic: bool,

    /// What is between the values in the file, a regular expression
    #[arg(long, value_name = "REGEX", default_value = "\\n")]
    pub(super) payload_delimiter: String,

    /// Properties of the producer
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..)]
    command_property: Vec<String>,

    /// Old name of --command-property
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., conflicts_with = "command_property")]
    producer_props: Vec<String>,

    /// Properties file of the producer
    #[arg(long, value_name = "FILE")]
    command_config: Option<PathBuf>,

    /// Old name of --command-config
    #[arg(
        long = "producer.config",
        id = "producer.config",
        value_name = "FILE",
        conflicts_with = "command_config"
    )]
    producer_config: Option<PathBuf>,

    /// First records that are not in the steady state, which has a line of its own
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(super) warmup_records: u64,

    /// How often progress is printed
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    pub(super) reporting_interval: u64,

    /// Keys are numbers below this
    #[arg(long, value_name = "COUNT")]
    record_key_range: Option<u64>,

    /// Which keys: none, range (one after the other) or random
    #[arg(long, value_name = "DISTRIBUTION", default_value = "none")]
    key_distribution: String,

    /// Seed of random keys and values
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(super) random_seed: u64,

    /// Refused: there are no Java metrics
    #[arg(long)]
    print_metrics: bool,

    /// Refused: transactions are not supported
    #[arg(long, value_name = "ID")]
    transactional_id: Option<String>,

    /// Refused: transactions are not supported
    #[arg(long, value_name = "MS")]
    transaction_duration_ms: Option<u64>,
}

/// The keys of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyDistribution {
    None,
    Range(u64),
    Random(u64),
}

/// What follows from the options.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) properties: ClientProperties,
    pub(super) servers: String,
    pub(super) keys: KeyDistribution,
}

impl ProducerPerfTestArguments {
    /// What Kafka's tool says about options with old names.
    pub(super) fn deprecations(&self) -> impl Iterator<Item = String> {
        [
            (!self.producer_props.is_empty(), "producer-props", "command-property"),
            (self.producer_config.is_some(), "producer.config", "command-config"),
        ]
        .into_iter()
        .filter(|(is_given, ..)| *is_given)
        .map(|(_, old, new)| {
            format!("Option --{old} has been deprecated and will be removed in a future version. Use --{new} instead.")
        })
    }

    /// Works out what is to be done; refuses what cannot be.
    pub(super) fn plan(&self) -> Result<Plan, ToolError> {
        if self.print_metrics {
            return ToolError::refuse(
                "--print-metrics is not supported: the metrics are those of Kafka's Java client.",
            );
        }
        if self.transactional_id.is_some() || self.transaction_duration_ms.is_some() {
            return ToolError::refuse(
                "Transactions are not supported: leave --transactional-id and --transaction-duration-ms out.",
            );
        }
        if self.num_records == 0 {
            return ToolError::refuse("--num-records should be greater than zero.");
        }
        if self.warmup_records >= self.num_records {
            return ToolError::refuse(
                "The value for --warmup-records must be strictly fewer than the number of records in the test, \
                 --num-records.",
            );
        }
        if self.record_size == Some(0) {
            return ToolError::refuse("--record-size should be greater than zero.");
        }
        if self.reporting_interval == 0 {
            return ToolError::refuse("--reporting-interval should be greater than zero.");
        }
        let file = self
            .command_config
            .as_ref()
            .or(self.producer_config.as_ref());
        let options = self.command_property.iter().chain(&self.producer_props);
        let properties = ClientProperties::load_with(file.map(PathBuf::as_path), options)?;
        let servers = self.bootstrap_server.clone();
        let servers = servers.or_else(|| properties.get("bootstrap.servers").map(str::to_owned));
        let Some(servers) = servers else {
            return ToolError::refuse(
                "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or \
                 --command-config must be specified.",
            );
        };
        Ok(Plan {
            properties,
            servers,
            keys: self.keys()?,
        })
    }

    fn keys(&self) -> Result<KeyDistribution, ToolError> {
        let range = match self.record_key_range {
            Some(0) => return ToolError::refuse("--record-key-range should be greater than zero."),
            range => range,
        };
        match (self.key_distribution.as_str(), range) {
            ("none", None) => Ok(KeyDistribution::None),
            ("none", Some(_)) => {
                ToolError::refuse("--record-key-range needs --key-distribution range or random.")
            }
            ("range", Some(range)) => Ok(KeyDistribution::Range(range)),
            ("random", Some(range)) => Ok(KeyDistribution::Random(range)),
            (distribution @ ("range" | "random"), None) => ToolError::refuse(format!(
                "--record-key-range is required when --key-distribution is '{distribution}'."
            )),
            (other, _) => ToolError::refuse(format!(
                "--key-distribution {other} is not known; there are none, range and random."
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: ProducerPerfTestArguments,
    }

    fn plan(line: &str) -> Result<Plan, String> {
        let words = "tool --topic t --num-records 10 --throughput=-1".split_whitespace();
        let words = words.chain(line.split_whitespace());
        let arguments = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        arguments
            .arguments
            .plan()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_servers_are_an_option_or_a_property() {
        let found = plan("--record-size 5 --bootstrap-server a:1").expect("sound");
        assert_eq!(found.servers, "a:1");
        let found = plan("--payload-monotonic --producer-props bootstrap.servers=b:1 acks=1");
        let found = found.expect("sound");
        assert_eq!(
            (found.servers.as_str(), found.properties.get("acks")),
            ("b:1", Some("1"))
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (line, text) in [
            ("--bootstrap-server a:1", "record-size"),
            (
                "--record-size 5 --payload-monotonic --bootstrap-server a:1",
                "cannot be used",
            ),
            ("--record-size 5", "must be specified"),
            ("--record-size 0 --bootstrap-server a:1", "record-size"),
            (
                "--record-size 5 --bootstrap-server a:1 --print-metrics",
                "print-metrics",
            ),
            (
                "--record-size 5 --bootstrap-server a:1 --transactional-id x",
                "Transactions",
            ),
            (
                "--record-size 5 --bootstrap-server a:1 --warmup-records 10",
                "warmup",
            ),
            (
                "--record-size 5 --bootstrap-server a:1 --key-distribution range",
                "required",
            ),
            (
                "--record-size 5 --bootstrap-server a:1 --record-key-range 4",
                "key-distribution",
            ),
        ] {
            let error = plan(line).expect_err(line);
            assert!(error.contains(text), "{line}: {error}");
        }
    }
}
