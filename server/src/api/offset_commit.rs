//! OffsetCommit (key 8): a group, or a consumer by itself, says how far it has come.

use std::collections::HashMap;
use std::sync::Arc;

use highwater_replication::cluster::TopicImage;
use highwater_storage::TopicId;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_commit_request::OffsetCommitRequestPartition;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::{OffsetCommitResponse, TopicName};
use uuid::Uuid;

use super::group_answer::{code, owned, owned_option, reply, text};
use super::topic_id_requests::{OffsetCommit, TOPIC_IDS};
use super::{Reply, RequestContext, ResponseBody};
use crate::broker::Broker;
use crate::coordinator::group::state::{CommitOutcome, CommitRequest, OffsetToCommit};

/// From here on an unknown group has an error of its own (KIP-848).
const UNKNOWN_GROUP: i16 = 9;

/// Commits offsets. Partitions that do not exist are refused one by one; the rest are committed together.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    OffsetCommit(request): OffsetCommit,
) -> Reply {
    let mut results = Results::default();
    let mut offsets = Vec::new();
    let image = broker.image();
    for topic in &request.topics {
        let (known, unknown) = if ctx.api_version >= TOPIC_IDS {
            let known = image.topic_by_id(TopicId(topic.topic_id));
            (known, ResponseError::UnknownTopicId)
        } else {
            let known = image.topic(&topic.name);
            (known, ResponseError::UnknownTopicOrPartition)
        };
        for partition in &topic.partitions {
            let index = partition.partition_index;
            match known {
                None => results.push(&topic.name, topic.topic_id, index, Some(unknown)),
                Some(known) if known.partition(index).is_none() => {
                    let unknown = Some(ResponseError::UnknownTopicOrPartition);
                    results.push(&TopicName(text(&known.name)), known.id.0, index, unknown);
                }
                Some(known) => offsets.push(to_commit(known, partition)),
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

fn to_commit(topic: &TopicImage, partition: &OffsetCommitRequestPartition) -> OffsetToCommit {
    OffsetToCommit {
        topic: topic.name.clone(),
        topic_id: topic.id.0,
        partition: partition.partition_index,
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: owned(partition.committed_metadata.as_deref().unwrap_or_default()),
    }
}

/// Results by topic, in the order in which they became known, as Kafka lists them.
#[derive(Default)]
struct Results {
    topics: Vec<TopicResults>,
    /// Where each topic lies; of an unknown one only its name or its id is known.
    places: HashMap<(TopicName, Uuid), usize>,
}

struct TopicResults {
    name: TopicName,
    topic_id: Uuid,
    partitions: Vec<(i32, Option<ResponseError>)>,
}

impl Results {
    fn push(
        &mut self,
        name: &TopicName,
        topic_id: Uuid,
        partition: i32,
        error: Option<ResponseError>,
    ) {
        let topics = &mut self.topics;
        let place = self
            .places
            .entry((name.clone(), topic_id))
            .or_insert_with(|| {
                topics.push(TopicResults {
                    name: name.clone(),
                    topic_id,
                    partitions: Vec::new(),
                });
                topics.len() - 1
            });
        topics[*place].partitions.push((partition, error));
    }

    fn add_outcome(&mut self, offsets: &[OffsetToCommit], outcome: CommitOutcome) {
        let results = outcome.unwrap_or_else(|error| vec![Err(error); offsets.len()]);
        for (offset, result) in offsets.iter().zip(results) {
            let name = TopicName(text(&offset.topic));
            self.push(&name, offset.topic_id, offset.partition, result.err());
        }
    }

    fn respond(self, ctx: &RequestContext) -> ResponseBody {
        let topics = self.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.into_iter().map(|(partition, error)| {
                OffsetCommitResponsePartition::default()
                    .with_partition_index(partition)
                    .with_error_code(code(ctx, error))
            });
            let response =
                OffsetCommitResponseTopic::default().with_partitions(partitions.collect());
            if ctx.api_version >= TOPIC_IDS {
                response.with_topic_id(topic.topic_id)
            } else {
                response.with_name(topic.name)
            }
        });
        ctx.encode(&OffsetCommitResponse::default().with_topics(topics.collect()))
    }
}
