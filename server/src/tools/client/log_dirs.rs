//! The directories of brokers, and what lies in them.

use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult,
};
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};

use super::{Cluster, KafkaError, TopicPartition};

impl Cluster {
    /// All directories of a broker; errors of single ones are in the response. `call` is what Java's AdminClient names
    /// the call. Retried.
    ///
    /// # Errors
    /// When the broker does not answer, or refuses.
    pub(crate) async fn describe_log_dirs(
        &self,
        call: &str,
        broker: i32,
    ) -> Result<DescribeLogDirsResponse, KafkaError> {
        let request = DescribeLogDirsRequest::default().with_topics(None);
        let response = self.call_node(call, broker, &request).await?;
        KafkaError::check(response.error_code, None)?;
        Ok(response)
    }
}

/// The replicas that lie in a directory.
pub(crate) fn replicas_in(
    dir: &DescribeLogDirsResult,
) -> impl Iterator<Item = (TopicPartition, &DescribeLogDirsPartition)> {
    dir.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|replica| {
            let partition = TopicPartition::new(topic.name.0.as_str(), replica.partition_index);
            (partition, replica)
        })
    })
}
