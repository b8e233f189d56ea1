//! Finding the batches of a producer that a snapshot does not hold.
//!
//! A snapshot has each producer's last batch alone (Kafka's format). A client that repeats an older
//! one after a restart must still get the original's offset, so the log is asked for the others, but
//! only then: once per producer and start at most.

use std::collections::VecDeque;

use super::entry::{BatchMetadata, ProducerStateEntry, RETAINED_BATCHES};
use crate::record_batch::BatchHeader;

/// A search for a producer's older batches.
///
/// Feed it the headers of whole segments, the newest segment first and each from its start on, until
/// [`HistoryScan::is_done`] says so or no segment is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryScan {
    producer_id: i64,
    producer_epoch: i16,
    /// Only batches that end before this offset are wanted.
    before_offset: i64,
    wanted: usize,
    /// Older segments' batches come later: each segment's go before all found before.
    found: VecDeque<BatchMetadata>,
    in_segment: VecDeque<BatchMetadata>,
    epoch_began: bool,
}

impl HistoryScan {
    pub(super) fn new(producer_id: i64, entry: &ProducerStateEntry) -> Option<Self> {
        let oldest = entry.batches().first()?;
        Some(Self {
            producer_id,
            producer_epoch: entry.producer_epoch,
            before_offset: oldest.first_offset(),
            wanted: RETAINED_BATCHES - entry.batches().len(),
            found: VecDeque::new(),
            in_segment: VecDeque::new(),
            epoch_began: false,
        })
    }

    /// The producer whose batches are looked for.
    pub fn producer_id(&self) -> i64 {
        self.producer_id
    }

    /// Batches from this offset on need not be shown: look into the segment that holds the offset
    /// before it, then into older ones.
    pub fn before_offset(&self) -> i64 {
        self.before_offset
    }

    /// Shows a batch of the segment that is being walked over, in order.
    pub fn observe(&mut self, header: &BatchHeader) {
        if header.producer_id != self.producer_id || header.base_offset >= self.before_offset {
            return;
        }
        if header.producer_epoch != self.producer_epoch {
            // An older epoch: what was before it is of older ones still.
            self.epoch_began = true;
            self.in_segment.clear();
            return;
        }
        if header.is_control() {
            return;
        }
        if self.in_segment.len() == self.wanted {
            self.in_segment.pop_front();
        }
        self.in_segment.push_back(BatchMetadata::of(header));
    }

    /// Tells that the segment is through; the next one shown is older.
    pub fn end_segment(&mut self) {
        while self.found.len() < self.wanted {
            let Some(batch) = self.in_segment.pop_back() else {
                break;
            };
            self.epoch_began |= batch.first_sequence() == 0;
            self.found.push_front(batch);
        }
        self.in_segment.clear();
    }

    /// Whether older segments cannot add anything.
    pub fn is_done(&self) -> bool {
        self.epoch_began || self.found.len() >= self.wanted
    }

    pub(super) fn into_batches(self) -> Vec<BatchMetadata> {
        self.found.into()
    }
}
