//! The way to the other controllers: one connection for each direction of work, made when it is needed.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use openraft::error::{
    InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Unreachable,
};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::lease::Lease;
use super::log_store::LogStore;
use super::rpc::{Answer, Envelope, Message, request_frame};
use super::types::{LogId, QuorumTypes, node_id, raft_id};
use crate::config::QuorumVoter;
use crate::controller::QuorumView;
use crate::controller::writer::now_ms;

/// The longest answer: none carries more than a vote and the name of a snapshot.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// How long a controller rests that could not reach another, at most.
const MAX_BACKOFF: Duration = Duration::from_millis(500);

/// Makes connections to the other controllers.
#[derive(Clone)]
pub(super) struct QuorumNetwork {
    pub(super) cluster_id: Arc<str>,
    pub(super) voters: BTreeMap<u64, QuorumVoter>,
    pub(super) view: Arc<QuorumView>,
    pub(super) store: LogStore,
    /// `controller.quorum.retry.backoff.ms`: the first rest after a failure.
    pub(super) retry_backoff: Duration,
    pub(super) reachable: Reachable,
    /// What this node may do while it leads.
    pub(super) lease: Arc<Lease>,
}

/// Which controllers answer, so that the log tells of it once when it changes. None is known at first.
#[derive(Clone, Default)]
pub(super) struct Reachable(Arc<Mutex<BTreeMap<u64, bool>>>);

impl Reachable {
    fn note(&self, target: u64, failure: Option<&io::Error>) {
        let is_reachable = failure.is_none();
        if self.0.lock().insert(target, is_reachable) == Some(is_reachable) {
            return;
        }
        match failure {
            None => tracing::info!(controller = target, "controller answers"),
            Some(error) => {
                tracing::warn!(controller = target, %error, "controller does not answer")
            }
        }
    }
}

impl RaftNetworkFactory<QuorumTypes> for QuorumNetwork {
    type Network = QuorumClient;

    async fn new_client(&mut self, target: u64, (): &()) -> QuorumClient {
        QuorumClient {
            target,
            address: self.voters.get(&target).cloned(),
            cluster_id: Arc::clone(&self.cluster_id),
            view: Arc::clone(&self.view),
            store: self.store.clone(),
            retry_backoff: self.retry_backoff,
            reachable: self.reachable.clone(),
            lease: Arc::clone(&self.lease),
            answered: None,
            stream: None,
            correlation_id: 0,
        }
    }
}

/// A client of one other controller.
pub(super) struct QuorumClient {
    target: u64,
    address: Option<QuorumVoter>,
    cluster_id: Arc<str>,
    view: Arc<QuorumView>,
    store: LogStore,
    retry_backoff: Duration,
    reachable: Reachable,
    lease: Arc<Lease>,
    /// When the other one answered last.
    answered: Option<Instant>,
    /// Taken out while a request is under way: one that was given up leaves nothing behind that could be mistaken for
    /// the answer to the next.
    stream: Option<TcpStream>,
    correlation_id: i32,
}

/// Why there is no answer.
enum CallError {
    /// The other one cannot be reached, or takes nothing now; rest before the next try.
    Unreachable(io::Error),
    /// The connection broke.
    Broken(io::Error),
}

impl<E: std::error::Error> From<CallError> for RPCError<u64, (), E> {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Unreachable(error) => Unreachable::new(&error).into(),
            CallError::Broken(error) => NetworkError::new(&error).into(),
        }
    }
}

impl QuorumClient {
    async fn call(&mut self, message: Message) -> Result<Answer, CallError> {
        let result = self.try_call(message).await;
        let failure = match &result {
            Ok(_) => {
                self.answered = Some(Instant::now());
                None
            }
            Err(CallError::Unreachable(error) | CallError::Broken(error)) => Some(error),
        };
        self.reachable.note(self.target, failure);
        // A port that refuses connections belongs to no process; anything else may be the network.
        let is_gone = failure.map(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        match is_gone {
            None => self.view.set_gone(node_id(self.target), false),
            Some(true) => self.view.set_gone(node_id(self.target), true),
            Some(false) => {}
        }
        result
    }

    async fn try_call(&mut self, message: Message) -> Result<Answer, CallError> {
        let envelope = Envelope {
            cluster_id: self.cluster_id.to_string(),
            sender: raft_id(self.view.node_id()),
            target: self.target,
            message,
        };
        let broken = CallError::Broken;
        let body = postcard::to_stdvec(&envelope)
            .map_err(|error| broken(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        let (mut stream, is_reused) = match self.stream.take() {
            Some(stream) => (stream, true),
            None => (self.connect().await.map_err(CallError::Unreachable)?, false),
        };
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let frame = request_frame(self.correlation_id, &body);
        let answer = match exchange(&mut stream, &frame, self.correlation_id).await {
            Err(error) if is_reused && is_closed(&error) => {
                // The other one has been started again meanwhile.
                stream = self.connect().await.map_err(CallError::Unreachable)?;
                exchange(&mut stream, &frame, self.correlation_id).await
            }
            result => result,
        };
        let answer = answer.map_err(broken)?;
        let answer = postcard::from_bytes(&answer)
            .map_err(|error| broken(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        self.stream = Some(stream);
        match answer {
            Answer::Refused(reason) => Err(CallError::Unreachable(io::Error::other(reason))),
            answer => Ok(answer),
        }
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let address = self.address.as_ref().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("no address of controller {} is configured", self.target),
            )
        })?;
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Whether the other one would vote for this node, whose log ends with `last_log_id`.
    pub(super) async fn pre_vote(&mut self, last_log_id: Option<LogId>) -> bool {
        matches!(
            self.call(Message::PreVote(last_log_id)).await,
            Ok(Answer::PreVote(true))
        )
    }

    /// Makes sure that the other one is not made to follow a leader that hears nobody: while no majority answers, it is
    /// told of a leader only if it has answered itself not long ago. What it cannot answer would keep it from electing
    /// another.
    async fn ask_for_an_answer(&mut self) -> Result<(), CallError> {
        let limit = self.lease.limit();
        let has_answered = self.answered.is_some_and(|last| last.elapsed() < limit);
        if has_answered || self.lease.is_valid() {
            return Ok(());
        }
        match self.call(Message::Ping).await? {
            Answer::Ping => Ok(()),
            other => Err(CallError::Broken(unexpected_answer(&other))),
        }
    }

    /// Notes how far the other one is, for DescribeQuorum.
    fn note_progress(&self, index: Option<u64>) {
        let end_offset = index.map_or(-1, |index| self.store.end_offset_at(index));
        let id = node_id(self.target);
        self.view.on_voter_progress(id, end_offset, now_ms());
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
    )
}

/// Sends a frame and reads the answer to it.
async fn exchange(
    stream: &mut TcpStream,
    frame: &Bytes,
    correlation_id: i32,
) -> io::Result<Vec<u8>> {
    let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    stream.write_all(frame).await?;
    let len = usize::try_from(stream.read_i32().await?).unwrap_or(usize::MAX);
    if !(4..=MAX_ANSWER_BYTES).contains(&len) {
        return Err(invalid("the answer has a length that no answer has"));
    }
    if stream.read_i32().await? != correlation_id {
        return Err(invalid("the answer is to another request"));
    }
    let mut body = vec![0; len - 4];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

fn unexpected_answer(answer: &Answer) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{answer:?}"))
}

fn unexpected<E: std::error::Error>(answer: &Answer) -> RPCError<u64, (), E> {
    NetworkError::new(&unexpected_answer(answer)).into()
}

impl RaftNetwork<QuorumTypes> for QuorumClient {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<QuorumTypes>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, RPCError<u64, (), RaftError<u64>>> {
        let last = request.entries.last().map(|entry| entry.log_id);
        let matching = last.or(request.prev_log_id).map(|log_id| log_id.index);
        let term = request.vote.leader_id().term;
        self.ask_for_an_answer().await?;
        let sent = Instant::now();
        match self.call(Message::AppendEntries(request)).await? {
            Answer::AppendEntries(response) => {
                if !matches!(response, AppendEntriesResponse::HigherVote(_)) {
                    self.lease.on_ack(self.target, term, sent);
                }
                if response.is_success() {
                    self.note_progress(matching);
                }
                Ok(response)
            }
            other => Err(unexpected(&other)),
        }
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<QuorumTypes>,
        _: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, RPCError<u64, (), RaftError<u64, InstallSnapshotError>>>
    {
        self.ask_for_an_answer().await?;
        match self.call(Message::InstallSnapshot(request)).await? {
            Answer::InstallSnapshot(response) => Ok(response),
            Answer::SnapshotMismatch(mismatch) => {
                let error = RaftError::APIError(mismatch.into());
                Err(RPCError::RemoteError(RemoteError::new(self.target, error)))
            }
            other => Err(unexpected(&other)),
        }
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _: RPCOption,
    ) -> Result<VoteResponse<u64>, RPCError<u64, (), RaftError<u64>>> {
        match self.call(Message::Vote(request)).await? {
            Answer::Vote(response) => Ok(response),
            other => Err(unexpected(&other)),
        }
    }

    fn backoff(&self) -> Backoff {
        let first = self.retry_backoff;
        let doubled = move |pause: &Duration| Some((*pause * 2).min(MAX_BACKOFF));
        Backoff::new(std::iter::successors(Some(first), doubled))
    }
}
