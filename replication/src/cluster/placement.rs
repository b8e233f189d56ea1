//! Which brokers get the replicas of new partitions.

use highwater_storage::types::BrokerId;
use uuid::Uuid;

use super::error::ClusterError;
use super::image::{ClusterImage, PartitionImage};
use highwater_storage::types::{LeaderEpoch, PartitionEpoch};

/// The log directory of a replica whose broker has not said where it lies (KIP-858).
pub(super) const UNASSIGNED_DIRECTORY: Uuid = Uuid::nil();

/// Places `replication_factor` replicas of each partition `first_partition ..`, one list a partition.
///
/// Live brokers take turns at leading, so that partitions spread evenly; `seed` shifts whose turn it is first, so that
/// topics of one partition do not all lie on one broker. Fenced brokers are used when the live ones are too few.
pub(super) fn place(
    image: &ClusterImage,
    first_partition: i32,
    partition_count: i32,
    replication_factor: i16,
    seed: u64,
) -> Result<Vec<Vec<BrokerId>>, ClusterError> {
    let refuse = |text: String| Err(ClusterError::InvalidReplicationFactor(text));
    let replicas = match usize::try_from(replication_factor) {
        Ok(replicas) if replicas > 0 => replicas,
        _ => {
            return refuse(format!(
                "Invalid replication factor {replication_factor}: the replication factor must be positive."
            ));
        }
    };
    let usable = || {
        image
            .brokers()
            .values()
            .filter(|broker| !broker.in_controlled_shutdown)
    };
    let unfenced: Vec<BrokerId> = usable()
        .filter(|broker| !broker.fenced)
        .map(|broker| broker.id)
        .collect();
    let fenced: Vec<BrokerId> = usable()
        .filter(|broker| broker.fenced)
        .map(|broker| broker.id)
        .collect();
    if unfenced.is_empty() {
        return refuse("All brokers are currently fenced.".to_owned());
    }
    let registered = unfenced.len() + fenced.len();
    if replicas > registered {
        return refuse(format!(
            "The target replication factor of {replication_factor} cannot be reached because only {registered} \
             broker(s) are registered or some brokers have all their log directories cordoned."
        ));
    }
    let assignment = |partition: i32| {
        let turn = seed.wrapping_add(partition as u64);
        let rotated = |brokers: &[BrokerId]| -> Vec<BrokerId> {
            let start = (turn % brokers.len().max(1) as u64) as usize;
            brokers
                .iter()
                .cycle()
                .skip(start)
                .take(brokers.len())
                .copied()
                .collect()
        };
        let mut chosen = rotated(&unfenced);
        chosen.extend(rotated(&fenced));
        chosen.truncate(replicas);
        chosen
    };
    Ok(
        (first_partition..first_partition.saturating_add(partition_count))
            .map(assignment)
            .collect(),
    )
}

/// Refuses a manual assignment of one partition that cannot be used. `replication_factor` is what earlier partitions
/// have, if there are any.
pub(super) fn validate_manual_assignment(
    image: &ClusterImage,
    brokers: &[i32],
    replication_factor: Option<usize>,
) -> Result<(), ClusterError> {
    let refuse = |text: String| Err(ClusterError::InvalidReplicaAssignment(text));
    if brokers.is_empty() {
        return refuse(
            "The manual partition assignment includes an empty replica list.".to_owned(),
        );
    }
    let mut sorted = brokers.to_vec();
    sorted.sort_unstable();
    let mut previous = None;
    for broker in sorted {
        if image.broker(BrokerId(broker)).is_none() {
            return refuse(format!(
                "The manual partition assignment includes broker {broker}, but no such broker is registered."
            ));
        }
        if previous == Some(broker) {
            return refuse(format!(
                "The manual partition assignment includes the broker {broker} more than once."
            ));
        }
        previous = Some(broker);
    }
    match replication_factor {
        Some(expected) if expected != brokers.len() => refuse(format!(
            "The manual partition assignment includes a partition with {} replica(s), but this is not consistent with \
             previous partitions, which have {expected} replica(s).",
            brokers.len()
        )),
        _ => Ok(()),
    }
}

/// A new partition on these brokers, led by the first that is active; `None` when none is.
pub(super) fn new_partition(
    image: &ClusterImage,
    replicas: Vec<BrokerId>,
) -> Option<PartitionImage> {
    let isr: Vec<BrokerId> = replicas
        .iter()
        .copied()
        .filter(|id| image.is_active(*id))
        .collect();
    let leader = *isr.first()?;
    let directories = replicas
        .iter()
        .map(|id| default_directory(image, *id))
        .collect();
    Some(PartitionImage {
        replicas,
        isr,
        removing_replicas: Vec::new(),
        adding_replicas: Vec::new(),
        directories,
        eligible_leader_replicas: Vec::new(),
        last_known_elr: Vec::new(),
        leader: Some(leader),
        recovering: false,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(0),
    })
}

/// The only log directory of a broker; a broker with several chooses and says so later.
fn default_directory(image: &ClusterImage, id: BrokerId) -> Uuid {
    match image.broker(id).map(|broker| broker.log_dirs.as_slice()) {
        Some([only]) => *only,
        _ => UNASSIGNED_DIRECTORY,
    }
}
