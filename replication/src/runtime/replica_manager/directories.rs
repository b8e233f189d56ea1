//! Where the replicas of this broker lie, and what the controller is told of it (KIP-858).
//!
//! A broker with several log directories tells in which one each replica lies. Any broker tells when a replica cannot
//! be used where it lies, so that another one leads: its log has failed or could not be opened, or it leads and found
//! the disk full. It tells the directory again when it can be used.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use highwater_storage::{BrokerId, StorageError, TopicId, TopicPartition};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::ReplicaManager;
use super::hosted::Replica;
use crate::cluster::assign_dirs::DirectoryAssignment;
use crate::cluster::directories::{LOST_DIRECTORY, ReplicaPlace, is_unassigned, wanted_directory};
use crate::cluster::image::PartitionImage;
use crate::runtime::partition::Partition;

/// A disk that was full has space again when this share of it is free, or so many bytes.
const FREE_SHARE: u64 = 20;
const FREE_BYTES: u64 = 1 << 30;

impl ReplicaManager {
    /// Tells the ids of the log directories, by their paths. Only the first call does anything.
    pub fn set_directory_ids(&self, ids: BTreeMap<PathBuf, Uuid>) {
        // A second call would come from a second start, which there is not.
        let _ = self.directory_ids.set(ids);
    }

    /// What the controller is to be told of where replicas lie. To be looked at again when
    /// [`places_changed`](crate::runtime::context::ReplicaContext::places_changed) says so.
    pub fn wanted_assignments(&self) -> Vec<DirectoryAssignment> {
        let Some(ids) = self.directory_ids.get() else {
            return Vec::new();
        };
        let image = Arc::clone(&self.context.image());
        let hosted = self.hosted.read();
        let mut wanted = Vec::new();
        for topic in hosted.by_id.values() {
            let Some(described) = image.topic_by_id(topic.id) else {
                continue;
            };
            for (index, replica) in (0..).zip(&topic.replicas) {
                let Some(partition) = described.partition(index) else {
                    continue;
                };
                let place = match replica {
                    Replica::Elsewhere => continue,
                    Replica::Offline { .. } => None,
                    Replica::Online(online) => self.place_of(online, partition, ids),
                };
                let place = ReplicaPlace {
                    lies_in: place,
                    is_only_directory: ids.len() == 1,
                };
                let directory = wanted_directory(partition, self.local_broker(), place);
                wanted.extend(directory.map(|directory| DirectoryAssignment {
                    directory,
                    topic_id: topic.id,
                    partition: index,
                }));
            }
        }
        wanted
    }

    /// The directory of a replica; `None` when it cannot be used, or better is not.
    fn place_of(
        &self,
        partition: &Partition,
        image: &PartitionImage,
        ids: &BTreeMap<PathBuf, Uuid>,
    ) -> Option<Uuid> {
        if partition.log().failure().is_some() {
            return None;
        }
        if partition.is_out_of_space() {
            let own = self.local_broker();
            let others_are_in_sync = image.isr.iter().any(|id| *id != own);
            let is_told = image.directory_of(own) == LOST_DIRECTORY;
            // The last in-sync replica leads on: what it has can be read, and nobody else has all of it.
            if others_are_in_sync || is_told {
                return None;
            }
        }
        ids.get(&partition.log().log_dir()).copied()
    }

    /// Whether the metadata name one of our directories for the replica of `partition`, or need not.
    pub(super) fn is_place_known(&self, partition: &PartitionImage) -> bool {
        let known = partition.directory_of(self.local_broker());
        self.directory_ids.get().is_none_or(|ids| {
            let need_not = ids.len() == 1 && is_unassigned(known);
            need_not || ids.values().any(|id| *id == known)
        })
    }

    /// Why no log may be made for the replica of `partition`: the metadata name a directory that is none of those in use,
    /// and either one could not be used at start, or nobody else has all that is committed. An empty log in another
    /// directory would pass for all that was promised. What nobody else has is not given up for an empty directory,
    /// which may be one whose disk is not mounted.
    pub(super) fn must_not_be_made_anew(
        &self,
        topic_partition: &TopicPartition,
        partition: &PartitionImage,
    ) -> Option<StorageError> {
        let known = partition.directory_of(self.local_broker());
        let ids = self.directory_ids.get();
        let is_in_use = ids.is_some_and(|ids| ids.values().any(|id| *id == known));
        if is_in_use || is_unassigned(known) {
            return None;
        }
        if let Some(reason) = self.logs.may_be_unusable(topic_partition) {
            return Some(reason);
        }
        let is_needed = ids.is_some()
            && has_alone_what_is_committed(partition, self.local_broker())
            && !self.logs.lies_here(topic_partition);
        let place = match known {
            LOST_DIRECTORY => "a log directory that had failed".to_owned(),
            id => format!("the log directory with the id {}", TopicId(id)),
        };
        is_needed.then(|| StorageError::Offline {
            topic_partition: topic_partition.clone(),
            reason: format!(
                "it lay in {place}, which is not there, and no other replica has all records"
            ),
        })
    }

    /// Takes notice of disks that were full and have space again. To be called from time to time.
    pub fn look_for_space(&self) {
        let waiting: Vec<_> = {
            let mut partitions = self.partitions();
            partitions.retain(|partition| partition.is_out_of_space());
            partitions
        };
        if waiting.is_empty() {
            return;
        }
        let has_space: BTreeMap<PathBuf, bool> = self
            .logs
            .log_dirs()
            .into_iter()
            .map(|dir| {
                let enough = (dir.total_bytes / FREE_SHARE).min(FREE_BYTES);
                (dir.path, dir.usable_bytes >= enough)
            })
            .collect();
        for partition in waiting {
            if has_space.get(&partition.log().log_dir()) == Some(&true) {
                let topic_partition = partition.topic_partition();
                tracing::info!(%topic_partition, "there is space on the disk again");
                partition.on_space();
            }
        }
        // Also without space: others may be in sync by now.
        self.context.on_places_changed();
    }

    /// From now on retires the replicas whose logs fail. Gives the task that does it.
    pub(super) fn watch_log_failures(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        let (sender, mut failed) = mpsc::unbounded_channel();
        self.logs.watch_failures(Arc::new(move |topic_partition| {
            // Nobody listens once this broker stops.
            let _ = sender.send(topic_partition.clone());
        }));
        let replicas: Weak<Self> = Arc::downgrade(self);
        async move {
            while let Some(topic_partition) = failed.recv().await {
                let Some(replicas) = replicas.upgrade() else {
                    return;
                };
                let retired =
                    tokio::task::spawn_blocking(move || replicas.retire(&topic_partition));
                if let Err(error) = retired.await {
                    tracing::error!(%error, "cannot retire a replica whose log has failed");
                }
            }
        }
    }

    /// Has a replica whose log has failed neither lead nor follow any more, and another one lead.
    fn retire(&self, topic_partition: &TopicPartition) {
        let _changes = self.changes.lock();
        let partition = {
            let hosted = self.hosted.read();
            let topic = hosted.by_name.get(&topic_partition.topic);
            topic.and_then(|topic| topic.hosted(topic_partition.partition))
        };
        if let Some(partition) = partition.filter(|partition| partition.log().failure().is_some()) {
            self.retire_failed(&partition);
        }
    }

    /// As [`retire`](Self::retire), with the lock on changes held.
    pub(super) fn retire_failed(&self, partition: &Partition) {
        self.unfollow(partition.topic_id(), partition.topic_partition().partition);
        partition.resign();
        self.context.on_places_changed();
    }
}

/// Whether no replica but that on `broker` is known to have every committed record.
fn has_alone_what_is_committed(partition: &PartitionImage, broker: BrokerId) -> bool {
    let mut holders: Vec<BrokerId> = [&partition.isr, &partition.eligible_leader_replicas]
        .into_iter()
        .flatten()
        .copied()
        .collect();
    if holders.is_empty() {
        holders.clone_from(&partition.last_known_elr);
    }
    !holders.is_empty() && holders.iter().all(|id| *id == broker)
}
