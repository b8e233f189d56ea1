//! A new topic.

use std::io::Write;

use indexmap::IndexMap;
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::{BrokerId, CreateTopicsRequest};
use kafka_protocol::protocol::StrBytes;

use super::{TopicsArguments, plain};
use crate::tools::ToolError;
use crate::tools::client::{Cluster, KafkaError, REQUEST_TIMEOUT_MS, topic_name};
use crate::tools::lists::{java_int, joined};

/// TOPIC_ALREADY_EXISTS
const EXISTS: i16 = 36;
/// What leaves a count to the broker.
const BROKERS_DEFAULT: i32 = -1;

/// Creates the topic and says so.
pub(super) async fn create(
    arguments: &TopicsArguments,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let name = arguments.topic.as_deref().unwrap_or_default();
    let topic = new_topic(name, arguments)?;
    if name.contains(['.', '_']) {
        writeln!(
            out,
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could \
             collide. To avoid issues it is best to use either, but not both."
        )?;
    }
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(REQUEST_TIMEOUT_MS);
    let response = cluster
        .call_controller("createTopics", &request)
        .await
        .map_err(plain)?;
    for topic in &response.topics {
        match KafkaError::check(topic.error_code, topic.error_message.as_deref()) {
            Ok(()) => writeln!(out, "Created topic {name}.")?,
            Err(error) if error.code == EXISTS && arguments.if_not_exists => {}
            Err(error) => return Err(plain(error)),
        }
    }
    Ok(())
}

fn new_topic(name: &str, arguments: &TopicsArguments) -> Result<CreatableTopic, ToolError> {
    let assignment = arguments.replica_assignment.as_deref().unwrap_or_default();
    let assignment = parse_assignment(assignment)?;
    let configs = parse_configs(&arguments.config)?;
    if arguments
        .replication_factor
        .is_some_and(|factor| !(1..=i32::from(i16::MAX)).contains(&factor))
    {
        return Err(ToolError::failed(format!(
            "The replication factor must be between 1 and {} inclusive",
            i16::MAX
        )));
    }
    if arguments
        .partitions
        .is_some_and(|partitions| partitions < 1)
    {
        return Err(ToolError::failed("The partitions must be greater than 0"));
    }
    let replication_factor = arguments.replication_factor.unwrap_or(BROKERS_DEFAULT);
    let assignments = (0..).zip(assignment).map(|(index, replicas)| {
        CreatableReplicaAssignment::default()
            .with_partition_index(index)
            .with_broker_ids(replicas.into_iter().map(BrokerId).collect())
    });
    let configs = configs.into_iter().map(|(name, value)| {
        CreatableTopicConfig::default()
            .with_name(StrBytes::from_string(name))
            .with_value(Some(StrBytes::from_string(value)))
    });
    Ok(CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(arguments.partitions.unwrap_or(BROKERS_DEFAULT))
        .with_replication_factor(i16::try_from(replication_factor).unwrap_or(i16::MAX))
        .with_assignments(assignments.collect())
        .with_configs(configs.collect()))
}

/// Reads `1:2,2:3`: the replicas of each partition.
///
/// # Errors
/// In Kafka's words.
pub(super) fn parse_assignment(text: &str) -> Result<Vec<Vec<i32>>, ToolError> {
    let mut assignment: Vec<Vec<i32>> = Vec::new();
    if text.is_empty() {
        return Ok(assignment);
    }
    for (partition, replicas) in text.split(',').enumerate() {
        let replicas = replicas.split(':').map(str::trim).map(java_int);
        let replicas: Vec<i32> = replicas.collect::<Result<_, _>>()?;
        let is_repeated = |(index, id): (usize, &i32)| replicas[..index].contains(id);
        let repeated: Vec<_> = replicas
            .iter()
            .enumerate()
            .filter(|&entry| is_repeated(entry))
            .map(|(_, id)| id)
            .collect();
        if !repeated.is_empty() {
            return Err(ToolError::failed(format!(
                "Partition replica lists may not contain duplicate entries: {}",
                joined(repeated)
            )));
        }
        if assignment
            .first()
            .is_some_and(|first| first.len() != replicas.len())
        {
            return Err(ToolError::failed(format!(
                "Partition {partition} has different replication factor: {replicas:?}"
            )));
        }
        assignment.push(replicas);
    }
    Ok(assignment)
}

/// Reads `name=value`s; of a name that is there twice the later one counts.
fn parse_configs(texts: &[String]) -> Result<IndexMap<String, String>, ToolError> {
    let mut configs = IndexMap::new();
    for text in texts {
        let (name, value) = text
            .split_once('=')
            .map(|(name, value)| (name.trim(), value.trim()))
            .filter(|(_, value)| !value.is_empty() && !value.contains('='))
            .ok_or_else(|| {
                ToolError::failed(
                    "requirement failed: Invalid topic config: all configs to be added must be in the format \"key=val\".",
                )
            })?;
        configs.insert(name.to_owned(), value.to_owned());
    }
    Ok(configs)
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;
    use super::*;

    #[test]
    fn the_options_become_a_topic() {
        let arguments =
            parse("--create --topic t --partitions 3 --config a=b --config=c=d --config a=e");
        let topic = new_topic("t", &arguments).expect("a topic");
        assert_eq!((topic.num_partitions, topic.replication_factor), (3, -1));
        let configs = topic.configs.iter();
        let configs: Vec<_> = configs
            .map(|config| (config.name.as_str(), config.value.as_deref()))
            .collect();
        assert_eq!(configs, [("a", Some("e")), ("c", Some("d"))]);
        let arguments = parse("--create --topic t --replica-assignment 1:2,3:1");
        let topic = new_topic("t", &arguments).expect("a topic");
        assert_eq!((topic.num_partitions, topic.replication_factor), (-1, -1));
        assert_eq!(topic.assignments[1].partition_index, 1);
        assert_eq!(topic.assignments[1].broker_ids, [BrokerId(3), BrokerId(1)]);
    }

    #[test]
    fn what_is_wrong_is_said_in_kafkas_words() {
        let error = |line: &str| {
            let error = new_topic("t", &parse(line)).expect_err(line);
            error.to_string()
        };
        let lines = [
            (
                "--config x",
                "requirement failed: Invalid topic config: all configs",
            ),
            ("--partitions 0", "The partitions must be greater than 0"),
            (
                "--replication-factor 0",
                "The replication factor must be between 1 and 32767 inclusive",
            ),
            (
                "--replica-assignment 1:1",
                "Partition replica lists may not contain duplicate entries: 1",
            ),
            (
                "--replica-assignment 1:2,2",
                "Partition 1 has different replication factor: [2]",
            ),
            ("--replica-assignment 1:x", "For input string: \"x\""),
        ];
        for (line, text) in lines {
            assert!(error(line).starts_with(text), "{}", error(line));
        }
    }
}
