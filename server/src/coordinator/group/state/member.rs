//! A member of a group.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::ReplyToken;
use crate::coordinator::group::MemberId;

/// A protocol (for consumers: an assignor) that a member supports, with its metadata for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberProtocol {
    /// The protocol's name.
    pub name: Arc<str>,
    /// Opaque to the broker, but for the topics in the subscription of a consumer.
    pub metadata: Bytes,
}

/// A member of a group.
#[derive(Clone, Debug)]
pub struct Member {
    pub(super) id: MemberId,
    pub(super) instance_id: Option<Arc<str>>,
    pub(super) client_id: Arc<str>,
    pub(super) client_host: Arc<str>,
    pub(super) session_timeout_ms: i32,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) protocols: Vec<MemberProtocol>,
    pub(super) assignment: Bytes,
    /// The JoinGroup that waits for the join phase to end.
    pub(super) awaiting_join: Option<ReplyToken>,
    /// The SyncGroup that waits for the leader's assignment.
    pub(super) awaiting_sync: Option<ReplyToken>,
    /// Added in this rebalance: its JoinGroup is its only sign of life, so waiting does not keep it alive for ever.
    pub(super) is_new: bool,
    /// When the session ends.
    pub(super) heartbeat_deadline_ms: i64,
    /// Where the member's timer lies: at or before the deadline, or nowhere. A heartbeat only moves the deadline; the
    /// timer follows when it fires.
    pub(super) timer_at_ms: Option<i64>,
}

impl Member {
    /// The member's id.
    pub fn id(&self) -> &MemberId {
        &self.id
    }

    /// `group.instance.id` of a static member.
    pub fn instance_id(&self) -> Option<&Arc<str>> {
        self.instance_id.as_ref()
    }

    /// What the leader assigned to the member.
    pub fn assignment(&self) -> &Bytes {
        &self.assignment
    }

    /// The metadata for a protocol, empty if the member does not support it.
    pub(super) fn metadata(&self, protocol: Option<&str>) -> Bytes {
        self.protocols
            .iter()
            .find(|supported| Some(&*supported.name) == protocol)
            .map(|supported| supported.metadata.clone())
            .unwrap_or_default()
    }

    /// The candidate that the member likes best.
    pub(super) fn vote<'a>(&self, candidates: &BTreeMap<&'a str, usize>) -> Option<&'a str> {
        self.protocols.iter().find_map(|protocol| {
            candidates
                .get_key_value(&*protocol.name)
                .map(|(name, _)| *name)
        })
    }

    /// Whether waiting for the broker counts as a heartbeat.
    pub(super) fn has_satisfied_heartbeat(&self) -> bool {
        !self.is_new && (self.awaiting_join.is_some() || self.awaiting_sync.is_some())
    }
}
