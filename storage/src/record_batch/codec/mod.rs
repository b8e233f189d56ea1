//! The codecs of a batch's records: none, gzip, snappy, lz4, zstd.

mod gzip;
mod lz4;
mod snappy;
mod zstd;

use std::io::{self, Read};
use std::str::FromStr;

use super::error::BatchError;

/// How a batch's records are compressed. The value is Kafka's codec id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Compression {
    /// Not at all.
    #[default]
    None = 0,
    /// gzip, RFC 1952; more than one member is read.
    Gzip = 1,
    /// snappy; read raw and in xerial's framing, written in xerial's.
    Snappy = 2,
    /// LZ4 frames with independent blocks.
    Lz4 = 3,
    /// Zstandard (KIP-110).
    Zstd = 4,
}

impl Compression {
    /// The codec of an id.
    ///
    /// # Errors
    /// [`BatchError::UnknownCompression`] above 4.
    pub fn from_id(id: u8) -> Result<Self, BatchError> {
        match id {
            0 => Ok(Self::None),
            1 => Ok(Self::Gzip),
            2 => Ok(Self::Snappy),
            3 => Ok(Self::Lz4),
            4 => Ok(Self::Zstd),
            other => Err(BatchError::UnknownCompression(other)),
        }
    }

    /// Kafka's id, the lowest three bits of a batch's attributes.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// Kafka's name, as in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl FromStr for Compression {
    type Err = String;

    /// Kafka's names; `uncompressed` (the topic key's word) is `none` (the producer's).
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "none" | "uncompressed" => Ok(Self::None),
            "gzip" => Ok(Self::Gzip),
            "snappy" => Ok(Self::Snappy),
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd),
            other => Err(format!(
                "{other} is not one of none, gzip, snappy, lz4, zstd"
            )),
        }
    }
}

/// A codec and how hard it tries (KIP-390), for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompressionCodec {
    /// The codec.
    pub compression: Compression,
    /// Its level; `None` is Kafka's default of the codec. Codecs without levels ignore it.
    pub level: Option<i32>,
}

impl CompressionCodec {
    /// Levels of `compression.gzip.level`; -1 is the default.
    pub const GZIP_LEVELS: std::ops::RangeInclusive<i32> = 1..=9;
    /// Kafka's -1 for gzip: what zlib takes as default, level 6.
    pub const GZIP_DEFAULT_LEVEL: i32 = -1;
    /// Levels of `compression.lz4.level`.
    pub const LZ4_LEVELS: std::ops::RangeInclusive<i32> = 1..=17;
    /// Kafka's default level of lz4, which stands for the fast compressor.
    pub const LZ4_DEFAULT_LEVEL: i32 = 9;
    /// Levels of `compression.zstd.level`.
    pub const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = -131_072..=22;
    /// Kafka's default level of zstd.
    pub const ZSTD_DEFAULT_LEVEL: i32 = 3;
}

impl From<Compression> for CompressionCodec {
    fn from(compression: Compression) -> Self {
        Self {
            compression,
            level: None,
        }
    }
}

/// How far a payload may inflate. Kafka has no such limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecompressLimits {
    /// Most bytes that the records of one batch may take uncompressed.
    pub max_bytes: usize,
}

impl Default for DecompressLimits {
    /// 128 MiB, far above what a producer fits into a batch.
    fn default() -> Self {
        Self {
            max_bytes: 128 << 20,
        }
    }
}

/// The records of one compressed payload as a stream, never more than the cap of them.
pub(crate) struct Inflater<'a> {
    codec: Compression,
    stream: Stream<'a>,
    left_bytes: usize,
    limits: DecompressLimits,
}

enum Stream<'a> {
    Plain(&'a [u8]),
    Gzip(Box<gzip::GzipReader<'a>>),
    Snappy(snappy::SnappyReader<'a>),
    Lz4(Box<lz4::FrameReader<'a>>),
    Zstd(zstd::ZstdReader<'a>),
}

impl<'a> Inflater<'a> {
    pub(crate) fn new(
        codec: Compression,
        payload: &'a [u8],
        limits: DecompressLimits,
    ) -> Result<Self, BatchError> {
        let stream = match codec {
            Compression::None => Stream::Plain(payload),
            Compression::Gzip => Stream::Gzip(Box::new(gzip::GzipReader::new(payload))),
            Compression::Snappy => {
                Stream::Snappy(snappy::SnappyReader::new(payload, limits.max_bytes))
            }
            Compression::Lz4 => Stream::Lz4(Box::new(
                lz4::frame_reader(payload).map_err(|error| failure(codec, &error))?,
            )),
            Compression::Zstd => Stream::Zstd(zstd::ZstdReader::new(payload)),
        };
        Ok(Self {
            codec,
            stream,
            left_bytes: limits.max_bytes,
            limits,
        })
    }

    /// Fills the start of `buffer`; 0 is the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, BatchError> {
        let read = match &mut self.stream {
            Stream::Plain(reader) => reader.read(buffer),
            Stream::Gzip(reader) => reader.read(buffer),
            Stream::Snappy(reader) => reader.read(buffer),
            Stream::Lz4(reader) => reader.read(buffer),
            Stream::Zstd(reader) => reader.read(buffer),
        }
        .map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => self.beyond_limit(),
            _ => failure(self.codec, &error),
        })?;
        self.left_bytes = self
            .left_bytes
            .checked_sub(read)
            .ok_or_else(|| self.beyond_limit())?;
        Ok(read)
    }

    fn beyond_limit(&self) -> BatchError {
        BatchError::InflatesBeyondLimit {
            max_bytes: self.limits.max_bytes,
        }
    }
}

fn failure(codec: Compression, error: &io::Error) -> BatchError {
    BatchError::Decompression {
        codec: codec.name(),
        reason: error.to_string(),
    }
}

/// Inflates a whole payload, in memory that grows with what comes out, up to the cap.
pub(crate) fn decompress(
    codec: Compression,
    payload: &[u8],
    limits: DecompressLimits,
) -> Result<Vec<u8>, BatchError> {
    let mut inflater = Inflater::new(codec, payload, limits)?;
    let mut out = Vec::new();
    let mut chunk_bytes = (payload.len() * 2).clamp(4 << 10, 256 << 10);
    loop {
        let filled = out.len();
        out.resize(filled + chunk_bytes, 0);
        let read = inflater.read(&mut out[filled..])?;
        out.truncate(filled + read);
        if read == 0 {
            return Ok(out);
        }
        chunk_bytes = out.len().clamp(4 << 10, 1 << 20);
    }
}

/// Compresses `records` into one payload.
///
/// # Errors
/// What the codec's library reports; with memory at hand none of them is expected.
pub(crate) fn compress(codec: CompressionCodec, records: &[u8]) -> Result<Vec<u8>, BatchError> {
    let done: io::Result<Vec<u8>> = match codec.compression {
        Compression::None => Ok(records.to_vec()),
        Compression::Gzip => gzip::compress(records, codec.level),
        Compression::Snappy => snappy::compress(records),
        Compression::Lz4 => lz4::compress(records, codec.level),
        Compression::Zstd => zstd::compress(records, codec.level),
    };
    done.map_err(|error| failure(codec.compression, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    fn compressible() -> impl Strategy<Value = Vec<u8>> {
        (proptest::collection::vec(any::<u8>(), 0..200), 0usize..2000).prop_map(|(seed, times)| {
            let mut bytes = seed.repeat(times);
            bytes.truncate(200_000);
            bytes
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_is_compressed_is_read_again(
            records in compressible(),
            codec in prop::sample::select(ALL.as_slice()),
        ) {
            let payload = compress(codec.into(), &records).unwrap();
            let limits = DecompressLimits { max_bytes: records.len() };
            prop_assert_eq!(decompress(codec, &payload, limits).unwrap(), records);
        }

        #[test]
        fn a_payload_above_the_cap_is_refused(
            records in compressible(),
            codec in prop::sample::select(ALL.as_slice()),
        ) {
            prop_assume!(!records.is_empty());
            let payload = compress(codec.into(), &records).unwrap();
            let limits = DecompressLimits { max_bytes: records.len() - 1 };
            prop_assert_eq!(
                decompress(codec, &payload, limits),
                Err(BatchError::InflatesBeyondLimit { max_bytes: records.len() - 1 })
            );
        }

        #[test]
        fn arbitrary_payloads_neither_panic_nor_pass_the_cap(
            payload in proptest::collection::vec(any::<u8>(), 0..400),
            codec in prop::sample::select(ALL.as_slice()),
        ) {
            if let Ok(out) = decompress(codec, &payload, DecompressLimits { max_bytes: 10_000 }) {
                prop_assert!(out.len() <= 10_000);
            }
        }

        #[test]
        fn a_damaged_payload_does_not_panic(
            records in compressible(),
            codec in prop::sample::select(ALL.as_slice()),
            at in any::<prop::sample::Index>(),
            value in any::<u8>(),
        ) {
            let mut payload = compress(codec.into(), &records).unwrap();
            if !payload.is_empty() {
                let at = at.index(payload.len());
                payload[at] = value;
            }
            if let Ok(out) = decompress(codec, &payload, DecompressLimits { max_bytes: 1 << 20 }) {
                prop_assert!(out.len() <= 1 << 20);
            }
        }
    }

    #[test]
    fn levels_change_what_is_written() {
        let records: Vec<u8> = (0..60_000u32)
            .flat_map(|i| (i % 1000 * (i / 77)).to_be_bytes())
            .collect();
        let size = |compression, level| {
            compress(
                CompressionCodec {
                    compression,
                    level: Some(level),
                },
                &records,
            )
            .unwrap()
            .len()
        };
        assert!(size(Compression::Gzip, 9) < size(Compression::Gzip, 1));
        assert!(size(Compression::Lz4, 12) < size(Compression::Lz4, 9));
        assert!(size(Compression::Zstd, 19) < size(Compression::Zstd, 1));
    }
}
