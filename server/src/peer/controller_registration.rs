//! A controller registers with the active one (KIP-919): the cluster's features are changed only when it is known what
//! every controller supports.

use std::time::Duration;

use highwater_replication::cluster::registration::ControllerRegistrationRequest as Registration;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ControllerRegistrationRequest;
use kafka_protocol::messages::controller_registration_request::{Feature, Listener};
use kafka_protocol::protocol::StrBytes;

use super::controller_channel::ControllerChannel;
use crate::controller::ControllerHandle;

/// The first rest after a registration that was not taken.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// The longest one.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Registers this run of the controller, and again whenever another controller becomes active whose metadata do not
/// have it. Never ends by itself.
pub async fn keep_registered(
    registration: Registration,
    channel: ControllerChannel,
    controller: ControllerHandle,
) {
    let request = request(&registration);
    let mut active = controller.active_controller();
    let mut backoff = FIRST_BACKOFF;
    loop {
        let is_known = active.borrow_and_update().is_some();
        let is_due = is_known && !is_registered(&controller, &registration);
        let failure = match is_due {
            false => None,
            true => match channel.call(&request).await {
                Ok(response) if response.error_code == 0 => {
                    tracing::info!("registered this controller with the active one");
                    None
                }
                Ok(response) => {
                    let error = ResponseError::try_from_code(response.error_code);
                    Some(error.map_or_else(|| response.error_code.to_string(), |e| e.to_string()))
                }
                Err(error) => Some(error.to_string()),
            },
        };
        let Some(reason) = failure else {
            backoff = FIRST_BACKOFF;
            if active.changed().await.is_err() {
                return;
            }
            continue;
        };
        tracing::warn!(reason, "this controller is not registered yet");
        tokio::time::sleep(backoff).await;
        backoff = (backoff * 2).min(MAX_BACKOFF);
    }
}

fn is_registered(controller: &ControllerHandle, registration: &Registration) -> bool {
    let image = controller.image();
    let known = image.controllers().get(&registration.id);
    known.is_some_and(|known| known.incarnation_id == registration.incarnation_id)
}

fn request(registration: &Registration) -> ControllerRegistrationRequest {
    let text = |text: &str| StrBytes::from_string(text.to_owned());
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
    ControllerRegistrationRequest::default()
        .with_controller_id(registration.id)
        .with_incarnation_id(registration.incarnation_id)
        .with_listeners(listeners.collect())
        .with_features(features.collect())
}
