//! Kafka's names of errors.

use highwater_replication::cluster::ClusterError;
use highwater_replication::state::alter_partition::AlterPartitionError;
use highwater_replication::state::fencing::EpochFence;
use highwater_replication::state::follower::LeaderError;
use highwater_replication::state::leader::FollowerFetchRefusal;

/// The name of a controller's error.
pub(crate) fn error_name(error: &ClusterError) -> String {
    let name = match error {
        ClusterError::StaleBrokerEpoch(_) => "STALE_BROKER_EPOCH",
        ClusterError::BrokerIdNotRegistered(_) => "BROKER_ID_NOT_REGISTERED",
        ClusterError::DuplicateBrokerRegistration(_) => "DUPLICATE_BROKER_REGISTRATION",
        ClusterError::NotController(_) => "NOT_CONTROLLER",
        ClusterError::FencedLeaderEpoch(_) => "FENCED_LEADER_EPOCH",
        ClusterError::InvalidUpdateVersion(_) => "INVALID_UPDATE_VERSION",
        ClusterError::IneligibleReplica(_) => "INELIGIBLE_REPLICA",
        ClusterError::NewLeaderElected(_) => "NEW_LEADER_ELECTED",
        ClusterError::InvalidRequest(_) => "INVALID_REQUEST",
        ClusterError::ElectionNotNeeded => "ELECTION_NOT_NEEDED",
        ClusterError::PreferredLeaderNotAvailable => "PREFERRED_LEADER_NOT_AVAILABLE",
        ClusterError::EligibleLeadersNotAvailable => "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        ClusterError::NoReassignmentInProgress => "NO_REASSIGNMENT_IN_PROGRESS",
        ClusterError::InvalidReplicaAssignment(_) => "INVALID_REPLICA_ASSIGNMENT",
        other => return format!("{other:?}"),
    };
    name.to_owned()
}

/// What a leader is told when its proposal is refused.
pub(crate) fn alter_error(error: &ClusterError) -> AlterPartitionError {
    match error {
        ClusterError::IneligibleReplica(_) => AlterPartitionError::IneligibleReplica,
        ClusterError::FencedLeaderEpoch(_) => AlterPartitionError::FencedLeaderEpoch,
        ClusterError::InvalidUpdateVersion(_) => AlterPartitionError::InvalidUpdateVersion,
        ClusterError::UnknownTopicOrPartition(_) => AlterPartitionError::UnknownTopicOrPartition,
        ClusterError::UnknownTopicId => AlterPartitionError::UnknownTopicId,
        ClusterError::InvalidRequest(_) => AlterPartitionError::InvalidRequest,
        ClusterError::NewLeaderElected(_) => AlterPartitionError::NewLeaderElected,
        // NOT_CONTROLLER and whatever else.
        _ => AlterPartitionError::Other(41),
    }
}

/// How a leader refuses a fetch whose leader epoch is not its own.
pub(crate) fn fence_error(fence: EpochFence) -> LeaderError {
    match fence {
        EpochFence::Fenced { .. } => LeaderError::FencedLeaderEpoch,
        EpochFence::Unknown { .. } => LeaderError::UnknownLeaderEpoch,
    }
}

/// How a leader refuses a fetch of which it takes no note. A follower that is no replica may know more than the leader.
pub(crate) fn refusal_error(refusal: FollowerFetchRefusal) -> LeaderError {
    match refusal {
        FollowerFetchRefusal::NotAReplica(_) => LeaderError::UnknownLeaderEpoch,
        FollowerFetchRefusal::StaleBrokerEpoch(_)
        | FollowerFetchRefusal::AnotherLeaderEpoch { .. } => LeaderError::NotLeaderOrFollower,
    }
}
