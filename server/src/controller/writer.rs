//! The controller's thread: judges requests in order while this node is active, proposes their records as one entry for
//! all that were waiting, and releases the responses when the entry is agreed on, applied and published.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use highwater_replication::cluster::records::AbortTransactionRecord;
use highwater_replication::cluster::{ClusterImage, MetadataRecord};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::handle::{Judge, Release};
use super::quorum::{Applied, MetadataEntry, ProposalError, Quorum, QuorumEvent, Role};
use super::start::first_records;
use super::{ControllerError, ControllerNode, QuorumView, quorum_state};
use crate::metadata::{MetadataError, MetadataPublisher, data_batch, leader_change_batch};

/// Requests that share one entry.
const MAX_GROUP: usize = 256;
/// A group that has grown to so many bytes is proposed; the requests behind it are judged on what comes of it.
const MAX_GROUP_BYTES: usize = 1 << 20;
/// Space is kept back so long after it was found missing: a start, or what uses it up, is to be over.
const RESERVE_PAUSE: Duration = Duration::from_secs(1);
/// How long a controller whose disk is full rests before it tries again to begin its epoch.
const FULL_DISK_PAUSE: Duration = Duration::from_secs(1);
/// How long stopping waits for an entry that the others have not agreed on.
const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// Milliseconds since 1970, the broker's clock.
pub(super) fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_millis() as i64)
}

/// Everything that belongs to the thread of the controller.
pub(super) struct Writer {
    pub(super) quorum: Quorum,
    pub(super) view: Arc<QuorumView>,
    pub(super) publisher: Arc<MetadataPublisher>,
    /// The newest image that was agreed on; it is published.
    pub(super) image: Arc<ClusterImage>,
    /// `min.insync.replicas` for a new cluster.
    pub(super) min_insync_replicas: i32,
    /// Tells who waits for it that this node is active, or cannot be.
    pub(super) activation: watch::Sender<Activation>,
    pub(super) state: WriterState,
}

/// How far this node is on its way to be the active controller.
#[derive(Debug, Clone)]
pub(super) enum Activation {
    /// It is not, or not yet.
    Inactive,
    /// It serves requests.
    Active,
    /// It failed, and does nothing before a restart.
    Failed(Arc<str>),
}

/// What changes from event to event.
#[derive(Default)]
pub(super) struct WriterState {
    role: Role,
    /// The epoch whose first records this node has written.
    begun_epoch: Option<i32>,
    /// When it is tried again to write them, on a disk that was full.
    begin_due: Option<Instant>,
    in_flight: Option<InFlight>,
    /// Requests that wait for the entry before them.
    waiting: VecDeque<Judge>,
    last_number: u64,
    is_stopping: bool,
    failed: Option<Arc<str>>,
}

/// The entry that was proposed last and of which nothing was heard yet.
struct InFlight {
    number: u64,
    /// The epoch that it begins, if it does.
    begins: Option<i32>,
    releases: Vec<Release>,
}

/// Requests that were judged and wait to be agreed on together.
struct Group {
    epoch: i32,
    base_offset: i64,
    image: ClusterImage,
    batches: BytesMut,
    releases: Vec<Release>,
    /// Whether every record deletes a topic, which makes room.
    only_deletes: bool,
}

impl Group {
    fn new(image: &ClusterImage, epoch: i32) -> Self {
        Self {
            epoch,
            base_offset: image.offset() + 1,
            image: image.clone(),
            batches: BytesMut::new(),
            releases: Vec::new(),
            only_deletes: true,
        }
    }

    /// Adds records, to be judged against by the next request.
    fn add(&mut self, records: &[MetadataRecord], now_ms: i64) -> Result<(), MetadataError> {
        if records.is_empty() {
            return Ok(());
        }
        let base_offset = self.image.offset() + 1;
        let last_offset = base_offset + records.len() as i64 - 1;
        let applied = self.image.apply(records, last_offset, self.epoch);
        let (image, _) = applied.map_err(|source| MetadataError::Apply {
            offset: last_offset + 1,
            source,
        })?;
        let batch = data_batch(records, base_offset, self.epoch, now_ms)?;
        self.batches.extend_from_slice(&batch);
        self.image = image;
        let deletes = |record: &MetadataRecord| matches!(record, MetadataRecord::RemoveTopic(_));
        self.only_deletes &= records.iter().all(deletes);
        Ok(())
    }

    /// Adds a batch that has an offset but changes nothing.
    fn add_control(&mut self, batch: &Bytes) -> Result<(), MetadataError> {
        let offset = self.image.offset() + 1;
        let applied = self.image.apply(&[], offset, self.epoch);
        self.image = applied
            .map_err(|source| MetadataError::Apply {
                offset: offset + 1,
                source,
            })?
            .0;
        self.batches.extend_from_slice(batch);
        Ok(())
    }

    fn entry(&mut self) -> MetadataEntry {
        MetadataEntry {
            epoch: self.epoch,
            base_offset: self.base_offset,
            end_offset: self.image.offset() + 1,
            batches: std::mem::take(&mut self.batches).freeze(),
        }
    }
}

impl Writer {
    /// Runs until it is told to stop; serves what was submitted before that.
    pub(super) async fn run(
        mut self,
        mut requests: mpsc::Receiver<Judge>,
        mut events: mpsc::UnboundedReceiver<QuorumEvent>,
    ) {
        let mut reserve_due = Instant::now() + RESERVE_PAUSE;
        let mut judges = Vec::with_capacity(MAX_GROUP);
        loop {
            let is_waiting = self.state.in_flight.is_some();
            let begin_due = self.state.begin_due;
            let begin = async {
                match begin_due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let takes_requests = !is_waiting || !self.state.role.is_ready;
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Some(event) => {
                        self.on_event(event);
                        if self.state.is_stopping {
                            requests.close();
                        }
                    }
                    None => break,
                },
                count = requests.recv_many(&mut judges, MAX_GROUP), if takes_requests => {
                    if count == 0 {
                        break;
                    }
                    self.state.waiting.extend(judges.drain(..));
                    self.advance();
                }
                () = begin => {
                    self.state.begin_due = None;
                    self.advance();
                }
                () = tokio::time::sleep_until(reserve_due), if !self.quorum.holds_reserve() => {
                    self.quorum.hold_reserve();
                    reserve_due = Instant::now() + RESERVE_PAUSE;
                }
                () = tokio::time::sleep(STOP_PATIENCE), if is_waiting && self.state.is_stopping => {
                    tracing::warn!("stopping without the agreement of the other controllers");
                    self.give_up_in_flight(None);
                }
            }
        }
        let offset = self.image.offset();
        self.quorum.stop();
        tracing::debug!(offset, "controller stopped");
    }

    fn on_event(&mut self, event: QuorumEvent) {
        match event {
            QuorumEvent::Image { image, delta } => {
                self.publisher.publish(&image, &delta);
                self.image = image;
            }
            QuorumEvent::Role(role) => self.on_role(role),
            QuorumEvent::Proposed { number, result } => self.on_proposed(number, result),
            QuorumEvent::Failed(reason) => self.on_failed(&reason),
            QuorumEvent::Stop => self.state.is_stopping = true,
        }
        self.advance();
    }

    fn on_role(&mut self, role: Role) {
        let before = std::mem::replace(&mut self.state.role, role);
        if (before.epoch, before.leader) != (role.epoch, role.leader) {
            tracing::info!(epoch = role.epoch, leader = ?role.leader, "the quorum has a new epoch or leader");
            self.write_quorum_state();
        }
        if !role.is_ready {
            self.release_in_flight(role.leader);
        }
        if before.epoch != role.epoch {
            self.state.begin_due = None;
            // What it becomes of it, others decide; the entries of this epoch are judged on that.
            self.give_up_in_flight(role.leader);
        }
    }

    fn write_quorum_state(&self) {
        let Role { epoch, leader, .. } = self.state.role;
        let dir = self.view.metadata_log().dir();
        if let Err(error) = quorum_state::write(dir, epoch, leader, &self.voter_ids()) {
            tracing::debug!(%error, "no quorum-state");
        }
    }

    fn voter_ids(&self) -> Vec<i32> {
        self.view.voters().iter().map(|voter| voter.id).collect()
    }

    fn on_proposed(&mut self, number: u64, result: Result<Applied, ProposalError>) {
        let Some(in_flight) = self
            .state
            .in_flight
            .take_if(|in_flight| in_flight.number == number)
        else {
            return;
        };
        let outcome = match result {
            Ok(Applied::Appended) => {
                if let Some(epoch) = in_flight.begins {
                    self.state.begun_epoch = Some(epoch);
                }
                Ok(())
            }
            Ok(Applied::Stale) => {
                tracing::warn!(number, "an entry was agreed on that no longer fits the log");
                Err(ControllerError::NotController { leader: None })
            }
            Err(ProposalError::NotLeader(leader)) => Err(ControllerError::NotController { leader }),
            Err(ProposalError::Failed(reason)) => Err(ControllerError::Failed(reason.into())),
        };
        for release in in_flight.releases {
            release(outcome.clone());
        }
    }

    fn on_failed(&mut self, reason: &str) {
        tracing::error!(
            reason,
            "the controller has failed, it takes no part in the quorum before a restart"
        );
        let reason: Arc<str> = reason.into();
        self.state.failed = Some(Arc::clone(&reason));
        self.state.role = Role::default();
        self.quorum.abandon();
        self.give_up_in_flight(None);
        self.activation.send_replace(Activation::Failed(reason));
    }

    /// Tells those who wait for the entry under way that this node cannot say what becomes of it.
    fn release_in_flight(&mut self, leader: Option<i32>) {
        if let Some(in_flight) = &mut self.state.in_flight {
            for release in in_flight.releases.drain(..) {
                release(Err(ControllerError::NotController { leader }));
            }
        }
    }

    /// As [`Self::release_in_flight`], and does not wait for it any more.
    fn give_up_in_flight(&mut self, leader: Option<i32>) {
        self.release_in_flight(leader);
        self.state.in_flight = None;
    }

    fn is_active(&self) -> bool {
        let role = &self.state.role;
        role.is_ready && self.state.begun_epoch == Some(role.epoch) && self.quorum.has_quorum()
    }

    /// Does what has become possible: begins an epoch, or judges those who wait.
    fn advance(&mut self) {
        let role = self.state.role;
        let is_begun = self.state.begun_epoch == Some(role.epoch);
        let is_idle = self.state.in_flight.is_none() && self.state.begin_due.is_none();
        if role.is_ready && !is_begun && is_idle {
            self.begin_epoch(role.epoch);
        }
        self.tell_who_is_active();
        if let Some(reason) = self.state.failed.clone() {
            self.refuse_waiting(&ControllerError::Failed(reason));
        } else if !role.is_ready || !self.quorum.has_quorum() {
            let leader = role.leader.filter(|id| *id != self.view.node_id());
            self.refuse_waiting(&ControllerError::NotController { leader });
        }
        while self.is_active() && self.state.in_flight.is_none() && !self.state.waiting.is_empty() {
            self.judge_waiting();
        }
    }

    fn tell_who_is_active(&self) {
        let role = &self.state.role;
        let own = self.view.node_id();
        let id = match role.leader {
            Some(id) if id == own && !self.is_active() => None,
            id => id,
        };
        let node = id.map(|id| {
            let voter = self.view.voters().iter().find(|voter| voter.id == id);
            let (host, port) =
                voter.map_or_else(Default::default, |voter| (voter.host.clone(), voter.port));
            ControllerNode {
                id,
                epoch: role.epoch,
                host,
                port,
            }
        });
        self.view.set_active_controller(node);
        if self.state.failed.is_none() {
            let is_active = self.is_active();
            self.activation.send_if_modified(|activation| {
                let was_active = matches!(activation, Activation::Active);
                *activation = match is_active {
                    true => Activation::Active,
                    false => Activation::Inactive,
                };
                was_active != is_active
            });
        }
    }

    fn refuse_waiting(&mut self, error: &ControllerError) {
        for judge in self.state.waiting.drain(..) {
            judge(Err(error.clone()));
        }
    }

    /// Proposes what an epoch begins with: that this node leads, the end of a transaction that another left open, and
    /// what a new cluster begins with.
    fn begin_epoch(&mut self, epoch: i32) {
        let mut group = Group::new(&self.image, epoch);
        let added = self.add_first(&mut group);
        // Who cannot begin cannot delete either.
        let added = added.and_then(|()| self.quorum.reserve(group.batches.len() as u64, true));
        match added {
            Ok(()) => self.propose(group, Some(epoch)),
            // Alone, a start says so at once.
            Err(error) if error.is_storage_full() && self.view.voters().len() > 1 => {
                tracing::error!(%error, epoch, "no space to begin to act as the active controller, waiting for some");
                self.state.begin_due = Some(Instant::now() + FULL_DISK_PAUSE);
            }
            // Others may have what this node lacks.
            Err(error) => self.on_failed(&error.to_string()),
        }
    }

    fn add_first(&self, group: &mut Group) -> Result<(), MetadataError> {
        let now_ms = now_ms();
        let batch = leader_change_batch(
            self.view.node_id(),
            &self.voter_ids(),
            group.base_offset,
            group.epoch,
            now_ms,
        )?;
        group.add_control(&batch)?;
        if self.quorum.in_transaction() {
            // The log's readers hold back what follows an open transaction.
            let reason = Some("the controller that began it is gone".to_owned());
            group.add(&[AbortTransactionRecord { reason }.into()], now_ms)?;
        }
        let first = first_records(&group.image, self.min_insync_replicas);
        group.add(&first, now_ms)
    }

    /// Judges those who wait, as many as fit into one entry.
    fn judge_waiting(&mut self) {
        let now_ms = now_ms();
        let mut group = Group::new(&self.image, self.state.role.epoch);
        while group.releases.len() < MAX_GROUP && group.batches.len() < MAX_GROUP_BYTES {
            let Some(judge) = self.state.waiting.pop_front() else {
                break;
            };
            let Some((records, release)) = judge(Ok((&group.image, now_ms))) else {
                continue;
            };
            match group.add(&records, now_ms) {
                Ok(()) => group.releases.push(release),
                Err(error) => {
                    tracing::error!(%error, "request for a metadata change failed");
                    release(Err(error.into()));
                }
            }
        }
        let reserved = match group.batches.len() {
            0 => Ok(()),
            bytes => self.quorum.reserve(bytes as u64, group.only_deletes),
        };
        match reserved {
            Ok(()) if group.batches.is_empty() => {
                for release in group.releases {
                    release(Ok(()));
                }
            }
            Ok(()) => self.propose(group, None),
            Err(error) => {
                tracing::error!(%error, requests = group.releases.len(), "metadata changes were not written");
                for release in group.releases {
                    release(Err(error.clone().into()));
                }
            }
        }
    }

    fn propose(&mut self, mut group: Group, begins: Option<i32>) {
        self.state.last_number += 1;
        let number = self.state.last_number;
        self.quorum.propose(number, group.entry());
        self.state.in_flight = Some(InFlight {
            number,
            begins,
            releases: group.releases,
        });
    }
}
