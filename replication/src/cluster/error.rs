//! Why a request for a change of the cluster is refused. Each kind is one of Kafka's error codes.

/// A refusal, with the text that the client is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// INVALID_REQUEST: the request contradicts itself.
    #[error("{0}")]
    InvalidRequest(String),
    /// INVALID_TOPIC_EXCEPTION: the name breaks a rule or collides with another.
    #[error("{0}")]
    InvalidTopic(String),
    /// TOPIC_ALREADY_EXISTS.
    #[error("Topic '{0}' already exists.")]
    TopicAlreadyExists(String),
    /// INVALID_PARTITIONS: the number of partitions makes no sense.
    #[error("{0}")]
    InvalidPartitions(String),
    /// INVALID_REPLICATION_FACTOR: so many replicas cannot be placed.
    #[error("{0}")]
    InvalidReplicationFactor(String),
    /// INVALID_REPLICA_ASSIGNMENT: a manual assignment cannot be used.
    #[error("{0}")]
    InvalidReplicaAssignment(String),
    /// INVALID_CONFIG: a key or a value is not allowed.
    #[error("{0}")]
    InvalidConfig(String),
    /// POLICY_VIOLATION: more than the controller does in one go.
    #[error("{0}")]
    PolicyViolation(String),
    /// UNKNOWN_TOPIC_OR_PARTITION, with a text of its own.
    #[error("{0}")]
    UnknownTopicOrPartition(String),
    /// UNKNOWN_TOPIC_ID.
    #[error("This server does not host this topic ID.")]
    UnknownTopicId,
    /// BROKER_ID_NOT_REGISTERED.
    #[error("{0}")]
    BrokerIdNotRegistered(String),
    /// STALE_BROKER_EPOCH: the request comes from an earlier run of the broker.
    #[error("{0}")]
    StaleBrokerEpoch(String),
    /// INCONSISTENT_CLUSTER_ID: the broker belongs to another cluster.
    #[error("{0}")]
    InconsistentClusterId(String),
    /// DUPLICATE_BROKER_REGISTRATION: another process with this broker id is alive.
    #[error("{0}")]
    DuplicateBrokerRegistration(String),
    /// INVALID_REGISTRATION: what a broker says of itself cannot be.
    #[error("{0}")]
    InvalidRegistration(String),
    /// UNSUPPORTED_VERSION: the broker or the controller cannot work at a finalized feature level.
    #[error("{0}")]
    UnsupportedVersion(String),
    /// NOT_CONTROLLER: the requester knows more than this controller.
    #[error("{0}")]
    NotController(String),
    /// FENCED_LEADER_EPOCH: the requester no longer leads.
    #[error("{0}")]
    FencedLeaderEpoch(String),
    /// INVALID_UPDATE_VERSION: the partition, or the feature, changed meanwhile or cannot have that level.
    #[error("{0}")]
    InvalidUpdateVersion(String),
    /// INELIGIBLE_REPLICA: a replica that may not be in the ISR.
    #[error("{0}")]
    IneligibleReplica(String),
    /// NEW_LEADER_ELECTED: the change was made and took the leadership from the requester.
    #[error("{0}")]
    NewLeaderElected(String),
    /// NOT_LEADER_OR_FOLLOWER: the broker has no replica of the partition.
    #[error("{0}")]
    NotLeaderOrFollower(String),
    /// ELECTION_NOT_NEEDED.
    #[error("Leader election not needed for topic partition.")]
    ElectionNotNeeded,
    /// PREFERRED_LEADER_NOT_AVAILABLE.
    #[error("The preferred leader was not available.")]
    PreferredLeaderNotAvailable,
    /// ELIGIBLE_LEADERS_NOT_AVAILABLE.
    #[error("Eligible topic partition leaders are not available.")]
    EligibleLeadersNotAvailable,
    /// NO_REASSIGNMENT_IN_PROGRESS.
    #[error("No partition reassignment is in progress.")]
    NoReassignmentInProgress,
    /// UNKNOWN_SERVER_ERROR: the metadata leaves no room for an answer.
    #[error("{0}")]
    UnknownServerError(String),
}

impl ClusterError {
    /// The error for a topic name that nobody has, with Kafka's general text.
    pub fn unknown_topic() -> Self {
        Self::UnknownTopicOrPartition("This server does not host this topic-partition.".to_owned())
    }

    /// The error of a request that needs more records than one batch may have.
    pub fn excessively_large_batch() -> Self {
        Self::PolicyViolation("Unable to perform excessively large batch operation.".to_owned())
    }
}

/// What became of one entry of a request.
pub type EntryResult = Result<(), ClusterError>;

/// How many records one request may need.
pub const MAX_RECORDS_PER_USER_OP: usize = 10_000;

/// Refuses a request that needs more records than one request may.
pub(super) fn check_record_count(count: usize) -> Result<(), ClusterError> {
    match count <= MAX_RECORDS_PER_USER_OP {
        true => Ok(()),
        false => Err(ClusterError::excessively_large_batch()),
    }
}
