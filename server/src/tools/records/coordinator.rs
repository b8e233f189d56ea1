//! Records of `__consumer_offsets`, `__transaction_state` and `__share_group_state`.

use super::reader::ReadError;
use super::schema::Message;
use super::{Json, Reader, schemas};

/// Whose records they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoordinatorKind {
    /// `__consumer_offsets`.
    Group,
    /// `__transaction_state`.
    Transaction,
    /// `__share_group_state`.
    Share,
}

/// A key, and its value unless the record deletes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CoordinatorRecord {
    /// The key's number: which record it is.
    pub(crate) api_key: i16,
    /// The key.
    pub(crate) key: Json,
    /// The value's version and the value; `None` deletes the key.
    pub(crate) value: Option<(i16, Json)>,
}

/// Why a record cannot be printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CoordinatorError {
    /// This release of Kafka has no such record.
    #[error("Found an unknown record type {0}")]
    UnknownType(i16),
    /// Key or value are shorter than their version.
    #[error("Could not read version from {0}'s buffer.")]
    NoVersion(&'static str),
    /// Key or value do not follow their schema.
    #[error("Could not read record with version {version} from {part}'s buffer due to: {reason}.")]
    Unreadable {
        /// The version of the key or value.
        version: i16,
        /// `key` or `value`.
        part: &'static str,
        /// What is wrong.
        reason: ReadError,
    },
}

impl CoordinatorKind {
    fn tables(self) -> (&'static [Message], &'static [Message]) {
        match self {
            CoordinatorKind::Group => (schemas::GROUP_KEYS, schemas::GROUP_VALUES),
            CoordinatorKind::Transaction => {
                (schemas::TRANSACTION_KEYS, schemas::TRANSACTION_VALUES)
            }
            CoordinatorKind::Share => (schemas::SHARE_KEYS, schemas::SHARE_VALUES),
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// When the key's type is unknown, or key or value do not follow their schemas.
    pub(crate) fn read(
        self,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<CoordinatorRecord, CoordinatorError> {
        let (keys, values) = self.tables();
        let mut reader = Reader::new(key);
        let api_key = reader
            .int16()
            .map_err(|_| CoordinatorError::NoVersion("key"))?;
        let unknown = CoordinatorError::UnknownType(api_key);
        let schema = Message::find(keys, api_key).ok_or_else(|| unknown.clone())?;
        // The number in front is the record's type; all keys have one version.
        let key = read(schema, &mut reader, 0, api_key, "key")?;
        let value = match value {
            None => None,
            Some(value) => {
                let schema = Message::find(values, api_key).ok_or(unknown)?;
                let mut reader = Reader::new(value);
                let version = reader
                    .int16()
                    .map_err(|_| CoordinatorError::NoVersion("value"))?;
                Some((
                    version,
                    read(schema, &mut reader, version, version, "value")?,
                ))
            }
        };
        Ok(CoordinatorRecord {
            api_key,
            key,
            value,
        })
    }
}

fn read(
    schema: &Message,
    reader: &mut Reader<'_>,
    version: i16,
    told: i16,
    part: &'static str,
) -> Result<Json, CoordinatorError> {
    schema
        .read(reader, version)
        .map_err(|reason| CoordinatorError::Unreadable {
            version: told,
            part,
            reason,
        })
}

impl CoordinatorRecord {
    /// Puts what members of a group of consumers subscribe to and are assigned in the place of the bytes.
    #[must_use]
    pub(crate) fn with_consumer_protocol(mut self) -> Self {
        let Some((_, value)) = &mut self.value else {
            return self;
        };
        let is_consumer = value.get("protocolType") == Some(&Json::Text("consumer".to_owned()));
        if let (true, Some(Json::Array(members))) = (is_consumer, value.get_mut("members")) {
            for member in members {
                replace(member, "subscription", &schemas::SUBSCRIPTION);
                replace(member, "assignment", &schemas::ASSIGNMENT);
            }
        }
        self
    }
}

/// Replaces bytes by the message they are; leaves bytes that are none.
fn replace(member: &mut Json, name: &str, schema: &Message) {
    let Some(field) = member.get_mut(name) else {
        return;
    };
    let Json::Binary(bytes) = &*field else { return };
    let mut reader = Reader::new(bytes);
    let read = reader
        .int16()
        .and_then(|version| schema.read(&mut reader, version));
    if let Ok(message) = read {
        *field = message;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        let length = i16::try_from(text.len()).expect("short");
        [&length.to_be_bytes()[..], text.as_bytes()].concat()
    }

    #[test]
    fn a_committed_offset_and_its_deletion() {
        let key = [&[0, 1][..], &text("g"), &text("t"), &[0, 0, 0, 3]].concat();
        let value = [
            &[0, 3][..],
            &42i64.to_be_bytes(),
            &(-1i32).to_be_bytes(),
            &text(""),
            &7i64.to_be_bytes(),
        ]
        .concat();
        let record = CoordinatorKind::Group.read(&key, Some(&value));
        let record = record.expect("a record");
        assert_eq!(record.api_key, 1);
        assert_eq!(
            record.key.to_string(),
            r#"{"group":"g","topic":"t","partition":3}"#
        );
        let (version, value) = record.value.expect("a value");
        assert_eq!(version, 3);
        assert_eq!(
            value.to_string(),
            r#"{"offset":42,"leaderEpoch":-1,"metadata":"","commitTimestamp":7}"#
        );
        let deletion = CoordinatorKind::Group.read(&key, None).expect("a record");
        assert_eq!(deletion.value, None);
    }

    #[test]
    fn what_is_no_record_says_why() {
        let error = |key: &[u8], value| {
            CoordinatorKind::Group
                .read(key, value)
                .expect_err("no record")
        };
        assert_eq!(error(&[0], None), CoordinatorError::NoVersion("key"));
        assert_eq!(
            error(&[0x7f, 0], None),
            CoordinatorError::UnknownType(0x7f00)
        );
        let key = [&[0, 2][..], &text("g")].concat();
        assert!(
            error(&key, Some(&[0, 99]))
                .to_string()
                .starts_with("Could not read record with version 99 from value's buffer due to: Can't read version 99")
        );
        assert!(matches!(
            error(&key, Some(&[0, 3, 0])),
            CoordinatorError::Unreadable { version: 3, .. }
        ));
    }
}
