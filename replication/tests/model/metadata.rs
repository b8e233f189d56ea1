//! The metadata log. How controllers agree on it is not modelled: what is here is committed, and stays.

use std::sync::Arc;

use highwater_replication::cluster::image::{ELR_FEATURE, METADATA_VERSION_FEATURE};
use highwater_replication::cluster::records::{
    BrokerRegistrationChangeRecord, ConfigRecord, FeatureLevelRecord, FeatureRange,
    PartitionRecord, RESOURCE_TYPE_TOPIC, RegisterBrokerRecord, TopicRecord,
};
use highwater_replication::cluster::{ClusterImage, MetadataRecord, PartitionImage};
use highwater_storage::{BrokerId, TopicId};
use uuid::Uuid;

use super::setup::Setup;

/// The cluster's id.
pub(crate) const CLUSTER_ID: &str = "a-model-of-a-cluster";
/// The only topic, with one partition.
pub(crate) const TOPIC: &str = "p";
/// Its id.
pub(crate) const TOPIC_ID: TopicId = TopicId(Uuid::from_u128(0x70));

/// A batch of metadata records; it takes effect as a whole.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) records: Vec<MetadataRecord>,
    /// The term of the controller that wrote it.
    pub(crate) term: i32,
}

/// The committed metadata log, and what the cluster is after each of its entries.
#[derive(Debug)]
pub(crate) struct MetadataLog {
    images: Vec<Arc<ClusterImage>>,
}

impl MetadataLog {
    /// A log whose only entry makes the cluster of `setup`.
    pub(crate) fn new(setup: &Setup) -> Self {
        let empty = Arc::new(ClusterImage::empty(CLUSTER_ID));
        let mut log = Self {
            images: vec![empty],
        };
        log.append(&Entry {
            records: bootstrap(setup),
            term: 1,
        });
        log
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.images.len() - 1
    }

    /// The cluster after so many entries.
    pub(crate) fn image(&self, position: usize) -> &Arc<ClusterImage> {
        &self.images[position]
    }

    /// The cluster after all entries.
    pub(crate) fn latest(&self) -> &Arc<ClusterImage> {
        self.image(self.len())
    }

    /// All clusters there were, oldest first.
    pub(crate) fn images(&self) -> &[Arc<ClusterImage>] {
        &self.images
    }

    /// Commits an entry.
    pub(crate) fn append(&mut self, entry: &Entry) {
        self.images.push(Arc::new(after(self.latest(), entry)));
    }
}

/// The cluster after an entry, committed or not.
pub(crate) fn after(image: &ClusterImage, entry: &Entry) -> ClusterImage {
    let last_offset = image.offset() + entry.records.len() as i64;
    let applied = image.apply(&entry.records, last_offset, entry.term);
    applied.expect("records fit the image they were made for").0
}

/// The partition in an image.
pub(crate) fn partition(image: &ClusterImage) -> &PartitionImage {
    image
        .partition(TOPIC, 0)
        .expect("the topic is never deleted")
}

/// What each broker says it supports.
pub(crate) fn features() -> Vec<FeatureRange> {
    let range = |name: &str, max_supported_version| FeatureRange {
        name: name.to_owned(),
        min_supported_version: 0,
        max_supported_version,
    };
    vec![range(METADATA_VERSION_FEATURE, 33), range(ELR_FEATURE, 1)]
}

/// The log directory of a broker.
pub(crate) fn log_dir(id: BrokerId) -> Uuid {
    Uuid::from_u128(0x1000 + id.0 as u128)
}

/// The incarnation of the brokers that are there from the beginning; later runs have higher ones.
pub(crate) fn incarnation(id: BrokerId, run: u32) -> Uuid {
    Uuid::from_u128((u128::from(run) << 64) | id.0 as u128)
}

fn bootstrap(setup: &Setup) -> Vec<MetadataRecord> {
    let feature = |name: &str, feature_level| FeatureLevelRecord {
        name: name.to_owned(),
        feature_level,
    };
    let mut records: Vec<MetadataRecord> = vec![feature(METADATA_VERSION_FEATURE, 33).into()];
    if setup.elr {
        records.push(feature(ELR_FEATURE, 1).into());
    }
    for id in &setup.brokers {
        let record = RegisterBrokerRecord {
            broker_id: id.0,
            incarnation_id: incarnation(*id, 0),
            broker_epoch: records.len() as i64,
            features: features(),
            fenced: false,
            log_dirs: vec![log_dir(*id)],
            ..RegisterBrokerRecord::default()
        };
        records.push(record.into());
    }
    let raw = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect::<Vec<_>>();
    let topic = TopicRecord {
        name: TOPIC.to_owned(),
        topic_id: TOPIC_ID.0,
    };
    records.push(topic.into());
    let partition = PartitionRecord {
        partition_id: 0,
        topic_id: TOPIC_ID.0,
        replicas: raw(&setup.replicas),
        isr: raw(&setup.isr),
        leader: setup.leader.map_or(-1, |leader| leader.0),
        leader_epoch: setup.leader_epoch.0,
        partition_epoch: 0,
        directories: setup.replicas.iter().map(|id| log_dir(*id)).collect(),
        eligible_leader_replicas: (!setup.elr_members.is_empty()).then(|| raw(&setup.elr_members)),
        ..PartitionRecord::default()
    };
    records.push(partition.into());
    records.push(config("min.insync.replicas", &setup.min_isr.to_string()));
    let unclean = setup.unclean.to_string();
    records.push(config("unclean.leader.election.enable", &unclean));
    if !setup.observers.is_empty() {
        let observers: Vec<String> = setup.observers.iter().map(BrokerId::to_string).collect();
        records.push(config("highwater.observer.replicas", &observers.join(",")));
    }
    records
}

/// A record that sets a key of the topic.
pub(crate) fn config(name: &str, value: &str) -> MetadataRecord {
    ConfigRecord {
        resource_type: RESOURCE_TYPE_TOPIC,
        resource_name: TOPIC.to_owned(),
        name: name.to_owned(),
        value: Some(value.to_owned()),
    }
    .into()
}

/// Records that would put all brokers into service.
pub(crate) fn all_unfenced(image: &ClusterImage) -> Vec<MetadataRecord> {
    let fenced = image.brokers().values().filter(|broker| broker.fenced);
    fenced
        .map(|broker| {
            BrokerRegistrationChangeRecord {
                broker_id: broker.id.0,
                broker_epoch: broker.epoch.0,
                fenced: -1,
                ..BrokerRegistrationChangeRecord::default()
            }
            .into()
        })
        .collect()
}
