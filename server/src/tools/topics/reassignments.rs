//! Which partitions are being moved.

use std::collections::BTreeMap;

use kafka_protocol::messages::ListPartitionReassignmentsRequest;
use kafka_protocol::messages::list_partition_reassignments_request::ListPartitionReassignmentsTopics;
use kafka_protocol::messages::list_partition_reassignments_response::OngoingPartitionReassignment;

use crate::tools::client::{
    Cluster, KafkaError, REQUEST_TIMEOUT_MS, TopicPartition, by_topic, topic_name,
};

/// A reassignment under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct Reassignment {
    /// The current replicas, with those that come and go.
    pub(in crate::tools) replicas: Vec<i32>,
    /// Those that come.
    pub(in crate::tools) adding: Vec<i32>,
    /// Those that go.
    pub(in crate::tools) removing: Vec<i32>,
}

impl From<&OngoingPartitionReassignment> for Reassignment {
    fn from(partition: &OngoingPartitionReassignment) -> Self {
        let ids = |ids: &[kafka_protocol::messages::BrokerId]| ids.iter().map(|id| id.0).collect();
        Reassignment {
            replicas: ids(&partition.replicas),
            adding: ids(&partition.adding_replicas),
            removing: ids(&partition.removing_replicas),
        }
    }
}

/// The reassignments under way of these partitions, or of all.
///
/// # Errors
/// When the controller refuses or nobody answers.
pub(in crate::tools) async fn list_reassignments(
    cluster: &Cluster,
    partitions: Option<&[TopicPartition]>,
) -> Result<BTreeMap<TopicPartition, Reassignment>, KafkaError> {
    let topics = partitions.map(|partitions| {
        let topics = by_topic(partitions).into_iter();
        topics
            .map(|(topic, indexes)| {
                ListPartitionReassignmentsTopics::default()
                    .with_name(topic_name(topic))
                    .with_partition_indexes(indexes)
            })
            .collect()
    });
    let request = ListPartitionReassignmentsRequest::default()
        .with_topics(topics)
        .with_timeout_ms(REQUEST_TIMEOUT_MS);
    let response = cluster
        .call_controller("listPartitionReassignments", &request)
        .await?;
    KafkaError::check(response.error_code, response.error_message.as_deref())?;
    let topics = response.topics.iter();
    let reassignments = topics.flat_map(|topic| {
        topic.partitions.iter().map(|partition| {
            let key = TopicPartition::new(topic.name.0.as_str(), partition.partition_index);
            (key, Reassignment::from(partition))
        })
    });
    Ok(reassignments.collect())
}
