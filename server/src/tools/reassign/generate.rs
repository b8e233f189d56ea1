//! A proposal where replicas could go.

use std::collections::BTreeMap;
use std::io::Write;

use highwater_replication::cluster::spread_replicas;
use highwater_storage::types::BrokerId;

use super::plan::{Assignment, duplicates, format};
use super::{Failure, ReassignPartitionsArguments, log_dirs, not_found};
use crate::tools::client::{Cluster, KafkaError, NodeInfo, TopicDescription, TopicPartition};
use crate::tools::lists::java_int;
use crate::tools::{ToolError, json};

/// Partitions of one response.
const PARTITIONS_PER_RESPONSE: i32 = 2000;

/// Prints the present assignment and a proposal.
pub(super) async fn generate(
    arguments: &ReassignPartitionsArguments,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let brokers = parse_brokers(arguments.broker_list.as_deref().unwrap_or_default())?;
    let topics = match &arguments.topics_to_move_json_file {
        Some(file) => parse_topics(&json::read_file(file)?)?,
        None => Vec::new(),
    };
    let topics = describe(cluster, &topics).await?;
    let mut nodes = cluster.nodes().await?;
    nodes.retain(|node| brokers.contains(&node.id));
    let is_rack_aware = !arguments.disable_rack_aware;
    let (_, seed) = uuid::Uuid::new_v4().as_u64_pair();
    let proposal = propose(&topics, &nodes, is_rack_aware, seed)?;
    let current = assignment(&topics);
    let directories = log_dirs::current(cluster, &current).await?;
    writeln!(
        out,
        "Current partition replica assignment\n{}\n",
        format(&current, &directories)?
    )?;
    writeln!(
        out,
        "Proposed partition reassignment configuration\n{}",
        format(&proposal, &BTreeMap::new())?
    )?;
    Ok(())
}

/// The topics; one that does not exist is named.
///
/// # Errors
/// When one does not exist or nobody answers.
pub(super) async fn describe(
    cluster: &Cluster,
    topics: &[String],
) -> Result<Vec<TopicDescription>, KafkaError> {
    let mut described = Vec::new();
    for topic in topics {
        let found = cluster
            .describe_topics(&[topic], PARTITIONS_PER_RESPONSE)
            .await;
        described.extend(found.map_err(|error| not_found(error, topic))?);
    }
    Ok(described)
}

/// The replicas of the topics' partitions.
pub(super) fn assignment(topics: &[TopicDescription]) -> Assignment {
    let partitions = topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| {
            let key = TopicPartition::new(&topic.name, partition.partition);
            (key, partition.replicas.clone())
        })
    });
    partitions.collect()
}

fn parse_brokers(list: &str) -> Result<Vec<i32>, ToolError> {
    let ids: Vec<_> = list.split(',').map(java_int).collect::<Result<_, _>>()?;
    let repeated = duplicates(ids.iter().copied());
    match repeated.is_empty() {
        true => Ok(ids),
        false => Err(ToolError::failed(format!(
            "Broker list contains duplicate entries: {:?}",
            Vec::from_iter(repeated)
        ))),
    }
}

fn parse_topics(text: &str) -> Result<Vec<String>, ToolError> {
    let document = json::parse(text)?;
    if document.get("topics").is_none() {
        return Ok(Vec::new());
    }
    let topics = json::array(&document, "topics")?.iter();
    let topics = topics.map(|entry| json::text(entry, "topic").map(str::to_owned));
    let topics: Vec<_> = topics.collect::<Result<_, _>>()?;
    let repeated = Vec::from_iter(duplicates(topics.iter().cloned()));
    match repeated.is_empty() {
        true => Ok(topics),
        false => Err(ToolError::failed(format!(
            "List of topics to reassign contains duplicate entries: [{}]",
            repeated.join(", ")
        ))),
    }
}

fn propose(
    topics: &[TopicDescription],
    nodes: &[NodeInfo],
    is_rack_aware: bool,
    seed: u64,
) -> Result<Assignment, ToolError> {
    let without_rack = nodes.iter().filter(|node| node.rack.is_none()).count();
    if is_rack_aware && without_rack != 0 && without_rack != nodes.len() {
        return Err(ToolError::failed(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica \
             assignment without rack information.",
        ));
    }
    let brokers: Vec<_> = nodes
        .iter()
        .map(|node| {
            let rack = node.rack.as_deref().filter(|_| is_rack_aware);
            (rack, BrokerId(node.id))
        })
        .collect();
    let mut proposal = Assignment::new();
    for topic in topics {
        let replicas = topic.partitions.first().map_or(0, |p| p.replicas.len());
        if replicas > brokers.len() {
            return Err(ToolError::failed(format!(
                "The target replication factor of {replicas} cannot be reached because only {} broker(s) are \
                 registered or some brokers have all their log directories cordoned.",
                brokers.len()
            )));
        }
        let placed = spread_replicas(&brokers, topic.partitions.len(), replicas, seed);
        for (partition, replicas) in topic.partitions.iter().zip(placed) {
            let ids = replicas.into_iter().map(|id| id.0);
            let key = TopicPartition::new(&topic.name, partition.partition);
            proposal.insert(key, ids.collect());
        }
    }
    Ok(proposal)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::tools::client::PartitionInfo;

    fn node(id: i32, rack: Option<&str>) -> NodeInfo {
        NodeInfo {
            id,
            host: "h".to_owned(),
            port: 1,
            rack: rack.map(str::to_owned),
        }
    }

    fn topic(partitions: i32, replicas: i32) -> TopicDescription {
        let partitions = (0..partitions).map(|partition| PartitionInfo {
            partition,
            leader: Some(1),
            replicas: (1..=replicas).collect(),
            isr: Vec::new(),
            elr: None,
            last_known_elr: None,
        });
        TopicDescription {
            name: "t".to_owned(),
            id: Uuid::nil(),
            partitions: partitions.collect(),
        }
    }

    #[test]
    fn replicas_are_spread_over_brokers_and_racks() {
        let nodes = [
            node(1, Some("a")),
            node(2, Some("b")),
            node(3, Some("a")),
            node(4, Some("b")),
        ];
        let proposal = propose(&[topic(8, 2)], &nodes, true, 7).expect("enough brokers");
        assert_eq!(proposal.len(), 8);
        for replicas in proposal.values() {
            let in_a = replicas.iter().filter(|id| *id % 2 == 1).count();
            assert_eq!((replicas.len(), in_a), (2, 1), "{replicas:?}");
        }
        for id in 1..=4 {
            let count = proposal
                .values()
                .filter(|replicas| replicas.contains(&id))
                .count();
            assert_eq!(count, 4, "replicas on {id}");
        }
    }

    #[test]
    fn too_few_brokers_and_missing_racks_are_refused() {
        let error = propose(&[topic(1, 2)], &[node(1, None)], true, 0).expect_err("one broker");
        assert!(
            error
                .to_string()
                .starts_with("The target replication factor of 2 cannot")
        );
        let nodes = [node(1, None), node(2, Some("a"))];
        assert!(propose(&[topic(1, 2)], &nodes, true, 0).is_err());
        assert!(propose(&[topic(1, 2)], &nodes, false, 0).is_ok());
    }

    #[test]
    fn lists_have_everything_once() {
        assert_eq!(parse_brokers("1,2").expect("ids"), [1, 2]);
        let error = parse_brokers("1,1").expect_err("twice").to_string();
        assert_eq!(error, "Broker list contains duplicate entries: [1]");
        assert!(parse_brokers("").is_err());
        let topics = parse_topics(r#"{"topics":[{"topic":"a"}],"version":1}"#);
        assert_eq!(topics.expect("topics"), ["a"]);
        assert!(parse_topics(r#"{"topics":[{"topic":"a"},{"topic":"a"}]}"#).is_err());
    }
}
