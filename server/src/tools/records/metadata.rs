//! Records of the metadata log.

use super::reader::ReadError;
use super::schema::Message;
use super::{Json, Reader, schemas};
use crate::kafka_names::constant_name;

/// The frame's only version.
const FRAME_VERSION: i16 = 1;

/// Why a record of the metadata log cannot be printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MetadataError {
    /// One of the numbers in front of the record is cut off.
    #[error("Error while reading {0}")]
    Cut(&'static str),
    /// One of the numbers in front of the record is above 32767.
    #[error("Value for {0} was too large.")]
    TooLarge(&'static str),
    /// The frame of Kafka 2.8's preview.
    #[error(
        "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release of \
         KRaft in 2.8 to newer versions are not supported."
    )]
    Preview,
    /// Another frame.
    #[error(
        "Could not deserialize metadata record due to unknown frame version {0}(only frame version {FRAME_VERSION} is \
         supported)"
    )]
    Frame(i16),
    /// No record has this number.
    #[error("org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {0}")]
    UnknownType(i16),
    /// The record does not follow its schema.
    #[error("Failed to deserialize record with type {0}")]
    Record(i16),
    /// Bytes follow the record.
    #[error("Found {count} byte(s) of garbage after {api_key}")]
    Garbage {
        /// How many.
        count: usize,
        /// The record's number.
        api_key: i16,
    },
}

/// A record of the metadata log as JSON: its type, version and data.
///
/// # Errors
/// See [`MetadataError`].
pub(crate) fn read_metadata_record(bytes: &[u8]) -> Result<Json, MetadataError> {
    let mut reader = Reader::new(bytes);
    match number(&mut reader, "frame version")? {
        FRAME_VERSION => {}
        0 => return Err(MetadataError::Preview),
        other => return Err(MetadataError::Frame(other)),
    }
    let api_key = number(&mut reader, "type")?;
    let version = number(&mut reader, "version")?;
    let message =
        Message::find(schemas::METADATA, api_key).ok_or(MetadataError::UnknownType(api_key))?;
    let data = message
        .read(&mut reader, version)
        .map_err(|_: ReadError| MetadataError::Record(api_key))?;
    match reader.remaining().len() {
        0 => Ok(Json::Object(vec![
            ("type", Json::Text(constant_name(message.name))),
            ("version", Json::Number(version.into())),
            ("data", data),
        ])),
        count => Err(MetadataError::Garbage { count, api_key }),
    }
}

fn number(reader: &mut Reader<'_>, what: &'static str) -> Result<i16, MetadataError> {
    let value = reader
        .unsigned_varint()
        .map_err(|_| MetadataError::Cut(what))?;
    i16::try_from(value).map_err(|_| MetadataError::TooLarge(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_printed_with_its_type() {
        // Frame 1, FeatureLevelRecord (12), version 0: a compact string, a number, no tagged fields.
        let bytes = [&[1, 12, 0, 2][..], b"a", &[0, 7, 0]].concat();
        let json = read_metadata_record(&bytes).expect("a record").to_string();
        assert_eq!(
            json,
            r#"{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"a","featureLevel":7}}"#
        );
    }

    #[test]
    fn what_is_no_record_says_why() {
        let error = |bytes: &[u8]| {
            read_metadata_record(bytes)
                .expect_err("no record")
                .to_string()
        };
        assert_eq!(error(&[]), "Error while reading frame version");
        assert!(error(&[0]).contains("frame version 0"));
        assert!(error(&[2]).contains("unknown frame version 2(only"));
        assert_eq!(
            error(&[1, 0xff, 0xff, 0x7f]),
            "Value for type was too large."
        );
        assert!(error(&[1, 120, 0]).contains("Unknown metadata id 120"));
        assert!(error(&[1, 12, 0, 2]).contains("with type 12"));
        let bytes = [&[1, 12, 0, 2][..], b"a", &[0, 7, 0, 9]].concat();
        assert_eq!(error(&bytes), "Found 1 byte(s) of garbage after 12");
    }
}
