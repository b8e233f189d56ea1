//! The metadata of the cluster: records, the image they make, what changed, and for each kind of request the function
//! that turns it into records. Pure: no I/O, no clock, no randomness; ids that must be random are handed in.
//!
//! A request is judged against the latest image and becomes records; the records go to the metadata log; replaying
//! them makes the next image. Only records change anything.

pub mod apply;
pub mod brokers;
pub mod codec;
pub mod configs;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_topics;
pub mod delta;
pub mod error;
pub mod image;
mod placement;
pub mod producer_ids;
pub mod records;
pub mod replay;
mod to_records;
pub mod topic_name;

#[cfg(test)]
mod tests;

pub use apply::ApplyError;
pub use delta::ClusterDelta;
pub use error::ClusterError;
pub use image::{
    BrokerRegistration, ClusterImage, ConfigMap, ConfigResource, PartitionImage, ResourceType,
    TopicImage,
};
pub use records::MetadataRecord;
