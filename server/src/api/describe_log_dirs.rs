//! DescribeLogDirs: what lies in each log directory and how large it is.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use highwater_replication::cluster::topic_name::CLUSTER_METADATA_TOPIC;
use highwater_storage::Log;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::{Reply, RequestContext};
use crate::broker::Broker;

/// From here on the size and the free space of the file system are told.
const VOLUME_FROM: i16 = 4;

/// Handles a DescribeLogDirs request.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: DescribeLogDirsRequest,
) -> Reply {
    let asked: Option<HashMap<&str, HashSet<i32>>> = request.topics.as_ref().map(|topics| {
        let mut asked: HashMap<&str, HashSet<i32>> = HashMap::new();
        for topic in topics {
            asked
                .entry(topic.topic.as_str())
                .or_default()
                .extend(&topic.partitions);
        }
        asked
    });
    let is_asked = |log: &Log| {
        let partition = log.topic_partition();
        let in_request = |asked: &HashMap<&str, HashSet<i32>>| {
            asked
                .get(&*partition.topic)
                .is_some_and(|partitions| partitions.contains(&partition.partition))
        };
        *partition.topic != *CLUSTER_METADATA_TOPIC && asked.as_ref().is_none_or(in_request)
    };
    let manager = broker.replicas.logs();
    let logs = manager.logs();
    let results = manager.log_dirs().into_iter().map(|dir| {
        let mut topics: BTreeMap<Arc<str>, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
        let here = || logs.iter().filter(|log| log.log_dir() == dir.path);
        for log in here().filter(|log| is_asked(log) && log.failure().is_none()) {
            let partition = log.topic_partition();
            topics
                .entry(partition.topic.clone())
                .or_default()
                .push(partition_size(log));
        }
        let mut result = DescribeLogDirsResult::default()
            .with_log_dir(StrBytes::from_string(absolute(&dir.path)))
            .with_topics(topics.into_iter().map(topic).collect());
        // Kafka takes a directory out of use when one file in it fails; here the other logs in it go on, and are told.
        if here().any(|log| log.failure().is_some()) {
            result.error_code = ResponseError::KafkaStorageError.code();
        }
        if ctx.api_version >= VOLUME_FROM {
            result.total_bytes = i64::try_from(dir.total_bytes).unwrap_or(i64::MAX);
            result.usable_bytes = i64::try_from(dir.usable_bytes).unwrap_or(i64::MAX);
        }
        result
    });
    let unusable = manager.unusable_dirs().iter().map(|dir| {
        DescribeLogDirsResult::default()
            .with_log_dir(StrBytes::from_string(absolute(&dir.path)))
            .with_error_code(ResponseError::KafkaStorageError.code())
    });
    let results = results.chain(unusable).collect();
    ctx.encode(&DescribeLogDirsResponse::default().with_results(results))
        .into()
}

/// Kafka tells absolute paths.
fn absolute(path: &std::path::Path) -> String {
    std::path::absolute(path)
        .unwrap_or_else(|_| path.to_owned())
        .display()
        .to_string()
}

fn partition_size(log: &Log) -> DescribeLogDirsPartition {
    // No replica lags behind a future one: there are none.
    DescribeLogDirsPartition::default()
        .with_partition_index(log.topic_partition().partition)
        .with_partition_size(i64::try_from(log.size_in_bytes()).unwrap_or(i64::MAX))
        .with_offset_lag((log.high_watermark() - log.log_end_offset()).max(0))
}

fn topic(
    (name, mut partitions): (Arc<str>, Vec<DescribeLogDirsPartition>),
) -> DescribeLogDirsTopic {
    partitions.sort_by_key(|partition| partition.partition_index);
    DescribeLogDirsTopic::default()
        .with_name(TopicName(StrBytes::from_string(name.to_string())))
        .with_partitions(partitions)
}
