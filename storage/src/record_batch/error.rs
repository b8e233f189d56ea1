//! What can be wrong with a batch when it is read.

/// A batch that cannot be read. Kafka's error for all of them is CORRUPT_MESSAGE, except where a
/// produce request is validated (see [`super::validate_produced`]).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Fewer bytes than the batch's header or its length field promise.
    #[error("batch needs {needed} bytes but only {available} are there")]
    Truncated {
        /// Bytes the batch claims, header included (or the header's size if even that is cut).
        needed: usize,
        /// Bytes at hand.
        available: usize,
    },
    /// The length field is below what a header takes, or negative.
    #[error("batch length {0} is below the size of a batch header")]
    InvalidLength(i32),
    /// Another format version than 2.
    #[error("batch has magic {0}, only magic 2 is supported")]
    UnsupportedMagic(i8),
    /// The stored checksum is not that of the bytes.
    #[error("batch is corrupt: stored crc {stored:#010x}, computed crc {computed:#010x}")]
    CrcMismatch {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes from the attributes on.
        computed: u32,
    },
    /// Codec bits that stand for no codec.
    #[error("unknown compression codec {0}")]
    UnknownCompression(u8),
    /// The payload is not what its codec writes.
    #[error("{codec} payload cannot be decompressed: {reason}")]
    Decompression {
        /// Kafka's name of the codec.
        codec: &'static str,
        /// What the codec said.
        reason: String,
    },
    /// The payload inflates beyond the cap.
    #[error("payload inflates to more than {max_bytes} bytes")]
    InflatesBeyondLimit {
        /// The cap that was in force.
        max_bytes: usize,
    },
    /// A record's framing (lengths, counts, varints) does not add up.
    #[error("record {index} is malformed: {reason}")]
    MalformedRecord {
        /// Place of the record in its batch, from 0.
        index: usize,
        /// What does not add up.
        reason: &'static str,
    },
    /// A control record whose key or value is not of a known shape.
    #[error("control record is malformed: {0}")]
    MalformedControlRecord(&'static str),
}
