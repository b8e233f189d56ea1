//! ListGroups (key 16): the groups that this broker coordinates.

use std::sync::Arc;

use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{GroupId, ListGroupsRequest, ListGroupsResponse};
use kafka_protocol::protocol::StrBytes;

use super::group_answer::{code, text};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::coordinator::group::runtime;

/// From here on a group's state is told (KIP-518).
const STATES: i16 = 4;
/// From here on a group's type is told (KIP-848).
const TYPES: i16 = 5;
/// The type of every group here.
const CLASSIC: &str = "classic";

/// Lists groups, by state and type if the request says so. Upper and lower case do not matter.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: ListGroupsRequest,
) -> Reply {
    let passes = |filter: &[StrBytes], value: &str| {
        filter.is_empty()
            || filter
                .iter()
                .any(|wanted| wanted.eq_ignore_ascii_case(value))
    };
    let response = match broker.groups.list() {
        Err(error) => ListGroupsResponse::default().with_error_code(code(ctx, Some(error))),
        Ok(groups) => {
            let groups = groups
                .into_iter()
                .filter(|group| passes(&request.states_filter, group.state))
                .filter(|_| passes(&request.types_filter, CLASSIC))
                .map(|group| listed(ctx, &group));
            ListGroupsResponse::default().with_groups(groups.collect())
        }
    };
    ctx.encode(&response).into()
}

fn listed(ctx: &RequestContext, group: &runtime::ListedGroup) -> ListedGroup {
    let mut listed = ListedGroup::default()
        .with_group_id(GroupId(text(&group.group_id)))
        .with_protocol_type(text(&group.protocol_type));
    if ctx.api_version >= STATES {
        listed.group_state = StrBytes::from_static_str(group.state);
    }
    if ctx.api_version >= TYPES {
        listed.group_type = StrBytes::from_static_str(CLASSIC);
    }
    listed
}
