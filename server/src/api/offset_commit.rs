//! OffsetCommit (key 8): a group, or a consumer by itself, says how far it has come.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse, TopicName};
use uuid::Uuid;

use super::group_answer::{code, owned, owned_option, reply};
use super::{Reply, RequestContext, ResponseBody};
use crate::broker::Broker;
use crate::coordinator::group::state::{CommitOutcome, CommitRequest, OffsetToCommit};

/// From here on an unknown group has an error of its own (KIP-848).
const UNKNOWN_GROUP: i16 = 9;

/// Commits offsets. Partitions that do not exist are refused one by one; the rest are committed together.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: OffsetCommitRequest,
) -> Reply {
    let mut results = Results::default();
    let mut offsets = Vec::new();
    let image = broker.image();
    for topic in &request.topics {
        let known = image.topic(&topic.name);
        for partition in &topic.partitions {
            match known.filter(|known| known.partition(partition.partition_index).is_some()) {
                Some(known) => offsets.push(to_commit(topic, known.id.0, partition)),
                None => results.push(
                    &topic.name,
                    partition.partition_index,
                    Some(ResponseError::UnknownTopicOrPartition),
                ),
            }
        }
    }
    if offsets.is_empty() {
        return results.respond(ctx).into();
    }
    let commit = CommitRequest {
        group_id: owned(&request.group_id),
        member_id: owned(&request.member_id),
        instance_id: owned_option(request.group_instance_id.as_ref()),
        generation: request.generation_id_or_member_epoch,
        retention_ms: Some(request.retention_time_ms).filter(|retention_ms| *retention_ms >= 0),
        unknown_group_error: if ctx.api_version >= UNKNOWN_GROUP {
            ResponseError::GroupIdNotFound
        } else {
            ResponseError::IllegalGeneration
        },
        offsets,
    };
    let answer = broker.groups.commit_offsets(&commit);
    reply(ctx, answer, move |ctx, outcome| {
        results.add_outcome(&commit.offsets, outcome);
        results.respond(ctx)
    })
}

fn to_commit(
    topic: &OffsetCommitRequestTopic,
    topic_id: Uuid,
    partition: &OffsetCommitRequestPartition,
) -> OffsetToCommit {
    OffsetToCommit {
        topic: owned(&topic.name),
        topic_id,
        partition: partition.partition_index,
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: owned(partition.committed_metadata.as_deref().unwrap_or_default()),
    }
}

/// Results by topic, in the order in which they became known, as Kafka lists them.
#[derive(Default)]
struct Results {
    topics: Vec<(TopicName, Vec<(i32, Option<ResponseError>)>)>,
}

impl Results {
    fn push(&mut self, topic: &TopicName, partition: i32, error: Option<ResponseError>) {
        let result = (partition, error);
        match self.topics.iter_mut().find(|(name, _)| name == topic) {
            Some((_, partitions)) => partitions.push(result),
            None => self.topics.push((topic.clone(), vec![result])),
        }
    }

    fn add_outcome(&mut self, offsets: &[OffsetToCommit], outcome: CommitOutcome) {
        let results = outcome.unwrap_or_else(|error| vec![Err(error); offsets.len()]);
        for (offset, result) in offsets.iter().zip(results) {
            let topic = TopicName(super::group_answer::text(&offset.topic));
            self.push(&topic, offset.partition, result.err());
        }
    }

    fn respond(self, ctx: &RequestContext) -> ResponseBody {
        let topics = self.topics.into_iter().map(|(name, partitions)| {
            let partitions = partitions.into_iter().map(|(partition, error)| {
                OffsetCommitResponsePartition::default()
                    .with_partition_index(partition)
                    .with_error_code(code(ctx, error))
            });
            OffsetCommitResponseTopic::default()
                .with_name(name)
                .with_partitions(partitions.collect())
        });
        ctx.encode(&OffsetCommitResponse::default().with_topics(topics.collect()))
    }
}
