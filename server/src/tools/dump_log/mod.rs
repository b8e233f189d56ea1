//! `dump-log`: what is in the files of a partition, as `kafka-dump-log.sh` prints it.

mod batches;
mod decoder;
mod index;
mod log;
mod snapshot;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use decoder::Decoder;

use super::ToolError;

/// The decoder of keys and values unless another is named.
const STRING_DECODER: &str = "org.apache.kafka.tools.api.StringDecoder";

/// Arguments of `dump-log`.
#[derive(Debug, Args)]
pub(crate) struct DumpLogArguments {
    /// Files to dump: .log, .index, .timeindex, .txnindex, .snapshot, .checkpoint
    #[arg(long, value_name = "FILE,...", value_delimiter = ',', required = true)]
    files: Vec<PathBuf>,

    /// Print every record of a batch, not only the batch
    #[arg(long)]
    deep_iteration: bool,

    /// Print keys and values too; any decoder does so as well
    #[arg(long)]
    print_data_log: bool,

    /// Check indexes against the log without printing them
    #[arg(long)]
    verify_index_only: bool,

    /// Check whether an index is sane, as a broker does when it starts
    #[arg(long)]
    index_sanity_check: bool,

    /// Size of the largest batch that an index may point at
    #[arg(long, value_name = "BYTES", default_value_t = 5 * 1024 * 1024)]
    max_message_size: u32,

    /// Dump only the batches in so many bytes at the start of a log
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u32>,

    /// Print keys and values of records, nothing else about them
    #[arg(long)]
    skip_record_metadata: bool,

    /// Read records as those of __consumer_offsets
    #[arg(long)]
    offsets_decoder: bool,

    /// Read records as those of __transaction_state
    #[arg(long)]
    transaction_log_decoder: bool,

    /// Read records as those of the metadata log
    #[arg(long)]
    cluster_metadata_decoder: bool,

    /// Read records as those of __share_group_state
    #[arg(long)]
    share_group_state_decoder: bool,

    /// Refused: remote storage is not supported
    #[arg(long)]
    remote_log_metadata_decoder: bool,

    /// How keys are printed: the class org.apache.kafka.tools.api.StringDecoder, IntegerDecoder or LongDecoder
    #[arg(long, value_name = "CLASS", num_args = 0..=1, default_missing_value = STRING_DECODER)]
    key_decoder_class: Option<String>,

    /// How values are printed: a class as for keys
    #[arg(long, value_name = "CLASS", num_args = 0..=1, default_missing_value = STRING_DECODER)]
    value_decoder_class: Option<String>,
}

/// What is found wrong on the way, told on stderr when all files are dumped: a heading and its lines.
#[derive(Debug, Default)]
struct Findings(Vec<(String, Vec<String>)>);

impl Findings {
    fn add(&mut self, heading: &str, line: String) {
        match self.0.iter_mut().find(|(found, _)| found == heading) {
            Some((_, lines)) => lines.push(line),
            None => self.0.push((heading.to_owned(), vec![line])),
        }
    }

    fn tell(&self) {
        for (heading, lines) in &self.0 {
            ToolError::warn(heading);
            lines.iter().for_each(|line| ToolError::warn(line));
        }
    }
}

/// Dumps the files.
pub(crate) fn run(arguments: &DumpLogArguments, out: &mut dyn Write) -> Result<(), ToolError> {
    let decoder = arguments.decoder()?;
    let mut findings = Findings::default();
    for file in &arguments.files {
        writeln!(out, "Dumping {}", file.display())?;
        dump(arguments, &decoder, file, &mut findings, out)?;
    }
    out.flush()?;
    findings.tell();
    Ok(())
}

fn dump(
    arguments: &DumpLogArguments,
    decoder: &Decoder,
    file: &Path,
    findings: &mut Findings,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let checks = index::Checks {
        is_sanity_only: arguments.index_sanity_check,
        is_verify_only: arguments.verify_index_only,
    };
    match name.rsplit_once('.').map(|(_, suffix)| suffix) {
        Some("log" | "checkpoint") => {
            let form = log::Form {
                is_deep: arguments.deep_iteration || arguments.prints_contents(),
                prints_contents: arguments.prints_contents(),
                skips_record_metadata: arguments.skip_record_metadata,
                max_bytes: arguments.max_bytes,
            };
            log::dump(file, &name, form, decoder, findings, out)
        }
        Some("index") => {
            let max_bytes = arguments.max_message_size;
            index::dump_offset_index(file, &name, checks, max_bytes, findings, out)
        }
        Some("timeindex") => index::dump_time_index(file, &name, checks, findings, out),
        Some("txnindex") => snapshot::dump_transaction_index(file, out),
        Some("snapshot") => snapshot::dump_producer_snapshot(file, out),
        _ => {
            out.flush()?;
            ToolError::warn(&format!("Ignoring unknown file {}", file.display()));
            Ok(())
        }
    }
}

impl DumpLogArguments {
    fn prints_contents(&self) -> bool {
        self.print_data_log
            || self.offsets_decoder
            || self.transaction_log_decoder
            || self.cluster_metadata_decoder
            || self.share_group_state_decoder
            || self.key_decoder_class.is_some()
            || self.value_decoder_class.is_some()
    }

    /// The decoder that was asked for; of several, the one that Kafka takes.
    fn decoder(&self) -> Result<Decoder, ToolError> {
        if self.remote_log_metadata_decoder {
            return Err(ToolError::failed(
                "--remote-log-metadata-decoder is not supported: Highwater has no remote storage.",
            ));
        }
        let class = |class: &Option<String>| {
            decoder::Class::named(class.as_deref().unwrap_or(STRING_DECODER))
                .map_err(ToolError::failed)
        };
        Ok(if self.offsets_decoder {
            Decoder::Offsets
        } else if self.transaction_log_decoder {
            Decoder::TransactionLog
        } else if self.cluster_metadata_decoder {
            Decoder::ClusterMetadata
        } else if self.share_group_state_decoder {
            Decoder::ShareGroupState
        } else {
            Decoder::Classes {
                key: class(&self.key_decoder_class)?,
                value: class(&self.value_decoder_class)?,
            }
        })
    }
}

/// The offset in front of the first dot of a segment's file name.
fn base_offset(name: &str) -> Result<i64, ToolError> {
    let digits = name.split('.').next().unwrap_or_default();
    digits
        .parse()
        .map_err(|_| ToolError::failed(format!("The name {name} does not begin with an offset.")))
}

/// The path as Java's `getAbsolutePath` gives it.
fn absolute(file: &Path) -> String {
    std::path::absolute(file)
        .unwrap_or_else(|_| file.to_owned())
        .display()
        .to_string()
}

fn read(file: &Path) -> Result<Vec<u8>, ToolError> {
    std::fs::read(file).map_err(|error| cannot_read(file, &error))
}

fn cannot_read(file: &Path, error: &std::io::Error) -> ToolError {
    ToolError::failed(format!("Cannot read {}: {error}.", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: DumpLogArguments,
    }

    fn parse(options: &[&str]) -> DumpLogArguments {
        let line = ["dump-log"].iter().chain(options);
        Line::try_parse_from(line)
            .expect("sound arguments")
            .arguments
    }

    #[test]
    fn a_decoder_prints_contents() {
        let plain = parse(&["--files", "a.log,b.index"]);
        assert_eq!(plain.files.len(), 2);
        assert!(!plain.prints_contents());
        for decoder in [
            "--print-data-log",
            "--offsets-decoder",
            "--transaction-log-decoder",
            "--cluster-metadata-decoder",
            "--share-group-state-decoder",
            "--key-decoder-class",
            "--value-decoder-class=org.apache.kafka.tools.api.LongDecoder",
        ] {
            let arguments = parse(&["--files", "a.log", decoder]);
            assert!(arguments.prints_contents(), "{decoder}");
            assert!(arguments.decoder().is_ok(), "{decoder}");
        }
    }

    #[test]
    fn what_cannot_be_decoded_is_refused() {
        for refused in [
            "--remote-log-metadata-decoder",
            "--key-decoder-class=com.example.Mine",
        ] {
            let arguments = parse(&["--files", "a.log", refused]);
            assert!(arguments.decoder().is_err(), "{refused}");
        }
    }

    #[test]
    fn a_name_tells_the_base_offset() {
        assert_eq!(base_offset("00000000000000000042.log").ok(), Some(42));
        assert!(base_offset("x.log").is_err());
    }
}
