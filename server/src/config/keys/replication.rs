//! Keys: replication and fetching.

use crate::config::key::ConfigKey;
use crate::config::key::ConfigType::{Boolean, Int, Long, Text};

/// The replica selector under which consumers read from the leader, as without one.
const LEADER_SELECTOR: &str = "org.apache.kafka.common.replica.LeaderSelector";
/// The replica selector that sends consumers to a replica of their rack.
pub(in crate::config) const RACK_AWARE_REPLICA_SELECTOR: &str =
    "org.apache.kafka.common.replica.RackAwareReplicaSelector";

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("unclean.leader.election.enable", Boolean, Some("false"))
        .cluster_wide()
        .doc("Whether a replica outside the ISR may lead when no other is left."),
    ConfigKey::new("unclean.leader.election.interval.ms", Long, Some("300000"))
        .at_least(1)
        .internal()
        .doc("How often the controller looks for partitions without a leader."),
    ConfigKey::new("auto.leader.rebalance.enable", Boolean, Some("true"))
        .doc("Whether leadership goes back to the preferred replicas by itself."),
    ConfigKey::new("leader.imbalance.check.interval.seconds", Long, Some("300"))
        .at_least(1)
        .doc(
            "How often the controller looks for partitions not led by their preferred \
             replica.",
        ),
    ConfigKey::new("replica.lag.time.max.ms", Long, Some("30000"))
        .doc("A follower that has not caught up for this long leaves the ISR."),
    ConfigKey::new(
        "replica.high.watermark.checkpoint.interval.ms",
        Long,
        Some("5000"),
    )
    .doc("How often the high watermarks are written down."),
    ConfigKey::new("num.replica.fetchers", Int, Some("1"))
        .at_least(1)
        .cluster_wide()
        .doc("Fetchers of a follower for each leader."),
    ConfigKey::new("replica.fetch.max.bytes", Int, Some("1048576"))
        .at_least(0)
        .doc("Bytes a follower asks for of one partition."),
    ConfigKey::new("replica.fetch.min.bytes", Int, Some("1")).doc("Bytes a follower waits for."),
    ConfigKey::new("replica.fetch.response.max.bytes", Int, Some("10485760"))
        .at_least(0)
        .doc("Bytes a follower asks for in one fetch."),
    ConfigKey::new("replica.fetch.wait.max.ms", Int, Some("500"))
        .doc("How long a follower's fetch may wait for new records."),
    ConfigKey::new("replica.fetch.backoff.ms", Int, Some("1000"))
        .at_least(0)
        .doc("How long a follower rests after an error."),
    ConfigKey::new("replica.socket.timeout.ms", Int, Some("30000"))
        .doc("How long a follower waits for a response."),
    ConfigKey::new("replica.socket.receive.buffer.bytes", Int, Some("65536"))
        .doc("SO_RCVBUF of a follower's connections."),
    ConfigKey::new("replica.selector.class", Text, None)
        .one_of(&[LEADER_SELECTOR, RACK_AWARE_REPLICA_SELECTOR])
        .doc("Class that chooses the replica a consumer reads from."),
    ConfigKey::new("broker.rack", Text, None).doc("Rack of this broker."),
    ConfigKey::new("fetch.max.bytes", Int, Some("57671680"))
        .at_least(1024)
        .doc("Most bytes of records in one fetch response."),
    ConfigKey::new(
        "max.incremental.fetch.session.cache.slots",
        Int,
        Some("1000"),
    )
    .at_least(0)
    .doc("Incremental fetch sessions that are remembered."),
    ConfigKey::new("fetch.purgatory.purge.interval.requests", Int, Some("1000"))
        .no_counterpart("finished operations leave at once")
        .doc("How often finished fetches are cleared from the purgatory."),
    ConfigKey::new(
        "producer.purgatory.purge.interval.requests",
        Int,
        Some("1000"),
    )
    .no_counterpart("finished operations leave at once")
    .doc("How often finished produce requests are cleared from the purgatory."),
    ConfigKey::new(
        "delete.records.purgatory.purge.interval.requests",
        Int,
        Some("1"),
    )
    .no_counterpart("finished operations leave at once")
    .doc("How often finished DeleteRecords requests are cleared from the purgatory."),
    ConfigKey::new("controlled.shutdown.enable", Boolean, Some("true"))
        .doc("Whether leadership moves away before the broker stops."),
];
