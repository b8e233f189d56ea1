//! The group coordinator: consumer groups of the classic protocol and the offsets they commit.
//!
//! A group belongs to the partition of `__consumer_offsets` that [`partition_for`] names, and is served by the leader
//! of that partition. Three layers, each knowing only the one below it:
//!
//! - [`runtime`]: [`GroupCoordinator`], one lock and one timer task for each partition led here, parked requests,
//!   appends that wait to be committed, loading and unloading;
//! - [`state`]: [`GroupShard`], all groups of one partition as a state machine without I/O, clock and randomness. Time
//!   and names of new members are arguments; replies to parked requests and records to append are return values;
//! - [`records`]: the keys and values of `__consumer_offsets` in Kafka's own encoding.
//!
//! [`offsets_log`] is the seam to the replicated log, [`replicated_log`] what lies behind it, and
//! `topic` follows the cluster's metadata.

use std::sync::Arc;

pub mod offsets_log;
pub mod records;
pub mod replicated_log;
pub mod runtime;
pub mod state;
mod topic;

pub use offsets_log::OffsetsLog;
pub use replicated_log::ReplicatedOffsetsLog;
pub use runtime::GroupCoordinator;
pub use state::GroupShard;

/// The internal topic that holds groups and committed offsets.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// A group's id.
pub type GroupId = Arc<str>;

/// A member's id, made by the coordinator.
pub type MemberId = Arc<str>;

/// The settings of the group coordinator, under their Kafka names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// `group.min.session.timeout.ms`
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`
    pub max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`: how long the first rebalance of an empty group waits for more members.
    pub initial_rebalance_delay_ms: i64,
    /// `group.max.size`: members that a group may have.
    pub max_size: usize,
    /// `offset.metadata.max.bytes`, compared with the number of UTF-16 units as Kafka does.
    pub offset_metadata_max_bytes: usize,
    /// `offsets.retention.minutes`, in milliseconds.
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`
    pub offsets_retention_check_interval_ms: i64,
    /// `offsets.commit.timeout.ms`: how long a commit waits for the replicas of its partition.
    pub offset_commit_timeout_ms: i64,
}

impl Default for GroupConfig {
    fn default() -> Self {
        GroupConfig {
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            initial_rebalance_delay_ms: 3_000,
            max_size: usize::MAX,
            offset_metadata_max_bytes: 4_096,
            offsets_retention_ms: 7 * 24 * 60 * 60 * 1_000,
            offsets_retention_check_interval_ms: 600_000,
            offset_commit_timeout_ms: 5_000,
        }
    }
}

/// `String.hashCode` of Java: over UTF-16 code units, wrapping.
pub(crate) fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}

/// The partition of `__consumer_offsets` that a group belongs to: Java's `String.hashCode` without its sign, modulo the
/// number of partitions, so that a data directory of Apache Kafka keeps its groups.
pub fn partition_for(group_id: &str, partitions: i32) -> i32 {
    let hash = java_hash(group_id);
    // The one value without a positive counterpart counts as 0, as in Kafka.
    hash.checked_abs().unwrap_or(0) % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_javas() {
        assert_eq!(java_hash(""), 0);
        assert_eq!(java_hash("a"), 97);
        assert_eq!(java_hash("hello world"), 1_794_106_052);
    }

    #[test]
    fn partition_is_that_of_java() {
        // "g1".hashCode() == 3242, "polygenelubricants".hashCode() == Integer.MIN_VALUE, as Java computes them.
        assert_eq!(partition_for("g1", 50), 3242 % 50);
        assert_eq!(partition_for("", 50), 0);
        // A negative one: "movers".hashCode() == -1068262958; Kafka 4.4.0 keeps that group in partition 8 of 50.
        assert_eq!(partition_for("movers", 50), 8);
        assert_eq!(partition_for("polygenelubricants", 50), 0);
        // Two UTF-16 units: 0xD83D * 31 + 0xDE00.
        assert_eq!(
            partition_for("\u{1F600}", 1_000_000),
            (0xD83D * 31 + 0xDE00) % 1_000_000
        );
    }
}
