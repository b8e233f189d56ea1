//! The quorum's log and vote on disk, as the consensus reads and writes them.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{EntryPayload, LogState, OptionalSend, RaftLogReader, StorageIOError};
use parking_lot::Mutex;

use super::log_file::{LogFile, Place};
use super::log_record::{AppliedState, Record, Replayed, Slot, decode, encode, encode_entry, slot};
use super::types::{Entry, LogId, QuorumTypes, StorageError, StoredMembership, Vote};
use crate::metadata::MetadataError;

/// The newest entries are kept in memory, up to so many bytes: the followers that keep up, and the state machine, read
/// nothing else.
const CACHE_BYTES: usize = 1 << 20;
/// At most so much is sent in one request, but at least one entry.
const MAX_READ_BYTES: u64 = 1 << 20;
/// The file is written anew without what is purged when that takes more than this and more than half of it.
const MIN_GARBAGE_BYTES: u64 = 1 << 20;

/// When what was written is forced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// Before it counts: other nodes rely on it.
    Always,
    /// With the next entry of a request. A quorum of one promises nothing to anyone before that.
    WithRequests,
}

/// What is asked for often, and by threads that must not wait for the disk.
#[derive(Debug, Clone, Copy, Default)]
struct Brief {
    vote: Option<Vote>,
    last_log_id: Option<LogId>,
    may_lack_entries: bool,
}

struct Inner {
    file: LogFile,
    durability: Durability,
    vote: Option<Vote>,
    may_lack_entries: bool,
    purged: Option<LogId>,
    /// All entries after `purged`, without a gap.
    slots: VecDeque<Slot>,
    /// The last entries of `slots`.
    cache: VecDeque<Entry>,
    cache_bytes: usize,
    applied: AppliedState,
    live_bytes: u64,
    /// Set after each change. Never locked while something is written.
    brief: Arc<Mutex<Brief>>,
}

/// The log, for the consensus, its readers and the state machine; all see the same.
#[derive(Clone)]
pub(super) struct LogStore {
    inner: Arc<Mutex<Inner>>,
    brief: Arc<Mutex<Brief>>,
}

impl LogStore {
    /// Opens the log in `path`, or makes an empty one. Blocks on the disk.
    pub(super) fn open(path: &Path, durability: Durability) -> Result<Self, MetadataError> {
        let mut state = Replayed::default();
        let file = LogFile::open(path, |content, place| {
            let record = decode(path, content)?;
            state.take(path, record, place)
        })?;
        let brief = Arc::default();
        let inner = Inner {
            file,
            durability,
            vote: state.vote,
            may_lack_entries: state.may_lack_entries,
            purged: state.purged,
            live_bytes: state.slots.iter().map(|slot| slot.place.size_bytes()).sum(),
            slots: state.slots,
            cache: VecDeque::new(),
            cache_bytes: 0,
            applied: state.applied,
            brief: Arc::clone(&brief),
        };
        inner.tell();
        Ok(Self {
            inner: Arc::new(Mutex::new(inner)),
            brief,
        })
    }

    /// Whether it has no entry, and never had one.
    pub(super) fn is_empty(&self) -> bool {
        let inner = self.inner.lock();
        inner.purged.is_none() && inner.slots.is_empty()
    }

    /// Begins a log that is empty: with the entry that says who votes, and a vote that keeps every later epoch above
    /// those that the metadata log has. `may_lack_entries` says that this may be in place of a log that is lost.
    pub(super) fn begin(
        &self,
        first: Entry,
        vote: Vote,
        may_lack_entries: bool,
    ) -> Result<(), MetadataError> {
        let mut inner = self.inner.lock();
        // A start that did not come to its end has left one.
        let vote = inner.vote.unwrap_or(vote);
        let before = [Record::Vote(vote), Record::MayLackEntries(may_lack_entries)];
        inner.append_entries(&before, vec![first])?;
        inner.vote = Some(vote);
        inner.may_lack_entries = may_lack_entries;
        inner.tell();
        inner.sync_unless_lazy()
    }

    /// Whether this node may lack entries that it had a part in agreeing on.
    pub(super) fn may_lack_entries(&self) -> bool {
        self.brief.lock().may_lack_entries
    }

    /// A leader has brought the log up to date: it has every entry that was agreed on.
    pub(super) fn set_up_to_date(&self) -> Result<(), MetadataError> {
        let mut inner = self.inner.lock();
        if !inner.may_lack_entries {
            return Ok(());
        }
        inner.append_records(&[Record::MayLackEntries(false)])?;
        inner.file.sync()?;
        inner.may_lack_entries = false;
        inner.tell();
        Ok(())
    }

    /// Forgets that this node won the vote: it asks again after a start, in an epoch of its own.
    pub(super) fn resign(&self, node: u64) {
        let mut inner = self.inner.lock();
        if let Some(vote) = &mut inner.vote
            && vote.leader_id().voted_for() == Some(node)
        {
            vote.committed = false;
        }
        inner.tell();
    }

    /// The vote.
    pub(super) fn vote(&self) -> Option<Vote> {
        self.brief.lock().vote
    }

    /// The last entry.
    pub(super) fn last_log_id(&self) -> Option<LogId> {
        self.brief.lock().last_log_id
    }

    /// What the state machine had on disk.
    pub(super) fn applied(&self) -> AppliedState {
        self.inner.lock().applied.clone()
    }

    /// Notes what the state machine has on disk. It is not forced to disk itself: an older note is as good, but that
    /// more is applied again.
    pub(super) fn set_applied(&self, applied: AppliedState) -> Result<(), MetadataError> {
        let mut inner = self.inner.lock();
        if inner.applied == applied {
            return Ok(());
        }
        inner.append_records(&[Record::Applied(applied.clone())])?;
        inner.applied = applied;
        Ok(())
    }

    /// Reserves space on disk for entries of so many bytes.
    pub(super) fn reserve(&self, bytes: u64) -> Result<(), MetadataError> {
        self.inner.lock().file.reserve(bytes)
    }

    /// Forces everything to disk.
    pub(super) fn sync(&self) -> Result<(), MetadataError> {
        self.inner.lock().file.sync()
    }

    /// How much of the file is on disk for sure.
    #[cfg(test)]
    pub(super) fn synced(&self) -> u64 {
        self.inner.lock().file.synced()
    }

    /// Index of the first entry that is not purged.
    #[cfg(test)]
    pub(super) fn first_index(&self) -> Option<u64> {
        self.inner.lock().first_index()
    }

    /// Does something while another thread seems to write.
    #[cfg(test)]
    pub(super) fn while_it_is_written<R>(&self, act: impl FnOnce() -> R) -> R {
        let _inner = self.inner.lock();
        act()
    }

    /// Has every write from now on fail.
    #[cfg(test)]
    pub(super) fn fail_writes(&self) {
        self.inner.lock().file.fail_writes();
    }

    /// Where the metadata log of a node ends that has everything up to `index`; -1 when that is not known.
    pub(super) fn end_offset_at(&self, index: u64) -> i64 {
        let inner = self.inner.lock();
        inner.slot(index).map_or(-1, |slot| slot.end_offset)
    }

    /// Who votes, as the newest entry says that does; `None` when none in the log does.
    pub(super) fn membership(&self) -> Result<Option<StoredMembership>, MetadataError> {
        let inner = self.inner.lock();
        for slot in inner.slots.iter().rev() {
            if let EntryPayload::Membership(membership) = inner.entry(slot)?.payload {
                return Ok(Some(StoredMembership::new(Some(slot.log_id), membership)));
            }
        }
        Ok(None)
    }
}

impl Inner {
    fn append_records(&mut self, records: &[Record]) -> Result<Vec<Place>, MetadataError> {
        let contents: Result<Vec<_>, _> = records.iter().map(encode).collect();
        self.file.append(&contents?)
    }

    /// Appends entries, and what is to be there before them, with one write.
    fn append_entries(
        &mut self,
        before: &[Record],
        entries: Vec<Entry>,
    ) -> Result<(), MetadataError> {
        let contents = before.iter().map(encode);
        let contents: Result<Vec<_>, _> =
            contents.chain(entries.iter().map(encode_entry)).collect();
        let places = self.file.append(&contents?)?;
        for (entry, place) in entries
            .into_iter()
            .zip(places.into_iter().skip(before.len()))
        {
            let before = self.slots.back().map_or(-1, |slot| slot.end_offset);
            self.slots.push_back(slot(&entry, place, before));
            self.live_bytes += place.size_bytes();
            self.cache_bytes += place.size_bytes() as usize;
            self.cache.push_back(entry);
        }
        while self.cache_bytes > CACHE_BYTES && self.cache.len() > 1 {
            self.cache.pop_front();
            let oldest = self.slots.len() - self.cache.len() - 1;
            self.cache_bytes -= self.slots[oldest].place.size_bytes() as usize;
        }
        Ok(())
    }

    /// Tells those who do not wait for the disk what has changed.
    fn tell(&self) {
        *self.brief.lock() = Brief {
            vote: self.vote,
            last_log_id: self.last_log_id(),
            may_lack_entries: self.may_lack_entries,
        };
    }

    fn last_log_id(&self) -> Option<LogId> {
        self.slots.back().map(|slot| slot.log_id).or(self.purged)
    }

    fn first_index(&self) -> Option<u64> {
        self.slots.front().map(|slot| slot.log_id.index)
    }

    fn slot(&self, index: u64) -> Option<&Slot> {
        let position = index.checked_sub(self.first_index()?)?;
        self.slots.get(usize::try_from(position).ok()?)
    }

    fn entry(&self, slot: &Slot) -> Result<Entry, MetadataError> {
        let index = slot.log_id.index;
        if let Some(first) = self.cache.front()
            && index >= first.log_id.index
            && let Some(entry) = self.cache.get((index - first.log_id.index) as usize)
        {
            return Ok(entry.clone());
        }
        match decode(Path::new("quorum log"), &self.file.read(slot.place)?)? {
            Record::Entry(entry) if entry.log_id == slot.log_id => Ok(entry),
            other => Err(MetadataError::Corrupt {
                path: "quorum log".to_owned(),
                reason: format!("{other:?} is found in place of entry {index}"),
            }),
        }
    }

    /// The slots of a range of indexes.
    fn range(&self, range: &impl RangeBounds<u64>) -> impl Iterator<Item = &Slot> {
        let first = self.first_index().unwrap_or(0);
        let from = match range.start_bound() {
            Bound::Included(index) => *index,
            Bound::Excluded(index) => index.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(index) => index.saturating_add(1),
            Bound::Excluded(index) => *index,
            Bound::Unbounded => u64::MAX,
        };
        let at = |index: u64| usize::try_from(index.saturating_sub(first)).unwrap_or(usize::MAX);
        let count = at(to).saturating_sub(at(from));
        self.slots.iter().skip(at(from)).take(count)
    }

    fn sync_unless_lazy(&mut self) -> Result<(), MetadataError> {
        match self.durability {
            Durability::Always => self.file.sync(),
            Durability::WithRequests => Ok(()),
        }
    }

    fn save_vote(&mut self, vote: Vote) -> Result<(), MetadataError> {
        // That a vote was won is news for this process alone: after a start it asks again.
        let is_known = self
            .vote
            .is_some_and(|known| known.leader_id() == vote.leader_id());
        self.append_records(&[Record::Vote(vote)])?;
        self.vote = Some(vote);
        self.tell();
        if is_known {
            return Ok(());
        }
        self.sync_unless_lazy()
    }

    fn append(&mut self, entries: Vec<Entry>) -> Result<(), MetadataError> {
        let has_request = entries
            .iter()
            .any(|entry| matches!(entry.payload, EntryPayload::Normal(_)));
        self.append_entries(&[], entries)?;
        self.tell();
        match has_request {
            true => self.file.sync(),
            false => self.sync_unless_lazy(),
        }
    }

    fn truncate(&mut self, from: u64) -> Result<(), MetadataError> {
        self.append_records(&[Record::Truncate(from)])?;
        while self
            .slots
            .back()
            .is_some_and(|slot| slot.log_id.index >= from)
        {
            self.slots.pop_back();
        }
        self.tell();
        self.reset_cache();
        Ok(())
    }

    fn purge(&mut self, upto: LogId) -> Result<(), MetadataError> {
        self.append_records(&[Record::Purge(upto)])?;
        while self
            .slots
            .front()
            .is_some_and(|slot| slot.log_id.index <= upto.index)
        {
            self.slots.pop_front();
        }
        self.purged = Some(upto);
        self.tell();
        self.reset_cache();
        self.live_bytes = self.slots.iter().map(|slot| slot.place.size_bytes()).sum();
        let garbage = self.file.end().saturating_sub(self.live_bytes);
        if garbage <= MIN_GARBAGE_BYTES.max(self.live_bytes) {
            return Ok(());
        }
        match self.rewrite() {
            Err(error) if error.is_storage_full() => {
                tracing::warn!(%error, "no space to write the quorum's log anew, it stays as it is");
                Ok(())
            }
            result => result,
        }
    }

    /// The cache holds the last entries only.
    fn reset_cache(&mut self) {
        self.cache.clear();
        self.cache_bytes = 0;
    }

    /// Writes the file anew without what is gone.
    fn rewrite(&mut self) -> Result<(), MetadataError> {
        let mut contents = Vec::new();
        contents.extend(self.vote.map(|vote| encode(&Record::Vote(vote))));
        contents.push(encode(&Record::MayLackEntries(self.may_lack_entries)));
        contents.push(encode(&Record::Applied(self.applied.clone())));
        contents.extend(self.purged.map(|purged| encode(&Record::Purge(purged))));
        let before = contents.len();
        for slot in &self.slots {
            contents.push(Ok(self.file.read(slot.place)?));
        }
        let contents: Result<Vec<_>, _> = contents.into_iter().collect();
        let places = self.file.rewrite(&contents?)?;
        for (slot, place) in self.slots.iter_mut().zip(&places[before..]) {
            slot.place = *place;
        }
        Ok(())
    }
}

impl RaftLogReader<QuorumTypes> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, StorageError> {
        let inner = self.inner.lock();
        let entries = inner.range(&range).map(|slot| inner.entry(slot));
        let entries: Result<Vec<_>, _> = entries.collect();
        entries.map_err(|error| StorageIOError::read_logs(&error).into())
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, StorageError> {
        let inner = self.inner.lock();
        let mut entries = Vec::new();
        let mut bytes = 0;
        for slot in inner.range(&(start..end)) {
            bytes += slot.place.size_bytes();
            if bytes > MAX_READ_BYTES && !entries.is_empty() {
                break;
            }
            let entry = inner.entry(slot);
            entries.push(entry.map_err(|error| StorageIOError::read_logs(&error))?);
        }
        Ok(entries)
    }
}

impl RaftLogStorage<QuorumTypes> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<QuorumTypes>, StorageError> {
        let inner = self.inner.lock();
        Ok(LogState {
            last_purged_log_id: inner.purged,
            last_log_id: inner.last_log_id(),
        })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let saved = self.inner.lock().save_vote(*vote);
        saved.map_err(|error| StorageIOError::write_vote(&error).into())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(self.vote())
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<QuorumTypes>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let appended = self.inner.lock().append(entries.into_iter().collect());
        appended.map_err(|error| StorageIOError::write_logs(&error))?;
        callback.log_io_completed(Ok(()));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let truncated = self.inner.lock().truncate(log_id.index);
        truncated.map_err(|error| StorageIOError::write_logs(&error).into())
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let purged = self.inner.lock().purge(log_id);
        purged.map_err(|error| StorageIOError::write_logs(&error).into())
    }
}
