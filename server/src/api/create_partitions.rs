//! CreatePartitions: more partitions for topics that exist.

use std::sync::Arc;

use highwater_replication::cluster::ClusterError;
use highwater_replication::cluster::create_partitions::{
    CreatePartitionsResult, MorePartitions, create_partitions,
};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::error_code::ErrorCode;
use super::metadata_change::{message, submit_within};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::controller::Decision;

type Outcome = Result<Vec<CreatePartitionsResult>, ClusterError>;

/// Handles a CreatePartitions request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: CreatePartitionsRequest,
) -> Reply {
    let topics: Vec<MorePartitions> = request.topics.iter().map(more_partitions).collect();
    let validate_only = request.validate_only;
    let submitted = submit_within(
        &broker,
        request.timeout_ms,
        move |image, _| -> Decision<Outcome> {
            match create_partitions(image, &topics) {
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
        Ok(Err(error)) => return refuse(&ctx, &request, error.error_code(), message(&error)),
        Err(error) => return refuse(&ctx, &request, error, None),
    };
    let responses = results.into_iter().map(|(name, result)| {
        let response = CreatePartitionsTopicResult::default()
            .with_name(TopicName(StrBytes::from_string(name)))
            .with_error_message(None);
        match result {
            Ok(()) => response,
            Err(error) => {
                let code = error.error_code();
                ctx.count_error(code);
                // Kafka gives no text here.
                let text =
                    message(&error).filter(|_| code != ResponseError::UnknownTopicOrPartition);
                response
                    .with_error_code(code.code())
                    .with_error_message(text)
            }
        }
    });
    ctx.encode(&CreatePartitionsResponse::default().with_results(responses.collect()))
        .into()
}

fn more_partitions(topic: &CreatePartitionsTopic) -> MorePartitions {
    let assignments = topic.assignments.as_ref().map(|assignments| {
        assignments
            .iter()
            .map(|assignment| assignment.broker_ids.iter().map(|id| id.0).collect())
            .collect()
    });
    MorePartitions {
        name: topic.name.to_string(),
        count: topic.count,
        assignments,
    }
}

/// Answers every topic of the request with the same error.
fn refuse(
    ctx: &RequestContext,
    request: &CreatePartitionsRequest,
    error: ResponseError,
    message: Option<StrBytes>,
) -> Reply {
    let results = request.topics.iter().map(|topic| {
        ctx.count_error(error);
        CreatePartitionsTopicResult::default()
            .with_name(topic.name.clone())
            .with_error_code(error.code())
            .with_error_message(message.clone())
    });
    ctx.encode(&CreatePartitionsResponse::default().with_results(results.collect()))
        .into()
}
