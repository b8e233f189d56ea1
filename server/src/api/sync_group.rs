//! SyncGroup (key 14): the leader brings the assignment, every member fetches its part.

use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{SyncGroupRequest, SyncGroupResponse};

use super::group_answer::{code, owned, owned_option, reply, text_option};
use super::{Reply, RequestContext, ResponseBody};
use crate::broker::Broker;
use crate::coordinator::group::state::{SyncReply, SyncRequest};

/// From here on a member must name the protocol that it was told (KIP-559).
const NAMES_PROTOCOL: i16 = 5;

/// Gives a member its assignment. The reply is parked until the leader has brought it.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: SyncGroupRequest,
) -> Reply {
    let names_protocol = request.protocol_type.is_some() && request.protocol_name.is_some();
    if ctx.api_version >= NAMES_PROTOCOL && !names_protocol {
        let error = ResponseError::InconsistentGroupProtocol;
        return respond(ctx, SyncReply::error(error)).into();
    }
    let assignments = request.assignments.iter().map(|assigned| {
        let assignment = Bytes::copy_from_slice(&assigned.assignment);
        (owned(&assigned.member_id), assignment)
    });
    let request = SyncRequest {
        group_id: owned(&request.group_id),
        generation: request.generation_id,
        member_id: owned(&request.member_id),
        instance_id: owned_option(request.group_instance_id.as_ref()),
        protocol_type: owned_option(request.protocol_type.as_ref()),
        protocol_name: owned_option(request.protocol_name.as_ref()),
        assignments: assignments.collect(),
    };
    reply(ctx, broker.groups.sync(request), respond)
}

fn respond(ctx: &RequestContext, reply: SyncReply) -> ResponseBody {
    let response = SyncGroupResponse::default()
        .with_error_code(code(ctx, reply.error))
        .with_protocol_type(text_option(reply.protocol_type.as_ref()))
        .with_protocol_name(text_option(reply.protocol_name.as_ref()))
        .with_assignment(reply.assignment);
    ctx.encode(&response)
}
