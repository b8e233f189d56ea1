//! How the rest of the broker reaches the controller.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use highwater_replication::cluster::{ClusterImage, MetadataRecord};
use highwater_storage::{BrokerEpoch, BrokerId};
use tokio::sync::{mpsc, oneshot};

use super::{ControllerError, MetadataPublisher};

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

/// Decides a request against an image and the time in ms.
pub(super) type Judge =
    Box<dyn FnOnce(&ClusterImage, i64) -> (Vec<MetadataRecord>, Release) + Send>;

/// A message on its way to the writer.
pub(super) enum Request {
    /// A request to judge.
    Judge(Judge),
    /// Serve what is in the queue and end.
    Stop,
}

/// Submits requests to the controller and reads its latest image. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ControllerHandle {
    pub(super) requests: mpsc::Sender<Request>,
    pub(super) publisher: Arc<MetadataPublisher>,
    pub(super) broker_id: BrokerId,
    pub(super) broker_epoch: BrokerEpoch,
}

impl ControllerHandle {
    /// The latest image.
    pub fn image(&self) -> Arc<ClusterImage> {
        self.publisher.image()
    }

    /// This node as a broker.
    pub fn broker_id(&self) -> BrokerId {
        self.broker_id
    }

    /// The epoch of this run of the broker.
    pub fn broker_epoch(&self) -> BrokerEpoch {
        self.broker_epoch
    }

    /// Has `judge` decide against the latest image, on the controller's thread and in the order of submission; waits
    /// until its records are durable and published, then gives its response. `judge` also gets the time in ms.
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
        let judge = move |image: &ClusterImage, now_ms: i64| -> (Vec<MetadataRecord>, Release) {
            let Ok(decision) = catch_unwind(AssertUnwindSafe(|| judge(image, now_ms))) else {
                // The panic hook has logged the message and the place.
                let release: Release =
                    Box::new(move |_| drop(sender.send(Err(ControllerError::Panicked))));
                return (Vec::new(), release);
            };
            let response = decision.response;
            // A requester that is gone does not read its response.
            let release: Release =
                Box::new(move |result| drop(sender.send(result.map(|()| response))));
            (decision.records, release)
        };
        let requests = self.requests.clone();
        async move {
            let request = Request::Judge(Box::new(judge));
            requests
                .send(request)
                .await
                .map_err(|_| ControllerError::Stopping)?;
            receiver.await.unwrap_or(Err(ControllerError::Stopping))
        }
    }
}
