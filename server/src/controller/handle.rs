//! How the rest of the broker reaches the controller.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use highwater_replication::cluster::{ClusterImage, MetadataRecord};
use highwater_storage::{BrokerEpoch, BrokerId};
use tokio::sync::{mpsc, oneshot, watch};

use super::{ControllerError, ControllerNode, QuorumServer, QuorumStatus, QuorumView};
use crate::metadata::{MetadataLog, MetadataPublisher};

/// What became of a request when it was judged.
#[derive(Debug)]
pub struct Decision<R> {
    /// What changes, all of it or nothing. May be empty.
    pub records: Vec<MetadataRecord>,
    /// What the requester is told once the records are durable and published.
    pub response: R,
}

impl<R> Decision<R> {
    /// A response that changes nothing.
    pub fn unchanged(response: R) -> Self {
        Self {
            records: Vec::new(),
            response,
        }
    }
}

/// Releases one request's response, or tells it why there is none.
pub(super) type Release = Box<dyn FnOnce(Result<(), ControllerError>) + Send>;

/// Decides a request against an image and the time in ms, or tells its requester why it is not decided.
pub(super) type Judge = Box<
    dyn FnOnce(
            Result<(&ClusterImage, i64), ControllerError>,
        ) -> Option<(Vec<MetadataRecord>, Release)>
        + Send,
>;

/// Submits requests to this node's controller and reads the latest image; every node has one, also a node without the
/// controller role. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ControllerHandle {
    /// `None` without the controller role.
    requests: Option<mpsc::Sender<Judge>>,
    publisher: Arc<MetadataPublisher>,
    quorum: Arc<QuorumView>,
    broker_epoch: Arc<watch::Sender<BrokerEpoch>>,
    server: Option<Arc<QuorumServer>>,
}

impl ControllerHandle {
    /// A handle of a node without the controller role: its image comes from the active controller, and it takes no
    /// request.
    pub fn without_controller(publisher: Arc<MetadataPublisher>, quorum: Arc<QuorumView>) -> Self {
        Self {
            requests: None,
            publisher,
            quorum,
            broker_epoch: Arc::new(watch::Sender::new(BrokerEpoch(-1))),
            server: None,
        }
    }

    pub(super) fn new(
        requests: mpsc::Sender<Judge>,
        publisher: Arc<MetadataPublisher>,
        quorum: Arc<QuorumView>,
        server: Arc<QuorumServer>,
    ) -> Self {
        Self {
            requests: Some(requests),
            server: Some(server),
            ..Self::without_controller(publisher, quorum)
        }
    }

    /// The latest image.
    pub fn image(&self) -> Arc<ClusterImage> {
        self.publisher.image()
    }

    /// Who acts on changes of the image.
    pub fn publisher(&self) -> &Arc<MetadataPublisher> {
        &self.publisher
    }

    /// This node as a broker.
    pub fn broker_id(&self) -> BrokerId {
        BrokerId(self.quorum.node_id())
    }

    /// The epoch of this run of the broker; -1 until it is registered.
    pub fn broker_epoch(&self) -> BrokerEpoch {
        *self.broker_epoch.borrow()
    }

    /// The epoch of this run of the broker, and word of each change.
    pub fn watch_broker_epoch(&self) -> watch::Receiver<BrokerEpoch> {
        self.broker_epoch.subscribe()
    }

    /// Notes the epoch that this run of the broker was registered with.
    pub fn set_broker_epoch(&self, epoch: BrokerEpoch) {
        self.broker_epoch.send_replace(epoch);
    }

    /// This node's copy of the metadata log, for those who read it.
    pub fn metadata_log(&self) -> &Arc<MetadataLog> {
        self.quorum.metadata_log()
    }

    /// What this node knows of the quorum.
    pub fn quorum(&self) -> &Arc<QuorumView> {
        &self.quorum
    }

    /// What takes the messages of the other controllers; `None` without the controller role.
    pub fn quorum_server(&self) -> Option<&Arc<QuorumServer>> {
        self.server.as_ref()
    }

    /// Whether this node has the controller role.
    pub fn has_controller_role(&self) -> bool {
        self.requests.is_some()
    }

    /// Whether this node is the active controller: requests of the controller are served here.
    pub fn is_active(&self) -> bool {
        self.has_controller_role() && self.quorum.is_active()
    }

    /// The active controller, and word of each change of it.
    pub fn active_controller(&self) -> watch::Receiver<Option<ControllerNode>> {
        self.quorum.active_controller()
    }

    /// The quorum as this node sees it, for DescribeQuorum.
    pub fn quorum_status(&self, now_ms: i64) -> QuorumStatus {
        self.quorum.status(now_ms)
    }

    /// Has `judge` decide against the latest image, on the controller's thread and in the order of submission; waits
    /// until its records are durable and published, then gives its response. `judge` also gets the time in ms. A node
    /// that is not the active controller refuses with [`ControllerError::NotController`].
    ///
    /// Dropping the future does not take the request back.
    pub fn submit<R, F>(
        &self,
        judge: F,
    ) -> impl Future<Output = Result<R, ControllerError>> + Send + 'static
    where
        R: Send + 'static,
        F: FnOnce(&ClusterImage, i64) -> Decision<R> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel::<Result<R, ControllerError>>();
        let judge: Judge = Box::new(move |asked| {
            let (image, now_ms) = match asked {
                Ok(asked) => asked,
                Err(error) => {
                    // A requester that is gone does not read why.
                    let _ = sender.send(Err(error));
                    return None;
                }
            };
            let Ok(decision) = catch_unwind(AssertUnwindSafe(|| judge(image, now_ms))) else {
                // The panic hook has logged the message and the place.
                let _ = sender.send(Err(ControllerError::Panicked));
                return None;
            };
            let response = decision.response;
            // A requester that is gone does not read its response.
            let release: Release =
                Box::new(move |result| drop(sender.send(result.map(|()| response))));
            Some((decision.records, release))
        });
        let requests = self.requests.clone().filter(|_| self.quorum.is_active());
        let leader = self.quorum.leader_id();
        async move {
            let requests = requests.ok_or(ControllerError::NotController { leader })?;
            requests
                .send(judge)
                .await
                .map_err(|_| ControllerError::Stopping)?;
            receiver.await.unwrap_or(Err(ControllerError::Stopping))
        }
    }
}
