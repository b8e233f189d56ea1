//! The log of a leader as a test writes it: whole batches of one leader epoch each, and where each epoch ends.

use bytes::{Bytes, BytesMut};

use crate::raw::{Batch, Record};

/// Where a batch begins, and its bytes.
#[derive(Debug, Clone)]
struct Written {
    base_offset: i64,
    next_offset: i64,
    leader_epoch: i32,
    bytes: Bytes,
}

/// Batches of one record each, in the order of their offsets.
#[derive(Debug, Clone)]
pub struct LeaderLog {
    start_offset: i64,
    batches: Vec<Written>,
}

impl LeaderLog {
    /// A log with these epochs, each up to and without its end offset, from offset 0.
    #[must_use]
    pub fn of(epochs: &[(i32, i64)]) -> Self {
        Self::from(0, epochs)
    }

    /// As [`LeaderLog::of`], with nothing before `start_offset`.
    #[must_use]
    pub fn from(start_offset: i64, epochs: &[(i32, i64)]) -> Self {
        let mut batches = Vec::new();
        let mut next = start_offset;
        for &(leader_epoch, end) in epochs {
            for base_offset in next..end {
                // Equal epoch and offset mean equal bytes, so that logs can be compared by these.
                let value = format!("{base_offset} of epoch {leader_epoch}");
                let batch = Batch {
                    base_offset,
                    partition_leader_epoch: leader_epoch,
                    ..Batch::of(vec![Record::new("key", &value)])
                };
                batches.push(Written {
                    base_offset,
                    next_offset: base_offset + 1,
                    leader_epoch,
                    bytes: batch.at(1_700_000_000_000, &[]).encode(),
                });
            }
            next = next.max(end);
        }
        Self {
            start_offset,
            batches,
        }
    }

    /// Spoils the bytes of the batch at an offset, so that its checksum is wrong.
    #[must_use]
    pub fn with_corrupt_batch_at(mut self, offset: i64) -> Self {
        let batch = self
            .batches
            .iter_mut()
            .find(|batch| batch.base_offset == offset);
        if let Some(batch) = batch {
            let mut bytes = BytesMut::from(&batch.bytes[..]);
            if let Some(last) = bytes.last_mut() {
                *last ^= 1;
            }
            batch.bytes = bytes.freeze();
        }
        self
    }

    /// Its first offset.
    #[must_use]
    pub fn start_offset(&self) -> i64 {
        self.start_offset
    }

    /// The offset after its last record.
    #[must_use]
    pub fn end_offset(&self) -> i64 {
        self.batches
            .last()
            .map_or(self.start_offset, |batch| batch.next_offset)
    }

    /// Base offset and leader epoch of each batch.
    #[must_use]
    pub fn epochs_of_batches(&self) -> Vec<(i64, i32)> {
        let batches = self.batches.iter();
        batches
            .map(|batch| (batch.base_offset, batch.leader_epoch))
            .collect()
    }

    /// The largest epoch that is not above `requested`, and where it ends, for a leader of epoch `current`; `None` when
    /// there is none (KIP-279).
    #[must_use]
    pub fn end_of_epoch(&self, requested: i32, current: i32) -> Option<(i32, i64)> {
        if requested == current {
            return Some((current, self.end_offset()));
        }
        let of_request = self
            .batches
            .iter()
            .rfind(|batch| batch.leader_epoch <= requested)?;
        (requested < current).then_some((of_request.leader_epoch, of_request.next_offset))
    }

    /// The bytes of the batches from an offset on, at most `limit` bytes beyond the first batch.
    #[must_use]
    pub fn read(&self, offset: i64, limit: usize) -> Bytes {
        let mut bytes = BytesMut::new();
        for batch in self
            .batches
            .iter()
            .filter(|batch| batch.next_offset > offset)
        {
            if !bytes.is_empty() && bytes.len() + batch.bytes.len() > limit {
                break;
            }
            bytes.extend_from_slice(&batch.bytes);
        }
        bytes.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::batch_headers;

    #[test]
    fn epochs_end_where_the_next_begins() {
        let log = LeaderLog::of(&[(0, 20), (2, 30)]);
        assert_eq!((log.start_offset(), log.end_offset()), (0, 30));
        assert_eq!(log.end_of_epoch(0, 2), Some((0, 20)));
        assert_eq!(log.end_of_epoch(1, 2), Some((0, 20)));
        assert_eq!(log.end_of_epoch(2, 2), Some((2, 30)));
        assert_eq!(log.end_of_epoch(2, 3), Some((2, 30)));
        assert_eq!(log.end_of_epoch(3, 3), Some((3, 30)));
        assert_eq!(log.end_of_epoch(4, 3), None);
        assert_eq!(LeaderLog::of(&[(1, 1)]).end_of_epoch(0, 1), None);
    }

    #[test]
    fn batches_are_read_from_an_offset_on() {
        let log = LeaderLog::from(5, &[(1, 7), (3, 9)]);
        let read = |offset, limit| {
            let headers = batch_headers(&log.read(offset, limit));
            let headers = headers.iter();
            headers
                .map(|header| (header.base_offset, header.partition_leader_epoch))
                .collect::<Vec<_>>()
        };
        assert_eq!(read(5, 1 << 20), log.epochs_of_batches());
        assert_eq!(read(7, 1 << 20), [(7, 3), (8, 3)]);
        assert_eq!(read(7, 1), [(7, 3)], "one at least");
        assert_eq!(read(9, 1 << 20), []);
    }
}
