//! The offsets of a group, and their deletion.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use kafka_protocol::messages::OffsetDeleteRequest;
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};

use super::super::client::{
    Cluster, Committed, KafkaError, LATEST, TopicPartition, by_topic, topic_name,
};
use super::arguments::ConsumerGroupsArguments;
use super::groups::{Description, group_id};
use super::reset::parse_partitions;
use super::tables::MISSING;
use super::{Failure, print_error};

/// A partition of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) group: String,
    pub(super) partition: TopicPartition,
    pub(super) offset: Option<i64>,
    pub(super) leader_epoch: Option<i32>,
    pub(super) log_end_offset: Option<i64>,
    pub(super) consumer_id: String,
    pub(super) host: String,
    pub(super) client_id: String,
}

impl Row {
    /// Records that are not read yet.
    pub(super) fn lag(&self) -> Option<i64> {
        Some(self.log_end_offset? - self.offset?)
    }
}

/// The partitions of a group: those of its members, then those that nobody reads.
pub(super) async fn rows(cluster: &Cluster, group: &Description) -> Result<Vec<Row>, KafkaError> {
    let committed = cluster.committed(&group.id).await?;
    let assigned = group.members.iter().flat_map(|member| &member.assignment);
    let all: BTreeSet<_> = committed.keys().chain(assigned).cloned().collect();
    // Nobody knows the end of a partition that nobody leads: its row goes without.
    let without_leader = cluster.without_leader(&all).await?;
    let led = all.difference(&without_leader).cloned();
    let ends = cluster.list_offsets(led, LATEST, 0).await?;
    let ends = ends
        .into_iter()
        .filter_map(|(partition, end)| Some((partition, end.ok()?)))
        .collect();
    Ok(arrange(group, &committed, &ends))
}

fn arrange(
    group: &Description,
    committed: &BTreeMap<TopicPartition, Committed>,
    ends: &BTreeMap<TopicPartition, i64>,
) -> Vec<Row> {
    let row = |partition: &TopicPartition, [consumer_id, host, client_id]: [&str; 3]| Row {
        group: group.id.clone(),
        offset: committed.get(partition).map(|found| found.offset),
        leader_epoch: committed
            .get(partition)
            .and_then(|found| found.leader_epoch),
        log_end_offset: ends.get(partition).copied(),
        partition: partition.clone(),
        consumer_id: consumer_id.to_owned(),
        host: host.to_owned(),
        client_id: client_id.to_owned(),
    };
    let mut members: Vec<_> = group.members.iter().collect();
    members.sort_by_key(|member| std::cmp::Reverse(member.assignment.len()));
    let mut rows = Vec::new();
    let mut assigned = BTreeSet::new();
    for member in members {
        let partitions: BTreeSet<_> = member.assignment.iter().collect();
        let who = [&member.id[..], &member.host, &member.client_id];
        rows.extend(partitions.iter().map(|partition| row(partition, who)));
        assigned.extend(partitions);
    }
    let free = committed
        .keys()
        .filter(|partition| !assigned.contains(partition));
    rows.extend(free.map(|partition| row(partition, [MISSING; 3])));
    rows
}

/// Deletes the offsets of topics or partitions.
pub(super) async fn delete(
    arguments: &ConsumerGroupsArguments,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let group = arguments.group.first().map_or("", String::as_str);
    let mut results: BTreeMap<(String, i32), Option<KafkaError>> = BTreeMap::new();
    let mut partitions = BTreeSet::new();
    for topic in &arguments.topic {
        if topic.contains(':') {
            partitions.extend(parse_partitions(topic)?);
            continue;
        }
        match cluster.partitions_of(&[topic]).await {
            Ok(found) => partitions.extend(found),
            Err(error) => {
                results.insert((topic.clone(), -1), Some(error));
            }
        }
    }
    let (top, of_partitions) = request(cluster, group, &partitions).await?;
    for partition in partitions {
        let error = of_partitions
            .get(&partition)
            .cloned()
            .or_else(|| top.clone());
        results.insert((partition.topic, partition.partition), error);
    }
    let first = of_partitions.into_values().next();
    match top.or(first) {
        None => writeln!(
            out,
            "Request succeeded for deleting offsets from group {group}."
        )?,
        // INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED, NON_EMPTY_GROUP
        Some(error) if matches!(error.code, 24 | 69 | 30 | 68) => {
            print_error(out, &error.message)?;
        }
        // GROUP_SUBSCRIBED_TO_TOPIC, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
        Some(error) if matches!(error.code, 86 | 29 | 3) => print_error(
            out,
            "Encountered some partition-level error, see the follow-up details.",
        )?,
        Some(error) => print_error(out, &format!("Encountered some unknown error: {error}"))?,
    }
    write!(out, "{}", deletions(&results))?;
    Ok(())
}

type Refusals = BTreeMap<TopicPartition, KafkaError>;

/// The error for the whole request, and those of partitions.
async fn request(
    cluster: &Cluster,
    group: &str,
    partitions: &BTreeSet<TopicPartition>,
) -> Result<(Option<KafkaError>, Refusals), KafkaError> {
    let topics = by_topic(partitions).into_iter().map(|(topic, indexes)| {
        let indexes = indexes.into_iter();
        OffsetDeleteRequestTopic::default()
            .with_name(topic_name(topic))
            .with_partitions(
                indexes
                    .map(|index| {
                        OffsetDeleteRequestPartition::default().with_partition_index(index)
                    })
                    .collect(),
            )
    });
    let request = OffsetDeleteRequest::default()
        .with_group_id(group_id(group))
        .with_topics(topics.collect());
    let response = cluster
        .call_coordinator(
            "deleteConsumerGroupOffsets",
            group,
            &request,
            |response: &kafka_protocol::messages::OffsetDeleteResponse| response.error_code,
        )
        .await?;
    let top = KafkaError::check(response.error_code, None).err();
    let topics = response.topics.into_iter();
    let refusals = topics.flat_map(|topic| {
        let name = topic.name.0.to_string();
        topic.partitions.into_iter().filter_map(move |partition| {
            let error = KafkaError::check(partition.error_code, None).err()?;
            Some((
                TopicPartition::new(name.as_str(), partition.partition_index),
                error,
            ))
        })
    });
    Ok((top, refusals.collect()))
}

fn deletions(results: &BTreeMap<(String, i32), Option<KafkaError>>) -> String {
    let topics = results.keys().map(|(topic, _)| topic.chars().count());
    let width = topics.fold(15, usize::max);
    let mut text = format!("\n{:<width$} {:<10} {:<15}", "TOPIC", "PARTITION", "STATUS");
    for ((topic, partition), error) in results {
        let partition = match partition {
            0.. => partition.to_string(),
            _ => MISSING.to_owned(),
        };
        let status = match error {
            Some(error) => format!("Error: {}", error.in_full()),
            None => "Successful".to_owned(),
        };
        text.push_str(&format!("\n{topic:<width$} {partition:<10} {status:<15}"));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::super::groups::Member;
    use super::*;
    use crate::tools::client::NodeInfo;

    #[test]
    fn members_come_first_and_the_busiest_of_them() {
        let member = |id: &str, assignment: &[(&str, i32)]| Member {
            id: id.to_owned(),
            instance_id: None,
            client_id: "c".to_owned(),
            host: "/h".to_owned(),
            assignment: assignment
                .iter()
                .map(|(topic, index)| TopicPartition::new(*topic, *index))
                .collect(),
            target_assignment: None,
            epoch: None,
            is_upgraded: None,
        };
        let group = Description {
            id: "g".to_owned(),
            state: "Stable".to_owned(),
            assignor: "range".to_owned(),
            coordinator: NodeInfo {
                id: 1,
                host: "h".to_owned(),
                port: 1,
                rack: None,
            },
            group_epoch: None,
            assignment_epoch: None,
            members: vec![
                member("idle", &[]),
                member("one", &[("t", 2)]),
                member("two", &[("t", 1), ("t", 0)]),
            ],
        };
        let committed = |offset| Committed {
            offset,
            leader_epoch: None,
        };
        let committed = BTreeMap::from([
            (TopicPartition::new("t", 0), committed(4)),
            (TopicPartition::new("u", 0), committed(1)),
        ]);
        let ends = BTreeMap::from([(TopicPartition::new("t", 0), 10)]);
        let rows = arrange(&group, &committed, &ends);
        let found: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.consumer_id.as_str(),
                    row.partition.to_string(),
                    row.lag(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("two", "t-0".to_owned(), Some(6)),
                ("two", "t-1".to_owned(), None),
                ("one", "t-2".to_owned(), None),
                ("-", "u-0".to_owned(), None),
            ]
        );
    }

    #[test]
    fn deletions_are_a_table() {
        let results = BTreeMap::from([
            (("t".to_owned(), 0), None),
            (("u".to_owned(), -1), Some(KafkaError::new(3, None))),
        ]);
        let text = deletions(&results);
        assert!(
            text.contains("\nt               0          Successful     \n"),
            "{text}"
        );
        assert!(
            text.contains("\nu               -          Error: org.apache.kafka"),
            "{text}"
        );
    }
}
