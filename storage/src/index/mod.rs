//! A segment's index files: by offset, by time, and of aborted transactions.

mod offset_index;
mod sparse_index;
mod time_index;
mod transaction_index;

pub(crate) use offset_index::{OffsetEntry, OffsetIndex};
pub(crate) use time_index::{TimeEntry, TimeIndex};
pub use transaction_index::AbortedTxn;
pub(crate) use transaction_index::TransactionIndex;
