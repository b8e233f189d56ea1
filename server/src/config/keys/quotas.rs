//! Keys: quotas.

use crate::config::key::ConfigKey;
use crate::config::key::ConfigType::{Class, Int, Long};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("quota.window.num", Int, Some("11"))
        .at_least(1)
        .not_supported_yet()
        .doc("Samples kept for client quotas."),
    ConfigKey::new("quota.window.size.seconds", Int, Some("1"))
        .at_least(1)
        .not_supported_yet()
        .doc("Length of one sample for client quotas."),
    ConfigKey::new("replication.quota.window.num", Int, Some("11"))
        .at_least(1)
        .doc("Samples kept for replication quotas."),
    ConfigKey::new("replication.quota.window.size.seconds", Int, Some("1"))
        .at_least(1)
        .doc("Length of one sample for replication quotas."),
    ConfigKey::new(
        "alter.log.dirs.replication.quota.window.num",
        Int,
        Some("11"),
    )
    .at_least(1)
    .not_supported_yet()
    .doc("Samples kept for the quota on moves between directories."),
    ConfigKey::new(
        "alter.log.dirs.replication.quota.window.size.seconds",
        Int,
        Some("1"),
    )
    .at_least(1)
    .not_supported_yet()
    .doc("Length of one sample for the quota on moves between directories."),
    ConfigKey::new("controller.quota.window.num", Int, Some("11"))
        .at_least(1)
        .not_supported_yet()
        .doc("Samples kept for the quota on controller changes."),
    ConfigKey::new("controller.quota.window.size.seconds", Int, Some("1"))
        .at_least(1)
        .not_supported_yet()
        .doc("Length of one sample for the quota on controller changes."),
    ConfigKey::new("client.quota.callback.class", Class, None)
        .refused_unless_default()
        .doc("Class that decides on client quotas."),
    ConfigKey::new(
        "leader.replication.throttled.rate",
        Long,
        Some("9223372036854775807"),
    )
    .at_least(0)
    .cluster_wide()
    .internal()
    .doc("Bytes a second that a leader sends to throttled followers."),
    ConfigKey::new(
        "follower.replication.throttled.rate",
        Long,
        Some("9223372036854775807"),
    )
    .at_least(0)
    .cluster_wide()
    .internal()
    .doc("Bytes a second that a throttled follower fetches."),
    ConfigKey::new(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        Long,
        Some("9223372036854775807"),
    )
    .at_least(0)
    .cluster_wide()
    .internal()
    .not_supported_yet()
    .doc("Bytes a second for moves between directories."),
];
