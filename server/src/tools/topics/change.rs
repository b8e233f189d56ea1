//! More partitions, and the end of topics.

use kafka_protocol::messages::create_partitions_request::{
    CreatePartitionsAssignment, CreatePartitionsTopic,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::{BrokerId, CreatePartitionsRequest, DeleteTopicsRequest};

use super::create::parse_assignment;
use super::{TopicsArguments, existing, plain};
use crate::tools::ToolError;
use crate::tools::client::{Cluster, KafkaError, REQUEST_TIMEOUT_MS, TopicListing, topic_name};

/// Gives the topics more partitions.
pub(super) async fn alter(arguments: &TopicsArguments, cluster: &Cluster) -> Result<(), ToolError> {
    let assignment = arguments.replica_assignment.as_deref().unwrap_or_default();
    let assignment = parse_assignment(assignment)?;
    let topics = existing(arguments, cluster).await?;
    if topics.is_empty() {
        return Ok(());
    }
    let count = arguments.partitions.unwrap_or_default();
    let topics = topics.iter().map(|topic| grown(topic, count, &assignment));
    let request = CreatePartitionsRequest::default()
        .with_topics(topics.collect())
        .with_timeout_ms(REQUEST_TIMEOUT_MS);
    let response = cluster
        .call_controller("createPartitions", &request)
        .await
        .map_err(plain)?;
    for result in &response.results {
        KafkaError::check(result.error_code, result.error_message.as_deref()).map_err(plain)?;
    }
    Ok(())
}

/// The request for one topic. The assignment is of all its partitions; those that it has already are left out.
fn grown(topic: &TopicListing, count: i32, assignment: &[Vec<i32>]) -> CreatePartitionsTopic {
    let new = assignment
        .iter()
        .skip(topic.partitions.len())
        .map(|replicas| {
            let ids = replicas.iter().copied().map(BrokerId);
            CreatePartitionsAssignment::default().with_broker_ids(ids.collect())
        });
    CreatePartitionsTopic::default()
        .with_name(topic_name(&topic.name))
        .with_count(count)
        .with_assignments((!assignment.is_empty()).then(|| new.collect()))
}

/// Deletes the topics.
pub(super) async fn delete(
    arguments: &TopicsArguments,
    cluster: &Cluster,
) -> Result<(), ToolError> {
    let topics = existing(arguments, cluster).await?;
    if topics.is_empty() {
        return Ok(());
    }
    let topics = topics
        .iter()
        .map(|topic| DeleteTopicState::default().with_name(Some(topic_name(&topic.name))));
    let request = DeleteTopicsRequest::default()
        .with_topics(topics.collect())
        .with_timeout_ms(REQUEST_TIMEOUT_MS);
    let response = cluster
        .call_controller("deleteTopics", &request)
        .await
        .map_err(plain)?;
    for result in &response.responses {
        KafkaError::check(result.error_code, result.error_message.as_deref()).map_err(plain)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assignment_of_partitions_that_are_there_is_left_out() {
        let topic = TopicListing {
            name: "t".to_owned(),
            id: uuid::Uuid::nil(),
            partitions: vec![0],
        };
        let request = grown(&topic, 2, &[vec![1], vec![2]]);
        let assignments = request.assignments.expect("one");
        assert_eq!(assignments.len(), 1);
        assert_eq!(assignments[0].broker_ids, [BrokerId(2)]);
        assert_eq!(
            grown(&topic, 2, &[]).assignments,
            None,
            "the broker's choice"
        );
    }
}
