//! AssignReplicasToDirs: a broker with several log directories says in which one a replica lies (KIP-858).

use std::collections::BTreeMap;

use highwater_storage::types::{BrokerEpoch, BrokerId, TopicId};
use uuid::Uuid;

use super::brokers::check_broker_epoch;
use super::error::{ClusterError, EntryResult};
use super::image::{ClusterImage, PartitionImage};
use super::partition_change::PartitionChangeBuilder;
use super::records::MetadataRecord;
use super::topic_rules::{ReplicationDefaults, TopicRules};

/// Where one replica of the broker lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryAssignment {
    /// The log directory.
    pub directory: Uuid,
    /// The topic.
    pub topic_id: TopicId,
    /// The partition.
    pub partition: i32,
}

/// The records of the assignments, and one result for each in its order. A replica in a directory that is offline
/// leaves ISR and leadership. An error refuses the whole request.
pub fn assign_replicas_to_dirs(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    broker_id: BrokerId,
    broker_epoch: BrokerEpoch,
    assignments: &[DirectoryAssignment],
) -> Result<(Vec<MetadataRecord>, Vec<EntryResult>), ClusterError> {
    check_broker_epoch(image, broker_id, broker_epoch)?;
    let mut records = Vec::new();
    // A partition that is there twice: the later one is judged on what the earlier one made.
    let mut after: BTreeMap<(TopicId, i32), PartitionImage> = BTreeMap::new();
    let mut results = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        let key = (assignment.topic_id, assignment.partition);
        let Some(topic) = image.topic_by_id(assignment.topic_id) else {
            results.push(Err(ClusterError::UnknownTopicId));
            continue;
        };
        let partition = match (after.get(&key), topic.partition(assignment.partition)) {
            (Some(partition), _) => partition,
            (None, Some(partition)) => &**partition,
            (None, None) => {
                results.push(Err(ClusterError::unknown_topic()));
                continue;
            }
        };
        if !partition.replicas.contains(&broker_id) {
            results.push(Err(ClusterError::NotLeaderOrFollower(format!(
                "broker {broker_id} has no replica of {}-{}",
                topic.name, assignment.partition
            ))));
            continue;
        }
        let rules = TopicRules::of(image, topic, defaults);
        let mut builder =
            PartitionChangeBuilder::new(image, &rules, assignment.partition, partition)
                .target_directory(broker_id, assignment.directory);
        if !image.is_directory_online(broker_id, assignment.directory) {
            builder = builder.election_of_topic().departing(broker_id);
        }
        if let Some(record) = builder.build() {
            let mut changed = partition.clone();
            changed
                .merge(&record)
                .map_err(|error| ClusterError::UnknownServerError(error.to_string()))?;
            after.insert(key, changed);
            records.push(record.into());
        }
        results.push(Ok(()));
    }
    Ok((records, results))
}
