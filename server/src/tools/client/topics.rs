//! Topics as a tool sees them: names, partitions, replicas.

use kafka_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use kafka_protocol::messages::describe_topic_partitions_response::DescribeTopicPartitionsResponsePartition;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, DescribeTopicPartitionsRequest};
use uuid::Uuid;

use super::metadata::asked;
use super::{Cluster, KafkaError, topic_name};

/// A topic's name, id and the indexes of its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicListing {
    /// Its name.
    pub(crate) name: String,
    /// Its id.
    pub(crate) id: Uuid,
    /// Its partitions, ascending.
    pub(crate) partitions: Vec<i32>,
}

/// All there is to know about a topic's partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicDescription {
    /// Its name.
    pub(crate) name: String,
    /// Its id; nil where the broker tells none.
    pub(crate) id: Uuid,
    /// Its partitions, ascending.
    pub(crate) partitions: Vec<PartitionInfo>,
}

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartitionInfo {
    /// Its index.
    pub(crate) partition: i32,
    /// Its leader, if it has one.
    pub(crate) leader: Option<i32>,
    /// The brokers of its replicas, the preferred leader first.
    pub(crate) replicas: Vec<i32>,
    /// The brokers of its in-sync replicas.
    pub(crate) isr: Vec<i32>,
    /// Its eligible leader replicas (KIP-966), where the response tells them.
    pub(crate) elr: Option<Vec<i32>>,
    /// The last known eligible leader replicas, where the response tells them.
    pub(crate) last_known_elr: Option<Vec<i32>>,
}

impl Cluster {
    /// All topics, by name. Retried.
    ///
    /// # Errors
    /// When nobody answers.
    pub(crate) async fn list_topics(&self) -> Result<Vec<TopicListing>, KafkaError> {
        let response = self.metadata_of("listTopics", None).await?;
        let topics = response.topics.iter().filter_map(listing);
        let mut topics: Vec<_> = topics.collect();
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(topics)
    }

    /// These topics, in the order of their names, at most `limit` partitions a response. Retried.
    ///
    /// # Errors
    /// When nobody answers or a topic does not exist.
    pub(crate) async fn describe_topics(
        &self,
        names: &[&str],
        limit: i32,
    ) -> Result<Vec<TopicDescription>, KafkaError> {
        let mut names = names.to_vec();
        names.sort_unstable();
        let mut topics: Vec<TopicDescription> = Vec::new();
        let mut cursor: Option<Cursor> = None;
        loop {
            let wanted = names
                .iter()
                .map(|name| TopicRequest::default().with_name(topic_name(name)));
            let request = DescribeTopicPartitionsRequest::default()
                .with_topics(wanted.collect())
                .with_response_partition_limit(limit)
                .with_cursor(cursor.take());
            let response = match self.call_any("describeTopicPartitions", &request).await {
                Err(error) if error.is_unsupported() => {
                    return self
                        .describe_by(names.into_iter().map(asked).collect())
                        .await;
                }
                response => response?,
            };
            for topic in &response.topics {
                KafkaError::check(topic.error_code, None)?;
                let name = topic.name.as_ref().map(|name| name.0.to_string());
                let name = name.unwrap_or_default();
                let partitions = topic.partitions.iter().map(PartitionInfo::from);
                match topics.last_mut().filter(|last| last.name == name) {
                    Some(last) => last.partitions.extend(partitions),
                    None => topics.push(TopicDescription {
                        name,
                        id: topic.topic_id,
                        partitions: partitions.collect(),
                    }),
                }
            }
            let Some(next) = response.next_cursor else {
                break;
            };
            names.retain(|name| *name >= next.topic_name.0.as_str());
            cursor = Some(
                Cursor::default()
                    .with_topic_name(next.topic_name)
                    .with_partition_index(next.partition_index),
            );
        }
        for topic in &mut topics {
            topic
                .partitions
                .sort_by_key(|partition| partition.partition);
        }
        Ok(topics)
    }

    /// The topic with an id. Retried.
    ///
    /// # Errors
    /// When nobody answers or there is no such topic.
    pub(crate) async fn describe_topic_id(&self, id: Uuid) -> Result<TopicDescription, KafkaError> {
        let topic = MetadataRequestTopic::default()
            .with_topic_id(id)
            .with_name(None);
        let topics = self.describe_by(vec![topic]).await?;
        let mut topics = topics.into_iter();
        topics.next().ok_or_else(|| KafkaError::new(100, None))
    }

    async fn describe_by(
        &self,
        wanted: Vec<MetadataRequestTopic>,
    ) -> Result<Vec<TopicDescription>, KafkaError> {
        let response = self.metadata_of("describeTopics", Some(wanted)).await?;
        let topics = response.topics.iter().map(|topic| {
            KafkaError::check(topic.error_code, None)?;
            let mut partitions: Vec<_> = topic.partitions.iter().map(PartitionInfo::from).collect();
            partitions.sort_by_key(|partition| partition.partition);
            let name = topic.name.as_ref().map(|name| name.0.to_string());
            Ok(TopicDescription {
                name: name.unwrap_or_default(),
                id: topic.topic_id,
                partitions,
            })
        });
        topics.collect()
    }
}

fn listing(topic: &MetadataResponseTopic) -> Option<TopicListing> {
    let mut partitions: Vec<_> = topic.partitions.iter().map(|p| p.partition_index).collect();
    partitions.sort_unstable();
    Some(TopicListing {
        name: topic.name.as_ref()?.0.to_string(),
        id: topic.topic_id,
        partitions,
    })
}

fn ids(ids: &[BrokerId]) -> Vec<i32> {
    ids.iter().map(|id| id.0).collect()
}

fn leader(id: BrokerId) -> Option<i32> {
    (id.0 >= 0).then_some(id.0)
}

impl From<&DescribeTopicPartitionsResponsePartition> for PartitionInfo {
    fn from(partition: &DescribeTopicPartitionsResponsePartition) -> Self {
        PartitionInfo {
            partition: partition.partition_index,
            leader: leader(partition.leader_id),
            replicas: ids(&partition.replica_nodes),
            isr: ids(&partition.isr_nodes),
            elr: partition.eligible_leader_replicas.as_deref().map(ids),
            last_known_elr: partition.last_known_elr.as_deref().map(ids),
        }
    }
}

impl From<&MetadataResponsePartition> for PartitionInfo {
    fn from(partition: &MetadataResponsePartition) -> Self {
        PartitionInfo {
            partition: partition.partition_index,
            leader: leader(partition.leader_id),
            replicas: ids(&partition.replica_nodes),
            isr: ids(&partition.isr_nodes),
            elr: None,
            last_known_elr: None,
        }
    }
}
