//! Which batches belong to aborted transactions, and which markers are still needed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use crate::AbortedTxn;
use crate::record_batch::control::ControlRecord;
use crate::record_batch::error::BatchError;
use crate::record_batch::header::{BATCH_HEADER_BYTES, BatchHeader};
use crate::record_batch::record::RawRecord;

/// Follows the transactions of a log, batch by batch in order.
#[derive(Debug, Default)]
pub struct TransactionFilter {
    /// Aborted transactions whose first offset is still ahead, the lowest first.
    ahead: BinaryHeap<Reverse<(i64, i64, i64, i64)>>,
    /// Aborted transactions that have begun, by producer, and whether a batch of them was met.
    aborted: HashMap<i64, (AbortedTxn, bool)>,
    /// Producers with a transaction that will be committed, of which a batch was met.
    committed: HashSet<i64>,
    retained: Vec<AbortedTxn>,
}

impl TransactionFilter {
    /// A filter for a walk that begins at an offset, given all aborted transactions that end after it
    /// (of the transaction indexes of the segments to be walked over).
    pub fn new(aborted: impl IntoIterator<Item = AbortedTxn>) -> Self {
        let mut filter = Self::default();
        filter.add_aborted(aborted);
        filter
    }

    /// Adds aborted transactions, before the walk gets to the first of them.
    pub fn add_aborted(&mut self, aborted: impl IntoIterator<Item = AbortedTxn>) {
        self.ahead.extend(aborted.into_iter().map(|txn| {
            Reverse((
                txn.first_offset,
                txn.producer_id,
                txn.last_offset,
                txn.last_stable_offset,
            ))
        }));
    }

    /// The aborted transactions of which this walk has met both a batch and the marker, in order of
    /// the markers, since the last call. They must stay in the transaction index of the segment with
    /// the marker, since a reader may still see a batch in an older copy of a segment; all others of
    /// the segments walked over must go from it.
    pub fn take_retained(&mut self) -> Vec<AbortedTxn> {
        std::mem::take(&mut self.retained)
    }

    /// Takes note of a data batch; gives whether it is of an aborted transaction.
    pub(super) fn on_data_batch(&mut self, header: &BatchHeader) -> bool {
        self.begin_up_to(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        match self.aborted.get_mut(&header.producer_id) {
            Some((txn, is_met)) if header.base_offset < txn.last_offset => {
                *is_met = true;
                return true;
            }
            // Its marker is gone already, so this is a later transaction.
            Some(_) => _ = self.aborted.remove(&header.producer_id),
            None => {}
        }
        self.committed.insert(header.producer_id);
        false
    }

    /// Takes note of a control batch; gives whether it is a marker that no record needs.
    pub(super) fn on_control_batch(
        &mut self,
        header: &BatchHeader,
        batch: &[u8],
    ) -> Result<bool, BatchError> {
        self.begin_up_to(header.last_offset());
        if header.records_count == 0 {
            // Emptied by an earlier pass.
            return Ok(true);
        }
        let records = batch.get(BATCH_HEADER_BYTES..).unwrap_or_default();
        let record = RawRecord::parse(records, &mut 0, 0)?;
        Ok(match ControlRecord::parse(record.key, record.value)? {
            ControlRecord::EndTransaction(marker) if marker.is_commit => {
                !self.committed.remove(&header.producer_id)
            }
            ControlRecord::EndTransaction(_) => match self.aborted.remove(&header.producer_id) {
                Some((txn, true)) => {
                    self.retained.push(txn);
                    false
                }
                _ => true,
            },
            ControlRecord::Other { .. } => false,
        })
    }

    fn begin_up_to(&mut self, offset: i64) {
        while let Some(Reverse((first_offset, producer_id, last_offset, last_stable_offset))) =
            self.ahead.peek().copied()
            && first_offset <= offset
        {
            self.ahead.pop();
            let txn = AbortedTxn {
                producer_id,
                first_offset,
                last_offset,
                last_stable_offset,
            };
            // A producer has one transaction at a time, so an earlier one is over.
            self.aborted.insert(producer_id, (txn, false));
        }
    }
}
