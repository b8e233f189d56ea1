//! What configuration keys mean, for the functions that judge changes: the topic keys are storage's table, the
//! broker keys this crate's.

use std::sync::Arc;

use highwater_replication::cluster::configs::ConfigRules;
use highwater_replication::cluster::{
    ClusterError, ConfigMap, ConfigResource, ReplicationDefaults, ResourceType, topic_name,
};
use highwater_storage::LogConfig;
use highwater_storage::log_config::{ConfigType as TopicConfigType, topic_config_key};

use crate::config::{BrokerConfig, ConfigType, DynamicConfig, keys};

/// What the configuration of this controller says about replicas where the metadata says nothing.
pub fn replication_defaults(config: &BrokerConfig) -> ReplicationDefaults {
    let default = ReplicationDefaults::default();
    let of_topics = |key: &str| config.topic_defaults.get(key);
    ReplicationDefaults {
        min_insync_replicas: of_topics("min.insync.replicas")
            .and_then(|text| text.parse().ok())
            .unwrap_or(default.min_insync_replicas),
        unclean_leader_election_enable: of_topics("unclean.leader.election.enable")
            .and_then(|text| text.parse().ok())
            .unwrap_or(default.unclean_leader_election_enable),
    }
}

/// The rules of this release.
#[derive(Debug, Clone)]
pub struct ServerConfigRules {
    config: Arc<DynamicConfig>,
}

impl ServerConfigRules {
    /// Rules with the defaults of the configuration in effect.
    pub fn new(config: Arc<DynamicConfig>) -> Self {
        Self { config }
    }
}

impl ConfigRules for ServerConfigRules {
    fn is_list(&self, resource_type: ResourceType, key: &str) -> bool {
        match resource_type {
            ResourceType::Topic => {
                topic_config_key(key).is_some_and(|key| key.kind == TopicConfigType::List)
            }
            ResourceType::Broker => {
                keys::find(key).is_some_and(|key| key.config_type == ConfigType::List)
            }
            ResourceType::ClientMetrics | ResourceType::Group => false,
        }
    }

    fn default_value(&self, resource_type: ResourceType, key: &str) -> Option<String> {
        let default = match resource_type {
            // The broker's own default counts for nothing here, as in Kafka: what is set must stand by itself.
            ResourceType::Topic => topic_config_key(key)?.default,
            ResourceType::Broker => keys::find(key)?.default,
            ResourceType::ClientMetrics | ResourceType::Group => None,
        };
        default.map(str::to_owned)
    }

    fn validate(
        &self,
        resource: &ConfigResource,
        configs: &ConfigMap,
        _previous: &ConfigMap,
    ) -> Result<(), ClusterError> {
        let invalid_request = |text: &str| Err(ClusterError::InvalidRequest(text.to_owned()));
        match resource.resource_type {
            ResourceType::Topic if resource.name.is_empty() => {
                invalid_request("Default topic resources are not allowed.")
            }
            ResourceType::Topic => {
                topic_name::validate(&resource.name)?;
                let current = self.config.current();
                let overrides = configs
                    .iter()
                    .map(|(key, value)| (key.as_str(), value.as_str()));
                LogConfig::from_overrides(&current.topic_defaults, overrides)
                    .map(|_| ())
                    .map_err(|error| ClusterError::InvalidConfig(error.to_string()))
            }
            // The broker that received the change has judged its keys.
            ResourceType::Broker => Ok(()),
            ResourceType::Group if resource.name.is_empty() => {
                invalid_request("Default group resources are not allowed.")
            }
            ResourceType::ClientMetrics if resource.name.is_empty() => {
                invalid_request("Subscription name can't be empty")
            }
            ResourceType::Group | ResourceType::ClientMetrics => match configs.keys().next() {
                None => Ok(()),
                // A key that is accepted must act.
                Some(key) => Err(ClusterError::InvalidConfig(format!(
                    "{key} cannot be set: configurations of {} resources are not supported by this broker",
                    resource.resource_type
                ))),
            },
        }
    }
}
