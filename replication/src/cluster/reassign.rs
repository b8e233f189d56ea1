//! AlterPartitionReassignments and ListPartitionReassignments (KIP-455).
//!
//! The new replicas are added to the assignment; once all that stay are in sync, the others leave it. That last step is
//! taken by whatever change of the ISR makes it possible, in the rules of partition changes (`super::partition_change`).

use std::collections::BTreeSet;

use highwater_storage::types::{BrokerId, TopicId};

use super::error::{ClusterError, EntryResult, check_record_count};
use super::image::{ClusterImage, PartitionImage};
use super::observers::check_first_replica;
use super::partition_change::PartitionChangeBuilder;
use super::placement::validate_manual_assignment;
use super::records::MetadataRecord;
use super::topic_rules::{ReplicationDefaults, TopicRules};

/// What is asked for one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reassignment {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The replicas that it shall have, the preferred leader first; `None` to cancel what is going on.
    pub replicas: Option<Vec<i32>>,
}

/// The records of what can be done, and one result for each entry in its order. An error refuses the whole request.
/// Unless `allow_replication_factor_change`, the number of replicas must stay (KIP-860).
pub fn alter_partition_reassignments(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    reassignments: &[Reassignment],
    allow_replication_factor_change: bool,
) -> Result<(Vec<MetadataRecord>, Vec<EntryResult>), ClusterError> {
    let mut records = Vec::new();
    let mut changed: BTreeSet<(&str, i32)> = BTreeSet::new();
    let results = reassignments
        .iter()
        .map(|reassignment| {
            let key = (reassignment.topic.as_str(), reassignment.partition);
            if !changed.insert(key) {
                return Err(ClusterError::InvalidRequest(format!(
                    "The partition {}-{} is there more than once.",
                    reassignment.topic, reassignment.partition
                )));
            }
            let record = reassign(
                image,
                defaults,
                reassignment,
                allow_replication_factor_change,
            )?;
            records.extend(record);
            Ok(())
        })
        .collect();
    check_record_count(records.len())?;
    Ok((records, results))
}

fn reassign(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    reassignment: &Reassignment,
    allow_replication_factor_change: bool,
) -> Result<Option<MetadataRecord>, ClusterError> {
    let (name, id) = (&reassignment.topic, reassignment.partition);
    let unknown = ClusterError::UnknownTopicOrPartition;
    let Some(topic) = image.topic(name) else {
        return Err(unknown(format!("Unable to find a topic named {name}.")));
    };
    let Some(partition) = topic.partition(id) else {
        return Err(unknown(format!("Unable to find partition {name}:{id}.")));
    };
    let rules = TopicRules::of(image, topic, defaults);
    let builder = PartitionChangeBuilder::new(image, &rules, id, partition);
    let builder = match &reassignment.replicas {
        None => cancel(builder, &rules, name, id, partition)?,
        Some(target) => {
            validate_manual_assignment(image, target, None)?;
            if !allow_replication_factor_change {
                check_replication_factor(partition, target)?;
            }
            let target: Vec<BrokerId> = target.iter().copied().map(BrokerId).collect();
            check_first_replica(&target, &rules.observers)?;
            change(builder, partition, target)
        }
    };
    Ok(builder.build().map(MetadataRecord::from))
}

fn change<'a>(
    builder: PartitionChangeBuilder<'a>,
    partition: &PartitionImage,
    target: Vec<BrokerId>,
) -> PartitionChangeBuilder<'a> {
    let difference = |of: &[BrokerId], without: &[BrokerId]| -> Vec<BrokerId> {
        let ids: BTreeSet<BrokerId> = of.iter().copied().collect();
        ids.into_iter().filter(|id| !without.contains(id)).collect()
    };
    let removing = difference(&partition.replicas, &target);
    let adding = difference(&target, &partition.replicas);
    let mut replicas = target;
    replicas.extend(&removing);
    let mut builder = builder.target_replicas(replicas);
    // What an earlier reassignment added or removes stays noted unless this one says otherwise.
    if !removing.is_empty() {
        builder = builder.target_removing(removing);
    }
    if !adding.is_empty() {
        builder = builder.target_adding(adding);
    }
    builder
}

/// Takes the replicas out again that were being added.
fn cancel<'a>(
    builder: PartitionChangeBuilder<'a>,
    rules: &TopicRules,
    name: &str,
    id: i32,
    partition: &PartitionImage,
) -> Result<PartitionChangeBuilder<'a>, ClusterError> {
    if !partition.is_reassigning() {
        return Err(ClusterError::NoReassignmentInProgress);
    }
    let was_there = |id: &&BrokerId| !partition.adding_replicas.contains(id);
    let without_added =
        |ids: &[BrokerId]| -> Vec<BrokerId> { ids.iter().filter(was_there).copied().collect() };
    let replicas = without_added(&partition.replicas);
    let isr = without_added(&partition.isr);
    let builder = builder
        .election_of_topic()
        .target_replicas(replicas.clone())
        .target_removing(Vec::new())
        .target_adding(Vec::new());
    // Somebody who may be elected has to stay, if there is anybody: it is as if those that were being added had left.
    let (elr, last_known) = (
        &partition.eligible_leader_replicas,
        &partition.last_known_elr,
    );
    let is_clean = match (partition.isr.is_empty(), elr.is_empty()) {
        (true, true) => last_known.is_empty() || !without_added(last_known).is_empty(),
        _ => !isr.is_empty() || !without_added(elr).is_empty(),
    };
    if is_clean {
        return Ok(builder.target_isr(isr));
    }
    // Nobody who stays has all records: that is an unclean election.
    let Some(first) = rules.preferred_leader(&replicas) else {
        return Err(ClusterError::InvalidReplicaAssignment(
            "Invalid replica assignment: addingReplicas contains all replicas.".to_owned(),
        ));
    };
    match rules.unclean_leader_election {
        true => Ok(builder.target_isr(vec![first]).target_recovering(true)),
        false => Err(ClusterError::InvalidReplicaAssignment(format!(
            "Unable to revert partition assignment for {name}:{id} because it would require an unclean leader \
             election."
        ))),
    }
}

fn check_replication_factor(
    partition: &PartitionImage,
    target: &[i32],
) -> Result<(), ClusterError> {
    let stays = |id: &&BrokerId| !partition.removing_replicas.contains(id);
    let current = partition.replicas.iter().filter(stays).count();
    match current == target.len() {
        true => Ok(()),
        false => Err(ClusterError::InvalidReplicationFactor(format!(
            "The replication factor is changed from {current} to {}",
            target.len()
        ))),
    }
}

/// A reassignment that is going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OngoingReassignment {
    /// The partition.
    pub partition: i32,
    /// All replicas, those that come and those that go.
    pub replicas: Vec<BrokerId>,
    /// Those that come.
    pub adding_replicas: Vec<BrokerId>,
    /// Those that go.
    pub removing_replicas: Vec<BrokerId>,
}

/// The reassignments that are going on, by topic: of these partitions, or of all there are. Topics and partitions
/// without one, and unknown ones, are left out.
pub fn list_partition_reassignments(
    image: &ClusterImage,
    partitions: Option<&[(String, Vec<i32>)]>,
) -> Vec<(String, TopicId, Vec<OngoingReassignment>)> {
    let ongoing = |id: i32, partition: &PartitionImage| {
        partition.is_reassigning().then(|| OngoingReassignment {
            partition: id,
            replicas: partition.replicas.clone(),
            adding_replicas: partition.adding_replicas.clone(),
            removing_replicas: partition.removing_replicas.clone(),
        })
    };
    let mut topics: Vec<(String, TopicId, Vec<OngoingReassignment>)> = match partitions {
        None => image
            .topics()
            .map(|topic| {
                let numbered = topic.partitions.iter().enumerate();
                let of_topic = numbered.filter_map(|(id, partition)| ongoing(id as i32, partition));
                (topic.name.to_string(), topic.id, of_topic.collect())
            })
            .collect(),
        Some(asked) => asked
            .iter()
            .filter_map(|(name, ids)| {
                let topic = image.topic(name)?;
                let of_topic = ids
                    .iter()
                    .filter_map(|id| ongoing(*id, topic.partition(*id)?));
                Some((name.clone(), topic.id, of_topic.collect()))
            })
            .collect(),
    };
    topics.retain(|(_, _, of_topic)| !of_topic.is_empty());
    topics
}
