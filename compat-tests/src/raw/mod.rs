//! A small blocking client that speaks the wire protocol by hand: frames are encoded and decoded
//! with kafka-protocol (a codec that is independent of the broker under test), record batches are
//! built here byte by byte, and anything malformed is plain bytes.
//!
//! Used by the raw-frame tests and by the benchmark.

mod batch;
mod connection;

pub use batch::{Batch, Record, crc32c_of_batch, decode_varint, set_crc};
pub use connection::{Connection, Frame, encode_frame, frame_of, request_header_version};
