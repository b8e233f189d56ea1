//! What a topic's configuration means for its partitions on this broker.

use std::collections::BTreeMap;

use highwater_storage::{BrokerId, LogConfig};

use crate::cluster::ClusterImage;
use crate::cluster::topic_rules::{OBSERVER_REPLICAS, parse_observers};
use crate::state::leader::LeaderConfig;
use crate::state::replication_quota::ThrottledReplicas;

const LEADER_THROTTLED_REPLICAS: &str = "leader.replication.throttled.replicas";
const FOLLOWER_THROTTLED_REPLICAS: &str = "follower.replication.throttled.replicas";

/// The topic defaults that the broker's own configuration gives, by topic key.
pub type LogDefaults = BTreeMap<&'static str, String>;

/// The settings of a topic that its partitions look at.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicSettings {
    /// The settings of its logs.
    pub log: LogConfig,
    /// Brokers whose replicas follow and serve reads, but are never in sync nor elected.
    pub observers: Vec<BrokerId>,
    /// `leader.replication.throttled.replicas`.
    pub leader_throttled: ThrottledReplicas,
    /// `follower.replication.throttled.replicas`.
    pub follower_throttled: ThrottledReplicas,
}

impl From<LogConfig> for TopicSettings {
    fn from(log: LogConfig) -> Self {
        Self {
            log,
            observers: Vec::new(),
            leader_throttled: ThrottledReplicas::None,
            follower_throttled: ThrottledReplicas::None,
        }
    }
}

impl TopicSettings {
    /// The settings of a topic: Kafka's defaults, then the broker's, then its own.
    #[must_use]
    pub fn of(image: &ClusterImage, topic: &str, defaults: &LogDefaults) -> Self {
        let configs = image.topic_configs(topic);
        let own = configs.iter().flat_map(|configs| configs.iter());
        let overrides = own.map(|(key, value)| (key.as_str(), value.as_str()));
        let log = LogConfig::from_overrides(defaults, overrides).unwrap_or_else(|error| {
            // The controller has checked it; a record of another version may still hold more.
            tracing::error!(topic, %error, "topic configuration is not valid, using the defaults");
            LogConfig::from_overrides(defaults, []).unwrap_or_default()
        });
        let own = |key: &str| configs.and_then(|configs| configs.get(key));
        let throttled = |key| {
            own(key).map_or(ThrottledReplicas::None, |text| {
                ThrottledReplicas::parse(text)
            })
        };
        Self {
            log,
            observers: own(OBSERVER_REPLICAS).map_or_else(Vec::new, |text| parse_observers(text)),
            leader_throttled: throttled(LEADER_THROTTLED_REPLICAS),
            follower_throttled: throttled(FOLLOWER_THROTTLED_REPLICAS),
        }
    }

    /// What a leader looks at.
    pub(super) fn leader_config(&self) -> LeaderConfig {
        LeaderConfig {
            min_insync_replicas: usize::try_from(self.log.min_insync_replicas).unwrap_or(1),
            observers: self.observers.clone(),
        }
    }
}
