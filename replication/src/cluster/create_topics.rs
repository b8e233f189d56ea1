//! CreateTopics: which topics can be made, and the records that make them.

use std::collections::{BTreeMap, HashMap, HashSet};

use highwater_storage::types::{BrokerId, TopicId};

use super::configs::{ConfigOperation, ConfigRules, alter_new_resource};
use super::error::{ClusterError, check_record_count};
use super::image::{ClusterImage, ConfigResource, PartitionImage, has_collision_chars};
use super::observers::{check_first_replica, check_observers};
use super::placement::{PlacementRequest, new_partition, place, validate_manual_assignment};
use super::records::{MetadataRecord, TopicRecord};
use super::topic_name;
use super::topic_rules::{OBSERVER_REPLICAS, parse_observers};

/// How many partitions one request may ask for.
pub const MAX_PARTITIONS_PER_BATCH: i64 = 10_000;

/// One topic that a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTopic {
    /// Name of the topic.
    pub name: String,
    /// Number of partitions; -1 for the default or with manual assignments.
    pub num_partitions: i32,
    /// Number of replicas of each partition; -1 for the default or with manual assignments.
    pub replication_factor: i16,
    /// Manual assignments: partition and its brokers.
    pub assignments: Vec<(i32, Vec<i32>)>,
    /// Configurations; a null value is refused.
    pub configs: Vec<(String, Option<String>)>,
}

/// What a topic gets that does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicDefaults {
    /// `num.partitions`.
    pub num_partitions: i32,
    /// `default.replication.factor`.
    pub replication_factor: i16,
}

/// A topic that is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Id of the new topic.
    pub topic_id: TopicId,
    /// How many partitions it has.
    pub num_partitions: i32,
    /// How many replicas each has.
    pub replication_factor: i16,
}

/// One name of the request and what became of it.
pub type CreateTopicResult = (String, Result<CreatedTopic, ClusterError>);

/// The records that make what can be made of `topics`, and the result of each name: those of the request in its
/// order, then each name that was there twice. An error refuses the whole request.
///
/// `new_id` draws the id of each topic; two runs with the same ids give the same records.
pub fn create_topics(
    image: &ClusterImage,
    topics: &[NewTopic],
    defaults: TopicDefaults,
    rules: &dyn ConfigRules,
    new_id: &mut dyn FnMut() -> TopicId,
) -> Result<(Vec<MetadataRecord>, Vec<CreateTopicResult>), ClusterError> {
    let mut count_of_name: HashMap<&str, usize> = HashMap::new();
    for topic in topics {
        *count_of_name.entry(&topic.name).or_default() += 1;
    }
    let is_metadata_topic = |name: &str| name == topic_name::CLUSTER_METADATA_TOPIC;
    let candidates = || {
        topics.iter().filter(|topic| {
            count_of_name[topic.name.as_str()] == 1 && !is_metadata_topic(&topic.name)
        })
    };
    check_partition_count(candidates(), defaults)?;

    let mut records = Vec::new();
    let mut results: Vec<CreateTopicResult> = Vec::with_capacity(topics.len());
    for topic in candidates() {
        let result = create_topic(image, topic, defaults, rules, new_id, &mut records);
        results.push((topic.name.clone(), result));
        check_record_count(records.len())?;
    }
    let mut answered: HashSet<&str> = HashSet::new();
    for topic in topics {
        let text = match count_of_name[topic.name.as_str()] {
            1 if is_metadata_topic(&topic.name) => {
                format!("Creation of internal topic {} is prohibited.", topic.name)
            }
            1 => continue,
            _ => "Duplicate topic name.".to_owned(),
        };
        if answered.insert(&topic.name) {
            results.push((topic.name.clone(), Err(ClusterError::InvalidRequest(text))));
        }
    }
    Ok((records, results))
}

fn check_partition_count<'a>(
    topics: impl Iterator<Item = &'a NewTopic>,
    defaults: TopicDefaults,
) -> Result<(), ClusterError> {
    let count = |topic: &NewTopic| match (topic.assignments.len(), topic.num_partitions) {
        (0, -1) => i64::from(defaults.num_partitions),
        (0, count) => i64::from(count.max(0)),
        (assignments, _) => assignments as i64,
    };
    match topics.map(count).sum::<i64>() <= MAX_PARTITIONS_PER_BATCH {
        true => Ok(()),
        false => Err(ClusterError::PolicyViolation(
            "Excessively large number of partitions per request.".to_owned(),
        )),
    }
}

fn create_topic(
    image: &ClusterImage,
    topic: &NewTopic,
    defaults: TopicDefaults,
    rules: &dyn ConfigRules,
    new_id: &mut dyn FnMut() -> TopicId,
    records: &mut Vec<MetadataRecord>,
) -> Result<CreatedTopic, ClusterError> {
    validate_new_name(image, &topic.name)?;
    let config_records = config_records(image, topic, rules)?;
    let observers = observers_of(image, topic)?;
    let partitions = match topic.assignments.is_empty() {
        true => place_partitions(image, topic, defaults, &observers)?,
        false => assign_partitions(image, topic, &observers)?,
    };
    let topic_id = new_id();
    records.push(
        TopicRecord {
            name: topic.name.clone(),
            topic_id: topic_id.0,
        }
        .into(),
    );
    records.extend(config_records);
    let created = CreatedTopic {
        topic_id,
        num_partitions: partitions.len() as i32,
        replication_factor: partitions
            .first()
            .map_or(0, |partition| partition.replicas.len() as i16),
    };
    let partition_records = partitions.iter().enumerate();
    records.extend(
        partition_records
            .map(|(index, partition)| partition.to_record(topic_id, index as i32).into()),
    );
    Ok(created)
}

fn validate_new_name(image: &ClusterImage, name: &str) -> Result<(), ClusterError> {
    if image.topic(name).is_some() {
        return Err(ClusterError::TopicAlreadyExists(name.to_owned()));
    }
    topic_name::validate(name)?;
    match image
        .colliding_topic(name)
        .filter(|_| has_collision_chars(name))
    {
        Some(other) => Err(ClusterError::InvalidTopic(format!(
            "Topic '{name}' collides with existing topic: {other}"
        ))),
        None => Ok(()),
    }
}

fn config_records(
    image: &ClusterImage,
    topic: &NewTopic,
    rules: &dyn ConfigRules,
) -> Result<Vec<MetadataRecord>, ClusterError> {
    let without_value: Vec<&str> = topic
        .configs
        .iter()
        .filter(|(_, value)| value.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    if !without_value.is_empty() {
        return Err(ClusterError::InvalidConfig(format!(
            "Null value not supported for topic configs: {}",
            without_value.join(",")
        )));
    }
    // A key that is there twice has the later value.
    let operations: BTreeMap<&str, ConfigOperation> = topic
        .configs
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), ConfigOperation::Set(value.clone()?))))
        .collect();
    let operations: Vec<(String, ConfigOperation)> = operations
        .into_iter()
        .map(|(name, operation)| (name.to_owned(), operation))
        .collect();
    match operations.is_empty() {
        true => Ok(Vec::new()),
        false => alter_new_resource(
            image,
            &ConfigResource::topic(topic.name.as_str()),
            &operations,
            rules,
        ),
    }
}

/// The brokers whose replicas of the topic only observe.
fn observers_of(image: &ClusterImage, topic: &NewTopic) -> Result<Vec<BrokerId>, ClusterError> {
    let key_is = |(key, _): &&(String, Option<String>)| key == OBSERVER_REPLICAS;
    // A key that is there twice has the later value.
    let value = topic.configs.iter().rev().find(key_is);
    let value = value.and_then(|(_, value)| value.as_deref());
    let observers = parse_observers(value.unwrap_or_default());
    check_observers(image, &observers)?;
    Ok(observers)
}

fn assign_partitions(
    image: &ClusterImage,
    topic: &NewTopic,
    observers: &[BrokerId],
) -> Result<Vec<PartitionImage>, ClusterError> {
    if topic.replication_factor != -1 {
        return Err(ClusterError::InvalidRequest(
            "A manual partition assignment was specified, but replication factor was not set to -1.".to_owned(),
        ));
    }
    if topic.num_partitions != -1 {
        return Err(ClusterError::InvalidRequest(
            "A manual partition assignment was specified, but numPartitions was not set to -1."
                .to_owned(),
        ));
    }
    let mut partitions: BTreeMap<i32, PartitionImage> = BTreeMap::new();
    let mut replication_factor = None;
    for (partition, brokers) in &topic.assignments {
        if partitions.contains_key(partition) {
            return Err(ClusterError::InvalidReplicaAssignment(format!(
                "Found multiple manual partition assignments for partition {partition}"
            )));
        }
        validate_manual_assignment(image, brokers, replication_factor)?;
        replication_factor = Some(brokers.len());
        let made = manual_partition(image, *partition, brokers, observers)?;
        partitions.insert(*partition, made);
    }
    match partitions.keys().copied().eq(0..partitions.len() as i32) {
        true => Ok(partitions.into_values().collect()),
        false => Err(ClusterError::InvalidReplicaAssignment(
            "partitions should be a consecutive 0-based integer sequence".to_owned(),
        )),
    }
}

/// A new partition on the brokers that a client chose.
pub(super) fn manual_partition(
    image: &ClusterImage,
    partition: i32,
    brokers: &[i32],
    observers: &[BrokerId],
) -> Result<PartitionImage, ClusterError> {
    let replicas: Vec<BrokerId> = brokers.iter().copied().map(BrokerId).collect();
    check_first_replica(&replicas, observers)?;
    new_partition(image, replicas, observers).ok_or_else(|| {
        ClusterError::InvalidReplicaAssignment(format!(
            "All brokers specified in the manual partition assignment for partition {partition} are fenced or in \
             controlled shutdown."
        ))
    })
}

fn place_partitions(
    image: &ClusterImage,
    topic: &NewTopic,
    defaults: TopicDefaults,
    observers: &[BrokerId],
) -> Result<Vec<PartitionImage>, ClusterError> {
    if topic.replication_factor < -1 || topic.replication_factor == 0 {
        return Err(ClusterError::InvalidReplicationFactor(
            "Replication factor must be larger than 0, or -1 to use the default value.".to_owned(),
        ));
    }
    if topic.num_partitions < -1 || topic.num_partitions == 0 {
        return Err(ClusterError::InvalidPartitions(
            "Number of partitions was set to an invalid non-positive value.".to_owned(),
        ));
    }
    let or_default = |value: i32, default: i32| if value == -1 { default } else { value };
    let num_partitions = or_default(topic.num_partitions, defaults.num_partitions);
    let replication_factor = match topic.replication_factor {
        -1 => defaults.replication_factor,
        chosen => chosen,
    };
    let unable = |error: ClusterError| {
        ClusterError::InvalidReplicationFactor(format!(
            "Unable to replicate the partition {replication_factor} time(s): {error}"
        ))
    };
    let request = PlacementRequest {
        partition_count: num_partitions,
        replication_factor,
        observers,
        seed: image.topic_count() as u64,
    };
    let assignments = place(image, request).map_err(unable)?;
    assignments
        .into_iter()
        .map(|replicas| {
            let partition = new_partition(image, replicas, observers);
            partition.ok_or_else(|| all_fenced(replication_factor))
        })
        .collect()
}

/// The error when no assigned broker may lead.
pub(super) fn all_fenced(replication_factor: i16) -> ClusterError {
    ClusterError::InvalidReplicationFactor(format!(
        "Unable to replicate the partition {replication_factor} time(s): All brokers are currently fenced or in \
         controlled shutdown."
    ))
}
