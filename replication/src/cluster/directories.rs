//! Which log directory a replica lies in, and whether it can be used there (KIP-858).

use highwater_storage::types::BrokerId;
use uuid::Uuid;

use super::image::{ClusterImage, PartitionImage};

/// The log directory of a replica whose broker has not said where it lies.
pub const UNASSIGNED_DIRECTORY: Uuid = Uuid::nil();
/// The log directory of a replica that its broker cannot use: the directory, or the log in it, has failed.
pub const LOST_DIRECTORY: Uuid = Uuid::from_u128(1);
/// The log directory of a replica of a broker that had no directory ids.
pub const MIGRATING_DIRECTORY: Uuid = Uuid::from_u128(2);

/// One replica of a broker, as the broker finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaPlace {
    /// The log directory in which it lies; `None` when it cannot be used there.
    pub lies_in: Option<Uuid>,
    /// Whether the broker has no other log directory.
    pub is_only_directory: bool,
}

/// What a broker has to tell the controller of where its replica lies; `None` when the controller knows.
///
/// A replica that cannot be used is told to be lost, so that another one leads. The only replica of a partition is not:
/// nobody else could lead, and clients get the reason from the leader.
#[must_use]
pub fn wanted_directory(
    partition: &PartitionImage,
    broker: BrokerId,
    place: ReplicaPlace,
) -> Option<Uuid> {
    let known = partition.directory_of(broker);
    match place.lies_in {
        None => (partition.replicas.len() > 1 && known != LOST_DIRECTORY).then_some(LOST_DIRECTORY),
        Some(directory) if directory == known => None,
        // There is no choice, so nobody needs to know.
        Some(_) if place.is_only_directory && is_unassigned(known) => None,
        Some(directory) => Some(directory),
    }
}

/// Whether this stands for a directory that nobody has named.
#[must_use]
pub fn is_unassigned(directory: Uuid) -> bool {
    matches!(directory, UNASSIGNED_DIRECTORY | MIGRATING_DIRECTORY)
}

impl ClusterImage {
    /// Whether a replica on `broker` can be used in this directory, as far as the broker has said.
    pub fn is_directory_online(&self, broker: BrokerId, directory: Uuid) -> bool {
        let Some(registration) = self.broker(broker) else {
            return false;
        };
        match directory {
            unassigned if is_unassigned(unassigned) => true,
            LOST_DIRECTORY => false,
            directory => {
                registration.log_dirs.is_empty() || registration.log_dirs.contains(&directory)
            }
        }
    }

    /// Whether the replica of `partition` on `broker` lies in a directory that can be used.
    pub fn has_online_directory(&self, broker: BrokerId, partition: &PartitionImage) -> bool {
        self.is_directory_online(broker, partition.directory_of(broker))
    }
}
