//! ListPartitionReassignments (KIP-455): the moves of replicas that are going on.

use std::sync::Arc;

use highwater_replication::cluster::reassign::list_partition_reassignments;
use kafka_protocol::messages::list_partition_reassignments_response::{
    OngoingPartitionReassignment, OngoingTopicReassignment,
};
use kafka_protocol::messages::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use super::cluster_nodes::broker_ids;
use super::metadata_change::active_epoch;
use super::{Reply, RequestContext};
use crate::broker::Broker;

/// Handles a ListPartitionReassignments request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: ListPartitionReassignmentsRequest,
) -> Reply {
    let response = ListPartitionReassignmentsResponse::default().with_error_message(None);
    if let Err(error) = active_epoch(&broker) {
        ctx.count_error(error);
        return ctx.encode(&response.with_error_code(error.code())).into();
    }
    let asked = request.topics.map(|topics| {
        let topics = topics.into_iter();
        topics
            .map(|topic| (topic.name.to_string(), topic.partition_indexes))
            .collect::<Vec<_>>()
    });
    let ongoing = list_partition_reassignments(&broker.image(), asked.as_deref());
    let topics = ongoing.into_iter().map(|(name, _, partitions)| {
        let partitions = partitions.into_iter().map(|ongoing| {
            OngoingPartitionReassignment::default()
                .with_partition_index(ongoing.partition)
                .with_replicas(broker_ids(&ongoing.replicas))
                .with_adding_replicas(broker_ids(&ongoing.adding_replicas))
                .with_removing_replicas(broker_ids(&ongoing.removing_replicas))
        });
        OngoingTopicReassignment::default()
            .with_name(TopicName(StrBytes::from_string(name)))
            .with_partitions(partitions.collect())
    });
    ctx.encode(&response.with_topics(topics.collect())).into()
}
