//! The settings of replication that hold for a whole broker, under Kafka's names.

use crate::state::replica_selector::ReplicaSelector;
use crate::state::replication_quota::QuotaConfig;

/// Settings of replication; the defaults are Kafka's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaSettings {
    /// `replica.lag.time.max.ms`: a follower that has not caught up for so long leaves the ISR.
    pub replica_lag_time_max_ms: i64,
    /// `replica.selector.class`.
    pub replica_selector: ReplicaSelector,
    /// `num.replica.fetchers`: fetchers for each leader's broker.
    pub num_replica_fetchers: usize,
    /// `replica.fetch.max.bytes`: how much is asked for of one partition.
    pub replica_fetch_max_bytes: i32,
    /// `replica.fetch.min.bytes`: how much a fetch waits for.
    pub replica_fetch_min_bytes: i32,
    /// `replica.fetch.response.max.bytes`: how much is asked for in one fetch.
    pub replica_fetch_response_max_bytes: i32,
    /// `replica.fetch.wait.max.ms`: how long a fetch may wait.
    pub replica_fetch_wait_max_ms: i32,
    /// `replica.fetch.backoff.ms`: how long a partition rests after an error.
    pub replica_fetch_backoff_ms: i64,
    /// `leader.replication.throttled.rate`, with its window: what is sent to throttled followers.
    pub leader_throttle: QuotaConfig,
    /// `follower.replication.throttled.rate`, with its window: what throttled followers fetch.
    pub follower_throttle: QuotaConfig,
}

impl Default for ReplicaSettings {
    fn default() -> Self {
        Self {
            replica_lag_time_max_ms: 30_000,
            replica_selector: ReplicaSelector::Leader,
            num_replica_fetchers: 1,
            replica_fetch_max_bytes: 1 << 20,
            replica_fetch_min_bytes: 1,
            replica_fetch_response_max_bytes: 10 << 20,
            replica_fetch_wait_max_ms: 500,
            replica_fetch_backoff_ms: 1_000,
            leader_throttle: QuotaConfig::of(i64::MAX),
            follower_throttle: QuotaConfig::of(i64::MAX),
        }
    }
}
