//! Topics with their partitions.

use std::collections::BTreeSet;
use std::io::Write;

use highwater_replication::cluster::topic_name::is_internal;
use highwater_storage::types::TopicId;
use uuid::Uuid;

use super::print::{Filter, TopicView, settings};
use super::{TopicsArguments, existing, list_reassignments, plain};
use crate::tools::ToolError;
use crate::tools::client::{Cluster, ResourceType, TopicDescription, TopicPartition};
use crate::tools::java_order::hash_map_order;

/// Partitions of one response where the command line says nothing.
const PARTITIONS_PER_RESPONSE: i32 = 2000;

/// Prints the topics that the options choose.
pub(super) async fn describe(
    arguments: &TopicsArguments,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let topics = find(arguments, cluster, out).await?;
    if topics.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = topics.iter().map(|topic| topic.name.as_str()).collect();
    let configs = cluster
        .describe_configs(ResourceType::Topic, &names, false)
        .await
        .map_err(plain)?;
    let nodes = cluster.nodes().await.map_err(plain)?;
    let live_brokers: BTreeSet<_> = nodes.iter().map(|node| node.id).collect();
    let partitions: Vec<_> = topics
        .iter()
        .flat_map(|topic| {
            let partitions = topic.partitions.iter();
            partitions.map(|partition| TopicPartition::new(&topic.name, partition.partition))
        })
        .collect();
    let reassignments = match list_reassignments(cluster, Some(&partitions)).await {
        Ok(reassignments) => reassignments,
        Err(error) if error.is_unsupported() => Default::default(),
        Err(error) => return Err(plain(error)),
    };
    let filter = Filter::of(arguments);
    for (topic, configs) in topics.iter().zip(configs) {
        let view = TopicView {
            topic,
            configs: settings(configs),
            reassignments: &reassignments,
            live_brokers: &live_brokers,
        };
        view.print(filter, out)?;
    }
    Ok(())
}

/// The topics in the order in which Kafka's tool prints them.
async fn find(
    arguments: &TopicsArguments,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<Vec<TopicDescription>, ToolError> {
    let id = arguments.topic_id.as_deref().map(parse_id).transpose()?;
    if let Some(id) = id.filter(|id| !id.is_nil()) {
        if arguments.if_exists && arguments.topic.is_some() {
            writeln!(
                out,
                "Only topic id will be used when both --topic and --topic-id are specified and topicId is not \
                 Uuid.ZERO_UUID"
            )?;
        }
        return with_id(arguments, cluster, id).await;
    }
    let topics = existing(arguments, cluster).await?;
    let names: Vec<_> = topics.iter().map(|topic| topic.name.as_str()).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let limit = arguments
        .partition_size_limit_per_response
        .unwrap_or(PARTITIONS_PER_RESPONSE);
    let described = cluster.describe_topics(&names, limit).await;
    let mut topics = described.map_err(plain)?;
    let count = topics.len();
    hash_map_order(&mut topics, count, |topic| &topic.name);
    Ok(topics)
}

/// The topic with the id among all but, where that is asked for, Kafka's own; its name does not count.
async fn with_id(
    arguments: &TopicsArguments,
    cluster: &Cluster,
    id: Uuid,
) -> Result<Vec<TopicDescription>, ToolError> {
    let topics = cluster.list_topics().await.map_err(plain)?;
    let is_there = topics
        .iter()
        .any(|topic| topic.id == id && !(arguments.exclude_internal && is_internal(&topic.name)));
    if is_there {
        let topic = cluster.describe_topic_id(id).await.map_err(plain)?;
        return Ok(vec![topic]);
    }
    match arguments.if_exists {
        true => Ok(Vec::new()),
        false => Err(ToolError::failed(format!(
            "TopicId '{}' does not exist as expected",
            TopicId(id)
        ))),
    }
}

fn parse_id(text: &str) -> Result<Uuid, ToolError> {
    let id: TopicId = text.parse().map_err(|_| {
        ToolError::failed(format!(
            "{text} is no topic id: 22 characters in URL-safe base64"
        ))
    })?;
    Ok(id.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_id_is_16_bytes_in_base64() {
        assert!(parse_id("AAAAAAAAAAAAAAAAAAAAAA").expect("an id").is_nil());
        assert_eq!(
            parse_id("AAAAAAAAAAAAAAAAAAAAAQ").expect("an id").as_u128(),
            1
        );
        assert!(parse_id("AAAA").is_err());
        assert!(parse_id("?").is_err());
    }
}
