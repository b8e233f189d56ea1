//! What this node refuses for the sake of replication, so that each refusal can be seen: a count by reason, and a line
//! in the log with what the error knows, such as both epochs. Refusals come in floods when a leader moves, so of each
//! reason at most one a second is logged for the operator; the others are there for those who look closely.

use std::fmt::Display;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use highwater_replication::cluster::ClusterError;
use highwater_replication::runtime::error::PartitionError;
use highwater_replication::state::fencing::EpochFence;
use highwater_storage::AppendError;

/// Between two lines about one reason.
const LOG_INTERVAL_MS: i64 = 1000;

/// Why something was refused. The order is that of [`RefusalReason::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// The leader epoch of the request is over.
    StaleLeaderEpoch,
    /// The leader epoch of the request is one that this node has not heard of.
    FutureLeaderEpoch,
    /// The request comes from a run of a broker that is over.
    StaleBrokerEpoch,
    /// The broker that fetches has no replica.
    NotAReplica,
    /// Another broker leads, or none, or this broker's session has expired.
    NotLeader,
    /// `acks=all` with too few in-sync replicas: nothing was written.
    NotEnoughReplicas,
    /// `acks=all` with too few in-sync replicas when it was written.
    NotEnoughReplicasAfterAppend,
    /// A new leader does not know yet how much is committed.
    OffsetNotAvailable,
    /// The log cannot be used, or the disk is full.
    Storage,
    /// A change of in-sync replicas that was made from an older state of the partition.
    StalePartitionEpoch,
    /// A change of in-sync replicas that names one which cannot be one.
    IneligibleReplica,
    /// A request for the controller came to one that does not know that much, or is not active.
    NotController,
    /// A broker's id is in use by another process.
    DuplicateBroker,
    /// An election in which nobody has all that is committed.
    NoEligibleLeader,
}

impl RefusalReason {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::StaleLeaderEpoch,
        Self::FutureLeaderEpoch,
        Self::StaleBrokerEpoch,
        Self::NotAReplica,
        Self::NotLeader,
        Self::NotEnoughReplicas,
        Self::NotEnoughReplicasAfterAppend,
        Self::OffsetNotAvailable,
        Self::Storage,
        Self::StalePartitionEpoch,
        Self::IneligibleReplica,
        Self::NotController,
        Self::DuplicateBroker,
        Self::NoEligibleLeader,
    ];

    /// Its name on the metrics page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StaleLeaderEpoch => "stale_leader_epoch",
            Self::FutureLeaderEpoch => "future_leader_epoch",
            Self::StaleBrokerEpoch => "stale_broker_epoch",
            Self::NotAReplica => "not_a_replica",
            Self::NotLeader => "not_leader",
            Self::NotEnoughReplicas => "not_enough_replicas",
            Self::NotEnoughReplicasAfterAppend => "not_enough_replicas_after_append",
            Self::OffsetNotAvailable => "offset_not_available",
            Self::Storage => "storage",
            Self::StalePartitionEpoch => "stale_partition_epoch",
            Self::IneligibleReplica => "ineligible_replica",
            Self::NotController => "not_controller",
            Self::DuplicateBroker => "duplicate_broker",
            Self::NoEligibleLeader => "no_eligible_leader",
        }
    }

    /// The reason of a partition's refusal; `None` for what has nothing to do with replication.
    fn of_partition(error: &PartitionError) -> Option<Self> {
        Some(match error {
            PartitionError::Fenced(EpochFence::Fenced { .. }) => Self::StaleLeaderEpoch,
            PartitionError::Fenced(EpochFence::Unknown { .. }) => Self::FutureLeaderEpoch,
            PartitionError::StaleBrokerEpoch(_) => Self::StaleBrokerEpoch,
            PartitionError::NotAReplica { .. } => Self::NotAReplica,
            PartitionError::NotLeader { .. } | PartitionError::NotHosted => Self::NotLeader,
            PartitionError::NotEnoughReplicas { .. } => Self::NotEnoughReplicas,
            PartitionError::NotEnoughReplicasAfterAppend => Self::NotEnoughReplicasAfterAppend,
            PartitionError::OffsetNotAvailable { .. } => Self::OffsetNotAvailable,
            PartitionError::Offline(_)
            | PartitionError::Storage(_)
            | PartitionError::Append(AppendError::Storage(_)) => Self::Storage,
            PartitionError::InconsistentTopicId
            | PartitionError::OffsetOutOfRange { .. }
            | PartitionError::DeletionNotAllowed
            | PartitionError::Append(_)
            | PartitionError::Read(_) => return None,
        })
    }

    /// The reason of the controller's refusal; `None` for what has nothing to do with replication.
    fn of_cluster(error: &ClusterError) -> Option<Self> {
        Some(match error {
            ClusterError::FencedLeaderEpoch(_) => Self::StaleLeaderEpoch,
            ClusterError::StaleBrokerEpoch(_) | ClusterError::BrokerIdNotRegistered(_) => {
                Self::StaleBrokerEpoch
            }
            ClusterError::InvalidUpdateVersion(_) => Self::StalePartitionEpoch,
            ClusterError::IneligibleReplica(_) => Self::IneligibleReplica,
            ClusterError::NotController(_) => Self::NotController,
            ClusterError::DuplicateBrokerRegistration(_) => Self::DuplicateBroker,
            ClusterError::EligibleLeadersNotAvailable
            | ClusterError::PreferredLeaderNotAvailable => Self::NoEligibleLeader,
            ClusterError::NotLeaderOrFollower(_) | ClusterError::NewLeaderElected(_) => {
                Self::NotLeader
            }
            _ => return None,
        })
    }
}

/// The refusals of this node.
#[derive(Debug, Default)]
pub struct Refusals {
    counts: [AtomicU64; RefusalReason::ALL.len()],
    /// When a line about each was logged for the operator last.
    logged_ms: [AtomicI64; RefusalReason::ALL.len()],
}

impl Refusals {
    /// Takes note of what a partition refuses to `who`.
    pub fn on_partition_error(
        &self,
        error: &PartitionError,
        topic_partition: &dyn Display,
        who: &dyn Display,
        now_ms: i64,
    ) {
        if let Some(reason) = RefusalReason::of_partition(error) {
            self.note(reason, error, topic_partition, who, now_ms);
        }
    }

    /// Takes note of what the controller refuses to `who` about `what`.
    pub fn on_cluster_error(
        &self,
        error: &ClusterError,
        what: &dyn Display,
        who: &dyn Display,
        now_ms: i64,
    ) {
        if let Some(reason) = RefusalReason::of_cluster(error) {
            self.note(reason, error, what, who, now_ms);
        }
    }

    fn note(
        &self,
        reason: RefusalReason,
        error: &dyn Display,
        what: &dyn Display,
        who: &dyn Display,
        now_ms: i64,
    ) {
        let index = reason as usize;
        self.counts[index].fetch_add(1, Relaxed);
        let last = self.logged_ms[index].load(Relaxed);
        let is_due = (now_ms - last).abs() >= LOG_INTERVAL_MS
            && self.logged_ms[index]
                .compare_exchange(last, now_ms, Relaxed, Relaxed)
                .is_ok();
        let reason = reason.as_str();
        match is_due {
            true => tracing::info!(reason, %what, %who, %error, "refused"),
            false => tracing::debug!(reason, %what, %who, %error, "refused"),
        }
    }

    /// How often there was this reason.
    pub fn count(&self, reason: RefusalReason) -> u64 {
        self.counts[reason as usize].load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use highwater_storage::LeaderEpoch;

    use super::*;

    #[test]
    fn each_reason_has_its_place_and_its_name() {
        let mut names = std::collections::BTreeSet::new();
        for (index, reason) in RefusalReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert!(names.insert(reason.as_str()));
        }
    }

    /// A client cannot bring this about by itself: the ISR would have to shrink between the commit and its judgement.
    #[test]
    fn too_few_replicas_after_the_append_are_counted() {
        let refusals = Refusals::default();
        let error = PartitionError::NotEnoughReplicasAfterAppend;
        refusals.on_partition_error(&error, &"t-0", &"a producer", 10_000);
        let reason = RefusalReason::NotEnoughReplicasAfterAppend;
        assert_eq!(refusals.count(reason), 1);
        let counted = RefusalReason::ALL.map(|reason| refusals.count(reason));
        assert_eq!(counted.iter().sum::<u64>(), 1);
    }

    #[test]
    fn refusals_are_counted_by_reason_and_others_are_not() {
        let refusals = Refusals::default();
        let (requested, current) = (LeaderEpoch(3), LeaderEpoch(5));
        let stale = EpochFence::Fenced { requested, current }.into();
        for now_ms in [10_000, 10_001] {
            refusals.on_partition_error(&stale, &"t-0", &"replica 2", now_ms);
        }
        let out_of_range = PartitionError::DeletionNotAllowed;
        refusals.on_partition_error(&out_of_range, &"t-0", &"a client", 10_002);
        let stale = ClusterError::InvalidUpdateVersion("partition epoch 1".to_owned());
        refusals.on_cluster_error(&stale, &"t-0", &"broker 2", 10_003);
        let counted = RefusalReason::ALL.map(|reason| refusals.count(reason));
        assert_eq!(counted, [2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    }
}
