//! DeleteTopics: by name or, from version 6, by id.

use std::sync::Arc;

use highwater_replication::cluster::ClusterError;
use highwater_replication::cluster::delete_topics::{
    DeleteTopicResult, TopicToDelete, delete_topics,
};
use highwater_storage::TopicId;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::error_code::ErrorCode;
use super::metadata_change::{message, submit_within};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::controller::Decision;

/// From here on TOPIC_DELETION_DISABLED is known to clients.
const DELETION_DISABLED_FROM: i16 = 3;
/// From here on topics are listed with name and id.
const BY_ID_FROM: i16 = 6;

type Outcome = Result<Vec<DeleteTopicResult>, ClusterError>;

/// Handles a DeleteTopics request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: DeleteTopicsRequest,
) -> Reply {
    let topics = topics_to_delete(&request);
    if !broker.config.current().delete_topic_enable {
        let error = match ctx.api_version < DELETION_DISABLED_FROM {
            true => ResponseError::InvalidRequest,
            false => ResponseError::TopicDeletionDisabled,
        };
        return refuse(&ctx, topics, error, None);
    }
    let judged = topics.clone();
    let submitted = submit_within(
        &broker,
        request.timeout_ms,
        move |image, _| -> Decision<Outcome> {
            match delete_topics(image, &judged) {
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
        Ok(Err(error)) => return refuse(&ctx, topics, error.error_code(), message(&error)),
        Err(error) => return refuse(&ctx, topics, error, None),
    };
    let responses =
        results
            .into_iter()
            .map(|DeleteTopicResult { name, id, result }| match result {
                Ok(()) => response_topic(name, id),
                Err(error) => {
                    let code = error.error_code();
                    ctx.count_error(code);
                    response_topic(name, id)
                        .with_error_code(code.code())
                        .with_error_message(message(&error))
                }
            });
    ctx.encode(&DeleteTopicsResponse::default().with_responses(responses.collect()))
        .into()
}

fn topics_to_delete(request: &DeleteTopicsRequest) -> Vec<TopicToDelete> {
    let named = request.topic_names.iter().map(|name| TopicToDelete {
        name: Some(name.to_string()),
        id: TopicId::ZERO,
    });
    let listed = request.topics.iter().map(|topic| TopicToDelete {
        name: topic.name.as_ref().map(|name| name.to_string()),
        id: TopicId(topic.topic_id),
    });
    named.chain(listed).collect()
}

fn response_topic(name: Option<String>, id: TopicId) -> DeletableTopicResult {
    DeletableTopicResult::default()
        .with_name(name.map(|name| TopicName(StrBytes::from_string(name))))
        .with_topic_id(id.0)
        .with_error_message(None)
}

/// Answers every topic of the request with the same error.
fn refuse(
    ctx: &RequestContext,
    topics: Vec<TopicToDelete>,
    error: ResponseError,
    message: Option<StrBytes>,
) -> Reply {
    let responses = topics.into_iter().map(|topic| {
        ctx.count_error(error);
        let name = topic
            .name
            .or_else(|| (ctx.api_version < BY_ID_FROM).then(String::new));
        response_topic(name, topic.id)
            .with_error_code(error.code())
            .with_error_message(message.clone())
    });
    ctx.encode(&DeleteTopicsResponse::default().with_responses(responses.collect()))
        .into()
}
