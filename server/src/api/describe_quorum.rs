//! DescribeQuorum (KIP-642, KIP-836): who leads the controllers, and how far everybody who follows the metadata is.

use std::sync::Arc;

use highwater_replication::cluster::topic_name::CLUSTER_METADATA_TOPIC;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_quorum_response::{
    Listener, Node, PartitionData, ReplicaState, TopicData,
};
use kafka_protocol::messages::{DescribeQuorumRequest, DescribeQuorumResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::controller::{QuorumReplica, QuorumStatus};

/// From here on times are told.
const TIMESTAMPS_FROM: i16 = 1;
/// From here on errors have texts, and nodes and directories are told.
const NODES_FROM: i16 = 2;

/// Handles a DescribeQuorum request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: DescribeQuorumRequest,
) -> Reply {
    let response = DescribeQuorumResponse::default().with_error_message(None);
    let is_metadata = match request.topics.as_slice() {
        [topic] => {
            let partitions = topic
                .partitions
                .iter()
                .map(|partition| partition.partition_index);
            *topic.topic_name.0 == *CLUSTER_METADATA_TOPIC && partitions.eq([0])
        }
        _ => false,
    };
    if !is_metadata {
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.into_iter();
            let partitions = partitions.map(|partition| {
                refused(
                    &ctx,
                    partition.partition_index,
                    ResponseError::UnknownTopicOrPartition,
                )
            });
            TopicData::default()
                .with_partitions(partitions.collect())
                .with_topic_name(topic.topic_name)
        });
        return ctx.encode(&response.with_topics(topics.collect())).into();
    }
    let topic = TopicData::default()
        .with_topic_name(TopicName(StrBytes::from_static_str(CLUSTER_METADATA_TOPIC)));
    if !broker.controller.is_active() {
        let partition = refused(&ctx, 0, ResponseError::NotLeaderOrFollower);
        let response = response.with_topics(vec![topic.with_partitions(vec![partition])]);
        return ctx.encode(&response).into();
    }
    let status = broker.controller.quorum_status(broker.now_ms());
    let mut response = response;
    if ctx.api_version >= NODES_FROM {
        response.nodes = nodes(&broker, &status);
    }
    let partition = partition(&ctx, status);
    let response = response.with_topics(vec![topic.with_partitions(vec![partition])]);
    ctx.encode(&response).into()
}

fn refused(ctx: &RequestContext, partition: i32, error: ResponseError) -> PartitionData {
    ctx.count_error(error);
    let response = PartitionData::default()
        .with_partition_index(partition)
        .with_error_code(error.code())
        .with_error_message(None);
    match ctx.api_version >= NODES_FROM {
        true => response.with_error_message(Some(StrBytes::from_string(error.to_string()))),
        false => response,
    }
}

fn partition(ctx: &RequestContext, status: QuorumStatus) -> PartitionData {
    let replicas = |replicas: Vec<QuorumReplica>| -> Vec<ReplicaState> {
        let replicas = replicas.into_iter();
        replicas
            .map(|replica| replica_state(ctx, &replica))
            .collect()
    };
    PartitionData::default()
        .with_partition_index(0)
        .with_error_message(None)
        .with_leader_id(status.leader_id.unwrap_or(-1).into())
        .with_leader_epoch(status.leader_epoch)
        .with_high_watermark(status.high_watermark)
        .with_current_voters(replicas(status.voters))
        .with_observers(replicas(status.observers))
}

fn replica_state(ctx: &RequestContext, replica: &QuorumReplica) -> ReplicaState {
    let mut state = ReplicaState::default()
        .with_replica_id(replica.id.into())
        .with_log_end_offset(replica.log_end_offset);
    if ctx.api_version >= TIMESTAMPS_FROM {
        state.last_fetch_timestamp = replica.last_fetch_timestamp_ms;
        state.last_caught_up_timestamp = replica.last_caught_up_timestamp_ms;
    }
    if ctx.api_version >= NODES_FROM {
        state.replica_directory_id = replica.directory_id;
    }
    state
}

/// The controllers with their listeners: as they registered, else as the configuration says.
fn nodes(broker: &Broker, status: &QuorumStatus) -> Vec<Node> {
    let image = broker.image();
    let listener = |name: &str, host: &str, port: u16| {
        Listener::default()
            .with_name(StrBytes::from_string(name.to_owned()))
            .with_host(StrBytes::from_string(host.to_owned()))
            .with_port(port)
    };
    let configured = broker.controller.quorum().voters();
    let config = broker.config.current();
    let listener_name = config.controller_listeners.first();
    let name = listener_name.map_or("CONTROLLER", |listener| listener.name.as_str());
    let voters = status.voters.iter().map(|voter| {
        let listeners = match image.controllers().get(&voter.id) {
            Some(registered) => registered
                .end_points
                .iter()
                .map(|end_point| listener(&end_point.name, &end_point.host, end_point.port))
                .collect(),
            None => configured
                .iter()
                .filter(|configured| configured.id == voter.id && configured.port != 0)
                .map(|configured| listener(name, &configured.host, configured.port))
                .collect(),
        };
        Node::default()
            .with_node_id(voter.id.into())
            .with_listeners(listeners)
    });
    voters.collect()
}
