//! From the topic and partition of a request to the partition that this broker hosts.

use std::sync::Arc;

use highwater_replication::runtime::error::PartitionError;
use highwater_replication::runtime::partition::Partition;
use highwater_storage::types::TopicId;
use kafka_protocol::ResponseError;
use uuid::Uuid;

use super::error_code::ErrorCode;
use crate::broker::Broker;

/// Finds a partition by its topic's name.
///
/// # Errors
/// `UNKNOWN_TOPIC_OR_PARTITION` when the metadata does not have it, `NOT_LEADER_OR_FOLLOWER` when
/// another broker hosts it, `KAFKA_STORAGE_ERROR` when its log is offline.
pub(super) fn by_name(
    broker: &Broker,
    topic: &str,
    index: i32,
) -> Result<Arc<Partition>, ResponseError> {
    broker
        .replicas
        .partition(topic, index)
        .map_err(|error| match error {
            PartitionError::NotHosted if broker.image().partition(topic, index).is_none() => {
                ResponseError::UnknownTopicOrPartition
            }
            PartitionError::NotHosted => ResponseError::NotLeaderOrFollower,
            other => other.error_code(),
        })
}

/// Finds a partition by its topic's id.
///
/// # Errors
/// `UNKNOWN_TOPIC_ID` when no topic has this id; else as [`by_name`].
pub(super) fn by_id(
    broker: &Broker,
    id: Uuid,
    index: i32,
) -> Result<Arc<Partition>, ResponseError> {
    broker
        .replicas
        .partition_by_id(TopicId(id), index)
        .or_else(|_| {
            let image = broker.image();
            let topic = image
                .topic_by_id(TopicId(id))
                .ok_or(ResponseError::UnknownTopicId)?;
            let partition = by_name(broker, &topic.name, index)?;
            // The image follows what is hosted: the name may be another topic's already.
            let is_the_topic = partition.topic_id() == TopicId(id);
            is_the_topic
                .then_some(partition)
                .ok_or(ResponseError::UnknownTopicId)
        })
}
