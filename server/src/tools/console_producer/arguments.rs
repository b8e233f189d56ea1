//! What `console-producer` can be asked.

use std::path::PathBuf;

use clap::Args;

use crate::tools::ToolError;
use crate::tools::client::{ClientProperties, key_value};
use crate::tools::properties::Properties;

const LINE_READER: &str = "org.apache.kafka.tools.LineMessageReader";

/// Options of the tool.
#[derive(Debug, Args)]
pub(crate) struct ConsoleProducerArguments {
    /// Brokers to start from
    #[arg(long, value_name = "HOST:PORT,...")]
    pub(super) bootstrap_server: String,

    /// Topic to produce to
    #[arg(long, value_name = "TOPIC")]
    pub(super) topic: String,

    /// Wait for the acknowledgement of each record before the next is read
    #[arg(long)]
    pub(super) sync: bool,

    /// Codec of batches: none, gzip, snappy, lz4 or zstd; gzip without a value
    #[arg(long, value_name = "CODEC", num_args = 0..=1, default_missing_value = "gzip")]
    compression_codec: Option<String>,

    /// Size of batches in bytes
    #[arg(long, value_name = "BYTES")]
    batch_size: Option<i32>,

    /// Old name of --batch-size, which it overrides
    #[arg(long, value_name = "BYTES")]
    max_partition_memory_bytes: Option<i32>,

    /// Attempts after the first
    #[arg(long, value_name = "COUNT")]
    message_send_max_retries: Option<i32>,

    /// Rest before another attempt
    #[arg(long, value_name = "MS")]
    retry_backoff_ms: Option<i64>,

    /// How long a batch waits for more records
    #[arg(long, value_name = "MS")]
    timeout: Option<i64>,

    /// Which replicas acknowledge: all or -1, 1, or 0 for none
    #[arg(long, value_name = "ACKS")]
    request_required_acks: Option<String>,

    /// How long a broker may take to answer
    #[arg(long, value_name = "MS")]
    request_timeout_ms: Option<i64>,

    /// How long the metadata of the topic may take
    #[arg(long, value_name = "MS")]
    max_block_ms: Option<i64>,

    /// Bytes of records that may wait to be sent
    #[arg(long, value_name = "BYTES")]
    max_memory_bytes: Option<i64>,

    /// Refused: leaders are learned anew when one has moved, not after a time
    #[arg(long, value_name = "MS")]
    metadata_expiry_ms: Option<i64>,

    /// Refused: the operating system sizes the socket's buffers
    #[arg(long, value_name = "BYTES")]
    socket_buffer_size: Option<i32>,

    /// Class that reads the lines; there is org.apache.kafka.tools.LineMessageReader
    #[arg(long, value_name = "CLASS", default_value = LINE_READER)]
    line_reader: String,

    /// Property of the reader: parse.key, key.separator, parse.headers, headers.delimiter, headers.separator,
    /// headers.key.separator, ignore.error, null.marker
    #[arg(long, value_name = "KEY=VALUE")]
    reader_property: Vec<String>,

    /// Old name of --reader-property
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "reader_property")]
    property: Vec<String>,

    /// Properties file of the reader
    #[arg(long, value_name = "FILE")]
    reader_config: Option<PathBuf>,

    /// Property of the producer
    #[arg(long, value_name = "KEY=VALUE")]
    command_property: Vec<String>,

    /// Old name of --command-property
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "command_property")]
    producer_property: Vec<String>,

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
}

impl ConsoleProducerArguments {
    /// What Kafka's tool says about options with old names.
    pub(super) fn deprecations(&self) -> impl Iterator<Item = String> {
        [
            (
                !self.producer_property.is_empty(),
                "producer-property",
                "--command-property",
                "a future version",
            ),
            (
                self.producer_config.is_some(),
                "producer.config",
                "--command-config",
                "a future version",
            ),
            (
                !self.property.is_empty(),
                "property",
                "--reader-property",
                "a future version",
            ),
            (
                self.max_partition_memory_bytes.is_some(),
                "max-partition-memory-bytes",
                "--batch-size",
                "Apache Kafka 5.0",
            ),
        ]
        .into_iter()
        .filter(|(is_given, ..)| *is_given)
        .map(|(_, old, new, until)| {
            format!(
                "Warning: --{old} is deprecated and will be removed in {until}. Use {new} instead."
            )
        })
    }

    /// The producer's properties: those of options over the command line's over the file's. Without any of them the
    /// tool's own defaults hold, which are not the producer's.
    pub(super) fn properties(&self) -> Result<ClientProperties, ToolError> {
        if self.line_reader != LINE_READER {
            return ToolError::refuse(format!(
                "The line reader {} is not known; there is {LINE_READER}.",
                self.line_reader
            ));
        }
        for (is_given, option) in [
            (self.metadata_expiry_ms.is_some(), "--metadata-expiry-ms"),
            (self.socket_buffer_size.is_some(), "--socket-buffer-size"),
        ] {
            if is_given {
                return ToolError::refuse(format!("{option} is not supported."));
            }
        }
        let file = self
            .command_config
            .as_ref()
            .or(self.producer_config.as_ref());
        let options = self.command_property.iter().chain(&self.producer_property);
        let mut properties = ClientProperties::load_with(file.map(PathBuf::as_path), options)?;
        let batch_size = self.max_partition_memory_bytes.or(self.batch_size);
        let options = [
            ("linger.ms", self.timeout.map(|v| v.to_string()), "1000"),
            ("acks", self.request_required_acks.clone(), "-1"),
            (
                "request.timeout.ms",
                self.request_timeout_ms.map(|v| v.to_string()),
                "1500",
            ),
            (
                "retries",
                self.message_send_max_retries.map(|v| v.to_string()),
                "3",
            ),
            (
                "retry.backoff.ms",
                self.retry_backoff_ms.map(|v| v.to_string()),
                "100",
            ),
            (
                "max.block.ms",
                self.max_block_ms.map(|v| v.to_string()),
                "60000",
            ),
            (
                "buffer.memory",
                self.max_memory_bytes.map(|v| v.to_string()),
                "33554432",
            ),
            ("batch.size", batch_size.map(|v| v.to_string()), "16384"),
            ("compression.type", self.compression_codec.clone(), "none"),
        ];
        for (key, given, default) in options {
            match given {
                Some(value) => properties.set(key, &value),
                None if properties.get(key).is_none() => properties.set(key, default),
                None => {}
            }
        }
        Ok(properties)
    }

    /// The reader's properties.
    pub(super) fn reader_properties(&self) -> Result<Properties, ToolError> {
        let file = self.reader_config.as_deref();
        let mut properties = Properties::load(file).map_err(ToolError::failed)?;
        for property in self.reader_property.iter().chain(&self.property) {
            let (key, value) = key_value(property)?;
            properties.set(key, value);
        }
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
        arguments: ConsoleProducerArguments,
    }

    fn parse(options: &[&str]) -> ConsoleProducerArguments {
        let words = ["tool", "--bootstrap-server", "a:1", "--topic", "t"];
        let words = words.iter().chain(options);
        Line::try_parse_from(words).expect("parses").arguments
    }

    #[test]
    fn an_option_wins_over_a_property_and_that_over_the_default() {
        let arguments = parse(&["--timeout", "7", "--command-property", "linger.ms=9"]);
        let properties = arguments.properties().expect("sound");
        assert_eq!(properties.get("linger.ms"), Some("7"));
        assert_eq!(properties.get("retries"), Some("3"));
        let arguments = parse(&["--max-block-ms=-1"]);
        let properties = arguments.properties().expect("sound so far");
        assert_eq!(properties.get("max.block.ms"), Some("-1"));
        let arguments = parse(&["--command-property", "linger.ms=9", "--compression-codec"]);
        let properties = arguments.properties().expect("sound");
        assert_eq!(properties.get("linger.ms"), Some("9"));
        assert_eq!(properties.get("compression.type"), Some("gzip"));
    }

    #[test]
    fn what_is_not_supported_is_refused() {
        for options in [
            ["--line-reader", "com.example.Mine"],
            ["--metadata-expiry-ms", "5"],
            ["--socket-buffer-size", "5"],
            ["--command-property", "nonsense"],
        ] {
            assert!(parse(&options).properties().is_err(), "{options:?}");
        }
    }
}
