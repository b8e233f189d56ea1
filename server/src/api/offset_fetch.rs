//! OffsetFetch (key 9): how far groups have come.

use std::sync::Arc;

use highwater_replication::cluster::ClusterImage;
use highwater_storage::TopicId;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{GroupId, OffsetFetchResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::group_answer::{code, text};
use super::topic_id_requests::{OffsetFetch, TOPIC_IDS};
use super::{CloseReason, Reply, RequestContext};
use crate::broker::Broker;
use crate::coordinator::group::state::{CommittedOffset, TopicOffsets};

/// From here on a request asks for any number of groups (KIP-709).
const BATCH: i16 = 8;
/// From here on a request may ask for all topics, and has an error of its own.
const ALL_TOPICS: i16 = 2;
/// What is told of a partition without a committed offset.
const NO_OFFSET: i64 = -1;

/// Looks up committed offsets: of the partitions asked for, or of all that there are.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    OffsetFetch(request): OffsetFetch,
) -> Reply {
    let image = broker.image();
    if ctx.api_version >= BATCH {
        let groups = request.groups.into_iter().map(|group| {
            let OffsetFetchRequestGroup {
                group_id, topics, ..
            } = group;
            fetch(broker, ctx, &image, group_id, topics)
        });
        let response = OffsetFetchResponse::default().with_groups(groups.collect());
        return ctx.encode(&response).into();
    }
    if request.topics.is_none() && ctx.api_version < ALL_TOPICS {
        return Reply::Close(CloseReason::MalformedRequest);
    }
    let topics = request.topics.map(|topics| {
        let topics = topics.into_iter().map(|topic| {
            OffsetFetchRequestTopics::default()
                .with_name(topic.name)
                .with_partition_indexes(topic.partition_indexes)
        });
        topics.collect::<Vec<_>>()
    });
    let asked = topics.clone().unwrap_or_default();
    let group = fetch(broker, ctx, &image, request.group_id, topics);
    ctx.encode(&single_group(ctx, group, &asked)).into()
}

/// The response of versions that ask for one group.
fn single_group(
    ctx: &RequestContext,
    group: OffsetFetchResponseGroup,
    asked: &[OffsetFetchRequestTopics],
) -> OffsetFetchResponse {
    let topics = group.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter().map(|partition| {
            OffsetFetchResponsePartition::default()
                .with_partition_index(partition.partition_index)
                .with_committed_offset(partition.committed_offset)
                .with_committed_leader_epoch(partition.committed_leader_epoch)
                .with_metadata(partition.metadata)
                .with_error_code(partition.error_code)
        });
        OffsetFetchResponseTopic::default()
            .with_name(topic.name)
            .with_partitions(partitions.collect())
    });
    let response = OffsetFetchResponse::default().with_topics(topics.collect());
    if ctx.api_version >= ALL_TOPICS {
        return response.with_error_code(group.error_code);
    }
    if group.error_code == 0 {
        return response;
    }
    // Version 1 says it for each partition.
    let topics = asked.iter().map(|topic| {
        let partitions = topic.partition_indexes.iter().map(|partition| {
            OffsetFetchResponsePartition::default()
                .with_partition_index(*partition)
                .with_committed_offset(NO_OFFSET)
                .with_metadata(Some(StrBytes::default()))
                .with_error_code(group.error_code)
        });
        OffsetFetchResponseTopic::default()
            .with_name(topic.name.clone())
            .with_partitions(partitions.collect())
    });
    response.with_topics(topics.collect())
}

fn fetch(
    broker: &Broker,
    ctx: &RequestContext,
    image: &ClusterImage,
    group_id: GroupId,
    topics: Option<Vec<OffsetFetchRequestTopics>>,
) -> OffsetFetchResponseGroup {
    let looked_up = broker
        .groups
        .with_offsets(&group_id, |offsets| match topics {
            Some(topics) if ctx.api_version >= TOPIC_IDS => {
                partitions_by_id(ctx, image, offsets, topics)
            }
            Some(topics) => topics
                .into_iter()
                .map(|topic| {
                    let TopicName(name) = &topic.name;
                    let response = some_partitions(image, offsets, name, &topic.partition_indexes);
                    response.with_name(topic.name)
                })
                .collect(),
            None => all_partitions(ctx, image, offsets),
        });
    let response = OffsetFetchResponseGroup::default().with_group_id(group_id);
    match looked_up {
        Ok(topics) => response.with_topics(topics),
        Err(error) => response.with_error_code(code(ctx, Some(error))),
    }
}

/// The partitions asked for by topic id: known topics first, as Kafka lists them.
fn partitions_by_id(
    ctx: &RequestContext,
    image: &ClusterImage,
    offsets: Option<&TopicOffsets>,
    topics: Vec<OffsetFetchRequestTopics>,
) -> Vec<OffsetFetchResponseTopics> {
    let mut known = Vec::new();
    let mut unknown = Vec::new();
    for topic in topics {
        let indexes = &topic.partition_indexes;
        if let Some(found) = image.topic_by_id(TopicId(topic.topic_id)) {
            let response = some_partitions(image, offsets, &found.name, indexes);
            known.push(response.with_topic_id(topic.topic_id));
        } else {
            let partitions = indexes.iter().map(|partition| {
                let error = code(ctx, Some(ResponseError::UnknownTopicId));
                partition_response(*partition, None).with_error_code(error)
            });
            let response =
                OffsetFetchResponseTopics::default().with_partitions(partitions.collect());
            unknown.push(response.with_topic_id(topic.topic_id));
        }
    }
    known.append(&mut unknown);
    known
}

fn some_partitions(
    image: &ClusterImage,
    offsets: Option<&TopicOffsets>,
    topic: &str,
    indexes: &[i32],
) -> OffsetFetchResponseTopics {
    let committed = offsets.and_then(|offsets| offsets.get(topic));
    let partitions = indexes.iter().map(|partition| {
        let committed = committed.and_then(|partitions| partitions.get(partition));
        let committed = committed.filter(|committed| is_current(image, topic, committed));
        partition_response(*partition, committed)
    });
    OffsetFetchResponseTopics::default().with_partitions(partitions.collect())
}

/// Every partition with an offset; by topic id only those of topics that exist.
fn all_partitions(
    ctx: &RequestContext,
    image: &ClusterImage,
    offsets: Option<&TopicOffsets>,
) -> Vec<OffsetFetchResponseTopics> {
    let by_id = ctx.api_version >= TOPIC_IDS;
    let topics = offsets
        .into_iter()
        .flatten()
        .filter_map(|(name, partitions)| {
            let current = partitions
                .iter()
                .filter(|(_, committed)| is_current(image, name, committed))
                .map(|(partition, committed)| partition_response(*partition, Some(committed)));
            let response = OffsetFetchResponseTopics::default().with_partitions(current.collect());
            if by_id {
                Some(response.with_topic_id(image.topic(name)?.id.0))
            } else {
                Some(response.with_name(TopicName(text(name))))
            }
        });
    topics
        .filter(|topic| !topic.partitions.is_empty())
        .collect()
}

/// Whether an offset was committed for the topic that has the name now. Offsets of deleted topics are dropped, but that
/// takes a moment, and a crash may come between.
fn is_current(image: &ClusterImage, topic: &str, committed: &CommittedOffset) -> bool {
    let topic = image.topic(topic);
    committed.topic_id.is_nil() || topic.is_none_or(|topic| topic.id.0 == committed.topic_id)
}

fn partition_response(
    partition: i32,
    committed: Option<&CommittedOffset>,
) -> OffsetFetchResponsePartitions {
    let response = OffsetFetchResponsePartitions::default().with_partition_index(partition);
    match committed {
        Some(committed) => response
            .with_committed_offset(committed.offset)
            .with_committed_leader_epoch(committed.leader_epoch)
            .with_metadata(Some(text(&committed.metadata))),
        None => response
            .with_committed_offset(NO_OFFSET)
            .with_committed_leader_epoch(-1)
            .with_metadata(Some(StrBytes::default())),
    }
}
