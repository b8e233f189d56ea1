//! Reads a message by its schema.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::json::Json;
use super::schema::{Default, Field, Kind, Message, has};

/// Why bytes are not the message they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    /// They end too early.
    #[error("Buffer underflow while reading the message")]
    Truncated,
    /// The schema has no such version.
    #[error("Can't read version {version} of {name}")]
    UnknownVersion {
        /// The message.
        name: &'static str,
        /// The version that was asked for.
        version: i16,
    },
    /// A field is null that must not be.
    #[error("non-nullable field {0} was serialized as null")]
    Null(&'static str),
    /// A number of variable length has no end.
    #[error("a number of variable length is too long")]
    Varint,
}

/// Takes values off the front of a message.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the first of `bytes`.
    #[must_use]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// What was not read yet.
    #[must_use]
    pub(crate) fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], ReadError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(ReadError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(ReadError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A signed number in two bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub(crate) fn int16(&mut self) -> Result<i16, ReadError> {
        self.array().map(i16::from_be_bytes)
    }

    /// A number of variable length, at most five bytes.
    ///
    /// # Errors
    /// When it is cut off or too long.
    pub(crate) fn unsigned_varint(&mut self) -> Result<u32, ReadError> {
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| ReadError::Varint);
            }
        }
        Err(ReadError::Varint)
    }

    /// A length or a count; `None` is null.
    fn length(&mut self, kind: &Kind, is_flexible: bool) -> Result<Option<usize>, ReadError> {
        let length = if is_flexible {
            i64::from(self.unsigned_varint()?) - 1
        } else if matches!(kind, Kind::Text) {
            i64::from(self.int16()?)
        } else {
            i64::from(i32::from_be_bytes(self.array()?))
        };
        match usize::try_from(length) {
            Ok(length) if length > self.rest.len() => Err(ReadError::Truncated),
            Ok(length) => Ok(Some(length)),
            Err(_) => Ok(None),
        }
    }
}

/// How the fields of one message are read.
#[derive(Clone, Copy)]
struct Form {
    version: i16,
    is_flexible: bool,
}

impl Message {
    /// Reads the message in a version, into the JSON that Kafka's converters make of it.
    ///
    /// # Errors
    /// When the schema has no such version, or the bytes are not a message of it.
    pub(crate) fn read(&self, reader: &mut Reader<'_>, version: i16) -> Result<Json, ReadError> {
        if !has(self.versions, version) {
            return Err(ReadError::UnknownVersion {
                name: self.name,
                version,
            });
        }
        let form = Form {
            version,
            is_flexible: version >= self.flexible_from,
        };
        form.fields(self.fields, reader)
    }
}

impl Form {
    /// The tag of a field, where it is a tagged one.
    fn tag(self, field: &Field) -> Option<u32> {
        let (tag, versions) = field.tagged?;
        has(versions, self.version).then_some(tag)
    }

    fn fields(self, fields: &'static [Field], reader: &mut Reader<'_>) -> Result<Json, ReadError> {
        let mut values: Vec<Option<Json>> = Vec::with_capacity(fields.len());
        for field in fields {
            let is_here = has(field.versions, self.version) && self.tag(field).is_none();
            values.push(if is_here {
                Some(self.field(field, reader)?)
            } else {
                None
            });
        }
        if self.is_flexible {
            self.tagged_fields(fields, &mut values, reader)?;
        }
        let named = fields.iter().zip(values);
        Ok(Json::Object(
            named
                .filter_map(|(field, value)| Some((field.name, value?)))
                .collect(),
        ))
    }

    fn tagged_fields(
        self,
        fields: &'static [Field],
        values: &mut [Option<Json>],
        reader: &mut Reader<'_>,
    ) -> Result<(), ReadError> {
        for _ in 0..reader.unsigned_varint()? {
            let tag = reader.unsigned_varint()?;
            let size = reader.unsigned_varint()? as usize;
            let mut content = Reader::new(reader.take(size)?);
            let known = fields
                .iter()
                .zip(values.iter_mut())
                .find(|(field, _)| self.tag(field) == Some(tag));
            if let Some((field, value)) = known {
                let read = self.field(field, &mut content)?;
                *value = (read != self.default(field)).then_some(read);
            }
        }
        Ok(())
    }

    fn field(self, field: &Field, reader: &mut Reader<'_>) -> Result<Json, ReadError> {
        let may_be_null = has(field.nullable, self.version);
        match self.value(&field.kind, may_be_null, reader)? {
            Json::Null if !may_be_null => Err(ReadError::Null(field.name)),
            value => Ok(value),
        }
    }

    fn value(
        self,
        kind: &Kind,
        may_be_null: bool,
        reader: &mut Reader<'_>,
    ) -> Result<Json, ReadError> {
        Ok(match kind {
            Kind::Bool => Json::Bool(reader.array::<1>()? != [0]),
            Kind::Int8 => Json::Number(i8::from_be_bytes(reader.array()?).into()),
            Kind::Int16 => Json::Number(reader.int16()?.into()),
            Kind::Uint16 => Json::Number(u16::from_be_bytes(reader.array()?).into()),
            Kind::Int32 => Json::Number(i32::from_be_bytes(reader.array()?).into()),
            Kind::Int64 => Json::Number(i64::from_be_bytes(reader.array()?)),
            Kind::Float64 => Json::Double(f64::from_be_bytes(reader.array()?)),
            Kind::Uuid => Json::Text(URL_SAFE_NO_PAD.encode(reader.array::<16>()?)),
            Kind::Text => match reader.length(kind, self.is_flexible)? {
                Some(length) => {
                    Json::Text(String::from_utf8_lossy(reader.take(length)?).into_owned())
                }
                None => Json::Null,
            },
            Kind::Binary => match reader.length(kind, self.is_flexible)? {
                Some(length) => Json::Binary(reader.take(length)?.to_vec()),
                None => Json::Null,
            },
            Kind::Array(element) => match reader.length(kind, self.is_flexible)? {
                Some(count) => {
                    let mut elements = Vec::new();
                    for _ in 0..count {
                        elements.push(self.value(element, false, reader)?);
                    }
                    Json::Array(elements)
                }
                None => Json::Null,
            },
            Kind::Struct(fields) => {
                if may_be_null && i8::from_be_bytes(reader.array()?) < 0 {
                    return Ok(Json::Null);
                }
                self.fields(fields, reader)?
            }
        })
    }

    fn default(self, field: &Field) -> Json {
        match (field.default, &field.kind) {
            (Default::Null, _) => Json::Null,
            (Default::Number(number), _) => Json::Number(number),
            (Default::Zero, Kind::Bool) => Json::Bool(false),
            (Default::Zero, Kind::Float64) => Json::Double(0.0),
            (Default::Zero, Kind::Uuid) => Json::Text(URL_SAFE_NO_PAD.encode([0; 16])),
            (Default::Zero, Kind::Text) => Json::Text(String::new()),
            (Default::Zero, Kind::Binary) => Json::Binary(Vec::new()),
            (Default::Zero, Kind::Array(_)) => Json::Array(Vec::new()),
            (Default::Zero, Kind::Struct(fields)) => Json::Object(
                fields
                    .iter()
                    .filter(|field| has(field.versions, self.version) && self.tag(field).is_none())
                    .map(|field| (field.name, self.default(field)))
                    .collect(),
            ),
            (Default::Zero, _) => Json::Number(0),
        }
    }
}
