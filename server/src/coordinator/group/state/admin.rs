//! Listing, describing and deleting groups.

use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::ResponseError;

use super::group::Group;
use super::offsets::tombstone;
use super::{Effects, GroupShard, GroupState, ReplyToken};
use crate::coordinator::group::records::GroupRecord;
use crate::coordinator::group::{GroupId, MemberId};

/// A group as DescribeGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// The group's state.
    pub state: GroupState,
    /// The protocol type, empty for a simple group.
    pub protocol_type: Arc<str>,
    /// The chosen protocol while the group is stable, else empty.
    pub protocol: Arc<str>,
    /// The members; what they know and own only while the group is stable.
    pub members: Vec<MemberDescription>,
}

/// A member as DescribeGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDescription {
    /// The member's id.
    pub member_id: MemberId,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<Arc<str>>,
    /// The client's id.
    pub client_id: Arc<str>,
    /// The client's host as Java prints it.
    pub client_host: Arc<str>,
    /// The member's metadata for the chosen protocol.
    pub metadata: Bytes,
    /// What the leader assigned to the member.
    pub assignment: Bytes,
}

impl Group {
    /// The group as DescribeGroups shows it.
    pub fn describe(&self) -> GroupDescription {
        let is_stable = self.state == GroupState::Stable;
        let protocol = self.protocol_name.clone().filter(|_| is_stable);
        let members = self.members.values().map(|member| MemberDescription {
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            metadata: member.metadata(protocol.as_deref()),
            assignment: if is_stable {
                member.assignment.clone()
            } else {
                Bytes::new()
            },
        });
        GroupDescription {
            state: self.state,
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            members: members.collect(),
            protocol: protocol.unwrap_or_default(),
        }
    }

    /// Tombstones for all offsets and then the group.
    fn tombstones(&self) -> Vec<GroupRecord> {
        let offsets = self.offsets.iter().flat_map(|(topic, partitions)| {
            let partitions = partitions.keys();
            partitions.map(|partition| tombstone(&self.id, topic, *partition))
        });
        offsets.chain([self.tombstone()]).collect()
    }
}

impl GroupShard {
    /// Deletes groups without members. Results that are `Ok` hold once the answer under `token` says so.
    pub fn delete_groups(
        &mut self,
        group_ids: &[GroupId],
        token: ReplyToken,
    ) -> (Vec<Result<(), ResponseError>>, Effects) {
        let mut records = Vec::new();
        let delete = |group_id: &GroupId| {
            let group = self
                .groups
                .get(group_id)
                .ok_or(ResponseError::GroupIdNotFound)?;
            if group.state != GroupState::Empty {
                return Err(ResponseError::NonEmptyGroup);
            }
            records.extend(group.tombstones());
            Ok(())
        };
        let results = group_ids.iter().map(delete).collect();
        let mut effects = Effects::default();
        effects.apply(records, Some(token));
        (results, effects)
    }
}
