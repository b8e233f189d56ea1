//! What all partitions of a broker share: the latest metadata, the clock, and the way to the
//! controller.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use highwater_storage::{BrokerEpoch, BrokerId};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::alter_partition::AlterPartitionQueue;
use super::metrics::ReplicationMetrics;
use super::settings::ReplicaSettings;
use super::throttle::Throttle;
use crate::cluster::ClusterImage;
use crate::state::leadership::{BrokerDirectory, BrokerStanding, Moment};

/// What all partitions of a broker share.
#[derive(Debug)]
pub struct ReplicaContext {
    local_broker: BrokerId,
    image: ArcSwap<ClusterImage>,
    settings: ArcSwap<ReplicaSettings>,
    /// In ms after `started`.
    session_end_ms: AtomicI64,
    broker_epoch: watch::Sender<Option<BrokerEpoch>>,
    started: Instant,
    proposals: AlterPartitionQueue,
    metrics: ReplicationMetrics,
    leader_throttle: Throttle,
    follower_throttle: Throttle,
    /// Something may have changed in where replicas lie, or whether they can be used there.
    places: Notify,
}

impl ReplicaContext {
    /// For this broker, which has heard of no metadata yet.
    #[must_use]
    pub fn new(local_broker: BrokerId) -> Self {
        Self {
            local_broker,
            image: ArcSwap::from_pointee(ClusterImage::empty("")),
            settings: ArcSwap::default(),
            session_end_ms: AtomicI64::new(i64::MAX),
            broker_epoch: watch::Sender::new(None),
            started: Instant::now(),
            proposals: AlterPartitionQueue::default(),
            metrics: ReplicationMetrics::default(),
            leader_throttle: Throttle::default(),
            follower_throttle: Throttle::default(),
            places: Notify::new(),
        }
    }

    /// This broker.
    pub fn local_broker(&self) -> BrokerId {
        self.local_broker
    }

    /// Takes up newer metadata.
    pub fn set_image(&self, image: Arc<ClusterImage>) {
        self.image.store(image);
    }

    /// The latest metadata that partitions look at.
    pub fn image(&self) -> arc_swap::Guard<Arc<ClusterImage>> {
        self.image.load()
    }

    /// Replaces the settings; they hold from the next event on.
    pub fn configure(&self, settings: ReplicaSettings) {
        self.leader_throttle.configure(settings.leader_throttle);
        self.follower_throttle.configure(settings.follower_throttle);
        self.settings.store(Arc::new(settings));
    }

    /// The settings in force.
    pub fn settings(&self) -> arc_swap::Guard<Arc<ReplicaSettings>> {
        self.settings.load()
    }

    /// Says until when the controller's last confirmation of this broker's session holds: from then
    /// on others may lead its partitions. As leader of a partition with followers it refuses then
    /// what it would answer for alone: appends without `acks=all`, and look-ups of the latest offset.
    /// Until the first one is told of, nothing is refused.
    pub fn set_session_end(&self, end: Instant) {
        let end_ms = end.saturating_duration_since(self.started).as_millis();
        let end_ms = i64::try_from(end_ms).unwrap_or(i64::MAX);
        self.session_end_ms.store(end_ms, Ordering::Release);
    }

    /// Whether this broker's session has expired as far as it knows. Looks at the clock: a process
    /// that was stopped for a while finds out before it does anything else.
    pub fn is_session_expired(&self) -> bool {
        self.now_ms() >= self.session_end_ms.load(Ordering::Acquire)
    }

    /// Says in which run this broker is registered. Fetchers wait for it: a fetch that names an
    /// earlier run, or none, might count for what that run had.
    pub fn set_broker_epoch(&self, broker_epoch: BrokerEpoch) {
        self.broker_epoch.send_replace(Some(broker_epoch));
    }

    /// The present run of this broker, once it is registered.
    pub fn broker_epoch(&self) -> Option<BrokerEpoch> {
        *self.broker_epoch.borrow()
    }

    /// Waits until this broker is registered.
    pub(super) async fn wait_for_broker_epoch(&self) -> BrokerEpoch {
        if let Some(broker_epoch) = self.broker_epoch() {
            return broker_epoch;
        }
        let mut receiver = self.broker_epoch.subscribe();
        loop {
            if let Some(broker_epoch) = *receiver.borrow_and_update() {
                return broker_epoch;
            }
            if receiver.changed().await.is_err() {
                // The sender is ours, so it lives.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Proposals of in-sync replicas that wait for the controller.
    pub fn proposals(&self) -> &AlterPartitionQueue {
        &self.proposals
    }

    /// What partitions and fetchers count.
    pub fn metrics(&self) -> &ReplicationMetrics {
        &self.metrics
    }

    /// Bounds what is sent to throttled followers that are not in sync.
    pub(super) fn leader_throttle(&self) -> &Throttle {
        &self.leader_throttle
    }

    /// Bounds what throttled followers on this broker fetch as long as they are not in sync.
    pub(super) fn follower_throttle(&self) -> &Throttle {
        &self.follower_throttle
    }

    /// Has the [assignments of replicas to directories](super::replica_manager::ReplicaManager::wanted_assignments)
    /// looked at again.
    pub(super) fn on_places_changed(&self) {
        self.places.notify_one();
    }

    /// Waits until where replicas lie may have changed since the last call.
    pub async fn places_changed(&self) {
        self.places.notified().await;
    }

    /// A clock in ms that never goes back, whatever happens to the time of day.
    pub fn now_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Runs `decide` with what is true now.
    pub fn at_this_moment<T>(&self, decide: impl FnOnce(&Moment<'_>) -> T) -> T {
        let image = self.image();
        decide(&Moment {
            now_ms: self.now_ms(),
            replica_lag_time_max_ms: self.settings().replica_lag_time_max_ms,
            brokers: &**image,
        })
    }
}

/// The time of day, in ms since 1970: what a log rolls its segments by.
pub(super) fn time_of_day_ms() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let since_1970 = since_1970.unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}

impl BrokerDirectory for ClusterImage {
    fn standing(&self, broker: BrokerId) -> Option<BrokerStanding> {
        let registration = self.broker(broker)?;
        Some(BrokerStanding {
            broker_epoch: registration.epoch,
            is_active: registration.is_active(),
        })
    }
}
