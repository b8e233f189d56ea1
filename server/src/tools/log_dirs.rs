//! `log-dirs`: which replicas lie where, and how large they are.

use std::collections::BTreeSet;
use std::io::Write;

use clap::Args;
use kafka_protocol::messages::DescribeLogDirsResponse;
use kafka_protocol::messages::describe_log_dirs_response::DescribeLogDirsResult;
use serde::Serialize;

use super::client::{KafkaError, replicas_in};
use super::java_order::{DEFAULT_CAPACITY, hash_map_order, hash_map_order_by, partition_hash};
use super::lists::{java_int, joined};
use super::{ClusterOptions, ToolError};

/// Options of the tool.
#[derive(Debug, Args)]
pub(crate) struct LogDirsArguments {
    #[command(flatten)]
    cluster: ClusterOptions,

    /// Print the directories: what the tool is there for, and Kafka's wants it to be said
    #[arg(long, required = true)]
    describe: bool,

    /// Topics; without it all
    #[arg(
        long,
        value_name = "TOPIC,...",
        default_value = "",
        hide_default_value = true
    )]
    topic_list: String,

    /// Ids of brokers; without it all
    #[arg(
        long,
        value_name = "ID,...",
        default_value = "",
        hide_default_value = true
    )]
    broker_list: String,
}

/// Runs the tool.
pub(super) async fn run(arguments: LogDirsArguments, out: &mut dyn Write) -> Result<(), ToolError> {
    let topics: BTreeSet<_> = entries(&arguments.topic_list).collect();
    let wanted = parse_ids(&arguments.broker_list)?;
    let cluster = arguments.cluster.cluster_named("log-dirs-tool")?;
    let nodes = cluster.nodes().await?;
    let existing: BTreeSet<_> = nodes.iter().map(|node| node.id).collect();
    let missing: BTreeSet<_> = wanted.difference(&existing).copied().collect();
    if !missing.is_empty() {
        return Err(ToolError::failed(format!(
            "ERROR: The given brokers do not exist from --broker-list: {}. Current existent brokers: {}",
            joined(&missing),
            joined(&existing)
        )));
    }
    let brokers = if wanted.is_empty() { existing } else { wanted };
    writeln!(out, "Querying brokers for log directories information")?;
    out.flush()?;
    let mut answers = Vec::new();
    for &broker in &brokers {
        let response = cluster.describe_log_dirs("describeLogDirs", broker);
        answers.push((broker, response.await?));
    }
    writeln!(
        out,
        "Received log directory information from brokers {}",
        joined(&brokers)
    )?;
    let report = report(&answers, &topics);
    let json =
        serde_json::to_string(&report).map_err(|error| ToolError::failed(error.to_string()))?;
    writeln!(out, "{json}")?;
    Ok(())
}

fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|entry| !entry.is_empty())
}

fn parse_ids(list: &str) -> Result<BTreeSet<i32>, ToolError> {
    entries(list).map(java_int).collect()
}

// The fields are in the order in which Kafka's tool prints them.

#[derive(Debug, Serialize)]
struct Report {
    brokers: Vec<BrokerReport>,
    version: i32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct BrokerReport {
    broker: i32,
    log_dirs: Vec<DirReport>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DirReport {
    partitions: Vec<ReplicaReport>,
    error: Option<String>,
    log_dir: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReplicaReport {
    partition: String,
    size: i64,
    offset_lag: i64,
    is_future: bool,
}

fn report(answers: &[(i32, DescribeLogDirsResponse)], topics: &BTreeSet<&str>) -> Report {
    let brokers = answers.iter().map(|(broker, response)| {
        let mut dirs: Vec<_> = response.results.iter().collect();
        hash_map_order(&mut dirs, DEFAULT_CAPACITY, |dir| &dir.log_dir);
        BrokerReport {
            broker: *broker,
            log_dirs: dirs
                .into_iter()
                .map(|dir| dir_report(dir, topics))
                .collect(),
        }
    });
    Report {
        brokers: brokers.collect(),
        version: 1,
    }
}

fn dir_report(dir: &DescribeLogDirsResult, topics: &BTreeSet<&str>) -> DirReport {
    let mut replicas: Vec<_> = replicas_in(dir).collect();
    // Kafka's tool puts them into one map, and those of the topics into another.
    hash_map_order_by(&mut replicas, DEFAULT_CAPACITY, |(key, _)| {
        partition_hash(key)
    });
    replicas.retain(|(key, _)| topics.is_empty() || topics.contains(key.topic.as_str()));
    hash_map_order_by(&mut replicas, DEFAULT_CAPACITY, |(key, _)| {
        partition_hash(key)
    });
    let replicas = replicas
        .into_iter()
        .map(|(partition, replica)| ReplicaReport {
            partition: partition.to_string(),
            size: replica.partition_size,
            offset_lag: replica.offset_lag,
            is_future: replica.is_future_key,
        });
    DirReport {
        partitions: replicas.collect(),
        error: KafkaError::check(dir.error_code, None)
            .err()
            .map(|error| error.full_class()),
        log_dir: dir.log_dir.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::describe_log_dirs_response::{
        DescribeLogDirsPartition, DescribeLogDirsTopic,
    };

    use super::super::client::topic_name;
    use super::*;

    #[test]
    fn the_report_is_kafkas_json() {
        let replica = |index| {
            DescribeLogDirsPartition::default()
                .with_partition_index(index)
                .with_partition_size(7)
        };
        let topic = |name: &str, indexes: &[i32]| {
            DescribeLogDirsTopic::default()
                .with_name(topic_name(name))
                .with_partitions(indexes.iter().copied().map(replica).collect())
        };
        let dir = DescribeLogDirsResult::default()
            .with_log_dir("/d".to_owned().into())
            .with_topics(vec![topic("t1", &[0, 2]), topic("t2", &[0])]);
        let lost = DescribeLogDirsResult::default()
            .with_log_dir("/e".to_owned().into())
            .with_error_code(56);
        let response = DescribeLogDirsResponse::default().with_results(vec![dir, lost]);
        let report = report(&[(1, response)], &BTreeSet::from(["t1"]));
        let replica = |name: &str| {
            format!(r#"{{"partition":"{name}","size":7,"offsetLag":0,"isFuture":false}}"#)
        };
        let expected = format!(
            r#"{{"brokers":[{{"broker":1,"logDirs":[{{"partitions":[{},{}],"error":null,"logDir":"/d"}},{{"partitions":[],"error":"org.apache.kafka.common.errors.KafkaStorageException","logDir":"/e"}}]}}],"version":1}}"#,
            replica("t1-2"),
            replica("t1-0")
        );
        assert_eq!(
            serde_json::to_string(&report).expect("serializes"),
            expected
        );
    }

    #[test]
    fn broker_ids_are_numbers() {
        assert_eq!(parse_ids("1,,2").expect("ids"), BTreeSet::from([1, 2]));
        assert!(parse_ids("x").is_err());
    }
}
