//! One producer's state.

use crate::record_batch::{BatchHeader, NO_SEQUENCE, decrement_sequence};

/// How many batches of a producer are remembered: as many as a client may have in flight.
pub const RETAINED_BATCHES: usize = 5;

/// A batch that was appended, as far as a repetition of it needs to be recognised and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchMetadata {
    /// Sequence number of its last record.
    pub last_sequence: i32,
    /// Offset of its last record.
    pub last_offset: i64,
    /// Last offset less first offset.
    pub offset_delta: i32,
    /// Its largest timestamp in ms.
    pub timestamp: i64,
}

impl BatchMetadata {
    /// What is remembered of a batch with this header.
    pub fn of(header: &BatchHeader) -> Self {
        Self {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        }
    }

    /// Sequence number of its first record.
    pub fn first_sequence(&self) -> i32 {
        decrement_sequence(self.last_sequence, self.offset_delta)
    }

    /// Offset of its first record.
    pub fn first_offset(&self) -> i64 {
        self.last_offset
            .saturating_sub(i64::from(self.offset_delta))
    }
}

/// What is known of one producer id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerStateEntry {
    /// Its epoch: batches of an older one are refused.
    pub producer_epoch: i16,
    /// Epoch of the coordinator that wrote its last transaction marker, -1 if none did.
    pub coordinator_epoch: i32,
    /// Timestamp in ms of its last batch or marker; its age decides when the producer is forgotten.
    pub last_timestamp: i64,
    /// First offset of its open transaction.
    pub current_txn_first_offset: Option<i64>,
    /// The last batches of this epoch, oldest first, at most five.
    batches: Vec<BatchMetadata>,
    /// No older batch of this epoch, among the last five, exists in the log.
    history_complete: bool,
}

impl ProducerStateEntry {
    pub(super) fn new(producer_epoch: i16) -> Self {
        Self {
            producer_epoch,
            coordinator_epoch: -1,
            last_timestamp: -1,
            current_txn_first_offset: None,
            batches: Vec::new(),
            history_complete: true,
        }
    }

    /// An entry of which the last batch alone is known. One that begins with sequence 0 is taken for
    /// the epoch's first: if sequences have wrapped just then, a repetition of an older batch is out
    /// of order instead of a duplicate, which is as safe.
    pub(super) fn restored(
        producer_epoch: i16,
        coordinator_epoch: i32,
        last_timestamp: i64,
        current_txn_first_offset: Option<i64>,
        last_batch: Option<BatchMetadata>,
    ) -> Self {
        Self {
            producer_epoch,
            coordinator_epoch,
            last_timestamp,
            current_txn_first_offset,
            history_complete: last_batch.is_none_or(|batch| batch.first_sequence() == 0),
            batches: last_batch.into_iter().collect(),
        }
    }

    /// The last batches of this epoch, oldest first.
    pub fn batches(&self) -> &[BatchMetadata] {
        &self.batches
    }

    /// The last batch of this epoch.
    pub fn last_batch(&self) -> Option<&BatchMetadata> {
        self.batches.last()
    }

    /// Sequence number of the last record of this epoch, -1 if there is none.
    pub fn last_sequence(&self) -> i32 {
        self.last_batch()
            .map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    /// Offset of the last data record of this epoch, if there is one.
    pub fn last_data_offset(&self) -> Option<i64> {
        self.last_batch().map(|batch| batch.last_offset)
    }

    /// Whether the last five batches are known, or all there are of this epoch.
    pub fn is_history_complete(&self) -> bool {
        self.history_complete || self.batches.len() == RETAINED_BATCHES
    }

    /// The remembered batch that this one repeats exactly.
    pub(super) fn find_duplicate(&self, header: &BatchHeader) -> Option<BatchMetadata> {
        if header.producer_epoch != self.producer_epoch {
            return None;
        }
        let last_sequence = header.last_sequence();
        self.batches
            .iter()
            .rev()
            .find(|batch| {
                batch.last_sequence == last_sequence
                    && batch.first_sequence() == header.base_sequence
            })
            .copied()
    }

    pub(super) fn add_batch(&mut self, epoch: i16, batch: BatchMetadata) {
        self.set_epoch(epoch);
        if self.batches.len() == RETAINED_BATCHES {
            self.batches.remove(0);
        }
        self.batches.reserve_exact(1);
        self.batches.push(batch);
        self.last_timestamp = batch.timestamp;
    }

    pub(super) fn end_transaction(&mut self, epoch: i16, coordinator_epoch: i32, timestamp: i64) {
        self.set_epoch(epoch);
        self.coordinator_epoch = coordinator_epoch;
        self.last_timestamp = timestamp;
        self.current_txn_first_offset = None;
    }

    pub(super) fn advance_epoch(&mut self, epoch: i16, timestamp: i64) {
        if epoch >= self.producer_epoch {
            self.set_epoch(epoch);
            self.last_timestamp = timestamp;
        }
    }

    fn set_epoch(&mut self, epoch: i16) {
        if epoch != self.producer_epoch {
            self.producer_epoch = epoch;
            self.batches = Vec::new();
            self.history_complete = true;
        }
    }

    /// Puts older batches (oldest first) before the known ones; there are no others then.
    pub(super) fn complete_history(&mut self, older: &[BatchMetadata]) {
        let room = RETAINED_BATCHES - self.batches.len();
        let kept = &older[older.len().saturating_sub(room)..];
        self.batches.splice(0..0, kept.iter().copied());
        self.batches.shrink_to_fit();
        self.history_complete = true;
    }
}
