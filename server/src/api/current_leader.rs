//! Where a client that came to a broker which does not lead finds the leader (KIP-951).

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_replication::cluster::{ClusterImage, TopicImage};
use highwater_storage::TopicId;
use kafka_protocol::ResponseError;
use uuid::Uuid;

use super::RequestContext;
use super::cluster_nodes::{Node, node};
use crate::broker::Broker;

/// The leader of a partition and its epoch; -1 when there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CurrentLeader {
    pub(super) leader_id: i32,
    pub(super) leader_epoch: i32,
}

/// The leaders that a response names, and where the client reaches them.
pub(super) struct CurrentLeaders<'a> {
    broker: &'a Broker,
    ctx: &'a RequestContext,
    image: Arc<ClusterImage>,
    nodes: BTreeMap<i32, Node>,
}

impl<'a> CurrentLeaders<'a> {
    /// None yet.
    pub(super) fn new(broker: &'a Broker, ctx: &'a RequestContext) -> Self {
        Self {
            broker,
            ctx,
            image: broker.image(),
            nodes: BTreeMap::new(),
        }
    }

    /// The leader of a partition of the topic with this id or, if that is nil, with this name.
    pub(super) fn of(
        &mut self,
        topic_name: &str,
        topic_id: Uuid,
        partition: i32,
    ) -> Option<CurrentLeader> {
        let topic: &TopicImage = if topic_id.is_nil() {
            self.image.topic(topic_name)?
        } else {
            self.image.topic_by_id(TopicId(topic_id))?
        };
        let partition = topic.partition(partition)?;
        let leader_epoch = partition.leader_epoch.0;
        let Some(leader) = partition.leader else {
            return Some(CurrentLeader {
                leader_id: -1,
                leader_epoch,
            });
        };
        let registration = self.image.broker(leader);
        let reachable = registration.filter(|registration| !registration.fenced);
        if let Some(node) = reachable.and_then(|found| node(self.broker, self.ctx, found)) {
            self.nodes.insert(leader.0, node);
        }
        Some(CurrentLeader {
            leader_id: leader.0,
            leader_epoch,
        })
    }

    /// Where the leaders that were named are reached.
    pub(super) fn into_nodes(self) -> impl Iterator<Item = Node> {
        self.nodes.into_values()
    }
}

/// Whether an error says that another broker leads.
pub(super) fn means_another_leader(error_code: i16) -> bool {
    error_code == ResponseError::NotLeaderOrFollower.code()
        || error_code == ResponseError::FencedLeaderEpoch.code()
}
