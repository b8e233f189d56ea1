//! This node's copy of the cluster's metadata: the log `__cluster_metadata-0`, its snapshots, the image they make, and
//! those who follow the image. A controller writes the log after consensus; a broker without that role copies it from
//! the active controller. From there on both are the same.

mod batch;
mod error;
mod inert;
mod log;
mod log_config;
mod publisher;
mod replica;
pub(crate) mod snapshot;

pub use error::MetadataError;
pub use log::{MetadataLog, SnapshotSlice};
pub use log_config::{metadata_log_config, metadata_topic_id, metadata_topic_partition};
pub use publisher::{MetadataPublisher, MetadataSubscriber};
pub use replica::MetadataReplica;
pub use snapshot::SnapshotId;

pub(crate) use batch::{batches_from, data_batch, leader_change_batch};
pub(crate) use inert::{InertNotices, refuse_inert};
