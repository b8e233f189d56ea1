//! The requests of a producer and their responses.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    InitProducerIdRequest, MetadataRequest, ProduceRequest, ProduceResponse, ProducerId as WireId,
};

use super::batch::{Batch, ProducerId};
use crate::tools::client::{Cluster, KafkaError, asked_topic, topic_name};

/// The versions that name topics; later ones have ids.
pub(super) const VERSIONS: RangeInclusive<i16> = 3..=12;

pub(super) fn produce(
    topic: &str,
    acks: i16,
    timeout: Duration,
    batches: &[(i32, Batch)],
) -> ProduceRequest {
    let partitions = batches.iter().map(|(partition, batch)| {
        PartitionProduceData::default()
            .with_index(*partition)
            .with_records(Some(batch.bytes()))
    });
    let data = TopicProduceData::default()
        .with_name(topic_name(topic))
        .with_partition_data(partitions.collect());
    ProduceRequest::default()
        .with_acks(acks)
        .with_timeout_ms(i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX))
        .with_topic_data(vec![data])
}

/// Asks for the leader of each partition, `None` where there is none; the topic may be created by that. One attempt.
pub(super) async fn leaders(
    cluster: &Cluster,
    topic: &str,
) -> Result<BTreeMap<usize, Option<i32>>, KafkaError> {
    let request = MetadataRequest::default()
        .with_topics(Some(vec![asked_topic(topic)]))
        .with_allow_auto_topic_creation(true);
    let response = cluster.try_metadata(&request).await?;
    let topic = response.topics.into_iter().next();
    let topic = topic.ok_or_else(|| KafkaError::new(3, None))?;
    KafkaError::check(topic.error_code, None)?;
    let partitions = topic.partitions.into_iter();
    let leaders = partitions.filter_map(|partition| {
        let index = usize::try_from(partition.partition_index).ok()?;
        let leader = partition.leader_id.0;
        Some((index, (leader >= 0).then_some(leader)))
    });
    Ok(leaders.collect())
}

/// Asks for an id of an idempotent producer. One attempt.
pub(super) async fn producer_id(cluster: &Cluster) -> Result<ProducerId, KafkaError> {
    let request = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(i32::MAX)
        .with_producer_id(WireId(-1))
        .with_producer_epoch(-1);
    let response = cluster.try_any(&request).await?;
    KafkaError::check(response.error_code, None)?;
    Ok((response.producer_id.0, response.producer_epoch))
}

/// The partitions that have an error.
pub(super) fn errors(response: &ProduceResponse) -> BTreeMap<i32, KafkaError> {
    let topics = response.responses.iter();
    topics
        .flat_map(|topic| &topic.partition_responses)
        .filter_map(|partition| {
            let text = partition.error_message.as_deref();
            let error = KafkaError::check(partition.error_code, text).err()?;
            Some((partition.index, error))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::produce_response::{
        PartitionProduceResponse, TopicProduceResponse,
    };

    #[test]
    fn only_partitions_with_an_error_are_told() {
        let partition = |index, code| {
            PartitionProduceResponse::default()
                .with_index(index)
                .with_error_code(code)
        };
        let topic = TopicProduceResponse::default()
            .with_partition_responses(vec![partition(0, 0), partition(1, 6)]);
        let errors = errors(&ProduceResponse::default().with_responses(vec![topic]));
        let errors: Vec<_> = errors
            .iter()
            .map(|(index, error)| (*index, error.code))
            .collect();
        assert_eq!(errors, [(1, 6)]);
    }
}
