//! The requests of [`crate::requests`] for the APIs that administrate.

mod others;
mod settings;
mod topics;

use kafka_protocol::messages::{
    AlterConfigsRequest, ApiKey, BrokerId, CreatePartitionsRequest, CreateTopicsRequest,
    DeleteGroupsRequest, DeleteRecordsRequest, DeleteTopicsRequest, DescribeConfigsRequest,
    DescribeLogDirsRequest, DescribeProducersRequest, DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest, OffsetDeleteRequest, RequestKind,
};
use uuid::Uuid;

use crate::requests::{Subject, Variant};
use crate::support::{group_id, s, topic_name};

const UNKNOWN: &str = "no-such-topic";
const TOPIC: i8 = 2;
const BROKER: i8 = 4;

pub(crate) fn variants(key: ApiKey, version: i16, on: &Subject) -> Vec<Variant> {
    match key {
        ApiKey::CreateTopics => topics::create_topics(version, on),
        ApiKey::DeleteTopics => topics::delete_topics(version),
        ApiKey::DeleteRecords => topics::delete_records(on),
        ApiKey::DescribeConfigs => settings::describe_configs(version, on),
        ApiKey::AlterConfigs => settings::alter_configs(on),
        ApiKey::IncrementalAlterConfigs => settings::incremental_alter_configs(on),
        ApiKey::DescribeLogDirs => others::describe_log_dirs(on),
        ApiKey::CreatePartitions => topics::create_partitions(version, on),
        ApiKey::DeleteGroups => others::delete_groups(),
        ApiKey::OffsetDelete => others::offset_delete(on),
        ApiKey::DescribeProducers => others::describe_producers(on),
        ApiKey::DescribeTopicPartitions => topics::describe_topic_partitions(on),
        _ => crate::requests_cluster::variants(key, version, on),
    }
}
