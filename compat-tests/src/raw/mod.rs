//! A small blocking client that speaks the wire protocol by hand: frames are encoded and decoded
//! with kafka-protocol (a codec that is independent of the broker under test), record batches are
//! built here byte by byte, and anything malformed is plain bytes.
//!
//! Used by the raw-frame tests and by the benchmark.

mod batch;
pub mod code;
mod connection;
mod requests;

pub use batch::{
    Batch, BatchHeader, Record, batch_headers, batch_ranges, crc32c_of_batch, decode_varint,
    set_crc,
};
pub use connection::{
    Connection, Frame, encode_frame, frame_of, read_frame, request_header_version,
};
pub use requests::{
    fetch_partition, fetch_request, group_id, list_offsets_request, produce_request, s, topic_name,
};
