//! Brokers as clients see them: where they are reached over the listener that the client came in on, and which
//! replicas of a partition are offline.

use std::collections::HashSet;

use highwater_replication::cluster::{BrokerRegistration, ClusterImage, PartitionImage};
use highwater_storage::BrokerId;
use kafka_protocol::messages;
use kafka_protocol::protocol::StrBytes;

use super::RequestContext;
use crate::broker::Broker;

/// Operations that a client may do on a topic, as a bit field, when nothing restricts it: read, write, create, delete,
/// alter, describe, describe and alter configurations.
pub(super) const ALL_TOPIC_OPERATIONS: i32 = 3576;
/// Operations that a client may do on the cluster, as a bit field, when nothing restricts it.
pub(super) const ALL_CLUSTER_OPERATIONS: i32 = 8096;

/// Where a client reaches a broker.
pub(super) struct Node {
    pub(super) id: messages::BrokerId,
    pub(super) host: StrBytes,
    pub(super) port: i32,
    pub(super) rack: Option<StrBytes>,
    pub(super) is_fenced: bool,
}

/// The brokers that a client of `ctx`'s listener can reach, fenced ones only if asked for.
pub(super) fn nodes(
    broker: &Broker,
    ctx: &RequestContext,
    image: &ClusterImage,
    with_fenced: bool,
) -> Vec<Node> {
    let brokers = image
        .brokers()
        .values()
        .filter(|registration| with_fenced || !registration.fenced);
    brokers
        .filter_map(|registration| node(broker, ctx, registration))
        .collect()
}

/// Where a client of `ctx`'s listener reaches a broker; `None` when it cannot.
pub(super) fn node(
    broker: &Broker,
    ctx: &RequestContext,
    registration: &BrokerRegistration,
) -> Option<Node> {
    let (host, port) = if registration.id == broker.controller.broker_id() {
        // What this listener advertises; known before the registration is, also with port 0.
        (
            ctx.listener.advertised_host.clone(),
            ctx.listener.advertised_port,
        )
    } else {
        let end_point = registration.end_point(&ctx.listener.name)?;
        (
            StrBytes::from_string(end_point.host.clone()),
            i32::from(end_point.port),
        )
    };
    Some(Node {
        id: registration.id.0.into(),
        host,
        port,
        rack: registration.rack.clone().map(StrBytes::from_string),
        is_fenced: registration.fenced,
    })
}

/// The brokers that a client can reach and that are not fenced, as a set for look-ups.
pub(super) fn reachable(nodes: &[Node]) -> HashSet<BrokerId> {
    nodes
        .iter()
        .filter(|node| !node.is_fenced)
        .map(|node| BrokerId(node.id.0))
        .collect()
}

/// Replicas whose broker is gone or fenced, or whose log directory has failed.
pub(super) fn offline_replicas(
    image: &ClusterImage,
    partition: &PartitionImage,
) -> Vec<messages::BrokerId> {
    let is_online = |id: &BrokerId| {
        image
            .broker(*id)
            .is_some_and(|registration| !registration.fenced)
            && image.has_online_directory(*id, partition)
    };
    partition
        .replicas
        .iter()
        .filter(|id| !is_online(id))
        .map(|id| id.0.into())
        .collect()
}

/// Broker ids as the protocol has them.
pub(super) fn broker_ids(ids: &[BrokerId]) -> Vec<messages::BrokerId> {
    ids.iter().map(|id| id.0.into()).collect()
}
