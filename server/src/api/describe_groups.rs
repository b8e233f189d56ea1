//! DescribeGroups (key 15): the members of groups and what they own.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse, GroupId};
use kafka_protocol::protocol::StrBytes;

use super::group_answer::{code, text, text_option};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::coordinator::group::state::{GroupDescription, MemberDescription};

/// From here on the operations that the client may do are told on request (KIP-430).
const AUTHORIZED_OPERATIONS: i16 = 3;
/// From here on an unknown group is an error with a text (KIP-1043).
const UNKNOWN_GROUP: i16 = 6;
/// The state of a group that does not exist.
const DEAD: &str = "Dead";
/// All that can be done with a group, as a bit field of Kafka's codes: read (3), delete (6), describe (8), describe its
/// configurations (10), alter them (11).
const ALL_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;

/// Describes groups one by one.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: DescribeGroupsRequest,
) -> Reply {
    let tells_operations =
        request.include_authorized_operations && ctx.api_version >= AUTHORIZED_OPERATIONS;
    let groups = request.groups.into_iter().map(|group_id| {
        let mut described = match broker.groups.describe(&group_id) {
            Ok(Some(group)) => describe(group),
            Ok(None) => unknown(ctx, &group_id),
            Err(error) => DescribedGroup::default().with_error_code(code(ctx, Some(error))),
        };
        if tells_operations && described.error_code == 0 {
            described.authorized_operations = ALL_OPERATIONS;
        }
        described.with_group_id(group_id)
    });
    let response = DescribeGroupsResponse::default().with_groups(groups.collect());
    ctx.encode(&response).into()
}

fn unknown(ctx: &RequestContext, group_id: &GroupId) -> DescribedGroup {
    let described = DescribedGroup::default().with_group_state(StrBytes::from_static_str(DEAD));
    if ctx.api_version < UNKNOWN_GROUP {
        return described;
    }
    let message = format!("Group {} not found.", group_id.as_str());
    described
        .with_error_code(code(ctx, Some(ResponseError::GroupIdNotFound)))
        .with_error_message(Some(StrBytes::from_string(message)))
}

fn describe(group: GroupDescription) -> DescribedGroup {
    DescribedGroup::default()
        .with_group_state(StrBytes::from_static_str(group.state.as_str()))
        .with_protocol_type(text(&group.protocol_type))
        .with_protocol_data(text(&group.protocol))
        .with_members(group.members.into_iter().map(member).collect())
}

fn member(member: MemberDescription) -> DescribedGroupMember {
    DescribedGroupMember::default()
        .with_member_id(text(&member.member_id))
        .with_group_instance_id(text_option(member.instance_id.as_ref()))
        .with_client_id(text(&member.client_id))
        .with_client_host(text(&member.client_host))
        .with_member_metadata(member.metadata)
        .with_member_assignment(member.assignment)
}
