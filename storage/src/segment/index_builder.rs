//! When an index entry is due: the same rule for an append and for building the indexes again.

use crate::index::{OffsetEntry, TimeEntry};
use crate::record_batch::BatchHeader;

/// Walks along a segment's batches and says which entries its indexes get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexBuilder {
    bytes_since_last_entry: u32,
    /// The largest timestamp so far and the last offset of the batch that has it.
    max_timestamp: Option<TimeEntry>,
}

impl IndexBuilder {
    /// At the start of a segment.
    pub(crate) fn new() -> Self {
        Self {
            bytes_since_last_entry: 0,
            max_timestamp: None,
        }
    }

    /// At the batch of an index entry, with what is known of the batches before it.
    pub(crate) fn after(max_timestamp: Option<TimeEntry>) -> Self {
        Self {
            bytes_since_last_entry: 0,
            max_timestamp,
        }
    }

    /// The next batch lies at `position`. Gives the entries that are due.
    pub(crate) fn on_batch(
        &mut self,
        header: &BatchHeader,
        position: u32,
        index_interval_bytes: u32,
    ) -> Option<(OffsetEntry, TimeEntry)> {
        let offset = header.last_offset();
        let max = match self.max_timestamp {
            Some(max) if max.timestamp >= header.max_timestamp => max,
            _ => TimeEntry {
                timestamp: header.max_timestamp,
                offset,
            },
        };
        self.max_timestamp = Some(max);
        let is_due = self.bytes_since_last_entry > index_interval_bytes;
        if is_due {
            self.bytes_since_last_entry = 0;
        }
        self.bytes_since_last_entry = self
            .bytes_since_last_entry
            .saturating_add(header.size_in_bytes() as u32);
        is_due.then_some((OffsetEntry { offset, position }, max))
    }

    /// The largest timestamp so far, and the last offset of the batch that has it; None without batches.
    pub(crate) fn max_timestamp(&self) -> Option<TimeEntry> {
        self.max_timestamp
    }
}
