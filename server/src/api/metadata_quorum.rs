//! What Fetch and FetchSnapshot on the metadata log share: who may be asked, and who leads.

use highwater_storage::TopicId;
use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;

use crate::broker::Broker;
use crate::controller::ControllerNode;
use crate::metadata::metadata_topic_id;

/// The most of log or snapshot that one response holds, whatever is asked for.
pub(super) const MAX_RESPONSE_BYTES: usize = 8 << 20;

/// The active controller as a response tells it, whoever that is.
pub(super) struct Leader {
    /// `node.id`, -1 for none.
    pub(super) id: i32,
    /// The newest epoch that this node knows.
    pub(super) epoch: i32,
    /// Where it is reached, if it opens a listener.
    pub(super) address: Option<(StrBytes, u16)>,
}

impl Leader {
    /// The leader that this node knows of now.
    pub(super) fn of(broker: &Broker) -> Self {
        let active = broker.controller.active_controller();
        let node: Option<ControllerNode> = active.borrow().clone();
        match node {
            Some(node) => Self {
                id: node.id,
                epoch: node.epoch,
                address: (node.port != 0)
                    .then(|| (StrBytes::from_string(node.host.clone()), node.port)),
            },
            None => Self {
                id: -1,
                epoch: broker
                    .controller
                    .quorum_status(broker.now_ms())
                    .leader_epoch,
                address: None,
            },
        }
    }

    /// Refuses a request of somebody who knows another epoch, or one that only the leader can answer.
    pub(super) fn check(
        &self,
        broker: &Broker,
        current_leader_epoch: i32,
    ) -> Result<(), ResponseError> {
        if current_leader_epoch < self.epoch {
            return Err(ResponseError::FencedLeaderEpoch);
        }
        if current_leader_epoch > self.epoch {
            return Err(ResponseError::UnknownLeaderEpoch);
        }
        match broker.controller.is_active() {
            true => Ok(()),
            false => Err(ResponseError::NotLeaderOrFollower),
        }
    }
}

/// Refuses a request for another cluster; one that names none is taken.
pub(super) fn check_cluster_id(
    broker: &Broker,
    cluster_id: Option<&StrBytes>,
) -> Result<(), ResponseError> {
    match cluster_id {
        Some(id) if id.as_str() != &**broker.image().cluster_id() => {
            Err(ResponseError::InconsistentClusterId)
        }
        _ => Ok(()),
    }
}

/// Whether this is the id of the metadata log.
pub(super) fn is_metadata_topic(id: uuid::Uuid) -> bool {
    TopicId(id) == metadata_topic_id()
}
