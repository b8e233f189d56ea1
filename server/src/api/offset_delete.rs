//! OffsetDelete (key 47): a group forgets how far it had come in topics that it no longer consumes.

use std::collections::HashMap;
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
    let mut results = Results::default();
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
                results.push(ctx, &topic.name, partition, error);
            }
        }
    }
    let answer = broker.groups.delete_offsets(&request.group_id, &partitions);
    reply(ctx, answer, move |ctx, outcome| {
        respond(ctx, results, &partitions, outcome)
    })
}

fn respond(
    ctx: &RequestContext,
    mut results: Results,
    partitions: &[(Arc<str>, i32)],
    outcome: CommitOutcome,
) -> ResponseBody {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            let response = OffsetDeleteResponse::default().with_error_code(code(ctx, Some(error)));
            return ctx.encode(&response);
        }
    };
    for ((topic, partition), result) in partitions.iter().zip(outcome) {
        let topic = TopicName(text(topic));
        results.push(ctx, &topic, *partition, result.err());
    }
    ctx.encode(&OffsetDeleteResponse::default().with_topics(results.topics))
}

/// Results by topic, in the order in which they became known, as Kafka lists them.
#[derive(Default)]
struct Results {
    topics: Vec<OffsetDeleteResponseTopic>,
    /// Where each topic lies.
    places: HashMap<TopicName, usize>,
}

impl Results {
    fn push(
        &mut self,
        ctx: &RequestContext,
        name: &TopicName,
        partition: i32,
        error: Option<ResponseError>,
    ) {
        let topics = &mut self.topics;
        let place = self.places.entry(name.clone()).or_insert_with(|| {
            topics.push(OffsetDeleteResponseTopic::default().with_name(name.clone()));
            topics.len() - 1
        });
        let result = OffsetDeleteResponsePartition::default()
            .with_partition_index(partition)
            .with_error_code(code(ctx, error));
        topics[*place].partitions.push(result);
    }
}
