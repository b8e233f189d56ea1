//! Every error of every crate as Kafka's error code, in one place.

use highwater_replication::cluster::ClusterError;
use highwater_replication::runtime::error::PartitionError;
use highwater_replication::state::fencing::EpochFence;
use highwater_storage::{AppendError, ReadError, StorageError};
use kafka_protocol::ResponseError;

use crate::controller::ControllerError;
use crate::metadata::MetadataError;

/// The Kafka error that a client is answered with.
pub trait ErrorCode {
    /// Kafka's error for this one.
    fn error_code(&self) -> ResponseError;
}

impl ErrorCode for ResponseError {
    fn error_code(&self) -> ResponseError {
        *self
    }
}

impl ErrorCode for StorageError {
    fn error_code(&self) -> ResponseError {
        match self {
            Self::UnknownPartition(_) | Self::Closed(_) => ResponseError::NotLeaderOrFollower,
            Self::OffsetOutOfRange { .. } => ResponseError::OffsetOutOfRange,
            Self::InconsistentTopicId { .. } => ResponseError::InconsistentTopicId,
            Self::Io { .. }
            | Self::Corrupt { .. }
            | Self::DirectoryInUse { .. }
            | Self::Offline { .. } => ResponseError::KafkaStorageError,
        }
    }
}

impl ErrorCode for AppendError {
    fn error_code(&self) -> ResponseError {
        match self {
            Self::CorruptMessage(_) => ResponseError::CorruptMessage,
            Self::NotOneBatch(_) | Self::InvalidRecord { .. } => ResponseError::InvalidRecord,
            Self::InvalidTimestamp { .. } => ResponseError::InvalidTimestamp,
            Self::MessageTooLarge { .. } => ResponseError::MessageTooLarge,
            Self::RecordListTooLarge { .. } => ResponseError::RecordListTooLarge,
            Self::UnsupportedCompressionType(_) => ResponseError::UnsupportedCompressionType,
            Self::OutOfOrderSequence(_) => ResponseError::OutOfOrderSequenceNumber,
            Self::DuplicateSequence(_) => ResponseError::DuplicateSequenceNumber,
            Self::InvalidProducerEpoch(_) => ResponseError::InvalidProducerEpoch,
            Self::InvalidTxnState(_) => ResponseError::InvalidTxnState,
            Self::TransactionCoordinatorFenced(_) => ResponseError::TransactionCoordinatorFenced,
            // Only a follower appends at given offsets; no client is ever told.
            Self::UnexpectedOffset(_) => ResponseError::UnknownServerError,
            Self::Storage(error) => error.error_code(),
        }
    }
}

impl ErrorCode for ReadError {
    fn error_code(&self) -> ResponseError {
        match self {
            Self::OffsetOutOfRange { .. } => ResponseError::OffsetOutOfRange,
            Self::CorruptMessage(_) => ResponseError::CorruptMessage,
            Self::Storage(error) => error.error_code(),
        }
    }
}

impl ErrorCode for PartitionError {
    fn error_code(&self) -> ResponseError {
        match self {
            Self::NotHosted
            | Self::NotLeader { .. }
            | Self::StaleBrokerEpoch(_)
            | Self::NotAReplica {
                names_leader_epoch: false,
                ..
            } => ResponseError::NotLeaderOrFollower,
            Self::NotAReplica {
                names_leader_epoch: true,
                ..
            } => ResponseError::UnknownLeaderEpoch,
            Self::OffsetNotAvailable { .. } => ResponseError::OffsetNotAvailable,
            Self::InconsistentTopicId => ResponseError::InconsistentTopicId,
            Self::Fenced(EpochFence::Fenced { .. }) => ResponseError::FencedLeaderEpoch,
            Self::Fenced(EpochFence::Unknown { .. }) => ResponseError::UnknownLeaderEpoch,
            Self::NotEnoughReplicas { .. } => ResponseError::NotEnoughReplicas,
            Self::NotEnoughReplicasAfterAppend => ResponseError::NotEnoughReplicasAfterAppend,
            Self::OffsetOutOfRange { .. } => ResponseError::OffsetOutOfRange,
            Self::Offline(_) => ResponseError::KafkaStorageError,
            Self::DeletionNotAllowed => ResponseError::PolicyViolation,
            Self::Append(error) => error.error_code(),
            Self::Read(error) => error.error_code(),
            Self::Storage(error) => error.error_code(),
        }
    }
}

impl ErrorCode for ClusterError {
    fn error_code(&self) -> ResponseError {
        match self {
            Self::InvalidRequest(_) => ResponseError::InvalidRequest,
            Self::InvalidTopic(_) => ResponseError::InvalidTopicException,
            Self::TopicAlreadyExists(_) => ResponseError::TopicAlreadyExists,
            Self::InvalidPartitions(_) => ResponseError::InvalidPartitions,
            Self::InvalidReplicationFactor(_) => ResponseError::InvalidReplicationFactor,
            Self::InvalidReplicaAssignment(_) => ResponseError::InvalidReplicaAssignment,
            Self::InvalidConfig(_) => ResponseError::InvalidConfig,
            Self::PolicyViolation(_) => ResponseError::PolicyViolation,
            Self::UnknownTopicOrPartition(_) => ResponseError::UnknownTopicOrPartition,
            Self::UnknownTopicId => ResponseError::UnknownTopicId,
            Self::BrokerIdNotRegistered(_) => ResponseError::BrokerIdNotRegistered,
            Self::StaleBrokerEpoch(_) => ResponseError::StaleBrokerEpoch,
            Self::InconsistentClusterId(_) => ResponseError::InconsistentClusterId,
            Self::DuplicateBrokerRegistration(_) => ResponseError::DuplicateBrokerRegistration,
            Self::InvalidRegistration(_) => ResponseError::InvalidRegistration,
            Self::UnsupportedVersion(_) => ResponseError::UnsupportedVersion,
            Self::NotController(_) => ResponseError::NotController,
            Self::FencedLeaderEpoch(_) => ResponseError::FencedLeaderEpoch,
            Self::InvalidUpdateVersion(_) => ResponseError::InvalidUpdateVersion,
            Self::IneligibleReplica(_) => ResponseError::IneligibleReplica,
            Self::NewLeaderElected(_) => ResponseError::NewLeaderElected,
            Self::NotLeaderOrFollower(_) => ResponseError::NotLeaderOrFollower,
            Self::ElectionNotNeeded => ResponseError::ElectionNotNeeded,
            Self::PreferredLeaderNotAvailable => ResponseError::PreferredLeaderNotAvailable,
            Self::EligibleLeadersNotAvailable => ResponseError::EligibleLeadersNotAvailable,
            Self::NoReassignmentInProgress => ResponseError::NoReassignmentInProgress,
            Self::UnknownServerError(_) => ResponseError::UnknownServerError,
        }
    }
}

impl ErrorCode for ControllerError {
    fn error_code(&self) -> ResponseError {
        match self {
            // Clients ask again; by then this process is gone or another one leads.
            Self::Stopping | Self::NotController { .. } => ResponseError::NotController,
            Self::Failed(_) => ResponseError::KafkaStorageError,
            Self::Metadata(error) => error.error_code(),
            Self::Incompatible(_) | Self::Panicked => ResponseError::UnknownServerError,
        }
    }
}

impl ErrorCode for MetadataError {
    fn error_code(&self) -> ResponseError {
        match self {
            Self::Append(_) | Self::Storage(_) | Self::Read(_) => ResponseError::KafkaStorageError,
            Self::Batch { .. }
            | Self::Encode(_)
            | Self::Record { .. }
            | Self::Replay { .. }
            | Self::Apply { .. }
            | Self::Corrupt { .. } => ResponseError::UnknownServerError,
        }
    }
}
