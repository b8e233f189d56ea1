//! `delete-records`: records below an offset are deleted, at their leaders.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use kafka_protocol::messages::DeleteRecordsRequest;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::delete_records_response::DeleteRecordsResponse;

use super::client::{
    Cluster, KafkaError, REQUEST_TIMEOUT_MS, Results, TopicPartition, by_topic, topic_name,
};
use super::lists::joined;
use super::{ClusterOptions, ToolError, json};

/// Options of the tool.
#[derive(Debug, Args)]
pub(crate) struct DeleteRecordsArguments {
    #[command(flatten)]
    cluster: ClusterOptions,

    /// JSON file with an offset per partition:
    /// {"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}
    #[arg(long, value_name = "FILE")]
    offset_json_file: PathBuf,
}

/// Runs the tool.
pub(super) async fn run(
    arguments: DeleteRecordsArguments,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let offsets = parse_offsets(&json::read_file(&arguments.offset_json_file)?)?;
    let cluster = arguments.cluster.cluster()?;
    writeln!(out, "Executing records delete operation")?;
    out.flush()?;
    let results = delete(&cluster, &offsets).await?;
    writeln!(out, "Records delete operation completed:")?;
    for (partition, result) in results {
        match result {
            Ok(offset) => writeln!(out, "partition: {partition}\tlow_watermark: {offset}")?,
            Err(error) => writeln!(out, "partition: {partition}\terror: {}", error.in_full())?,
        }
    }
    Ok(())
}

type Offsets = BTreeMap<TopicPartition, i64>;

fn parse_offsets(text: &str) -> Result<Offsets, ToolError> {
    let mut offsets = BTreeMap::new();
    let mut duplicates = BTreeSet::new();
    for entry in json::array(&json::parse(text)?, "partitions")? {
        let topic = json::text(entry, "topic")?;
        let partition = TopicPartition::new(topic, json::integer(entry, "partition")?);
        let offset = json::integer(entry, "offset")?;
        if offsets.insert(partition.clone(), offset).is_some() {
            duplicates.insert(partition.to_string());
        }
    }
    if duplicates.is_empty() {
        return Ok(offsets);
    }
    Err(ToolError::failed(format!(
        "Offset json file contains duplicate topic partitions: {}",
        joined(&duplicates)
    )))
}

async fn delete(cluster: &Cluster, offsets: &Offsets) -> Result<Results<i64>, KafkaError> {
    let partitions = offsets.keys().cloned();
    cluster
        .ask_leaders("deleteRecords", partitions, async |leader, partitions| {
            let request = request(offsets, partitions);
            Ok(results(&cluster.try_node(leader, &request).await?))
        })
        .await
}

fn request(offsets: &Offsets, partitions: &[TopicPartition]) -> DeleteRecordsRequest {
    let topics = by_topic(partitions).into_iter().map(|(topic, indexes)| {
        let partitions = indexes.into_iter().filter_map(|index| {
            let offset = offsets.get(&TopicPartition::new(topic, index))?;
            let partition = DeleteRecordsPartition::default()
                .with_partition_index(index)
                .with_offset(*offset);
            Some(partition)
        });
        DeleteRecordsTopic::default()
            .with_name(topic_name(topic))
            .with_partitions(partitions.collect())
    });
    DeleteRecordsRequest::default()
        .with_topics(topics.collect())
        .with_timeout_ms(REQUEST_TIMEOUT_MS)
}

fn results(response: &DeleteRecordsResponse) -> Results<i64> {
    let topics = response.topics.iter();
    topics
        .flat_map(|topic| {
            topic.partitions.iter().map(|partition| {
                (
                    TopicPartition::new(topic.name.0.as_str(), partition.partition_index),
                    KafkaError::check(partition.error_code, None).map(|()| partition.low_watermark),
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_becomes_a_request() {
        let text = r#"{"partitions": [{"topic": "a", "partition": 1, "offset": 5},
                       {"topic": "a", "partition": 0, "offset": -1}], "version": 1}"#;
        let offsets = parse_offsets(text).expect("parses");
        let partitions: Vec<_> = offsets.keys().cloned().collect();
        let request = request(&offsets, &partitions);
        let partitions = &request.topics[0].partitions;
        let partitions = partitions.iter().map(|p| (p.partition_index, p.offset));
        assert_eq!(partitions.collect::<Vec<_>>(), [(0, -1), (1, 5)]);
    }

    #[test]
    fn a_partition_must_not_be_there_twice() {
        let text = r#"{"partitions": [{"topic": "a", "partition": 1, "offset": 5},
                       {"topic": "a", "partition": 1, "offset": 6}]}"#;
        assert_eq!(
            parse_offsets(text).expect_err("twice").to_string(),
            "Offset json file contains duplicate topic partitions: a-1"
        );
    }
}
