//! What AlterConfigs and IncrementalAlterConfigs share: the checks before the controller is asked, and the wait for it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use highwater_replication::cluster::configs::{
    ConfigOperation, incremental_alter_configs, legacy_alter_configs,
};
use highwater_replication::cluster::{ClusterError, ConfigMap, ConfigResource, ResourceType};
use kafka_protocol::ResponseError;

use super::RequestContext;
use super::config_entries::BROKER_LOGGER;
use super::error_code::ErrorCode;
use super::metadata_change;
use crate::broker::Broker;
use crate::config::{ConfigType, DynamicScope, keys};
use crate::controller::{Decision, ServerConfigRules};
use crate::network::ListenerKind;

/// An error code and the text that goes with it.
pub(super) type Refusal = (ResponseError, Option<String>);

/// A change of one resource, whichever API it came with.
#[derive(Debug, Clone)]
pub(super) struct ResourceChange {
    pub(super) resource_type: i8,
    pub(super) name: String,
    pub(super) change: Change,
}

/// What shall change.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// Each key: the number of the operation and a value (IncrementalAlterConfigs).
    Incremental(Vec<(String, i8, Option<String>)>),
    /// All keys that shall be set (AlterConfigs).
    Replace(Vec<(String, Option<String>)>),
}

impl Change {
    fn keys(&self) -> Vec<&str> {
        match self {
            Self::Incremental(operations) => {
                operations.iter().map(|(key, ..)| key.as_str()).collect()
            }
            Self::Replace(configs) => configs.iter().map(|(key, _)| key.as_str()).collect(),
        }
    }

    /// Keys that need a value and have none.
    fn keys_without_value(&self) -> Vec<&str> {
        match self {
            Self::Incremental(operations) => {
                let lacks = operations
                    .iter()
                    .filter(|(_, operation, value)| *operation != DELETE && value.is_none());
                lacks.map(|(key, ..)| key.as_str()).collect()
            }
            Self::Replace(configs) => configs
                .iter()
                .filter(|(_, value)| value.is_none())
                .map(|(key, _)| key.as_str())
                .collect(),
        }
    }
}

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// A change that passed the checks of this broker.
enum Checked {
    Incremental(ConfigResource, Vec<(String, ConfigOperation)>),
    Replace(ConfigResource, ConfigMap),
}

/// Makes the changes (or only judges them) and gives one result for each, in their order.
pub(super) async fn alter_configs(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    changes: Vec<ResourceChange>,
    validate_only: bool,
) -> Vec<Result<(), Refusal>> {
    let mut results: Vec<Option<Result<(), Refusal>>> = Vec::with_capacity(changes.len());
    let mut checked = Vec::new();
    let repeated = repeated_resources(&changes);
    for change in changes {
        let result = match repeated.contains(&(change.resource_type, change.name.clone())) {
            true => Err(invalid("Each resource must appear at most once.")),
            false => check(broker, ctx, change),
        };
        match result {
            Ok(Some(change)) => {
                checked.push(change);
                results.push(None);
            }
            Ok(None) => results.push(Some(Ok(()))),
            Err(refusal) => results.push(Some(Err(refusal))),
        }
    }
    let mut judged = submit(broker, checked, validate_only).await.into_iter();
    let or_judged = |result: Option<Result<(), Refusal>>| {
        result
            .or_else(|| judged.next())
            .unwrap_or(Err((ResponseError::UnknownServerError, None)))
    };
    results.into_iter().map(or_judged).collect()
}

fn invalid(text: impl Into<String>) -> Refusal {
    (ResponseError::InvalidRequest, Some(text.into()))
}

fn refusal(error: &ClusterError) -> Refusal {
    (error.error_code(), Some(error.to_string()))
}

fn repeated_resources(changes: &[ResourceChange]) -> HashSet<(i8, String)> {
    let mut seen = HashSet::new();
    let repeated = changes
        .iter()
        .filter(|change| !seen.insert((change.resource_type, &change.name)));
    repeated
        .map(|change| (change.resource_type, change.name.clone()))
        .collect()
}

async fn submit(
    broker: &Arc<Broker>,
    changes: Vec<Checked>,
    validate_only: bool,
) -> Vec<Result<(), Refusal>> {
    if changes.is_empty() {
        return Vec::new();
    }
    let count = changes.len();
    let rules = ServerConfigRules::new(broker.config.clone());
    let submitted = metadata_change::submit(broker, move |image, _| {
        let mut records = Vec::new();
        let results: Vec<Result<(), ClusterError>> = changes
            .iter()
            .map(|change| {
                let changed = match change {
                    Checked::Incremental(resource, operations) => {
                        incremental_alter_configs(image, resource, operations, &rules)
                    }
                    Checked::Replace(resource, configs) => {
                        legacy_alter_configs(image, resource, configs, &rules)
                    }
                };
                changed.map(|changed| records.extend(changed))
            })
            .collect();
        if validate_only {
            records.clear();
        }
        Decision {
            records,
            response: results,
        }
    });
    match submitted.await {
        Ok(results) => results
            .into_iter()
            .map(|result| result.map_err(|error| refusal(&error)))
            .collect(),
        Err(error) => vec![Err((error, None)); count],
    }
}

/// Checks a change as the broker that received it does; `None` when there is nothing left to do.
fn check(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    change: ResourceChange,
) -> Result<Option<Checked>, Refusal> {
    let ResourceChange {
        resource_type,
        name,
        change,
    } = change;
    let keys = change.keys();
    if keys.iter().collect::<HashSet<_>>().len() < keys.len() {
        return Err(invalid("Error due to duplicate config keys"));
    }
    let without_value = change.keys_without_value();
    if !without_value.is_empty() {
        return Err(invalid(format!(
            "Null value not supported for : {}",
            without_value.join(", ")
        )));
    }
    let Some(kind) = ResourceType::from_id(resource_type) else {
        let is_logger = resource_type == BROKER_LOGGER && matches!(change, Change::Incremental(_));
        return match is_logger {
            true => check_loggers(broker, &name, &keys).map(|()| None),
            false => Err(invalid(format!("Unknown resource type {resource_type}"))),
        };
    };
    let resource = ConfigResource {
        resource_type: kind,
        name: name.as_str().into(),
    };
    if kind == ResourceType::Broker {
        // A broker takes changes of its own configuration only, and hands them on to the controller.
        let any_broker = ctx.listener.kind == ListenerKind::Controller;
        check_broker_change(broker, &resource, &change, any_broker)?;
    }
    Ok(Some(match change {
        Change::Incremental(operations) => {
            Checked::Incremental(resource, parse_operations(operations, kind)?)
        }
        Change::Replace(configs) => {
            let configs = configs
                .into_iter()
                .filter_map(|(key, value)| Some((key, value?)));
            Checked::Replace(resource, configs.collect())
        }
    }))
}

/// Log levels cannot be changed at run time: no logger has a name that a client could use.
fn check_loggers(broker: &Broker, name: &str, loggers: &[&str]) -> Result<(), Refusal> {
    let own = broker.controller.broker_id().0;
    match name.parse::<i32>() {
        Ok(id) if id == own => {}
        Ok(id) => {
            return Err(invalid(format!(
                "Unexpected node id. Expected {own}, but received {id}"
            )));
        }
        Err(_) => {
            return Err(invalid(format!(
                "Node id must be an integer, but it is: {name}"
            )));
        }
    }
    match loggers.first() {
        Some(logger) => Err((
            ResponseError::InvalidConfig,
            Some(format!("Logger {logger} does not exist!")),
        )),
        None => Ok(()),
    }
}

fn parse_operations(
    operations: Vec<(String, i8, Option<String>)>,
    kind: ResourceType,
) -> Result<Vec<(String, ConfigOperation)>, Refusal> {
    let parse = |(key, operation, value): (String, i8, Option<String>)| {
        let value = value.unwrap_or_default();
        let operation = match operation {
            SET => ConfigOperation::Set(value),
            DELETE => ConfigOperation::Delete,
            APPEND => ConfigOperation::Append(value),
            SUBTRACT => ConfigOperation::Subtract(value),
            // Kafka tells the two apart, too.
            other if kind == ResourceType::Broker => {
                return Err(invalid(format!("Unknown operations type {other}")));
            }
            _ => return Err((ResponseError::UnknownServerError, None)),
        };
        Ok((key, operation))
    };
    operations.into_iter().map(parse).collect()
}

/// A broker judges changes of its own configuration, and of that of all brokers, before the controller does.
fn check_broker_change(
    broker: &Broker,
    resource: &ConfigResource,
    change: &Change,
    any_broker: bool,
) -> Result<(), Refusal> {
    let own = broker.controller.broker_id().0;
    let name = &*resource.name;
    let scope = match name.is_empty() {
        true => DynamicScope::AllBrokers,
        false => DynamicScope::Broker,
    };
    if !name.is_empty() {
        match name.parse::<i32>() {
            Ok(id) if any_broker || id == own => {}
            Ok(_) => {
                return Err(invalid(format!(
                    "Unexpected broker id, expected {own}, but received {name}"
                )));
            }
            Err(_) => {
                return Err(invalid(format!(
                    "Node id must be an integer, but it is: {name}"
                )));
            }
        }
    }
    let image = broker.image();
    let current = image
        .configs(resource)
        .map(|configs| ConfigMap::clone(configs))
        .unwrap_or_default();
    let entries: BTreeMap<String, String> = match change {
        Change::Replace(configs) => configs
            .iter()
            .filter_map(|(key, value)| Some((key.clone(), value.clone()?)))
            .collect(),
        Change::Incremental(operations) => after_operations(current, operations)?,
    };
    let changed: BTreeSet<String> = change.keys().into_iter().map(str::to_owned).collect();
    broker
        .config
        .validate(scope, &entries, &changed)
        .map_err(invalid)
}

/// The entries of a broker resource after the operations.
fn after_operations(
    mut entries: ConfigMap,
    operations: &[(String, i8, Option<String>)],
) -> Result<ConfigMap, Refusal> {
    for (key, operation, value) in operations {
        let value = value.as_deref().unwrap_or_default();
        match *operation {
            SET => {
                entries.insert(key.clone(), value.to_owned());
            }
            DELETE => {
                entries.remove(key);
            }
            APPEND | SUBTRACT => {
                check_is_list(key, *operation)?;
                let default = keys::find(key)
                    .and_then(|key| key.default)
                    .unwrap_or_default();
                let current = entries.get(key).map_or(default, String::as_str);
                let mut parts: Vec<&str> =
                    current.split(',').filter(|part| !part.is_empty()).collect();
                for part in value.split(',') {
                    match (parts.iter().position(|known| *known == part), *operation) {
                        (None, APPEND) => parts.push(part),
                        (Some(position), SUBTRACT) => {
                            parts.remove(position);
                        }
                        _ => {}
                    }
                }
                let joined = parts.join(",");
                entries.insert(key.clone(), joined);
            }
            other => return Err(invalid(format!("Unknown operations type {other}"))),
        }
    }
    Ok(entries)
}

fn check_is_list(key: &str, operation: i8) -> Result<(), Refusal> {
    let verb = if operation == APPEND {
        "append"
    } else {
        "subtract"
    };
    let text = match keys::find(key).map(|key| key.config_type) {
        Some(ConfigType::List) => return Ok(()),
        Some(_) => format!("Config value {verb} is not allowed for config key: {key}"),
        None => format!("Unknown config name: {key}"),
    };
    Err((ResponseError::InvalidConfig, Some(text)))
}
