//! What a replica is told, and what it looks at: who leads, where its log stands, who is alive.

use highwater_storage::{BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch};

/// Who leads a partition and who is in sync, as the cluster's metadata says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leadership {
    /// The leader, if there is one.
    pub leader: Option<BrokerId>,
    /// Its epoch.
    pub leader_epoch: LeaderEpoch,
    /// Version of this partition's metadata.
    pub partition_epoch: PartitionEpoch,
    /// The assigned replicas, preferred leader first.
    pub replicas: Vec<BrokerId>,
    /// The committed in-sync replicas.
    pub isr: Vec<BrokerId>,
}

/// Where a replica's own log stands. The end offsets are exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogOffsets {
    /// The first offset there is.
    pub log_start_offset: i64,
    /// End of what is committed as far as this replica knows.
    pub high_watermark: i64,
    /// The offset that the next record gets.
    pub log_end_offset: i64,
}

/// What the metadata says of a broker, as far as the in-sync replicas look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerStanding {
    /// The epoch of the broker's present run.
    pub broker_epoch: BrokerEpoch,
    /// Whether it is neither fenced nor in controlled shutdown (KIP-841).
    pub is_active: bool,
}

/// Tells how brokers stand in the latest metadata.
pub trait BrokerDirectory: Sync {
    /// How a broker stands; `None` when it is not registered.
    fn standing(&self, broker: BrokerId) -> Option<BrokerStanding>;
}

impl<F: Fn(BrokerId) -> Option<BrokerStanding> + Sync> BrokerDirectory for F {
    fn standing(&self, broker: BrokerId) -> Option<BrokerStanding> {
        self(broker)
    }
}

/// What is true at the time of an event, outside of the partition.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// A clock that never goes back, in ms; only differences are looked at.
    pub now_ms: i64,
    /// `replica.lag.time.max.ms`.
    pub replica_lag_time_max_ms: i64,
    /// The latest metadata of brokers: one snapshot for the whole event (KAFKA-15221).
    pub brokers: &'a dyn BrokerDirectory,
}

impl Moment<'static> {
    /// For a leader without followers, which looks at nothing of it.
    pub const IRRELEVANT: Self = Self {
        now_ms: 0,
        replica_lag_time_max_ms: 0,
        brokers: &NoBrokers,
    };
}

struct NoBrokers;

impl BrokerDirectory for NoBrokers {
    fn standing(&self, _: BrokerId) -> Option<BrokerStanding> {
        None
    }
}

impl std::fmt::Debug for Moment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Moment")
            .field("now_ms", &self.now_ms)
            .field("replica_lag_time_max_ms", &self.replica_lag_time_max_ms)
            .finish_non_exhaustive()
    }
}
