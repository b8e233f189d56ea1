//! What controllers say to each other: the messages of the consensus in Kafka's frames, on the controller listener, under
//! an api key that ApiVersions does not tell of.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use openraft::error::{InstallSnapshotError, RaftError, SnapshotMismatch};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{EntryPayload, SnapshotSegmentId};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::election::Electorate;
use super::log_store::LogStore;
use super::room::Room;
use super::types::{Entry, LogId, QuorumTypes, Raft};
use crate::metadata::MetadataError;

/// The api key of messages between controllers: none of Kafka's.
pub(crate) const QUORUM_API_KEY: i16 = 0x4857;
/// The version of the messages.
pub(super) const QUORUM_API_VERSION: i16 = 0;
/// Longest snapshot that is received: more than any cluster's metadata.
const MAX_SNAPSHOT_BYTES: u64 = 4 << 30;

/// A message, with whom it is from and for: an address may lead to another node than the sender believes.
#[derive(Serialize, Deserialize)]
pub(super) struct Envelope {
    pub(super) cluster_id: String,
    pub(super) sender: u64,
    pub(super) target: u64,
    pub(super) message: Message,
}

#[derive(Serialize, Deserialize)]
pub(super) enum Message {
    AppendEntries(AppendEntriesRequest<QuorumTypes>),
    Vote(VoteRequest<u64>),
    InstallSnapshot(InstallSnapshotRequest<QuorumTypes>),
    /// Whether the node would vote for one whose log ends so.
    PreVote(Option<LogId>),
    /// Whether the node can be heard. It does not take this for a sign of a leader.
    Ping,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    AppendEntries(AppendEntriesResponse<u64>),
    Vote(VoteResponse<u64>),
    InstallSnapshot(InstallSnapshotResponse<u64>),
    PreVote(bool),
    /// The part does not continue what was received: begin again.
    SnapshotMismatch(SnapshotMismatch),
    /// The node takes no message now, or not this one; says why.
    Refused(String),
    Ping,
}

/// The frame of a message, with its length.
pub(super) fn request_frame(correlation_id: i32, body: &[u8]) -> Bytes {
    // Key, version, correlation id, and a client id that is null.
    const HEADER_BYTES: usize = 10;
    let mut frame = BytesMut::with_capacity(4 + HEADER_BYTES + body.len());
    frame.put_u32((HEADER_BYTES + body.len()) as u32);
    frame.put_i16(QUORUM_API_KEY);
    frame.put_i16(QUORUM_API_VERSION);
    frame.put_i32(correlation_id);
    frame.put_i16(-1);
    frame.put_slice(body);
    frame.freeze()
}

/// Takes the messages of other controllers.
pub struct QuorumServer {
    raft: Raft,
    electorate: Electorate,
    cluster_id: Arc<str>,
    room: Arc<Room>,
    /// The snapshot that is being received, and how much of it is there.
    receiving: Mutex<Option<(String, u64)>>,
}

impl std::fmt::Debug for QuorumServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuorumServer")
            .field("node", &self.electorate.node)
            .finish_non_exhaustive()
    }
}

impl QuorumServer {
    pub(super) fn new(
        raft: Raft,
        electorate: Electorate,
        cluster_id: Arc<str>,
        room: Arc<Room>,
    ) -> Self {
        Self {
            raft,
            electorate,
            cluster_id,
            room,
            receiving: Mutex::default(),
        }
    }

    /// How much of the quorum's log is on disk for sure.
    #[cfg(test)]
    pub(super) fn synced(&self) -> u64 {
        self.room.synced()
    }

    /// Index of the first entry in the quorum's log.
    #[cfg(test)]
    pub(super) fn first_index(&self) -> Option<u64> {
        self.electorate.store.first_index()
    }

    /// The disk as it is to seem to those who reserve space.
    #[cfg(test)]
    pub(super) fn full_disk(&self) -> &super::room::full_disk::FullDisk {
        self.room.full_disk()
    }

    /// Has every write to the quorum's log fail from now on.
    #[cfg(test)]
    pub(in crate::controller) fn fail_writes(&self) {
        self.room.fail_writes();
    }

    /// Answers the message in `body`, what follows the header of a request.
    ///
    /// # Errors
    /// When the message does not parse.
    pub async fn handle(&self, api_version: i16, body: &[u8]) -> Result<Vec<u8>, String> {
        if api_version != QUORUM_API_VERSION {
            return Err(format!("version {api_version} is of another release"));
        }
        let envelope: Envelope = postcard::from_bytes(body).map_err(|error| error.to_string())?;
        let answer = self.answer(envelope).await;
        postcard::to_stdvec(&answer).map_err(|error| error.to_string())
    }

    async fn answer(&self, envelope: Envelope) -> Answer {
        if *envelope.cluster_id != *self.cluster_id {
            return Answer::Refused(format!("this is cluster {}", self.cluster_id));
        }
        let node = self.electorate.node;
        if envelope.target != node {
            return Answer::Refused(format!("this is node {node}"));
        }
        match envelope.message {
            Message::AppendEntries(request) => self.append_entries(request).await,
            Message::Vote(request) => self.vote(request).await,
            Message::Ping => Answer::Ping,
            Message::PreVote(last_log_id) => {
                Answer::PreVote(self.electorate.would_vote(&self.raft, last_log_id))
            }
            Message::InstallSnapshot(request) => self.install_snapshot(request).await,
        }
    }

    async fn vote(&self, request: VoteRequest<u64>) -> Answer {
        let electorate = &self.electorate;
        if !electorate.may_vote_for(request.last_log_id) {
            tracing::warn!(
                "no vote: the quorum's log of this node was begun anew, and no leader has brought it up to date yet"
            );
            let vote = electorate.store.vote().unwrap_or_default();
            let refusal = VoteResponse::new(vote, electorate.store.last_log_id(), false);
            return Answer::Vote(refusal);
        }
        if electorate.is_first_election(request.last_log_id)
            && let Err(error) = self.on_disk(|_, store| store.set_up_to_date()).await
        {
            tracing::error!(%error, "no vote, the quorum's log cannot be written");
            return Answer::Refused(error);
        }
        match self.raft.vote(request).await {
            Ok(response) => {
                if response.vote_granted {
                    electorate.contact.touch();
                    electorate.lease.on_term(response.vote.leader_id().term);
                }
                Answer::Vote(response)
            }
            Err(error) => Answer::Refused(error.to_string()),
        }
    }

    /// Does on a thread that may wait for the disk what must not be done on those of the network.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Room, &LogStore) -> Result<T, MetadataError> + Send + 'static,
    ) -> Result<T, String> {
        let (room, store) = (Arc::clone(&self.room), self.electorate.store.clone());
        let done = tokio::task::spawn_blocking(move || work(&room, &store)).await;
        match done {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Notes that a leader has brought this node up to date, once it has.
    async fn note_up_to_date(&self, term: u64, last: Option<LogId>, committed: Option<LogId>) {
        // What was agreed on before is known to be with the first entry of the leader's own term.
        let is_up_to_date = committed
            .is_some_and(|committed| committed.leader_id.term == term && Some(committed) <= last);
        if !is_up_to_date || !self.electorate.store.may_lack_entries() {
            return;
        }
        match self.on_disk(|_, store| store.set_up_to_date()).await {
            Ok(()) => tracing::info!("the quorum's log of this node is up to date, it votes now"),
            // The next message tries again.
            Err(error) => tracing::error!(%error, "the quorum's log cannot be written"),
        }
    }

    async fn append_entries(&self, request: AppendEntriesRequest<QuorumTypes>) -> Answer {
        if !is_continuous(request.prev_log_id, &request.entries) {
            return Answer::Refused("the entries have a gap".to_owned());
        }
        if !request.entries.is_empty() {
            let bytes = request.entries.iter().map(size_bytes).sum();
            // What the leader had space for is not refused lightly: what is kept back is for such a day.
            if let Err(error) = self.on_disk(move |room, _| room.reserve(bytes, true)).await {
                tracing::error!(%error, "no space for what the active controller writes");
                return Answer::Refused(error);
            }
        }
        let (term, committed) = (request.vote.leader_id().term, request.leader_commit);
        let last = request.entries.last().map(|entry| entry.log_id);
        let last = last.or(request.prev_log_id);
        match self.raft.append_entries(request).await {
            Ok(response) => {
                // Its sender leads, unless another does in a later term.
                if !matches!(response, AppendEntriesResponse::HigherVote(_)) {
                    self.electorate.contact.touch();
                }
                if response.is_success() {
                    self.note_up_to_date(term, last, committed).await;
                }
                Answer::AppendEntries(response)
            }
            Err(error) => Answer::Refused(error.to_string()),
        }
    }

    async fn install_snapshot(&self, request: InstallSnapshotRequest<QuorumTypes>) -> Answer {
        let (id, offset) = (request.meta.snapshot_id.clone(), request.offset);
        let end = offset.saturating_add(request.data.len() as u64);
        if let Err(expected) = self.check_part(&id, offset, end) {
            let segment = |offset| SnapshotSegmentId {
                id: id.clone(),
                offset,
            };
            return Answer::SnapshotMismatch(SnapshotMismatch {
                expect: segment(expected),
                got: segment(offset),
            });
        }
        match self.raft.install_snapshot(request).await {
            Ok(response) => {
                self.electorate.contact.touch();
                *self.receiving.lock() = Some((id, end));
                Answer::InstallSnapshot(response)
            }
            Err(RaftError::APIError(InstallSnapshotError::SnapshotMismatch(mismatch))) => {
                Answer::SnapshotMismatch(mismatch)
            }
            Err(error) => Answer::Refused(error.to_string()),
        }
    }

    /// A part must begin where the last one ended, or at the start: the place that it claims decides over memory.
    fn check_part(&self, id: &str, offset: u64, end: u64) -> Result<(), u64> {
        let receiving = self.receiving.lock();
        let received = match &*receiving {
            Some((known, received)) if known == id => *received,
            _ => 0,
        };
        let fits = offset == 0 || offset <= received;
        (fits && end <= MAX_SNAPSHOT_BYTES).then_some(()).ok_or(0)
    }
}

/// Whether each entry follows the one before.
fn is_continuous(prev_log_id: Option<LogId>, entries: &[Entry]) -> bool {
    let first = prev_log_id.map_or(0, |log_id| log_id.index + 1);
    (first..)
        .zip(entries)
        .all(|(index, entry)| entry.log_id.index == index)
}

/// What an entry takes on disk, not less.
fn size_bytes(entry: &Entry) -> u64 {
    const OVERHEAD_BYTES: u64 = 1024;
    match &entry.payload {
        EntryPayload::Normal(entry) => entry.batches.len() as u64 + OVERHEAD_BYTES,
        _ => OVERHEAD_BYTES,
    }
}
