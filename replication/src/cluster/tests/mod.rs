//! Tests of requests against images, by concern; what they share is here.

mod apply;
mod configs;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod model;

use highwater_storage::types::{BrokerId, TopicId};
use uuid::Uuid;

use super::brokers::{BrokerRegistrationRequest, register_broker, unfence_broker};
use super::configs::ConfigRules;
use super::create_topics::{NewTopic, TopicDefaults};
use super::image::{ELR_FEATURE, METADATA_VERSION_FEATURE};
use super::records::FeatureLevelRecord;
use super::{ClusterError, ClusterImage, ConfigMap, ConfigResource, MetadataRecord, ResourceType};

pub(super) const DEFAULTS: TopicDefaults = TopicDefaults {
    num_partitions: 3,
    replication_factor: 1,
};

/// Rules with one list, and one value that is refused.
pub(super) struct TestRules;

impl ConfigRules for TestRules {
    fn is_list(&self, _: ResourceType, key: &str) -> bool {
        key == "cleanup.policy"
    }

    fn default_value(&self, _: ResourceType, key: &str) -> Option<String> {
        (key == "cleanup.policy").then(|| "delete".to_owned())
    }

    fn validate(
        &self,
        _: &ConfigResource,
        configs: &ConfigMap,
        _: &ConfigMap,
    ) -> Result<(), ClusterError> {
        match configs.iter().find(|(_, value)| *value == "bad") {
            Some((key, _)) => Err(ClusterError::InvalidConfig(format!("bad {key}"))),
            None => Ok(()),
        }
    }
}

/// Applies records that fit.
pub(super) fn apply(image: &ClusterImage, records: &[MetadataRecord]) -> ClusterImage {
    let last_offset = image.offset() + records.len() as i64;
    image
        .apply(records, last_offset, 1)
        .expect("records that fit")
        .0
}

/// A cluster of these brokers, all active, with ELR in use.
pub(super) fn cluster_of(brokers: &[i32]) -> ClusterImage {
    let feature = |name: &str, feature_level| {
        FeatureLevelRecord {
            name: name.to_owned(),
            feature_level,
        }
        .into()
    };
    let records = [
        feature(METADATA_VERSION_FEATURE, 33),
        feature(ELR_FEATURE, 1),
    ];
    let mut image = apply(&ClusterImage::empty("test-cluster"), &records);
    for id in brokers {
        image = with_broker(&image, *id);
    }
    image
}

pub(super) fn with_broker(image: &ClusterImage, id: i32) -> ClusterImage {
    let (records, epoch) = register_broker(image, registration(id));
    let image = apply(image, &records);
    apply(
        &image,
        &unfence_broker(&image, BrokerId(id), epoch).expect("the broker is registered"),
    )
}

pub(super) fn registration(id: i32) -> BrokerRegistrationRequest {
    BrokerRegistrationRequest {
        id: BrokerId(id),
        incarnation_id: Uuid::from_u128(id as u128),
        end_points: Vec::new(),
        features: Vec::new(),
        rack: None,
        log_dirs: vec![directory(id)],
    }
}

/// The only log directory of a broker.
pub(super) fn directory(id: i32) -> Uuid {
    Uuid::from_u128(1000 + id as u128)
}

/// Draws topic ids 1, 2, 3 …
pub(super) fn ids() -> impl FnMut() -> TopicId {
    ids_from(0)
}

pub(super) fn ids_from(mut last: u128) -> impl FnMut() -> TopicId {
    move || {
        last += 1;
        TopicId(Uuid::from_u128(last))
    }
}

pub(super) fn topic(name: &str, num_partitions: i32, replication_factor: i16) -> NewTopic {
    let (assignments, configs) = (Vec::new(), Vec::new());
    NewTopic {
        name: name.to_owned(),
        num_partitions,
        replication_factor,
        assignments,
        configs,
    }
}

/// The cluster with one more topic.
pub(super) fn with_topic(image: &ClusterImage, name: &str, num_partitions: i32) -> ClusterImage {
    let mut ids = ids_from(image.offset() as u128 + 100);
    let created = super::create_topics::create_topics(
        image,
        &[topic(name, num_partitions, 1)],
        DEFAULTS,
        &TestRules,
        &mut ids,
    );
    let (records, results) = created.expect("a request of one topic");
    assert_eq!(results[0].1.as_ref().err(), None);
    apply(image, &records)
}
