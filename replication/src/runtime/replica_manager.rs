//! The partitions that this broker hosts, kept as the cluster's metadata says.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arc_swap::ArcSwap;
use highwater_storage::log::Log;
use highwater_storage::{BrokerId, LogConfig, LogManager, StorageError, TopicId, TopicPartition};
use parking_lot::{Mutex, RwLock};

use super::context::ReplicaContext;
use super::error::PartitionError;
use super::partition::{Leadership, Partition};
use crate::cluster::delta::ClusterDelta;
use crate::cluster::image::{ClusterImage, PartitionImage, ResourceType, TopicImage};
use crate::cluster::topic_name::CLUSTER_METADATA_TOPIC;

/// The topic defaults that the broker's own configuration gives, by topic key.
pub type LogDefaults = BTreeMap<&'static str, String>;

/// Hosts partitions: makes and deletes their logs and tells them who leads.
#[derive(Debug)]
pub struct ReplicaManager {
    local_broker: BrokerId,
    context: Arc<ReplicaContext>,
    logs: Arc<LogManager>,
    log_defaults: ArcSwap<LogDefaults>,
    hosted: RwLock<Hosted>,
    /// Held while what is hosted changes; no request takes it.
    changes: Mutex<()>,
}

#[derive(Debug, Default)]
struct Hosted {
    by_name: HashMap<Arc<str>, Arc<HostedTopic>>,
    by_id: HashMap<TopicId, Arc<HostedTopic>>,
}

/// The replicas of one topic, by partition number.
#[derive(Debug, Clone)]
struct HostedTopic {
    name: Arc<str>,
    id: TopicId,
    replicas: Vec<Replica>,
}

#[derive(Debug, Clone)]
enum Replica {
    /// Another broker's.
    Elsewhere,
    /// Ours, with an open log.
    Online(Arc<Partition>),
    /// Ours, but its log could not be opened.
    Offline {
        reason: Arc<str>,
        /// The disk was full: it may open when there is space again.
        may_open_later: bool,
    },
}

impl HostedTopic {
    fn replica(&self, partition: i32) -> Result<Arc<Partition>, PartitionError> {
        let index = usize::try_from(partition).map_err(|_| PartitionError::NotHosted)?;
        match self.replicas.get(index) {
            Some(Replica::Online(partition)) => match partition.log().failure() {
                None => Ok(Arc::clone(partition)),
                Some(failure) => Err(PartitionError::Offline(failure.to_string())),
            },
            Some(Replica::Offline { reason, .. }) => {
                Err(PartitionError::Offline(reason.to_string()))
            }
            Some(Replica::Elsewhere) | None => Err(PartitionError::NotHosted),
        }
    }

    fn waiting_for_space(&self) -> BTreeSet<i32> {
        let waits = |replica| {
            matches!(
                replica,
                &Replica::Offline {
                    may_open_later: true,
                    ..
                }
            )
        };
        let waiting = (0..)
            .zip(&self.replicas)
            .filter(|(_, replica)| waits(*replica));
        waiting.map(|(partition, _)| partition).collect()
    }

    fn online(&self) -> impl Iterator<Item = &Arc<Partition>> {
        self.replicas.iter().filter_map(|replica| match replica {
            Replica::Online(partition) => Some(partition),
            Replica::Elsewhere | Replica::Offline { .. } => None,
        })
    }
}

impl ReplicaManager {
    /// Hosts nothing yet; call [`load`](Self::load) with the first image.
    #[must_use]
    pub fn new(local_broker: BrokerId, logs: Arc<LogManager>, log_defaults: LogDefaults) -> Self {
        let log_defaults = ArcSwap::from_pointee(log_defaults);
        Self {
            local_broker,
            context: Arc::new(ReplicaContext::new(local_broker)),
            logs,
            log_defaults,
            hosted: RwLock::default(),
            changes: Mutex::new(()),
        }
    }

    /// Opens the logs that lie in the log directories, hosts what the image assigns to this
    /// broker, and sets logs aside that the image does not assign to it.
    pub fn load(&self, image: &Arc<ClusterImage>, now_ms: i64) {
        let _changes = self.changes.lock();
        self.context.set_image(Arc::clone(image));
        let config_of = |topic: &str| self.log_config(image, topic);
        self.logs.load_logs(&config_of, now_ms);
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

    /// Follows a change of the metadata: deletes, creates, changes leaders and configurations.
    pub fn apply(&self, image: &Arc<ClusterImage>, delta: &ClusterDelta, now_ms: i64) {
        let _changes = self.changes.lock();
        self.context.set_image(Arc::clone(image));
        for topic in &delta.deleted_topics {
            self.delete_topic(topic, now_ms);
        }
        for (id, partitions) in &delta.changed_partitions {
            if let Some(topic) = image.topic_by_id(*id) {
                self.host(image, topic, partitions, now_ms);
            }
        }
        for resource in &delta.changed_configs {
            if resource.resource_type == ResourceType::Topic {
                self.reconfigure(image, &resource.name);
            }
        }
        if !delta.changed_brokers.is_empty() {
            for partition in self.partitions() {
                partition.on_brokers_changed();
            }
        }
    }

    /// The lag timer: to be called each half of `replica.lag.time.max.ms`. Proposes that replicas
    /// that lag leave the in-sync replicas.
    pub fn run_lag_check(&self) {
        for partition in self.partitions() {
            partition.on_lag_check();
        }
    }

    /// What all partitions share.
    pub fn context(&self) -> &Arc<ReplicaContext> {
        &self.context
    }

    /// Tries once more to open the partitions that had no space on the disk.
    pub fn reopen_offline(&self, image: &ClusterImage, now_ms: i64) {
        let _changes = self.changes.lock();
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
                self.host(image, topic, partitions, now_ms);
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
        let hosted = self.hosted.read();
        let replicas = hosted.by_name.values().flat_map(|topic| &topic.replicas);
        replicas
            .filter(|replica| match replica {
                Replica::Online(partition) => partition.log().failure().is_some(),
                Replica::Offline { .. } => true,
                Replica::Elsewhere => false,
            })
            .count()
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

    fn belongs_here(&self, image: &ClusterImage, log: &Log) -> bool {
        let TopicPartition { topic, partition } = log.topic_partition();
        if **topic == *CLUSTER_METADATA_TOPIC {
            // It is in no image: it is what images are made of, and its controller's own.
            return true;
        }
        let assigned = image.topic(topic).filter(|topic| {
            let ours =
                |partition: &Arc<PartitionImage>| partition.replicas.contains(&self.local_broker);
            topic.partition(*partition).is_some_and(ours)
        });
        // A log that was made but never given an id belongs to whoever has its name.
        assigned.is_some_and(|topic| log.topic_id().is_none_or(|id| id == topic.id))
    }

    fn log_config(&self, image: &ClusterImage, topic: &str) -> LogConfig {
        let own = image.topic_configs(topic);
        let own = own.iter().flat_map(|own| own.iter());
        let overrides = own.map(|(key, value)| (key.as_str(), value.as_str()));
        LogConfig::from_overrides(&self.log_defaults.load(), overrides).unwrap_or_else(|error| {
            // The controller has checked it; a record of another version may still hold more.
            tracing::error!(topic, %error, "topic configuration is not valid, using the defaults");
            LogConfig::from_overrides(&self.log_defaults.load(), []).unwrap_or_default()
        })
    }

    fn reconfigure(&self, image: &ClusterImage, topic: &str) {
        let Some(hosted) = self.hosted.read().by_name.get(topic).cloned() else {
            return;
        };
        let config = self.log_config(image, topic);
        for partition in hosted.online() {
            partition.set_log_config(config.clone());
        }
    }

    fn delete_topic(&self, topic: &TopicImage, now_ms: i64) {
        let gone = {
            let mut hosted = self.hosted.write();
            let gone = hosted.by_id.remove(&topic.id);
            if hosted
                .by_name
                .get(&topic.name)
                .is_some_and(|named| named.id == topic.id)
            {
                hosted.by_name.remove(&topic.name);
            }
            gone
        };
        for partition in gone.iter().flat_map(|gone| gone.online()) {
            partition.resign();
            self.delete_log(partition.topic_partition(), now_ms);
        }
    }

    fn delete_log(&self, topic_partition: &TopicPartition, now_ms: i64) {
        if let Err(error) = self.logs.delete(topic_partition, now_ms) {
            tracing::error!(%topic_partition, %error, "cannot delete the log");
        }
    }

    /// Takes up `partitions` of a topic: new ones get a log, known ones hear who leads.
    fn host(
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
        let config = self.log_config(image, &topic.name);
        for index in partitions {
            let Some(partition) = topic.partition(*index) else {
                continue;
            };
            let Some(slot) = usize::try_from(*index)
                .ok()
                .and_then(|at| hosted.replicas.get_mut(at))
            else {
                continue;
            };
            if !partition.replicas.contains(&self.local_broker) {
                continue;
            }
            let leadership = Leadership::from(&**partition);
            let outcome = match slot {
                Replica::Online(online) => online.become_as(leadership).map(|_| None),
                Replica::Elsewhere | Replica::Offline { .. } => self
                    .open(topic, *index, leadership, config.clone(), now_ms)
                    .map(|opened| Some(Replica::Online(opened))),
            };
            match outcome {
                Ok(None) => {}
                Ok(Some(opened)) => *slot = opened,
                Err(error) => {
                    tracing::error!(topic = %topic.name, partition = index, %error, "partition is offline");
                    let full =
                        matches!(&error, PartitionError::Storage(error) if error.is_storage_full());
                    *slot = Replica::Offline {
                        reason: error.to_string().into(),
                        may_open_later: full,
                    };
                }
            }
        }
        let topic = Arc::new(hosted);
        let mut hosted = self.hosted.write();
        hosted
            .by_name
            .insert(Arc::clone(&topic.name), Arc::clone(&topic));
        hosted.by_id.insert(topic.id, topic);
    }

    fn open(
        &self,
        topic: &TopicImage,
        index: i32,
        leadership: Leadership,
        config: LogConfig,
        now_ms: i64,
    ) -> Result<Arc<Partition>, PartitionError> {
        let topic_partition = TopicPartition {
            topic: Arc::clone(&topic.name),
            partition: index,
        };
        let create = |config| {
            self.logs
                .get_or_create(&topic_partition, Some(topic.id), config, now_ms)
        };
        let log = match create(config.clone()) {
            // What lies there is left over from a topic of the same name that was deleted.
            Err(StorageError::InconsistentTopicId { .. }) => {
                self.logs.delete(&topic_partition, now_ms)?;
                create(config)?
            }
            other => other?,
        };
        let context = Arc::clone(&self.context);
        let partition = Arc::new(Partition::new(topic_partition, topic.id, context, log));
        partition.become_as(leadership)?;
        Ok(partition)
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
