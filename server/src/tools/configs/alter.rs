//! Changes of settings.

use std::io::{self, Write};
use std::path::Path;

use super::ConfigsArguments;
use super::entity::{Entity, EntityType};
use super::parse::{Settings, check_keys, parse_settings};
use crate::tools::ToolError;
use crate::tools::client::{Cluster, ConfigChanges, KafkaError};

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
    let resource = (name.to_owned(), changes(added, &deleted));
    cluster
        .alter_configs(entity.kind.resource_type(), &[resource])
        .await?;
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

/// What is set, then what is taken back.
fn changes(added: Settings, deleted: &[&str]) -> ConfigChanges {
    let sets = added.into_iter().map(|(key, value)| (key, Some(value)));
    let deletes = deleted.iter().map(|key| ((*key).to_owned(), None));
    sets.chain(deletes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_operations() {
        let added = Settings::from([("a".to_owned(), "1".to_owned())]);
        assert_eq!(
            changes(added, &["b"]),
            [
                ("a".to_owned(), Some("1".to_owned())),
                ("b".to_owned(), None)
            ]
        );
    }
}
