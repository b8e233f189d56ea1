//! CreateTopics.

use std::collections::HashMap;
use std::sync::Arc;

use highwater_replication::cluster::create_topics::{
    CreateTopicResult, CreatedTopic, NewTopic, create_topics,
};
use highwater_replication::cluster::{ClusterError, ClusterImage, ConfigMap};
use highwater_storage::TopicId;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult,
};
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::config_entries::topic_config_entries;
use super::error_code::ErrorCode;
use super::metadata_change::{message, submit_within};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::controller::{Decision, ServerConfigRules, topic_defaults};

/// From here on the response tells what the topic got.
const DETAILS_FROM: i16 = 5;

type Outcome = Result<Vec<CreateTopicResult>, ClusterError>;

/// Handles a CreateTopics request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: CreateTopicsRequest,
) -> Reply {
    let topics: Arc<[NewTopic]> = request.topics.iter().map(new_topic).collect();
    let (judged, validate_only) = (topics.clone(), request.validate_only);
    let defaults = topic_defaults(&broker.config.current());
    let rules = ServerConfigRules::new(broker.config.clone());
    let submitted = submit_within(
        &broker,
        request.timeout_ms,
        move |image, _| -> Decision<Outcome> {
            match create_topics(image, &judged, defaults, &rules, &mut TopicId::random) {
                Ok((_, results)) if validate_only => Decision::unchanged(Ok(results)),
                Ok((records, results)) => Decision {
                    records,
                    response: Ok(results),
                },
                Err(error) => Decision::unchanged(Err(error)),
            }
        },
    );
    let results = match submitted.await {
        Ok(Ok(results)) => results,
        Ok(Err(error)) => {
            return refuse(&ctx, &request, error.error_code(), message(&error));
        }
        Err(error) => return refuse(&ctx, &request, error, None),
    };
    let image = broker.image();
    let by_name: HashMap<&str, &NewTopic> = topics
        .iter()
        .map(|topic| (topic.name.as_str(), topic))
        .collect();
    let responses = results.into_iter().map(|(name, result)| match result {
        Ok(created) => {
            let configs = configs_of(by_name.get(name.as_str()));
            created_topic(&broker, &ctx, &image, name, &created, &configs)
        }
        Err(error) => failed_topic(
            &ctx,
            StrBytes::from_string(name),
            error.error_code(),
            message(&error),
        ),
    });
    ctx.encode(&CreateTopicsResponse::default().with_topics(responses.collect()))
        .into()
}

fn new_topic(topic: &CreatableTopic) -> NewTopic {
    let assignment = topic.assignments.iter().map(|assignment| {
        (
            assignment.partition_index,
            assignment.broker_ids.iter().map(|id| id.0).collect(),
        )
    });
    let configs = topic.configs.iter().map(|config| {
        (
            config.name.to_string(),
            config.value.as_ref().map(|value| value.to_string()),
        )
    });
    NewTopic {
        name: topic.name.to_string(),
        num_partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: assignment.collect(),
        configs: configs.collect(),
    }
}

/// The configurations that the request gave a topic.
fn configs_of(topic: Option<&&NewTopic>) -> ConfigMap {
    let configs = topic.into_iter().flat_map(|topic| &topic.configs);
    configs
        .filter_map(|(key, value)| Some((key.clone(), value.clone()?)))
        .collect()
}

fn created_topic(
    broker: &Broker,
    ctx: &RequestContext,
    image: &ClusterImage,
    name: String,
    created: &CreatedTopic,
    configs: &ConfigMap,
) -> CreatableTopicResult {
    let mut result = CreatableTopicResult::default()
        .with_name(TopicName(StrBytes::from_string(name)))
        .with_topic_id(created.topic_id.0)
        .with_error_message(None)
        .with_configs(None);
    if ctx.api_version >= DETAILS_FROM {
        let entries = topic_config_entries(broker, image, configs)
            .into_iter()
            .map(|entry| {
                CreatableTopicConfigs::default()
                    .with_name(StrBytes::from_static_str(entry.name))
                    .with_value(Some(StrBytes::from_string(entry.value)))
                    .with_config_source(entry.source)
            });
        result.configs = Some(entries.collect());
        result.num_partitions = created.num_partitions;
        result.replication_factor = created.replication_factor;
    }
    result
}

fn failed_topic(
    ctx: &RequestContext,
    name: StrBytes,
    error: ResponseError,
    message: Option<StrBytes>,
) -> CreatableTopicResult {
    ctx.count_error(error);
    CreatableTopicResult::default()
        .with_name(TopicName(name))
        .with_error_code(error.code())
        .with_error_message(message)
        .with_configs(Some(Vec::new()))
}

/// Answers every topic of the request with the same error.
fn refuse(
    ctx: &RequestContext,
    request: &CreateTopicsRequest,
    error: ResponseError,
    message: Option<StrBytes>,
) -> Reply {
    let topics = request.topics.iter();
    let results =
        topics.map(|topic| failed_topic(ctx, topic.name.0.clone(), error, message.clone()));
    ctx.encode(&CreateTopicsResponse::default().with_topics(results.collect()))
        .into()
}
