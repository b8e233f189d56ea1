//! How requests lie on the wire, and a walk over one that takes no memory.
//!
//! kafka-protocol's decoders reserve an array by the count on the wire before they read its first element. The walk
//! goes over a request first and fails where a count or a length exceeds what is there, so that the decoder sees only
//! counts whose elements have arrived.
//!
//! Kafka reads every negative length of a nullable value as null, the decoders only -1. What Kafka reads more widely
//! is put into the decoders' form, in a copy: no client that is known sends it.

mod shapes;

use bytes::{Bytes, BytesMut};
use shapes::SHAPES;

/// Elements of arrays that one request may have, all together. Decoded they take a few hundred bytes each; Kafka's own
/// largest requests name a partition per element.
const MAX_ELEMENTS: usize = 1_000_000;
/// The longest string in bytes, also where its length is a varint.
const MAX_TEXT_BYTES: usize = i16::MAX as usize;

/// The request of one API.
pub(super) struct RequestShape {
    api_key: i16,
    /// The first version with compact lengths and tagged fields; `i16::MAX` without one.
    flexible_from: i16,
    fields: &'static [Field],
}

/// A field, in the versions that have it.
struct Field {
    versions: (i16, i16),
    /// The number of a tagged field. Tagged fields are present in flexible versions only.
    tag: Option<u32>,
    shape: Shape,
}

/// How a value lies on the wire.
enum Shape {
    /// So many bytes.
    Fixed(usize),
    /// A string: its length in two bytes or as a varint, then the bytes. Null is a negative length.
    Text,
    /// Bytes or records: their length in four bytes or as a varint, then the bytes. Null is a negative length.
    Binary,
    /// A count in four bytes or as a varint, then the elements. Null is a negative count.
    Array(&'static Shape),
    /// Fields, then tagged fields.
    Struct(&'static [Field]),
    /// A byte that is negative for null, then a struct.
    Nullable(&'static [Field]),
}

const fn request(api_key: i16, flexible_from: i16, fields: &'static [Field]) -> RequestShape {
    RequestShape {
        api_key,
        flexible_from,
        fields,
    }
}

const fn always(shape: Shape) -> Field {
    from(0, shape)
}

const fn from(version: i16, shape: Shape) -> Field {
    between(version, i16::MAX, shape)
}

const fn between(first: i16, last: i16, shape: Shape) -> Field {
    Field {
        versions: (first, last),
        tag: None,
        shape,
    }
}

const fn tagged(tag: u32, shape: Shape) -> Field {
    Field {
        versions: (0, i16::MAX),
        tag: Some(tag),
        shape,
    }
}

/// Why a request cannot be what it claims to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A field reaches past the end.
    #[error("request ends within a field")]
    TooShort,
    /// A count that the rest of the request cannot hold.
    #[error("array of {count} elements in {left_bytes} bytes")]
    ArrayTooLong {
        /// Elements claimed.
        count: usize,
        /// Bytes left.
        left_bytes: usize,
    },
    /// More than the elements that one request may have.
    #[error("more than {MAX_ELEMENTS} array elements")]
    TooManyElements,
    /// More than the bytes that a string may have.
    #[error("string of {0} bytes")]
    TextTooLong(usize),
    /// A varint of more than five bytes.
    #[error("varint is too long")]
    VarintTooLong,
}

/// Goes over the body of a request and gives it in the form that kafka-protocol's decoders read; an api key without a
/// shape is an error of the program and passes.
pub(crate) fn checked(api_key: i16, api_version: i16, body: Bytes) -> Result<Bytes, ShapeError> {
    let rewrites = walk(api_key, api_version, &body)?;
    if rewrites.is_empty() {
        return Ok(body);
    }
    let mut rewritten = BytesMut::from(body);
    for Rewrite { position, bytes } in rewrites {
        rewritten[position..position + bytes.len()].copy_from_slice(bytes);
    }
    Ok(rewritten.freeze())
}

fn walk(api_key: i16, api_version: i16, body: &[u8]) -> Result<Vec<Rewrite>, ShapeError> {
    let Ok(index) = SHAPES.binary_search_by_key(&api_key, |shape| shape.api_key) else {
        debug_assert!(false, "api key {api_key} has no shape");
        return Ok(Vec::new());
    };
    let shape = &SHAPES[index];
    let mut walk = Walk {
        rest: body,
        end: body.len(),
        api_version,
        is_flexible: api_version >= shape.flexible_from,
        elements: 0,
        rewrites: Vec::new(),
    };
    walk.fields(shape.fields)?;
    Ok(walk.rewrites)
}

/// The one form of something that the decoders read, to be put in the place of another of the same size.
#[derive(Debug, PartialEq, Eq)]
struct Rewrite {
    /// Where in the body.
    position: usize,
    bytes: &'static [u8],
}

const NULL_INT16: &[u8] = &[0xff; 2];
const NULL_INT32: &[u8] = &[0xff; 4];
/// Zero in as many bytes as a negative varint takes.
const NULL_VARINT: &[u8] = &[0x80, 0x80, 0x80, 0x80, 0];
const PRESENT: &[u8] = &[1];

struct Walk<'a> {
    rest: &'a [u8],
    /// Where `rest` ends in the body.
    end: usize,
    api_version: i16,
    is_flexible: bool,
    elements: usize,
    rewrites: Vec<Rewrite>,
}

impl<'a> Walk<'a> {
    /// Where `rest` begins in the body.
    fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], ShapeError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(bytes)
            .ok_or(ShapeError::TooShort)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ShapeError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(ShapeError::TooShort)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn varint(&mut self) -> Result<u32, ShapeError> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ShapeError::VarintTooLong)
    }

    /// A length or count; null is zero.
    fn length(
        &mut self,
        read_classic: impl Fn(&mut Self) -> Result<i32, ShapeError>,
        classic_null: &'static [u8],
    ) -> Result<usize, ShapeError> {
        let position = self.position();
        let (length, null) = if self.is_flexible {
            let length = self.varint()?.wrapping_sub(1);
            (length.cast_signed(), NULL_VARINT)
        } else {
            (read_classic(self)?, classic_null)
        };
        if length < -1 {
            self.rewrites.push(Rewrite {
                position,
                bytes: null,
            });
        }
        Ok(usize::try_from(length).unwrap_or(0))
    }

    fn int16(&mut self) -> Result<i32, ShapeError> {
        Ok(i32::from(i16::from_be_bytes(self.array()?)))
    }

    fn int32(&mut self) -> Result<i32, ShapeError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn shape(&mut self, shape: &Shape) -> Result<(), ShapeError> {
        match shape {
            Shape::Fixed(bytes) => self.take(*bytes).map(|_| ()),
            Shape::Text => {
                let bytes = self.length(Self::int16, NULL_INT16)?;
                if bytes > MAX_TEXT_BYTES {
                    return Err(ShapeError::TextTooLong(bytes));
                }
                self.take(bytes).map(|_| ())
            }
            Shape::Binary => {
                let bytes = self.length(Self::int32, NULL_INT32)?;
                self.take(bytes).map(|_| ())
            }
            Shape::Array(element) => self.elements(element),
            Shape::Struct(fields) => self.fields(fields),
            Shape::Nullable(fields) => {
                let position = self.position();
                let [marker] = self.array()?;
                let marker = i8::from_be_bytes([marker]);
                if marker < 0 {
                    return Ok(());
                }
                if marker != 1 {
                    self.rewrites.push(Rewrite {
                        position,
                        bytes: PRESENT,
                    });
                }
                self.fields(fields)
            }
        }
    }

    fn elements(&mut self, element: &Shape) -> Result<(), ShapeError> {
        let count = self.length(Self::int32, NULL_INT32)?;
        // An element takes at least one byte.
        if count > self.rest.len() {
            return Err(ShapeError::ArrayTooLong {
                count,
                left_bytes: self.rest.len(),
            });
        }
        self.elements += count;
        if self.elements > MAX_ELEMENTS {
            return Err(ShapeError::TooManyElements);
        }
        if let Shape::Fixed(bytes) = element {
            return self.take(count * bytes).map(|_| ());
        }
        (0..count).try_for_each(|_| self.shape(element))
    }

    fn fields(&mut self, fields: &'static [Field]) -> Result<(), ShapeError> {
        for field in fields {
            let (first, last) = field.versions;
            if field.tag.is_none() && (first..=last).contains(&self.api_version) {
                self.shape(&field.shape)?;
            }
        }
        if self.is_flexible {
            self.tagged_fields(fields)
        } else {
            Ok(())
        }
    }

    fn tagged_fields(&mut self, fields: &'static [Field]) -> Result<(), ShapeError> {
        for _ in 0..self.varint()? {
            let tag = self.varint()?;
            let bytes = self.varint()? as usize;
            let value = self.take(bytes)?;
            self.elements += 1;
            if self.elements > MAX_ELEMENTS {
                return Err(ShapeError::TooManyElements);
            }
            if let Some(field) = fields.iter().find(|field| field.tag == Some(tag)) {
                let outer = (self.rest, self.end);
                self.end = self.position();
                self.rest = value;
                self.shape(&field.shape)?;
                (self.rest, self.end) = outer;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
