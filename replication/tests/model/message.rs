//! What nodes say to each other. Each message stands for one of Kafka's requests or responses, cut down to what the
//! rules look at.

use std::fmt;

use highwater_replication::cluster::heartbeat::{BrokerHeartbeat, HeartbeatReply};
use highwater_replication::state::alter_partition::{AlterPartitionError, AlteredPartition};
use highwater_replication::state::follower::{FetchAnswer, FetchPosition, LeaderError};
use highwater_replication::state::isr::IsrProposal;
use highwater_replication::state::replica_progress::FollowerFetch;
use highwater_replication::state::truncation::EpochEnd;
use highwater_storage::{BrokerEpoch, BrokerId, LeaderEpoch};
use uuid::Uuid;

use super::log::Record;

/// A process: broker `2` or controller `C2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Broker(BrokerId),
    Controller(usize),
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broker(id) => write!(f, "{id}"),
            Self::Controller(id) => write!(f, "C{id}"),
        }
    }
}

/// What a connection is for; each purpose has its own connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// A follower's requests to its leader.
    Fetch,
    /// AlterPartition.
    Alter,
    /// BrokerRegistration and BrokerHeartbeat.
    Heartbeat,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fetch => "fetch",
            Self::Alter => "alter",
            Self::Heartbeat => "heartbeat",
        })
    }
}

/// One direction of one connection. What is sent on it arrives in order, or is lost with all that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Channel {
    pub(crate) purpose: Purpose,
    pub(crate) from: Node,
    pub(crate) to: Node,
    /// Which connection; each new one has a higher number.
    pub(crate) connection: u32,
}

impl Channel {
    /// The other direction.
    pub(crate) fn back(self) -> Self {
        Self {
            from: self.to,
            to: self.from,
            ..self
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            purpose,
            from,
            to,
            connection,
        } = self;
        write!(f, "{purpose} {from}->{to} #{connection}")
    }
}

/// Which end of a log ListOffsets asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogEnd {
    Start,
    End,
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    /// Fetch.
    Fetch {
        position: FetchPosition,
        fetch: FollowerFetch,
    },
    /// The answer to it, with the position that it was for.
    Fetched {
        sent: FetchPosition,
        answer: FetchAnswer,
        /// The leader's high watermark, whatever the answer.
        leader_high_watermark: i64,
        records: Vec<Record>,
    },
    /// ListOffsets of a follower.
    ListOffset {
        leader_epoch: LeaderEpoch,
        end: LogEnd,
    },
    /// The answer to it.
    ListedOffset {
        leader_epoch: LeaderEpoch,
        end: LogEnd,
        offset: Result<i64, LeaderError>,
    },
    /// OffsetForLeaderEpoch of a follower.
    EpochEnd {
        leader_epoch: LeaderEpoch,
        epoch: LeaderEpoch,
    },
    /// The answer to it.
    EpochEnded {
        leader_epoch: LeaderEpoch,
        end: Result<Option<EpochEnd>, LeaderError>,
    },
    /// AlterPartition.
    Alter {
        broker_epoch: BrokerEpoch,
        proposal: IsrProposal,
    },
    /// The answer to it; `None` when the request as a whole failed.
    Altered {
        proposal: IsrProposal,
        result: Option<Result<AlteredPartition, AlterPartitionError>>,
    },
    /// BrokerRegistration.
    Register {
        incarnation: Uuid,
        previous_broker_epoch: Option<BrokerEpoch>,
    },
    /// The answer to it.
    Registered(Result<BrokerEpoch, String>),
    /// BrokerHeartbeat.
    Heartbeat(BrokerHeartbeat),
    /// The answer to it.
    Heartbeated(Result<HeartbeatReply, String>),
}
