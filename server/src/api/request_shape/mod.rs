//! How requests lie on the wire, and a walk over one that takes no memory.
//!
//! kafka-protocol's decoders reserve an array by the count on the wire before they read its first element. The walk
//! goes over a request first and fails where a count or a length exceeds what is there, so that the decoder sees only
//! counts whose elements have arrived.

mod shapes;

use shapes::SHAPES;

/// Elements of arrays that one request may have, all together. Decoded they take a few hundred bytes each; Kafka's own
/// largest requests name a partition per element.
const MAX_ELEMENTS: usize = 1_000_000;

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
    /// A string: its length in two bytes or as a varint, then the bytes. Null is a length too.
    Text,
    /// Bytes or records: their length in four bytes or as a varint, then the bytes. Null is a length too.
    Binary,
    /// A count in four bytes or as a varint, then the elements. Null is a count too.
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
    /// A negative length other than null's.
    #[error("negative length {0}")]
    NegativeLength(i32),
    /// A varint of more than five bytes.
    #[error("varint is too long")]
    VarintTooLong,
}

/// Goes over the body of a request; an api key without a shape is an error of the program and passes.
pub(crate) fn check(api_key: i16, api_version: i16, body: &[u8]) -> Result<(), ShapeError> {
    let Ok(index) = SHAPES.binary_search_by_key(&api_key, |shape| shape.api_key) else {
        debug_assert!(false, "api key {api_key} has no shape");
        return Ok(());
    };
    let shape = &SHAPES[index];
    let mut walk = Walk {
        rest: body,
        api_version,
        is_flexible: api_version >= shape.flexible_from,
        elements: 0,
    };
    walk.fields(shape.fields)
}

struct Walk<'a> {
    rest: &'a [u8],
    api_version: i16,
    is_flexible: bool,
    elements: usize,
}

impl<'a> Walk<'a> {
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
    ) -> Result<usize, ShapeError> {
        if self.is_flexible {
            return Ok(self.varint()?.saturating_sub(1) as usize);
        }
        match read_classic(self)? {
            -1 => Ok(0),
            length => usize::try_from(length).map_err(|_| ShapeError::NegativeLength(length)),
        }
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
                let bytes = self.length(Self::int16)?;
                self.take(bytes).map(|_| ())
            }
            Shape::Binary => {
                let bytes = self.length(Self::int32)?;
                self.take(bytes).map(|_| ())
            }
            Shape::Array(element) => self.elements(element),
            Shape::Struct(fields) => self.fields(fields),
            Shape::Nullable(fields) => {
                let [marker] = self.array()?;
                if i8::from_be_bytes([marker]) < 0 {
                    Ok(())
                } else {
                    self.fields(fields)
                }
            }
        }
    }

    fn elements(&mut self, element: &Shape) -> Result<(), ShapeError> {
        let count = self.length(Self::int32)?;
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
                let rest = std::mem::replace(&mut self.rest, value);
                self.shape(&field.shape)?;
                self.rest = rest;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
