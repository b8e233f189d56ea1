//! Zstandard (KIP-110).

use std::cell::Cell;
use std::io::{self, Read};

use zstd::zstd_safe::{self, DCtx, InBuffer, OutBuffer, ResetDirective};

use super::CompressionCodec;

/// A context larger than this is not kept for the next payload: its window may be as large as a
/// frame claims.
const MAX_IDLE_CONTEXT_BYTES: usize = 3 << 20;

thread_local! {
    /// A context takes longer to make than a small payload to inflate.
    static IDLE_CONTEXT: Cell<Option<DCtx<'static>>> = const { Cell::new(None) };
}

/// Inflates all frames of a payload.
pub(super) struct ZstdReader<'a> {
    /// `None` once it has been given back.
    context: Option<DCtx<'static>>,
    payload: &'a [u8],
    position: usize,
    is_in_frame: bool,
}

impl<'a> ZstdReader<'a> {
    pub(super) fn new(payload: &'a [u8]) -> Self {
        let context = IDLE_CONTEXT.take().or_else(DCtx::try_create);
        Self {
            context,
            payload,
            position: 0,
            is_in_frame: false,
        }
    }
}

impl Read for ZstdReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(context) = &mut self.context else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        loop {
            if self.position == self.payload.len() && !self.is_in_frame {
                return Ok(0);
            }
            let mut input = InBuffer {
                src: self.payload,
                pos: self.position,
            };
            let mut output = OutBuffer::around(&mut *buffer);
            let wanted = context
                .decompress_stream(&mut output, &mut input)
                .map_err(|code| io::Error::other(zstd_safe::get_error_name(code)))?;
            let (read, written) = (input.pos() - self.position, output.pos());
            self.position += read;
            self.is_in_frame = wanted != 0;
            if written > 0 || buffer.is_empty() {
                return Ok(written);
            }
            if read == 0 && self.is_in_frame {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl Drop for ZstdReader<'_> {
    fn drop(&mut self) {
        if let Some(mut context) = self.context.take()
            && context.sizeof() <= MAX_IDLE_CONTEXT_BYTES
            && context.reset(ResetDirective::SessionOnly).is_ok()
        {
            IDLE_CONTEXT.set(Some(context));
        }
    }
}

/// Writes one frame.
pub(super) fn compress(records: &[u8], level: Option<i32>) -> io::Result<Vec<u8>> {
    zstd::stream::encode_all(
        records,
        level.unwrap_or(CompressionCodec::ZSTD_DEFAULT_LEVEL),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(payload: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        ZstdReader::new(payload).read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn frames_with_and_without_a_size_are_read_one_after_the_other() {
        let mut payload = compress(b"streamed ", None).unwrap();
        payload.extend(zstd::bulk::compress(b"in one go", 3).unwrap());
        assert_eq!(read_all(&payload).unwrap(), b"streamed in one go");
    }

    #[test]
    fn a_failed_payload_leaves_nothing_behind_for_the_next() {
        let payload = compress(&b"records".repeat(1000), None).unwrap();
        for cut in 1..payload.len() {
            assert!(read_all(&payload[..cut]).is_err(), "cut at {cut}");
            assert_eq!(read_all(&payload).unwrap().len(), 7000);
        }
        assert_eq!(read_all(&[]).unwrap(), b"");
    }
}
