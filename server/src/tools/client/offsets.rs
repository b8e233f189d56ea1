//! Offsets of logs, and the offsets that groups have committed.

use std::collections::BTreeMap;

use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::{
    BrokerId, GroupId, ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest,
    OffsetFetchResponse,
};
use kafka_protocol::protocol::{Message as _, StrBytes};

use super::{Cluster, KafkaError, Results, TopicPartition, by_topic, topic_name};
use crate::network::client::Client;

/// ListOffsets' timestamp for the offset behind the last record.
pub(crate) const LATEST: i64 = -1;
/// ListOffsets' timestamp for the first offset.
pub(crate) const EARLIEST: i64 = -2;

/// An offset that a group has committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Committed {
    /// The offset of the next record to be read.
    pub(crate) offset: i64,
    /// The leader epoch of the record before it, if it was told.
    pub(crate) leader_epoch: Option<i32>,
}

/// On whose behalf offsets are committed.
#[derive(Debug, Clone)]
pub(crate) struct Committer {
    /// The group.
    pub(crate) group: String,
    /// The member; empty for nobody.
    pub(crate) member_id: String,
    /// Its generation; -1 for nobody.
    pub(crate) generation: i32,
}

/// The first version of ListOffsets that knows a timestamp: Kafka's special ones came one after the other.
fn first_version_with(timestamp: i64) -> i16 {
    match timestamp {
        -6 => 11,
        -5 => 9,
        -4 => 8,
        -3 => 7,
        _ => ListOffsetsRequest::VERSIONS.min,
    }
}

impl Cluster {
    /// The offset at a timestamp, or at [`LATEST`] or [`EARLIEST`], of each partition; -1 where there is none.
    ///
    /// # Errors
    /// When no node answers at all.
    pub(crate) async fn list_offsets(
        &self,
        partitions: impl IntoIterator<Item = TopicPartition>,
        timestamp: i64,
        isolation_level: i8,
    ) -> Result<Results<i64>, KafkaError> {
        self.ask_leaders("listOffsets", partitions, async |leader, partitions| {
            let client = self.client(leader).await?;
            offsets_of(&client, partitions, timestamp, isolation_level).await
        })
        .await
    }

    /// As [`list_offsets`](Self::list_offsets), where all must be known.
    ///
    /// # Errors
    /// The error of the first partition that has one, too.
    pub(crate) async fn all_offsets(
        &self,
        partitions: impl IntoIterator<Item = TopicPartition>,
        timestamp: i64,
    ) -> Result<BTreeMap<TopicPartition, i64>, KafkaError> {
        let results = self.list_offsets(partitions, timestamp, 0).await?;
        results
            .into_iter()
            .map(|(partition, offset)| Ok((partition, offset?)))
            .collect()
    }

    /// All offsets that a group has committed.
    ///
    /// # Errors
    /// When the coordinator does not answer, or refuses.
    pub(crate) async fn committed(
        &self,
        group: &str,
    ) -> Result<BTreeMap<TopicPartition, Committed>, KafkaError> {
        let id = GroupId(StrBytes::from_string(group.to_owned()));
        self.ask_coordinator("listConsumerGroupOffsets", group, async |coordinator| {
            let client = self.client(coordinator).await?;
            let request = |version| match version {
                8.. => OffsetFetchRequest::default().with_groups(vec![
                    OffsetFetchRequestGroup::default()
                        .with_group_id(id.clone())
                        .with_topics(None),
                ]),
                _ => OffsetFetchRequest::default()
                    .with_group_id(id.clone())
                    .with_topics(None),
            };
            let (_, response) = client.call_within(2..=9, request).await?;
            committed(&response)
        })
        .await
    }

    /// Commits offsets.
    ///
    /// # Errors
    /// When the coordinator does not answer, or the first partition that was refused.
    pub(crate) async fn commit(
        &self,
        committer: &Committer,
        offsets: &BTreeMap<TopicPartition, i64>,
    ) -> Result<(), KafkaError> {
        let group = &committer.group;
        self.ask_coordinator("alterConsumerGroupOffsets", group, async |coordinator| {
            let client = self.client(coordinator).await?;
            let request = |_| commit_request(committer, offsets);
            let (_, response) = client.call_within(2..=9, request).await?;
            let topics = response.topics.iter();
            let mut codes = topics.flat_map(|topic| topic.partitions.iter());
            match codes.find(|partition| partition.error_code != 0) {
                Some(partition) => Err(KafkaError::new(partition.error_code, None)),
                None => Ok(()),
            }
        })
        .await
    }
}

/// As [`Cluster::list_offsets`], of partitions that the node at the other end leads. One attempt.
///
/// # Errors
/// When the node cannot be reached or does not answer, which is retriable.
pub(crate) async fn offsets_of(
    client: &Client,
    partitions: &[TopicPartition],
    timestamp: i64,
    isolation_level: i8,
) -> Result<Results<i64>, KafkaError> {
    let request = list_request(partitions, timestamp, isolation_level);
    let versions = first_version_with(timestamp)..=ListOffsetsRequest::VERSIONS.max;
    let response = match client.call_within(versions, |_| request).await {
        Ok((_, response)) => response,
        Err(error) => {
            let error = KafkaError::from(error);
            if error.is_retriable {
                return Err(error);
            }
            // A broker that does not know the timestamp: others may.
            let partitions = partitions.iter().cloned();
            return Ok(partitions
                .map(|partition| (partition, Err(error.clone())))
                .collect());
        }
    };
    let topics = response.topics.into_iter();
    let results = topics.flat_map(|topic| {
        let name = topic.name.0.to_string();
        topic.partitions.into_iter().map(move |found| {
            let partition = TopicPartition::new(name.as_str(), found.partition_index);
            let result = KafkaError::check(found.error_code, None);
            (partition, result.map(|()| found.offset))
        })
    });
    Ok(results.collect())
}

fn list_request(
    partitions: &[TopicPartition],
    timestamp: i64,
    isolation_level: i8,
) -> ListOffsetsRequest {
    let topics = by_topic(partitions).into_iter().map(|(topic, indexes)| {
        let partitions = indexes.into_iter().map(|index| {
            ListOffsetsPartition::default()
                .with_partition_index(index)
                .with_current_leader_epoch(-1)
                .with_timestamp(timestamp)
        });
        ListOffsetsTopic::default()
            .with_name(topic_name(topic))
            .with_partitions(partitions.collect())
    });
    ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_isolation_level(isolation_level)
        .with_topics(topics.collect())
}

/// The offsets that there are: those of the one group that was asked for, which has a place of its own from version 8.
fn committed(
    response: &OffsetFetchResponse,
) -> Result<BTreeMap<TopicPartition, Committed>, KafkaError> {
    KafkaError::check(response.error_code, None)?;
    for group in &response.groups {
        KafkaError::check(group.error_code, None)?;
    }
    let before_8 = response.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|p| {
            let partition = TopicPartition::new(topic.name.0.as_str(), p.partition_index);
            let (offset, leader_epoch) = (p.committed_offset, p.committed_leader_epoch);
            (partition, p.error_code, offset, leader_epoch)
        })
    });
    let topics = response.groups.iter().flat_map(|group| &group.topics);
    let from_8 = topics.flat_map(|topic| {
        topic.partitions.iter().map(|p| {
            let partition = TopicPartition::new(topic.name.0.as_str(), p.partition_index);
            let (offset, leader_epoch) = (p.committed_offset, p.committed_leader_epoch);
            (partition, p.error_code, offset, leader_epoch)
        })
    });
    let mut committed = BTreeMap::new();
    for (partition, error_code, offset, leader_epoch) in before_8.chain(from_8) {
        KafkaError::check(error_code, None)?;
        if offset >= 0 {
            let leader_epoch = (leader_epoch >= 0).then_some(leader_epoch);
            let found = Committed {
                offset,
                leader_epoch,
            };
            committed.insert(partition, found);
        }
    }
    Ok(committed)
}

fn commit_request(
    committer: &Committer,
    offsets: &BTreeMap<TopicPartition, i64>,
) -> OffsetCommitRequest {
    let topics = by_topic(offsets.keys())
        .into_iter()
        .map(|(topic, indexes)| {
            let partitions = indexes.into_iter().filter_map(|index| {
                let offset = offsets.get(&TopicPartition::new(topic, index))?;
                let partition = OffsetCommitRequestPartition::default()
                    .with_partition_index(index)
                    .with_committed_offset(*offset)
                    .with_committed_leader_epoch(-1)
                    .with_committed_metadata(Some(StrBytes::from_static_str("")));
                Some(partition)
            });
            OffsetCommitRequestTopic::default()
                .with_name(topic_name(topic))
                .with_partitions(partitions.collect())
        });
    OffsetCommitRequest::default()
        .with_group_id(GroupId(StrBytes::from_string(committer.group.clone())))
        .with_generation_id_or_member_epoch(committer.generation)
        .with_member_id(StrBytes::from_string(committer.member_id.clone()))
        .with_retention_time_ms(-1)
        .with_topics(topics.collect())
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::offset_fetch_response::{
        OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
        OffsetFetchResponseTopic, OffsetFetchResponseTopics,
    };

    use super::*;

    #[test]
    fn offsets_are_asked_for_topic_by_topic() {
        let partitions = [("a", 0), ("b", 1), ("a", 2)].map(|(t, p)| TopicPartition::new(t, p));
        let request = list_request(&partitions, EARLIEST, 1);
        assert_eq!(request.isolation_level, 1);
        let asked: Vec<_> = request
            .topics
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|p| (&topic.name.0[..], p)))
            .map(|(topic, p)| (topic.to_owned(), p.partition_index, p.timestamp))
            .collect();
        let expected = [("a", 0), ("a", 2), ("b", 1)];
        assert_eq!(asked, expected.map(|(t, p)| (t.to_owned(), p, EARLIEST)));
    }

    #[test]
    fn committed_offsets_are_read_in_both_shapes() {
        let partition = |index, offset, epoch| {
            OffsetFetchResponsePartition::default()
                .with_partition_index(index)
                .with_committed_offset(offset)
                .with_committed_leader_epoch(epoch)
        };
        let before_8 = OffsetFetchResponse::default().with_topics(vec![
            OffsetFetchResponseTopic::default()
                .with_name(topic_name("t"))
                .with_partitions(vec![
                    partition(0, 5, 2),
                    partition(1, 6, -1),
                    partition(2, -1, -1),
                ]),
        ]);
        let partition = |index, offset, epoch| {
            OffsetFetchResponsePartitions::default()
                .with_partition_index(index)
                .with_committed_offset(offset)
                .with_committed_leader_epoch(epoch)
        };
        let group = OffsetFetchResponseGroup::default().with_topics(vec![
            OffsetFetchResponseTopics::default()
                .with_name(topic_name("t"))
                .with_partitions(vec![
                    partition(0, 5, 2),
                    partition(1, 6, -1),
                    partition(2, -1, -1),
                ]),
        ]);
        let from_8 = OffsetFetchResponse::default().with_groups(vec![group.clone()]);
        let found = |index, offset, leader_epoch| {
            let found = Committed {
                offset,
                leader_epoch,
            };
            (TopicPartition::new("t", index), found)
        };
        let expected = BTreeMap::from([found(0, 5, Some(2)), found(1, 6, None)]);
        assert_eq!(committed(&before_8), Ok(expected.clone()));
        assert_eq!(committed(&from_8), Ok(expected));
        let code = |response: OffsetFetchResponse| committed(&response).map_err(|error| error.code);
        assert_eq!(code(before_8.with_error_code(16)), Err(16));
        let refused = group.with_error_code(30);
        assert_eq!(code(from_8.with_groups(vec![refused])), Err(30));
    }

    #[test]
    fn a_commit_names_member_and_generation() {
        let committer = Committer {
            group: "g".to_owned(),
            member_id: "m".to_owned(),
            generation: 3,
        };
        let offsets = BTreeMap::from([(TopicPartition::new("t", 1), 9)]);
        let request = commit_request(&committer, &offsets);
        assert_eq!(request.generation_id_or_member_epoch, 3);
        assert_eq!(request.topics[0].partitions[0].committed_offset, 9);
    }
}
