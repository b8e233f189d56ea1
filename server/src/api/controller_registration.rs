//! ControllerRegistration (KIP-919): a controller says where it is reached and what it supports. Only voters are: every
//! registered controller has a say in which features the cluster may use.

use std::sync::Arc;

use highwater_replication::cluster::records::{Endpoint, FeatureRange};
use highwater_replication::cluster::registration::{self, register_controller};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{ControllerRegistrationRequest, ControllerRegistrationResponse};
use kafka_protocol::protocol::StrBytes;

use super::metadata_change::submit;
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::controller::Decision;

/// Handles a ControllerRegistration request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: ControllerRegistrationRequest,
) -> Reply {
    let end_points = request.listeners.into_iter().map(|listener| Endpoint {
        name: listener.name.to_string(),
        host: listener.host.to_string(),
        port: listener.port,
        security_protocol: listener.security_protocol,
    });
    let features = request.features.into_iter().map(|feature| FeatureRange {
        name: feature.name.to_string(),
        min_supported_version: feature.min_supported_version,
        max_supported_version: feature.max_supported_version,
    });
    let registration = registration::ControllerRegistrationRequest {
        id: request.controller_id,
        incarnation_id: request.incarnation_id,
        end_points: end_points.collect(),
        features: features.collect(),
    };
    let id = registration.id;
    let mut voters = broker.controller.quorum().voters().iter();
    let registered = match voters.any(|voter| voter.id == id) {
        true => {
            let submitted = submit(&broker, move |_, _| Decision {
                records: vec![register_controller(registration)],
                response: (),
            });
            submitted.await.map_err(|error| (error, None))
        }
        false => {
            let text = format!("Node {id} is no voter of the quorum.");
            Err((
                ResponseError::InvalidRequest,
                Some(StrBytes::from_string(text)),
            ))
        }
    };
    let response = ControllerRegistrationResponse::default().with_error_message(None);
    let response = match registered {
        Ok(()) => response,
        Err((error, text)) => {
            ctx.count_error(error);
            response
                .with_error_code(error.code())
                .with_error_message(text)
        }
    };
    ctx.encode(&response).into()
}
