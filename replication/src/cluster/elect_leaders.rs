//! ElectLeaders: elections that an administrator asks for, and those that the controller makes by itself.

use std::collections::BTreeSet;

use super::error::{ClusterError, EntryResult, check_record_count};
use super::image::{ClusterImage, PartitionImage, TopicImage};
use super::partition_change::{Election, PartitionChangeBuilder};
use super::records::MetadataRecord;
use super::topic_rules::{ReplicationDefaults, TopicRules};

/// Which kind of election is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElectionType {
    /// Of the preferred leader.
    Preferred,
    /// Of any live replica, where there is no leader.
    Unclean,
}

impl ElectionType {
    /// The kind with Kafka's id.
    pub fn from_id(id: i8) -> Result<Self, ClusterError> {
        match id {
            0 => Ok(Self::Preferred),
            1 => Ok(Self::Unclean),
            other => Err(ClusterError::InvalidRequest(format!(
                "Unknown election type {other}"
            ))),
        }
    }
}

/// What became of one partition: its number and the result.
pub type PartitionElection = (i32, EntryResult);

/// The results of one topic.
pub type TopicElections = (String, Vec<PartitionElection>);

/// The records of the elections, and the results. `partitions` are topics with their partitions; `None` is all there
/// are, and then partitions that need no election are left out. An error refuses the whole request.
pub fn elect_leaders(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    election_type: ElectionType,
    partitions: Option<&[(String, Vec<i32>)]>,
) -> Result<(Vec<MetadataRecord>, Vec<TopicElections>), ClusterError> {
    let mut records = Vec::new();
    let mut results: Vec<TopicElections> = Vec::new();
    match partitions {
        None => {
            for topic in image.topics() {
                let rules = TopicRules::of(image, topic, defaults);
                let mut of_topic = Vec::new();
                for (index, partition) in topic.partitions.iter().enumerate() {
                    let elected = elect(image, &rules, index as i32, partition, election_type);
                    let elected = elected.map(|record| records.push(record));
                    if elected != Err(ClusterError::ElectionNotNeeded) {
                        of_topic.push((index as i32, elected));
                    }
                }
                results.push((topic.name.to_string(), of_topic));
            }
        }
        Some(topics) => {
            let mut elected_before: BTreeSet<(&str, i32)> = BTreeSet::new();
            for (name, ids) in topics {
                let topic = image.topic(name);
                let rules = topic.map(|topic| TopicRules::of(image, topic, defaults));
                let mut of_topic = Vec::with_capacity(ids.len());
                for id in ids {
                    let elected = match elected_before.contains(&(name.as_str(), *id)) {
                        true => Err(ClusterError::ElectionNotNeeded),
                        false => {
                            find(topic.map(|topic| &**topic), name, *id).and_then(|partition| {
                                let rules =
                                    rules.as_ref().ok_or_else(ClusterError::unknown_topic)?;
                                elect(image, rules, *id, partition, election_type)
                            })
                        }
                    };
                    let elected = elected.map(|record| {
                        records.push(record);
                        elected_before.insert((name, *id));
                    });
                    of_topic.push((*id, elected));
                }
                results.push((name.clone(), of_topic));
            }
        }
    }
    check_record_count(records.len())?;
    Ok((records, results))
}

fn find<'a>(
    topic: Option<&'a TopicImage>,
    name: &str,
    id: i32,
) -> Result<&'a PartitionImage, ClusterError> {
    let unknown = ClusterError::UnknownTopicOrPartition;
    let topic = topic.ok_or_else(|| unknown(format!("No such topic as {name}")))?;
    let partition = topic.partition(id);
    Ok(partition.ok_or_else(|| unknown(format!("No such partition as {name}-{id}")))?)
}

fn elect(
    image: &ClusterImage,
    rules: &TopicRules,
    partition_id: i32,
    partition: &PartitionImage,
    election_type: ElectionType,
) -> Result<MetadataRecord, ClusterError> {
    let (is_needed, election, unavailable) = match election_type {
        ElectionType::Preferred => (
            !rules.has_preferred_leader(partition),
            Election::Preferred,
            ClusterError::PreferredLeaderNotAvailable,
        ),
        ElectionType::Unclean => (
            partition.leader.is_none(),
            Election::Unclean,
            ClusterError::EligibleLeadersNotAvailable,
        ),
    };
    if !is_needed {
        return Err(ClusterError::ElectionNotNeeded);
    }
    PartitionChangeBuilder::new(image, rules, partition_id, partition)
        .election(election)
        .build()
        .map(MetadataRecord::from)
        .ok_or(unavailable)
}

/// Gives leaderships back to preferred leaders that can have them, at most `max` in one pass. The flag says that there
/// may be more: then the next pass is due at once.
pub fn balance_leaders(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    max: usize,
) -> (Vec<MetadataRecord>, bool) {
    let imbalanced =
        |rules: &TopicRules, partition: &PartitionImage| !rules.has_preferred_leader(partition);
    elections(image, defaults, max, ElectionType::Preferred, imbalanced)
}

/// Elects any live replica where there is no leader and the topic allows it, at most `max` in one pass. The flag says
/// that there may be more: then the next pass is due at once.
pub fn elect_unclean_leaders(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    max: usize,
) -> (Vec<MetadataRecord>, bool) {
    let electable = |rules: &TopicRules, partition: &PartitionImage| {
        partition.leader.is_none() && rules.unclean_leader_election
    };
    elections(image, defaults, max, ElectionType::Unclean, electable)
}

fn elections(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    max: usize,
    election_type: ElectionType,
    is_due: impl Fn(&TopicRules, &PartitionImage) -> bool,
) -> (Vec<MetadataRecord>, bool) {
    let mut records = Vec::new();
    for topic in image.topics() {
        let rules = TopicRules::of(image, topic, defaults);
        for (index, partition) in topic.partitions.iter().enumerate() {
            if !is_due(&rules, partition) {
                continue;
            }
            if records.len() >= max {
                return (records, true);
            }
            records.extend(elect(image, &rules, index as i32, partition, election_type).ok());
        }
    }
    (records, false)
}
