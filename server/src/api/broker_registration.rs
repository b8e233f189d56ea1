//! BrokerRegistration (KIP-631): a broker run enters the cluster, fenced.

use std::sync::Arc;

use highwater_replication::cluster::records::{Endpoint, FeatureRange};
use highwater_replication::cluster::registration::{self, register_broker};
use highwater_storage::{BrokerEpoch, BrokerId};
use kafka_protocol::messages::{BrokerRegistrationRequest, BrokerRegistrationResponse};
use tokio::sync::oneshot;

use super::metadata_change::{active_epoch, decide, flatten_noting, submit, with_sessions};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::controller::replication_defaults;

/// Handles a BrokerRegistration request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: BrokerRegistrationRequest,
) -> Reply {
    let id = BrokerId(request.broker_id.0);
    let response = match register(&broker, request).await {
        Ok(epoch) => BrokerRegistrationResponse::default().with_broker_epoch(epoch.0),
        Err((error, text)) => {
            ctx.count_error(error);
            tracing::info!(broker_id = id.0, ?error, reason = text.as_deref(), peer = %ctx.peer, "refused to register a broker");
            BrokerRegistrationResponse::default()
                .with_broker_epoch(-1)
                .with_error_code(error.code())
        }
    };
    ctx.encode(&response).into()
}

async fn register(
    broker: &Arc<Broker>,
    request: BrokerRegistrationRequest,
) -> Result<BrokerEpoch, super::metadata_change::Refusal> {
    let epoch = active_epoch(broker).map_err(|error| (error, None))?;
    let registration = registration_of(request);
    let id = registration.id;
    let defaults = replication_defaults(&broker.config.current());
    let sessions = Arc::clone(&broker.broker_sessions);
    let (judged, was_judged) = oneshot::channel();
    let submitted = submit(broker, move |image, _| {
        sessions.with(epoch, image, |liveness, now_ms| {
            let registered = register_broker(image, &defaults, liveness, registration, now_ms);
            if let Ok((_, broker_epoch)) = &registered {
                // At once: the next process with this id is judged while this one waits for the others to agree.
                liveness.on_registered(id, *broker_epoch, now_ms);
                // Nobody asks for it unless the registration fails.
                let _ = judged.send(*broker_epoch);
            }
            decide(registered)
        })
    });
    let registered = flatten_noting(broker, "a registration", id, submitted.await);
    if registered.is_err()
        && let Ok(broker_epoch) = was_judged.await
    {
        // It did not come into the metadata, or another controller decides over it.
        let _ = with_sessions(broker, |liveness, image, _| {
            if image.broker(id).map(|known| known.epoch) != Some(broker_epoch) {
                liveness.on_session_end(id, broker_epoch);
            }
        });
    }
    let broker_epoch = registered?;
    tracing::info!(
        broker_id = id.0,
        broker_epoch = broker_epoch.0,
        "registered a broker"
    );
    Ok(broker_epoch)
}

fn registration_of(request: BrokerRegistrationRequest) -> registration::BrokerRegistrationRequest {
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
    registration::BrokerRegistrationRequest {
        id: BrokerId(request.broker_id.0),
        cluster_id: request.cluster_id.to_string(),
        incarnation_id: request.incarnation_id,
        end_points: end_points.collect(),
        features: features.collect(),
        rack: request.rack.map(|rack| rack.to_string()),
        log_dirs: request.log_dirs,
        previous_broker_epoch: (request.previous_broker_epoch >= 0)
            .then_some(BrokerEpoch(request.previous_broker_epoch)),
    }
}
