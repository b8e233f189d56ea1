//! Which brokers get the replicas of new partitions.

use highwater_storage::types::BrokerId;
use uuid::Uuid;

use super::directories::UNASSIGNED_DIRECTORY;
use super::error::ClusterError;
use super::image::{BrokerRegistration, ClusterImage, PartitionImage};
use super::racks::Racks;
use highwater_storage::types::{LeaderEpoch, PartitionEpoch};

/// Where new partitions of one topic go.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacementRequest<'a> {
    /// How many partitions.
    pub(super) partition_count: i32,
    /// How many replicas each, observers among them.
    pub(super) replication_factor: i16,
    /// Brokers that get a replica of each partition which only observes.
    pub(super) observers: &'a [BrokerId],
    /// Shifts whose turn it is first, so that topics of one partition do not all lie on one broker.
    pub(super) seed: u64,
}

/// Places the replicas, one list a partition: spread over the racks, fenced brokers only when the others are too few,
/// observers last.
pub(super) fn place(
    image: &ClusterImage,
    request: PlacementRequest<'_>,
) -> Result<Vec<Vec<BrokerId>>, ClusterError> {
    let refuse = |text: String| Err(ClusterError::InvalidReplicationFactor(text));
    let PlacementRequest {
        replication_factor,
        observers,
        ..
    } = request;
    let replicas = match usize::try_from(replication_factor) {
        Ok(replicas) if replicas > 0 => replicas,
        _ => {
            return refuse(format!(
                "Invalid replication factor {replication_factor}: the replication factor must be positive."
            ));
        }
    };
    let Some(voters) = replicas
        .checked_sub(observers.len())
        .filter(|voters| *voters > 0)
    else {
        return refuse(format!(
            "The replication factor of {replication_factor} leaves no replica that can lead beside {} observer(s).",
            observers.len()
        ));
    };
    let usable = || {
        let brokers = image.brokers().values();
        brokers.filter(|broker| !broker.in_controlled_shutdown && !is_cordoned(broker))
    };
    let voting = || usable().filter(|broker| !observers.contains(&broker.id));
    if voting().all(|broker| broker.fenced) {
        return refuse("All brokers are currently fenced.".to_owned());
    }
    if voters > voting().count() {
        let registered = usable().count();
        return refuse(format!(
            "The target replication factor of {replication_factor} cannot be reached because only {registered} \
             broker(s) are registered or some brokers have all their log directories cordoned."
        ));
    }
    let brokers = voting().map(|broker| (broker.rack.clone(), broker.id, broker.fenced));
    let mut racks = Racks::new(brokers, request.seed);
    let place_one = |_| {
        let mut placed = racks.place(voters);
        placed.extend(observers);
        placed
    };
    Ok((0..request.partition_count.max(0)).map(place_one).collect())
}

/// Whether no log directory of the broker takes new replicas.
fn is_cordoned(broker: &BrokerRegistration) -> bool {
    let cordoned = broker.cordoned_log_dirs.as_deref().unwrap_or_default();
    !broker.log_dirs.is_empty()
        && broker
            .log_dirs
            .iter()
            .all(|directory| cordoned.contains(directory))
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

/// A new partition on these brokers, led by the first that is active and no observer; `None` when none is.
pub(super) fn new_partition(
    image: &ClusterImage,
    replicas: Vec<BrokerId>,
    observers: &[BrokerId],
) -> Option<PartitionImage> {
    let isr: Vec<BrokerId> = replicas
        .iter()
        .copied()
        .filter(|id| image.is_active(*id) && !observers.contains(id))
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
pub(super) fn default_directory(image: &ClusterImage, id: BrokerId) -> Uuid {
    match image.broker(id).map(|broker| broker.log_dirs.as_slice()) {
        Some([only]) => *only,
        _ => UNASSIGNED_DIRECTORY,
    }
}
