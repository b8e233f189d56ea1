//! DescribeCluster: the brokers, over the listener that the client came in on; on a controller's listener the
//! controllers (KIP-919).

use std::sync::Arc;

use highwater_replication::cluster::ClusterImage;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;

use super::cluster_nodes::{ALL_CLUSTER_OPERATIONS, nodes};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::network::ListenerKind;

/// From here on the request names the type of endpoint that it wants.
const ENDPOINT_TYPE_FROM: i16 = 1;
/// From here on brokers are told with whether they are fenced.
const FENCED_FROM: i16 = 2;
const BROKER_ENDPOINT: i8 = 1;
const CONTROLLER_ENDPOINT: i8 = 2;

/// Handles a DescribeCluster request.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: DescribeClusterRequest,
) -> Reply {
    let own_type = match ctx.listener.kind {
        ListenerKind::Broker => BROKER_ENDPOINT,
        ListenerKind::Controller => CONTROLLER_ENDPOINT,
    };
    if ctx.api_version >= ENDPOINT_TYPE_FROM && request.endpoint_type != own_type {
        return refuse(ctx, own_type, request.endpoint_type);
    }
    let image = broker.image();
    let mut response = DescribeClusterResponse::default()
        .with_error_message(None)
        .with_cluster_id(StrBytes::from_string(image.cluster_id().to_string()));
    if ctx.api_version >= ENDPOINT_TYPE_FROM {
        response.endpoint_type = own_type;
    }
    match ctx.listener.kind {
        ListenerKind::Broker => {
            response.controller_id = BrokerId(broker.controller.broker_id().0);
            response.brokers = brokers(broker, ctx, &image, request.include_fenced_brokers);
        }
        ListenerKind::Controller => {
            let active = broker.controller.quorum().leader_id();
            response.controller_id = BrokerId(active.unwrap_or(-1));
            response.brokers = controllers(broker, ctx, &image);
        }
    }
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = ALL_CLUSTER_OPERATIONS;
    }
    ctx.encode(&response).into()
}

fn brokers(
    broker: &Broker,
    ctx: &RequestContext,
    image: &ClusterImage,
    with_fenced: bool,
) -> Vec<DescribeClusterBroker> {
    let nodes = nodes(broker, ctx, image, with_fenced).into_iter();
    let brokers = nodes.map(|node| {
        DescribeClusterBroker::default()
            .with_broker_id(node.id)
            .with_host(node.host)
            .with_port(node.port)
            .with_rack(node.rack)
            .with_is_fenced(node.is_fenced && ctx.api_version >= FENCED_FROM)
    });
    brokers.collect()
}

/// The controllers that are reached over a listener of this name: as they registered, else as the configuration says.
fn controllers(
    broker: &Broker,
    ctx: &RequestContext,
    image: &ClusterImage,
) -> Vec<DescribeClusterBroker> {
    let node = |id: i32, host: &str, port: u16| {
        DescribeClusterBroker::default()
            .with_broker_id(BrokerId(id))
            .with_host(StrBytes::from_string(host.to_owned()))
            .with_port(port.into())
            .with_rack(None)
    };
    let voters = broker.controller.quorum().voters().iter();
    let controllers = voters.filter_map(|voter| match image.controllers().get(&voter.id) {
        Some(registered) => {
            let mut end_points = registered.end_points.iter();
            let end_point = end_points.find(|end_point| end_point.name == ctx.listener.name)?;
            Some(node(voter.id, &end_point.host, end_point.port))
        }
        None => (voter.port != 0).then(|| node(voter.id, &voter.host, voter.port)),
    });
    controllers.collect()
}

fn refuse(ctx: &RequestContext, own_type: i8, wanted: i8) -> Reply {
    let name = |endpoint_type| match endpoint_type {
        BROKER_ENDPOINT => Some("BROKER"),
        CONTROLLER_ENDPOINT => Some("CONTROLLER"),
        _ => None,
    };
    let (error, text) = match (name(own_type), name(wanted)) {
        (Some(own), Some(wanted)) => (
            ResponseError::MismatchedEndpointType,
            format!(
                "The request was sent to an endpoint of type {own}, but we wanted an endpoint of type {wanted}"
            ),
        ),
        _ => (
            ResponseError::UnsupportedEndpointType,
            format!("Unsupported endpoint type {wanted}"),
        ),
    };
    ctx.count_error(error);
    let response = DescribeClusterResponse::default()
        .with_error_code(error.code())
        .with_error_message(Some(StrBytes::from_string(text)));
    ctx.encode(&response).into()
}
