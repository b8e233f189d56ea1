//! `--reset-offsets`: which partitions, to which offsets.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use super::super::client::{
    Cluster, Committed, Committer, EARLIEST, KafkaError, LATEST, TopicPartition, by_topic,
};
use super::super::lists::joined;
use super::arguments::ConsumerGroupsArguments;
use super::{Failure, ToolError, csv, groups, print_error, tables, time, wanted};
use crate::broker::now_ms;

/// GROUP_ID_NOT_FOUND
const NOT_FOUND: i16 = 69;

pub(super) type Offsets = BTreeMap<TopicPartition, i64>;

/// Works out the new offsets of each group, sets them with `--execute`, and prints them.
pub(super) async fn run(
    arguments: &ConsumerGroupsArguments,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut plans = BTreeMap::new();
    for group in wanted(arguments, cluster).await? {
        let state = match groups::describe(cluster, &group).await {
            Ok(description) => description.state,
            Err(error) if error.code == NOT_FOUND => "Dead".to_owned(),
            Err(error) => return Err(error.into()),
        };
        if !matches!(state.as_str(), "Empty" | "Dead") {
            let text = format!(
                "Assignments can only be reset if the group '{group}' is inactive, but the current state is {state}."
            );
            print_error(out, &text)?;
            plans.insert(group, Offsets::new());
            continue;
        }
        let offsets = plan(arguments, cluster, &group, out).await?;
        if arguments.execute {
            let committer = Committer {
                group: group.clone(),
                member_id: String::new(),
                generation: -1,
            };
            // A commit of nothing is no request.
            if !offsets.is_empty() {
                cluster.commit(&committer, &offsets).await?;
            }
        }
        plans.insert(group, offsets);
    }
    if arguments.export {
        writeln!(out, "{}", csv::write(&plans, arguments.group.len() == 1))?;
    } else {
        write!(out, "{}", tables::new_offsets(&plans))?;
    }
    Ok(())
}

/// `topic:0,1,2`.
pub(super) fn parse_partitions(argument: &str) -> Result<Vec<TopicPartition>, ToolError> {
    let wrong = || {
        ToolError::failed(format!(
            "Invalid topic arg '{argument}', expected topic name and partitions"
        ))
    };
    let mut parts = argument.split(':');
    let (Some(topic), Some(partitions), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(wrong());
    };
    if partitions.is_empty() {
        return Err(wrong());
    }
    partitions
        .split(',')
        .map(|partition| {
            let index = partition.parse().map_err(|_| {
                ToolError::failed(format!(
                    "Invalid partition '{partition}' specified in topic arg '{argument}''"
                ))
            })?;
            Ok(TopicPartition::new(topic, index))
        })
        .collect()
}

async fn scope(
    arguments: &ConsumerGroupsArguments,
    cluster: &Cluster,
    group: &str,
) -> Result<BTreeSet<TopicPartition>, Failure> {
    if arguments.all_topics {
        return Ok(cluster.committed(group).await?.into_keys().collect());
    }
    if arguments.topic.is_empty() {
        return match arguments.from_file {
            Some(_) => Ok(BTreeSet::new()),
            None => Err(Failure::Tool(ToolError::failed(
                "One of the reset scopes should be defined: --all-topics, --topic.",
            ))),
        };
    }
    let mut partitions = BTreeSet::new();
    for topic in &arguments.topic {
        if topic.contains(':') {
            partitions.extend(parse_partitions(topic)?);
        } else {
            partitions.extend(cluster.partitions_of(&[topic]).await.map_err(bare)?);
        }
    }
    Ok(partitions)
}

/// Only the text, where Kafka's tool prints no class.
fn bare(error: KafkaError) -> Failure {
    Failure::Kafka(error.message)
}

/// Each partition must be there and have a leader.
async fn check_leaders(
    cluster: &Cluster,
    partitions: &BTreeSet<TopicPartition>,
) -> Result<(), Failure> {
    if partitions.is_empty() {
        return Ok(());
    }
    let topics: Vec<_> = by_topic(partitions).into_keys().collect();
    let existing = cluster.partitions_of(&topics).await.map_err(bare)?;
    let missing: Vec<_> = partitions.difference(&existing).collect();
    if !missing.is_empty() {
        let text = format!("The partitions \"{}\" do not exist", joined(missing));
        return Err(Failure::Kafka(text));
    }
    let without_leader = cluster.without_leader(partitions).await?;
    match without_leader.is_empty() {
        true => Ok(()),
        false => Err(Failure::Kafka(format!(
            "The partitions \"{}\" have no leader",
            joined(&without_leader)
        ))),
    }
}

async fn plan(
    arguments: &ConsumerGroupsArguments,
    cluster: &Cluster,
    group: &str,
    out: &mut dyn Write,
) -> Result<Offsets, Failure> {
    let partitions = scope(arguments, cluster, group).await?;
    check_leaders(cluster, &partitions).await?;
    if let Some(offset) = arguments.to_offset {
        let wanted = partitions.into_iter().map(|partition| (partition, offset));
        return within_range(cluster, wanted.collect()).await;
    }
    if arguments.to_earliest {
        return Ok(cluster.all_offsets(partitions, EARLIEST).await?);
    }
    if arguments.to_latest {
        return Ok(cluster.all_offsets(partitions, LATEST).await?);
    }
    if let Some(by) = arguments.shift_by {
        let committed = cluster.committed(group).await?;
        return within_range(cluster, shift(&partitions, &committed, by)?).await;
    }
    if let Some(text) = &arguments.to_datetime {
        let timestamp = time::parse_datetime(text).map_err(Failure::Kafka)?;
        return at_time(cluster, partitions, timestamp, out).await;
    }
    if let Some(text) = &arguments.by_duration {
        let duration = time::parse_duration(text).map_err(Failure::Kafka)?;
        return at_time(cluster, partitions, now_ms().saturating_sub(duration), out).await;
    }
    if let Some(file) = &arguments.from_file {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::Kafka(format!("{}: {error}", file.display())))?;
        let single = match &arguments.group[..] {
            [group] => Some(group.as_str()),
            _ => None,
        };
        let mut plans = csv::read(&text, single).map_err(Failure::Kafka)?;
        return match plans.remove(group) {
            Some(offsets) => within_range(cluster, offsets).await,
            None => {
                print_error(out, &format!("No reset plan for group {group} found."))?;
                Ok(Offsets::new())
            }
        };
    }
    if arguments.to_current {
        let committed = cluster.committed(group).await?;
        let (with, without): (Vec<_>, Vec<_>) = partitions
            .into_iter()
            .partition(|partition| committed.contains_key(partition));
        let mut offsets = cluster.all_offsets(without, LATEST).await?;
        for partition in with {
            let offset = committed.get(&partition).map_or(0, |found| found.offset);
            offsets.insert(partition, offset);
        }
        return Ok(offsets);
    }
    Err(Failure::Tool(ToolError::failed(
        "Option '[reset-offsets]' requires one of the following scenarios: [[shift-by], [to-offset], [to-earliest], \
         [to-current], [to-latest], [by-duration], [to-datetime], [from-file]]",
    )))
}

fn shift(
    partitions: &BTreeSet<TopicPartition>,
    committed: &BTreeMap<TopicPartition, Committed>,
    by: i64,
) -> Result<Offsets, ToolError> {
    partitions
        .iter()
        .map(|partition| match committed.get(partition) {
            Some(found) => Ok((partition.clone(), found.offset.saturating_add(by))),
            None => Err(ToolError::failed(format!(
                "Cannot shift offset for partition {partition} since there is no current committed offset"
            ))),
        })
        .collect()
}

/// The nearest offsets that the logs have.
async fn within_range(cluster: &Cluster, wanted: Offsets) -> Result<Offsets, Failure> {
    let starts = cluster
        .all_offsets(wanted.keys().cloned(), EARLIEST)
        .await?;
    let ends = cluster.all_offsets(wanted.keys().cloned(), LATEST).await?;
    let clamped = wanted.into_iter().map(|(partition, offset)| {
        let start = starts.get(&partition).copied().unwrap_or(offset);
        let end = ends.get(&partition).copied().unwrap_or(offset);
        let (bound, which) = match offset {
            offset if offset > end => (end, "higher than latest"),
            offset if offset < start => (start, "lower than earliest"),
            offset => return (partition, offset),
        };
        ToolError::warn(&format!(
            "WARN New offset ({offset}) is {which} offset for topic partition {partition}. Value will be set to {bound}."
        ));
        (partition, bound)
    });
    Ok(clamped.collect())
}

async fn at_time(
    cluster: &Cluster,
    partitions: BTreeSet<TopicPartition>,
    timestamp: i64,
    out: &mut dyn Write,
) -> Result<Offsets, Failure> {
    let mut offsets = cluster.all_offsets(partitions, timestamp).await?;
    let mut behind = Vec::new();
    for (partition, offset) in &offsets {
        if *offset < 0 {
            writeln!(
                out,
                "\nWarn: Partition {} from topic {} is empty. Falling back to latest known offset.",
                partition.partition, partition.topic
            )?;
            behind.push(partition.clone());
        }
    }
    offsets.extend(cluster.all_offsets(behind, LATEST).await?);
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_follow_the_topic() {
        let parsed = parse_partitions("t:0,2").expect("parses");
        assert_eq!(parsed, [0, 2].map(|index| TopicPartition::new("t", index)));
        for wrong in ["t:x", "t:", "a:b:c", "t:0,"] {
            assert!(parse_partitions(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_is_committed_can_be_shifted() {
        let partition = TopicPartition::new("t", 0);
        let committed = Committed {
            offset: 4,
            leader_epoch: None,
        };
        let committed = BTreeMap::from([(partition.clone(), committed)]);
        let shifted = shift(&BTreeSet::from([partition.clone()]), &committed, -3);
        assert_eq!(shifted.expect("shifted"), Offsets::from([(partition, 1)]));
        let other = BTreeSet::from([TopicPartition::new("t", 1)]);
        assert!(shift(&other, &committed, 1).is_err());
    }
}
