//! Carrying out what the metadata says: making and deleting logs, and taking roles.

use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_storage::log::Log;
use highwater_storage::{StorageError, TopicId, TopicPartition};

use super::ReplicaManager;
use super::hosted::{HostedTopic, Replica};
use crate::cluster::image::{ClusterImage, PartitionImage, TopicImage};
use crate::cluster::topic_name::CLUSTER_METADATA_TOPIC;
use crate::runtime::error::PartitionError;
use crate::runtime::partition::{FetcherChange, Leadership, Partition};
use crate::runtime::topic_settings::TopicSettings;

impl ReplicaManager {
    /// Whether the image assigns the partition of a log to this broker.
    pub(super) fn belongs_here(&self, image: &ClusterImage, log: &Log) -> bool {
        let TopicPartition { topic, partition } = log.topic_partition();
        if **topic == *CLUSTER_METADATA_TOPIC {
            // It is in no image: it is what images are made of, and its controller's own.
            return true;
        }
        let assigned = image.topic(topic).filter(|topic| {
            let ours =
                |partition: &Arc<PartitionImage>| partition.replicas.contains(&self.local_broker());
            topic.partition(*partition).is_some_and(ours)
        });
        // A log that was made but never given an id belongs to whoever has its name.
        assigned.is_some_and(|topic| log.topic_id().is_none_or(|id| id == topic.id))
    }

    /// A partition has logs in two directories: a disk is back that was away when the replica, or the topic, was made
    /// anew. The one that the metadata mean counts.
    pub(super) fn settle(&self, image: &ClusterImage, second: &Arc<Log>) {
        let topic_partition = second.topic_partition();
        let topic = image.topic(&topic_partition.topic);
        let partition = topic.and_then(|topic| topic.partition(topic_partition.partition));
        let known = partition.map(|partition| partition.directory_of(self.local_broker()));
        let ids = self.directory_ids.get();
        let claim = |log: &Log| {
            let is_topic = topic.is_some_and(|topic| log.topic_id() == Some(topic.id));
            let directory = ids.and_then(|ids| ids.get(&log.log_dir()));
            let is_place = directory.is_some() && directory == known.as_ref();
            (is_topic, is_place, log.log_end_offset())
        };
        let in_use = self.logs.get(topic_partition);
        let second_counts = in_use.as_ref().is_none_or(|log| claim(second) > claim(log));
        let dirs = [in_use.map(|log| log.dir()), Some(second.dir())];
        tracing::error!(%topic_partition, ?dirs, second_counts, "found two directories of a partition, setting one aside");
        if let Err(error) = self.logs.settle(second, second_counts) {
            tracing::error!(%topic_partition, %error, "cannot set a log aside");
        }
    }

    /// The topic is gone, and with it our replicas.
    pub(super) fn delete_topic(&self, topic: &TopicImage, now_ms: i64) {
        let gone = self.hosted.write().remove(&topic.name, topic.id);
        for partition in gone.iter().flat_map(|gone| gone.online()) {
            self.give_up(partition, now_ms);
        }
    }

    /// A replica is taken from this broker: its log goes.
    fn give_up(&self, partition: &Partition, now_ms: i64) {
        let topic_partition = partition.topic_partition();
        self.unfollow(partition.topic_id(), topic_partition.partition);
        partition.resign();
        self.delete_log(topic_partition, now_ms);
    }

    fn delete_log(&self, topic_partition: &TopicPartition, now_ms: i64) {
        if let Err(error) = self.logs.delete(topic_partition, now_ms) {
            tracing::error!(%topic_partition, %error, "cannot delete the log");
        }
    }

    /// Takes up `partitions` of a topic: new ones get a log, known ones hear who leads, and those
    /// that went elsewhere are given up.
    pub(super) fn host(
        &self,
        image: &ClusterImage,
        topic: &TopicImage,
        partitions: &BTreeSet<i32>,
        now_ms: i64,
    ) {
        let known = self.hosted.read().by_id.get(&topic.id).cloned();
        let mut hosted = known.map_or_else(
            || HostedTopic {
                name: Arc::clone(&topic.name),
                id: topic.id,
                replicas: Vec::new(),
            },
            |known| HostedTopic::clone(&known),
        );
        hosted
            .replicas
            .resize(topic.partitions.len(), Replica::Elsewhere);
        let settings = self.topic_settings(image, &topic.name);
        let mut is_place_unknown = false;
        for index in partitions {
            let at = usize::try_from(*index).ok();
            let slot = at.and_then(|at| hosted.replicas.get_mut(at));
            let (Some(partition), Some(slot)) = (topic.partition(*index), slot) else {
                continue;
            };
            if partition.replicas.contains(&self.local_broker()) {
                is_place_unknown |= !self.is_place_known(partition);
                let leadership = Leadership::from(&**partition);
                self.take_role(topic, *index, slot, leadership, &settings, now_ms);
            } else if let Replica::Online(gone) = std::mem::replace(slot, Replica::Elsewhere) {
                self.give_up(&gone, now_ms);
            }
        }
        self.hosted.write().insert(hosted);
        if is_place_unknown {
            self.context.on_places_changed();
        }
    }

    /// Gives the replica in `slot` its role, and opens its log first if need be.
    fn take_role(
        &self,
        topic: &TopicImage,
        index: i32,
        slot: &mut Replica,
        leadership: Leadership,
        settings: &TopicSettings,
        now_ms: i64,
    ) {
        if leadership.leader == Some(self.local_broker()) {
            // Before it leads.
            self.unfollow(topic.id, index);
        }
        let opened = match slot {
            Replica::Online(online) if online.log().failure().is_some() => return,
            Replica::Online(online) => Ok(Arc::clone(online)),
            Replica::Elsewhere | Replica::Offline { .. } => {
                self.open(topic, index, settings, now_ms)
            }
        };
        let outcome = opened.and_then(|partition| {
            let change = partition.become_as(leadership)?;
            Ok((partition, change))
        });
        match outcome {
            Ok((partition, change)) => {
                self.on_fetcher_change(&partition, change);
                *slot = Replica::Online(partition);
            }
            Err(error) => {
                tracing::error!(topic = %topic.name, partition = index, %error, "partition is offline");
                self.unfollow(topic.id, index);
                let full =
                    matches!(&error, PartitionError::Storage(error) if error.is_storage_full());
                *slot = Replica::Offline {
                    reason: error.to_string().into(),
                    may_open_later: full,
                };
                self.context.on_places_changed();
            }
        }
    }

    fn open(
        &self,
        topic: &TopicImage,
        index: i32,
        settings: &TopicSettings,
        now_ms: i64,
    ) -> Result<Arc<Partition>, PartitionError> {
        let topic_partition = TopicPartition {
            topic: Arc::clone(&topic.name),
            partition: index,
        };
        if let Some(image) = topic.partition(index)
            && let Some(error) = self.must_not_be_made_anew(&topic_partition, image)
        {
            return Err(error.into());
        }
        let create = || {
            let config = settings.log.clone();
            self.logs
                .get_or_create(&topic_partition, Some(topic.id), config, now_ms)
        };
        let log = match create() {
            // What lies there is left over from a topic of the same name that was deleted.
            Err(StorageError::InconsistentTopicId { .. }) => {
                self.logs.delete(&topic_partition, now_ms)?;
                create()?
            }
            other => other?,
        };
        let context = Arc::clone(&self.context);
        let partition = Partition::new(topic_partition, topic.id, context, log, settings);
        Ok(Arc::new(partition))
    }

    /// Does with the fetchers what a change of role means for them.
    fn on_fetcher_change(&self, partition: &Arc<Partition>, change: FetcherChange) {
        match change {
            FetcherChange::None => {}
            FetcherChange::Restart {
                leader: Some(leader),
                leader_epoch,
            } => {
                if let Some(fetchers) = self.fetchers.get() {
                    fetchers.follow(Arc::clone(partition), leader, leader_epoch);
                }
            }
            FetcherChange::Restart { leader: None, .. } => {
                let index = partition.topic_partition().partition;
                self.unfollow(partition.topic_id(), index);
            }
        }
    }

    pub(super) fn unfollow(&self, topic_id: TopicId, partition: i32) {
        if let Some(fetchers) = self.fetchers.get() {
            fetchers.unfollow(topic_id, partition);
        }
    }

    /// The log of a follower cannot be written: the replica is offline until the next start.
    pub(super) fn on_log_failure(&self, partition: &Arc<Partition>, error: StorageError) {
        let _changes = self.changes.lock();
        partition.log().set_failed(error);
        self.retire_failed(partition);
    }
}

impl From<&PartitionImage> for Leadership {
    fn from(image: &PartitionImage) -> Self {
        Self {
            leader: image.leader,
            leader_epoch: image.leader_epoch,
            partition_epoch: image.partition_epoch,
            replicas: image.replicas.clone(),
            isr: image.isr.clone(),
        }
    }
}
