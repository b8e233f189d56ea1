//! The flexible encoding of Kafka's metadata records, written for these records alone: this crate knows no request
//! types and therefore no protocol crate.
//!
//! Every metadata record is flexible from version 0, so strings and arrays are compact, and each struct ends with
//! its tagged fields. A length that is read is checked against the bytes that remain before anything is reserved.

use uuid::Uuid;

/// Why a metadata record could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The record ends in the middle of a field.
    #[error("metadata record ends inside a field")]
    Truncated,
    /// Bytes follow the last field.
    #[error("{0} bytes follow the end of the metadata record")]
    TrailingBytes(usize),
    /// A variable-length integer has more than 5 bytes.
    #[error("variable-length integer is too long")]
    VarintTooLong,
    /// A length, a count or a number lies outside what the field allows.
    #[error("{0} is out of range")]
    OutOfRange(&'static str),
    /// A field that may not be null is null.
    #[error("non-nullable field is null")]
    UnexpectedNull,
    /// A string is not UTF-8.
    #[error("string is not valid UTF-8")]
    InvalidUtf8,
    /// The frame around the record has a version other than 1.
    #[error("unknown frame version {0}")]
    UnknownFrameVersion(u32),
    /// This release knows no record of that type.
    #[error("unknown metadata record type {0}")]
    UnknownType(u32),
    /// The record's type is known, the version is not.
    #[error("unknown version {version} of metadata record type {api_key}")]
    UnknownVersion {
        /// Type of the record.
        api_key: i16,
        /// Version that was read.
        version: u32,
    },
}

/// Reads fields one after the other from a record's bytes.
#[derive(Debug)]
pub struct Reader<'a> {
    remaining: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { remaining: bytes }
    }

    /// How many bytes are not read yet.
    pub fn remaining_bytes(&self) -> usize {
        self.remaining.len()
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self
            .remaining
            .split_at_checked(count)
            .ok_or(RecordError::Truncated)?;
        self.remaining = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let (taken, rest) = self
            .remaining
            .split_first_chunk::<N>()
            .ok_or(RecordError::Truncated)?;
        self.remaining = rest;
        Ok(*taken)
    }

    /// An unsigned variable-length integer of at most 5 bytes.
    pub fn unsigned_varint(&mut self) -> Result<u32, RecordError> {
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let [byte] = self.array::<1>()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value)
                    .map_err(|_| RecordError::OutOfRange("variable-length integer"));
            }
        }
        Err(RecordError::VarintTooLong)
    }

    /// A compact length: `None` is null; never more than the bytes that remain, as each element takes at least one.
    fn compact_length(&mut self) -> Result<Option<usize>, RecordError> {
        let raw = self.unsigned_varint()?;
        let Some(length) = raw.checked_sub(1) else {
            return Ok(None);
        };
        let length = length as usize;
        if length > self.remaining.len() {
            return Err(RecordError::Truncated);
        }
        Ok(Some(length))
    }

    /// Hands each tagged field to `on_field`, which returns false for a tag that it does not know (it is skipped).
    pub fn tagged_fields(
        &mut self,
        mut on_field: impl FnMut(u32, &mut Reader<'a>) -> Result<bool, RecordError>,
    ) -> Result<(), RecordError> {
        let count = self.unsigned_varint()?;
        for _ in 0..count {
            let tag = self.unsigned_varint()?;
            let size = self.unsigned_varint()? as usize;
            let mut field = Reader::new(self.take(size)?);
            let known = on_field(tag, &mut field)?;
            if known && field.remaining_bytes() > 0 {
                return Err(RecordError::TrailingBytes(field.remaining_bytes()));
            }
        }
        Ok(())
    }
}

/// Appends an unsigned variable-length integer.
pub fn write_unsigned_varint(mut value: u32, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn write_compact_length(length: usize, out: &mut Vec<u8>) {
    // Records are bounded by the batch size, far below 4 GiB.
    let length = u32::try_from(length + 1).unwrap_or(u32::MAX);
    write_unsigned_varint(length, out);
}

/// Appends the tagged fields of a struct, in the order given (ascending tags).
pub fn write_tagged_fields(fields: &[(u32, Vec<u8>)], out: &mut Vec<u8>) {
    write_unsigned_varint(fields.len() as u32, out);
    for (tag, bytes) in fields {
        write_unsigned_varint(*tag, out);
        write_unsigned_varint(bytes.len() as u32, out);
        out.extend_from_slice(bytes);
    }
}

/// A value that can be a field of a metadata record.
pub trait Field: Sized {
    /// Appends the value as `version` of its record has it.
    fn encode(&self, version: i16, out: &mut Vec<u8>);
    /// Reads the value as `version` of its record has it.
    fn decode(version: i16, reader: &mut Reader<'_>) -> Result<Self, RecordError>;
}

macro_rules! integer_field {
    ($($integer:ty),*) => {$(
        impl Field for $integer {
            fn encode(&self, _version: i16, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
            fn decode(_version: i16, reader: &mut Reader<'_>) -> Result<Self, RecordError> {
                Ok(Self::from_be_bytes(reader.array()?))
            }
        }
    )*};
}
integer_field!(i8, i16, u16, i32, i64);

impl Field for bool {
    fn encode(&self, _version: i16, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn decode(_version: i16, reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        Ok(reader.array::<1>()?[0] != 0)
    }
}

impl Field for Uuid {
    fn encode(&self, _version: i16, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
    fn decode(_version: i16, reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        Ok(Uuid::from_bytes(reader.array()?))
    }
}

impl Field for Option<String> {
    fn encode(&self, _version: i16, out: &mut Vec<u8>) {
        match self {
            None => write_unsigned_varint(0, out),
            Some(text) => {
                write_compact_length(text.len(), out);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
    fn decode(_version: i16, reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        let Some(length) = reader.compact_length()? else {
            return Ok(None);
        };
        if length > i16::MAX as usize {
            return Err(RecordError::OutOfRange("string length"));
        }
        let text =
            std::str::from_utf8(reader.take(length)?).map_err(|_| RecordError::InvalidUtf8)?;
        Ok(Some(text.to_owned()))
    }
}

impl Field for String {
    fn encode(&self, _version: i16, out: &mut Vec<u8>) {
        write_compact_length(self.len(), out);
        out.extend_from_slice(self.as_bytes());
    }
    fn decode(version: i16, reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        Option::<String>::decode(version, reader)?.ok_or(RecordError::UnexpectedNull)
    }
}

impl<T: Field> Field for Option<Vec<T>> {
    fn encode(&self, version: i16, out: &mut Vec<u8>) {
        match self {
            None => write_unsigned_varint(0, out),
            Some(elements) => elements.encode(version, out),
        }
    }
    fn decode(version: i16, reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        let Some(length) = reader.compact_length()? else {
            return Ok(None);
        };
        let mut elements = Vec::with_capacity(length.min(1024));
        for _ in 0..length {
            elements.push(T::decode(version, reader)?);
        }
        Ok(Some(elements))
    }
}

impl<T: Field> Field for Vec<T> {
    fn encode(&self, version: i16, out: &mut Vec<u8>) {
        write_compact_length(self.len(), out);
        for element in self {
            element.encode(version, out);
        }
    }
    fn decode(version: i16, reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        Option::<Vec<T>>::decode(version, reader)?.ok_or(RecordError::UnexpectedNull)
    }
}
