//! Keys: remote (tiered) storage.

use crate::config::key::ConfigKey;
use crate::config::key::ConfigType::{Boolean, Double, Int, Long, Text};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("remote.log.storage.system.enable", Boolean, Some("false"))
        .refused_unless_default()
        .doc("Whether closed segments move to remote storage."),
    ConfigKey::new("remote.fetch.max.wait.ms", Int, Some("500"))
        .at_least(1)
        .cluster_wide()
        .not_supported_yet()
        .doc("How long a fetch may wait for remote storage."),
    ConfigKey::new(
        "remote.list.offsets.request.timeout.ms",
        Long,
        Some("30000"),
    )
    .at_least(1)
    .cluster_wide()
    .not_supported_yet()
    .doc("How long a look-up by timestamp may wait for remote storage."),
    ConfigKey::new(
        "remote.log.index.file.cache.total.size.bytes",
        Long,
        Some("1073741824"),
    )
    .at_least(1)
    .cluster_wide()
    .not_supported_yet()
    .doc("Disk space for cached remote indexes."),
    ConfigKey::new("remote.log.index.file.cache.ttl.ms", Long, Some("900000"))
        .at_least(-1)
        .internal()
        .not_supported_yet()
        .doc("How long an unused remote index stays cached."),
    ConfigKey::new(
        "remote.log.manager.copier.thread.pool.size",
        Int,
        Some("10"),
    )
    .at_least(1)
    .cluster_wide()
    .not_supported_yet()
    .doc("Threads that copy segments to remote storage."),
    ConfigKey::new(
        "remote.log.manager.copy.max.bytes.per.second",
        Long,
        Some("9223372036854775807"),
    )
    .at_least(1)
    .cluster_wide()
    .not_supported_yet()
    .doc("Bytes a second copied to remote storage."),
    ConfigKey::new("remote.log.manager.copy.quota.window.num", Int, Some("11"))
        .at_least(1)
        .not_supported_yet()
        .doc("Samples kept for that quota."),
    ConfigKey::new(
        "remote.log.manager.copy.quota.window.size.seconds",
        Int,
        Some("1"),
    )
    .at_least(1)
    .not_supported_yet()
    .doc("Length of one sample for that quota."),
    ConfigKey::new(
        "remote.log.manager.expiration.thread.pool.size",
        Int,
        Some("10"),
    )
    .at_least(1)
    .cluster_wide()
    .not_supported_yet()
    .doc("Threads that delete expired remote segments."),
    ConfigKey::new(
        "remote.log.manager.fetch.max.bytes.per.second",
        Long,
        Some("9223372036854775807"),
    )
    .at_least(1)
    .cluster_wide()
    .not_supported_yet()
    .doc("Bytes a second read from remote storage."),
    ConfigKey::new("remote.log.manager.fetch.quota.window.num", Int, Some("11"))
        .at_least(1)
        .not_supported_yet()
        .doc("Samples kept for that quota."),
    ConfigKey::new(
        "remote.log.manager.fetch.quota.window.size.seconds",
        Int,
        Some("1"),
    )
    .at_least(1)
    .not_supported_yet()
    .doc("Length of one sample for that quota."),
    ConfigKey::new(
        "remote.log.manager.follower.thread.pool.size",
        Int,
        Some("2"),
    )
    .at_least(1)
    .cluster_wide()
    .not_supported_yet()
    .doc("Threads of followers that read the highest remote offset."),
    ConfigKey::new("remote.log.manager.task.interval.ms", Long, Some("30000"))
        .at_least(1)
        .not_supported_yet()
        .doc("How often remote storage is worked on."),
    ConfigKey::new(
        "remote.log.manager.task.retry.backoff.ms",
        Long,
        Some("500"),
    )
    .at_least(1)
    .internal()
    .not_supported_yet()
    .doc("First wait before failed remote work is tried again."),
    ConfigKey::new(
        "remote.log.manager.task.retry.backoff.max.ms",
        Long,
        Some("30000"),
    )
    .at_least(1)
    .internal()
    .not_supported_yet()
    .doc("Longest wait before failed remote work is tried again."),
    ConfigKey::new("remote.log.manager.task.retry.jitter", Double, Some("0.2"))
        .between_real(0.0, 0.5)
        .internal()
        .not_supported_yet()
        .doc("Random share of that wait."),
    ConfigKey::new("remote.log.manager.thread.pool.size", Int, Some("2"))
        .at_least(1)
        .not_supported_yet()
        .doc("Older name of `remote.log.manager.follower.thread.pool.size`."),
    ConfigKey::new(
        "remote.log.metadata.custom.metadata.max.bytes",
        Int,
        Some("128"),
    )
    .at_least(0)
    .not_supported_yet()
    .doc("Largest custom metadata of a remote segment."),
    ConfigKey::new(
        "remote.log.metadata.manager.class.name",
        Text,
        Some(
            "org.apache.kafka.server.log.remote.metadata.storage.\
             TopicBasedRemoteLogMetadataManager",
        ),
    )
    .not_empty()
    .not_supported_yet()
    .doc("Class that keeps the metadata of remote segments."),
    ConfigKey::new("remote.log.metadata.manager.class.path", Text, None)
        .not_supported_yet()
        .doc("Where that class is found."),
    ConfigKey::new(
        "remote.log.metadata.manager.impl.prefix",
        Text,
        Some("rlmm.config."),
    )
    .not_empty()
    .not_supported_yet()
    .doc("Prefix of that class's own keys."),
    ConfigKey::new("remote.log.metadata.manager.listener.name", Text, None)
        .not_empty()
        .not_supported_yet()
        .doc("Listener that class connects to."),
    ConfigKey::new("remote.log.reader.max.pending.tasks", Int, Some("100"))
        .at_least(1)
        .not_supported_yet()
        .doc("Reads from remote storage that may wait."),
    ConfigKey::new("remote.log.reader.threads", Int, Some("10"))
        .at_least(1)
        .cluster_wide()
        .not_supported_yet()
        .doc("Threads that read from remote storage."),
    ConfigKey::new("remote.log.storage.manager.class.name", Text, None)
        .not_empty()
        .not_supported_yet()
        .doc("Class that stores remote segments."),
    ConfigKey::new("remote.log.storage.manager.class.path", Text, None)
        .not_supported_yet()
        .doc("Where that class is found."),
    ConfigKey::new(
        "remote.log.storage.manager.impl.prefix",
        Text,
        Some("rsm.config."),
    )
    .not_empty()
    .not_supported_yet()
    .doc("Prefix of that class's own keys."),
    ConfigKey::new(
        "follower.fetch.last.tiered.offset.enable",
        Boolean,
        Some("false"),
    )
    .cluster_wide()
    .not_supported_yet()
    .doc("Whether an empty follower begins after the last remote offset."),
];
