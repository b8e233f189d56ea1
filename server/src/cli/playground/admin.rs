//! What the playground asks of the cluster itself: topics, their configuration, elections. Any broker hands it on to the
//! controller.

use std::time::Duration;

use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    BrokerId, CreateTopicsRequest, DeleteTopicsRequest, ElectLeadersRequest,
    IncrementalAlterConfigsRequest, MetadataRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use tokio::time::timeout;

use super::view::Belief;
use crate::console::offsets::error_name;
use crate::network::client::Client;

/// How long the controller may take.
const TIMEOUT_MS: i32 = 8000;
const PATIENCE: Duration = Duration::from_secs(10);
/// Kafka's number of topics among what has configurations, and of "set".
const TOPIC: i8 = 2;
const SET: i8 = 0;
const PREFERRED: i8 = 0;
/// ELECTION_NOT_NEEDED: the preferred replica leads already.
const ELECTION_NOT_NEEDED: i16 = 84;

fn name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// What the answer's error says, if it has one.
fn check(code: i16, message: Option<&StrBytes>) -> Result<(), String> {
    match (code, message) {
        (0, _) => Ok(()),
        (code, Some(message)) if !message.is_empty() => {
            Err(format!("{}: {}", error_name(code), message.as_str()))
        }
        (code, _) => Err(error_name(code)),
    }
}

async fn within<T>(
    answer: impl Future<Output = Result<T, crate::network::client::ClientError>>,
) -> Result<T, String> {
    match timeout(PATIENCE, answer).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

/// Makes a topic of one partition on these brokers, the first of which is to lead.
pub(super) async fn create_topic(
    client: &Client,
    topic: &str,
    replicas: &[i32],
    configs: &[(&str, String)],
) -> Result<(), String> {
    let assignment = CreatableReplicaAssignment::default()
        .with_broker_ids(replicas.iter().copied().map(BrokerId).collect());
    let configs = configs.iter().map(|(key, value)| {
        CreatableTopicConfig::default()
            .with_name(text(key))
            .with_value(Some(text(value)))
    });
    let topic = CreatableTopic::default()
        .with_name(name(topic))
        .with_num_partitions(-1)
        .with_replication_factor(-1)
        .with_assignments(vec![assignment])
        .with_configs(configs.collect());
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(TIMEOUT_MS);
    let response = within(client.call(&request)).await?;
    let created = response.topics.first().ok_or("an empty answer")?;
    check(created.error_code, created.error_message.as_ref())
}

/// Deletes a topic.
pub(super) async fn delete_topic(client: &Client, topic: &str) -> Result<(), String> {
    let request = DeleteTopicsRequest::default()
        .with_topics(vec![
            DeleteTopicState::default().with_name(Some(name(topic))),
        ])
        .with_timeout_ms(TIMEOUT_MS);
    // Until version 5 topics were named in another field.
    let answer = client.call_within(6..=6, |_| request);
    let (_, response) = within(answer).await?;
    let deleted = response.responses.first().ok_or("an empty answer")?;
    check(deleted.error_code, deleted.error_message.as_ref())
}

/// Sets one key of a topic's configuration.
pub(super) async fn set_config(
    client: &Client,
    topic: &str,
    key: &str,
    value: &str,
) -> Result<(), String> {
    let config = AlterableConfig::default()
        .with_name(text(key))
        .with_config_operation(SET)
        .with_value(Some(text(value)));
    let resource = AlterConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(text(topic))
        .with_configs(vec![config]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let response = within(client.call(&request)).await?;
    let altered = response.responses.first().ok_or("an empty answer")?;
    check(altered.error_code, altered.error_message.as_ref())
}

/// Lets the preferred replica lead.
pub(super) async fn elect_preferred(client: &Client, topic: &str) -> Result<(), String> {
    let partitions = TopicPartitions::default()
        .with_topic(name(topic))
        .with_partitions(vec![0]);
    let request = ElectLeadersRequest::default()
        .with_election_type(PREFERRED)
        .with_topic_partitions(Some(vec![partitions]))
        .with_timeout_ms(TIMEOUT_MS);
    let response = within(client.call(&request)).await?;
    check(response.error_code, None)?;
    let mut results = response.replica_election_results.iter();
    let results = results.find_map(|topic| topic.partition_result.first());
    match results {
        Some(result) if result.error_code == ELECTION_NOT_NEEDED => {
            Err("the preferred replica leads already".to_owned())
        }
        Some(result) => check(result.error_code, result.error_message.as_ref()),
        None => Ok(()),
    }
}

/// What a broker believes of the partition; `None` when it knows of no such topic.
pub(super) async fn belief(client: &Client, topic: &str) -> Result<Option<Belief>, String> {
    let asked = MetadataRequestTopic::default().with_name(Some(name(topic)));
    let request = MetadataRequest::default()
        .with_topics(Some(vec![asked]))
        .with_allow_auto_topic_creation(false);
    let response = client
        .call(&request)
        .await
        .map_err(|error| error.to_string())?;
    let mut topics = response.topics.iter();
    let partition = topics.find_map(|topic| topic.partitions.first());
    let ids = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect();
    Ok(partition.map(|partition| Belief {
        leader: (partition.leader_id.0 >= 0).then_some(partition.leader_id.0),
        leader_epoch: partition.leader_epoch,
        isr: ids(&partition.isr_nodes),
        replicas: ids(&partition.replica_nodes),
    }))
}

/// How many brokers the controller lets lead.
pub(super) async fn active_brokers(client: &Client) -> Result<usize, String> {
    let request = MetadataRequest::default().with_topics(Some(Vec::new()));
    let response = within(client.call(&request)).await?;
    Ok(response.brokers.len())
}
