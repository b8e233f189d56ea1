//! Changes of configurations: AlterConfigs, IncrementalAlterConfigs and those that come with CreateTopics.
//!
//! All of them end in the same check, [`ConfigRules::validate`], so that no path takes a value that another refuses.

use super::error::{ClusterError, check_record_count};
use super::image::{ClusterImage, ConfigMap, ConfigResource, ResourceType};
use super::observers::become_observers;
use super::records::{ClearElrRecord, ConfigRecord, MetadataRecord};
use super::topic_rules::{MIN_INSYNC_REPLICAS, OBSERVER_REPLICAS, parse_observers};

/// Longest value of a configuration.
const MAX_CONFIG_VALUE_LENGTH: usize = i16::MAX as usize;

/// What the keys mean: the tables of keys live elsewhere.
pub trait ConfigRules {
    /// Whether the key's value is a list, to which something can be added.
    fn is_list(&self, resource_type: ResourceType, key: &str) -> bool;
    /// The value of the key when nothing is set.
    fn default_value(&self, resource_type: ResourceType, key: &str) -> Option<String>;
    /// Refuses `configs`, all that would then be set on the resource, if something is wrong with them. `previous` is
    /// what is set now.
    fn validate(
        &self,
        resource: &ConfigResource,
        configs: &ConfigMap,
        previous: &ConfigMap,
    ) -> Result<(), ClusterError>;
}

/// One change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigOperation {
    /// The key gets this value.
    Set(String),
    /// The key is no longer set.
    Delete,
    /// The values that are not in the list yet are added to it.
    Append(String),
    /// The values are taken from the list.
    Subtract(String),
}

/// A record that sets a key, or removes it when there is no value.
pub(super) fn config_record(
    resource: &ConfigResource,
    key: &str,
    value: Option<String>,
) -> MetadataRecord {
    ConfigRecord {
        resource_type: resource.resource_type.id(),
        resource_name: resource.name.to_string(),
        name: key.to_owned(),
        value,
    }
    .into()
}

/// IncrementalAlterConfigs for one resource: all of the operations or none.
pub fn incremental_alter_configs(
    image: &ClusterImage,
    resource: &ConfigResource,
    operations: &[(String, ConfigOperation)],
    rules: &dyn ConfigRules,
) -> Result<Vec<MetadataRecord>, ClusterError> {
    let changes = resolve_operations(image, resource, operations, rules)?;
    let records = validated_records(image, resource, changes, rules)?;
    check_existence(image, resource)?;
    Ok(records)
}

/// The configurations of a resource that the same request makes, and that is therefore not in the image.
pub(super) fn alter_new_resource(
    image: &ClusterImage,
    resource: &ConfigResource,
    operations: &[(String, ConfigOperation)],
    rules: &dyn ConfigRules,
) -> Result<Vec<MetadataRecord>, ClusterError> {
    let changes = resolve_operations(image, resource, operations, rules)?;
    validated_records(image, resource, changes, rules)
}

/// AlterConfigs for one resource: afterwards these keys are set and no other.
pub fn legacy_alter_configs(
    image: &ClusterImage,
    resource: &ConfigResource,
    configs: &ConfigMap,
    rules: &dyn ConfigRules,
) -> Result<Vec<MetadataRecord>, ClusterError> {
    let current = image.configs(resource);
    let set = configs
        .iter()
        .map(|(key, value)| (key.clone(), Some(value.clone())));
    let removed = current.into_iter().flat_map(|current| current.keys());
    let removed = removed
        .filter(|key| !configs.contains_key(*key))
        .map(|key| (key.clone(), None));
    let changes: Vec<(String, Option<String>)> = set.chain(removed).collect();
    let records = validated_records(image, resource, changes, rules)?;
    check_existence(image, resource)?;
    Ok(records)
}

/// Turns operations into the value that each key has afterwards.
fn resolve_operations(
    image: &ClusterImage,
    resource: &ConfigResource,
    operations: &[(String, ConfigOperation)],
    rules: &dyn ConfigRules,
) -> Result<Vec<(String, Option<String>)>, ClusterError> {
    let current = image.configs(resource);
    let resolve = |(key, operation): &(String, ConfigOperation)| {
        let list = |verb: &str| -> Result<Vec<String>, ClusterError> {
            if !rules.is_list(resource.resource_type, key) {
                return Err(ClusterError::InvalidConfig(format!(
                    "Can't {verb} to key {key} because its type is not LIST."
                )));
            }
            let value = current.and_then(|current| current.get(key)).cloned();
            let value = value
                .or_else(|| rules.default_value(resource.resource_type, key))
                .unwrap_or_default();
            Ok(value
                .split(',')
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect())
        };
        let value = match operation {
            ConfigOperation::Set(value) => Some(value.clone()),
            ConfigOperation::Delete => None,
            ConfigOperation::Append(values) => {
                let mut list = list("APPEND")?;
                for value in values.split(',') {
                    if !list.iter().any(|part| part == value) {
                        list.push(value.to_owned());
                    }
                }
                Some(list.join(","))
            }
            ConfigOperation::Subtract(values) => {
                let mut list = list("SUBTRACT")?;
                for value in values.split(',') {
                    if let Some(position) = list.iter().position(|part| part == value) {
                        list.remove(position);
                    }
                }
                Some(list.join(","))
            }
        };
        Ok((key.clone(), value))
    };
    operations.iter().map(resolve).collect()
}

/// The records for `changes`, if the configurations are good afterwards.
fn validated_records(
    image: &ClusterImage,
    resource: &ConfigResource,
    changes: Vec<(String, Option<String>)>,
    rules: &dyn ConfigRules,
) -> Result<Vec<MetadataRecord>, ClusterError> {
    let nothing = ConfigMap::new();
    let previous = image
        .configs(resource)
        .map_or(&nothing, |configs| &**configs);
    let mut configs = previous.clone();
    let mut records = Vec::with_capacity(changes.len());
    let (mut min_isr_changed, mut observers_changed) = (false, false);
    for (key, value) in changes {
        // A broker reloads what a record names, so it gets one even for the value that it has (KAFKA-14136).
        if previous.get(&key) == value.as_ref() && resource.resource_type != ResourceType::Broker {
            continue;
        }
        check_min_isr_change(image, resource, &key, value.is_some())?;
        match &value {
            None => configs.remove(&key),
            Some(value) if value.encode_utf16().count() > MAX_CONFIG_VALUE_LENGTH => {
                return Err(ClusterError::InvalidConfig(format!(
                    "The configuration value cannot be added because it exceeds the maximum value size of \
                     {MAX_CONFIG_VALUE_LENGTH} bytes."
                )));
            }
            Some(value) => configs.insert(key.clone(), value.clone()),
        };
        min_isr_changed |= key == MIN_INSYNC_REPLICAS;
        observers_changed |=
            key == OBSERVER_REPLICAS && resource.resource_type == ResourceType::Topic;
        records.push(config_record(resource, &key, value));
    }
    rules.validate(resource, &configs, previous)?;
    if observers_changed && let Some(topic) = image.topic(&resource.name) {
        let observers = configs.get(OBSERVER_REPLICAS).map(String::as_str);
        let observers = parse_observers(observers.unwrap_or_default());
        records.extend(become_observers(image, topic, observers)?);
    }
    if min_isr_changed && image.is_elr_enabled() {
        let topic_name = match resource.resource_type {
            ResourceType::Topic => resource.name.to_string(),
            _ => String::new(),
        };
        records.push(ClearElrRecord { topic_name }.into());
    }
    check_record_count(records.len())?;
    Ok(records)
}

/// Leader and controller must agree on min.insync.replicas while eligible leader replicas are in use (KIP-966).
fn check_min_isr_change(
    image: &ClusterImage,
    resource: &ConfigResource,
    key: &str,
    has_value: bool,
) -> Result<(), ClusterError> {
    if key != MIN_INSYNC_REPLICAS
        || resource.resource_type != ResourceType::Broker
        || !image.is_elr_enabled()
    {
        return Ok(());
    }
    match (resource.name.is_empty(), has_value) {
        (false, _) => Err(ClusterError::InvalidConfig(
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.".to_owned(),
        )),
        (true, false) => Err(ClusterError::InvalidConfig(
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.".to_owned(),
        )),
        (true, true) => Ok(()),
    }
}

/// Configurations can be set on what exists only; groups and subscriptions exist by having configurations.
fn check_existence(image: &ClusterImage, resource: &ConfigResource) -> Result<(), ClusterError> {
    match resource.resource_type {
        ResourceType::Broker if resource.name.is_empty() => Ok(()),
        ResourceType::Broker => {
            let id = resource.name.parse::<i32>().map_err(|_| {
                ClusterError::InvalidRequest("Invalid broker name ".to_owned() + &resource.name)
            })?;
            match image.broker(highwater_storage::types::BrokerId(id)) {
                Some(_) => Ok(()),
                None => Err(ClusterError::BrokerIdNotRegistered(format!(
                    "No broker with id {id} found."
                ))),
            }
        }
        ResourceType::Topic if image.topic(&resource.name).is_none() => {
            Err(ClusterError::UnknownTopicOrPartition(format!(
                "The topic '{}' does not exist.",
                resource.name
            )))
        }
        ResourceType::Topic | ResourceType::ClientMetrics | ResourceType::Group => Ok(()),
    }
}
