//! Offsets of logs, and the offsets that groups have committed.

use std::collections::BTreeMap;

use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::{
    BrokerId, GroupId, ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest,
};
use kafka_protocol::protocol::{Message as _, StrBytes};

use super::{Cluster, KafkaError, Results, TopicPartition, by_topic, topic_name};

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
        let min_version = first_version_with(timestamp);
        self.ask_leaders("listOffsets", partitions, async |leader, partitions| {
            let request = list_request(partitions, timestamp, isolation_level);
            let versions = min_version..=ListOffsetsRequest::VERSIONS.max;
            let client = self.client(leader).await?;
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
        self.retry("listConsumerGroupOffsets", async || {
            let coordinator = self.try_coordinator(group).await?;
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
            let (version, response) = client.call_within(2..=9, request).await?;
            let mut found = BTreeMap::new();
            let mut add = |topic: &str, partition: i32, code: i16, offset: i64, epoch: i32| {
                KafkaError::check(code, None)?;
                if offset >= 0 {
                    let committed = Committed {
                        offset,
                        leader_epoch: (epoch >= 0).then_some(epoch),
                    };
                    found.insert(TopicPartition::new(topic, partition), committed);
                }
                Ok::<(), KafkaError>(())
            };
            if version >= 8 {
                for group in response.groups {
                    KafkaError::check(group.error_code, None)?;
                    for topic in group.topics {
                        for p in topic.partitions {
                            let (offset, epoch) = (p.committed_offset, p.committed_leader_epoch);
                            add(
                                &topic.name.0,
                                p.partition_index,
                                p.error_code,
                                offset,
                                epoch,
                            )?;
                        }
                    }
                }
            } else {
                KafkaError::check(response.error_code, None)?;
                for topic in response.topics {
                    for p in topic.partitions {
                        let (offset, epoch) = (p.committed_offset, p.committed_leader_epoch);
                        add(
                            &topic.name.0,
                            p.partition_index,
                            p.error_code,
                            offset,
                            epoch,
                        )?;
                    }
                }
            }
            Ok(found)
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
        self.retry("alterConsumerGroupOffsets", async || {
            let coordinator = self.try_coordinator(group).await?;
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
