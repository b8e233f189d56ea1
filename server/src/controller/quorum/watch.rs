//! Follows what the consensus says of itself, and tells the controller what changes for it.

use std::sync::Arc;
use std::time::Duration;

use openraft::{RaftMetrics, ServerState};

use super::lease::Lease;
use super::state_machine::StateMachine;
use super::types::{Raft, epoch_of, node_id};
use super::{Events, QuorumEvent, Role};

/// Looks again after so long when nothing happens: the lease of a leader may have ended.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// What is followed, and who is told.
pub(super) struct Watcher {
    pub(super) raft: Raft,
    pub(super) state_machine: StateMachine,
    pub(super) lease: Arc<Lease>,
    pub(super) events: Events,
    pub(super) max_bytes_between_snapshots: u64,
}

impl Watcher {
    /// Runs until the consensus ends on this node.
    pub(super) async fn run(self) {
        let mut metrics = self.raft.metrics();
        let mut known = Role::default();
        loop {
            let (role, failure, is_leader) = {
                let metrics = metrics.borrow_and_update();
                let is_leader = metrics.state == ServerState::Leader;
                self.lease.on_term(metrics.current_term);
                let failure = metrics
                    .running_state
                    .as_ref()
                    .err()
                    .map(ToString::to_string);
                (self.role(&metrics), failure, is_leader)
            };
            if let Some(failure) = failure {
                // Told to nobody when the controller itself has ended it.
                let _ = self.events.send(QuorumEvent::Failed(failure));
                return;
            }
            if role != known && self.events.send(QuorumEvent::Role(role)).is_err() {
                return;
            }
            known = role;
            if self
                .state_machine
                .is_snapshot_due(self.max_bytes_between_snapshots)
                && let Err(error) = self.raft.trigger().snapshot().await
            {
                tracing::debug!(%error, "no snapshot, the consensus has ended");
            }
            let pause = match is_leader {
                // When it ends, the leader is to know at once.
                true if !self.lease.rest().is_zero() => self.lease.rest(),
                _ => LONGEST_PAUSE,
            };
            let changed = tokio::time::timeout(pause.min(LONGEST_PAUSE), metrics.changed()).await;
            if let Ok(Err(_)) = changed {
                let failed = QuorumEvent::Failed("the consensus has ended".to_owned());
                let _ = self.events.send(failed);
                return;
            }
        }
    }

    fn role(&self, metrics: &RaftMetrics<u64, ()>) -> Role {
        let leads = metrics.state == ServerState::Leader;
        let has_applied_all = metrics
            .last_applied
            .is_some_and(|applied| applied.leader_id.term == metrics.current_term);
        Role {
            epoch: epoch_of(metrics.current_term),
            leader: metrics.current_leader.map(node_id),
            is_ready: leads && has_applied_all && self.lease.is_valid(),
        }
    }
}
