//! One partition's log on disk, in Apache Kafka's own files, and the manager of all of a broker's logs.
//!
//! Knows files, bytes, offsets and epochs. Knows no sockets, brokers, ISR or requests; nothing here is async.

mod checkpoint;
pub mod errors;
pub mod index;
mod leader_epoch_cache;
pub mod log;
pub mod log_config;
pub mod log_manager;
mod mapped_file;
pub mod producer_state;
pub mod record_batch;
mod segment;
pub mod types;

pub use errors::{AppendError, ReadError, RecordError, StorageError};
pub use log::{
    AbortedTxn, AppendInfo, AppendOrigin, Log, LogRead, ProducerStateView, TimestampedOffset,
};
pub use log_config::{ConfigError, LogConfig, TOPIC_CONFIG_KEYS, TopicConfigKey};
pub use log_manager::{LogManager, LogManagerSettings, MetaProperties, UnusableLogDir};
pub use types::{BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, TopicId, TopicPartition};
