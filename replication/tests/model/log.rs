//! A replica's log in memory, with what of it is on disk. A process that ends keeps everything; a power cut keeps what
//! was synced and maybe some of the rest.

use highwater_replication::state::leadership::LogOffsets;
use highwater_replication::state::truncation::FollowerLog;
use highwater_storage::LeaderEpoch;

use super::epochs::Epochs;
use super::setup::InitialLog;

/// One record; it is also a batch of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// The epoch of the leader that appended it.
    pub(crate) epoch: LeaderEpoch,
    /// What it says; no two records that were ever produced say the same.
    pub(crate) value: u32,
}

/// Records from an offset on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Contents {
    start_offset: i64,
    records: Vec<Record>,
}

impl Contents {
    fn end(&self) -> i64 {
        self.start_offset + self.records.len() as i64
    }

    fn truncate_to(&mut self, offset: i64) {
        let keep = (offset - self.start_offset).max(0);
        self.records.truncate(keep as usize);
    }
}

/// The log of one replica.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReplicaLog {
    contents: Contents,
    epochs: Epochs,
    high_watermark: i64,
    /// What was there at the last sync.
    durable: Contents,
    /// `replication-offset-checkpoint`.
    checkpointed_high_watermark: i64,
    /// Grows with each change of records or epochs.
    version: u64,
}

impl ReplicaLog {
    /// A log that was there before.
    pub(crate) fn with(initial: InitialLog) -> Self {
        let mut log = Self::default();
        for (offset, record) in (0..).zip(initial.records) {
            if offset == initial.synced {
                log.sync();
            }
            log.append(record);
        }
        if initial.synced >= log.end_offset() {
            log.sync();
        }
        log.high_watermark = initial.high_watermark;
        log.checkpoint();
        log
    }

    pub(crate) fn start_offset(&self) -> i64 {
        self.contents.start_offset
    }

    pub(crate) fn end_offset(&self) -> i64 {
        self.contents.end()
    }

    pub(crate) fn high_watermark(&self) -> i64 {
        self.high_watermark
    }

    /// Grows with each change of records or epochs; two logs of the same version are the same.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    /// The record at `offset`, if the log has it.
    pub(crate) fn get(&self, offset: i64) -> Option<Record> {
        let index = usize::try_from(offset - self.contents.start_offset).ok()?;
        self.contents.records.get(index).copied()
    }

    /// All records with their offsets.
    pub(crate) fn records(&self) -> impl DoubleEndedIterator<Item = (i64, Record)> {
        let start = self.contents.start_offset;
        let numbered = self.contents.records.iter().enumerate();
        numbered.map(move |(index, record)| (start + index as i64, *record))
    }

    /// At most `max` records from `offset` on.
    pub(crate) fn read(&self, offset: i64, end: i64, max: usize) -> Vec<Record> {
        let available = (offset..end).map_while(|offset| self.get(offset));
        available.take(max).collect()
    }

    /// Where the synced part ends that is also in the present log.
    pub(crate) fn synced_end_offset(&self) -> i64 {
        let same = |offset: &i64| {
            let index = (offset - self.durable.start_offset) as usize;
            self.durable.records.get(index).copied() == self.get(*offset)
        };
        let from = self.start_offset().max(self.durable.start_offset);
        let to = self.end_offset().min(self.durable.end());
        (from..to)
            .find(|offset| !same(offset))
            .unwrap_or(to.max(from))
    }

    pub(crate) fn append(&mut self, record: Record) {
        self.version += 1;
        self.epochs.assign(record.epoch, self.end_offset());
        self.contents.records.push(record);
    }

    pub(crate) fn assign_epoch_start(&mut self, epoch: LeaderEpoch, offset: i64) {
        self.version += 1;
        self.epochs.assign(epoch, offset);
    }

    pub(crate) fn set_high_watermark(&mut self, offset: i64) {
        self.high_watermark = offset;
    }

    /// Cuts the end off. Epochs that begin at `offset` or later go even when no record does.
    pub(crate) fn truncate_to(&mut self, offset: i64) {
        self.version += 1;
        if offset < self.start_offset() {
            self.restart_at(offset);
            return;
        }
        self.contents.truncate_to(offset);
        self.epochs.truncate_from_end(offset);
        self.high_watermark = self.high_watermark.min(self.end_offset());
    }

    /// Drops everything; the next record gets `offset`.
    pub(crate) fn restart_at(&mut self, offset: i64) {
        self.version += 1;
        self.contents = Contents {
            start_offset: offset,
            records: Vec::new(),
        };
        self.epochs = Epochs::default();
        self.high_watermark = offset;
    }

    /// The log is deleted, and an empty one takes its place.
    pub(crate) fn wipe(&mut self) {
        *self = Self {
            version: self.version + 1,
            ..Self::default()
        };
    }

    /// Drops what lies before `offset`.
    pub(crate) fn advance_start(&mut self, offset: i64) {
        self.version += 1;
        let gone = (offset - self.start_offset()).max(0) as usize;
        self.contents.records.drain(..gone);
        self.contents.start_offset = offset;
        self.epochs.truncate_from_start(offset);
    }

    /// Forces everything to disk.
    pub(crate) fn sync(&mut self) {
        self.durable.clone_from(&self.contents);
    }

    /// Writes the high watermark's checkpoint.
    pub(crate) fn checkpoint(&mut self) {
        self.checkpointed_high_watermark = self.high_watermark;
    }

    /// The power goes. Of what was not synced, everything from `keep` on is lost.
    pub(crate) fn lose_from(&mut self, keep: i64) {
        self.version += 1;
        self.contents
            .truncate_to(keep.max(self.synced_end_offset()));
        self.durable.clone_from(&self.contents);
    }

    /// The power goes, and what is found is the log of the last sync: truncations since then are undone, too.
    pub(crate) fn revert_to_synced(&mut self) {
        self.version += 1;
        self.contents.clone_from(&self.durable);
    }

    /// Opens the log after a start: epochs that have no records are gone, and the high watermark is what the
    /// checkpoint says.
    pub(crate) fn reopen(&mut self) {
        self.version += 1;
        self.epochs = Epochs::default();
        for (offset, record) in (self.contents.start_offset..).zip(&self.contents.records) {
            self.epochs.assign(record.epoch, offset);
        }
        self.high_watermark = self
            .checkpointed_high_watermark
            .clamp(self.start_offset(), self.end_offset());
    }
}

impl FollowerLog for ReplicaLog {
    fn offsets(&self) -> LogOffsets {
        LogOffsets {
            log_start_offset: self.start_offset(),
            high_watermark: self.high_watermark,
            log_end_offset: self.end_offset(),
        }
    }

    fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.epochs.latest()
    }

    fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, i64)> {
        self.epochs.end_offset_for(epoch, self.end_offset())
    }
}
