//! A fetch from one leader.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse};

use super::ConsumerConfig;
use super::records::{self, Fetched};
use crate::network::client::Client;
use crate::tools::client::{KafkaError, TopicPartition, topic_name};

/// The versions that name topics; later ones have ids.
const VERSIONS: RangeInclusive<i16> = 4..=12;

/// The offsets from which partitions are fetched.
pub(super) type Wanted = BTreeMap<TopicPartition, i64>;

/// What came of a fetch.
pub(super) struct Answer {
    pub(super) leader: i32,
    pub(super) partitions: Vec<Found>,
}

/// What came of one partition: its records and the offset to fetch next.
pub(super) struct Found {
    pub(super) partition: TopicPartition,
    /// The offset that was asked for.
    pub(super) offset: i64,
    pub(super) result: Result<(Vec<Fetched>, i64), KafkaError>,
}

/// Fetches these partitions from these offsets on.
pub(super) async fn fetch(
    client: Option<Arc<Client>>,
    leader: i32,
    wanted: Wanted,
    config: ConsumerConfig,
) -> Answer {
    let response = match client {
        Some(client) => client
            .call_within(VERSIONS, |_| request(&wanted, &config))
            .await
            .map(|(_, response)| response)
            .map_err(KafkaError::from),
        // NOT_LEADER_OR_FOLLOWER: the leader has to be found.
        None => Err(KafkaError::new(6, None)),
    };
    let response = response
        .and_then(|response| KafkaError::check(response.error_code, None).map(|()| response));
    let partitions = match response {
        Ok(response) => found(response, &wanted, config.is_read_committed),
        Err(error) => {
            let wanted = wanted.into_iter();
            wanted
                .map(|(partition, offset)| Found {
                    partition,
                    offset,
                    result: Err(error.clone()),
                })
                .collect()
        }
    };
    Answer { leader, partitions }
}

fn request(wanted: &Wanted, config: &ConsumerConfig) -> FetchRequest {
    let mut of_topic: BTreeMap<&str, Vec<FetchPartition>> = BTreeMap::new();
    for (partition, offset) in wanted {
        let asked = FetchPartition::default()
            .with_partition(partition.partition)
            .with_fetch_offset(*offset)
            .with_current_leader_epoch(-1)
            .with_last_fetched_epoch(-1)
            .with_log_start_offset(-1)
            .with_partition_max_bytes(config.max_partition_fetch_bytes);
        of_topic.entry(&partition.topic).or_default().push(asked);
    }
    let topics = of_topic.into_iter().map(|(topic, partitions)| {
        FetchTopic::default()
            .with_topic(topic_name(topic))
            .with_partitions(partitions)
    });
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(i32::try_from(config.fetch_max_wait.as_millis()).unwrap_or(i32::MAX))
        .with_min_bytes(config.fetch_min_bytes)
        .with_max_bytes(config.fetch_max_bytes)
        .with_isolation_level(i8::from(config.is_read_committed))
        .with_session_id(0)
        .with_session_epoch(-1)
        .with_topics(topics.collect())
}

fn found(response: FetchResponse, wanted: &Wanted, is_read_committed: bool) -> Vec<Found> {
    let mut partitions = Vec::new();
    for topic in response.responses {
        for data in topic.partitions {
            let partition = TopicPartition::new(topic.topic.0.as_str(), data.partition_index);
            let Some(offset) = wanted.get(&partition) else {
                continue;
            };
            let aborted: Vec<_> = match data.aborted_transactions {
                Some(aborted) if is_read_committed => aborted
                    .iter()
                    .map(|aborted| (aborted.producer_id.0, aborted.first_offset))
                    .collect(),
                _ => Vec::new(),
            };
            let result = KafkaError::check(data.error_code, None).and_then(|()| {
                let bytes: Bytes = data.records.unwrap_or_default();
                records::read(&bytes, *offset, &aborted).map_err(|error| {
                    KafkaError::of_client("CorruptRecordException", format!("{partition}: {error}"))
                })
            });
            partitions.push(Found {
                partition,
                offset: *offset,
                result,
            });
        }
    }
    partitions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::client::ClientProperties;
    use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};

    #[test]
    fn a_request_names_each_topic_once() {
        let config = ConsumerConfig::of(&ClientProperties::default()).expect("sound");
        let wanted = [("a", 0), ("b", 0), ("a", 1)]
            .map(|(topic, index)| (TopicPartition::new(topic, index), i64::from(index) + 5));
        let request = request(&wanted.into(), &config);
        assert_eq!(request.topics.len(), 2);
        let offsets: Vec<_> = request.topics[0]
            .partitions
            .iter()
            .map(|partition| (partition.partition, partition.fetch_offset))
            .collect();
        assert_eq!(offsets, [(0, 5), (1, 6)]);
    }

    #[test]
    fn an_error_stays_with_its_partition() {
        let data = |index, code| {
            PartitionData::default()
                .with_partition_index(index)
                .with_error_code(code)
        };
        let topic = FetchableTopicResponse::default()
            .with_topic(topic_name("a"))
            .with_partitions(vec![data(0, 0), data(1, 1)]);
        let response = FetchResponse::default().with_responses(vec![topic]);
        let wanted = [0, 1].map(|index| (TopicPartition::new("a", index), 3));
        let found = found(response, &wanted.into(), false);
        assert_eq!(found[0].result, Ok((vec![], 3)));
        assert_eq!(found[1].result.as_ref().map_err(|error| error.code), Err(1));
    }
}
