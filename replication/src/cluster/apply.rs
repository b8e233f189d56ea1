//! Records make the next image. Nothing is decided here: what a record says happens, and a record that does not fit
//! the image is an error, since then the log was not written against it.

use std::sync::Arc;

use highwater_storage::types::{BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, TopicId};

use super::delta::ClusterDelta;
use super::image::{
    BrokerRegistration, ClusterImage, ConfigMap, ConfigResource, ControllerRegistration,
    PartitionImage, ResourceType, TopicImage, has_collision_chars, unify_collision_chars,
};
use super::merge::{broker_ids, leader, recovering};
use super::records::*;

/// A record that does not fit the image it is applied to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The record names a topic id that does not exist.
    #[error("{record} for unknown topic id {topic_id}")]
    UnknownTopic {
        /// Type of the record.
        record: &'static str,
        /// The unknown id.
        topic_id: TopicId,
    },
    /// The record names a partition that does not exist, or leaves a gap.
    #[error(
        "{record} for partition {partition} of topic {topic}, which has {partition_count} partitions"
    )]
    UnknownPartition {
        /// Type of the record.
        record: &'static str,
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
        /// How many partitions the topic has.
        partition_count: usize,
    },
    /// A topic record for a name or an id that is in use.
    #[error("topic record for {name}, which exists")]
    TopicExists {
        /// The name.
        name: String,
    },
    /// The record names a broker that is not registered, or another run of it.
    #[error("{record} for broker {broker_id} with epoch {broker_epoch}, which is not registered")]
    UnknownBroker {
        /// Type of the record.
        record: &'static str,
        /// The broker.
        broker_id: i32,
        /// The epoch in the record.
        broker_epoch: i64,
    },
    /// A configuration of a kind of resource that has none.
    #[error("config record for unknown resource type {0}")]
    UnknownResourceType(i8),
    /// A field has a value without a meaning.
    #[error("{record} with {field} {value}")]
    InvalidValue {
        /// Type of the record.
        record: &'static str,
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
}

impl ClusterImage {
    /// The image after `records`, whose last has `last_offset` and was written in `epoch`, and what changed.
    ///
    /// Markers of transactions are skipped here; [`super::replay::Replay`] groups the records between them first.
    pub fn apply(
        &self,
        records: &[MetadataRecord],
        last_offset: i64,
        epoch: i32,
    ) -> Result<(ClusterImage, ClusterDelta), ApplyError> {
        let mut next = self.clone();
        let mut delta = ClusterDelta::default();
        for record in records {
            next.apply_record(record, &mut delta)?;
        }
        next.offset = last_offset;
        next.epoch = epoch;
        Ok((next, delta))
    }

    fn apply_record(
        &mut self,
        record: &MetadataRecord,
        delta: &mut ClusterDelta,
    ) -> Result<(), ApplyError> {
        match record {
            MetadataRecord::RegisterBroker(record) => self.apply_register_broker(record, delta),
            MetadataRecord::UnregisterBroker(record) => {
                self.apply_unregister_broker(record, delta)?
            }
            MetadataRecord::Topic(record) => self.apply_topic(record, delta)?,
            MetadataRecord::Partition(record) => self.apply_partition(record, delta)?,
            MetadataRecord::Config(record) => self.apply_config(record, delta)?,
            MetadataRecord::PartitionChange(record) => {
                self.apply_partition_change(record, delta)?
            }
            MetadataRecord::FenceBroker(record) => {
                let broker =
                    self.broker_mut("FenceBrokerRecord", record.id, record.epoch, delta)?;
                broker.fenced = true;
            }
            MetadataRecord::UnfenceBroker(record) => {
                let broker =
                    self.broker_mut("UnfenceBrokerRecord", record.id, record.epoch, delta)?;
                broker.fenced = false;
            }
            MetadataRecord::RemoveTopic(record) => self.apply_remove_topic(record, delta)?,
            MetadataRecord::FeatureLevel(record) => {
                let features = Arc::make_mut(&mut self.features);
                match record.feature_level {
                    0 => features.remove(&record.name),
                    level => features.insert(record.name.clone(), level),
                };
                delta.features_changed = true;
            }
            MetadataRecord::ProducerIds(record) => {
                self.next_producer_id = record.next_producer_id;
                self.producer_ids_record_seen = true;
            }
            MetadataRecord::BrokerRegistrationChange(record) => {
                self.apply_registration_change(record, delta)?
            }
            MetadataRecord::RegisterController(record) => {
                let registration = ControllerRegistration {
                    incarnation_id: record.incarnation_id,
                    end_points: record.end_points.clone(),
                    features: record.features.clone(),
                };
                Arc::make_mut(&mut self.controllers)
                    .insert(record.controller_id, Arc::new(registration));
            }
            MetadataRecord::UnregisterController(record) => {
                Arc::make_mut(&mut self.controllers).remove(&record.controller_id);
            }
            MetadataRecord::ClearElr(record) => self.apply_clear_elr(record, delta),
            MetadataRecord::Inert(record) => self.apply_inert(record),
            MetadataRecord::NoOp(_)
            | MetadataRecord::BeginTransaction(_)
            | MetadataRecord::EndTransaction(_)
            | MetadataRecord::AbortTransaction(_) => {}
        }
        Ok(())
    }

    fn apply_register_broker(&mut self, record: &RegisterBrokerRecord, delta: &mut ClusterDelta) {
        let id = BrokerId(record.broker_id);
        let registration = BrokerRegistration {
            id,
            epoch: BrokerEpoch(record.broker_epoch),
            incarnation_id: record.incarnation_id,
            end_points: record.end_points.clone(),
            features: record.features.clone(),
            rack: record.rack.clone(),
            fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
            log_dirs: record.log_dirs.clone(),
            cordoned_log_dirs: record.cordoned_log_dirs.clone(),
        };
        Arc::make_mut(&mut self.brokers).insert(id, Arc::new(registration));
        delta.changed_brokers.insert(id);
    }

    fn apply_unregister_broker(
        &mut self,
        record: &UnregisterBrokerRecord,
        delta: &mut ClusterDelta,
    ) -> Result<(), ApplyError> {
        self.broker_mut(
            "UnregisterBrokerRecord",
            record.broker_id,
            record.broker_epoch,
            delta,
        )?;
        Arc::make_mut(&mut self.brokers).remove(&BrokerId(record.broker_id));
        Ok(())
    }

    fn apply_registration_change(
        &mut self,
        record: &BrokerRegistrationChangeRecord,
        delta: &mut ClusterDelta,
    ) -> Result<(), ApplyError> {
        const RECORD: &str = "BrokerRegistrationChangeRecord";
        let invalid = |field, value: i8| ApplyError::InvalidValue {
            record: RECORD,
            field,
            value: value.into(),
        };
        let broker = self.broker_mut(RECORD, record.broker_id, record.broker_epoch, delta)?;
        match record.fenced {
            -1 => broker.fenced = false,
            0 => {}
            1 => broker.fenced = true,
            other => return Err(invalid("fenced", other)),
        }
        match record.in_controlled_shutdown {
            0 => {}
            1 => broker.in_controlled_shutdown = true,
            other => return Err(invalid("in_controlled_shutdown", other)),
        }
        if !record.log_dirs.is_empty() {
            broker.log_dirs.clone_from(&record.log_dirs);
        }
        if record.cordoned_log_dirs.is_some() {
            broker
                .cordoned_log_dirs
                .clone_from(&record.cordoned_log_dirs);
        }
        Ok(())
    }

    fn broker_mut(
        &mut self,
        record: &'static str,
        broker_id: i32,
        broker_epoch: i64,
        delta: &mut ClusterDelta,
    ) -> Result<&mut BrokerRegistration, ApplyError> {
        let id = BrokerId(broker_id);
        match Arc::make_mut(&mut self.brokers).get_mut(&id) {
            Some(broker) if broker.epoch == BrokerEpoch(broker_epoch) => {
                delta.changed_brokers.insert(id);
                Ok(Arc::make_mut(broker))
            }
            _ => Err(ApplyError::UnknownBroker {
                record,
                broker_id,
                broker_epoch,
            }),
        }
    }

    fn apply_topic(
        &mut self,
        record: &TopicRecord,
        delta: &mut ClusterDelta,
    ) -> Result<(), ApplyError> {
        let id = TopicId(record.topic_id);
        if self.topic_ids.contains_key(record.name.as_str()) || self.topics.contains_key(&id) {
            return Err(ApplyError::TopicExists {
                name: record.name.clone(),
            });
        }
        let name: Arc<str> = record.name.as_str().into();
        if has_collision_chars(&name) {
            let unified: Arc<str> = unify_collision_chars(&name).into();
            let mut same = self
                .collisions
                .get(&unified)
                .map(|same| same.to_vec())
                .unwrap_or_default();
            same.push(name.clone());
            self.collisions.insert_mut(unified, Arc::new(same));
        }
        self.topic_ids.insert_mut(name.clone(), id);
        self.topics.insert_mut(
            id,
            Arc::new(TopicImage {
                name,
                id,
                partitions: Vec::new(),
            }),
        );
        delta.created_topics.insert(id);
        Ok(())
    }

    fn apply_remove_topic(
        &mut self,
        record: &RemoveTopicRecord,
        delta: &mut ClusterDelta,
    ) -> Result<(), ApplyError> {
        let id = TopicId(record.topic_id);
        let unknown = ApplyError::UnknownTopic {
            record: "RemoveTopicRecord",
            topic_id: id,
        };
        let topic = self.topics.get(&id).cloned().ok_or(unknown)?;
        self.topics.remove_mut(&id);
        self.topic_ids.remove_mut(&topic.name);
        self.partition_count -= topic.partitions.len();
        if has_collision_chars(&topic.name) {
            let unified: Arc<str> = unify_collision_chars(&topic.name).into();
            let mut same = self
                .collisions
                .get(&unified)
                .map(|same| same.to_vec())
                .unwrap_or_default();
            same.retain(|name| *name != topic.name);
            match same.is_empty() {
                true => {
                    self.collisions.remove_mut(&unified);
                }
                false => self.collisions.insert_mut(unified, Arc::new(same)),
            }
        }
        let resource = ConfigResource::topic(topic.name.clone());
        if self.configs.remove_mut(&resource) {
            delta.changed_configs.insert(resource);
        }
        delta.merge(ClusterDelta {
            deleted_topics: vec![topic],
            ..ClusterDelta::default()
        });
        Ok(())
    }

    fn apply_partition(
        &mut self,
        record: &PartitionRecord,
        delta: &mut ClusterDelta,
    ) -> Result<(), ApplyError> {
        let topic = self.topic_mut("PartitionRecord", record.topic_id)?;
        let partition = PartitionImage {
            replicas: broker_ids(&record.replicas),
            isr: broker_ids(&record.isr),
            removing_replicas: broker_ids(&record.removing_replicas),
            adding_replicas: broker_ids(&record.adding_replicas),
            directories: record.directories.clone(),
            eligible_leader_replicas: broker_ids(
                record
                    .eligible_leader_replicas
                    .as_deref()
                    .unwrap_or_default(),
            ),
            last_known_elr: broker_ids(record.last_known_elr.as_deref().unwrap_or_default()),
            leader: leader(record.leader),
            recovering: recovering("PartitionRecord", record.leader_recovery_state)?,
            leader_epoch: LeaderEpoch(record.leader_epoch),
            partition_epoch: PartitionEpoch(record.partition_epoch),
        };
        let partition_count = topic.partitions.len();
        match usize::try_from(record.partition_id) {
            Ok(index) if index < partition_count => topic.partitions[index] = Arc::new(partition),
            Ok(index) if index == partition_count => {
                topic.partitions.push(Arc::new(partition));
                self.partition_count += 1;
            }
            _ => {
                return Err(ApplyError::UnknownPartition {
                    record: "PartitionRecord",
                    topic: topic.name.clone(),
                    partition: record.partition_id,
                    partition_count,
                });
            }
        }
        delta
            .changed_partitions
            .entry(TopicId(record.topic_id))
            .or_default()
            .insert(record.partition_id);
        Ok(())
    }

    fn apply_partition_change(
        &mut self,
        record: &PartitionChangeRecord,
        delta: &mut ClusterDelta,
    ) -> Result<(), ApplyError> {
        const RECORD: &str = "PartitionChangeRecord";
        let topic = self.topic_mut(RECORD, record.topic_id)?;
        let (name, partition_count) = (topic.name.clone(), topic.partitions.len());
        let Some(partition) = usize::try_from(record.partition_id)
            .ok()
            .and_then(|index| topic.partitions.get_mut(index))
        else {
            return Err(ApplyError::UnknownPartition {
                record: RECORD,
                topic: name,
                partition: record.partition_id,
                partition_count,
            });
        };
        Arc::make_mut(partition).merge(record)?;
        delta
            .changed_partitions
            .entry(TopicId(record.topic_id))
            .or_default()
            .insert(record.partition_id);
        Ok(())
    }

    fn topic_mut(
        &mut self,
        record: &'static str,
        topic_id: uuid::Uuid,
    ) -> Result<&mut TopicImage, ApplyError> {
        let topic_id = TopicId(topic_id);
        let topic = self
            .topics
            .get_mut(&topic_id)
            .ok_or(ApplyError::UnknownTopic { record, topic_id })?;
        Ok(Arc::make_mut(topic))
    }

    fn apply_config(
        &mut self,
        record: &ConfigRecord,
        delta: &mut ClusterDelta,
    ) -> Result<(), ApplyError> {
        let resource_type = ResourceType::from_id(record.resource_type)
            .ok_or(ApplyError::UnknownResourceType(record.resource_type))?;
        let resource = ConfigResource {
            resource_type,
            name: record.resource_name.as_str().into(),
        };
        let mut configs = self
            .configs
            .get(&resource)
            .map(|configs| ConfigMap::clone(configs))
            .unwrap_or_default();
        match &record.value {
            Some(value) => configs.insert(record.name.clone(), value.clone()),
            None => configs.remove(&record.name),
        };
        if configs.is_empty() {
            self.configs.remove_mut(&resource);
        } else {
            self.configs.insert_mut(resource.clone(), Arc::new(configs));
        }
        delta.changed_configs.insert(resource);
        Ok(())
    }

    /// Forgets the eligible leader replicas, where there are any: the change counts as one of the partition.
    fn apply_clear_elr(&mut self, record: &ClearElrRecord, delta: &mut ClusterDelta) {
        let ids: Vec<TopicId> = match record.topic_name.as_str() {
            "" => self.topics.keys().copied().collect(),
            name => self.topic_ids.get(name).copied().into_iter().collect(),
        };
        let has_elr = |partition: &PartitionImage| {
            !partition.eligible_leader_replicas.is_empty() || !partition.last_known_elr.is_empty()
        };
        for id in ids {
            let Some(topic) = self.topics.get(&id) else {
                continue;
            };
            if !topic.partitions.iter().any(|partition| has_elr(partition)) {
                continue;
            }
            let Some(topic) = self.topics.get_mut(&id) else {
                continue;
            };
            for (index, partition) in Arc::make_mut(topic).partitions.iter_mut().enumerate() {
                if has_elr(partition) {
                    let partition = Arc::make_mut(partition);
                    partition.eligible_leader_replicas.clear();
                    partition.last_known_elr.clear();
                    partition.partition_epoch = PartitionEpoch(partition.partition_epoch.0 + 1);
                    delta
                        .changed_partitions
                        .entry(id)
                        .or_default()
                        .insert(index as i32);
                }
            }
        }
    }
}
