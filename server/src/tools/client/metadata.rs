//! Metadata of topics.

use std::collections::BTreeSet;

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
        let topics = topics.map(|topics| topics.iter().map(|name| asked(name)).collect());
        self.metadata_of("metadata", topics).await
    }

    /// As [`metadata`](Self::metadata), for topics named in any way. `call` is what Java's AdminClient names the call.
    ///
    /// # Errors
    /// When nobody answers.
    pub(super) async fn metadata_of(
        &self,
        call: &str,
        topics: Option<Vec<MetadataRequestTopic>>,
    ) -> Result<MetadataResponse, KafkaError> {
        let request = metadata_request(topics);
        self.retry(call, async || self.try_metadata(&request).await)
            .await
    }

    /// The partitions of topics, each of which is named once. Retried.
    ///
    /// # Errors
    /// When there is no such topic, or nobody answers.
    pub(crate) async fn partitions_of(
        &self,
        topics: &[&str],
    ) -> Result<BTreeSet<TopicPartition>, KafkaError> {
        partitions_of(topics, &self.metadata(Some(topics)).await?)
    }
}

fn partitions_of(
    topics: &[&str],
    response: &MetadataResponse,
) -> Result<BTreeSet<TopicPartition>, KafkaError> {
    if response.topics.len() < topics.len() {
        // UNKNOWN_TOPIC_OR_PARTITION
        return Err(KafkaError::new(3, None));
    }
    let mut partitions = BTreeSet::new();
    for topic in &response.topics {
        KafkaError::check(topic.error_code, None)?;
        let name = topic.name.as_ref().map_or("", |name| name.0.as_str());
        let indexes = topic.partitions.iter().map(|found| found.partition_index);
        partitions.extend(indexes.map(|index| TopicPartition::new(name, index)));
    }
    Ok(partitions)
}

/// Asks for these topics, or for all; one that does not exist is not created.
pub(super) fn metadata_request(topics: Option<Vec<MetadataRequestTopic>>) -> MetadataRequest {
    MetadataRequest::default()
        .with_topics(topics)
        .with_allow_auto_topic_creation(false)
}

/// A topic to ask for by its name.
pub(crate) fn asked(name: &str) -> MetadataRequestTopic {
    MetadataRequestTopic::default().with_name(Some(topic_name(name)))
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::metadata_response::{
        MetadataResponsePartition, MetadataResponseTopic,
    };

    use super::*;

    #[test]
    fn the_partitions_of_topics_are_all_there_or_the_reason_why_not() {
        let topic = |name, error_code| {
            MetadataResponseTopic::default()
                .with_name(Some(topic_name(name)))
                .with_error_code(error_code)
                .with_partitions(vec![MetadataResponsePartition::default()])
        };
        let told = |asked: &[&str], topics: &[MetadataResponseTopic]| {
            let response = MetadataResponse::default().with_topics(topics.to_vec());
            partitions_of(asked, &response).map_err(|error| error.code)
        };
        let both = ["a", "b"].map(|name| TopicPartition::new(name, 0));
        let asked = ["a", "b"];
        let found = told(&asked, &[topic("b", 0), topic("a", 0)]);
        assert_eq!(found, Ok(BTreeSet::from(both)));
        assert_eq!(told(&asked, &[topic("a", 0)]), Err(3));
        assert_eq!(told(&asked, &[topic("a", 0), topic("b", 17)]), Err(17));
    }
}
