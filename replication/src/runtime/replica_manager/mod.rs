//! The partitions that this broker hosts, kept as the cluster's metadata says.

mod directories;
mod hosted;
mod hosting;
mod replicating;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use highwater_storage::{BrokerId, LogManager, TopicId};
use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use self::hosted::Hosted;
use super::context::ReplicaContext;
use super::error::PartitionError;
use super::fetcher::ReplicaFetcherManager;
use super::partition::Partition;
use super::topic_settings::TopicSettings;
use crate::cluster::delta::ClusterDelta;
use crate::cluster::image::{ClusterImage, ResourceType};

pub use super::topic_settings::LogDefaults;
pub use replicating::Peers;

/// Hosts partitions: makes and deletes their logs, tells them who leads, and has them follow.
#[derive(Debug)]
pub struct ReplicaManager {
    context: Arc<ReplicaContext>,
    logs: Arc<LogManager>,
    log_defaults: ArcSwap<LogDefaults>,
    hosted: RwLock<Hosted>,
    /// Held while what is hosted changes; no request takes it.
    changes: Mutex<()>,
    /// Once there is a way to other brokers.
    fetchers: OnceLock<ReplicaFetcherManager>,
    tasks: Mutex<replicating::Tasks>,
    directory_ids: OnceLock<BTreeMap<PathBuf, Uuid>>,
}

impl ReplicaManager {
    /// Hosts nothing yet; call [`load`](Self::load) with the first image.
    #[must_use]
    pub fn new(local_broker: BrokerId, logs: Arc<LogManager>, log_defaults: LogDefaults) -> Self {
        Self {
            context: Arc::new(ReplicaContext::new(local_broker)),
            logs,
            log_defaults: ArcSwap::from_pointee(log_defaults),
            hosted: RwLock::default(),
            changes: Mutex::new(()),
            fetchers: OnceLock::new(),
            tasks: Mutex::default(),
            directory_ids: OnceLock::new(),
        }
    }

    /// Opens the logs that lie in the log directories, hosts what the image assigns to this
    /// broker, and sets logs aside that the image does not assign to it.
    pub fn load(&self, image: &Arc<ClusterImage>, now_ms: i64) {
        let _changes = self.changes.lock();
        self.context.set_image(Arc::clone(image));
        let config_of = |topic: &str| self.topic_settings(image, topic).log;
        for second in self.logs.load_logs(&config_of, now_ms) {
            self.settle(image, &second);
        }
        for log in self.logs.logs() {
            let topic_partition = log.topic_partition();
            if !self.belongs_here(image, &log) {
                tracing::error!(%topic_partition, "the metadata assigns no such partition to this broker, setting its log aside");
                if let Err(error) = self.logs.set_aside(topic_partition, now_ms) {
                    tracing::error!(%topic_partition, %error, "cannot set the log aside");
                }
            }
        }
        for topic in image.topics() {
            let all = 0..topic.partitions.len();
            let all = all.filter_map(|index| i32::try_from(index).ok()).collect();
            self.host(image, topic, &all, now_ms);
        }
    }

    /// Follows a change of the metadata: deletes, creates, changes configurations and leaders.
    pub fn apply(&self, image: &Arc<ClusterImage>, delta: &ClusterDelta, now_ms: i64) {
        let _changes = self.changes.lock();
        self.context.set_image(Arc::clone(image));
        for topic in &delta.deleted_topics {
            self.delete_topic(topic, now_ms);
        }
        // Before the partitions: a leader that heard of a smaller ISR first, and then of a higher
        // min.insync.replicas, would commit in between what eligible leader replicas do not have.
        for resource in &delta.changed_configs {
            if resource.resource_type == ResourceType::Topic {
                self.reconfigure(image, &resource.name);
            }
        }
        for (id, partitions) in &delta.changed_partitions {
            if let Some(topic) = image.topic_by_id(*id) {
                self.host(image, topic, partitions, now_ms);
            }
        }
        if !delta.changed_brokers.is_empty() {
            for partition in self.partitions() {
                partition.on_brokers_changed();
            }
        }
    }

    /// Tries once more to open the partitions that had no space on the disk, as the metadata has them that was
    /// followed last.
    pub fn reopen_offline(&self, now_ms: i64) {
        let _changes = self.changes.lock();
        let image = self.context.image();
        let waiting: Vec<(TopicId, BTreeSet<i32>)> = {
            let hosted = self.hosted.read();
            let topics = hosted.by_id.values();
            topics
                .map(|topic| (topic.id, topic.waiting_for_space()))
                .collect()
        };
        for (id, partitions) in waiting
            .iter()
            .filter(|(_, partitions)| !partitions.is_empty())
        {
            if let Some(topic) = image.topic_by_id(*id) {
                self.host(&image, topic, partitions, now_ms);
            }
        }
    }

    /// Replaces the broker's defaults of topic settings and gives every log its new configuration.
    pub fn set_log_defaults(&self, image: &ClusterImage, log_defaults: LogDefaults) {
        self.log_defaults.store(Arc::new(log_defaults));
        let names: Vec<Arc<str>> = self.hosted.read().by_name.keys().cloned().collect();
        for name in names {
            self.reconfigure(image, &name);
        }
    }

    fn reconfigure(&self, image: &ClusterImage, topic: &str) {
        let Some(hosted) = self.hosted.read().by_name.get(topic).cloned() else {
            return;
        };
        let settings = self.topic_settings(image, topic);
        for partition in hosted.online() {
            partition.set_topic_settings(settings.clone());
        }
    }

    fn topic_settings(&self, image: &ClusterImage, topic: &str) -> TopicSettings {
        TopicSettings::of(image, topic, &self.log_defaults.load())
    }

    /// What all partitions share.
    pub fn context(&self) -> &Arc<ReplicaContext> {
        &self.context
    }

    fn local_broker(&self) -> BrokerId {
        self.context.local_broker()
    }

    /// The partition of the topic that has this name now.
    ///
    /// # Errors
    /// [`PartitionError::NotHosted`] or [`PartitionError::Offline`].
    pub fn partition(&self, topic: &str, partition: i32) -> Result<Arc<Partition>, PartitionError> {
        let hosted = self.hosted.read();
        hosted
            .by_name
            .get(topic)
            .ok_or(PartitionError::NotHosted)?
            .replica(partition)
    }

    /// The partition of the topic that has this id.
    ///
    /// # Errors
    /// [`PartitionError::NotHosted`] or [`PartitionError::Offline`].
    pub fn partition_by_id(
        &self,
        id: TopicId,
        partition: i32,
    ) -> Result<Arc<Partition>, PartitionError> {
        let hosted = self.hosted.read();
        hosted
            .by_id
            .get(&id)
            .ok_or(PartitionError::NotHosted)?
            .replica(partition)
    }

    /// Every partition that is online here.
    pub fn partitions(&self) -> Vec<Arc<Partition>> {
        let hosted = self.hosted.read();
        hosted
            .by_name
            .values()
            .flat_map(|topic| topic.online().cloned())
            .collect()
    }

    /// How many of this broker's partitions are offline.
    pub fn offline_count(&self) -> usize {
        self.hosted.read().offline_count()
    }

    /// Wakes every parked request, so that it looks again: the broker stops.
    pub fn wake_all(&self) {
        for partition in self.partitions() {
            partition.wake_all();
        }
    }

    /// All logs.
    pub fn logs(&self) -> &Arc<LogManager> {
        &self.logs
    }
}

#[cfg(test)]
mod tests;
