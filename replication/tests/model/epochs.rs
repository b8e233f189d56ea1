//! A log's leader epochs in memory, by the rules of Kafka's `LeaderEpochFileCache`. The storage crate's own cache keeps
//! a file; the simulation needs one that costs nothing.

use highwater_storage::LeaderEpoch;

/// Where each epoch begins; epochs and offsets both ascend strictly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Epochs {
    entries: Vec<(LeaderEpoch, i64)>,
}

impl Epochs {
    /// Notes that `epoch` begins at `start_offset`, dropping what contradicts it.
    pub(crate) fn assign(&mut self, epoch: LeaderEpoch, start_offset: i64) {
        let is_news = self
            .entries
            .last()
            .is_none_or(|last| epoch != last.0 || start_offset < last.1);
        if is_news {
            self.entries
                .retain(|known| known.0 < epoch && known.1 < start_offset);
            self.entries.push((epoch, start_offset));
        }
    }

    /// Drops the epochs that begin at `end_offset` or later.
    pub(crate) fn truncate_from_end(&mut self, end_offset: i64) {
        self.entries.retain(|entry| entry.1 < end_offset);
    }

    /// Drops what lies before `start_offset`; the epoch in which it lies begins there now.
    pub(crate) fn truncate_from_start(&mut self, start_offset: i64) {
        let before = self
            .entries
            .partition_point(|entry| entry.1 <= start_offset);
        if before > 0 {
            self.entries.drain(..before - 1);
            self.entries[0].1 = start_offset;
        }
    }

    /// The newest epoch.
    pub(crate) fn latest(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|entry| entry.0)
    }

    /// All of them, in order.
    pub(crate) fn entries(&self) -> &[(LeaderEpoch, i64)] {
        &self.entries
    }

    /// The largest epoch not above `epoch`, and where it ends.
    pub(crate) fn end_offset_for(
        &self,
        epoch: LeaderEpoch,
        log_end_offset: i64,
    ) -> Option<(LeaderEpoch, i64)> {
        if self.latest()? == epoch {
            return Some((epoch, log_end_offset));
        }
        let later = self.entries.iter().position(|entry| entry.0 > epoch)?;
        let floor = later.checked_sub(1).map_or(epoch, |at| self.entries[at].0);
        Some((floor, self.entries[later].1))
    }
}
