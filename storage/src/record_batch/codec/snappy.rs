//! Snappy in both framings that are in the wild: one raw block, and xerial's chunks.

use std::io::{self, Read};

/// Start of xerial's stream.
const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// Magic, version and lowest compatible version.
const XERIAL_HEADER_BYTES: usize = 16;
/// Uncompressed size of the chunks that we write, the same as the Java client's.
const CHUNK_BYTES: usize = 32 << 10;
/// No snappy block inflates to more than this many times its size: a copy of 64 bytes takes 3.
const MAX_RATIO: usize = 22;

/// Inflates a payload chunk by chunk.
pub(super) struct SnappyReader<'a> {
    payload: &'a [u8],
    is_xerial: bool,
    max_bytes: usize,
    chunk: Vec<u8>,
    position: usize,
}

impl<'a> SnappyReader<'a> {
    pub(super) fn new(payload: &'a [u8], max_bytes: usize) -> Self {
        let is_xerial = payload.len() >= XERIAL_HEADER_BYTES && payload.starts_with(&XERIAL_MAGIC);
        Self {
            payload,
            is_xerial,
            max_bytes,
            chunk: Vec::new(),
            position: 0,
        }
    }

    /// Takes the next block's compressed bytes off the payload; `None` at the end.
    fn next_block(&mut self) -> io::Result<Option<&'a [u8]>> {
        if !self.is_xerial {
            let all = std::mem::take(&mut self.payload);
            return Ok((!all.is_empty()).then_some(all));
        }
        // A stream may be several streams one after the other, each with its header.
        while self.payload.starts_with(&XERIAL_MAGIC) {
            self.payload = self
                .payload
                .get(XERIAL_HEADER_BYTES..)
                .ok_or_else(|| invalid("stream header is cut off"))?;
        }
        if self.payload.is_empty() {
            return Ok(None);
        }
        let (length, rest) = self
            .payload
            .split_first_chunk::<4>()
            .ok_or_else(|| invalid("chunk length is cut off"))?;
        let length = usize::try_from(i32::from_be_bytes(*length))
            .map_err(|_| invalid("chunk length is negative"))?;
        let (block, rest) = rest
            .split_at_checked(length)
            .ok_or_else(|| invalid("chunk is longer than the payload"))?;
        self.payload = rest;
        Ok(Some(block))
    }
}

impl Read for SnappyReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.position == self.chunk.len() {
            let Some(block) = self.next_block()? else {
                return Ok(0);
            };
            let inflated_bytes = snap::raw::decompress_len(block).map_err(io::Error::other)?;
            if inflated_bytes > block.len().saturating_mul(MAX_RATIO) {
                return Err(invalid("block claims more bytes than it can hold"));
            }
            if inflated_bytes > self.max_bytes {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            self.chunk.resize(inflated_bytes, 0);
            self.position = 0;
            snap::raw::Decoder::new()
                .decompress(block, &mut self.chunk)
                .map_err(io::Error::other)?;
        }
        let count = buffer.len().min(self.chunk.len() - self.position);
        buffer[..count].copy_from_slice(&self.chunk[self.position..self.position + count]);
        self.position += count;
        Ok(count)
    }
}

/// Writes xerial's framing: header with big-endian versions 1 and 1, then length and block.
pub(super) fn compress(records: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(XERIAL_HEADER_BYTES + records.len() / 2);
    out.extend_from_slice(&XERIAL_MAGIC);
    out.extend_from_slice(&1u32.to_be_bytes());
    out.extend_from_slice(&1u32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for chunk in records.chunks(CHUNK_BYTES) {
        let block = encoder.compress_vec(chunk).map_err(io::Error::other)?;
        out.extend_from_slice(&(block.len() as u32).to_be_bytes());
        out.extend_from_slice(&block);
    }
    Ok(out)
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(payload: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        SnappyReader::new(payload, 1 << 20).read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn a_raw_block_is_read() {
        let raw = snap::raw::Encoder::new()
            .compress_vec(b"hello hello hello")
            .unwrap();
        assert_eq!(read_all(&raw).unwrap(), b"hello hello hello");
    }

    #[test]
    fn the_header_we_write_is_big_endian_one_and_one() {
        let out = compress(b"x").unwrap();
        assert_eq!(out[..16], *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
        assert_eq!(read_all(&out).unwrap(), b"x");
    }

    #[test]
    fn joined_streams_are_read_as_one() {
        let mut out = compress(b"one ").unwrap();
        out.extend(compress(b"two").unwrap());
        assert_eq!(read_all(&out).unwrap(), b"one two");
    }

    #[test]
    fn a_block_that_claims_gigabytes_is_refused_without_taking_them() {
        // Preamble of 4 GiB - 1, then one literal.
        let block = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, b'a'];
        assert!(read_all(&block).is_err());
        let mut framed = compress(b"").unwrap();
        framed.extend_from_slice(&(block.len() as u32).to_be_bytes());
        framed.extend_from_slice(&block);
        assert!(read_all(&framed).is_err());
    }

    #[test]
    fn chunk_lengths_that_lie_are_errors() {
        let mut framed = compress(b"").unwrap();
        framed.extend_from_slice(&(-5i32).to_be_bytes());
        assert!(read_all(&framed).is_err());
        let mut framed = compress(b"abc").unwrap();
        framed.truncate(framed.len() - 1);
        assert!(read_all(&framed).is_err());
    }
}
