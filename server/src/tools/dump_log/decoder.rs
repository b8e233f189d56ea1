//! How the keys and values of records are printed.

use highwater_storage::record_batch::Record;

use super::ToolError;
use crate::tools::records::{
    CoordinatorError, CoordinatorKind, CoordinatorRecord, Json, read_metadata_record,
};

/// A decoder of a key or a value, by the name of Kafka's class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Text in UTF-8.
    String,
    /// Four bytes.
    Integer,
    /// Eight bytes.
    Long,
}

impl Class {
    /// The decoder with the name of this class; the text of the error is a sentence.
    pub(super) fn named(class: &str) -> Result<Self, String> {
        match class {
            "org.apache.kafka.tools.api.StringDecoder" => Ok(Class::String),
            "org.apache.kafka.tools.api.IntegerDecoder" => Ok(Class::Integer),
            "org.apache.kafka.tools.api.LongDecoder" => Ok(Class::Long),
            other => Err(format!(
                "The decoder {other} is not known; there are StringDecoder, IntegerDecoder and LongDecoder of \
                 org.apache.kafka.tools.api."
            )),
        }
    }

    fn decode(self, bytes: &[u8]) -> Result<String, String> {
        let short = |needed| {
            format!(
                "a number of {needed} bytes was expected, not {}",
                bytes.len()
            )
        };
        Ok(match self {
            Class::String => String::from_utf8_lossy(bytes).into_owned(),
            Class::Integer => {
                let number = bytes.first_chunk().ok_or_else(|| short(4))?;
                i32::from_be_bytes(*number).to_string()
            }
            Class::Long => {
                let number = bytes.first_chunk().ok_or_else(|| short(8))?;
                i64::from_be_bytes(*number).to_string()
            }
        })
    }
}

/// What the records of a log are taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoder {
    Offsets,
    TransactionLog,
    ShareGroupState,
    ClusterMetadata,
    Classes { key: Class, value: Class },
}

/// The texts for a key and a value, where there are any.
type Decoded = (Option<String>, Option<String>);

impl Decoder {
    pub(super) fn decode(&self, record: &Record) -> Result<Decoded, ToolError> {
        match self {
            Decoder::Offsets => coordinator(CoordinatorKind::Group, record),
            Decoder::TransactionLog => coordinator(CoordinatorKind::Transaction, record),
            Decoder::ShareGroupState => coordinator(CoordinatorKind::Share, record),
            Decoder::ClusterMetadata => {
                let value = record.value.as_deref().unwrap_or_default();
                let text = read_metadata_record(value).map_or_else(
                    |error| format!("Error at {}, skipping. {error}", record.offset),
                    |json| json.to_string(),
                );
                Ok((None, Some(text)))
            }
            Decoder::Classes { key, value } => {
                let decode = |class: &Class, bytes: &Option<bytes::Bytes>| {
                    let text = bytes.as_deref().map(|bytes| class.decode(bytes));
                    text.transpose().map_err(|reason| {
                        ToolError::failed(format!(
                            "Cannot decode the record at offset {}: {reason}.",
                            record.offset
                        ))
                    })
                };
                Ok((decode(key, &record.key)?, decode(value, &record.value)?))
            }
        }
    }
}

fn coordinator(kind: CoordinatorKind, record: &Record) -> Result<Decoded, ToolError> {
    let Some(key) = &record.key else {
        return Err(ToolError::failed(format!(
            "Failed to decode message at offset {} using the specified decoder (message had a missing key)",
            record.offset
        )));
    };
    let read = kind
        .read(key, record.value.as_deref())
        .map(CoordinatorRecord::with_consumer_protocol);
    Ok(match read {
        Ok(read) => {
            let key = typed("type", read.api_key, read.key);
            let value = match read.value {
                Some((version, data)) => typed("version", version, data),
                None => "<DELETE>".to_owned(),
            };
            (Some(key), Some(value))
        }
        Err(CoordinatorError::UnknownType(api_key)) => {
            let offset = record.offset;
            let text = format!("Unknown record type {api_key} at offset {offset}, skipping.");
            (Some(text), None)
        }
        Err(error) => {
            let text = format!("Error at offset {}, skipping. {error}", record.offset);
            (Some(text), None)
        }
    })
}

fn typed(name: &'static str, number: i16, data: Json) -> String {
    Json::Object(vec![(name, Json::Text(number.to_string())), ("data", data)]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn record(key: Option<&'static [u8]>, value: Option<&'static [u8]>) -> Record {
        Record {
            offset: 7,
            timestamp: 0,
            key: key.map(Bytes::from_static),
            value: value.map(Bytes::from_static),
            headers: Vec::new(),
        }
    }

    #[test]
    fn classes_print_texts_and_numbers() {
        let decoder = Decoder::Classes {
            key: Class::Integer,
            value: Class::String,
        };
        let decoded = decoder.decode(&record(Some(&[0, 0, 1, 0]), Some(b"v")));
        assert_eq!(
            decoded.ok(),
            Some((Some("256".to_owned()), Some("v".to_owned())))
        );
        assert!(decoder.decode(&record(Some(&[1]), None)).is_err());
        assert_eq!(decoder.decode(&record(None, None)).ok(), Some((None, None)));
    }

    #[test]
    fn an_internal_record_is_printed_or_skipped() {
        let deletion = Decoder::Offsets.decode(&record(Some(&[0, 2, 0, 1, b'g']), None));
        let (key, value) = deletion.expect("decoded");
        assert_eq!(key.as_deref(), Some(r#"{"type":"2","data":{"group":"g"}}"#));
        assert_eq!(value.as_deref(), Some("<DELETE>"));
        let unknown = Decoder::Offsets.decode(&record(Some(&[9, 9]), None));
        assert_eq!(
            unknown.expect("decoded").0.as_deref(),
            Some("Unknown record type 2313 at offset 7, skipping.")
        );
        assert!(Decoder::Offsets.decode(&record(None, None)).is_err());
    }
}
