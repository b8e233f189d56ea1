//! All producers of a partition.

use std::collections::{BTreeMap, HashMap};

use tracing::warn;

use super::entry::{BatchMetadata, ProducerStateEntry};
use super::history::HistoryScan;
use super::snapshot::{ProducerSnapshot, SnapshotEntry};
use crate::errors::AppendError;
use crate::log::AppendOrigin;
use crate::record_batch::{
    BATCH_HEADER_BYTES, BatchHeader, ControlRecord, EndTransactionMarker, NO_PRODUCER_EPOCH,
    NO_SEQUENCE, RawRecord, increment_sequence,
};
use crate::types::TopicPartition;

/// What is to be done with a batch that passed the checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SequenceCheck {
    /// Append it, then [apply](ProducerStateManager::apply) it.
    Append,
    /// It is there already: answer with the original's offsets and timestamp, append nothing.
    Duplicate(BatchMetadata),
    /// It may be one of the producer's last batches that the snapshot did not hold: show the scan the
    /// log, give it to [`ProducerStateManager::complete_history`], and check again.
    NeedsHistory(HistoryScan),
}

/// A transaction whose marker was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletedTxn {
    /// Whose it was.
    pub producer_id: i64,
    /// Offset of its first record.
    pub first_offset: i64,
    /// Offset of the marker.
    pub last_offset: i64,
    /// Aborted, or else committed. Only aborted ones go into the transaction index.
    pub is_aborted: bool,
    /// Where the last stable offset stood once the marker was in, replication aside.
    pub last_stable_offset: i64,
}

/// The producers of one partition, and its open transactions.
///
/// Owned by the log and used under its writer lock. A batch is first [checked](Self::check), then
/// written, then [applied](Self::apply); a failed write leaves no trace.
#[derive(Debug)]
pub struct ProducerStateManager {
    topic_partition: TopicPartition,
    producers: HashMap<i64, ProducerStateEntry>,
    /// First offset of each open transaction, and whose it is.
    ongoing_txns: BTreeMap<i64, i64>,
    /// First offset of each ended transaction whose marker is not below the high watermark yet, and
    /// the marker's offset.
    unreplicated_txns: BTreeMap<i64, i64>,
    map_end_offset: i64,
    last_snapshot_offset: i64,
}

impl ProducerStateManager {
    /// No producers, at the start of an empty log.
    pub fn new(topic_partition: TopicPartition) -> Self {
        Self {
            topic_partition,
            producers: HashMap::new(),
            ongoing_txns: BTreeMap::new(),
            unreplicated_txns: BTreeMap::new(),
            map_end_offset: 0,
            last_snapshot_offset: 0,
        }
    }

    /// Judges a batch before it is appended. `header` has the offsets that the batch will get, and
    /// `batch` its bytes (looked into only for control batches, which are never compressed).
    ///
    /// Batches without a producer id pass. From [`AppendOrigin::Client`], sequence and epoch must
    /// fit; from the coordinator the epochs; from replication everything is taken as it comes.
    ///
    /// # Errors
    /// `OutOfOrderSequence`, `InvalidProducerEpoch`, `InvalidTxnState`,
    /// `TransactionCoordinatorFenced`, and `InvalidRecord` for a marker that cannot be read.
    pub fn check(
        &self,
        header: &BatchHeader,
        batch: &[u8],
        origin: AppendOrigin,
    ) -> Result<SequenceCheck, AppendError> {
        if !header.has_producer_id() || origin == AppendOrigin::Replication {
            return Ok(SequenceCheck::Append);
        }
        let entry = self.producers.get(&header.producer_id);
        if header.is_control() {
            let marker = read_marker(batch)?;
            if let (Some(marker), Some(entry)) = (marker, entry) {
                self.check_epoch(entry, header)?;
                self.check_coordinator_epoch(entry, marker, header)?;
            }
            return Ok(SequenceCheck::Append);
        }
        let Some(entry) = entry else {
            return Ok(SequenceCheck::Append);
        };
        if origin == AppendOrigin::Client
            && let Some(original) = entry.find_duplicate(header)
        {
            return Ok(SequenceCheck::Duplicate(original));
        }
        self.check_epoch(entry, header)?;
        if origin == AppendOrigin::Client && !is_in_sequence(entry, header) {
            if header.producer_epoch == entry.producer_epoch
                && !entry.is_history_complete()
                && let Some(scan) = HistoryScan::new(header.producer_id, entry)
            {
                return Ok(SequenceCheck::NeedsHistory(scan));
            }
            return Err(self.out_of_order(entry, header));
        }
        if entry.current_txn_first_offset.is_some() && !header.is_transactional() {
            return Err(AppendError::InvalidTxnState(format!(
                "producer {} has an open transaction in {}, its batch at offset {} is not part of it",
                header.producer_id, self.topic_partition, header.base_offset
            )));
        }
        Ok(SequenceCheck::Append)
    }

    fn check_epoch(
        &self,
        entry: &ProducerStateEntry,
        header: &BatchHeader,
    ) -> Result<(), AppendError> {
        if header.producer_epoch >= entry.producer_epoch {
            return Ok(());
        }
        Err(AppendError::InvalidProducerEpoch(format!(
            "epoch {} of producer {} at offset {} of {} is older than its last epoch {}",
            header.producer_epoch,
            header.producer_id,
            header.base_offset,
            self.topic_partition,
            entry.producer_epoch
        )))
    }

    fn check_coordinator_epoch(
        &self,
        entry: &ProducerStateEntry,
        marker: EndTransactionMarker,
        header: &BatchHeader,
    ) -> Result<(), AppendError> {
        if marker.coordinator_epoch >= entry.coordinator_epoch {
            return Ok(());
        }
        Err(AppendError::TransactionCoordinatorFenced(format!(
            "coordinator epoch {} of a marker for producer {} in {} is older than the last one, {}",
            marker.coordinator_epoch,
            header.producer_id,
            self.topic_partition,
            entry.coordinator_epoch
        )))
    }

    fn out_of_order(&self, entry: &ProducerStateEntry, header: &BatchHeader) -> AppendError {
        AppendError::OutOfOrderSequence(format!(
            "batch of producer {} at offset {} of {} has epoch {} and first sequence {}, \
             but the last sequence of epoch {} is {}",
            header.producer_id,
            header.base_offset,
            self.topic_partition,
            header.producer_epoch,
            header.base_sequence,
            entry.producer_epoch,
            entry.last_sequence()
        ))
    }

    /// Takes the batches that a scan of the log has found.
    pub fn complete_history(&mut self, scan: HistoryScan) {
        if let Some(entry) = self.producers.get_mut(&scan.producer_id()) {
            entry.complete_history(&scan.into_batches());
        }
    }

    /// Takes note of a batch that is now in the log, at the offsets that `header` has: one that was
    /// just appended, or one that a start or a truncation replays. Batches without a producer id only
    /// move the end.
    pub fn apply(&mut self, header: &BatchHeader, batch: &[u8]) -> Option<CompletedTxn> {
        self.map_end_offset = self.map_end_offset.max(header.next_offset());
        if !header.has_producer_id() {
            return None;
        }
        if header.is_control() {
            return match read_marker(batch) {
                Ok(Some(marker)) => self.apply_marker(header, marker),
                Ok(None) => {
                    self.apply_emptied_marker(header);
                    None
                }
                Err(error) => {
                    warn!(
                        topic_partition = %self.topic_partition,
                        offset = header.base_offset,
                        %error,
                        "control batch cannot be read, it ends no transaction"
                    );
                    None
                }
            };
        }
        // Compaction keeps a producer's last batch without its records, so the header alone counts.
        let entry = self
            .producers
            .entry(header.producer_id)
            .or_insert_with(|| ProducerStateEntry::new(header.producer_epoch));
        entry.add_batch(header.producer_epoch, BatchMetadata::of(header));
        if header.is_transactional() && entry.current_txn_first_offset.is_none() {
            entry.current_txn_first_offset = Some(header.base_offset);
            self.ongoing_txns
                .insert(header.base_offset, header.producer_id);
        }
        None
    }

    fn apply_marker(
        &mut self,
        header: &BatchHeader,
        marker: EndTransactionMarker,
    ) -> Option<CompletedTxn> {
        let entry = self
            .producers
            .entry(header.producer_id)
            .or_insert_with(|| ProducerStateEntry::new(header.producer_epoch));
        let first_offset = entry.current_txn_first_offset;
        entry.end_transaction(
            header.producer_epoch,
            marker.coordinator_epoch,
            header.max_timestamp,
        );
        // A marker without data changes nothing for readers.
        let first_offset = first_offset?;
        let last_offset = header.last_offset();
        self.ongoing_txns.remove(&first_offset);
        self.unreplicated_txns.insert(first_offset, last_offset);
        Some(CompletedTxn {
            producer_id: header.producer_id,
            first_offset,
            last_offset,
            is_aborted: !marker.is_commit,
            last_stable_offset: self.first_undecided_offset().unwrap_or(last_offset + 1),
        })
    }

    /// Compaction keeps a producer's last marker without its record, for its epoch.
    fn apply_emptied_marker(&mut self, header: &BatchHeader) {
        if header.records_count == 0 {
            self.producers
                .entry(header.producer_id)
                .or_insert_with(|| ProducerStateEntry::new(header.producer_epoch))
                .advance_epoch(header.producer_epoch, header.max_timestamp);
        }
    }

    /// Lowest first offset of a transaction that is open, or whose marker is not below the high
    /// watermark yet. The last stable offset is the lower of this and the high watermark.
    pub fn first_unstable_offset(&self) -> Option<i64> {
        let unreplicated = self
            .unreplicated_txns
            .first_key_value()
            .map(|(first, _)| *first);
        match (unreplicated, self.first_undecided_offset()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Lowest first offset of an open transaction.
    pub fn first_undecided_offset(&self) -> Option<i64> {
        self.ongoing_txns.first_key_value().map(|(first, _)| *first)
    }

    /// Forgets ended transactions whose markers are below the new high watermark.
    pub fn on_high_watermark_updated(&mut self, high_watermark: i64) {
        if !self.unreplicated_txns.is_empty() {
            self.unreplicated_txns
                .retain(|_, last_offset| *last_offset >= high_watermark);
        }
    }

    /// Takes note that the records before `log_start_offset` are gone. Producers stay known, so
    /// sequences go on.
    pub fn on_log_start_offset_incremented(&mut self, log_start_offset: i64) {
        self.on_high_watermark_updated(log_start_offset);
        if self.map_end_offset < log_start_offset {
            self.map_end_offset = log_start_offset;
            self.last_snapshot_offset = self.last_snapshot_offset.max(log_start_offset);
        }
    }

    /// Forgets producers without an open transaction whose last batch is `producer.id.expiration.ms`
    /// old. Gives how many there were.
    pub fn remove_expired(&mut self, now_ms: i64, expiration_ms: i64) -> usize {
        let before = self.producers.len();
        self.producers
            .retain(|_, entry| !is_expired(entry, now_ms, expiration_ms));
        let removed = before - self.producers.len();
        if removed > 0 {
            self.producers.shrink_to_fit();
        }
        removed
    }

    /// Forgets everything and stands at `offset`.
    pub fn clear(&mut self, offset: i64) {
        self.producers = HashMap::new();
        self.ongoing_txns.clear();
        self.unreplicated_txns.clear();
        self.map_end_offset = offset;
        self.last_snapshot_offset = offset;
    }

    /// Replaces everything by a snapshot that was taken at `offset`, less the producers that have
    /// expired meanwhile. The batches from `offset` on are to be [applied](Self::apply) next.
    pub fn load(
        &mut self,
        snapshot: &ProducerSnapshot,
        offset: i64,
        now_ms: i64,
        expiration_ms: i64,
    ) {
        self.clear(offset);
        for restored in &snapshot.entries {
            let entry = restored.to_entry();
            if is_expired(&entry, now_ms, expiration_ms) {
                continue;
            }
            if let Some(first_offset) = entry.current_txn_first_offset {
                self.ongoing_txns.insert(first_offset, restored.producer_id);
            }
            self.producers.insert(restored.producer_id, entry);
        }
    }

    /// The state as a snapshot at [`ProducerStateManager::map_end_offset`], by producer id.
    pub fn snapshot(&self) -> ProducerSnapshot {
        let mut entries: Vec<_> = self
            .producers
            .iter()
            .map(|(producer_id, entry)| SnapshotEntry::of(*producer_id, entry))
            .collect();
        entries.sort_unstable_by_key(|entry| entry.producer_id);
        ProducerSnapshot { entries }
    }

    /// Offset up to which batches have been applied.
    pub fn map_end_offset(&self) -> i64 {
        self.map_end_offset
    }

    /// Moves the end past batches that need not be applied since none has a producer id.
    pub fn update_map_end_offset(&mut self, offset: i64) {
        self.map_end_offset = self.map_end_offset.max(offset);
    }

    /// Offset of the latest snapshot that was taken or loaded.
    pub fn last_snapshot_offset(&self) -> i64 {
        self.last_snapshot_offset
    }

    /// Whether batches have been applied since the latest snapshot.
    pub fn is_snapshot_due(&self) -> bool {
        self.map_end_offset > self.last_snapshot_offset
    }

    /// Takes note that a snapshot at the end is on disk.
    pub fn on_snapshot_taken(&mut self) {
        self.last_snapshot_offset = self.map_end_offset;
    }

    /// What is known of one producer.
    pub fn last_entry(&self, producer_id: i64) -> Option<&ProducerStateEntry> {
        self.producers.get(&producer_id)
    }

    /// All producers, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (i64, &ProducerStateEntry)> {
        self.producers
            .iter()
            .map(|(producer_id, entry)| (*producer_id, entry))
    }

    /// Whether no producer is known.
    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }

    /// Whether some transaction is open whose producer was last heard of `max_txn_ms` ago.
    pub fn has_late_transaction(&self, now_ms: i64, max_txn_ms: i64) -> bool {
        self.ongoing_txns.values().any(|producer_id| {
            self.producers
                .get(producer_id)
                .is_some_and(|entry| now_ms.saturating_sub(entry.last_timestamp) > max_txn_ms)
        })
    }
}

fn is_expired(entry: &ProducerStateEntry, now_ms: i64, expiration_ms: i64) -> bool {
    entry.current_txn_first_offset.is_none()
        && now_ms.saturating_sub(entry.last_timestamp) >= expiration_ms
}

/// Whether the batch follows on what is known: in the same epoch the next sequence, in a new one 0.
/// A producer without an epoch may start anywhere, as an unknown one.
fn is_in_sequence(entry: &ProducerStateEntry, header: &BatchHeader) -> bool {
    if entry.producer_epoch == NO_PRODUCER_EPOCH {
        return true;
    }
    if header.producer_epoch != entry.producer_epoch {
        return header.base_sequence == 0;
    }
    match entry.last_sequence() {
        NO_SEQUENCE => header.base_sequence == 0,
        last => header.base_sequence == increment_sequence(last, 1),
    }
}

/// The marker in a control batch; `None` for control records of another kind.
fn read_marker(batch: &[u8]) -> Result<Option<EndTransactionMarker>, AppendError> {
    let invalid = |error: &dyn std::fmt::Display| AppendError::InvalidRecord {
        message: format!("control batch cannot be read: {error}"),
        record_errors: Vec::new(),
    };
    let records = batch.get(BATCH_HEADER_BYTES..).unwrap_or_default();
    if records.is_empty() {
        // Compaction may leave a marker's batch without its record.
        return Ok(None);
    }
    let record = RawRecord::parse(records, &mut 0, 0).map_err(|error| invalid(&error))?;
    match ControlRecord::parse(record.key, record.value).map_err(|error| invalid(&error))? {
        ControlRecord::EndTransaction(marker) => Ok(Some(marker)),
        ControlRecord::Other { .. } => Ok(None),
    }
}

#[cfg(test)]
mod tests;
