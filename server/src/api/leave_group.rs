//! LeaveGroup (key 13): members go, one by itself or several on an administrator's word.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};

use super::group_answer::{code, owned, owned_option};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::coordinator::group::state::LeavingMember;

/// From here on a request names any number of members (KIP-345).
const BATCH: i16 = 3;

/// Removes members from a group.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: LeaveGroupRequest,
) -> Reply {
    let members = if ctx.api_version >= BATCH {
        request.members
    } else {
        vec![MemberIdentity::default().with_member_id(request.member_id)]
    };
    let leaving: Vec<_> = members.iter().map(leaving_member).collect();
    let left = broker.groups.leave(&request.group_id, &leaving);
    let response = match left {
        Err(error) => LeaveGroupResponse::default().with_error_code(code(ctx, Some(error))),
        Ok(results) if ctx.api_version >= BATCH => {
            let members = members.into_iter().zip(results);
            let members = members.map(|(member, result)| member_response(ctx, member, result));
            LeaveGroupResponse::default().with_members(members.collect())
        }
        Ok(results) => {
            let error = results.into_iter().find_map(Result::err);
            LeaveGroupResponse::default().with_error_code(code(ctx, error))
        }
    };
    ctx.encode(&response).into()
}

fn leaving_member(member: &MemberIdentity) -> LeavingMember {
    LeavingMember {
        member_id: owned(&member.member_id),
        instance_id: owned_option(member.group_instance_id.as_ref()),
        reason: owned(member.reason.as_deref().unwrap_or("not provided")),
    }
}

fn member_response(
    ctx: &RequestContext,
    member: MemberIdentity,
    result: Result<(), ResponseError>,
) -> MemberResponse {
    MemberResponse::default()
        .with_member_id(member.member_id)
        .with_group_instance_id(member.group_instance_id)
        .with_error_code(code(ctx, result.err()))
}
