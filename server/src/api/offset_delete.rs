//! OffsetDelete (key 47): a group forgets how far it had come in topics that it no longer consumes.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kafka_protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse, TopicName};

use super::group_answer::{code, owned, reply, text};
use super::{Reply, RequestContext, ResponseBody};
use crate::broker::Broker;
use crate::coordinator::group::state::CommitOutcome;

/// Deletes committed offsets. Partitions that do not exist are refused one by one.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: OffsetDeleteRequest,
) -> Reply {
    let mut topics: Vec<OffsetDeleteResponseTopic> = Vec::new();
    let mut partitions = Vec::new();
    let image = broker.image();
    for topic in &request.topics {
        let known = image.topic(&topic.name);
        for asked in &topic.partitions {
            let partition = asked.partition_index;
            if known.is_some_and(|known| known.partition(partition).is_some()) {
                partitions.push((owned(&topic.name), partition));
            } else {
                let error = Some(ResponseError::UnknownTopicOrPartition);
                push(&mut topics, ctx, &topic.name, partition, error);
            }
        }
    }
    let answer = broker.groups.delete_offsets(&request.group_id, &partitions);
    reply(ctx, answer, move |ctx, outcome| {
        respond(ctx, topics, &partitions, outcome)
    })
}

fn respond(
    ctx: &RequestContext,
    mut topics: Vec<OffsetDeleteResponseTopic>,
    partitions: &[(Arc<str>, i32)],
    outcome: CommitOutcome,
) -> ResponseBody {
    let results = match outcome {
        Ok(results) => results,
        Err(error) => {
            let response = OffsetDeleteResponse::default().with_error_code(code(ctx, Some(error)));
            return ctx.encode(&response);
        }
    };
    for ((topic, partition), result) in partitions.iter().zip(results) {
        let topic = TopicName(text(topic));
        push(&mut topics, ctx, &topic, *partition, result.err());
    }
    ctx.encode(&OffsetDeleteResponse::default().with_topics(topics))
}

fn push(
    topics: &mut Vec<OffsetDeleteResponseTopic>,
    ctx: &RequestContext,
    name: &TopicName,
    partition: i32,
    error: Option<ResponseError>,
) {
    let result = OffsetDeleteResponsePartition::default()
        .with_partition_index(partition)
        .with_error_code(code(ctx, error));
    match topics.iter_mut().find(|topic| topic.name == *name) {
        Some(topic) => topic.partitions.push(result),
        None => topics.push(
            OffsetDeleteResponseTopic::default()
                .with_name(name.clone())
                .with_partitions(vec![result]),
        ),
    }
}
