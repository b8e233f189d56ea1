//! JoinGroup (key 11): a member joins its group and waits until everybody has.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use kafka_protocol::protocol::StrBytes;

use super::group_answer::{code, owned, owned_option, reply, text, text_option};
use super::{Reply, RequestContext, ResponseBody};
use crate::broker::Broker;
use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::group::state::{JoinReply, JoinRequest, MemberProtocol};

/// From here on a new dynamic member is first told its id (KIP-394).
const REQUIRES_KNOWN_MEMBER_ID: i16 = 4;
/// From here on the protocol's name may be null.
const NULLABLE_PROTOCOL: i16 = 7;
/// From here on a leader can be told to skip the assignment (KIP-814).
const SKIPS_ASSIGNMENT: i16 = 9;

/// Joins a group. The reply is parked until the join phase of the rebalance ends.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: JoinGroupRequest,
) -> Reply {
    reply(
        ctx,
        broker.groups.join(join_request(ctx, &request)),
        respond,
    )
}

fn join_request(ctx: &RequestContext, request: &JoinGroupRequest) -> JoinRequest {
    let client_id = ctx.client_id.as_deref().unwrap_or_default();
    let instance_id = owned_option(request.group_instance_id.as_ref());
    let mut names = HashSet::new();
    let protocols = request
        .protocols
        .iter()
        .filter(|protocol| names.insert(&protocol.name));
    let reason = request
        .reason
        .as_deref()
        .filter(|reason| !reason.is_empty());
    JoinRequest {
        group_id: owned(&request.group_id),
        member_id: owned(&request.member_id),
        new_member_id: GroupCoordinator::new_member_id(instance_id.as_deref().unwrap_or(client_id)),
        instance_id,
        protocol_type: owned(&request.protocol_type),
        protocols: protocols
            .map(|protocol| MemberProtocol {
                name: owned(&protocol.name),
                metadata: Bytes::copy_from_slice(&protocol.metadata),
            })
            .collect(),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: match request.rebalance_timeout_ms {
            // Version 0 has none.
            timeout_ms if timeout_ms < 0 => request.session_timeout_ms,
            timeout_ms => timeout_ms,
        },
        client_id: owned(client_id),
        client_host: ctx.client_host().into(),
        requires_known_member_id: ctx.api_version >= REQUIRES_KNOWN_MEMBER_ID,
        supports_skipping_assignment: ctx.api_version >= SKIPS_ASSIGNMENT,
        reason: owned(reason.unwrap_or("not provided")),
    }
}

fn respond(ctx: &RequestContext, reply: JoinReply) -> ResponseBody {
    let members = reply.members.into_iter().map(|member| {
        JoinGroupResponseMember::default()
            .with_member_id(text(&member.member_id))
            .with_group_instance_id(text_option(member.instance_id.as_ref()))
            .with_metadata(member.metadata)
    });
    let mut protocol_name = text_option(reply.protocol_name.as_ref());
    if ctx.api_version < NULLABLE_PROTOCOL {
        protocol_name.get_or_insert(StrBytes::default());
    }
    let response = JoinGroupResponse::default()
        .with_error_code(code(ctx, reply.error))
        .with_generation_id(reply.generation)
        .with_protocol_type(text_option(reply.protocol_type.as_ref()))
        .with_protocol_name(protocol_name)
        .with_leader(text(&reply.leader))
        .with_skip_assignment(reply.skip_assignment)
        .with_member_id(text(&reply.member_id))
        .with_members(members.collect());
    ctx.encode(&response)
}
