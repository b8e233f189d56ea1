//! The table of topic keys.

use super::value::{ConfigType, ConfigValue};
use super::{CleanupPolicy, CompressionType, ConfigError, LogConfig, MessageTimestampType};

/// A broker key that gives a topic key its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerSynonym {
    /// The broker's key.
    pub name: &'static str,
    /// What its number is multiplied by to get the topic key's unit; 1 for texts too.
    pub factor: i64,
}

impl BrokerSynonym {
    /// The broker's value in the topic key's unit.
    pub fn convert(&self, text: &str) -> Result<String, ConfigError> {
        if self.factor == 1 {
            return Ok(text.to_owned());
        }
        let number: i64 = text.trim().parse().map_err(|_| ConfigError::InvalidValue {
            key: self.name,
            value: text.to_owned(),
            reason: "Not a number of type INT".to_owned(),
        })?;
        // Minus one hour of retention means no limit, as minus one millisecond does.
        Ok(if number < 0 {
            number.to_string()
        } else {
            number.saturating_mul(self.factor).to_string()
        })
    }
}

/// What a key's values may be.
#[derive(Debug, Clone, Copy)]
enum Limits {
    None,
    AtLeast(i64),
    Between(i64, i64),
    BetweenOr(i64, i64, i64),
    Ratio,
    OneOf(&'static [&'static str]),
    EachOneOf(&'static [&'static str]),
    ThrottledReplicas,
}

/// Which values cannot act here yet.
#[derive(Debug, Clone, Copy)]
enum Support {
    Full,
    /// Only the default can be kept to.
    DefaultOnly(&'static str),
}

/// One topic key.
#[derive(Debug)]
pub struct TopicConfigKey {
    /// Kafka's name of it.
    pub name: &'static str,
    /// Its type.
    pub kind: ConfigType,
    /// Its default, in DescribeConfigs' spelling; None when it has no default.
    pub default: Option<&'static str>,
    /// The broker keys that give the default, the strongest first.
    pub synonyms: &'static [BrokerSynonym],
    /// What it does.
    pub doc: &'static str,
    /// Not shown to clients; for tests.
    pub internal: bool,
    limits: Limits,
    support: Support,
    apply: fn(&mut LogConfig, &ConfigValue),
}

impl TopicConfigKey {
    /// Reads and checks `text`.
    pub fn parse(&self, text: &str) -> Result<ConfigValue, ConfigError> {
        let value =
            ConfigValue::parse(self.kind, text).map_err(|reason| self.invalid(text, reason))?;
        self.limits
            .check(self.name, &value)
            .map_err(|reason| self.invalid(&shown(&value, text), reason))?;
        if let Support::DefaultOnly(reason) = self.support
            && Some(value.to_string().as_str()) != self.default
        {
            return Err(ConfigError::NotSupported {
                key: self.name,
                value: text.to_owned(),
                reason,
            });
        }
        Ok(value)
    }

    /// Puts a value that [`TopicConfigKey::parse`] gave into `config`.
    pub fn apply(&self, config: &mut LogConfig, value: &ConfigValue) {
        (self.apply)(config, value);
    }

    /// What values are allowed, for the documentation; None when all of the type are.
    pub fn valid_values(&self) -> Option<String> {
        match self.limits {
            Limits::None => None,
            Limits::AtLeast(least) => Some(format!("[{least},...]")),
            Limits::Between(least, most) => Some(format!("[{least},...,{most}]")),
            Limits::BetweenOr(least, most, or) => Some(format!("[{least},...,{most}] or {or}")),
            Limits::Ratio => Some("[0,...,1]".to_owned()),
            Limits::OneOf(names) | Limits::EachOneOf(names) => {
                Some(format!("[{}]", names.join(", ")))
            }
            Limits::ThrottledReplicas => {
                Some("[partitionId]:[brokerId],[partitionId]:[brokerId],...".to_owned())
            }
        }
    }

    /// Why only the default is accepted, if so.
    pub fn unsupported_reason(&self) -> Option<&'static str> {
        match self.support {
            Support::Full => None,
            Support::DefaultOnly(reason) => Some(reason),
        }
    }

    fn invalid(&self, value: &str, reason: String) -> ConfigError {
        ConfigError::InvalidValue {
            key: self.name,
            value: value.to_owned(),
            reason,
        }
    }
}

/// The key called `name`.
pub fn topic_config_key(name: &str) -> Option<&'static TopicConfigKey> {
    TOPIC_CONFIG_KEYS.iter().find(|key| key.name == name)
}

/// How a refused value is quoted: the faulty item of a list, else the text as given.
fn shown(value: &ConfigValue, text: &str) -> String {
    match value {
        ConfigValue::List(items) => items.join(","),
        _ => text.to_owned(),
    }
}

impl Limits {
    fn check(self, name: &str, value: &ConfigValue) -> Result<(), String> {
        match (self, value) {
            (Self::AtLeast(least), value) => in_bounds(value, least, i64::MAX),
            (Self::Between(least, most), value) => in_bounds(value, least, most),
            (Self::BetweenOr(least, most, or), value) => {
                let number = number(value);
                if number == or || (least..=most).contains(&number) {
                    Ok(())
                } else {
                    Err(format!(
                        "Value must be between {least} and {most} or equal to {or}"
                    ))
                }
            }
            (Self::Ratio, ConfigValue::Double(ratio)) => {
                if *ratio > 1.0 {
                    Err("Value must be no more than 1".to_owned())
                } else if *ratio >= 0.0 {
                    Ok(())
                } else {
                    Err("Value must be at least 0".to_owned())
                }
            }
            (Self::OneOf(names), ConfigValue::String(text)) => one_of(names, text),
            (Self::EachOneOf(names), ConfigValue::List(items)) => {
                items.iter().try_for_each(|item| one_of(names, item))
            }
            (Self::ThrottledReplicas, ConfigValue::List(items)) => {
                if is_throttled_replicas(items) {
                    Ok(())
                } else {
                    Err(format!(
                        "{name} must be the literal '*' or a list of replicas in the following format: \
                         [partitionId]:[brokerId],[partitionId]:[brokerId],..."
                    ))
                }
            }
            _ => Ok(()),
        }
    }
}

fn number(value: &ConfigValue) -> i64 {
    match value {
        ConfigValue::Int(number) => i64::from(*number),
        ConfigValue::Long(number) => *number,
        _ => 0,
    }
}

fn in_bounds(value: &ConfigValue, least: i64, most: i64) -> Result<(), String> {
    let number = number(value);
    if number < least {
        Err(format!("Value must be at least {least}"))
    } else if number > most {
        Err(format!("Value must be no more than {most}"))
    } else {
        Ok(())
    }
}

fn one_of(names: &[&str], text: &str) -> Result<(), String> {
    if names.contains(&text) {
        Ok(())
    } else {
        Err(format!("String must be one of: {}", names.join(", ")))
    }
}

fn is_throttled_replicas(items: &[String]) -> bool {
    let is_pair = |item: &String| {
        item.split_once(':').is_some_and(|(partition, broker)| {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits(partition) && digits(broker)
        })
    };
    matches!(items, [one] if one == "*") || items.iter().all(is_pair)
}

const NO_TIERED_STORAGE: &str = "there is no tiered storage";
const NO_REPLICATION_QUOTAS: &str = "replication quotas are not enforced";

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
        "The replicas whose traffic is throttled on the leader.",
        Support::DefaultOnly(NO_REPLICATION_QUOTAS)
    ),
    key!(
        "follower.replication.throttled.replicas",
        List,
        Some(""),
        Limits::ThrottledReplicas,
        [],
        nothing,
        "The replicas whose traffic is throttled on the follower.",
        Support::DefaultOnly(NO_REPLICATION_QUOTAS)
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
