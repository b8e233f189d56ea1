//! A segment's index files: by offset, by time, and of aborted transactions.

mod offset_index;
mod sparse_index;
mod time_index;
mod transaction_index;

pub use offset_index::OffsetEntry;
pub(crate) use offset_index::OffsetIndex;
use sparse_index::Entry;
pub use time_index::TimeEntry;
pub(crate) use time_index::TimeIndex;
pub(crate) use transaction_index::TransactionIndex;
pub use transaction_index::{AbortedTxn, read_transaction_index};

/// The entries in the bytes of an offset index (`.index`) of the segment at `base_offset`, as they stand: in no order
/// that was checked, zeros too. Bytes that are no whole entry at the end are left out.
pub fn offset_entries(base_offset: i64, bytes: &[u8]) -> impl Iterator<Item = OffsetEntry> {
    entries(base_offset, bytes)
}

/// As [`offset_entries`], of a time index (`.timeindex`).
pub fn time_entries(base_offset: i64, bytes: &[u8]) -> impl Iterator<Item = TimeEntry> {
    entries(base_offset, bytes)
}

fn entries<E: Entry>(base_offset: i64, bytes: &[u8]) -> impl Iterator<Item = E> {
    bytes
        .chunks_exact(E::BYTES)
        .map(move |entry| E::decode(base_offset, entry))
}
