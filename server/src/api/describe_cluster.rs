//! DescribeCluster: the brokers, over the listener that the client came in on.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;

use super::cluster_nodes::{ALL_CLUSTER_OPERATIONS, nodes};
use super::{Reply, RequestContext};
use crate::broker::Broker;

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
    if ctx.api_version >= ENDPOINT_TYPE_FROM && request.endpoint_type != BROKER_ENDPOINT {
        return refuse(ctx, request.endpoint_type);
    }
    let image = broker.image();
    let brokers = nodes(broker, ctx, &image, request.include_fenced_brokers)
        .into_iter()
        .map(|node| {
            DescribeClusterBroker::default()
                .with_broker_id(node.id)
                .with_host(node.host)
                .with_port(node.port)
                .with_rack(node.rack)
                .with_is_fenced(node.is_fenced && ctx.api_version >= FENCED_FROM)
        });
    let mut response = DescribeClusterResponse::default()
        .with_error_message(None)
        .with_cluster_id(StrBytes::from_string(image.cluster_id().to_string()))
        .with_controller_id(BrokerId(broker.controller.broker_id().0))
        .with_brokers(brokers.collect());
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = ALL_CLUSTER_OPERATIONS;
    }
    ctx.encode(&response).into()
}

fn refuse(ctx: &RequestContext, endpoint_type: i8) -> Reply {
    let (error, text) = match endpoint_type {
        CONTROLLER_ENDPOINT => (
            ResponseError::MismatchedEndpointType,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER".to_owned(),
        ),
        other => (ResponseError::UnsupportedEndpointType, format!("Unsupported endpoint type {other}")),
    };
    ctx.count_error(error);
    let response = DescribeClusterResponse::default()
        .with_error_code(error.code())
        .with_error_message(Some(StrBytes::from_string(text)));
    ctx.encode(&response).into()
}
