//! Walking over the batches of a byte slice.

use super::error::BatchError;
use super::header::{BATCH_HEADER_BYTES, BatchHeader};

/// Iterator over the whole batches at the start of a slice, each with its header and its bytes.
///
/// It ends before a batch that is cut off by the end of the slice; [`Batches::position`] then tells
/// where that one starts. A header that cannot be a batch's is an error, after which nothing follows.
/// Checksums are not looked at.
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    bytes: &'a [u8],
    position: usize,
    failed: bool,
}

impl<'a> Batches<'a> {
    /// Walks over `bytes` from their start.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            position: 0,
            failed: false,
        }
    }

    /// Where the next batch starts in the slice: the bytes before it are whole batches.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The bytes that have not been walked over.
    pub fn remaining(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<(BatchHeader, &'a [u8]), BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.remaining();
        if self.failed || rest.len() < BATCH_HEADER_BYTES {
            return None;
        }
        let header = match BatchHeader::parse(rest) {
            Ok(header) => header,
            Err(error) => {
                self.failed = true;
                return Some(Err(error));
            }
        };
        let batch = rest.get(..header.size_in_bytes())?;
        self.position += batch.len();
        Some(Ok((header, batch)))
    }
}
