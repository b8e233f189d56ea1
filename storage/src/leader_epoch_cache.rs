//! Which leader epoch begins at which offset (KIP-101, KIP-279), kept in `leader-epoch-checkpoint`.
//!
//! Epochs and start offsets both ascend strictly. The file has an epoch before the first record of it is
//! appended; it is forced to disk before the recovery point passes that record, since recovery finds the epochs
//! of later records in the batches. An epoch that has no records yet begins at the log's end, and a start drops
//! such epochs anyway, so it is not written for its own sake.

use std::path::{Path, PathBuf};

use crate::checkpoint::{Durability, read_leader_epochs, sync_leader_epochs, write_leader_epochs};
use crate::errors::StorageError;
use crate::types::LeaderEpoch;

/// Where an epoch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EpochEntry {
    pub(crate) epoch: i32,
    pub(crate) start_offset: i64,
}

/// The epochs of one log.
#[derive(Debug)]
pub(crate) struct LeaderEpochCache {
    partition_dir: PathBuf,
    entries: Vec<EpochEntry>,
    /// Whether the file lacks the newest state.
    file_is_stale: bool,
    /// Whether the file may be lost in a power cut.
    file_is_unsynced: bool,
}

impl LeaderEpochCache {
    /// Reads the checkpoint in `partition_dir`. A damaged one is an empty one, and reported; the epochs that have
    /// records come back from those.
    pub(crate) fn open(partition_dir: &Path) -> Result<Self, StorageError> {
        let mut cache = Self {
            partition_dir: partition_dir.to_owned(),
            entries: Vec::new(),
            file_is_stale: false,
            file_is_unsynced: false,
        };
        match read_leader_epochs(partition_dir) {
            Ok(entries) => {
                for (epoch, start_offset) in entries {
                    cache.insert(EpochEntry {
                        epoch,
                        start_offset,
                    });
                }
            }
            Err(error @ StorageError::Corrupt { .. }) => {
                tracing::warn!(%error, "going on without a leader epoch checkpoint");
                cache.file_is_stale = true;
            }
            Err(error) => return Err(error),
        }
        Ok(cache)
    }

    /// Puts an entry at the end, after dropping what it contradicts.
    fn insert(&mut self, entry: EpochEntry) {
        let keep = self.entries.partition_point(|known| {
            known.epoch < entry.epoch && known.start_offset < entry.start_offset
        });
        self.entries.truncate(keep);
        self.entries.push(entry);
    }

    fn write(&mut self, durability: Durability) -> Result<(), StorageError> {
        self.file_is_stale = true;
        let entries: Vec<_> = self
            .entries
            .iter()
            .map(|entry| (entry.epoch, entry.start_offset))
            .collect();
        write_leader_epochs(&self.partition_dir, &entries, durability)?;
        self.file_is_stale = false;
        self.file_is_unsynced = durability == Durability::Cached;
        Ok(())
    }

    /// Whether `epoch` starting at `start_offset` would change anything.
    pub(crate) fn is_news(&self, epoch: LeaderEpoch, start_offset: i64) -> bool {
        self.entries
            .last()
            .is_none_or(|last| epoch.0 != last.epoch || start_offset < last.start_offset)
    }

    /// Whether a record of `epoch` at `start_offset` must not be appended before [`Self::before_append`].
    pub(crate) fn is_write_due(&self, epoch: LeaderEpoch, start_offset: i64) -> bool {
        self.file_is_stale || self.is_news(epoch, start_offset)
    }

    /// Notes that `epoch` begins at `start_offset` and writes the file; it survives the end of this process.
    pub(crate) fn before_append(
        &mut self,
        epoch: LeaderEpoch,
        start_offset: i64,
    ) -> Result<(), StorageError> {
        self.assign(epoch, start_offset);
        if self.file_is_stale {
            self.write(Durability::Cached)?;
        }
        Ok(())
    }

    /// Notes that `epoch` begins at `start_offset`.
    pub(crate) fn assign(&mut self, epoch: LeaderEpoch, start_offset: i64) {
        if self.is_news(epoch, start_offset) {
            self.insert(EpochEntry {
                epoch: epoch.0,
                start_offset,
            });
            self.file_is_stale = true;
        }
    }

    /// Drops the epochs that begin at `end_offset` or later.
    pub(crate) fn truncate_from_end(&mut self, end_offset: i64) {
        let keep = self
            .entries
            .partition_point(|entry| entry.start_offset < end_offset);
        if keep < self.entries.len() {
            self.entries.truncate(keep);
            self.file_is_stale = true;
        }
    }

    /// Drops what lies before `start_offset`; the epoch in which it lies begins there now.
    pub(crate) fn truncate_from_start(&mut self, start_offset: i64) {
        let before = self
            .entries
            .partition_point(|entry| entry.start_offset <= start_offset);
        if before == 0 || (before == 1 && self.entries[0].start_offset == start_offset) {
            return;
        }
        self.entries.drain(..before - 1);
        self.entries[0].start_offset = start_offset;
        self.file_is_stale = true;
    }

    /// Forgets all epochs.
    pub(crate) fn clear(&mut self) {
        self.file_is_stale |= !self.entries.is_empty();
        self.entries.clear();
    }

    /// Drops what a log that begins at `start_offset` and ends at `end_offset` cannot have. The file may keep it
    /// until the next append: a start drops it again.
    pub(crate) fn trim(&mut self, start_offset: i64, end_offset: i64) {
        self.truncate_from_end(end_offset);
        self.truncate_from_start(start_offset);
    }

    /// Whether [`Self::flush`] would do something.
    pub(crate) fn is_flush_due(&self) -> bool {
        self.file_is_stale || self.file_is_unsynced
    }

    /// Forces the file to disk, with all that is known.
    pub(crate) fn flush(&mut self) -> Result<(), StorageError> {
        if self.file_is_stale {
            self.write(Durability::Synced)?;
        } else if self.file_is_unsynced {
            // Written before: that takes no space any more.
            sync_leader_epochs(&self.partition_dir)?;
            self.file_is_unsynced = false;
        }
        Ok(())
    }

    /// The newest epoch.
    pub(crate) fn latest(&self) -> Option<EpochEntry> {
        self.entries.last().copied()
    }

    /// All epochs, in order.
    pub(crate) fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The largest epoch not above `epoch` and the offset where it ends, which is `log_end_offset` for the newest
    /// one. An epoch before all known ones ends where the first known one begins.
    pub(crate) fn end_offset_for(
        &self,
        epoch: LeaderEpoch,
        log_end_offset: i64,
    ) -> Option<(LeaderEpoch, i64)> {
        if epoch.0 < 0 {
            return None;
        }
        if self.entries.last()?.epoch == epoch.0 {
            return Some((epoch, log_end_offset));
        }
        let later = self.entries.partition_point(|entry| entry.epoch <= epoch.0);
        // No later epoch: the one asked for is not known here yet.
        let end_offset = self.entries.get(later)?.start_offset;
        Some(match later.checked_sub(1) {
            None => (epoch, end_offset),
            Some(floor) => (LeaderEpoch(self.entries[floor].epoch), end_offset),
        })
    }

    /// The epoch that `offset` lies in.
    pub(crate) fn epoch_for_offset(&self, offset: i64) -> Option<LeaderEpoch> {
        let after = self
            .entries
            .partition_point(|entry| entry.start_offset <= offset);
        Some(LeaderEpoch(self.entries[after.checked_sub(1)?].epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(entries: &[(i32, i64)]) -> (tempfile::TempDir, LeaderEpochCache) {
        let dir = tempfile::tempdir().expect("a directory");
        let mut cache = LeaderEpochCache::open(dir.path()).expect("no file");
        for (epoch, start) in entries {
            cache
                .before_append(LeaderEpoch(*epoch), *start)
                .expect("written");
        }
        (dir, cache)
    }

    fn entries(cache: &LeaderEpochCache) -> Vec<(i32, i64)> {
        let pair = |entry: &EpochEntry| (entry.epoch, entry.start_offset);
        cache.entries().iter().map(pair).collect()
    }

    #[test]
    fn an_epoch_with_records_is_in_the_file() {
        let (dir, _cache) = cache(&[(0, 0), (2, 10)]);
        let again = LeaderEpochCache::open(dir.path()).expect("read");
        assert_eq!(entries(&again), vec![(0, 0), (2, 10)]);
    }

    #[test]
    fn an_epoch_displaces_what_it_contradicts() {
        assert_eq!(entries(&cache(&[(0, 0), (0, 5)]).1), vec![(0, 0)]);
        assert_eq!(
            entries(&cache(&[(0, 0), (1, 5), (2, 5)]).1),
            vec![(0, 0), (2, 5)]
        );
        assert_eq!(
            entries(&cache(&[(0, 0), (3, 5), (2, 7)]).1),
            vec![(0, 0), (2, 7)]
        );
        assert_eq!(entries(&cache(&[(0, 4), (0, 2)]).1), vec![(0, 2)]);
    }

    #[test]
    fn end_offsets_follow_the_rules_of_kip_279() {
        let (_dir, cache) = cache(&[(2, 10), (4, 20), (5, 30)]);
        let end = |epoch| {
            cache
                .end_offset_for(LeaderEpoch(epoch), 40)
                .map(|(e, o)| (e.0, o))
        };
        assert_eq!(end(-1), None);
        assert_eq!(end(1), Some((1, 10)));
        assert_eq!(end(2), Some((2, 20)));
        assert_eq!(end(3), Some((2, 20)));
        assert_eq!(end(4), Some((4, 30)));
        assert_eq!(end(5), Some((5, 40)));
        assert_eq!(end(6), None);
    }

    #[test]
    fn truncation_drops_epochs_that_wrote_nothing() {
        let (_dir, mut cache) = cache(&[(2, 10), (4, 20), (5, 30)]);
        cache.truncate_from_end(30);
        assert_eq!(entries(&cache), vec![(2, 10), (4, 20)]);
        cache.truncate_from_start(15);
        assert_eq!(entries(&cache), vec![(2, 15), (4, 20)]);
        cache.truncate_from_start(20);
        assert_eq!(entries(&cache), vec![(4, 20)]);
        cache.truncate_from_start(5);
        assert_eq!(entries(&cache), vec![(4, 20)]);
    }

    #[test]
    fn a_damaged_file_is_replaced() {
        let (dir, _cache) = cache(&[(1, 0)]);
        std::fs::write(dir.path().join("leader-epoch-checkpoint"), "0\n9\n").expect("written");
        let mut again = LeaderEpochCache::open(dir.path()).expect("tolerated");
        assert_eq!(again.latest(), None);
        again.assign(LeaderEpoch(1), 0);
        again.flush().expect("written");
        let again = LeaderEpochCache::open(dir.path()).expect("read");
        assert_eq!(entries(&again), vec![(1, 0)]);
    }

    #[test]
    fn the_epoch_of_an_offset_is_the_last_that_begins_before() {
        let (_dir, cache) = cache(&[(2, 10), (4, 20)]);
        let epoch = |offset| cache.epoch_for_offset(offset).map(|epoch| epoch.0);
        assert_eq!(
            (epoch(9), epoch(10), epoch(19), epoch(25)),
            (None, Some(2), Some(2), Some(4))
        );
    }
}
