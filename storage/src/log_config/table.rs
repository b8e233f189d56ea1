//! The table of topic keys.

use super::keys::{BrokerSynonym, Limits, Support, TopicConfigKey};
use super::value::{ConfigType, ConfigValue};
use super::{CleanupPolicy, CompressionType, LogConfig, MessageTimestampType};

const NO_TIERED_STORAGE: &str = "there is no tiered storage";

const fn synonym(name: &'static str) -> BrokerSynonym {
    BrokerSynonym { name, factor: 1 }
}

const fn minutes(name: &'static str) -> BrokerSynonym {
    BrokerSynonym {
        name,
        factor: 60_000,
    }
}

const fn hours(name: &'static str) -> BrokerSynonym {
    BrokerSynonym {
        name,
        factor: 3_600_000,
    }
}

macro_rules! key {
    ($name:literal, $kind:ident, $default:expr, $limits:expr, [$($synonym:expr),*], $apply:expr, $doc:literal) => {
        key!($name, $kind, $default, $limits, [$($synonym),*], $apply, $doc, Support::Full)
    };
    ($name:literal, $kind:ident, $default:expr, $limits:expr, [$($synonym:expr),*], $apply:expr, $doc:literal, $support:expr) => {
        TopicConfigKey {
            name: $name,
            kind: ConfigType::$kind,
            default: $default,
            synonyms: &[$($synonym),*],
            doc: $doc,
            internal: false,
            limits: $limits,
            support: $support,
            apply: $apply,
        }
    };
}

/// Puts a typed value into a field; the table pairs each key with its own type, so nothing else arrives.
macro_rules! set {
    ($variant:ident, $field:ident) => {
        |config, value| {
            if let ConfigValue::$variant(value) = value {
                config.$field = *value;
            }
        }
    };
    ($variant:ident, $field:ident as $type:ty) => {
        |config, value| {
            if let ConfigValue::$variant(value) = value {
                config.$field = <$type>::try_from(*value).unwrap_or_default();
            }
        }
    };
}

fn set_cleanup_policy(config: &mut LogConfig, value: &ConfigValue) {
    if let ConfigValue::List(items) = value {
        config.cleanup_policy = CleanupPolicy {
            delete: items.iter().any(|item| item == "delete"),
            compact: items.iter().any(|item| item == "compact"),
        };
    }
}

fn set_compression_type(config: &mut LogConfig, value: &ConfigValue) {
    if let ConfigValue::String(name) = value {
        config.compression_type = match name.as_str() {
            "uncompressed" => CompressionType::Uncompressed,
            "gzip" => CompressionType::Gzip,
            "snappy" => CompressionType::Snappy,
            "lz4" => CompressionType::Lz4,
            "zstd" => CompressionType::Zstd,
            _ => CompressionType::Producer,
        };
    }
}

fn set_timestamp_type(config: &mut LogConfig, value: &ConfigValue) {
    if let ConfigValue::String(name) = value {
        config.message_timestamp_type = if name == "LogAppendTime" {
            MessageTimestampType::LogAppendTime
        } else {
            MessageTimestampType::CreateTime
        };
    }
}

/// A key whose only accepted value is its default, which is what happens anyway.
fn nothing(_: &mut LogConfig, _: &ConfigValue) {}

const COMPRESSION_TYPES: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];

/// Every topic key of Apache Kafka 4.4, in its order.
pub static TOPIC_CONFIG_KEYS: &[TopicConfigKey] = &[
    key!(
        "segment.bytes",
        Int,
        Some("1073741824"),
        Limits::AtLeast(1 << 20),
        [synonym("log.segment.bytes")],
        set!(Int, segment_bytes as u32),
        "The size from which a new segment file is begun. Retention and compaction work on whole segments."
    ),
    key!(
        "segment.ms",
        Long,
        Some("604800000"),
        Limits::AtLeast(1),
        [synonym("log.roll.ms"), hours("log.roll.hours")],
        set!(Long, segment_ms),
        "The age from which a new segment file is begun although the old one is not full."
    ),
    key!(
        "segment.jitter.ms",
        Long,
        Some("0"),
        Limits::AtLeast(0),
        [
            synonym("log.roll.jitter.ms"),
            hours("log.roll.jitter.hours")
        ],
        set!(Long, segment_jitter_ms),
        "The most that is taken off segment.ms by chance, so that not all segments roll at once."
    ),
    key!(
        "segment.index.bytes",
        Int,
        Some("10485760"),
        Limits::AtLeast(4),
        [synonym("log.index.size.max.bytes")],
        set!(Int, segment_index_bytes as u32),
        "The largest index file of a segment. A full index begins a new segment."
    ),
    key!(
        "flush.messages",
        Long,
        Some("9223372036854775807"),
        Limits::AtLeast(1),
        [synonym("log.flush.interval.messages")],
        set!(Long, flush_messages),
        "Force the log to disk after this many records. 1 means before each append is answered."
    ),
    key!(
        "flush.ms",
        Long,
        Some("9223372036854775807"),
        Limits::AtLeast(0),
        [
            synonym("log.flush.interval.ms"),
            synonym("log.flush.scheduler.interval.ms")
        ],
        set!(Long, flush_ms),
        "Force the log to disk when records have waited this long."
    ),
    key!(
        "retention.bytes",
        Long,
        Some("-1"),
        Limits::None,
        [synonym("log.retention.bytes")],
        set!(Long, retention_bytes),
        "With the delete policy: the size of a partition from which its oldest segments go. Negative: no limit."
    ),
    key!(
        "retention.ms",
        Long,
        Some("604800000"),
        Limits::AtLeast(-1),
        [
            synonym("log.retention.ms"),
            minutes("log.retention.minutes"),
            hours("log.retention.hours")
        ],
        set!(Long, retention_ms),
        "With the delete policy: the age from which segments go. -1: no limit."
    ),
    key!(
        "max.message.bytes",
        Int,
        Some("1048588"),
        Limits::AtLeast(0),
        [synonym("message.max.bytes")],
        set!(Int, max_message_bytes as usize),
        "The largest record batch accepted, after compression."
    ),
    key!(
        "max.decompressed.message.bytes",
        Int,
        Some("2147483639"),
        Limits::Between(1, 2_147_483_639),
        [synonym("max.decompressed.message.bytes")],
        set!(Int, max_decompressed_message_bytes as usize),
        "The most that a compressed record batch may inflate to."
    ),
    key!(
        "index.interval.bytes",
        Int,
        Some("4096"),
        Limits::AtLeast(0),
        [synonym("log.index.interval.bytes")],
        set!(Int, index_interval_bytes as u32),
        "About how many bytes of log lie between two index entries."
    ),
    key!(
        "delete.retention.ms",
        Long,
        Some("86400000"),
        Limits::AtLeast(0),
        [synonym("log.cleaner.delete.retention.ms")],
        set!(Long, delete_retention_ms),
        "With the compact policy: how long a tombstone can still be read."
    ),
    key!(
        "min.compaction.lag.ms",
        Long,
        Some("0"),
        Limits::AtLeast(0),
        [synonym("log.cleaner.min.compaction.lag.ms")],
        set!(Long, min_compaction_lag_ms),
        "With the compact policy: how long a record stays uncompacted at least."
    ),
    key!(
        "max.compaction.lag.ms",
        Long,
        Some("9223372036854775807"),
        Limits::AtLeast(1),
        [synonym("log.cleaner.max.compaction.lag.ms")],
        set!(Long, max_compaction_lag_ms),
        "With the compact policy: how long a record stays uncompacted at most."
    ),
    key!(
        "file.delete.delay.ms",
        Long,
        Some("60000"),
        Limits::AtLeast(0),
        [synonym("log.segment.delete.delay.ms")],
        set!(Long, file_delete_delay_ms),
        "How long a deleted segment's file stays on disk under another name."
    ),
    key!(
        "min.cleanable.dirty.ratio",
        Double,
        Some("0.5"),
        Limits::Ratio,
        [synonym("log.cleaner.min.cleanable.ratio")],
        set!(Double, min_cleanable_dirty_ratio),
        "With the compact policy: the share of uncompacted bytes from which the log is compacted."
    ),
    key!(
        "cleanup.policy",
        List,
        Some("delete"),
        Limits::EachOneOf(&["compact", "delete"]),
        [synonym("log.cleanup.policy")],
        set_cleanup_policy,
        "delete: old segments go by retention. compact: only the last record of each key stays. Both may be given; with neither, everything stays."
    ),
    key!(
        "unclean.leader.election.enable",
        Boolean,
        Some("false"),
        Limits::None,
        [synonym("unclean.leader.election.enable")],
        set!(Boolean, unclean_leader_election_enable),
        "Whether a replica that is not in sync may become leader when no other is left, at the price of records."
    ),
    key!(
        "min.insync.replicas",
        Int,
        Some("1"),
        Limits::AtLeast(1),
        [synonym("min.insync.replicas")],
        set!(Int, min_insync_replicas),
        "How many replicas must be in sync for acks=all to be accepted."
    ),
    key!(
        "compression.type",
        String,
        Some("producer"),
        Limits::OneOf(COMPRESSION_TYPES),
        [synonym("compression.type")],
        set_compression_type,
        "The codec batches are stored with; producer keeps the one they came with."
    ),
    key!(
        "compression.gzip.level",
        Int,
        Some("-1"),
        Limits::BetweenOr(1, 9, -1),
        [synonym("compression.gzip.level")],
        set!(Int, compression_gzip_level),
        "The level used when the broker compresses with gzip; -1 is the library's default."
    ),
    key!(
        "compression.lz4.level",
        Int,
        Some("9"),
        Limits::Between(1, 17),
        [synonym("compression.lz4.level")],
        set!(Int, compression_lz4_level),
        "The level used when the broker compresses with LZ4."
    ),
    key!(
        "compression.zstd.level",
        Int,
        Some("3"),
        Limits::Between(-131_072, 22),
        [synonym("compression.zstd.level")],
        set!(Int, compression_zstd_level),
        "The level used when the broker compresses with Zstandard."
    ),
    key!(
        "preallocate",
        Boolean,
        Some("false"),
        Limits::None,
        [synonym("log.preallocate")],
        set!(Boolean, preallocate),
        "Whether a new segment's full size is reserved on disk at once."
    ),
    key!(
        "message.timestamp.type",
        String,
        Some("CreateTime"),
        Limits::OneOf(&["CreateTime", "LogAppendTime"]),
        [synonym("log.message.timestamp.type")],
        set_timestamp_type,
        "Whether records keep the producer's time or get the broker's."
    ),
    key!(
        "message.timestamp.before.max.ms",
        Long,
        Some("9223372036854775807"),
        Limits::AtLeast(0),
        [synonym("log.message.timestamp.before.max.ms")],
        set!(Long, message_timestamp_before_max_ms),
        "With CreateTime: how far a record's time may lie before the broker's."
    ),
    key!(
        "message.timestamp.after.max.ms",
        Long,
        Some("3600000"),
        Limits::AtLeast(0),
        [synonym("log.message.timestamp.after.max.ms")],
        set!(Long, message_timestamp_after_max_ms),
        "With CreateTime: how far a record's time may lie after the broker's."
    ),
    key!(
        "leader.replication.throttled.replicas",
        List,
        Some(""),
        Limits::ThrottledReplicas,
        [],
        nothing,
        "The replicas whose traffic is throttled on the leader."
    ),
    key!(
        "follower.replication.throttled.replicas",
        List,
        Some(""),
        Limits::ThrottledReplicas,
        [],
        nothing,
        "The replicas whose traffic is throttled on the follower."
    ),
    key!(
        "remote.storage.enable",
        Boolean,
        Some("false"),
        Limits::None,
        [],
        nothing,
        "Whether segments are also kept in tiered storage.",
        Support::DefaultOnly(NO_TIERED_STORAGE)
    ),
    key!(
        "local.retention.ms",
        Long,
        Some("-2"),
        Limits::AtLeast(-2),
        [synonym("log.local.retention.ms")],
        nothing,
        "With tiered storage: how long segments stay on this broker. -2: as retention.ms.",
        Support::DefaultOnly(NO_TIERED_STORAGE)
    ),
    key!(
        "local.retention.bytes",
        Long,
        Some("-2"),
        Limits::AtLeast(-2),
        [synonym("log.local.retention.bytes")],
        nothing,
        "With tiered storage: how much stays on this broker. -2: as retention.bytes.",
        Support::DefaultOnly(NO_TIERED_STORAGE)
    ),
    key!(
        "remote.log.copy.disable",
        Boolean,
        Some("false"),
        Limits::None,
        [],
        nothing,
        "Whether tiered storage only serves what it has.",
        Support::DefaultOnly(NO_TIERED_STORAGE)
    ),
    key!(
        "remote.copy.lag.ms",
        Long,
        Some("0"),
        Limits::AtLeast(-1),
        [synonym("log.remote.copy.lag.ms")],
        nothing,
        "With tiered storage: how long a segment waits before it is copied.",
        Support::DefaultOnly(NO_TIERED_STORAGE)
    ),
    key!(
        "remote.copy.lag.bytes",
        Long,
        Some("-1"),
        Limits::AtLeast(-1),
        [synonym("log.remote.copy.lag.bytes")],
        nothing,
        "With tiered storage: how many bytes stay uncopied.",
        Support::DefaultOnly(NO_TIERED_STORAGE)
    ),
    key!(
        "remote.log.delete.on.disable",
        Boolean,
        Some("false"),
        Limits::None,
        [],
        nothing,
        "Whether turning tiered storage off deletes what it has.",
        Support::DefaultOnly(NO_TIERED_STORAGE)
    ),
    key!(
        "errors.deadletterqueue.group.enable",
        Boolean,
        Some("false"),
        Limits::None,
        [],
        nothing,
        "Whether share groups may use the topic as their dead letter queue.",
        Support::DefaultOnly("there are no share groups")
    ),
    key!(
        "highwater.observer.replicas",
        List,
        Some(""),
        Limits::BrokerIds,
        [],
        nothing,
        "Brokers whose replicas follow and serve reads, but are never in the ISR and never elected."
    ),
    TopicConfigKey {
        name: "internal.segment.bytes",
        kind: ConfigType::Int,
        default: None,
        synonyms: &[synonym("internal.log.segment.bytes")],
        doc: "As segment.bytes, without its lower bound; for tests.",
        internal: true,
        limits: Limits::AtLeast(1),
        support: Support::Full,
        apply: set!(Int, segment_bytes as u32),
    },
];
