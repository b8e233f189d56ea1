//! Entries that are agreed on go into the metadata log. Nothing is decided here: every controller comes to the same log.
//!
//! An entry is appended when the log ends where its requests were judged, and changes nothing otherwise. After a crash
//! entries are applied again from the last one that is known to be on disk; what the log has already, by its offsets
//! and epoch, stays as it is.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use highwater_replication::cluster::{ClusterDelta, ClusterImage};
use highwater_storage::LeaderEpoch;
use openraft::storage::{RaftStateMachine, Snapshot, SnapshotMeta};
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder, StorageIOError};
use parking_lot::Mutex;

use super::log_record::AppliedState;
use super::log_store::LogStore;
use super::snapshot_meta::SnapshotMetaFile;
use super::types::{
    Applied, Entry, LogId, MetadataEntry, QuorumTypes, StorageError, StoredMembership, epoch_of,
};
use crate::controller::reserve::Reserve;
use crate::controller::writer::now_ms;
use crate::metadata::snapshot::write_durably;
use crate::metadata::{MetadataError, MetadataReplica, batches_from};

/// How long a controller whose disk is full rests before it tries again to apply what the quorum has agreed on.
const FULL_DISK_PAUSE: Duration = Duration::from_secs(1);

/// A new image, for those who act on it. Gives word of it on the thread of the consensus, and must not block it long.
pub(in crate::controller) type OnImage = Box<dyn Fn(Arc<ClusterImage>, ClusterDelta) + Send + Sync>;

/// The metadata with the place in the quorum's log that it is at.
struct State {
    replica: MetadataReplica,
    last_applied: Option<LogId>,
    membership: StoredMembership,
    snapshot: Option<SnapshotMetaFile>,
    reserve: Arc<Mutex<Reserve>>,
    on_image: OnImage,
}

/// The state machine of the consensus.
#[derive(Clone)]
pub(super) struct StateMachine {
    state: Arc<Mutex<State>>,
    store: LogStore,
}

impl StateMachine {
    /// The state machine that writes to `replica`. Blocks on the disk.
    pub(super) fn open(
        replica: MetadataReplica,
        store: LogStore,
        reserve: Arc<Mutex<Reserve>>,
        on_image: OnImage,
    ) -> Result<Self, MetadataError> {
        let AppliedState {
            mut last_applied,
            mut membership,
        } = store.applied();
        let snapshot = SnapshotMetaFile::read(replica.dir())?;
        // The snapshot was on disk before it was noted that its entries are applied.
        if let Some(meta) = &snapshot
            && meta.last_log_id > last_applied
            && replica.image().offset() + 1 >= meta.end_offset
        {
            last_applied = meta.last_log_id;
            membership = meta.membership.clone();
        }
        let state = State {
            replica,
            last_applied,
            membership,
            snapshot,
            reserve,
            on_image,
        };
        Ok(Self {
            state: Arc::new(Mutex::new(state)),
            store,
        })
    }

    /// Whether a snapshot is due: more than so many bytes were logged since the last one.
    pub(super) fn is_snapshot_due(&self, max_bytes: u64) -> bool {
        let state = self.state.lock();
        state.replica.bytes_since_snapshot() >= max_bytes && !state.replica.in_transaction()
    }

    /// The metadata as of the last entry.
    #[cfg(test)]
    pub(super) fn image(&self) -> Arc<ClusterImage> {
        Arc::clone(self.state.lock().replica.image())
    }

    /// Who votes, as of the last entry.
    pub(super) fn membership(&self) -> StoredMembership {
        self.state.lock().membership.clone()
    }

    /// Whether the metadata log ends inside a transaction.
    pub(super) fn in_transaction(&self) -> bool {
        self.state.lock().replica.in_transaction()
    }

    /// Forces the metadata log to disk and notes how far it is, so that the next start has nothing to apply again.
    pub(super) fn close(&self) -> Result<(), MetadataError> {
        let state = self.state.lock();
        state.replica.log().flush()?;
        self.store.set_applied(AppliedState {
            last_applied: state.last_applied,
            membership: state.membership.clone(),
        })
    }

    /// Does `work`; when the disk is full, does it again until there is space. What the quorum has agreed on cannot be
    /// refused any more.
    async fn when_there_is_space<T>(
        &self,
        mut work: impl FnMut(&mut State) -> Result<T, MetadataError>,
    ) -> Result<T, MetadataError> {
        let mut is_first_try = true;
        loop {
            let error = match work(&mut self.state.lock()) {
                Err(error) if error.is_storage_full() => error,
                result => return result,
            };
            if is_first_try {
                tracing::error!(%error, "no space for metadata, waiting for some");
                is_first_try = false;
            }
            tokio::time::sleep(FULL_DISK_PAUSE).await;
        }
    }
}

impl State {
    fn apply(&mut self, entry: &Entry) -> Result<Applied, MetadataError> {
        let applied = match &entry.payload {
            EntryPayload::Blank => Applied::Stale,
            EntryPayload::Membership(membership) => {
                self.membership = StoredMembership::new(Some(entry.log_id), membership.clone());
                Applied::Stale
            }
            EntryPayload::Normal(metadata) => {
                self.append(epoch_of(entry.log_id.leader_id.term), metadata)?
            }
        };
        self.last_applied = Some(entry.log_id);
        Ok(applied)
    }

    fn append(&mut self, epoch: i32, entry: &MetadataEntry) -> Result<Applied, MetadataError> {
        let next_offset = self.replica.image().offset() + 1;
        if epoch != entry.epoch || entry.base_offset > next_offset {
            return Ok(Applied::Stale);
        }
        let missing = if entry.base_offset == next_offset {
            entry.batches.clone()
        } else if self.has_batches_of(entry, epoch) {
            if entry.end_offset <= next_offset {
                return Ok(Applied::Appended);
            }
            // A crash left the log in the middle of the entry.
            batches_from(&entry.batches, next_offset)?
                .ok_or_else(|| self.corrupt("the log ends inside a batch of an entry"))?
        } else {
            return Ok(Applied::Stale);
        };
        let delta = self.append_batches(&missing, epoch)?;
        (self.on_image)(Arc::clone(self.replica.image()), delta);
        Ok(Applied::Appended)
    }

    /// Whether what the log has at the entry's offset is of this entry: a controller gives each offset of its epoch to
    /// one entry only.
    fn has_batches_of(&self, entry: &MetadataEntry, epoch: i32) -> bool {
        let log = self.replica.log();
        entry.base_offset < log.log_start_offset()
            || log.epoch_for_offset(entry.base_offset) == Some(LeaderEpoch(epoch))
    }

    fn append_batches(
        &mut self,
        batches: &Bytes,
        epoch: i32,
    ) -> Result<ClusterDelta, MetadataError> {
        let now_ms = now_ms();
        let replica = &mut self.replica;
        let mut reserve = self.reserve.lock();
        reserve.write_when_full(|| replica.append(batches, epoch, now_ms))
    }

    fn meta(meta: &SnapshotMetaFile) -> SnapshotMeta<u64, ()> {
        SnapshotMeta {
            last_log_id: meta.last_log_id,
            last_membership: meta.membership.clone(),
            snapshot_id: encode_id(meta),
        }
    }

    fn build_snapshot(&mut self) -> Result<Snapshot<QuorumTypes>, MetadataError> {
        let (end_offset, epoch) = match self.replica.write_snapshot(now_ms())? {
            Some(id) => (id.end_offset, id.epoch),
            None if self.replica.image().offset() < 0 => (0, 0),
            None => return Err(self.corrupt("a snapshot is asked for inside a transaction")),
        };
        let meta = SnapshotMetaFile {
            end_offset,
            epoch,
            last_log_id: self.last_applied,
            membership: self.membership.clone(),
        };
        meta.write(self.replica.dir())?;
        self.snapshot = Some(meta);
        let snapshot = self.current_snapshot()?;
        snapshot.ok_or_else(|| self.corrupt("the snapshot that was just written is not there"))
    }

    fn current_snapshot(&self) -> Result<Option<Snapshot<QuorumTypes>>, MetadataError> {
        let Some(meta) = &self.snapshot else {
            return Ok(None);
        };
        let content = match meta.end_offset {
            // Nothing is in the metadata log yet.
            0 => Bytes::new(),
            _ => {
                let log = self.replica.metadata_log();
                match log.read_snapshot(&meta.snapshot_id(), 0, usize::MAX)? {
                    Some(whole) => whole.bytes,
                    None => return Ok(None),
                }
            }
        };
        Ok(Some(Snapshot {
            meta: Self::meta(meta),
            snapshot: Box::new(Cursor::new(content.into())),
        }))
    }

    fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta<u64, ()>,
        content: Bytes,
    ) -> Result<(), MetadataError> {
        let file = decode_id(&meta.snapshot_id)
            .map(|(end_offset, epoch)| SnapshotMetaFile {
                end_offset,
                epoch,
                last_log_id: meta.last_log_id,
                membership: meta.last_membership.clone(),
            })
            .ok_or_else(|| self.corrupt("the snapshot that was received has no valid id"))?;
        if file.end_offset > self.replica.image().offset() + 1 {
            let id = file.snapshot_id();
            let replica = &mut self.replica;
            let mut reserve = self.reserve.lock();
            let delta = reserve.write_when_full(|| replica.install_snapshot(&id, &content))?;
            drop(reserve);
            (self.on_image)(Arc::clone(self.replica.image()), delta);
        } else if file.end_offset > 0 {
            // A crash had lost how far the log was. It is kept for others who need one.
            write_durably(
                &file.snapshot_id().path(self.replica.dir()),
                "part",
                &content,
            )?;
        }
        file.write(self.replica.dir())?;
        self.last_applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        self.snapshot = Some(file);
        Ok(())
    }

    fn corrupt(&self, reason: &str) -> MetadataError {
        MetadataError::Corrupt {
            path: self.replica.dir().display().to_string(),
            reason: reason.to_owned(),
        }
    }
}

/// The id of a snapshot as the consensus carries it: what Kafka calls it, and the entry it ends with.
fn encode_id(meta: &SnapshotMetaFile) -> String {
    let index = meta.last_log_id.map_or(0, |log_id| log_id.index);
    format!("{}-{}-{index}", meta.end_offset, meta.epoch)
}

fn decode_id(id: &str) -> Option<(i64, i32)> {
    let mut parts = id.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

impl RaftStateMachine<QuorumTypes> for StateMachine {
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), StorageError> {
        let state = self.state.lock();
        Ok((state.last_applied, state.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Applied>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut results = Vec::new();
        for entry in entries {
            let applied = self.when_there_is_space(|state| state.apply(&entry)).await;
            let failed = |error| StorageIOError::apply(entry.log_id, &error);
            results.push(applied.map_err(failed)?);
        }
        Ok(results)
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        self.clone()
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta<u64, ()>,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let content = Bytes::from(snapshot.into_inner());
        let installed = self
            .when_there_is_space(|state| state.install_snapshot(meta, content.clone()))
            .await;
        let failed = |error| StorageIOError::write_snapshot(Some(meta.signature()), &error);
        installed.map_err(|error| failed(error).into())
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> Result<Option<Snapshot<QuorumTypes>>, StorageError> {
        let snapshot = self.state.lock().current_snapshot();
        snapshot.map_err(|error| StorageIOError::read_snapshot(None, &error).into())
    }
}

impl RaftSnapshotBuilder<QuorumTypes> for StateMachine {
    async fn build_snapshot(&mut self) -> Result<Snapshot<QuorumTypes>, StorageError> {
        let snapshot = self.when_there_is_space(State::build_snapshot).await;
        snapshot.map_err(|error| StorageIOError::write_snapshot(None, &error).into())
    }
}
