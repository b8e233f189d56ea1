//! What a follower asks of a leader on another broker.
//!
//! The server implements it over its network client; nothing here knows sockets or the wire.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use highwater_storage::{BrokerEpoch, BrokerId, LeaderEpoch, TopicId, TopicPartition};
use thiserror::Error;

use super::BoxFuture;
use crate::state::follower::{FetchPosition, LeaderError};
use crate::state::truncation::EpochEnd;

/// A partition with the id of its topic: names may be reused, ids are not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicIdPartition {
    /// The id of the topic.
    pub topic_id: TopicId,
    /// Its name, and the partition's number.
    pub topic_partition: TopicPartition,
}

/// Why a request as a whole has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LeaderEndpointError {
    /// The session is gone or out of step (FETCH_SESSION_ID_NOT_FOUND,
    /// INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR): fetch without one.
    #[error("the fetch session cannot be used: {0}")]
    Session(String),
    /// The leader's broker is not in the metadata or has no listener for brokers.
    #[error("broker {0} is not known")]
    UnknownBroker(BrokerId),
    /// No connection, a connection that broke, or no answer in time. Ask again later.
    #[error("{0}")]
    Disconnected(String),
    /// The leader refuses the request as a whole, by the code of the error.
    #[error("error code {0}")]
    Refused(i16),
}

/// A partition to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchPartition {
    /// Which.
    pub partition: TopicIdPartition,
    /// From where on.
    pub position: FetchPosition,
    /// Our log start offset.
    pub log_start_offset: i64,
    /// Our high watermark (Fetch v18).
    pub high_watermark: i64,
    /// `replica.fetch.max.bytes`.
    pub max_bytes: i32,
}

/// A fetch of many partitions, within a session (KIP-227).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// Our broker.
    pub replica: BrokerId,
    /// Its present run; -1 while it is not registered.
    pub broker_epoch: BrokerEpoch,
    /// `replica.fetch.wait.max.ms`.
    pub max_wait_ms: i32,
    /// `replica.fetch.min.bytes`.
    pub min_bytes: i32,
    /// `replica.fetch.response.max.bytes`.
    pub max_bytes: i32,
    /// The session; 0 for none.
    pub session_id: i32,
    /// The epoch within the session: 0 opens one, -1 does without.
    pub session_epoch: i32,
    /// With a session: the partitions that are new or changed. Without: all.
    pub partitions: Vec<FetchPartition>,
    /// Partitions that leave the session.
    pub forgotten: Vec<TopicIdPartition>,
}

/// What the leader answers for one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedPartition {
    /// The id of the topic.
    pub topic_id: TopicId,
    /// The partition's number.
    pub partition: i32,
    /// The answer.
    pub answer: Result<FetchedRecords, LeaderError>,
}

/// Records of one partition, or the place where the logs diverge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedRecords {
    /// The leader's high watermark.
    pub high_watermark: i64,
    /// The leader's log start offset.
    pub log_start_offset: i64,
    /// The logs diverge: there are no records.
    pub diverging_epoch: Option<EpochEnd>,
    /// Whole batches, maybe followed by one that is cut off. A slice of what was received, so that
    /// it is written without a copy.
    pub records: Bytes,
}

/// The answer to a [`FetchRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchResponse {
    /// The session that was opened or used; 0 for none.
    pub session_id: i32,
    /// With a session: the partitions that have something to tell. Without: all.
    pub partitions: Vec<FetchedPartition>,
}

/// Which end of a leader's log a follower asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaOffset {
    /// The log end offset: what ListOffsets gives a replica for "latest" (-1).
    LogEnd,
    /// The log start offset (-2).
    LogStart,
}

/// One broker that leads partitions which we follow. Each fetcher has its own, with its own
/// connection. Dropping a future does not take the request back.
pub trait LeaderEndpoint: Send + Sync + fmt::Debug {
    /// Fetches. The leader may take `max_wait_ms` to answer.
    ///
    /// # Errors
    /// When the request as a whole has no answer.
    fn fetch(
        &self,
        request: FetchRequest,
    ) -> BoxFuture<'_, Result<FetchResponse, LeaderEndpointError>>;

    /// Asks for an end of the leader's log, as replica (ListOffsets).
    ///
    /// # Errors
    /// When there is no answer; within it, when the leader refuses.
    fn list_offset(
        &self,
        partition: TopicIdPartition,
        current_leader_epoch: LeaderEpoch,
        which: ReplicaOffset,
    ) -> BoxFuture<'_, Result<Result<i64, LeaderError>, LeaderEndpointError>>;

    /// Asks where the largest epoch that is not above `epoch` ends in the leader's log
    /// (OffsetForLeaderEpoch); `None` when the leader knows none.
    ///
    /// # Errors
    /// When there is no answer; within it, when the leader refuses.
    fn end_offset_for_epoch(
        &self,
        partition: TopicIdPartition,
        current_leader_epoch: LeaderEpoch,
        epoch: LeaderEpoch,
    ) -> BoxFuture<'_, Result<Result<Option<EpochEnd>, LeaderError>, LeaderEndpointError>>;

    /// Gives the connection up; the next request makes a new one. The leader answers in the order
    /// of the requests, so this is how not to wait for one that it has parked.
    fn disconnect(&self);
}

/// Makes endpoints.
pub trait LeaderEndpointFactory: Send + Sync + fmt::Debug {
    /// An endpoint for a broker. Connects when it is first asked for something, and looks the
    /// broker's address up anew whenever it connects.
    fn endpoint(&self, leader: BrokerId, fetcher_id: usize) -> Arc<dyn LeaderEndpoint>;
}
