//! Replica fetchers: for each broker that leads partitions which we follow, `num.replica.fetchers`
//! tasks that fetch and append.
//!
//! Nothing here decides: what an answer means is said by
//! [`FollowerState`](crate::state::follower::FollowerState), and whether it is still ours by the
//! partition under its role lock. So a fetcher need not be stopped before a role changes; what it
//! still does for the old role has no effect.

mod answers;
mod followed;
mod session;
mod task;

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use highwater_storage::{BrokerId, LeaderEpoch, StorageError, TopicId};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use self::followed::{FollowedPartitions, key_of};
use self::session::Key;
use self::task::Fetcher;
use super::context::ReplicaContext;
use super::leader_endpoint::LeaderEndpointFactory;
use super::partition::Partition;

/// How long a fetcher rests that has panicked.
const REST_AFTER_PANIC: Duration = Duration::from_secs(1);

/// Told when a partition's log cannot be written any more. May block.
pub type StorageErrorHandler = Arc<dyn Fn(Arc<Partition>, StorageError) + Send + Sync>;

/// The fetchers of a broker.
pub struct ReplicaFetcherManager {
    context: Arc<ReplicaContext>,
    endpoints: Arc<dyn LeaderEndpointFactory>,
    on_storage_error: StorageErrorHandler,
    runtime: Handle,
    fetchers: Mutex<Fetchers>,
}

/// Which fetcher: the leader's broker, and a number below `num.replica.fetchers`.
type FetcherId = (BrokerId, usize);

#[derive(Debug, Default)]
struct Fetchers {
    running: HashMap<FetcherId, Arc<FollowedPartitions>>,
    /// Where each partition is.
    placed: HashMap<Key, FetcherId>,
    tasks: JoinSet<()>,
    has_stopped: bool,
}

/// What can be said of all fetchers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FetcherSummary {
    /// Fetchers that run.
    pub fetchers: usize,
    /// Partitions that are followed.
    pub partitions: usize,
    /// Partitions that are not fetched any more in their leader epoch.
    pub failed_partitions: usize,
    /// The largest number of committed records that a partition lacks.
    pub max_lag: i64,
}

impl ReplicaFetcherManager {
    /// Fetchers that run on `runtime`, none yet.
    #[must_use]
    pub fn new(
        context: Arc<ReplicaContext>,
        endpoints: Arc<dyn LeaderEndpointFactory>,
        on_storage_error: StorageErrorHandler,
        runtime: Handle,
    ) -> Self {
        Self {
            context,
            endpoints,
            on_storage_error,
            runtime,
            fetchers: Mutex::default(),
        }
    }

    /// Follows a partition in a leader epoch; it is taken from the fetcher that has it, and the
    /// place where it goes on is found anew.
    pub fn follow(&self, partition: Arc<Partition>, leader: BrokerId, leader_epoch: LeaderEpoch) {
        let key = key_of(&partition);
        let mut fetchers = self.fetchers.lock();
        fetchers.remove(&key);
        if fetchers.has_stopped {
            return;
        }
        let id = (leader, self.fetcher_number(&partition));
        let is_taken = fetchers
            .running
            .get(&id)
            .is_some_and(|running| running.add(Arc::clone(&partition), leader_epoch));
        if !is_taken {
            let followed = Arc::new(FollowedPartitions::default());
            followed.add(partition, leader_epoch);
            self.spawn(&mut fetchers, id, followed);
        }
        fetchers.placed.insert(key, id);
    }

    /// Follows a partition no more.
    pub fn unfollow(&self, topic_id: TopicId, partition: i32) {
        self.fetchers.lock().remove(&(topic_id, partition));
    }

    /// Ends all fetchers and waits until they have.
    pub async fn stop(&self) {
        let mut tasks = {
            let mut fetchers = self.fetchers.lock();
            fetchers.has_stopped = true;
            fetchers.running.clear();
            fetchers.placed.clear();
            std::mem::take(&mut fetchers.tasks)
        };
        tasks.shutdown().await;
    }

    /// What can be said of all fetchers together.
    pub fn summary(&self) -> FetcherSummary {
        let fetchers = self.fetchers.lock();
        let mut summary = FetcherSummary {
            partitions: fetchers.placed.len(),
            fetchers: fetchers.running.len(),
            ..FetcherSummary::default()
        };
        for followed in fetchers.running.values() {
            followed.with_started(|started| {
                for (_, state) in started {
                    summary.failed_partitions += usize::from(state.is_failed());
                    summary.max_lag = summary.max_lag.max(state.lag().unwrap_or(0));
                }
            });
        }
        summary
    }

    fn spawn(&self, fetchers: &mut Fetchers, id: FetcherId, followed: Arc<FollowedPartitions>) {
        let (leader, number) = id;
        let endpoint = self.endpoints.endpoint(leader, number);
        let fetcher = {
            let (context, followed) = (Arc::clone(&self.context), Arc::clone(&followed));
            let on_storage_error = Arc::clone(&self.on_storage_error);
            move || {
                let (context, endpoint) = (Arc::clone(&context), Arc::clone(&endpoint));
                let (followed, on_error) = (Arc::clone(&followed), Arc::clone(&on_storage_error));
                Fetcher::new(leader, context, endpoint, followed, on_error)
            }
        };
        // Those that have ended by themselves.
        while fetchers.tasks.try_join_next().is_some() {}
        fetchers.tasks.spawn_on(run(fetcher), &self.runtime);
        fetchers.running.insert(id, followed);
    }

    /// Spreads the partitions of a leader over its fetchers; the same one always goes to the same.
    fn fetcher_number(&self, partition: &Partition) -> usize {
        let count = self.context.settings().num_replica_fetchers.max(1);
        let topic_partition = partition.topic_partition();
        let name = topic_partition.topic.bytes();
        let hash = name.fold(0_u32, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(u32::from(byte))
        });
        let hash = hash
            .wrapping_mul(31)
            .wrapping_add(topic_partition.partition.unsigned_abs());
        hash as usize % count
    }
}

/// Runs a fetcher to its end. One that panics is begun anew, for it may have many partitions; the panic hook has told why.
async fn run(fetcher: impl Fn() -> Fetcher) {
    loop {
        let mut running = Box::pin(fetcher().run());
        let end = poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx)));
            polled.map_or_else(|panic| Poll::Ready(Err(panic)), |poll| poll.map(Ok))
        });
        if end.await.is_ok() {
            return;
        }
        tokio::time::sleep(REST_AFTER_PANIC).await;
    }
}

impl Fetchers {
    fn remove(&mut self, key: &Key) {
        if let Some(id) = self.placed.remove(key)
            && let Some(running) = self.running.get(&id)
        {
            running.remove(key);
        }
    }
}

impl fmt::Debug for ReplicaFetcherManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaFetcherManager")
            .field("summary", &self.summary())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
