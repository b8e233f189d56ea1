//! What the configurations say about the replicas of one topic: how many must be in sync, whether an unclean election
//! is allowed, and which replicas only observe.

use highwater_storage::types::{BrokerId, TopicId};

use super::image::{ClusterImage, ConfigResource, PartitionImage, TopicImage};

/// How many in-sync replicas acks=all needs.
pub(super) const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";
const UNCLEAN_LEADER_ELECTION_ENABLE: &str = "unclean.leader.election.enable";
/// Brokers whose replicas follow and serve reads, but are never in the ISR and never elected. Highwater's own key.
pub const OBSERVER_REPLICAS: &str = "highwater.observer.replicas";

/// What the controller's own configuration says where the metadata says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicationDefaults {
    /// `min.insync.replicas`, for topics of a cluster whose default is not in the metadata.
    pub min_insync_replicas: i32,
    /// `unclean.leader.election.enable`, for topics that do not say.
    pub unclean_leader_election_enable: bool,
}

impl Default for ReplicationDefaults {
    /// Kafka's defaults.
    fn default() -> Self {
        Self {
            min_insync_replicas: 1,
            unclean_leader_election_enable: false,
        }
    }
}

/// The rules of one topic, read once for all of its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicRules {
    /// The topic.
    pub topic_id: TopicId,
    /// `min.insync.replicas` as configured.
    pub min_insync_replicas: usize,
    /// Whether a replica outside the ISR may lead when no other is left.
    pub unclean_leader_election: bool,
    /// Brokers whose replicas only observe.
    pub observers: Vec<BrokerId>,
    /// Whether eligible leader replicas are kept (KIP-966).
    pub is_elr_enabled: bool,
}

impl TopicRules {
    /// The rules of `topic`.
    pub fn of(image: &ClusterImage, topic: &TopicImage, defaults: &ReplicationDefaults) -> Self {
        let configs = image.topic_configs(&topic.name);
        let of_topic = |key: &str| configs.and_then(|configs| configs.get(key));
        let of_cluster = |key: &str| image.configs(&ConfigResource::default_broker())?.get(key);
        // Values in the metadata were validated; one that is not read counts as not set.
        let min_insync_replicas = of_topic(MIN_INSYNC_REPLICAS)
            .or_else(|| of_cluster(MIN_INSYNC_REPLICAS))
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(defaults.min_insync_replicas);
        let unclean_leader_election = of_topic(UNCLEAN_LEADER_ELECTION_ENABLE)
            .and_then(|text| text.trim().to_ascii_lowercase().parse().ok())
            .unwrap_or(defaults.unclean_leader_election_enable);
        Self {
            topic_id: topic.id,
            min_insync_replicas: usize::try_from(min_insync_replicas).unwrap_or(0),
            unclean_leader_election,
            observers: of_topic(OBSERVER_REPLICAS)
                .map_or_else(Vec::new, |text| parse_observers(text)),
            is_elr_enabled: image.is_elr_enabled(),
        }
    }

    /// Whether the replica on `broker` only observes.
    pub fn is_observer(&self, broker: BrokerId) -> bool {
        self.observers.contains(&broker)
    }

    /// The first replica that may lead: the preferred leader.
    pub fn preferred_leader(&self, replicas: &[BrokerId]) -> Option<BrokerId> {
        replicas.iter().copied().find(|id| !self.is_observer(*id))
    }

    /// Whether the partition is led by its preferred leader.
    pub fn has_preferred_leader(&self, partition: &PartitionImage) -> bool {
        partition.leader.is_some() && partition.leader == self.preferred_leader(&partition.replicas)
    }

    /// How many in-sync replicas a partition on `replicas` needs for acks=all: never more than can be in sync.
    pub fn effective_min_isr(&self, replicas: &[BrokerId]) -> usize {
        let voters = replicas.iter().filter(|id| !self.is_observer(**id)).count();
        self.min_insync_replicas.min(voters)
    }
}

/// The broker ids of a value of [`OBSERVER_REPLICAS`].
pub fn parse_observers(text: &str) -> Vec<BrokerId> {
    let ids = text.split(',').filter_map(|id| id.trim().parse().ok());
    ids.map(BrokerId).collect()
}
