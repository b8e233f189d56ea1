//! Metadata: the brokers, and topics with the leaders of their partitions.

use std::collections::HashSet;
use std::sync::Arc;

use highwater_replication::cluster::{ClusterImage, PartitionImage, TopicImage, topic_name};
use highwater_storage::TopicId;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::cluster_nodes::{
    ALL_CLUSTER_OPERATIONS, ALL_TOPIC_OPERATIONS, broker_ids, nodes, offline_replicas, reachable,
};
use super::{CloseReason, Reply, RequestContext};
use crate::broker::Broker;

/// From here on null asks for all topics and an empty list for none.
const NULL_IS_ALL_FROM: i16 = 1;
/// From here on a leader without the client's listener is LISTENER_NOT_FOUND.
const LISTENER_NOT_FOUND_FROM: i16 = 6;
/// From here on topics may be asked for by id; versions 10 and 11 have the field and refuse it.
const BY_ID_FROM: i16 = 12;
/// The version that has an error of the whole response.
const TOP_LEVEL_ERROR_FROM: i16 = 13;
const CLUSTER_OPERATIONS_VERSIONS: std::ops::RangeInclusive<i16> = 8..=10;

/// Handles a Metadata request.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: MetadataRequest,
) -> Reply {
    if ctx.api_version < NULL_IS_ALL_FROM && request.topics.is_none() {
        return Reply::Close(CloseReason::MalformedRequest);
    }
    if let Some(error) = invalid_request(ctx.api_version, &request) {
        return refuse(ctx, &request, error);
    }
    let image = broker.image();
    let nodes = nodes(broker, ctx, &image, false);
    let view = View {
        broker,
        ctx,
        reachable: reachable(&nodes),
        image: &image,
        with_operations: request.include_topic_authorized_operations,
    };
    let topics = match &request.topics {
        None => image.topics().map(|topic| view.topic(topic)).collect(),
        Some(topics) if topics.is_empty() && ctx.api_version < NULL_IS_ALL_FROM => {
            image.topics().map(|topic| view.topic(topic)).collect()
        }
        Some(topics) if topics.iter().any(|topic| !topic.topic_id.is_nil()) => {
            view.topics_by_id(topics)
        }
        Some(topics) => view.topics_by_name(topics, request.allow_auto_topic_creation),
    };
    let brokers = nodes.into_iter().map(|node| {
        MetadataResponseBroker::default()
            .with_node_id(node.id)
            .with_host(node.host)
            .with_port(node.port)
            .with_rack(node.rack)
    });
    let mut response = MetadataResponse::default()
        .with_brokers(brokers.collect())
        .with_cluster_id(Some(StrBytes::from_string(image.cluster_id().to_string())))
        .with_controller_id(BrokerId(broker.controller.broker_id().0))
        .with_topics(topics);
    if request.include_cluster_authorized_operations
        && CLUSTER_OPERATIONS_VERSIONS.contains(&ctx.api_version)
    {
        response.cluster_authorized_operations = ALL_CLUSTER_OPERATIONS;
    }
    ctx.encode(&response).into()
}

/// What is wrong with the request as a whole.
fn invalid_request(version: i16, request: &MetadataRequest) -> Option<ResponseError> {
    let topics = request.topics.as_deref().unwrap_or_default();
    let neither = |topic: &MetadataRequestTopic| topic.name.is_none() && topic.topic_id.is_nil();
    let by_id = |topic: &MetadataRequestTopic| topic.name.is_none() || !topic.topic_id.is_nil();
    if version < BY_ID_FROM {
        topics
            .iter()
            .any(by_id)
            .then_some(ResponseError::InvalidRequest)
    } else {
        let none_by_id = topics.iter().all(|topic| topic.topic_id.is_nil());
        (none_by_id && topics.iter().any(neither)).then_some(ResponseError::InvalidRequest)
    }
}

/// Answers every topic of the request with the same error, and nothing else.
fn refuse(ctx: &RequestContext, request: &MetadataRequest, error: ResponseError) -> Reply {
    let topics = request.topics.iter().flatten().map(|topic| {
        ctx.count_error(error);
        MetadataResponseTopic::default()
            .with_error_code(error.code())
            .with_name(Some(topic.name.clone().unwrap_or_default()))
            .with_topic_id(topic.topic_id)
    });
    let mut response = MetadataResponse::default()
        .with_cluster_id(None)
        .with_topics(topics.collect());
    if ctx.api_version >= TOP_LEVEL_ERROR_FROM {
        response.error_code = error.code();
    }
    ctx.encode(&response).into()
}

/// The image as one client sees it.
struct View<'a> {
    broker: &'a Arc<Broker>,
    ctx: &'a RequestContext,
    image: &'a Arc<ClusterImage>,
    /// Brokers that this client can reach.
    reachable: HashSet<highwater_storage::BrokerId>,
    with_operations: bool,
}

impl View<'_> {
    fn topics_by_id(&self, topics: &[MetadataRequestTopic]) -> Vec<MetadataResponseTopic> {
        let mut asked = HashSet::new();
        let ids = topics
            .iter()
            .map(|topic| topic.topic_id)
            .filter(|id| !id.is_nil() && asked.insert(*id));
        let (mut unknown, mut known) = (Vec::new(), Vec::new());
        for id in ids {
            match self.image.topic_by_id(TopicId(id)) {
                Some(topic) => known.push(self.topic(topic)),
                None => {
                    self.ctx.count_error(ResponseError::UnknownTopicId);
                    let topic = MetadataResponseTopic::default()
                        .with_name(None)
                        .with_topic_id(id);
                    unknown.push(topic.with_error_code(ResponseError::UnknownTopicId.code()));
                }
            }
        }
        unknown.append(&mut known);
        unknown
    }

    fn topics_by_name(
        &self,
        topics: &[MetadataRequestTopic],
        may_create: bool,
    ) -> Vec<MetadataResponseTopic> {
        let mut asked = HashSet::new();
        let names = topics
            .iter()
            .filter_map(|topic| topic.name.as_ref())
            .filter(|name| asked.insert(name.as_str()));
        let (mut known, mut absent, mut to_create) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            if let Some(topic) = self.image.topic(name) {
                known.push(self.topic(topic));
                continue;
            }
            let error = match topic_name::validate(name) {
                Err(_) => ResponseError::InvalidTopicException,
                Ok(()) => {
                    to_create.push(name.as_str());
                    ResponseError::UnknownTopicOrPartition
                }
            };
            absent.push(self.absent_topic(name, error));
        }
        // Versions below 4 cannot say that they do not want it; the field is true for them.
        if may_create && self.broker.config.current().auto_create_topics_enable {
            self.broker.auto_topics.create_in_background(&to_create);
        }
        known.append(&mut absent);
        known
    }

    fn absent_topic(&self, name: &TopicName, error: ResponseError) -> MetadataResponseTopic {
        self.ctx.count_error(error);
        let topic = MetadataResponseTopic::default()
            .with_error_code(error.code())
            .with_name(Some(name.clone()))
            .with_is_internal(topic_name::is_internal(name));
        self.with_operations(topic)
    }

    fn with_operations(&self, topic: MetadataResponseTopic) -> MetadataResponseTopic {
        match self.with_operations {
            true => topic.with_topic_authorized_operations(ALL_TOPIC_OPERATIONS),
            false => topic,
        }
    }

    fn topic(&self, topic: &TopicImage) -> MetadataResponseTopic {
        let partitions = topic.partitions.iter().enumerate();
        let response = MetadataResponseTopic::default()
            .with_name(Some(TopicName(StrBytes::from_string(
                topic.name.to_string(),
            ))))
            .with_topic_id(topic.id.0)
            .with_is_internal(topic_name::is_internal(&topic.name))
            .with_partitions(
                partitions
                    .map(|(index, partition)| self.partition(index as i32, partition))
                    .collect(),
            );
        self.with_operations(response)
    }

    fn partition(&self, index: i32, partition: &PartitionImage) -> MetadataResponsePartition {
        let reachable = |id: highwater_storage::BrokerId| self.reachable.contains(&id);
        let mut replicas = broker_ids(&partition.replicas);
        let mut isr = broker_ids(&partition.isr);
        let leader = partition.leader.filter(|leader| reachable(*leader));
        let mut error = match (partition.leader, leader) {
            (_, Some(_)) => None,
            (Some(_), None) if self.ctx.api_version >= LISTENER_NOT_FOUND_FROM => {
                Some(ResponseError::ListenerNotFound)
            }
            _ => Some(ResponseError::LeaderNotAvailable),
        };
        if self.ctx.api_version == 0 {
            // The oldest clients look up every id among the brokers.
            let all = replicas.len() + isr.len();
            let present = |id: &BrokerId| reachable(highwater_storage::BrokerId(id.0));
            replicas.retain(present);
            isr.retain(present);
            if replicas.len() + isr.len() < all && error.is_none() {
                error = Some(ResponseError::ReplicaNotAvailable);
            }
        }
        if let Some(error) = error {
            self.ctx.count_error(error);
        }
        MetadataResponsePartition::default()
            .with_error_code(error.map_or(0, |error| error.code()))
            .with_partition_index(index)
            .with_leader_id(BrokerId(leader.map_or(-1, |leader| leader.0)))
            .with_leader_epoch(partition.leader_epoch.0)
            .with_replica_nodes(replicas)
            .with_isr_nodes(isr)
            .with_offline_replicas(offline_replicas(self.image, partition))
    }
}
