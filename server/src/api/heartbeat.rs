//! Heartbeat (key 12): a member says that it lives, and learns of rebalances.

use std::sync::Arc;

use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};

use super::group_answer::code;
use super::{Reply, RequestContext};
use crate::broker::Broker;

/// Begins the member's session anew.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: HeartbeatRequest,
) -> Reply {
    let instance_id = request.group_instance_id.as_deref();
    let generation = request.generation_id;
    let beat = broker.groups.heartbeat(
        &request.group_id,
        &request.member_id,
        instance_id,
        generation,
    );
    let response = HeartbeatResponse::default().with_error_code(code(ctx, beat.err()));
    ctx.encode(&response).into()
}
