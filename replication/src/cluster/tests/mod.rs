//! Tests of requests against images, by concern; what they share is here.

mod alter_partition;
mod apply;
mod assign_dirs;
mod broker_life;
mod churn;
mod configs;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod elections;
mod features;
mod inert;
mod liveness;
mod lone_broker;
mod model;
mod observers;
mod placement;
mod reassign;
mod registration;

use highwater_storage::types::{BrokerId, TopicId};
use uuid::Uuid;

use super::configs::ConfigRules;
use super::create_topics::{NewTopic, TopicDefaults};
use super::image::PartitionImage;
use super::image::{ELR_FEATURE, METADATA_VERSION_FEATURE};
use super::records::FeatureLevelRecord;
use super::topic_rules::ReplicationDefaults;
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
    unfence(&registration::restart(image, id, None), id)
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

/// The cluster with topic `name`, whose partitions have these replicas, and with these configurations.
pub(super) fn with_replicas(
    image: &ClusterImage,
    name: &str,
    assignments: &[&[i32]],
    configs: &[(&str, &str)],
) -> ClusterImage {
    let numbered = assignments.iter().enumerate();
    let configs = configs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned())));
    let request = NewTopic {
        assignments: numbered
            .map(|(index, brokers)| (index as i32, brokers.to_vec()))
            .collect(),
        configs: configs.collect(),
        ..topic(name, -1, -1)
    };
    let mut ids = ids_from(image.offset() as u128 + 100);
    let created =
        super::create_topics::create_topics(image, &[request], DEFAULTS, &TestRules, &mut ids);
    let (records, results) = created.expect("a request of one topic");
    assert_eq!(results[0].1.as_ref().err(), None);
    apply(image, &records)
}

pub(super) const RULES: ReplicationDefaults = ReplicationDefaults {
    min_insync_replicas: 1,
    unclean_leader_election_enable: false,
};

/// Partition 0 of topic `t`.
pub(super) fn partition(image: &ClusterImage) -> &PartitionImage {
    image.partition("t", 0).expect("the partition")
}

pub(super) fn broker_ids(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

/// ISR, eligible leader replicas, last known leader, leader, leader epoch, partition epoch.
pub(super) type State = (Vec<i32>, Vec<i32>, Vec<i32>, i32, i32, i32);

/// Partition 0 of topic `t` in short.
pub(super) fn state(image: &ClusterImage) -> State {
    let raw = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect::<Vec<_>>();
    let partition = partition(image);
    (
        raw(&partition.isr),
        raw(&partition.eligible_leader_replicas),
        raw(&partition.last_known_elr),
        partition.leader.map_or(-1, |leader| leader.0),
        partition.leader_epoch.0,
        partition.partition_epoch.0,
    )
}

pub(super) fn fence(image: &ClusterImage, id: i32) -> ClusterImage {
    let records = super::broker_changes::fence_broker(image, &RULES, BrokerId(id));
    apply(image, &records.expect("registered"))
}

pub(super) fn unfence(image: &ClusterImage, id: i32) -> ClusterImage {
    let id = BrokerId(id);
    let epoch = image.broker(id).expect("registered").epoch;
    let records = super::broker_changes::unfence_broker(image, &RULES, id, epoch);
    apply(image, &records.expect("registered"))
}

/// The cluster without eligible leader replicas.
pub(super) fn without_elr(image: &ClusterImage) -> ClusterImage {
    let record = FeatureLevelRecord {
        name: ELR_FEATURE.to_owned(),
        feature_level: 0,
    };
    apply(image, &[record.into()])
}

/// What must hold for every partition, whatever happened (I10 and I11 of the scenarios).
pub(super) fn assert_invariants(image: &ClusterImage) {
    for topic in image.topics() {
        let rules = super::TopicRules::of(image, topic, &RULES);
        for partition in &topic.partitions {
            let what = format!("{} {partition:?}", topic.name);
            let (isr, elr) = (&partition.isr, &partition.eligible_leader_replicas);
            match partition.leader {
                Some(leader) => assert!(isr.contains(&leader), "leader outside the ISR: {what}"),
                None => assert!(
                    isr.len() <= 1 || image.is_elr_enabled(),
                    "no leader with an ISR: {what}"
                ),
            }
            let lone = |id: &BrokerId| partition.leader.is_none() && isr.as_slice() == [*id];
            for id in isr {
                assert!(image.is_active(*id) || lone(id), "{id} in the ISR: {what}");
                assert!(!elr.contains(id), "in ISR and ELR: {what}");
                assert!(partition.replicas.contains(id), "no replica: {what}");
                assert!(!rules.is_observer(*id), "an observer: {what}");
            }
            assert!(
                elr.iter().all(|id| partition.replicas.contains(id)),
                "{what}"
            );
            if isr.len() >= rules.effective_min_isr(&partition.replicas) {
                assert_eq!(*elr, [], "ELR with enough in sync: {what}");
            }
        }
    }
}
