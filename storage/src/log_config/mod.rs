//! A topic's configuration: the typed [`LogConfig`], and the one table of keys it is made from.
//!
//! `table` holds the table (name, type, default, broker synonyms, meaning, limits); it feeds the parser, the
//! validation behind CreateTopics and AlterConfigs, DescribeConfigs and the generated documentation.

mod keys;
mod table;
mod value;

use std::collections::BTreeMap;

pub use keys::{BrokerSynonym, TopicConfigKey, topic_config_key};
pub use table::TOPIC_CONFIG_KEYS;
pub use value::{ConfigType, ConfigValue};

/// Why a topic configuration was refused. The server answers INVALID_CONFIG with this text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// There is no such key.
    #[error("Unknown topic config name: {0}")]
    UnknownKey(String),
    /// The value cannot be read, or is out of bounds.
    #[error("Invalid value {value} for configuration {key}: {reason}")]
    InvalidValue {
        /// The key.
        key: &'static str,
        /// The value as given.
        value: String,
        /// What is allowed.
        reason: String,
    },
    /// Two values that exclude each other.
    #[error("{0}")]
    Conflict(String),
    /// Apache Kafka would take it, but nothing here would act on it.
    #[error(
        "Invalid value {value} for configuration {key}: not supported by this broker: {reason}"
    )]
    NotSupported {
        /// The key.
        key: &'static str,
        /// The value as given.
        value: String,
        /// What is missing.
        reason: &'static str,
    },
}

/// What `compression.type` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionType {
    /// Keep what the producer sent.
    Producer,
    /// Store without compression.
    Uncompressed,
    /// Recompress with gzip.
    Gzip,
    /// Recompress with snappy.
    Snappy,
    /// Recompress with LZ4.
    Lz4,
    /// Recompress with Zstandard.
    Zstd,
}

/// What `message.timestamp.type` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageTimestampType {
    /// Keep the producer's time.
    CreateTime,
    /// Stamp the broker's time on append.
    LogAppendTime,
}

/// What `cleanup.policy` asks for. With neither, everything is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CleanupPolicy {
    /// Old segments go by time and size.
    pub delete: bool,
    /// Only the last record of each key is kept.
    pub compact: bool,
}

/// A topic's settings. Field names are Kafka's keys with underscores.
#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// A segment is rolled before it grows past this.
    pub segment_bytes: u32,
    /// A segment is rolled when its first record is this old.
    pub segment_ms: i64,
    /// Up to this much is taken off `segment_ms`, by chance, for each segment.
    pub segment_jitter_ms: i64,
    /// A segment is rolled when its index reaches this size.
    pub segment_index_bytes: u32,
    /// Flush after this many records.
    pub flush_messages: i64,
    /// Flush when the oldest unflushed record is this old.
    pub flush_ms: i64,
    /// Keep at most about this much; negative for no limit.
    pub retention_bytes: i64,
    /// Keep records this long; -1 for ever.
    pub retention_ms: i64,
    /// The largest batch accepted.
    pub max_message_bytes: usize,
    /// The most a compressed batch may inflate to.
    pub max_decompressed_message_bytes: usize,
    /// An index entry is added after this many bytes.
    pub index_interval_bytes: u32,
    /// How long tombstones stay after compaction first saw them.
    pub delete_retention_ms: i64,
    /// Records younger than this are not compacted.
    pub min_compaction_lag_ms: i64,
    /// Records older than this make the log due for compaction.
    pub max_compaction_lag_ms: i64,
    /// How long a deleted file waits before it is unlinked.
    pub file_delete_delay_ms: i64,
    /// The share of dirty bytes from which the log is compacted.
    pub min_cleanable_dirty_ratio: f64,
    /// Delete, compact, both or neither.
    pub cleanup_policy: CleanupPolicy,
    /// Whether a replica outside the ISR may lead when no other is left.
    pub unclean_leader_election_enable: bool,
    /// How many in-sync replicas acks=all needs.
    pub min_insync_replicas: i32,
    /// Recompress, or keep the producer's codec.
    pub compression_type: CompressionType,
    /// gzip's level; -1 for the library's default.
    pub compression_gzip_level: i32,
    /// LZ4's level.
    pub compression_lz4_level: i32,
    /// Zstandard's level.
    pub compression_zstd_level: i32,
    /// Reserve a new segment's full size on disk.
    pub preallocate: bool,
    /// Whose clock stamps the records.
    pub message_timestamp_type: MessageTimestampType,
    /// How far a record's time may lie before the broker's.
    pub message_timestamp_before_max_ms: i64,
    /// How far a record's time may lie after the broker's.
    pub message_timestamp_after_max_ms: i64,
}

impl Default for LogConfig {
    /// Kafka's defaults.
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3_600_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            retention_bytes: -1,
            retention_ms: 7 * 24 * 3_600_000,
            max_message_bytes: 1_048_588,
            max_decompressed_message_bytes: 2_147_483_639,
            index_interval_bytes: 4096,
            delete_retention_ms: 24 * 3_600_000,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            file_delete_delay_ms: 60_000,
            min_cleanable_dirty_ratio: 0.5,
            cleanup_policy: CleanupPolicy {
                delete: true,
                compact: false,
            },
            unclean_leader_election_enable: false,
            min_insync_replicas: 1,
            compression_type: CompressionType::Producer,
            compression_gzip_level: -1,
            compression_lz4_level: 9,
            compression_zstd_level: 3,
            preallocate: false,
            message_timestamp_type: MessageTimestampType::CreateTime,
            message_timestamp_before_max_ms: i64::MAX,
            message_timestamp_after_max_ms: 3_600_000,
        }
    }
}

impl LogConfig {
    /// A topic's settings: Kafka's defaults, then the broker's (`defaults`, by topic key), then the topic's own.
    ///
    /// Checks run in Kafka's order: unknown names, each value, then values against each other. `defaults` must
    /// have passed [`LogConfig::defaults_from_broker`] or this check already.
    pub fn from_overrides<'a>(
        defaults: &BTreeMap<&'static str, String>,
        overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ConfigError> {
        let mut given = BTreeMap::new();
        for (name, value) in overrides {
            let key =
                topic_config_key(name).ok_or_else(|| ConfigError::UnknownKey(name.to_owned()))?;
            given.insert(key.name, value);
        }
        let mut config = Self::default();
        for key in TOPIC_CONFIG_KEYS {
            let text = given
                .get(key.name)
                .copied()
                .or_else(|| defaults.get(key.name).map(String::as_str));
            if let Some(text) = text {
                let value = key.parse(text)?;
                key.apply(&mut config, &value);
            }
        }
        config.check_conflicts()?;
        Ok(config)
    }

    /// The topic defaults that a broker's own properties give, by topic key: `log.retention.hours=1` becomes
    /// `retention.ms=3600000`. The first synonym that is set wins, as in Kafka.
    pub fn defaults_from_broker<'a>(
        broker_property: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<BTreeMap<&'static str, String>, ConfigError> {
        let mut defaults = BTreeMap::new();
        for key in TOPIC_CONFIG_KEYS {
            for synonym in key.synonyms {
                if let Some(text) = broker_property(synonym.name) {
                    let text = synonym.convert(text).map_err(|error| match error {
                        // Names the broker's key: that is what the user wrote.
                        ConfigError::InvalidValue { value, reason, .. } => {
                            ConfigError::InvalidValue {
                                key: synonym.name,
                                value,
                                reason,
                            }
                        }
                        other => other,
                    })?;
                    defaults.insert(key.name, text);
                    break;
                }
            }
        }
        Self::from_overrides(&defaults, [])?;
        Ok(defaults)
    }

    fn check_conflicts(&self) -> Result<(), ConfigError> {
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms {
            return Err(ConfigError::Conflict(format!(
                "conflict topic config setting min.compaction.lag.ms ({}) > max.compaction.lag.ms ({})",
                self.min_compaction_lag_ms, self.max_compaction_lag_ms
            )));
        }
        Ok(())
    }

    /// The age from which a segment is rolled: compaction must get at records after `max.compaction.lag.ms`, and
    /// never looks into the active segment.
    pub fn max_segment_ms(&self) -> i64 {
        if self.cleanup_policy.compact {
            self.segment_ms.min(self.max_compaction_lag_ms)
        } else {
            self.segment_ms
        }
    }

    /// The most that may be taken off `segment.ms` for one segment.
    pub fn max_jitter_ms(&self) -> i64 {
        self.segment_jitter_ms.min(self.segment_ms)
    }
}

#[cfg(test)]
mod tests;
