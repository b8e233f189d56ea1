//! LZ4 frames as Kafka writes and reads them: version 1, independent blocks.

use std::io::{self, Write};

use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use super::CompressionCodec;

/// Inflates one payload.
pub(super) type FrameReader<'a> = FrameDecoder<&'a [u8]>;

const FRAME_MAGIC: [u8; 4] = 0x184D_2204u32.to_le_bytes();
const BLOCK_INDEPENDENCE_FLAG: u8 = 1 << 5;

/// A reader over a payload that must be a frame which every Kafka client can read: the Java client
/// knows neither legacy frames nor blocks that depend on each other.
pub(super) fn frame_reader(payload: &[u8]) -> io::Result<FrameReader<'_>> {
    let refuse = |reason| Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    match payload {
        [] => refuse("no frame"),
        _ if !payload.starts_with(&FRAME_MAGIC) => refuse("not an lz4 frame"),
        [_, _, _, _, flags, ..] if flags & BLOCK_INDEPENDENCE_FLAG == 0 => {
            refuse("blocks that depend on each other are not supported")
        }
        _ => Ok(FrameDecoder::new(payload)),
    }
}

/// Writes one frame of blocks of 64 KiB, as the Java client does.
pub(super) fn compress(records: &[u8], level: Option<i32>) -> io::Result<Vec<u8>> {
    match level {
        Some(level) if level != CompressionCodec::LZ4_DEFAULT_LEVEL => {
            compress_high(records, level)
        }
        _ => {
            let frame = FrameInfo::new()
                .block_size(BlockSize::Max64KB)
                .block_mode(BlockMode::Independent);
            let mut encoder = FrameEncoder::with_frame_info(frame, Vec::new());
            encoder.write_all(records)?;
            encoder.finish().map_err(io::Error::other)
        }
    }
}

/// The slower compressor with levels, which only the C library has.
fn compress_high(records: &[u8], level: i32) -> io::Result<Vec<u8>> {
    let level = level.clamp(
        *CompressionCodec::LZ4_LEVELS.start(),
        *CompressionCodec::LZ4_LEVELS.end(),
    );
    let mut encoder = lz4::EncoderBuilder::new()
        .level(level as u32)
        .block_size(lz4::BlockSize::Max64KB)
        .block_mode(lz4::BlockMode::Independent)
        .checksum(lz4::ContentChecksum::NoChecksum)
        .auto_flush(true)
        .build(Vec::new())?;
    encoder.write_all(records)?;
    let (out, result) = encoder.finish();
    result.map(|()| out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn frame(mode: BlockMode) -> Vec<u8> {
        let mut encoder =
            FrameEncoder::with_frame_info(FrameInfo::new().block_mode(mode), Vec::new());
        encoder.write_all(b"some records").unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn linked_blocks_are_refused_as_the_java_client_does() {
        assert!(frame_reader(&frame(BlockMode::Linked)).is_err());
        let mut out = Vec::new();
        let independent = frame(BlockMode::Independent);
        frame_reader(&independent)
            .unwrap()
            .read_to_end(&mut out)
            .unwrap();
        assert_eq!(out, b"some records");
    }

    #[test]
    fn frames_with_size_and_checksums_are_read() {
        let info = FrameInfo::new()
            .block_mode(BlockMode::Independent)
            .content_size(Some(12))
            .content_checksum(true)
            .block_checksums(true);
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(b"some records").unwrap();
        let payload = encoder.finish().unwrap();
        let mut out = Vec::new();
        frame_reader(&payload)
            .unwrap()
            .read_to_end(&mut out)
            .unwrap();
        assert_eq!(out, b"some records");
    }

    #[test]
    fn every_level_can_be_read_again() {
        let records = b"abcabcabd".repeat(20_000);
        for level in 1..=17 {
            let payload = compress(&records, Some(level)).unwrap();
            let mut out = Vec::new();
            frame_reader(&payload)
                .unwrap()
                .read_to_end(&mut out)
                .unwrap();
            assert_eq!(out, records, "level {level}");
        }
    }
}
