//! An image as records: the content of a snapshot, and the record that creates one partition as it is.

use std::collections::BTreeMap;

use highwater_storage::types::{BrokerId, TopicId};

use super::configs::config_record;
use super::image::{
    BrokerRegistration, ClusterImage, ControllerRegistration, METADATA_VERSION_FEATURE,
    PartitionImage,
};
use super::records::*;

impl ClusterImage {
    /// The records that make this image out of an empty one: the content of a snapshot.
    pub fn to_records(&self) -> Vec<MetadataRecord> {
        let mut records = Vec::with_capacity(16 + self.partition_count + self.topics.size());
        let mut features: BTreeMap<&String, i16> = self
            .features
            .iter()
            .map(|(name, level)| (name, *level))
            .collect();
        // The level that says how to read the rest comes first.
        let metadata_version = METADATA_VERSION_FEATURE.to_owned();
        if let Some(feature_level) = features.remove(&metadata_version) {
            records.push(
                FeatureLevelRecord {
                    name: metadata_version,
                    feature_level,
                }
                .into(),
            );
        }
        for (name, feature_level) in features {
            records.push(
                FeatureLevelRecord {
                    name: name.clone(),
                    feature_level,
                }
                .into(),
            );
        }
        for (controller_id, controller) in self.controllers.iter() {
            records.push(controller.to_record(*controller_id).into());
        }
        records.extend(
            self.brokers
                .values()
                .map(|broker| broker.to_record().into()),
        );
        for topic in self.topics() {
            records.push(
                TopicRecord {
                    name: topic.name.to_string(),
                    topic_id: topic.id.0,
                }
                .into(),
            );
            for (index, partition) in topic.partitions.iter().enumerate() {
                records.push(partition.to_record(topic.id, index as i32).into());
            }
        }
        for (resource, configs) in self.config_resources() {
            for (name, value) in configs.iter() {
                records.push(config_record(resource, name, Some(value.clone())));
            }
        }
        if self.producer_ids_record_seen {
            let next_producer_id = self.next_producer_id;
            records.push(
                ProducerIdsRecord {
                    broker_id: -1,
                    broker_epoch: -1,
                    next_producer_id,
                }
                .into(),
            );
        }
        let inert = self.inert.values().cloned();
        records.extend(inert.map(MetadataRecord::Inert));
        records
    }
}

impl ControllerRegistration {
    fn to_record(&self, controller_id: i32) -> RegisterControllerRecord {
        RegisterControllerRecord {
            controller_id,
            incarnation_id: self.incarnation_id,
            zk_migration_ready: false,
            end_points: self.end_points.clone(),
            features: self.features.clone(),
        }
    }
}

impl BrokerRegistration {
    fn to_record(&self) -> RegisterBrokerRecord {
        RegisterBrokerRecord {
            broker_id: self.id.0,
            is_migrating_zk_broker: false,
            incarnation_id: self.incarnation_id,
            broker_epoch: self.epoch.0,
            end_points: self.end_points.clone(),
            features: self.features.clone(),
            rack: self.rack.clone(),
            fenced: self.fenced,
            in_controlled_shutdown: self.in_controlled_shutdown,
            log_dirs: self.log_dirs.clone(),
            cordoned_log_dirs: self.cordoned_log_dirs.clone(),
        }
    }
}

impl PartitionImage {
    /// The record that creates this partition as it is.
    pub fn to_record(&self, topic_id: TopicId, partition_id: i32) -> PartitionRecord {
        let unless_empty = |ids: &[BrokerId]| (!ids.is_empty()).then(|| raw_ids(ids));
        PartitionRecord {
            partition_id,
            topic_id: topic_id.0,
            replicas: raw_ids(&self.replicas),
            isr: raw_ids(&self.isr),
            removing_replicas: raw_ids(&self.removing_replicas),
            adding_replicas: raw_ids(&self.adding_replicas),
            leader: self.leader.map_or(NO_LEADER, |leader| leader.0),
            leader_recovery_state: i8::from(self.recovering),
            leader_epoch: self.leader_epoch.0,
            partition_epoch: self.partition_epoch.0,
            directories: self.directories.clone(),
            eligible_leader_replicas: unless_empty(&self.eligible_leader_replicas),
            last_known_elr: unless_empty(&self.last_known_elr),
        }
    }
}

fn raw_ids(ids: &[BrokerId]) -> Vec<i32> {
    ids.iter().map(|id| id.0).collect()
}
