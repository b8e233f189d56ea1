//! What changed between two images, for those who act on changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highwater_storage::types::{BrokerId, TopicId};

use super::image::{ClusterImage, ConfigResource, TopicImage};

/// What changed from one image to a later one. Act on it in this order: deleted topics, then changed partitions (of
/// created topics too), then configurations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterDelta {
    /// Topics that are gone, as they were before; a name among them may be in use again under another id.
    pub deleted_topics: Vec<Arc<TopicImage>>,
    /// Topics that are new.
    pub created_topics: BTreeSet<TopicId>,
    /// Partitions that are new or changed, by topic; those of created topics are among them.
    pub changed_partitions: BTreeMap<TopicId, BTreeSet<i32>>,
    /// Resources whose configurations changed; deleted topics that had some are among them.
    pub changed_configs: BTreeSet<ConfigResource>,
    /// Brokers that registered, left, or were fenced or unfenced.
    pub changed_brokers: BTreeSet<BrokerId>,
    /// Whether a finalized feature level changed.
    pub features_changed: bool,
}

impl ClusterDelta {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// Adds what changed right after this delta, as if it were one change.
    pub fn merge(&mut self, later: ClusterDelta) {
        for topic in later.deleted_topics {
            self.changed_partitions.remove(&topic.id);
            // A topic that was created and deleted in between was never there for the reader of this delta.
            if !self.created_topics.remove(&topic.id) {
                self.deleted_topics.push(topic);
            }
        }
        self.created_topics.extend(later.created_topics);
        for (id, partitions) in later.changed_partitions {
            self.changed_partitions
                .entry(id)
                .or_default()
                .extend(partitions);
        }
        self.changed_configs.extend(later.changed_configs);
        self.changed_brokers.extend(later.changed_brokers);
        self.features_changed |= later.features_changed;
    }

    /// What changed from `before` to `after`, when the records in between are not at hand: `after` came as a snapshot.
    pub fn between(before: &ClusterImage, after: &ClusterImage) -> Self {
        let mut delta = Self::default();
        let deleted = before
            .topics()
            .filter(|topic| after.topic_by_id(topic.id).is_none());
        delta.deleted_topics.extend(deleted.cloned());
        for topic in after.topics() {
            let known = before.topic_by_id(topic.id);
            if known.is_some_and(|known| Arc::ptr_eq(known, topic)) {
                continue;
            }
            if known.is_none() {
                delta.created_topics.insert(topic.id);
            }
            let changed: BTreeSet<i32> = (0..)
                .zip(&topic.partitions)
                .filter(|(index, partition)| {
                    known.and_then(|known| known.partition(*index)) != Some(*partition)
                })
                .map(|(index, _)| index)
                .collect();
            if !changed.is_empty() {
                delta.changed_partitions.insert(topic.id, changed);
            }
        }
        for (one, other) in [(before, after), (after, before)] {
            let configs = one
                .config_resources()
                .filter(|(resource, configs)| other.configs(resource) != Some(*configs));
            delta
                .changed_configs
                .extend(configs.map(|(resource, _)| resource.clone()));
            let brokers = one.brokers().iter();
            let brokers = brokers.filter(|(id, broker)| other.broker(**id) != Some(*broker));
            delta.changed_brokers.extend(brokers.map(|(id, _)| *id));
        }
        delta.features_changed = before.features() != after.features();
        delta
    }
}
