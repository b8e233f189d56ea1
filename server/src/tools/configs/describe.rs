//! Settings as text.

use std::collections::BTreeSet;
use std::io::{self, Write};

use kafka_protocol::messages::describe_configs_response::DescribeConfigsResourceResult;
use kafka_protocol::messages::{ListConfigResourcesRequest, ListGroupsRequest};

use super::alter::Failure;
use super::entity::{Entity, EntityType};
use crate::tools::client::{Cluster, KafkaError, ResourceType};
use crate::tools::java_order::hash_map_order;

/// Prints the settings of the entity, or of all of its type.
pub(super) async fn describe(
    cluster: &Cluster,
    entity: &Entity,
    all: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let kind = entity.kind;
    let names = match entity.name.as_deref() {
        Some("") => vec![String::new()],
        Some(name) if is_known(cluster, kind, name).await? => vec![name.to_owned()],
        Some(name) => {
            writeln!(
                out,
                "The {} '{name}' doesn't exist and doesn't have dynamic config.",
                kind.singular()
            )?;
            return Ok(());
        }
        None => every(cluster, kind).await?,
    };
    for name in &names {
        let configs = cluster
            .describe_configs(kind.resource_type(), &[name], true)
            .await?;
        print(
            kind,
            name,
            all,
            configs.into_iter().flatten().collect(),
            out,
        )?;
    }
    Ok(())
}

/// Whether there is such a resource, or settings for one that is not there.
async fn is_known(cluster: &Cluster, kind: EntityType, name: &str) -> Result<bool, KafkaError> {
    let mut known = BTreeSet::from_iter(every(cluster, kind).await?);
    if matches!(
        kind,
        EntityType::Topics | EntityType::Brokers | EntityType::BrokerLoggers
    ) {
        known.extend(with_settings(cluster, kind.resource_type()).await?);
    }
    Ok(known.contains(name))
}

/// The names of all resources of a type, in the order in which Kafka's tool prints them.
async fn every(cluster: &Cluster, kind: EntityType) -> Result<Vec<String>, KafkaError> {
    match kind {
        EntityType::Topics => {
            let topics = cluster.list_topics().await?;
            let mut names: Vec<_> = topics.into_iter().map(|topic| topic.name).collect();
            hash_map_order(
                &mut names,
                crate::tools::java_order::DEFAULT_CAPACITY,
                |name| name,
            );
            Ok(names)
        }
        EntityType::Brokers | EntityType::BrokerLoggers => {
            let nodes = cluster.nodes().await?;
            let ids = nodes.iter().map(|node| node.id.to_string());
            let defaults = (kind == EntityType::Brokers).then(String::new);
            Ok(ids.chain(defaults).collect())
        }
        EntityType::ClientMetrics => with_settings(cluster, ResourceType::ClientMetrics).await,
        EntityType::Groups => {
            let mut groups = groups(cluster).await?;
            groups.extend(with_settings(cluster, ResourceType::Group).await?);
            Ok(groups.into_iter().collect())
        }
    }
}

/// The resources of a type that have settings (KIP-1142); none where the broker cannot be asked.
async fn with_settings(cluster: &Cluster, kind: ResourceType) -> Result<Vec<String>, KafkaError> {
    let request = ListConfigResourcesRequest::default().with_resource_types(vec![kind as i8]);
    let response = match cluster.call_any("listConfigResources", &request).await {
        Err(error) if error.is_unsupported() => return Ok(Vec::new()),
        response => response?,
    };
    KafkaError::check(response.error_code, None)?;
    let resources = response.config_resources.iter();
    Ok(resources
        .map(|resource| resource.resource_name.to_string())
        .collect())
}

/// The groups that the brokers coordinate.
async fn groups(cluster: &Cluster) -> Result<BTreeSet<String>, KafkaError> {
    let mut groups = BTreeSet::new();
    for node in cluster.nodes().await? {
        let request = ListGroupsRequest::default();
        let response = cluster.call_node("listGroups", node.id, &request).await?;
        KafkaError::check(response.error_code, None)?;
        let ids = response.groups.iter();
        groups.extend(ids.map(|group| group.group_id.0.to_string()));
    }
    Ok(groups)
}

fn print(
    kind: EntityType,
    name: &str,
    all: bool,
    mut configs: Vec<DescribeConfigsResourceResult>,
    out: &mut dyn Write,
) -> io::Result<()> {
    match name {
        "" => writeln!(
            out,
            "Default configs for {} in the cluster are:",
            kind.name()
        )?,
        _ => writeln!(
            out,
            "{} configs for {} {name} are:",
            if all { "All" } else { "Dynamic" },
            kind.singular()
        )?,
    }
    if let Some(own) = own_source(kind, name).filter(|_| !all) {
        configs.retain(|config| config.config_source == own);
    }
    configs.sort_by(|a, b| a.name.cmp(&b.name));
    for config in &configs {
        let value = |value: Option<&str>| value.unwrap_or("null").to_owned();
        let synonyms = config.synonyms.iter().map(|synonym| {
            format!(
                "{}:{}={}",
                source_name(synonym.source),
                synonym.name.as_str(),
                value(synonym.value.as_deref())
            )
        });
        writeln!(
            out,
            "  {}={} sensitive={} synonyms={{{}}}",
            config.name.as_str(),
            value(config.value.as_deref()),
            config.is_sensitive,
            synonyms.collect::<Vec<_>>().join(", ")
        )?;
    }
    Ok(())
}

/// The source of settings that are the entity's own; of log levels, all are.
fn own_source(kind: EntityType, name: &str) -> Option<i8> {
    match kind {
        EntityType::Topics => Some(1),
        EntityType::Brokers if name.is_empty() => Some(3),
        EntityType::Brokers => Some(2),
        EntityType::BrokerLoggers => None,
        EntityType::ClientMetrics => Some(7),
        EntityType::Groups => Some(8),
    }
}

fn source_name(source: i8) -> &'static str {
    match source {
        1 => "DYNAMIC_TOPIC_CONFIG",
        2 => "DYNAMIC_BROKER_CONFIG",
        3 => "DYNAMIC_DEFAULT_BROKER_CONFIG",
        4 => "STATIC_BROKER_CONFIG",
        5 => "DEFAULT_CONFIG",
        6 => "DYNAMIC_BROKER_LOGGER_CONFIG",
        7 => "DYNAMIC_CLIENT_METRICS_CONFIG",
        8 => "DYNAMIC_GROUP_CONFIG",
        _ => "UNKNOWN",
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::describe_configs_response::DescribeConfigsSynonym;
    use kafka_protocol::protocol::StrBytes;

    use super::*;

    fn config(name: &str, value: Option<&str>, source: i8) -> DescribeConfigsResourceResult {
        let text = |text: &str| StrBytes::from_string(text.to_owned());
        let synonym = DescribeConfigsSynonym::default()
            .with_name(text("log.a"))
            .with_value(Some(text("0")))
            .with_source(5);
        DescribeConfigsResourceResult::default()
            .with_name(text(name))
            .with_value(value.map(text))
            .with_config_source(source)
            .with_is_sensitive(value.is_none())
            .with_synonyms(vec![synonym.clone(), synonym])
    }

    fn printed(name: &str, all: bool) -> String {
        let configs = vec![
            config("b", None, 1),
            config("a", Some("1"), 1),
            config("c", Some("2"), 5),
        ];
        let mut out = Vec::new();
        print(EntityType::Topics, name, all, configs, &mut out).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn settings_are_lines_by_name() {
        assert_eq!(
            printed("t", false),
            "Dynamic configs for topic t are:\n  \
             a=1 sensitive=false synonyms={DEFAULT_CONFIG:log.a=0, DEFAULT_CONFIG:log.a=0}\n  \
             b=null sensitive=true synonyms={DEFAULT_CONFIG:log.a=0, DEFAULT_CONFIG:log.a=0}\n"
        );
        assert_eq!(printed("t", true).lines().count(), 4);
        assert!(printed("", true).starts_with("Default configs for topics in the cluster are:\n"));
    }
}
