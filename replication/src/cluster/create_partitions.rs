//! CreatePartitions: more partitions for topics that exist.

use std::collections::HashMap;

use super::create_topics::{MAX_PARTITIONS_PER_BATCH, all_fenced, manual_partition};
use super::error::{ClusterError, check_record_count};
use super::image::{ClusterImage, TopicImage};
use super::placement::{PlacementRequest, new_partition, place, validate_manual_assignment};
use super::records::MetadataRecord;
use super::topic_rules::{ReplicationDefaults, TopicRules};

/// One topic that shall have more partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MorePartitions {
    /// Name of the topic.
    pub name: String,
    /// How many partitions it shall have in all.
    pub count: i32,
    /// The brokers of each additional partition; `None` to have them placed.
    pub assignments: Option<Vec<Vec<i32>>>,
}

/// One name of the request and what became of it.
pub type CreatePartitionsResult = (String, Result<(), ClusterError>);

/// The records that add what can be added, and the result of each name: each name that was there twice, then the
/// others in the order of the request. An error refuses the whole request.
pub fn create_partitions(
    image: &ClusterImage,
    topics: &[MorePartitions],
) -> Result<(Vec<MetadataRecord>, Vec<CreatePartitionsResult>), ClusterError> {
    let mut times: HashMap<&str, usize> = HashMap::with_capacity(topics.len());
    for topic in topics {
        *times.entry(&topic.name).or_default() += 1;
    }
    let mut records = Vec::new();
    let mut results: Vec<CreatePartitionsResult> = Vec::with_capacity(topics.len());
    let (once, repeated): (Vec<&MorePartitions>, Vec<&MorePartitions>) = topics
        .iter()
        .partition(|topic| times[topic.name.as_str()] == 1);
    for topic in repeated {
        // Answered once: the entry is taken.
        if times.remove(topic.name.as_str()).is_some() {
            let error = ClusterError::InvalidRequest("Duplicate topic name.".to_owned());
            results.push((topic.name.clone(), Err(error)));
        }
    }
    for request in once {
        let result = match image.topic(&request.name) {
            None => Err(ClusterError::unknown_topic()),
            Some(topic) => add_partitions(image, topic, request),
        };
        let result = result.map(|added| records.extend(added));
        check_record_count(records.len())?;
        results.push((request.name.clone(), result));
    }
    Ok((records, results))
}

fn add_partitions(
    image: &ClusterImage,
    topic: &TopicImage,
    request: &MorePartitions,
) -> Result<Vec<MetadataRecord>, ClusterError> {
    let current = topic.partitions.len() as i32;
    if request.count == current {
        return Err(ClusterError::InvalidPartitions(format!(
            "Topic already has {current} partition(s)."
        )));
    }
    if request.count < current {
        return Err(ClusterError::InvalidPartitions(format!(
            "The topic {} currently has {current} partition(s); {} would not be an increase.",
            request.name, request.count
        )));
    }
    let additional = request.count - current;
    if i64::from(additional) > MAX_PARTITIONS_PER_BATCH {
        return Err(ClusterError::PolicyViolation(
            "Excessively large number of additional partitions per request.".to_owned(),
        ));
    }
    if let Some(assignments) = &request.assignments
        && assignments.len() != additional as usize
    {
        return Err(ClusterError::InvalidReplicaAssignment(format!(
            "Attempted to add {additional} additional partition(s), but only {} assignment(s) were specified.",
            assignments.len()
        )));
    }
    let Some(first) = topic.partitions.first() else {
        return Err(ClusterError::UnknownServerError(format!(
            "Invalid state: topic {} appears to have no partitions.",
            topic.name
        )));
    };
    let replication_factor = first.replicas.len();
    let observers = TopicRules::of(image, topic, &ReplicationDefaults::default()).observers;
    let partitions = match &request.assignments {
        Some(assignments) => {
            let mut partitions = Vec::with_capacity(assignments.len());
            for (index, brokers) in assignments.iter().enumerate() {
                validate_manual_assignment(image, brokers, Some(replication_factor))?;
                let partition = current + index as i32;
                partitions.push(manual_partition(image, partition, brokers, &observers)?);
            }
            partitions
        }
        None => {
            let replication_factor = replication_factor as i16;
            let first_leader = first.replicas.first().map_or(0, |broker| broker.0 as u64);
            let request = PlacementRequest {
                partition_count: additional,
                replication_factor,
                observers: &observers,
                seed: first_leader.wrapping_add(current as u64),
            };
            let placed = place(image, request)?;
            let placed = placed.into_iter().map(|replicas| {
                let partition = new_partition(image, replicas, &observers);
                partition.ok_or_else(|| all_fenced(replication_factor))
            });
            placed.collect::<Result<Vec<_>, _>>()?
        }
    };
    let numbered = partitions.iter().enumerate();
    Ok(numbered
        .map(|(index, partition)| partition.to_record(topic.id, current + index as i32).into())
        .collect())
}
