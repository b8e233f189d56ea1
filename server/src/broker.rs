//! The broker: builds its parts in order and stops them in reverse.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{SystemTime, UNIX_EPOCH};

use highwater_replication::cluster::ClusterImage;
use highwater_replication::runtime::replica_manager::ReplicaManager;

mod background;
mod membership;
mod metadata_source;
mod pages;
mod start;
mod wiring;

pub use pages::BrokerPages;
pub use start::{BoundListeners, RunningBroker, StartError};

use crate::config::DynamicConfig;
use crate::controller::{BrokerSessions, ControllerHandle};
use crate::coordinator::group::GroupCoordinator;
use crate::fetch_session::FetchSessionCache;
use crate::network::NetworkMetrics;
use crate::peer::auto_topics::AutoTopicCreation;
use crate::peer::controller_channel::{ControllerChannel, ControllerChannels};
use crate::peer::producer_ids::ProducerIdManager;
use crate::refusals::Refusals;

/// What handlers reach everything through. Each part has a field here; [`RunningBroker::start`] builds them.
pub struct Broker {
    /// Requests, errors, bytes and connections.
    pub network_metrics: Arc<NetworkMetrics>,
    /// What was refused for the sake of replication.
    pub refusals: Refusals,
    /// The partitions that this broker hosts.
    pub replicas: Arc<ReplicaManager>,
    /// The consumer groups that this broker coordinates.
    pub groups: Arc<GroupCoordinator>,
    /// The incremental fetch sessions of this broker's clients.
    pub fetch_sessions: FetchSessionCache,
    /// The most that one fetch response holds (`fetch.max.bytes`), in bytes.
    pub fetch_max_bytes: i32,
    /// The configuration in effect, and what it is made of.
    pub config: Arc<DynamicConfig>,
    /// The controller: changes of the metadata go through it.
    pub controller: ControllerHandle,
    /// The sessions of brokers, while this node is the active controller.
    pub broker_sessions: Arc<BrokerSessions>,
    /// Ids for idempotent producers.
    pub producer_ids: ProducerIdManager,
    /// Topics that are made on demand.
    pub auto_topics: AutoTopicCreation,
    /// The ways to the active controller, wherever it is.
    pub controllers: ControllerChannels,
    /// The way of what clients ask for and only the active controller can do.
    pub forwarding: ControllerChannel,
    stopping: AtomicBool,
}

impl Broker {
    /// The latest cluster metadata.
    pub fn image(&self) -> Arc<ClusterImage> {
        self.controller.image()
    }

    /// The time of day, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        now_ms()
    }

    /// Whether the broker has begun to stop. Parked requests answer with what they have.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Waits for `future`, but gives up with `None` when the broker stops. Every connection polls what it has parked
    /// once the broker begins to stop, so this registers nothing and costs one load a poll. Only for parked replies and
    /// asynchronous handlers.
    pub async fn until_stopping<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.is_stopping() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}

/// The time of day, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}
