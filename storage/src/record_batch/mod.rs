//! Record batches, Apache Kafka's format version 2 ("magic 2", KIP-98).
//!
//! A batch is a header of 61 bytes ([`BatchHeader`]) and its records, which may be compressed as a
//! whole. The broker stores a batch as it came: only base offset, leader epoch and, where the topic
//! says so, the timestamp are set ([`patch_header`]), and never in the received bytes.
//!
//! | to … | use |
//! |---|---|
//! | walk over the batches of a byte slice | [`Batches`] |
//! | check one | [`verify_crc`], [`validate_produced`] |
//! | look into one | [`decode_records`], [`ControlRecord`] |
//! | make one | [`RecordBatchBuilder`] |
//! | compact some | [`compaction`] |

mod batches;
mod builder;
mod codec;
pub mod compaction;
mod control;
mod crc_shift;
mod error;
mod header;
mod record;
mod scan;
mod validation;
mod varint;

pub use batches::Batches;
pub use builder::RecordBatchBuilder;
pub use codec::{Compression, CompressionCodec, DecompressLimits};
pub use control::{ControlRecord, EndTransactionMarker};
pub use error::BatchError;
pub use header::{
    BATCH_HEADER_BYTES, BatchHeader, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID,
    NO_SEQUENCE, NO_TIMESTAMP, TimestampType, increment_sequence, patch_header, verify_crc,
};
pub use record::{Record, RecordHeader, RecordIter, decode_records};

pub use varint::varint_size_in_bytes;

pub use validation::{ValidatedBatch, ValidationRules, validate_produced};

pub(crate) use header::decrement_sequence;
pub(crate) use record::RawRecord;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod validation_tests;
