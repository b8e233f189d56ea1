//! Time to offset (`.timeindex`): the largest timestamp so far, about every `index.interval.bytes`.

use super::sparse_index::{Entry, SparseIndex};

/// No record up to and including `offset` has a timestamp above `timestamp`, and `offset` is the last offset of
/// the batch that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeEntry {
    /// The largest timestamp so far, in ms.
    pub timestamp: i64,
    /// Last offset of the batch that has it.
    pub offset: i64,
}

impl TimeEntry {
    /// Its size in the file.
    pub const BYTES: usize = 12;
}

impl Entry for TimeEntry {
    const BYTES: usize = TimeEntry::BYTES;

    fn encode(&self, base_offset: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&((self.offset - base_offset) as u32).to_be_bytes());
    }

    fn decode(base_offset: i64, bytes: &[u8]) -> Self {
        let mut timestamp = [0; 8];
        let mut relative = [0; 4];
        timestamp.copy_from_slice(&bytes[0..8]);
        relative.copy_from_slice(&bytes[8..12]);
        Self {
            timestamp: i64::from_be_bytes(timestamp),
            offset: base_offset.saturating_add(i64::from(i32::from_be_bytes(relative))),
        }
    }

    fn follows(&self, earlier: &Self) -> bool {
        self.timestamp > earlier.timestamp && self.offset >= earlier.offset
    }

    fn is_sane(&self, base_offset: i64) -> bool {
        self.offset >= base_offset
    }
}

/// A segment's time index.
pub(crate) type TimeIndex = SparseIndex<TimeEntry>;

impl TimeIndex {
    /// The last entry whose timestamp is at most `timestamp`.
    pub(crate) fn lookup(&self, timestamp: i64) -> std::io::Result<Option<TimeEntry>> {
        self.last_where(|entry| entry.timestamp <= timestamp)
    }

    /// Adds an entry if it says more than the last one.
    pub(crate) fn maybe_append(&self, entry: TimeEntry) {
        match self.last() {
            Ok(Some(last)) if !entry.follows(&last) => {}
            Ok(_) => self.append(entry),
            Err(error) => {
                tracing::warn!(index = %self.path().display(), %error, "cannot read the time index");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_ascend_in_time_and_offset() {
        let dir = tempfile::tempdir().expect("a directory");
        let index = TimeIndex::new(dir.path().into(), "x.timeindex".into(), 10, 1 << 20);
        index.create().expect("created");
        let entry = |timestamp, offset| TimeEntry { timestamp, offset };
        for (timestamp, offset) in [(5, 10), (5, 12), (4, 13), (6, 14), (7, 14)] {
            index.maybe_append(entry(timestamp, offset));
        }
        assert_eq!(
            index.entries().expect("loaded"),
            vec![entry(5, 10), entry(6, 14), entry(7, 14)]
        );
        assert_eq!(index.lookup(4).expect("loaded"), None);
        assert_eq!(index.lookup(6).expect("loaded"), Some(entry(6, 14)));
        index.close().expect("closed");
        assert_eq!(std::fs::metadata(index.path()).expect("there").len(), 36);
        assert_eq!(index.lookup(100).expect("loaded"), Some(entry(7, 14)));
    }
}
