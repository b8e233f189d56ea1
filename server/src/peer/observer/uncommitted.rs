//! What an observer has of the metadata log beyond what it knows to be committed: held in memory, and written only once
//! it is, so that the log of this node never has to give anything back.

use std::collections::VecDeque;

use bytes::Bytes;
use highwater_storage::record_batch::{BatchError, BatchHeader, Batches, verify_crc};

/// Bytes that are held at most; what comes beyond is fetched again later.
const MAX_BYTES: usize = 64 << 20;

/// Why what was fetched is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// A batch does not parse, or its bytes are not what was written.
    #[error("batch at offset {offset}: {source}")]
    Batch { offset: i64, source: BatchError },
    /// A batch does not continue the log.
    #[error("a batch at offset {found} where {expected} comes next")]
    Gap { expected: i64, found: i64 },
    /// A batch is older than the one before it, or newer than the leader.
    #[error("a batch of epoch {epoch} at offset {offset} where {min} to {max} may follow")]
    Epoch {
        offset: i64,
        epoch: i32,
        min: i32,
        max: i32,
    },
}

/// The leader's log lacks what was committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the leader's log leaves this one at offset {offset}, but everything before {committed_end} is committed"
)]
pub(super) struct CommittedLost {
    /// Where the logs part.
    pub(super) offset: i64,
    /// Where the committed records end.
    pub(super) committed_end: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BatchEnd {
    next_offset: i64,
    epoch: i32,
    /// Bytes of its chunk up to its end.
    end_position: usize,
}

/// Whole batches as they were fetched together.
#[derive(Debug, Clone)]
struct Chunk {
    bytes: Bytes,
    batches: Vec<BatchEnd>,
}

/// Batches that follow the committed ones.
#[derive(Debug, Clone)]
pub(super) struct Uncommitted {
    /// Where the committed records end.
    committed_end: i64,
    /// The epoch of the last committed batch.
    committed_epoch: i32,
    chunks: VecDeque<Chunk>,
    size_bytes: usize,
}

impl Uncommitted {
    /// Nothing beyond the committed records, which end at `committed_end` with a batch of `committed_epoch` (-1 for no
    /// batch).
    pub(super) fn after(committed_end: i64, committed_epoch: i32) -> Self {
        Uncommitted {
            committed_end,
            committed_epoch,
            chunks: VecDeque::new(),
            size_bytes: 0,
        }
    }

    fn batches(&self) -> impl DoubleEndedIterator<Item = &BatchEnd> {
        self.chunks.iter().flat_map(|chunk| &chunk.batches)
    }

    /// Offset after everything held.
    pub(super) fn end_offset(&self) -> i64 {
        let last = self.batches().next_back();
        last.map_or(self.committed_end, |batch| batch.next_offset)
    }

    /// Epoch of the last batch; -1 when there is none, committed ones included.
    pub(super) fn last_epoch(&self) -> i32 {
        let last = self.batches().next_back();
        last.map_or(self.committed_epoch, |batch| batch.epoch)
    }

    /// Whether nothing is held.
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Takes what was fetched from the end on, of a leader in `leader_epoch`. A batch that is cut off at the end is left
    /// out, and so is what exceeds the bound.
    ///
    /// # Errors
    /// When a batch is not what has to come next; nothing is taken then.
    pub(super) fn push(&mut self, records: &Bytes, leader_epoch: i32) -> Result<(), Refused> {
        let (mut next_offset, mut epoch) = (self.end_offset(), self.last_epoch());
        let mut chunk = Chunk {
            bytes: Bytes::new(),
            batches: Vec::new(),
        };
        let mut end_position = 0;
        for batch in Batches::new(records) {
            let at = |source| Refused::Batch {
                offset: next_offset,
                source,
            };
            let (header, bytes) = batch.map_err(at)?;
            if self.size_bytes + end_position + bytes.len() > MAX_BYTES && !self.is_empty() {
                break;
            }
            verify_crc(bytes).map_err(at)?;
            check_follows(&header, next_offset, epoch..=leader_epoch)?;
            (next_offset, epoch) = (header.next_offset(), header.partition_leader_epoch);
            end_position += bytes.len();
            chunk.batches.push(BatchEnd {
                next_offset,
                epoch,
                end_position,
            });
        }
        if !chunk.batches.is_empty() {
            chunk.bytes = records.slice(..end_position);
            self.size_bytes += end_position;
            self.chunks.push_back(chunk);
        }
        Ok(())
    }

    /// Takes out the batches that lie below the high watermark as a whole, in pieces that follow each other.
    pub(super) fn commit(&mut self, high_watermark: i64) -> Vec<Bytes> {
        let mut committed = Vec::new();
        while let Some(mut chunk) = self.chunks.pop_front() {
            let batches = &chunk.batches;
            let count = batches.partition_point(|batch| batch.next_offset <= high_watermark);
            let Some(last) = count.checked_sub(1).map(|last| chunk.batches[last]) else {
                self.chunks.push_front(chunk);
                break;
            };
            (self.committed_end, self.committed_epoch) = (last.next_offset, last.epoch);
            self.size_bytes -= last.end_position;
            committed.push(chunk.bytes.split_to(last.end_position));
            let mut rest = chunk.batches.split_off(count);
            if rest.is_empty() {
                continue;
            }
            for batch in &mut rest {
                batch.end_position -= last.end_position;
            }
            chunk.batches = rest;
            self.chunks.push_front(chunk);
            break;
        }
        committed
    }

    /// Drops what the leader does not have, given that its last epoch that is not above ours is `epoch`, and ends at
    /// `end_offset`.
    ///
    /// # Errors
    /// When the leader does not have all that is committed; nothing is dropped then.
    pub(super) fn cut_at_divergence(
        &mut self,
        epoch: i32,
        end_offset: i64,
    ) -> Result<(), CommittedLost> {
        let last = self.batches().rfind(|batch| batch.epoch <= epoch);
        let (own_epoch, own_end) = match last {
            Some(batch) => (batch.epoch, batch.next_offset),
            None => (self.committed_epoch, self.committed_end),
        };
        let offset = match own_epoch == epoch {
            true => own_end.min(end_offset),
            false => own_end,
        };
        if offset < self.committed_end || own_epoch > epoch {
            return Err(CommittedLost {
                offset: offset.min(end_offset),
                committed_end: self.committed_end,
            });
        }
        for chunk in &mut self.chunks {
            let batches = &chunk.batches;
            let count = batches.partition_point(|batch| batch.next_offset <= offset);
            chunk.batches.truncate(count);
            let end = chunk.batches.last().map_or(0, |last| last.end_position);
            chunk.bytes.truncate(end);
        }
        self.chunks.retain(|chunk| !chunk.batches.is_empty());
        self.size_bytes = self.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        Ok(())
    }

    /// Where the committed records end.
    pub(super) fn committed_end(&self) -> i64 {
        self.committed_end
    }
}

fn check_follows(
    header: &BatchHeader,
    next_offset: i64,
    epochs: std::ops::RangeInclusive<i32>,
) -> Result<(), Refused> {
    if header.base_offset != next_offset {
        return Err(Refused::Gap {
            expected: next_offset,
            found: header.base_offset,
        });
    }
    if !epochs.contains(&header.partition_leader_epoch) {
        return Err(Refused::Epoch {
            offset: next_offset,
            epoch: header.partition_leader_epoch,
            min: *epochs.start(),
            max: *epochs.end(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use highwater_storage::record_batch::RecordBatchBuilder;

    use super::*;

    /// Batches of `(base offset, records, epoch)` as they lie on the wire.
    fn batches(batches: &[(i64, usize, i32)]) -> Bytes {
        let mut bytes = Vec::new();
        for (base_offset, records, epoch) in batches {
            let mut builder = RecordBatchBuilder::new()
                .base_offset(*base_offset)
                .leader_epoch(*epoch);
            for _ in 0..*records {
                builder.append(1, None, Some(b"record"));
            }
            bytes.extend_from_slice(&builder.build().unwrap());
        }
        Bytes::from(bytes)
    }

    fn held(committed_end: i64, of: &[(i64, usize, i32)]) -> Uncommitted {
        let mut held = Uncommitted::after(committed_end, 1);
        held.push(&batches(of), 9).unwrap();
        held
    }

    /// The offsets after the batches in these pieces.
    fn ends(pieces: &[Bytes]) -> Vec<i64> {
        let headers = pieces.iter().flat_map(|piece| Batches::new(piece));
        headers
            .map(|batch| batch.unwrap().0.next_offset())
            .collect()
    }

    #[test]
    fn only_what_is_below_the_high_watermark_is_committed() {
        let mut held = held(10, &[(10, 2, 1), (12, 1, 2), (13, 3, 2)]);
        assert_eq!((held.end_offset(), held.last_epoch()), (16, 2));
        assert!(held.commit(10).is_empty());
        assert_eq!(ends(&held.commit(13)), [12, 13]);
        assert_eq!(held.committed_end(), 13);
        held.push(&batches(&[(16, 1, 3)]), 3).unwrap();
        assert!(held.commit(15).is_empty(), "inside a batch");
        assert_eq!(ends(&held.commit(100)), [16, 17]);
        assert!(held.is_empty());
        assert_eq!((held.end_offset(), held.last_epoch()), (17, 3));
        assert_eq!(held.size_bytes, 0);
    }

    #[test]
    fn what_does_not_follow_is_refused_as_a_whole() {
        let refused = |of: &[(i64, usize, i32)], leader_epoch| {
            let mut held = held(10, &[(10, 1, 2)]);
            let refused = held.push(&batches(of), leader_epoch).unwrap_err();
            assert_eq!(held.end_offset(), 11);
            refused
        };
        let gap = Refused::Gap {
            expected: 12,
            found: 13,
        };
        assert_eq!(refused(&[(11, 1, 2), (13, 1, 2)], 2), gap);
        assert!(matches!(
            refused(&[(11, 1, 1)], 2),
            Refused::Epoch { epoch: 1, .. }
        ));
        assert!(matches!(
            refused(&[(11, 1, 3)], 2),
            Refused::Epoch { epoch: 3, .. }
        ));
    }

    #[test]
    fn bytes_that_changed_on_the_way_are_refused() {
        let mut bytes = batches(&[(10, 1, 1)]).to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        let mut held = Uncommitted::after(10, 1);
        let refused = held.push(&Bytes::from(bytes), 1).unwrap_err();
        assert!(
            matches!(refused, Refused::Batch { offset: 10, .. }),
            "{refused}"
        );
    }

    #[test]
    fn a_batch_that_is_cut_off_is_left_out() {
        let bytes = batches(&[(10, 1, 1), (11, 1, 1)]);
        let mut held = Uncommitted::after(10, 1);
        held.push(&bytes.slice(..bytes.len() - 1), 1).unwrap();
        assert_eq!(held.end_offset(), 11);
        held.push(&batches(&[(11, 1, 1)]).slice(..20), 1).unwrap();
        assert_eq!(held.end_offset(), 11);
    }

    #[test]
    fn what_the_leader_does_not_have_is_dropped_epoch_by_epoch() {
        let before = held(10, &[(10, 2, 3), (12, 1, 5), (13, 3, 5), (16, 1, 7)]);
        let cut = |epoch, end_offset| {
            let mut held = before.clone();
            held.cut_at_divergence(epoch, end_offset).unwrap();
            assert_eq!(
                ends(&held.clone().commit(100)).last(),
                Some(&held.end_offset())
            );
            (held.end_offset(), held.last_epoch())
        };
        assert_eq!(cut(7, 20), (17, 7), "the leader has more");
        assert_eq!(cut(6, 20), (16, 5), "we have nothing of epoch 6");
        assert_eq!(cut(5, 13), (13, 5));
        assert_eq!(cut(5, 14), (13, 5), "batches go as a whole");
        assert_eq!(cut(4, 12), (12, 3));
        let mut held = before;
        held.cut_at_divergence(1, 10).unwrap();
        assert!(held.is_empty());
        assert_eq!(
            (held.end_offset(), held.last_epoch(), held.size_bytes),
            (10, 1, 0)
        );
    }

    #[test]
    fn a_leader_without_what_is_committed_is_an_error() {
        let mut held = held(10, &[(10, 2, 3)]);
        for (epoch, end_offset) in [(1, 9), (0, 5)] {
            let lost = held.cut_at_divergence(epoch, end_offset).unwrap_err();
            let expected = CommittedLost {
                offset: end_offset,
                committed_end: 10,
            };
            assert_eq!(lost, expected);
        }
        assert_eq!(held.end_offset(), 12);
    }
}
