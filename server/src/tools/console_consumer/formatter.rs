//! How a record is printed, by the names of Kafka's formatters.

use std::io::Write;

use super::deserializer::Deserializer;
use crate::tools::ToolError;
use crate::tools::consumer::Received;
use crate::tools::properties::Properties;
use crate::tools::records::{CoordinatorError, CoordinatorKind, Json};

const PACKAGE: &str = "org.apache.kafka.tools.consumer.";

/// Why a record is not printed.
#[derive(Debug)]
pub(super) enum FormatError {
    /// It cannot be read as it should.
    Record(String),
    /// The output takes nothing.
    Output,
}

impl From<std::io::Error> for FormatError {
    fn from(_: std::io::Error) -> Self {
        FormatError::Output
    }
}

/// A formatter.
#[derive(Debug, Clone)]
pub(super) enum Formatter {
    Default(Box<DefaultFormatter>),
    Logging(Box<DefaultFormatter>),
    NoOp,
    /// Records of an internal topic, of these types.
    Coordinator(CoordinatorKind, &'static [i16]),
}

/// The formatter that is used unless another is named.
pub(super) const DEFAULT: &str = "org.apache.kafka.tools.consumer.DefaultMessageFormatter";
/// The record types of committed offsets, in their old and new form.
const OFFSETS: &[i16] = &[0, 1];
/// The record type of a group in the classic protocol.
const GROUP_METADATA: &[i16] = &[2];
/// The record types of transactions.
const TRANSACTIONS: &[i16] = &[0];
/// The record types of share groups' members and assignments.
const SHARE_GROUPS: &[i16] = &[9, 10, 11, 12, 13, 14, 15];
/// The record types of share groups' state.
const SHARE_STATE: &[i16] = &[0, 1];

impl Formatter {
    /// The formatter of this class with these properties. The text of an error is a sentence.
    pub(super) fn new(class: &str, properties: &Properties) -> Result<Self, String> {
        let default = || DefaultFormatter::new(properties).map(Box::new);
        Ok(match class.strip_prefix(PACKAGE).unwrap_or_default() {
            "DefaultMessageFormatter" => Formatter::Default(default()?),
            "LoggingMessageFormatter" => Formatter::Logging(default()?),
            "NoOpMessageFormatter" => Formatter::NoOp,
            "OffsetsMessageFormatter" => Formatter::Coordinator(CoordinatorKind::Group, OFFSETS),
            "GroupMetadataMessageFormatter" => {
                Formatter::Coordinator(CoordinatorKind::Group, GROUP_METADATA)
            }
            "TransactionLogMessageFormatter" => {
                Formatter::Coordinator(CoordinatorKind::Transaction, TRANSACTIONS)
            }
            "ShareGroupMessageFormatter" => {
                Formatter::Coordinator(CoordinatorKind::Group, SHARE_GROUPS)
            }
            "group.share.ShareGroupStateMessageFormatter" => {
                Formatter::Coordinator(CoordinatorKind::Share, SHARE_STATE)
            }
            _ => {
                return Err(format!(
                    "The formatter {class} is not known; there are DefaultMessageFormatter, LoggingMessageFormatter, \
                     NoOpMessageFormatter, OffsetsMessageFormatter, GroupMetadataMessageFormatter, \
                     TransactionLogMessageFormatter, ShareGroupMessageFormatter and \
                     group.share.ShareGroupStateMessageFormatter of {}.",
                    PACKAGE.trim_end_matches('.')
                ));
            }
        })
    }

    /// Prints a record.
    pub(super) fn write(
        &self,
        received: &Received,
        out: &mut dyn Write,
    ) -> Result<(), FormatError> {
        match self {
            Formatter::Default(formatter) => formatter.write(received, out),
            Formatter::Logging(formatter) => {
                formatter.write(received, out)?;
                ToolError::warn(&log_line(received));
                Ok(())
            }
            Formatter::NoOp => Ok(()),
            Formatter::Coordinator(kind, types) => coordinator(*kind, types, received, out),
        }
    }
}

fn log_line(received: &Received) -> String {
    let record = &received.fetched.record;
    let text = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
    let key = match &record.key {
        Some(key) => format!("{}, ", text(key)),
        None => "null ".to_owned(),
    };
    let value = record.value.as_ref().map_or("null".to_owned(), text);
    format!(
        "{}:{}, key:{key}value:{value}",
        received.fetched.timestamp_type.name(),
        record.timestamp
    )
}

fn coordinator(
    kind: CoordinatorKind,
    types: &[i16],
    received: &Received,
    out: &mut dyn Write,
) -> Result<(), FormatError> {
    let record = &received.fetched.record;
    let Some(key) = &record.key else {
        return Ok(());
    };
    let read = match kind.read(key, record.value.as_deref()) {
        Ok(read) if types.contains(&read.api_key) => read,
        Ok(_) | Err(CoordinatorError::UnknownType(_)) => return Ok(()),
        Err(error) => {
            return Err(FormatError::Record(format!(
                "Could not read record at offset {} due to: {error}",
                record.offset
            )));
        }
    };
    let typed = |name, number: i16, data| {
        Json::Object(vec![(name, Json::Number(number.into())), ("data", data)])
    };
    let value = match read.value {
        Some((version, data)) => typed("version", version, data),
        None => Json::Null,
    };
    let json = Json::Object(vec![
        ("key", typed("type", read.api_key, read.key)),
        ("value", value),
    ]);
    // Without an end of line, as in Kafka.
    write!(out, "{json}")?;
    Ok(())
}

/// Columns and values.
#[derive(Debug, Clone)]
pub(super) struct DefaultFormatter {
    prints: Columns,
    key_separator: String,
    line_separator: String,
    headers_separator: String,
    null_literal: String,
    key: Option<Deserializer>,
    value: Option<Deserializer>,
    headers: Option<Deserializer>,
}

#[derive(Debug, Clone)]
struct Columns {
    timestamp: bool,
    partition: bool,
    offset: bool,
    delivery: bool,
    epoch: bool,
    headers: bool,
    key: bool,
    value: bool,
}

const KNOWN: &[&str] = &[
    "print.timestamp",
    "print.partition",
    "print.offset",
    "print.delivery",
    "print.epoch",
    "print.headers",
    "print.key",
    "print.value",
    "key.separator",
    "line.separator",
    "headers.separator",
    "null.literal",
    "key.deserializer",
    "value.deserializer",
    "headers.deserializer",
];

impl DefaultFormatter {
    fn new(properties: &Properties) -> Result<Self, String> {
        properties.check_known("formatter", KNOWN)?;
        let flag = |key: &str, default: bool| properties.flag(key, default);
        let text = |key: &str, default: &str| properties.text(key, default);
        let class = |key: &str| properties.get(key).map(Deserializer::named).transpose();
        Ok(DefaultFormatter {
            prints: Columns {
                timestamp: flag("print.timestamp", false),
                partition: flag("print.partition", false),
                offset: flag("print.offset", false),
                delivery: flag("print.delivery", false),
                epoch: flag("print.epoch", false),
                headers: flag("print.headers", false),
                key: flag("print.key", false),
                value: flag("print.value", true),
            },
            key_separator: text("key.separator", "\t"),
            line_separator: text("line.separator", "\n"),
            headers_separator: text("headers.separator", ","),
            null_literal: text("null.literal", "null"),
            key: class("key.deserializer")?,
            value: class("value.deserializer")?,
            headers: class("headers.deserializer")?,
        })
    }

    fn bytes(
        &self,
        deserializer: Option<Deserializer>,
        bytes: Option<&[u8]>,
    ) -> Result<Vec<u8>, FormatError> {
        let bytes = bytes.unwrap_or(self.null_literal.as_bytes());
        match deserializer {
            Some(deserializer) => deserializer
                .text(bytes)
                .map(String::into_bytes)
                .map_err(FormatError::Record),
            None => Ok(bytes.to_vec()),
        }
    }

    fn write(&self, received: &Received, out: &mut dyn Write) -> Result<(), FormatError> {
        let record = &received.fetched.record;
        let prints = &self.prints;
        let mut columns: Vec<Vec<u8>> = Vec::new();
        if prints.timestamp {
            columns.push(
                format!(
                    "{}:{}",
                    received.fetched.timestamp_type.name(),
                    record.timestamp
                )
                .into_bytes(),
            );
        }
        if prints.partition {
            columns.push(format!("Partition:{}", received.partition.partition).into_bytes());
        }
        if prints.offset {
            columns.push(format!("Offset:{}", record.offset).into_bytes());
        }
        if prints.delivery {
            columns.push(b"Delivery:NOT_PRESENT".to_vec());
        }
        if prints.epoch {
            // Kafka's tool takes the epoch off before it hands a record to its formatter.
            columns.push(b"Epoch:NOT_PRESENT".to_vec());
        }
        if prints.headers {
            columns.push(self.header_column(received)?);
        }
        if prints.key {
            columns.push(self.bytes(self.key, record.key.as_deref())?);
        }
        if prints.value {
            columns.push(self.bytes(self.value, record.value.as_deref())?);
        }
        if columns.is_empty() {
            return Ok(());
        }
        let mut line = columns.join(self.key_separator.as_bytes());
        line.extend(self.line_separator.as_bytes());
        out.write_all(&line)?;
        Ok(())
    }

    fn header_column(&self, received: &Received) -> Result<Vec<u8>, FormatError> {
        let headers = &received.fetched.record.headers;
        if headers.is_empty() {
            return Ok(b"NO_HEADERS".to_vec());
        }
        let mut texts = Vec::new();
        for header in headers {
            let mut text = header.key.to_vec();
            text.push(b':');
            text.extend(self.bytes(self.headers, header.value.as_deref())?);
            texts.push(text);
        }
        Ok(texts.join(self.headers_separator.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::client::TopicPartition;
    use crate::tools::consumer::Fetched;
    use highwater_storage::record_batch::{Record, RecordHeader, TimestampType};

    fn received(key: Option<&'static [u8]>, value: Option<&'static [u8]>) -> Received {
        Received {
            partition: TopicPartition::new("t", 2),
            fetched: Fetched {
                record: Record {
                    offset: 7,
                    timestamp: 99,
                    key: key.map(Into::into),
                    value: value.map(Into::into),
                    headers: vec![
                        RecordHeader {
                            key: "a".into(),
                            value: Some("1".into()),
                        },
                        RecordHeader {
                            key: "b".into(),
                            value: None,
                        },
                    ],
                },
                timestamp_type: TimestampType::CreateTime,
            },
        }
    }

    fn print(class: &str, properties: &[(&str, &str)], received: &Received) -> String {
        let formatter = Formatter::new(class, &Properties::from(properties)).expect("known");
        let mut out = Vec::new();
        formatter.write(received, &mut out).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn all_columns_in_kafkas_order() {
        let names = ["timestamp", "partition", "offset", "headers", "key"];
        let names: Vec<_> = names.iter().map(|name| format!("print.{name}")).collect();
        let properties: Vec<_> = names.iter().map(|name| (name.as_str(), "true")).collect();
        assert_eq!(
            print(DEFAULT, &properties, &received(Some(b"k"), None)),
            "CreateTime:99\tPartition:2\tOffset:7\ta:1,b:null\tk\tnull\n"
        );
        assert_eq!(
            print(DEFAULT, &[], &received(Some(b"k"), Some(b"v"))),
            "v\n"
        );
        let silent = [("print.value", "false")];
        assert_eq!(print(DEFAULT, &silent, &received(None, None)), "");
    }

    #[test]
    fn offsets_are_printed_and_other_records_are_not() {
        let class = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter";
        let key = b"\0\x01\0\x01g\0\x01t\0\0\0\x05";
        assert_eq!(
            print(class, &[], &received(Some(key), None)),
            "{\"key\":{\"type\":1,\"data\":{\"group\":\"g\",\"topic\":\"t\",\"partition\":5}},\"value\":null}"
        );
        assert_eq!(
            print(class, &[], &received(Some(b"\0\x02\0\x01g"), None)),
            ""
        );
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert!(Formatter::new("com.example.Mine", &Properties::default()).is_err());
        let property: &[_] = &[("print.nothing", "true")];
        assert!(Formatter::new(DEFAULT, &Properties::from(property)).is_err());
    }
}
