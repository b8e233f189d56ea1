//! Keys: consumer groups and their offsets.

use crate::config::key::{ConfigKey, ConfigType::*};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("group.min.session.timeout.ms", Int, Some("6000"))
        .doc("Shortest session time-out a member may ask for."),
    ConfigKey::new("group.max.session.timeout.ms", Int, Some("1800000"))
        .doc("Longest session time-out a member may ask for."),
    ConfigKey::new("group.initial.rebalance.delay.ms", Int, Some("3000"))
        .default_here("0")
        .doc("How long the first rebalance of a new group waits for more members."),
    ConfigKey::new("group.max.size", Int, Some("2147483647"))
        .at_least(1)
        .doc("Most members of one group."),
    ConfigKey::new(
        "group.coordinator.rebalance.protocols",
        List,
        Some("classic,consumer,streams"),
    )
    .default_here("classic")
    .list_of(&["consumer", "classic", "share", "streams"])
    .not_supported_yet()
    .doc("Group protocols that are served."),
    ConfigKey::new("group.coordinator.threads", Int, Some("4"))
        .at_least(1)
        .no_counterpart("groups are served where their requests arrive")
        .doc("Threads of the group coordinator."),
    ConfigKey::new("group.coordinator.background.threads", Int, Some("2"))
        .at_least(1)
        .no_counterpart("background work runs on the shared runtime")
        .doc("Threads for the group coordinator's background work."),
    ConfigKey::new("group.coordinator.append.linger.ms", Int, Some("-1"))
        .at_least(-1)
        .not_supported_yet()
        .doc("How long the group coordinator gathers writes; -1 adapts to the load."),
    ConfigKey::new(
        "group.coordinator.cached.buffer.max.bytes",
        Int,
        Some("1048588"),
    )
    .at_least(524288)
    .cluster_wide()
    .no_counterpart("buffers are given back")
    .doc("Buffer the group coordinator keeps for its next write."),
    ConfigKey::new("offsets.topic.num.partitions", Int, Some("50"))
        .at_least(1)
        .doc("Partitions of `__consumer_offsets`."),
    ConfigKey::new("offsets.topic.replication.factor", Short, Some("3"))
        .default_here("1")
        .at_least(1)
        .doc("Replicas of `__consumer_offsets`."),
    ConfigKey::new("offsets.topic.segment.bytes", Int, Some("104857600"))
        .at_least(1)
        .doc("Segment size of `__consumer_offsets`."),
    ConfigKey::new("offsets.topic.compression.codec", Int, Some("0")).doc(
        "Codec of the batches in `__consumer_offsets`: 0 none, 1 gzip, 2 snappy, 3 \
             lz4, 4 zstd.",
    ),
    ConfigKey::new("offsets.retention.minutes", Int, Some("10080"))
        .at_least(1)
        .doc("How long the offsets of an empty group are kept."),
    ConfigKey::new("offsets.retention.check.interval.ms", Long, Some("600000"))
        .at_least(1)
        .doc("How often expired offsets are looked for."),
    ConfigKey::new("offset.metadata.max.bytes", Int, Some("4096"))
        .doc("Longest metadata text of a committed offset."),
    ConfigKey::new("offsets.commit.timeout.ms", Int, Some("5000"))
        .at_least(1)
        .doc("How long an offset commit may wait for its replicas."),
    ConfigKey::new("offsets.load.buffer.size", Int, Some("5242880"))
        .at_least(1)
        .no_counterpart("logs are read through the page cache")
        .doc("Bytes read at a time when `__consumer_offsets` is loaded."),
    ConfigKey::new("group.consumer.session.timeout.ms", Int, Some("45000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Session time-out of a member of a new-protocol group."),
    ConfigKey::new("group.consumer.min.session.timeout.ms", Int, Some("45000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Shortest session time-out a new-protocol group may set."),
    ConfigKey::new("group.consumer.max.session.timeout.ms", Int, Some("60000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Longest session time-out a new-protocol group may set."),
    ConfigKey::new("group.consumer.heartbeat.interval.ms", Int, Some("5000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Heartbeat interval given to the members of new-protocol groups."),
    ConfigKey::new(
        "group.consumer.min.heartbeat.interval.ms",
        Int,
        Some("5000"),
    )
    .at_least(1)
    .not_supported_yet()
    .doc("Shortest heartbeat interval a new-protocol group may set."),
    ConfigKey::new(
        "group.consumer.max.heartbeat.interval.ms",
        Int,
        Some("15000"),
    )
    .at_least(1)
    .not_supported_yet()
    .doc("Longest heartbeat interval a new-protocol group may set."),
    ConfigKey::new("group.consumer.max.size", Int, Some("2147483647"))
        .at_least(1)
        .not_supported_yet()
        .doc("Most members of one new-protocol group."),
    ConfigKey::new("group.consumer.assignors", List, Some("uniform,range"))
        .not_supported_yet()
        .doc("Assignors of new-protocol groups; the first is the default."),
    ConfigKey::new("group.consumer.assignment.interval.ms", Int, Some("1000"))
        .at_least(0)
        .cluster_wide()
        .not_supported_yet()
        .doc("Shortest time between two assignments of a new-protocol group."),
    ConfigKey::new("group.consumer.min.assignment.interval.ms", Int, Some("0"))
        .at_least(0)
        .not_supported_yet()
        .doc("Lower bound of a group's own assignment interval."),
    ConfigKey::new(
        "group.consumer.max.assignment.interval.ms",
        Int,
        Some("15000"),
    )
    .at_least(0)
    .not_supported_yet()
    .doc("Upper bound of a group's own assignment interval."),
    ConfigKey::new(
        "group.consumer.assignor.offload.enable",
        Boolean,
        Some("true"),
    )
    .cluster_wide()
    .internal()
    .not_supported_yet()
    .doc("Whether assignments are worked out on a background thread."),
    ConfigKey::new(
        "group.consumer.migration.policy",
        Text,
        Some("bidirectional"),
    )
    .one_of_ignoring_case(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"])
    .not_supported_yet()
    .doc("Whether groups may move between the classic and the new protocol while in use."),
    ConfigKey::new(
        "group.consumer.regex.refresh.interval.ms",
        Int,
        Some("600000"),
    )
    .at_least(10000)
    .internal()
    .not_supported_yet()
    .doc("How often topic patterns of subscriptions are looked up again."),
];
