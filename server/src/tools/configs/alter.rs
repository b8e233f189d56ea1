//! Changes of settings.

use std::io::{self, Write};
use std::path::Path;

use kafka_protocol::messages::IncrementalAlterConfigsRequest;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::protocol::StrBytes;

use super::ConfigsArguments;
use super::entity::{Entity, EntityType};
use super::parse::{Settings, check_keys, parse_settings};
use crate::tools::ToolError;
use crate::tools::client::{Cluster, KafkaError};

/// IncrementalAlterConfigs' operations.
const SET: i8 = 0;
const DELETE: i8 = 1;

/// Who failed: they are told in different words.
#[derive(Debug)]
pub(super) enum Failure {
    /// The cluster refused or did not answer.
    Cluster(KafkaError),
    /// Something here.
    Tool(ToolError),
}

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Self {
        Failure::Cluster(error)
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Failure::Tool(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Tool(error.into())
    }
}

/// Sets and takes back what the options say.
pub(super) async fn alter(
    arguments: &ConfigsArguments,
    cluster: &Cluster,
    entity: &Entity,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let name = entity.name.as_deref().unwrap_or_default();
    let added = match (&arguments.add_config, &arguments.add_config_file) {
        (Some(text), _) => parse_settings(text)?,
        (None, Some(file)) => read_settings(file)?,
        (None, None) => Settings::new(),
    };
    let deleted = arguments.delete_config.iter().map(|key| key.trim());
    let deleted: Vec<_> = deleted.filter(|key| !key.is_empty()).collect();
    if entity.kind == EntityType::BrokerLoggers {
        check_loggers(
            cluster,
            name,
            added
                .keys()
                .map(String::as_str)
                .chain(deleted.iter().copied()),
        )
        .await?;
    }
    let request = request(entity, name, &added, &deleted);
    let is_node = matches!(entity.kind, EntityType::Brokers | EntityType::BrokerLoggers);
    let node: Option<i32> = name.parse().ok().filter(|_| is_node);
    let call = "incrementalAlterConfigs";
    let response = match node {
        Some(id) => cluster.call_node(call, id, &request).await?,
        None => cluster.call_controller(call, &request).await?,
    };
    for resource in &response.responses {
        KafkaError::check(resource.error_code, resource.error_message.as_deref())?;
    }
    match name.is_empty() {
        true => writeln!(
            out,
            "Completed updating default config for {} in the cluster.",
            entity.kind.name()
        )?,
        false => writeln!(
            out,
            "Completed updating config for {} {name}.",
            entity.kind.singular()
        )?,
    }
    Ok(())
}

/// Refuses loggers that the broker does not have.
async fn check_loggers(
    cluster: &Cluster,
    broker: &str,
    loggers: impl Iterator<Item = &str>,
) -> Result<(), Failure> {
    let kind = EntityType::BrokerLoggers.resource_type();
    let configs = cluster.describe_configs(kind, &[broker], true).await?;
    let known: Vec<_> = configs
        .iter()
        .flatten()
        .map(|config| config.name.as_str())
        .collect();
    let unknown: Vec<_> = loggers.filter(|logger| !known.contains(logger)).collect();
    match unknown.is_empty() {
        true => Ok(()),
        false => {
            let text = format!("Invalid broker logger(s): {}", unknown.join(","));
            Err(ToolError::failed(text).into())
        }
    }
}

fn read_settings(file: &Path) -> Result<Settings, ToolError> {
    let failed = |text: String| ToolError::failed(format!("{}: {text}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
    let entries = crate::config::parse_properties(&bytes)
        .map_err(|(line, reason)| failed(format!("line {line}: {reason}")))?;
    let settings = entries.into_iter().collect();
    check_keys(&settings)?;
    Ok(settings)
}

fn request(
    entity: &Entity,
    name: &str,
    added: &Settings,
    deleted: &[&str],
) -> IncrementalAlterConfigsRequest {
    let config = |key: &str, operation, value: Option<&str>| {
        AlterableConfig::default()
            .with_name(StrBytes::from_string(key.to_owned()))
            .with_config_operation(operation)
            .with_value(value.map(|value| StrBytes::from_string(value.to_owned())))
    };
    let sets = added
        .iter()
        .map(|(key, value)| config(key, SET, Some(value)));
    let deletes = deleted.iter().map(|key| config(key, DELETE, None));
    let resource = AlterConfigsResource::default()
        .with_resource_type(entity.kind.resource_type() as i8)
        .with_resource_name(StrBytes::from_string(name.to_owned()))
        .with_configs(sets.chain(deletes).collect());
    IncrementalAlterConfigsRequest::default().with_resources(vec![resource])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_operations() {
        let entity = Entity {
            kind: EntityType::Topics,
            name: Some("t".to_owned()),
        };
        let added = Settings::from([("a".to_owned(), "1".to_owned())]);
        let request = request(&entity, "t", &added, &["b"]);
        let resource = &request.resources[0];
        assert_eq!(
            (resource.resource_type, resource.resource_name.as_str()),
            (2, "t")
        );
        let configs = resource.configs.iter();
        let configs: Vec<_> = configs
            .map(|config| {
                (
                    config.name.as_str(),
                    config.config_operation,
                    config.value.as_deref(),
                )
            })
            .collect();
        assert_eq!(configs, [("a", SET, Some("1")), ("b", DELETE, None)]);
    }
}
