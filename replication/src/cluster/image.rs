//! What the cluster is at one offset of the metadata log: immutable, shared by `Arc`, cheap to derive the next from.
//!
//! The maps of topics and configurations are persistent trees: a new version shares all but the changed paths with
//! the one before it, so that a change costs the same with 10,000 partitions as with one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use highwater_storage::types::{BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, TopicId};
use rpds::{HashTrieMapSync, RedBlackTreeMapSync};
use uuid::Uuid;

use super::inert::{InertKey, InertRecord};
use super::records::{Endpoint, FeatureRange};

/// The feature whose level says which metadata records may be used.
pub const METADATA_VERSION_FEATURE: &str = "metadata.version";
/// The feature of eligible leader replicas (KIP-966).
pub const ELR_FEATURE: &str = "eligible.leader.replicas.version";

/// The kinds of resource that have configurations, with Kafka's ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceType {
    /// A topic.
    Topic,
    /// A broker; the empty name is the default of all brokers.
    Broker,
    /// A subscription to client metrics (KIP-714).
    ClientMetrics,
    /// A group.
    Group,
}

impl ResourceType {
    /// Kafka's id, as in requests and in `ConfigRecord`.
    pub fn id(self) -> i8 {
        match self {
            Self::Topic => 2,
            Self::Broker => 4,
            Self::ClientMetrics => 16,
            Self::Group => 32,
        }
    }

    /// The kind with this id, if its configurations are kept in the metadata.
    pub fn from_id(id: i8) -> Option<Self> {
        [Self::Topic, Self::Broker, Self::ClientMetrics, Self::Group]
            .into_iter()
            .find(|kind| kind.id() == id)
    }
}

impl fmt::Display for ResourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Topic => "TOPIC",
            Self::Broker => "BROKER",
            Self::ClientMetrics => "CLIENT_METRICS",
            Self::Group => "GROUP",
        })
    }
}

/// Something that has configurations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigResource {
    /// What it is.
    pub resource_type: ResourceType,
    /// Its name; a broker's is its id, empty for the default of all brokers.
    pub name: Arc<str>,
}

impl ConfigResource {
    /// The configurations of a topic.
    pub fn topic(name: impl Into<Arc<str>>) -> Self {
        Self {
            resource_type: ResourceType::Topic,
            name: name.into(),
        }
    }

    /// The configurations of one broker.
    pub fn broker(id: BrokerId) -> Self {
        Self {
            resource_type: ResourceType::Broker,
            name: id.0.to_string().into(),
        }
    }

    /// The configurations that hold for all brokers.
    pub fn default_broker() -> Self {
        Self {
            resource_type: ResourceType::Broker,
            name: "".into(),
        }
    }
}

/// The configurations that were set on one resource: key to value.
pub type ConfigMap = BTreeMap<String, String>;

/// What the metadata says of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionImage {
    /// Assigned brokers, the preferred leader first.
    pub replicas: Vec<BrokerId>,
    /// In-sync replicas.
    pub isr: Vec<BrokerId>,
    /// Replicas that a reassignment removes.
    pub removing_replicas: Vec<BrokerId>,
    /// Replicas that a reassignment adds.
    pub adding_replicas: Vec<BrokerId>,
    /// Log directory of each replica, in the order of `replicas` (KIP-858).
    pub directories: Vec<Uuid>,
    /// Eligible leader replicas (KIP-966).
    pub eligible_leader_replicas: Vec<BrokerId>,
    /// Last known leader while nobody is eligible (KIP-966).
    pub last_known_elr: Vec<BrokerId>,
    /// The leader, if there is one.
    pub leader: Option<BrokerId>,
    /// Whether the leader still recovers from an unclean election.
    pub recovering: bool,
    /// Epoch of the leader.
    pub leader_epoch: LeaderEpoch,
    /// Version of this entry; each change adds one.
    pub partition_epoch: PartitionEpoch,
}

/// One incarnation of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicImage {
    /// Name of the topic.
    pub name: Arc<str>,
    /// Id of this incarnation.
    pub id: TopicId,
    /// The partitions, by number.
    pub partitions: Vec<Arc<PartitionImage>>,
}

impl TopicImage {
    /// The partition with this number.
    pub fn partition(&self, partition: i32) -> Option<&Arc<PartitionImage>> {
        self.partitions.get(usize::try_from(partition).ok()?)
    }
}

/// What the metadata says of one broker run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerRegistration {
    /// The broker.
    pub id: BrokerId,
    /// Offset of the registration's record.
    pub epoch: BrokerEpoch,
    /// Id of this run of the process.
    pub incarnation_id: Uuid,
    /// Advertised listeners.
    pub end_points: Vec<Endpoint>,
    /// Supported features.
    pub features: Vec<FeatureRange>,
    /// Rack of the broker.
    pub rack: Option<String>,
    /// A fenced broker leads nothing and is in no ISR.
    pub fenced: bool,
    /// Whether it is shutting down in a controlled way.
    pub in_controlled_shutdown: bool,
    /// Ids of its online log directories.
    pub log_dirs: Vec<Uuid>,
    /// Log directories that take no new replicas; none until the broker says.
    pub cordoned_log_dirs: Option<Vec<Uuid>>,
}

impl BrokerRegistration {
    /// Whether the broker may lead and enter an ISR.
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }

    /// Where it is reached over the listener of this name.
    pub fn end_point(&self, listener: &str) -> Option<&Endpoint> {
        let mut end_points = self.end_points.iter();
        end_points.find(|end_point| end_point.name == listener)
    }
}

/// What the metadata says of one controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerRegistration {
    /// Id of this run of the process.
    pub incarnation_id: Uuid,
    /// Listeners of the controller.
    pub end_points: Vec<Endpoint>,
    /// Supported features.
    pub features: Vec<FeatureRange>,
}

/// The state of the cluster at one offset of the metadata log.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterImage {
    pub(super) offset: i64,
    pub(super) epoch: i32,
    pub(super) cluster_id: Arc<str>,
    pub(super) features: Arc<BTreeMap<String, i16>>,
    pub(super) brokers: Arc<BTreeMap<BrokerId, Arc<BrokerRegistration>>>,
    pub(super) controllers: Arc<BTreeMap<i32, Arc<ControllerRegistration>>>,
    pub(super) topic_ids: RedBlackTreeMapSync<Arc<str>, TopicId>,
    pub(super) topics: HashTrieMapSync<TopicId, Arc<TopicImage>>,
    /// Topics whose names collide once `.` is read as `_`: unified name to the topics that have it.
    pub(super) collisions: HashTrieMapSync<Arc<str>, Arc<Vec<Arc<str>>>>,
    pub(super) configs: RedBlackTreeMapSync<ConfigResource, Arc<ConfigMap>>,
    pub(super) next_producer_id: i64,
    pub(super) producer_ids_record_seen: bool,
    pub(super) partition_count: usize,
    /// What is kept and not acted on.
    pub(super) inert: Arc<BTreeMap<InertKey, InertRecord>>,
}

impl ClusterImage {
    /// The image before the first record of the metadata log.
    pub fn empty(cluster_id: impl Into<Arc<str>>) -> Self {
        Self {
            offset: -1,
            epoch: -1,
            cluster_id: cluster_id.into(),
            features: Arc::default(),
            brokers: Arc::default(),
            controllers: Arc::default(),
            topic_ids: RedBlackTreeMapSync::new_sync(),
            topics: HashTrieMapSync::new_sync(),
            collisions: HashTrieMapSync::new_sync(),
            configs: RedBlackTreeMapSync::new_sync(),
            next_producer_id: 0,
            producer_ids_record_seen: false,
            partition_count: 0,
            inert: Arc::default(),
        }
    }

    /// Offset of the last record that this image contains, -1 for none.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// Epoch of the controller that wrote that record, -1 for none.
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// Id of the cluster.
    pub fn cluster_id(&self) -> &Arc<str> {
        &self.cluster_id
    }

    /// Finalized feature levels by name; level 0 is absent.
    pub fn features(&self) -> &BTreeMap<String, i16> {
        &self.features
    }

    /// Finalized level of a feature, 0 when it is off.
    pub fn feature_level(&self, name: &str) -> i16 {
        self.features.get(name).copied().unwrap_or(0)
    }

    /// Whether eligible leader replicas are in use.
    pub fn is_elr_enabled(&self) -> bool {
        self.feature_level(ELR_FEATURE) > 0
    }

    /// All registered brokers, fenced ones too, by id.
    pub fn brokers(&self) -> &BTreeMap<BrokerId, Arc<BrokerRegistration>> {
        &self.brokers
    }

    /// The registration of a broker.
    pub fn broker(&self, id: BrokerId) -> Option<&Arc<BrokerRegistration>> {
        self.brokers.get(&id)
    }

    /// Whether the broker is registered, not fenced and not shutting down.
    pub fn is_active(&self, id: BrokerId) -> bool {
        self.broker(id).is_some_and(|broker| broker.is_active())
    }

    /// All registered controllers by id.
    pub fn controllers(&self) -> &BTreeMap<i32, Arc<ControllerRegistration>> {
        &self.controllers
    }

    /// The topic that has this name now.
    pub fn topic(&self, name: &str) -> Option<&Arc<TopicImage>> {
        self.topics.get(self.topic_ids.get(name)?)
    }

    /// The topic with this id, if it was not deleted.
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<TopicImage>> {
        self.topics.get(&id)
    }

    /// The partition of the topic that has this name now.
    pub fn partition(&self, topic: &str, partition: i32) -> Option<&Arc<PartitionImage>> {
        self.topic(topic)?.partition(partition)
    }

    /// All topics in the order of their names.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<TopicImage>> {
        self.topic_ids.values().filter_map(|id| self.topics.get(id))
    }

    /// The topics from `name` on, in the order of their names.
    pub fn topics_from<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arc<TopicImage>> {
        let from = (std::ops::Bound::Included(name), std::ops::Bound::Unbounded);
        self.topic_ids
            .range::<str, _>(from)
            .filter_map(|(_, id)| self.topics.get(id))
    }

    /// How many topics there are.
    pub fn topic_count(&self) -> usize {
        self.topics.size()
    }

    /// How many partitions there are in all.
    pub fn partition_count(&self) -> usize {
        self.partition_count
    }

    /// What was set on a resource; `None` when nothing was.
    pub fn configs(&self, resource: &ConfigResource) -> Option<&Arc<ConfigMap>> {
        self.configs.get(resource)
    }

    /// What was set on a topic; `None` when nothing was.
    pub fn topic_configs(&self, name: &str) -> Option<&Arc<ConfigMap>> {
        self.configs(&ConfigResource::topic(name))
    }

    /// All resources that have configurations of their own, with these.
    pub fn config_resources(&self) -> impl Iterator<Item = (&ConfigResource, &Arc<ConfigMap>)> {
        self.configs.iter()
    }

    /// First producer id of the next block.
    pub fn next_producer_id(&self) -> i64 {
        self.next_producer_id
    }

    /// A topic whose name becomes `name`'s when `.` is read as `_`, if there is one.
    pub fn colliding_topic(&self, name: &str) -> Option<&Arc<str>> {
        self.collisions
            .get(unify_collision_chars(name).as_str())?
            .first()
    }
}

/// The name under which names that differ in `.` and `_` only are the same: metric names cannot tell them apart.
pub(super) fn unify_collision_chars(name: &str) -> String {
    name.replace('.', "_")
}

/// Whether a name may collide with another.
pub(super) fn has_collision_chars(name: &str) -> bool {
    name.contains(['.', '_'])
}
