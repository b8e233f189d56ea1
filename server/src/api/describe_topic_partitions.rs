//! DescribeTopicPartitions: topics page by page, with eligible leader replicas (KIP-966).

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use highwater_replication::cluster::{ClusterImage, PartitionImage, TopicImage, topic_name};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::{
    BrokerId, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use super::cluster_nodes::{ALL_TOPIC_OPERATIONS, broker_ids, nodes, offline_replicas, reachable};
use super::{Reply, RequestContext};
use crate::broker::Broker;

/// Handles a DescribeTopicPartitions request.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: DescribeTopicPartitionsRequest,
) -> Reply {
    let all_topics = request.topics.is_empty();
    let (cursor_topic, cursor_partition) = match &request.cursor {
        Some(cursor) => (cursor.topic_name.as_str(), cursor.partition_index),
        None => ("", 0),
    };
    let asked: BTreeSet<&str> = request
        .topics
        .iter()
        .map(|topic| topic.name.as_str())
        .collect();
    let cursor_is_asked = request.cursor.is_none() || all_topics || asked.contains(cursor_topic);
    if !cursor_is_asked || cursor_partition < 0 {
        return refuse(ctx, &request);
    }
    let limit = broker.config.current().max_request_partition_size_limit;
    let image = broker.image();
    let mut page = Page {
        ctx,
        reachable: reachable(&nodes(broker, ctx, &image, false)),
        image: &image,
        remaining: request.response_partition_limit.min(limit).max(1) as usize,
        topics: Vec::new(),
        next_cursor: None,
    };
    let first_partition = |name: &str| match name == cursor_topic {
        true => cursor_partition as usize,
        false => 0,
    };
    if all_topics {
        for topic in image.topics_from(cursor_topic) {
            if !page.add(&topic.name, Some(topic), first_partition(&topic.name)) {
                break;
            }
        }
    } else {
        for name in asked.range(cursor_topic..) {
            if !page.add(name, image.topic(name), first_partition(name)) {
                break;
            }
        }
    }
    let response = DescribeTopicPartitionsResponse::default()
        .with_topics(page.topics)
        .with_next_cursor(page.next_cursor);
    ctx.encode(&response).into()
}

/// Answers every topic of the request with INVALID_REQUEST.
fn refuse(ctx: &RequestContext, request: &DescribeTopicPartitionsRequest) -> Reply {
    let error = ResponseError::InvalidRequest;
    let topics = request.topics.iter().map(|topic| {
        ctx.count_error(error);
        DescribeTopicPartitionsResponseTopic::default()
            .with_error_code(error.code())
            .with_name(Some(topic.name.clone()))
    });
    let response = DescribeTopicPartitionsResponse::default()
        .with_topics(topics.collect())
        .with_next_cursor(None);
    ctx.encode(&response).into()
}

/// A response that fills up.
struct Page<'a> {
    ctx: &'a RequestContext,
    image: &'a ClusterImage,
    /// Brokers that this client can reach.
    reachable: HashSet<highwater_storage::BrokerId>,
    /// Partitions that still fit.
    remaining: usize,
    topics: Vec<DescribeTopicPartitionsResponseTopic>,
    next_cursor: Option<Cursor>,
}

impl Page<'_> {
    /// Adds a topic from a partition on; false when the page is full, then the cursor is set.
    fn add(&mut self, name: &str, topic: Option<&Arc<TopicImage>>, first_partition: usize) -> bool {
        if self.remaining == 0 {
            self.next_cursor = Some(cursor(name, 0));
            return false;
        }
        let response = DescribeTopicPartitionsResponseTopic::default()
            .with_name(Some(TopicName(StrBytes::from_string(name.to_owned()))))
            .with_is_internal(topic_name::is_internal(name))
            .with_topic_authorized_operations(ALL_TOPIC_OPERATIONS);
        let Some(topic) = topic else {
            let error = match topic_name::validate(name) {
                Ok(()) => ResponseError::UnknownTopicOrPartition,
                Err(_) => ResponseError::InvalidTopicException,
            };
            self.ctx.count_error(error);
            self.topics.push(response.with_error_code(error.code()));
            return true;
        };
        let end = topic
            .partitions
            .len()
            .min(first_partition.saturating_add(self.remaining));
        let described = topic
            .partitions
            .get(first_partition..end)
            .unwrap_or_default();
        let partitions: Vec<_> = described
            .iter()
            .enumerate()
            .map(|(index, partition)| self.partition((first_partition + index) as i32, partition))
            .collect();
        self.remaining -= partitions.len();
        self.topics.push(
            response
                .with_topic_id(topic.id.0)
                .with_partitions(partitions),
        );
        if end < topic.partitions.len() {
            self.next_cursor = Some(cursor(name, end as i32));
            return false;
        }
        true
    }

    fn partition(
        &self,
        index: i32,
        partition: &PartitionImage,
    ) -> DescribeTopicPartitionsResponsePartition {
        let leader = partition
            .leader
            .filter(|leader| self.reachable.contains(leader));
        let error = match (partition.leader, leader) {
            (_, Some(_)) => 0,
            (Some(_), None) => ResponseError::ListenerNotFound.code(),
            (None, None) => ResponseError::LeaderNotAvailable.code(),
        };
        DescribeTopicPartitionsResponsePartition::default()
            .with_error_code(error)
            .with_partition_index(index)
            .with_leader_id(BrokerId(leader.map_or(-1, |leader| leader.0)))
            .with_leader_epoch(partition.leader_epoch.0)
            .with_replica_nodes(broker_ids(&partition.replicas))
            .with_isr_nodes(broker_ids(&partition.isr))
            .with_eligible_leader_replicas(Some(broker_ids(&partition.eligible_leader_replicas)))
            .with_last_known_elr(Some(broker_ids(&partition.last_known_elr)))
            .with_offline_replicas(offline_replicas(self.image, partition))
    }
}

fn cursor(topic: &str, partition_index: i32) -> Cursor {
    Cursor::default()
        .with_topic_name(TopicName(StrBytes::from_string(topic.to_owned())))
        .with_partition_index(partition_index)
}
