//! The metadata of the cluster: records, the image they make, what changed, and for each kind of request the function
//! that turns it into records. Pure: no I/O, no clock, no randomness; ids that must be random are handed in.
//!
//! A request is judged against the latest image and becomes records; the records go to the metadata log; replaying
//! them makes the next image. Only records change anything.

pub mod alter_partition;
pub mod apply;
pub mod assign_dirs;
pub mod broker_changes;
pub mod brokers;
pub mod codec;
pub mod configs;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_topics;
pub mod delta;
pub mod directories;
pub mod elect_leaders;
pub mod error;
pub mod features;
pub mod heartbeat;
pub mod image;
pub mod inert;
pub mod liveness;
pub mod lone_broker;
mod merge;
mod observers;
mod partition_change;
mod placement;
pub mod producer_ids;
mod racks;
pub mod reassign;
pub mod records;
pub mod registration;
pub mod replay;
mod to_records;
pub mod topic_name;
pub mod topic_rules;

#[cfg(test)]
mod tests;

pub use apply::ApplyError;
pub use delta::ClusterDelta;
pub use error::ClusterError;
pub use image::{
    BrokerRegistration, ClusterImage, ConfigMap, ConfigResource, PartitionImage, ResourceType,
    TopicImage,
};
pub use partition_change::Election;
pub use racks::spread_replicas;
pub use records::MetadataRecord;
pub use topic_rules::{ReplicationDefaults, TopicRules};
