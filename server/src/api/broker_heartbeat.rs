//! BrokerHeartbeat (KIP-631): a broker says that it lives, and is told what it may do.

use std::sync::Arc;

use highwater_replication::cluster::heartbeat::{
    BrokerControlState, BrokerHeartbeat, HeartbeatReply, broker_heartbeat,
};
use highwater_storage::{BrokerEpoch, BrokerId};
use kafka_protocol::messages::{BrokerHeartbeatRequest, BrokerHeartbeatResponse};

use super::metadata_change::{
    Refusal, active_epoch, decide, flatten_noting, submit, with_sessions,
};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::controller::replication_defaults;

/// Handles a BrokerHeartbeat request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: BrokerHeartbeatRequest,
) -> Reply {
    let heartbeat = BrokerHeartbeat {
        id: BrokerId(request.broker_id.0),
        epoch: BrokerEpoch(request.broker_epoch),
        current_metadata_offset: request.current_metadata_offset,
        want_fence: request.want_fence,
        want_shut_down: request.want_shut_down,
        offline_log_dirs: request.offline_log_dirs,
    };
    let response = match beat(&broker, &ctx, heartbeat).await {
        Ok(reply) => BrokerHeartbeatResponse::default()
            .with_is_caught_up(reply.is_caught_up)
            .with_is_fenced(reply.is_fenced())
            .with_should_shut_down(reply.should_shut_down()),
        Err((error, _)) => {
            ctx.count_error(error);
            BrokerHeartbeatResponse::default()
                .with_error_code(error.code())
                .with_is_fenced(true)
        }
    };
    ctx.encode(&response).into()
}

async fn beat(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    heartbeat: BrokerHeartbeat,
) -> Result<HeartbeatReply, Refusal> {
    let controller_epoch = active_epoch(broker).map_err(|error| (error, None))?;
    let (id, epoch) = (heartbeat.id, heartbeat.epoch);
    // At once: a controller that is busy must not take its brokers for dead.
    let sessions = with_sessions(broker, |liveness, image, now_ms| {
        let offset = heartbeat.current_metadata_offset;
        liveness.on_heartbeat(image, id, epoch, offset, now_ms);
    });
    sessions.map_err(|error| (error, None))?;
    let defaults = replication_defaults(&broker.config.current());
    let sessions = Arc::clone(&broker.broker_sessions);
    let submitted = submit(broker, move |image, _| {
        sessions.with(controller_epoch, image, |liveness, _| {
            decide(broker_heartbeat(image, &defaults, liveness, &heartbeat))
        })
    });
    let reply = flatten_noting(broker, "a heartbeat", id, submitted.await)?;
    broker
        .broker_sessions
        .on_heartbeat_over(ctx.connection_id, id, epoch);
    // Another controller that took over meanwhile finds out by itself.
    let _ = with_sessions(broker, |liveness, _, _| {
        if let Some(offset) = reply.controlled_shutdown_offset {
            liveness.on_controlled_shutdown(id, epoch, offset);
        }
        if reply.state == BrokerControlState::ShutdownNow {
            liveness.on_session_end(id, epoch);
        }
    });
    Ok(reply)
}
