//! What happens to the partitions of a broker that is fenced, unfenced, stopping, leaving or losing a log directory.
//!
//! A broker leaves its ISRs before the record that takes it out of service, and comes back into service before it is
//! elected (KIP-841).

use highwater_storage::types::{BrokerEpoch, BrokerId};
use uuid::Uuid;

use super::brokers::check_broker_epoch;
use super::error::ClusterError;
use super::image::{BrokerRegistration, ClusterImage, PartitionImage};
use super::partition_change::PartitionChangeBuilder;
use super::records::{BrokerRegistrationChangeRecord, MetadataRecord, UnregisterBrokerRecord};
use super::topic_rules::{ReplicationDefaults, TopicRules};

/// What becomes of a broker, as far as its partitions care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transition {
    /// It leaves the ISR and cannot lead.
    Departs(BrokerId),
    /// It can lead again.
    Arrives(BrokerId),
    /// It may have lost records: it leaves the ISR and the eligible leader replicas.
    UncleanShutdown(BrokerId),
}

/// The changes of the partitions that `is_affected` picks, in the order of topic names and partition numbers.
pub(super) fn partition_changes(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    transition: Transition,
    is_affected: impl Fn(&PartitionImage) -> bool,
    records: &mut Vec<MetadataRecord>,
) {
    for topic in image.topics() {
        // Most topics have nothing to do with the broker.
        let mut rules = None;
        for (partition_id, partition) in topic.partitions.iter().enumerate() {
            if !is_affected(partition) {
                continue;
            }
            let rules = rules.get_or_insert_with(|| TopicRules::of(image, topic, defaults));
            let builder = PartitionChangeBuilder::new(image, rules, partition_id as i32, partition)
                .election_of_topic();
            let change = match transition {
                Transition::Departs(broker) => builder.departing(broker),
                Transition::Arrives(broker) => builder.arriving(broker),
                Transition::UncleanShutdown(broker) => builder.unclean_shutdown(broker),
            };
            records.extend(change.build().map(MetadataRecord::from));
        }
    }
}

/// The changes of all partitions that have this broker in their ISR when it goes.
fn departures(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    id: BrokerId,
) -> Vec<MetadataRecord> {
    let mut records = Vec::new();
    partition_changes(
        image,
        defaults,
        Transition::Departs(id),
        in_isr(id),
        &mut records,
    );
    records
}

/// The records that take a broker out of service: out of its ISRs first, then fenced.
pub fn fence_broker(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    id: BrokerId,
) -> Result<Vec<MetadataRecord>, ClusterError> {
    let broker = registered(image, id)?;
    let mut records = departures(image, defaults, id);
    records.push(
        BrokerRegistrationChangeRecord {
            fenced: 1,
            ..registration_change(broker)
        }
        .into(),
    );
    Ok(records)
}

/// The records that put a registered broker into service: unfenced first, then elected where nobody leads.
pub fn unfence_broker(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    id: BrokerId,
    epoch: BrokerEpoch,
) -> Result<Vec<MetadataRecord>, ClusterError> {
    check_broker_epoch(image, id, epoch)?;
    let broker = registered(image, id)?;
    let mut records = vec![
        BrokerRegistrationChangeRecord {
            fenced: -1,
            ..registration_change(broker)
        }
        .into(),
    ];
    let has_no_leader = |partition: &PartitionImage| partition.leader.is_none();
    partition_changes(
        image,
        defaults,
        Transition::Arrives(id),
        has_no_leader,
        &mut records,
    );
    Ok(records)
}

/// The records that begin the controlled shutdown of a broker: it is told to everybody first, then its leaderships
/// move and it leaves its ISRs.
pub fn begin_controlled_shutdown(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    id: BrokerId,
) -> Result<Vec<MetadataRecord>, ClusterError> {
    let broker = registered(image, id)?;
    let mut records = Vec::new();
    if !broker.in_controlled_shutdown {
        records.push(
            BrokerRegistrationChangeRecord {
                in_controlled_shutdown: 1,
                ..registration_change(broker)
            }
            .into(),
        );
    }
    records.extend(departures(image, defaults, id));
    Ok(records)
}

/// The records that take a broker out of the cluster for good.
pub fn unregister_broker(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    id: BrokerId,
) -> Result<Vec<MetadataRecord>, ClusterError> {
    let broker = registered(image, id)?;
    let mut records = departures(image, defaults, id);
    records.push(
        UnregisterBrokerRecord {
            broker_id: id.0,
            broker_epoch: broker.epoch.0,
        }
        .into(),
    );
    Ok(records)
}

/// The records for log directories that a broker reports as offline (KIP-858): its replicas in them leave ISR and
/// leadership, then the registration loses them. None when they were offline before.
pub fn take_directories_offline(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    id: BrokerId,
    offline: &[Uuid],
) -> Result<Vec<MetadataRecord>, ClusterError> {
    let broker = registered(image, id)?;
    let is_offline = |directory: &Uuid| offline.contains(directory);
    if !broker.log_dirs.iter().any(is_offline) {
        return Ok(Vec::new());
    }
    let mut records = Vec::new();
    let in_offline_directory = |partition: &PartitionImage| {
        let directory = partition.directory_of(id);
        is_offline(&directory) && broker.log_dirs.contains(&directory)
    };
    partition_changes(
        image,
        defaults,
        Transition::Departs(id),
        in_offline_directory,
        &mut records,
    );
    let online = broker
        .log_dirs
        .iter()
        .filter(|directory| !is_offline(directory));
    records.push(
        BrokerRegistrationChangeRecord {
            log_dirs: online.copied().collect(),
            ..registration_change(broker)
        }
        .into(),
    );
    Ok(records)
}

pub(super) fn in_isr(id: BrokerId) -> impl Fn(&PartitionImage) -> bool {
    move |partition| partition.isr.contains(&id)
}

fn registered(image: &ClusterImage, id: BrokerId) -> Result<&BrokerRegistration, ClusterError> {
    let broker = image.broker(id).ok_or_else(|| {
        ClusterError::BrokerIdNotRegistered(format!("Broker ID {id} is not currently registered"))
    })?;
    Ok(broker)
}

fn registration_change(broker: &BrokerRegistration) -> BrokerRegistrationChangeRecord {
    BrokerRegistrationChangeRecord {
        broker_id: broker.id.0,
        broker_epoch: broker.epoch.0,
        ..BrokerRegistrationChangeRecord::default()
    }
}
