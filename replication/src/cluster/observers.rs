//! Observers: replicas that follow and serve reads, but are never in the ISR and never elected. A topic's
//! `highwater.observer.replicas` names the brokers whose replicas they are; where a partition has no replica on such a
//! broker, it has one observer less. Highwater's own.

use highwater_storage::types::BrokerId;

use super::error::ClusterError;
use super::image::{ClusterImage, PartitionImage, TopicImage};
use super::partition_change::PartitionChangeBuilder;
use super::records::MetadataRecord;
use super::topic_rules::{OBSERVER_REPLICAS, ReplicationDefaults, TopicRules};

/// Refuses observers that are not registered or named twice.
pub(super) fn check_observers(
    image: &ClusterImage,
    observers: &[BrokerId],
) -> Result<(), ClusterError> {
    for (index, id) in observers.iter().enumerate() {
        if image.broker(*id).is_none() {
            return invalid(format!("broker {id} is not registered"));
        }
        if observers[..index].contains(id) {
            return invalid(format!("broker {id} is named more than once"));
        }
    }
    Ok(())
}

/// Refuses an assignment whose preferred leader could never lead.
pub(super) fn check_first_replica(
    replicas: &[BrokerId],
    observers: &[BrokerId],
) -> Result<(), ClusterError> {
    match replicas.first() {
        Some(first) if observers.contains(first) => {
            Err(ClusterError::InvalidReplicaAssignment(format!(
                "The first replica, on broker {first}, would lead, but it is an observer by {OBSERVER_REPLICAS}."
            )))
        }
        _ => Ok(()),
    }
}

/// The changes of a topic's partitions when its observers become these: they leave ISR and leadership. Refused where
/// that would leave nobody with all records.
pub(super) fn become_observers(
    image: &ClusterImage,
    topic: &TopicImage,
    observers: Vec<BrokerId>,
) -> Result<Vec<MetadataRecord>, ClusterError> {
    check_observers(image, &observers)?;
    let rules = TopicRules {
        observers,
        ..TopicRules::of(image, topic, &ReplicationDefaults::default())
    };
    let mut records = Vec::new();
    for (index, partition) in topic.partitions.iter().enumerate() {
        let counts = |id: &BrokerId| rules.is_observer(*id);
        let PartitionImage {
            isr,
            eligible_leader_replicas: elr,
            ..
        } = &**partition;
        if !isr.iter().chain(elr).any(counts) {
            continue;
        }
        let stay: Vec<BrokerId> = isr.iter().filter(|id| !counts(id)).copied().collect();
        if stay.is_empty() {
            return invalid(format!(
                "partition {}-{index} would have no in-sync replica left",
                topic.name
            ));
        }
        let change = PartitionChangeBuilder::new(image, &rules, index as i32, partition);
        records.extend(change.target_isr(stay).build().map(MetadataRecord::from));
    }
    Ok(records)
}

fn invalid<T>(reason: String) -> Result<T, ClusterError> {
    Err(ClusterError::InvalidConfig(format!(
        "Invalid value for configuration {OBSERVER_REPLICAS}: {reason}"
    )))
}
