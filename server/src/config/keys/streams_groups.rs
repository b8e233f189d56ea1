//! Keys: streams groups.

use crate::config::key::ConfigKey;
use crate::config::key::ConfigType::{Boolean, Class, Int, List, Long};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("group.streams.session.timeout.ms", Int, Some("45000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Session time-out of a member of a streams group."),
    ConfigKey::new("group.streams.min.session.timeout.ms", Int, Some("45000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Shortest session time-out a streams group may set."),
    ConfigKey::new("group.streams.max.session.timeout.ms", Int, Some("60000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Longest session time-out a streams group may set."),
    ConfigKey::new("group.streams.heartbeat.interval.ms", Int, Some("5000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Heartbeat interval given to the members of streams groups."),
    ConfigKey::new("group.streams.min.heartbeat.interval.ms", Int, Some("5000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Shortest heartbeat interval a streams group may set."),
    ConfigKey::new(
        "group.streams.max.heartbeat.interval.ms",
        Int,
        Some("15000"),
    )
    .at_least(1)
    .not_supported_yet()
    .doc("Longest heartbeat interval a streams group may set."),
    ConfigKey::new("group.streams.max.size", Int, Some("2147483647"))
        .at_least(1)
        .not_supported_yet()
        .doc("Most members of one streams group."),
    ConfigKey::new("group.streams.num.standby.replicas", Int, Some("0"))
        .at_least(0)
        .not_supported_yet()
        .doc("Standby replicas of each stateful task."),
    ConfigKey::new("group.streams.max.standby.replicas", Int, Some("2"))
        .at_least(0)
        .not_supported_yet()
        .doc("Upper bound of a group's own number of standby replicas."),
    ConfigKey::new("group.streams.num.warmup.replicas", Int, Some("2"))
        .at_least(0)
        .internal()
        .not_supported_yet()
        .doc("Warm-up replicas of a streams group."),
    ConfigKey::new("group.streams.max.warmup.replicas", Int, Some("20"))
        .at_least(0)
        .internal()
        .not_supported_yet()
        .doc("Upper bound of a group's own number of warm-up replicas."),
    ConfigKey::new(
        "group.streams.initial.rebalance.delay.ms",
        Int,
        Some("3000"),
    )
    .at_least(0)
    .not_supported_yet()
    .doc("How long the first assignment of a streams group waits for more members."),
    ConfigKey::new("group.streams.acceptable.recovery.lag", Long, Some("10000"))
        .at_least(0)
        .internal()
        .not_supported_yet()
        .doc("Lag up to which a task counts as caught up."),
    ConfigKey::new("group.streams.assignors", List, Some("sticky"))
        .not_supported_yet()
        .doc("Assignors of streams groups."),
    ConfigKey::new("group.streams.assignment.interval.ms", Int, Some("1000"))
        .at_least(0)
        .cluster_wide()
        .not_supported_yet()
        .doc("Shortest time between two assignments of a streams group."),
    ConfigKey::new("group.streams.min.assignment.interval.ms", Int, Some("0"))
        .at_least(0)
        .not_supported_yet()
        .doc("Lower bound of a group's own assignment interval."),
    ConfigKey::new(
        "group.streams.max.assignment.interval.ms",
        Int,
        Some("15000"),
    )
    .at_least(0)
    .not_supported_yet()
    .doc("Upper bound of a group's own assignment interval."),
    ConfigKey::new(
        "group.streams.assignor.offload.enable",
        Boolean,
        Some("true"),
    )
    .cluster_wide()
    .internal()
    .not_supported_yet()
    .doc("Whether assignments are worked out on a background thread."),
    ConfigKey::new("group.streams.rack.aware.assignment.tags", List, Some(""))
        .not_supported_yet()
        .doc("Client tags over which standby replicas are spread."),
    ConfigKey::new("group.streams.task.offset.interval.ms", Int, Some("60000"))
        .at_least(1)
        .internal()
        .not_supported_yet()
        .doc("How often members report the offsets of their tasks."),
    ConfigKey::new(
        "group.streams.min.task.offset.interval.ms",
        Int,
        Some("15000"),
    )
    .at_least(1)
    .internal()
    .not_supported_yet()
    .doc("Lower bound of a group's own task offset interval."),
    ConfigKey::new(
        "group.streams.topology.description.plugin.class",
        Class,
        None,
    )
    .not_supported_yet()
    .doc("Class that describes topologies."),
];
