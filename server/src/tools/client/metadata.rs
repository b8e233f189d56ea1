//! Metadata of topics.

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::{Cluster, KafkaError, TopicPartition};

/// A topic's name as the protocol has it.
pub(crate) fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

impl Cluster {
    /// Metadata of these topics, or of all. Errors of single topics are in the response. Retried.
    ///
    /// # Errors
    /// When nobody answers.
    pub(crate) async fn metadata(
        &self,
        topics: Option<&[&str]>,
    ) -> Result<MetadataResponse, KafkaError> {
        let request = MetadataRequest::default()
            .with_topics(topics.map(|topics| topics.iter().map(|name| asked(name)).collect()))
            .with_allow_auto_topic_creation(false);
        self.retry("metadata", async || self.try_metadata(&request).await)
            .await
    }
}

impl Cluster {
    /// The partitions of a topic. Retried.
    ///
    /// # Errors
    /// When there is no such topic, or nobody answers.
    pub(crate) async fn partitions_of(
        &self,
        topic: &str,
    ) -> Result<Vec<TopicPartition>, KafkaError> {
        let response = self.metadata(Some(&[topic])).await?;
        let found = response.topics.into_iter().next();
        // UNKNOWN_TOPIC_OR_PARTITION
        let found = found.ok_or_else(|| KafkaError::new(3, None))?;
        KafkaError::check(found.error_code, None)?;
        let indexes = found.partitions.iter().map(|found| found.partition_index);
        Ok(indexes
            .map(|index| TopicPartition::new(topic, index))
            .collect())
    }
}

/// A topic to ask for by its name.
pub(crate) fn asked(name: &str) -> MetadataRequestTopic {
    MetadataRequestTopic::default().with_name(Some(topic_name(name)))
}
