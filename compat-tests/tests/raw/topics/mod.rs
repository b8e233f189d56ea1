//! Metadata, topics and configurations (B, H).

mod creation;
mod metadata;
mod settings;

use std::time::Duration;

use compat_tests::broker::BrokerOptions;
use compat_tests::each_broker::{for_each_broker, for_each_broker_with};
use compat_tests::process::{eventually, free_port};
use compat_tests::raw::Connection;
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    AlterConfigsRequest, BrokerId, CreateTopicsRequest, DeleteTopicsRequest,
    DescribeClusterRequest, DescribeConfigsRequest, DescribeTopicPartitionsRequest,
    FindCoordinatorRequest, IncrementalAlterConfigsRequest, MetadataRequest,
};
use uuid::Uuid;

use crate::support::{
    batch, code, connect, create_topic, create_topic_with, delete_topic, list_offsets, metadata,
    produce, produce_ok, s, topic_name,
};

fn describe_one(connection: &mut Connection, topic: &str, key: &str) -> (Option<String>, i8) {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(s(topic))
        .with_configuration_keys(Some(vec![s(key)]));
    let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
    let reply = connection.call(4, &request).unwrap();
    let found = &reply.results[0];
    assert_eq!(found.error_code, code::NONE, "{found:?}");
    let entry = &found.configs[0];
    (
        entry.value.as_ref().map(|value| value.to_string()),
        entry.config_source,
    )
}

fn create(connection: &mut Connection, topics: Vec<CreatableTopic>) -> Vec<(String, i16)> {
    let request = CreateTopicsRequest::default()
        .with_topics(topics)
        .with_timeout_ms(10_000);
    let reply = connection
        .call(7, &request)
        .expect("CreateTopics is answered");
    for topic in &reply.topics {
        assert_eq!(
            topic.error_code != code::NONE,
            topic.error_message.is_some(),
            "{topic:?}"
        );
    }
    reply
        .topics
        .iter()
        .map(|topic| (topic.name.to_string(), topic.error_code))
        .collect()
}

fn new_topic(name: &str, partitions: i32, replicas: i16) -> CreatableTopic {
    CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(partitions)
        .with_replication_factor(replicas)
}

fn expect_one(connection: &mut Connection, topic: CreatableTopic, expected: i16) {
    let found = create(connection, vec![topic.clone()]);
    assert_eq!(found[0].1, expected, "{topic:?}");
}
