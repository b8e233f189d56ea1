//! Keys: share groups.

use crate::config::key::ConfigKey;
use crate::config::key::ConfigType::{Boolean, Int, List, Short, Text};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("group.share.session.timeout.ms", Int, Some("45000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Session time-out of a member of a share group."),
    ConfigKey::new("group.share.min.session.timeout.ms", Int, Some("45000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Shortest session time-out a share group may set."),
    ConfigKey::new("group.share.max.session.timeout.ms", Int, Some("60000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Longest session time-out a share group may set."),
    ConfigKey::new("group.share.heartbeat.interval.ms", Int, Some("5000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Heartbeat interval given to the members of share groups."),
    ConfigKey::new("group.share.min.heartbeat.interval.ms", Int, Some("5000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Shortest heartbeat interval a share group may set."),
    ConfigKey::new("group.share.max.heartbeat.interval.ms", Int, Some("15000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Longest heartbeat interval a share group may set."),
    ConfigKey::new("group.share.max.size", Int, Some("200"))
        .between(1, 1000)
        .not_supported_yet()
        .doc("Most members of one share group."),
    ConfigKey::new("group.share.max.share.sessions", Int, Some("2000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Share sessions of a broker."),
    ConfigKey::new("group.share.delivery.count.limit", Int, Some("5"))
        .between(2, 10)
        .not_supported_yet()
        .doc("Times a record is delivered before it is given up."),
    ConfigKey::new("group.share.min.delivery.count.limit", Int, Some("2"))
        .between(2, 5)
        .not_supported_yet()
        .doc("Lower bound of a group's own delivery limit."),
    ConfigKey::new("group.share.max.delivery.count.limit", Int, Some("10"))
        .between(5, 25)
        .not_supported_yet()
        .doc("Upper bound of a group's own delivery limit."),
    ConfigKey::new("group.share.record.lock.duration.ms", Int, Some("30000"))
        .between(1000, 3600000)
        .not_supported_yet()
        .doc("How long a delivered record is locked for its consumer."),
    ConfigKey::new(
        "group.share.min.record.lock.duration.ms",
        Int,
        Some("15000"),
    )
    .between(1000, 30000)
    .not_supported_yet()
    .doc("Lower bound of a group's own lock time."),
    ConfigKey::new(
        "group.share.max.record.lock.duration.ms",
        Int,
        Some("60000"),
    )
    .between(30000, 3600000)
    .not_supported_yet()
    .doc("Upper bound of a group's own lock time."),
    ConfigKey::new("group.share.partition.max.record.locks", Int, Some("2000"))
        .between(100, 10000)
        .not_supported_yet()
        .doc("Records of a partition that may be locked at the same time."),
    ConfigKey::new(
        "group.share.min.partition.max.record.locks",
        Int,
        Some("100"),
    )
    .between(100, 2000)
    .not_supported_yet()
    .doc("Lower bound of a group's own number of locks."),
    ConfigKey::new(
        "group.share.max.partition.max.record.locks",
        Int,
        Some("4000"),
    )
    .between(2000, 10000)
    .not_supported_yet()
    .doc("Upper bound of a group's own number of locks."),
    ConfigKey::new("group.share.assignors", List, Some("simple"))
        .not_supported_yet()
        .doc("Assignors of share groups."),
    ConfigKey::new("group.share.assignment.interval.ms", Int, Some("1000"))
        .at_least(0)
        .cluster_wide()
        .not_supported_yet()
        .doc("Shortest time between two assignments of a share group."),
    ConfigKey::new("group.share.min.assignment.interval.ms", Int, Some("0"))
        .at_least(0)
        .not_supported_yet()
        .doc("Lower bound of a group's own assignment interval."),
    ConfigKey::new("group.share.max.assignment.interval.ms", Int, Some("15000"))
        .at_least(0)
        .not_supported_yet()
        .doc("Upper bound of a group's own assignment interval."),
    ConfigKey::new("group.share.assignor.offload.enable", Boolean, Some("true"))
        .cluster_wide()
        .internal()
        .not_supported_yet()
        .doc("Whether assignments are worked out on a background thread."),
    ConfigKey::new(
        "group.share.initialize.retry.interval.ms",
        Int,
        Some("30000"),
    )
    .at_least(1)
    .internal()
    .not_supported_yet()
    .doc("How long a failed set-up of a share partition waits before its next try."),
    ConfigKey::new(
        "group.share.persister.class.name",
        Text,
        Some("org.apache.kafka.server.share.persister.DefaultStatePersister"),
    )
    .internal()
    .not_supported_yet()
    .doc("Class that stores the state of share groups."),
    ConfigKey::new(
        "group.share.dlq.manager.class.name",
        Text,
        Some("org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager"),
    )
    .internal()
    .not_supported_yet()
    .doc("Class that writes to dead-letter topics."),
    ConfigKey::new(
        "errors.deadletterqueue.auto.create.topics.enable",
        Boolean,
        Some("false"),
    )
    .cluster_wide()
    .not_supported_yet()
    .doc("Whether dead-letter topics of share groups are made when missing."),
    ConfigKey::new(
        "errors.deadletterqueue.topic.name.prefix",
        Text,
        Some("dlq."),
    )
    .cluster_wide()
    .not_supported_yet()
    .doc("Prefix that names of dead-letter topics must have."),
    ConfigKey::new(
        "share.coordinator.state.topic.num.partitions",
        Int,
        Some("50"),
    )
    .at_least(1)
    .not_supported_yet()
    .doc("Partitions of `__share_group_state`."),
    ConfigKey::new(
        "share.coordinator.state.topic.replication.factor",
        Short,
        Some("3"),
    )
    .default_here("1")
    .at_least(1)
    .not_supported_yet()
    .doc("Replicas of `__share_group_state`."),
    ConfigKey::new("share.coordinator.state.topic.min.isr", Short, Some("2"))
        .default_here("1")
        .at_least(1)
        .not_supported_yet()
        .doc("min.insync.replicas of `__share_group_state`."),
    ConfigKey::new(
        "share.coordinator.state.topic.segment.bytes",
        Int,
        Some("104857600"),
    )
    .at_least(1)
    .not_supported_yet()
    .doc("Segment size of `__share_group_state`."),
    ConfigKey::new(
        "share.coordinator.state.topic.compression.codec",
        Int,
        Some("0"),
    )
    .not_supported_yet()
    .doc("Codec of the batches in `__share_group_state`."),
    ConfigKey::new(
        "share.coordinator.state.topic.prune.interval.ms",
        Int,
        Some("300000"),
    )
    .at_least(1)
    .internal()
    .not_supported_yet()
    .doc("How often superseded records of `__share_group_state` are removed."),
    ConfigKey::new(
        "share.coordinator.snapshot.update.records.per.snapshot",
        Int,
        Some("500"),
    )
    .between(0, 500)
    .not_supported_yet()
    .doc("Updates of share state between two snapshots."),
    ConfigKey::new(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        Int,
        Some("300000"),
    )
    .at_least(1)
    .internal()
    .not_supported_yet()
    .doc("How often share state without updates gets a snapshot."),
    ConfigKey::new("share.coordinator.write.timeout.ms", Int, Some("5000"))
        .at_least(1)
        .not_supported_yet()
        .doc("How long a write of share state may wait for its replicas."),
    ConfigKey::new("share.coordinator.load.buffer.size", Int, Some("5242880"))
        .at_least(1)
        .not_supported_yet()
        .doc("Bytes read at a time when share state is loaded."),
    ConfigKey::new("share.coordinator.threads", Int, Some("1"))
        .at_least(1)
        .not_supported_yet()
        .doc("Threads of the share coordinator."),
    ConfigKey::new("share.coordinator.append.linger.ms", Int, Some("-1"))
        .at_least(-1)
        .not_supported_yet()
        .doc("How long the share coordinator gathers writes; -1 adapts to the load."),
    ConfigKey::new(
        "share.coordinator.cached.buffer.max.bytes",
        Int,
        Some("1048588"),
    )
    .at_least(524288)
    .cluster_wide()
    .not_supported_yet()
    .doc("Buffer the share coordinator keeps for its next write."),
    ConfigKey::new(
        "share.fetch.purgatory.purge.interval.requests",
        Int,
        Some("1000"),
    )
    .not_supported_yet()
    .doc("How often finished share fetches are cleared from the purgatory."),
];
