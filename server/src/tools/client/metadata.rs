//! Metadata of topics, and the texts of names and ids.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::{Cluster, KafkaError};

/// A topic's name as the protocol has it.
pub(crate) fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

/// A topic id or directory id as Kafka prints it.
pub(crate) fn uuid_text(id: Uuid) -> String {
    URL_SAFE_NO_PAD.encode(id.as_bytes())
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

/// A topic to ask for by its name.
pub(super) fn asked(name: &str) -> MetadataRequestTopic {
    MetadataRequestTopic::default().with_name(Some(topic_name(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_printed_as_kafka_does() {
        assert_eq!(uuid_text(Uuid::nil()), "AAAAAAAAAAAAAAAAAAAAAA");
    }
}
