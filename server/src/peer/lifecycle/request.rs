//! Registration and heartbeats in the terms of the wire.

use highwater_replication::cluster::registration::BrokerRegistrationRequest as Registration;
use kafka_protocol::messages::broker_registration_request::{Feature, Listener};
use kafka_protocol::messages::{BrokerHeartbeatRequest, BrokerId, BrokerRegistrationRequest};
use kafka_protocol::protocol::StrBytes;

/// No epoch.
const NONE: i64 = -1;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub(super) fn registration(registration: &Registration) -> BrokerRegistrationRequest {
    let listeners = registration.end_points.iter().map(|end_point| {
        Listener::default()
            .with_name(text(&end_point.name))
            .with_host(text(&end_point.host))
            .with_port(end_point.port)
            .with_security_protocol(end_point.security_protocol)
    });
    let features = registration.features.iter().map(|feature| {
        Feature::default()
            .with_name(text(&feature.name))
            .with_min_supported_version(feature.min_supported_version)
            .with_max_supported_version(feature.max_supported_version)
    });
    let previous = registration.previous_broker_epoch;
    BrokerRegistrationRequest::default()
        .with_broker_id(BrokerId(registration.id.0))
        .with_cluster_id(text(&registration.cluster_id))
        .with_incarnation_id(registration.incarnation_id)
        .with_listeners(listeners.collect())
        .with_features(features.collect())
        .with_rack(registration.rack.as_deref().map(text))
        .with_log_dirs(registration.log_dirs.clone())
        .with_previous_broker_epoch(previous.map_or(NONE, |epoch| epoch.0))
}

/// What a heartbeat says of the broker besides its id.
#[derive(Debug, Clone)]
pub(super) struct Heartbeat {
    pub(super) broker_epoch: i64,
    pub(super) metadata_offset: i64,
    pub(super) want_fence: bool,
    pub(super) want_shut_down: bool,
}

/// The heartbeat tells of no failed directories: replicas that are lost are told one by one, by AssignReplicasToDirs.
pub(super) fn heartbeat(broker_id: i32, heartbeat: Heartbeat) -> BrokerHeartbeatRequest {
    BrokerHeartbeatRequest::default()
        .with_broker_id(BrokerId(broker_id))
        .with_broker_epoch(heartbeat.broker_epoch)
        .with_current_metadata_offset(heartbeat.metadata_offset)
        .with_want_fence(heartbeat.want_fence)
        .with_want_shut_down(heartbeat.want_shut_down)
}
