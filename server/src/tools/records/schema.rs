//! What a schema of Kafka says about a message: its fields, and in which versions each of them lies where.

/// The first and the last version; empty when the first is above the last.
pub(crate) type Versions = (i16, i16);

/// A message that Kafka generates from a schema.
#[derive(Debug)]
pub(crate) struct Message {
    /// The schema's name.
    pub(crate) name: &'static str,
    /// Its number among the records of its kind; -1 without one.
    pub(crate) api_key: i16,
    /// The versions that can be read.
    pub(crate) versions: Versions,
    /// The first version with compact lengths and tagged fields; `i16::MAX` without one.
    pub(crate) flexible_from: i16,
    /// The fields, in their order on the wire and in JSON.
    pub(crate) fields: &'static [Field],
}

/// One field of a message or of a struct in it.
#[derive(Debug)]
pub(crate) struct Field {
    /// Its name in JSON.
    pub(crate) name: &'static str,
    /// The versions that have it.
    pub(crate) versions: Versions,
    /// The versions in which it may be null.
    pub(crate) nullable: Versions,
    /// Its tag and the versions in which it is a tagged field.
    pub(crate) tagged: Option<(u32, Versions)>,
    /// What it is when it is absent; only looked at for tagged fields, which JSON leaves out then.
    pub(crate) default: Default,
    /// How it lies on the wire.
    pub(crate) kind: Kind,
}

/// The default of a tagged field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Default {
    /// Zero, false, empty, or a struct of defaults.
    Zero,
    /// Null.
    Null,
    /// A number.
    Number(i64),
}

/// The type of a field.
#[derive(Debug)]
pub(crate) enum Kind {
    /// One byte, zero for false.
    Bool,
    /// A signed number in one byte.
    Int8,
    /// A signed number in two bytes.
    Int16,
    /// A number without a sign in two bytes.
    Uint16,
    /// A signed number in four bytes.
    Int32,
    /// A signed number in eight bytes.
    Int64,
    /// A floating-point number in eight bytes.
    Float64,
    /// Sixteen bytes.
    Uuid,
    /// A string.
    Text,
    /// Bytes.
    Binary,
    /// A count, and the elements.
    Array(&'static Kind),
    /// Fields.
    Struct(&'static [Field]),
}

impl Message {
    /// The message with this api key.
    #[must_use]
    pub(crate) fn find(table: &'static [Message], api_key: i16) -> Option<&'static Message> {
        table.iter().find(|message| message.api_key == api_key)
    }
}

/// A field that is never null and never tagged.
pub(crate) const fn field(name: &'static str, versions: Versions, kind: Kind) -> Field {
    Field {
        name,
        versions,
        nullable: (1, 0),
        tagged: None,
        default: Default::Zero,
        kind,
    }
}

impl Field {
    /// The field, which may be null in these versions.
    pub(crate) const fn nullable(self, versions: Versions) -> Self {
        Field {
            nullable: versions,
            ..self
        }
    }

    /// The field, which is tagged in these versions.
    pub(crate) const fn tagged(self, tag: u32, versions: Versions, default: Default) -> Self {
        Field {
            tagged: Some((tag, versions)),
            default,
            ..self
        }
    }
}

/// Whether `version` is one of `versions`.
#[must_use]
pub(crate) fn has(versions: Versions, version: i16) -> bool {
    versions.0 <= version && version <= versions.1
}
