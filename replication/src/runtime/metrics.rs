//! Counters of replication on this broker.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// What it has counted.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What partitions and fetchers count.
#[derive(Debug, Default)]
pub struct ReplicationMetrics {
    /// Changes by which a replica joined the in-sync replicas, as leader (`IsrExpandsPerSec`).
    pub isr_expands: Counter,
    /// Changes by which replicas left them, as leader (`IsrShrinksPerSec`).
    pub isr_shrinks: Counter,
    /// Proposals that the controller refused (`FailedIsrUpdatesPerSec`).
    pub failed_isr_updates: Counter,
    /// Bytes of records that were appended as follower (`ReplicationBytesInPerSec`).
    pub replication_bytes_in: Counter,
    /// Bytes of records that were read for followers (`ReplicationBytesOutPerSec`).
    pub replication_bytes_out: Counter,
    /// Times that a follower cut its log, because the leader's diverges.
    pub truncations: Counter,
}
