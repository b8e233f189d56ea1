//! A client of a whole cluster, as Kafka's AdminClient is one: finds the nodes, the leader of a partition and the
//! coordinator of a group, and asks again where that may help.

mod bootstrap;
mod cluster;
mod configs;
mod error;
mod exceptions;
mod leaders;
mod log_dirs;
mod metadata;
mod offsets;
mod properties;
mod reachable;
mod topics;

pub(crate) use cluster::{Cluster, Endpoint, NodeInfo};
pub(crate) use configs::{ConfigChanges, DEFAULT_SOURCE, ResourceType};
pub(crate) use error::KafkaError;
pub(crate) use leaders::{Results, TopicPartition, by_topic};
pub(crate) use log_dirs::replicas_in;
pub(crate) use metadata::{asked as asked_topic, topic_name};
pub(crate) use offsets::{Committed, Committer, EARLIEST, LATEST, offsets_of};
pub(crate) use properties::{ClientProperties, key_value};
pub(crate) use topics::{PartitionInfo, TopicDescription, TopicListing};

/// `request.timeout.ms` of Kafka's AdminClient, which a node is given for what it is asked to do.
pub(crate) const REQUEST_TIMEOUT_MS: i32 = 30_000;
