//! The metadata log as a log of this broker: its name, its id and its settings.

use highwater_replication::cluster::topic_name::{
    CLUSTER_METADATA_TOPIC, CLUSTER_METADATA_TOPIC_ID,
};
use highwater_storage::log_config::CleanupPolicy;
use highwater_storage::{LogConfig, TopicId, TopicPartition};

/// Largest batch: what one request may need of records, with room to spare.
const MAX_BATCH_BYTES: usize = 64 << 20;

/// `__cluster_metadata-0`.
pub fn metadata_topic_partition() -> TopicPartition {
    TopicPartition::new(CLUSTER_METADATA_TOPIC, 0)
}

/// The id that Kafka gives to the metadata log.
pub fn metadata_topic_id() -> TopicId {
    TopicId(CLUSTER_METADATA_TOPIC_ID)
}

/// The settings of the metadata log: nothing is deleted but what a snapshot replaces.
pub fn metadata_log_config() -> LogConfig {
    LogConfig {
        retention_ms: -1,
        retention_bytes: -1,
        max_message_bytes: MAX_BATCH_BYTES,
        cleanup_policy: CleanupPolicy {
            delete: true,
            compact: false,
        },
        message_timestamp_after_max_ms: i64::MAX,
        ..LogConfig::default()
    }
}
