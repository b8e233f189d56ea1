//! What a broker with others beside it does on its own: it follows, watches the lag of those who
//! follow it, and asks the controller for other in-sync replicas.

use std::sync::{Arc, Weak};
use std::time::Duration;

use highwater_storage::StorageError;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::ReplicaManager;
use crate::runtime::alter_partition::AlterPartitionChannel;
use crate::runtime::fetcher::{FetcherSummary, ReplicaFetcherManager, StorageErrorHandler};
use crate::runtime::leader_endpoint::LeaderEndpointFactory;
use crate::runtime::partition::{Partition, RoleView};
use crate::runtime::settings::ReplicaSettings;

/// The tasks that run beside the fetchers.
pub(super) type Tasks = JoinSet<()>;

/// The ways to the other nodes.
#[derive(Debug, Clone)]
pub struct Peers {
    /// To the brokers that lead what we follow.
    pub endpoints: Arc<dyn LeaderEndpointFactory>,
    /// To the active controller.
    pub controller: Arc<dyn AlterPartitionChannel>,
}

impl ReplicaManager {
    /// Begins to replicate, on `runtime`: to follow, once the epoch of this broker's run is told
    /// to the [context](super::ReplicaContext::set_broker_epoch), to send proposals of in-sync
    /// replicas, and to look each half of `replica.lag.time.max.ms` who lags. Only the first call
    /// does anything.
    pub fn start(self: &Arc<Self>, peers: Peers, runtime: &Handle) {
        let _changes = self.changes.lock();
        let on_storage_error: StorageErrorHandler = {
            let replicas = Arc::downgrade(self);
            Arc::new(move |partition: Arc<Partition>, error: StorageError| {
                if let Some(replicas) = replicas.upgrade() {
                    replicas.on_log_failure(&partition, error);
                }
            })
        };
        let fetchers = ReplicaFetcherManager::new(
            Arc::clone(&self.context),
            peers.endpoints,
            on_storage_error,
            runtime.clone(),
        );
        if self.fetchers.set(fetchers).is_err() {
            return;
        }
        let context = Arc::clone(&self.context);
        let mut tasks = self.tasks.lock();
        tasks.spawn_on(
            async move { context.proposals().run(peers.controller).await },
            runtime,
        );
        tasks.spawn_on(watch_lag(Arc::downgrade(self)), runtime);
        tasks.spawn_on(self.watch_log_failures(), runtime);
        // What the metadata said before there was a way to other brokers.
        for partition in self.partitions() {
            self.follow_leader_of(&partition);
        }
    }

    fn follow_leader_of(&self, partition: &Arc<Partition>) {
        let view = partition.view();
        if let (RoleView::Follower, Some(leader), Some(fetchers)) =
            (view.role, view.leader, self.fetchers.get())
        {
            fetchers.follow(Arc::clone(partition), leader, view.leader_epoch);
        }
    }

    /// Takes up new settings. With another number of fetchers, partitions go to the fetchers that
    /// are theirs now.
    pub fn configure(&self, settings: ReplicaSettings) {
        let _changes = self.changes.lock();
        let before = self.context.settings().num_replica_fetchers;
        let is_other = settings.num_replica_fetchers != before;
        self.context.configure(settings);
        if is_other {
            for partition in self.partitions() {
                self.follow_leader_of(&partition);
            }
        }
    }

    /// Follows nobody any more, and sends and looks for nothing. Waits until all tasks have ended.
    pub async fn stop(&self) {
        if let Some(fetchers) = self.fetchers.get() {
            fetchers.stop().await;
        }
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
    }

    /// Looks who lags: proposes that they leave the in-sync replicas.
    pub fn run_lag_check(&self) {
        for partition in self.partitions() {
            partition.on_lag_check();
        }
    }

    /// What can be said of the fetchers.
    pub fn fetcher_summary(&self) -> FetcherSummary {
        self.fetchers
            .get()
            .map_or_else(FetcherSummary::default, ReplicaFetcherManager::summary)
    }
}

/// The lag timer.
async fn watch_lag(replicas: Weak<ReplicaManager>) {
    loop {
        let Some(half) = replicas.upgrade().map(|replicas| {
            let settings = replicas.context.settings();
            Duration::from_millis((settings.replica_lag_time_max_ms / 2).max(1).unsigned_abs())
        }) else {
            return;
        };
        tokio::time::sleep(half).await;
        if let Some(replicas) = replicas.upgrade() {
            replicas.run_lag_check();
        }
    }
}
