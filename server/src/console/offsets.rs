//! Where the logs of a broker's replicas end, as the broker says itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{
    BrokerId, FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::kafka_names;
use crate::network::client::{Client, ClientError};

/// Partitions by the name of their topic.
pub type TopicPartitions = Vec<(Arc<str>, i32)>;
/// What a broker says of each replica: its offsets, or the name of an error.
pub type Answer = BTreeMap<(Arc<str>, i32), Result<ReplicaOffsets, String>>;

/// The newest version of Fetch that names topics, not their ids.
const FETCH_BY_NAME: i16 = 12;
const CONSUMER: BrokerId = BrokerId(-1);
/// A consumer to whom each replica answers for itself, with its log end offset.
const DEBUGGING_CONSUMER: BrokerId = BrokerId(-2);
const LATEST: i64 = -1;

/// Where one replica's log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaOffsets {
    /// The offset after its last record.
    pub log_end_offset: i64,
    /// Up to where it knows the log as committed, exclusive; `None` when it does not say.
    pub high_watermark: Option<i64>,
}

/// Asks a broker for the offsets of its replicas of these partitions.
///
/// # Errors
/// When the broker cannot be reached or does not answer.
pub async fn of_replicas(
    client: &Client,
    partitions: &TopicPartitions,
) -> Result<Answer, ClientError> {
    let ends = client
        .call(&list_offsets(DEBUGGING_CONSUMER, partitions))
        .await?;
    let mut answer = log_ends(&ends);
    let (_, fetched) = client
        .call_within(FETCH_BY_NAME..=FETCH_BY_NAME, |_| fetch_at_ends(&answer))
        .await?;
    add_high_watermarks(&mut answer, &fetched);
    Ok(answer)
}

/// Asks a leader up to where consumers may read these partitions.
///
/// # Errors
/// When the leader cannot be reached or does not answer.
pub async fn for_consumers(
    client: &Client,
    partitions: &TopicPartitions,
) -> Result<BTreeMap<(Arc<str>, i32), i64>, ClientError> {
    let ends = client.call(&list_offsets(CONSUMER, partitions)).await?;
    let answer = log_ends(&ends).into_iter();
    Ok(answer
        .filter_map(|(partition, offsets)| Some((partition, offsets.ok()?.log_end_offset)))
        .collect())
}

fn list_offsets(replica: BrokerId, partitions: &TopicPartitions) -> ListOffsetsRequest {
    let mut topics: Vec<ListOffsetsTopic> = Vec::new();
    for (topic, number) in partitions {
        let partition = ListOffsetsPartition::default()
            .with_partition_index(*number)
            .with_timestamp(LATEST);
        match topics.last_mut() {
            Some(last) if *last.name.0 == **topic => last.partitions.push(partition),
            _ => topics.push(
                ListOffsetsTopic::default()
                    .with_name(name(topic))
                    .with_partitions(vec![partition]),
            ),
        }
    }
    ListOffsetsRequest::default()
        .with_replica_id(replica)
        .with_topics(topics)
}

fn log_ends(response: &ListOffsetsResponse) -> Answer {
    let mut answer = Answer::new();
    for topic in &response.topics {
        let name: Arc<str> = topic.name.0.as_str().into();
        for partition in &topic.partitions {
            let offsets = match partition.error_code {
                0 => Ok(ReplicaOffsets {
                    log_end_offset: partition.offset,
                    high_watermark: None,
                }),
                code => Err(error_name(code)),
            };
            answer.insert((Arc::clone(&name), partition.partition_index), offsets);
        }
    }
    answer
}

/// A fetch that waits for nothing and gets nothing but the high watermarks: it begins where the logs end.
fn fetch_at_ends(answer: &Answer) -> FetchRequest {
    let mut topics: Vec<FetchTopic> = Vec::new();
    for ((topic, number), offsets) in answer {
        let Ok(offsets) = offsets else { continue };
        let partition = FetchPartition::default()
            .with_partition(*number)
            .with_fetch_offset(offsets.log_end_offset)
            .with_partition_max_bytes(1);
        match topics.last_mut() {
            Some(last) if *last.topic.0 == **topic => last.partitions.push(partition),
            _ => topics.push(
                FetchTopic::default()
                    .with_topic(name(topic))
                    .with_partitions(vec![partition]),
            ),
        }
    }
    FetchRequest::default()
        .with_replica_id(CONSUMER)
        .with_max_wait_ms(0)
        .with_min_bytes(0)
        .with_max_bytes(1)
        // No session.
        .with_session_epoch(-1)
        .with_topics(topics)
}

fn add_high_watermarks(answer: &mut Answer, response: &FetchResponse) {
    for topic in &response.responses {
        let name: Arc<str> = topic.topic.0.as_str().into();
        for partition in &topic.partitions {
            let known = answer.get_mut(&(Arc::clone(&name), partition.partition_index));
            if let Some(Ok(offsets)) = known {
                let said = partition.error_code == 0 && partition.high_watermark >= 0;
                offsets.high_watermark = said.then_some(partition.high_watermark);
            }
        }
    }
}

fn name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

/// Kafka's name of an error code, `NOT_LEADER_OR_FOLLOWER` for 6; also where there is none.
pub fn error_name(code: i16) -> String {
    match code {
        0 => "NONE".to_owned(),
        code => kafka_names::error_name(code).unwrap_or_else(|| format!("error {code}")),
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
    use kafka_protocol::messages::list_offsets_response::{
        ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
    };

    use super::*;

    #[test]
    fn errors_have_kafkas_names() {
        assert_eq!(error_name(6), "NOT_LEADER_OR_FOLLOWER");
        assert_eq!(error_name(19), "NOT_ENOUGH_REPLICAS");
        assert_eq!(error_name(0), "NONE");
        assert_eq!(error_name(-99), "error -99");
    }

    #[test]
    fn each_topic_is_named_once_and_refusals_are_not_fetched() {
        let orders: Arc<str> = "orders".into();
        let partitions = vec![
            (Arc::clone(&orders), 0),
            (Arc::clone(&orders), 1),
            ("t".into(), 0),
        ];
        let asked = list_offsets(DEBUGGING_CONSUMER, &partitions);
        assert_eq!(asked.topics.len(), 2);
        assert_eq!(asked.topics[0].partitions.len(), 2);
        let partition = |index, error_code, offset| {
            ListOffsetsPartitionResponse::default()
                .with_partition_index(index)
                .with_error_code(error_code)
                .with_offset(offset)
        };
        let topic = ListOffsetsTopicResponse::default()
            .with_name(name("orders"))
            .with_partitions(vec![partition(0, 0, 7), partition(1, 6, -1)]);
        let mut answer = log_ends(&ListOffsetsResponse::default().with_topics(vec![topic]));
        let fetch = fetch_at_ends(&answer);
        assert_eq!(fetch.topics[0].partitions.len(), 1);
        assert_eq!(fetch.topics[0].partitions[0].fetch_offset, 7);
        let fetched = FetchableTopicResponse::default()
            .with_topic(name("orders"))
            .with_partitions(vec![PartitionData::default().with_high_watermark(5)]);
        add_high_watermarks(
            &mut answer,
            &FetchResponse::default().with_responses(vec![fetched]),
        );
        let offsets = ReplicaOffsets {
            log_end_offset: 7,
            high_watermark: Some(5),
        };
        assert_eq!(answer[&(Arc::clone(&orders), 0)], Ok(offsets));
        assert_eq!(
            answer[&(orders, 1)],
            Err("NOT_LEADER_OR_FOLLOWER".to_owned())
        );
    }
}
