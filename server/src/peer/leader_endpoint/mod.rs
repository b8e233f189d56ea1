//! Fetching from the brokers that lead our partitions, as a replica.

mod request;
mod response;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use highwater_replication::cluster::ClusterImage;
use highwater_replication::runtime::BoxFuture;
use highwater_replication::runtime::leader_endpoint::{
    FetchRequest, FetchResponse, LeaderEndpoint, LeaderEndpointError, LeaderEndpointFactory,
    ReplicaOffset, TopicIdPartition,
};
use highwater_replication::state::follower::LeaderError;
use highwater_replication::state::truncation::EpochEnd;
use highwater_storage::{BrokerId, LeaderEpoch};
use parking_lot::Mutex;

use crate::network::client::{Client, ClientConfig, ClientError};

/// Gives the latest metadata.
type Image = dyn Fn() -> Arc<ClusterImage> + Send + Sync;

/// What the endpoints of a node share.
struct Shared {
    replica: BrokerId,
    /// `inter.broker.listener.name`.
    listener_name: String,
    client: Arc<ClientConfig>,
    image: Box<Image>,
}

/// Makes endpoints, each with a connection of its own.
#[derive(Clone)]
pub struct PeerEndpoints {
    shared: Arc<Shared>,
}

impl PeerEndpoints {
    /// Endpoints of the broker `replica`, which find the others in `image` by the name of the listener for brokers.
    pub fn new(
        replica: BrokerId,
        listener_name: String,
        client: ClientConfig,
        image: impl Fn() -> Arc<ClusterImage> + Send + Sync + 'static,
    ) -> Self {
        PeerEndpoints {
            shared: Arc::new(Shared {
                replica,
                listener_name,
                client: Arc::new(client),
                image: Box::new(image),
            }),
        }
    }
}

impl fmt::Debug for PeerEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerEndpoints")
            .field("replica", &self.shared.replica)
            .field("listener_name", &self.shared.listener_name)
            .finish_non_exhaustive()
    }
}

impl LeaderEndpointFactory for PeerEndpoints {
    fn endpoint(&self, leader: BrokerId, fetcher_id: usize) -> Arc<dyn LeaderEndpoint> {
        Arc::new(PeerEndpoint {
            leader,
            fetcher_id,
            shared: Arc::clone(&self.shared),
            client: Mutex::new(None),
        })
    }
}

/// One leader's broker over the wire, for one fetcher.
struct PeerEndpoint {
    leader: BrokerId,
    fetcher_id: usize,
    shared: Arc<Shared>,
    /// Of the address that was last used.
    client: Mutex<Option<Arc<Client>>>,
}

impl PeerEndpoint {
    /// A client for where the broker is now.
    fn client(&self) -> Result<Arc<Client>, LeaderEndpointError> {
        let unknown = || LeaderEndpointError::UnknownBroker(self.leader);
        let image = (self.shared.image)();
        let broker = image.broker(self.leader).ok_or_else(unknown)?;
        let end_point = broker
            .end_point(&self.shared.listener_name)
            .ok_or_else(unknown)?;
        let mut known = self.client.lock();
        if let Some(client) = &*known
            && client.is_at(&end_point.host, end_point.port)
        {
            return Ok(Arc::clone(client));
        }
        let config = Arc::clone(&self.shared.client);
        let client = Client::new(end_point.host.clone(), end_point.port, config);
        Ok(Arc::clone(known.insert(Arc::new(client))))
    }
}

impl fmt::Debug for PeerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerEndpoint")
            .field("leader", &self.leader)
            .field("fetcher_id", &self.fetcher_id)
            .finish_non_exhaustive()
    }
}

/// A request that failed as a whole.
fn disconnected(error: &ClientError) -> LeaderEndpointError {
    LeaderEndpointError::Disconnected(error.to_string())
}

impl LeaderEndpoint for PeerEndpoint {
    fn fetch(
        &self,
        request: FetchRequest,
    ) -> BoxFuture<'_, Result<FetchResponse, LeaderEndpointError>> {
        Box::pin(async move {
            let client = self.client()?;
            let fetched = client
                .call_within(request::FETCH_VERSIONS, |_| request::fetch(request))
                .await;
            let (_, fetched) = fetched.map_err(|error| disconnected(&error))?;
            response::fetch(fetched)
        })
    }

    fn list_offset(
        &self,
        partition: TopicIdPartition,
        current_leader_epoch: LeaderEpoch,
        which: ReplicaOffset,
    ) -> BoxFuture<'_, Result<Result<i64, LeaderError>, LeaderEndpointError>> {
        Box::pin(async move {
            let client = self.client()?;
            let asked =
                request::list_offset(self.shared.replica, &partition, current_leader_epoch, which);
            let told = client.call(&asked).await;
            response::list_offset(told.map_err(|error| disconnected(&error))?, &partition)
        })
    }

    fn disconnect(&self) {
        if let Some(client) = &*self.client.lock() {
            client.disconnect("given up by this broker");
        }
    }

    fn end_offset_for_epoch(
        &self,
        partition: TopicIdPartition,
        current_leader_epoch: LeaderEpoch,
        epoch: LeaderEpoch,
    ) -> BoxFuture<'_, Result<Result<Option<EpochEnd>, LeaderError>, LeaderEndpointError>> {
        Box::pin(async move {
            let client = self.client()?;
            let asked = request::end_offset_for_epoch(
                self.shared.replica,
                &partition,
                current_leader_epoch,
                epoch,
            );
            let told = client
                .call_within(request::OFFSET_FOR_LEADER_EPOCH_VERSIONS, |_| asked)
                .await;
            let (_, told) = told.map_err(|error| disconnected(&error))?;
            response::end_offset_for_epoch(told, &partition)
        })
    }
}
