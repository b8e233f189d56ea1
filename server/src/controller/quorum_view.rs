//! What a node knows of the quorum: which controller is active, and how far its voters and observers are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Uuid;

use crate::config::QuorumVoter;
use crate::metadata::MetadataLog;

/// An observer that has not fetched for so long is forgotten, as in Kafka.
const OBSERVER_SESSION_TIMEOUT_MS: i64 = 300_000;
/// Observers that are remembered: a bound, as anyone may claim an id.
const MAX_OBSERVERS: usize = 4096;

/// The active controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerNode {
    /// Its `node.id`.
    pub id: i32,
    /// The epoch that it leads the quorum in.
    pub epoch: i32,
    /// Host of its controller listener; empty if it opens none, which only a quorum of one may do.
    pub host: String,
    /// Port of its controller listener; 0 if it opens none.
    pub port: u16,
}

/// A replica of the metadata log as the active controller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumReplica {
    /// `node.id` of the replica.
    pub id: i32,
    /// Directory of its metadata log; nil when unknown.
    pub directory_id: Uuid,
    /// Offset after the last record that it is known to have; -1 when unknown.
    pub log_end_offset: i64,
    /// When it last showed that it is there, in ms since 1970; -1 when it has not.
    pub last_fetch_timestamp_ms: i64,
    /// When it last had everything, in ms since 1970; -1 when unknown.
    pub last_caught_up_timestamp_ms: i64,
}

/// The quorum as DescribeQuorum tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumStatus {
    /// The active controller; `None` when this node knows of none.
    pub leader_id: Option<i32>,
    /// The newest epoch that this node knows of.
    pub leader_epoch: i32,
    /// Offset after the last committed record.
    pub high_watermark: i64,
    /// The controllers, by id. Complete on the active controller only.
    pub voters: Vec<QuorumReplica>,
    /// The brokers that follow and other observers, by id. Known on the active controller only.
    pub observers: Vec<QuorumReplica>,
}

/// Progress of one replica, in time with what the leader had.
#[derive(Debug, Clone, Copy)]
struct Progress {
    directory_id: Uuid,
    log_end_offset: i64,
    last_fetch_timestamp_ms: i64,
    last_caught_up_timestamp_ms: i64,
    /// The leader's log end when the replica last fetched.
    leader_end_at_last_fetch: i64,
}

impl Progress {
    const NONE: Progress = Progress {
        directory_id: Uuid::nil(),
        log_end_offset: -1,
        last_fetch_timestamp_ms: -1,
        last_caught_up_timestamp_ms: -1,
        leader_end_at_last_fetch: -1,
    };

    /// The replica has everything below `log_end_offset`, while the leader's log ends at `leader_end`.
    fn on_fetch(&mut self, log_end_offset: i64, leader_end: i64, now_ms: i64) {
        if log_end_offset >= leader_end {
            self.last_caught_up_timestamp_ms = now_ms;
        } else if self.leader_end_at_last_fetch >= 0
            && log_end_offset >= self.leader_end_at_last_fetch
        {
            // It has what was there when it asked before.
            self.last_caught_up_timestamp_ms = self
                .last_caught_up_timestamp_ms
                .max(self.last_fetch_timestamp_ms);
        }
        self.log_end_offset = log_end_offset;
        self.last_fetch_timestamp_ms = now_ms;
        self.leader_end_at_last_fetch = leader_end;
    }

    fn replica(&self, id: i32) -> QuorumReplica {
        QuorumReplica {
            id,
            directory_id: self.directory_id,
            log_end_offset: self.log_end_offset,
            last_fetch_timestamp_ms: self.last_fetch_timestamp_ms,
            last_caught_up_timestamp_ms: self.last_caught_up_timestamp_ms,
        }
    }
}

#[derive(Debug, Default)]
struct Replicas {
    voters: BTreeMap<i32, Progress>,
    observers: BTreeMap<i32, Progress>,
}

/// The quorum as this node sees it; shared by all handles of the controller.
#[derive(Debug)]
pub struct QuorumView {
    node_id: i32,
    voters: Vec<QuorumVoter>,
    log: Arc<MetadataLog>,
    active: watch::Sender<Option<ControllerNode>>,
    /// Controllers whose processes are gone, as far as this node has tried to reach them.
    gone: watch::Sender<BTreeSet<i32>>,
    replicas: Mutex<Replicas>,
}

impl QuorumView {
    /// A view of the node `node_id`, which knows of no active controller yet. `voters` are all controllers.
    pub fn new(node_id: i32, voters: Vec<QuorumVoter>, log: Arc<MetadataLog>) -> Self {
        Self {
            node_id,
            voters,
            log,
            active: watch::Sender::new(None),
            gone: watch::Sender::default(),
            replicas: Mutex::default(),
        }
    }

    /// `node.id` of this node.
    pub fn node_id(&self) -> i32 {
        self.node_id
    }

    /// This node's copy of the metadata log.
    pub fn metadata_log(&self) -> &Arc<MetadataLog> {
        &self.log
    }

    /// The controllers that vote, as far as this node is configured with them.
    pub fn voters(&self) -> &[QuorumVoter] {
        &self.voters
    }

    /// The active controller, and word of each change of it.
    pub fn active_controller(&self) -> watch::Receiver<Option<ControllerNode>> {
        self.active.subscribe()
    }

    /// Id of the active controller.
    pub fn leader_id(&self) -> Option<i32> {
        self.active.borrow().as_ref().map(|node| node.id)
    }

    /// Whether this node is the active controller.
    pub fn is_active(&self) -> bool {
        self.leader_id() == Some(self.node_id)
    }

    /// Notes which controller is active. Word of an older epoch than the known one is ignored; `None` says that the
    /// known one is not active any more.
    pub fn set_active_controller(&self, node: Option<ControllerNode>) {
        self.active.send_if_modified(|active| {
            let is_older = match (&node, &*active) {
                (Some(new), Some(known)) => new.epoch < known.epoch,
                _ => false,
            };
            if is_older || *active == node {
                return false;
            }
            *active = node;
            true
        });
    }

    /// Notes that another controller has everything below `log_end_offset`, -1 for unknown.
    pub(super) fn on_voter_progress(&self, id: i32, log_end_offset: i64, now_ms: i64) {
        let leader_end = self.log.log().log_end_offset();
        let mut replicas = self.replicas.lock();
        let progress = replicas.voters.entry(id).or_insert(Progress::NONE);
        progress.on_fetch(log_end_offset, leader_end, now_ms);
    }

    /// The controllers whose processes are gone, and word of each change. Of controllers that this node does not try to
    /// reach nothing is known.
    pub fn gone(&self) -> watch::Receiver<BTreeSet<i32>> {
        self.gone.subscribe()
    }

    /// Notes that the process of a controller is gone, or that it answers.
    pub fn set_gone(&self, id: i32, is_gone: bool) {
        self.gone.send_if_modified(|gone| match is_gone {
            true => gone.insert(id),
            false => gone.remove(&id),
        });
    }

    /// Notes that an observer asked for what comes from `fetch_offset` on.
    pub fn on_observer_fetch(&self, id: i32, directory_id: Uuid, fetch_offset: i64, now_ms: i64) {
        let leader_end = self.log.log().log_end_offset();
        let mut replicas = self.replicas.lock();
        let is_known = replicas.observers.contains_key(&id);
        if !is_known && replicas.observers.len() >= MAX_OBSERVERS {
            return;
        }
        let progress = replicas.observers.entry(id).or_insert(Progress::NONE);
        progress.directory_id = directory_id;
        progress.on_fetch(fetch_offset, leader_end, now_ms);
    }

    /// The quorum as this node sees it.
    pub fn status(&self, now_ms: i64) -> QuorumStatus {
        let active = self.active.borrow().clone();
        let own = QuorumReplica {
            id: self.node_id,
            directory_id: Uuid::nil(),
            log_end_offset: self.log.log().log_end_offset(),
            last_fetch_timestamp_ms: now_ms,
            last_caught_up_timestamp_ms: now_ms,
        };
        let mut replicas = self.replicas.lock();
        replicas.observers.retain(|_, progress| {
            now_ms.saturating_sub(progress.last_fetch_timestamp_ms) < OBSERVER_SESSION_TIMEOUT_MS
        });
        let voter = |voter: &QuorumVoter| match voter.id == self.node_id {
            true => own.clone(),
            false => replicas
                .voters
                .get(&voter.id)
                .unwrap_or(&Progress::NONE)
                .replica(voter.id),
        };
        let mut voters: Vec<_> = self.voters.iter().map(voter).collect();
        voters.sort_by_key(|voter| voter.id);
        let observers = replicas.observers.iter();
        QuorumStatus {
            leader_id: active.as_ref().map(|node| node.id),
            leader_epoch: active.map_or_else(
                || self.log.log().latest_epoch().map_or(0, |epoch| epoch.0),
                |node| node.epoch,
            ),
            high_watermark: self.log.log().high_watermark(),
            voters,
            observers: observers
                .map(|(id, progress)| progress.replica(*id))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_caught_up_when_it_has_what_was_there_when_it_last_asked() {
        let mut progress = Progress::NONE;
        progress.on_fetch(5, 10, 100);
        assert_eq!(progress.last_caught_up_timestamp_ms, -1);
        progress.on_fetch(10, 20, 200);
        assert_eq!(progress.last_caught_up_timestamp_ms, 100);
        progress.on_fetch(20, 20, 300);
        assert_eq!(progress.last_caught_up_timestamp_ms, 300);
        progress.on_fetch(20, 30, 400);
        assert_eq!(progress.last_caught_up_timestamp_ms, 300);
    }
}
