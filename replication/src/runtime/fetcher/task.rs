//! The loop of one fetcher: fetch, carry out the answer, fetch again.

use std::sync::Arc;
use std::time::Duration;

use highwater_storage::{BrokerEpoch, BrokerId};

use super::StorageErrorHandler;
use super::followed::{FollowedPartitions, key_of};
use super::session::{FetchSession, Wanted};
use crate::runtime::context::ReplicaContext;
use crate::runtime::leader_endpoint::{
    FetchRequest, FetchResponse, LeaderEndpoint, LeaderEndpointError,
};
use crate::runtime::partition::{FollowError, Partition};
use crate::state::follower::FollowerState;

/// How long a fetch that the leader has may go on when partitions were added meanwhile. It is
/// longer than an answer with records takes, and much shorter than the leader may park a fetch.
const ADDITION_PATIENCE: Duration = Duration::from_millis(20);
/// How long a fetcher rests when all that it could fetch is throttled, in ms.
const THROTTLE_REST_MS: i64 = 200;
/// The first rest after a fetch without an answer; it doubles up to `replica.fetch.backoff.ms`.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);

/// One fetcher.
pub(super) struct Fetcher {
    pub(super) leader: BrokerId,
    pub(super) context: Arc<ReplicaContext>,
    pub(super) endpoint: Arc<dyn LeaderEndpoint>,
    pub(super) followed: Arc<FollowedPartitions>,
    pub(super) session: FetchSession,
    pub(super) on_storage_error: StorageErrorHandler,
    /// Fetches in a row that had no answer.
    failures: u32,
}

/// How a fetch ended.
enum Outcome {
    Answered(FetchResponse),
    Failed(LeaderEndpointError),
    /// Given up so that new partitions need not wait.
    GivenUp,
}

impl Fetcher {
    pub(super) fn new(
        leader: BrokerId,
        context: Arc<ReplicaContext>,
        endpoint: Arc<dyn LeaderEndpoint>,
        followed: Arc<FollowedPartitions>,
        on_storage_error: StorageErrorHandler,
    ) -> Self {
        Self {
            leader,
            context,
            endpoint,
            followed,
            session: FetchSession::default(),
            on_storage_error,
            failures: 0,
        }
    }

    /// Fetches until nothing is left to be followed.
    pub(super) async fn run(mut self) {
        tracing::debug!(leader = %self.leader, "fetcher starts");
        loop {
            // A fetch without an epoch would count for whatever run of this broker is registered.
            let broker_epoch = self.context.wait_for_broker_epoch().await;
            let additions = self.followed.additions();
            self.start_new_ones().await;
            let Some(request) = self.next_request(broker_epoch) else {
                if self.followed.end_if_empty() {
                    break;
                }
                self.rest().await;
                continue;
            };
            match self.fetch(request, additions).await {
                Outcome::Answered(response) => {
                    self.failures = 0;
                    self.session.on_response(response.session_id);
                    self.on_answers(response.partitions).await;
                }
                Outcome::Failed(error) => self.on_failure(error).await,
                Outcome::GivenUp => {
                    self.endpoint.disconnect();
                    self.session.on_given_up();
                }
            }
        }
        tracing::debug!(leader = %self.leader, "fetcher ends");
    }

    /// Finds out where new partitions go on.
    async fn start_new_ones(&self) {
        for followed in self.followed.new_ones() {
            let (partition, leader_epoch) = (&followed.partition, followed.leader_epoch);
            let started = blocking(partition, move |partition| {
                partition.start_following(leader_epoch)
            });
            match started.await {
                Ok(state) => self.followed.start(&followed, state),
                Err(FollowError::Stale) => self.followed.remove_stale(&followed),
                Err(error) => {
                    self.followed.remove_stale(&followed);
                    self.fail(partition, error);
                }
            }
        }
    }

    /// A fetch of everything that is ready; `None` when nothing is.
    fn next_request(&mut self, broker_epoch: BrokerEpoch) -> Option<FetchRequest> {
        let now_ms = self.context.now_ms();
        let settings = self.context.settings();
        let session = &mut self.session;
        let is_exceeded = self.context.follower_throttle().is_exceeded(now_ms);
        let has_to_wait = |partition: &Partition, state: &FollowerState| {
            is_exceeded && !state.is_in_sync() && partition.is_follower_throttled()
        };
        let mut is_any = false;
        let next = self.followed.with_started(|started| {
            let ready = started.filter(|(partition, state)| {
                state.is_ready(now_ms) && !has_to_wait(partition, state)
            });
            session.next(ready.map(|(partition, state)| {
                is_any = true;
                Wanted {
                    topic_id: partition.topic_id(),
                    topic_partition: partition.topic_partition(),
                    position: state.position(),
                    log_start_offset: partition.log().log_start_offset(),
                    high_watermark: partition.log().high_watermark(),
                    max_bytes: settings.replica_fetch_max_bytes,
                }
            }))
        });
        // Without any, a session would stay that has nothing to say; the next fetch ends it.
        is_any.then(|| FetchRequest {
            replica: self.context.local_broker(),
            broker_epoch,
            max_wait_ms: settings.replica_fetch_wait_max_ms,
            min_bytes: settings.replica_fetch_min_bytes,
            max_bytes: settings.replica_fetch_response_max_bytes,
            session_id: next.session_id,
            session_epoch: next.session_epoch,
            partitions: next.partitions,
            forgotten: next.forgotten,
        })
    }

    /// Fetches. The leader may park the fetch; new partitions do not wait for that.
    async fn fetch(&self, request: FetchRequest, additions: u64) -> Outcome {
        let mut fetch = self.endpoint.fetch(request);
        let answer = tokio::select! {
            biased;
            answer = &mut fetch => answer,
            () = self.followed.added_since(additions) => {
                match tokio::time::timeout(ADDITION_PATIENCE, &mut fetch).await {
                    Ok(answer) => answer,
                    Err(_) => return Outcome::GivenUp,
                }
            }
        };
        match answer {
            Ok(response) => Outcome::Answered(response),
            Err(error) => Outcome::Failed(error),
        }
    }

    async fn on_failure(&mut self, error: LeaderEndpointError) {
        self.failures = self.failures.saturating_add(1);
        match &error {
            LeaderEndpointError::Session(reason) => {
                self.session.on_session_error();
                tracing::info!(leader = %self.leader, reason, "fetching without the session");
                if self.failures == 1 {
                    return;
                }
            }
            error => {
                self.session.on_no_response();
                if self.failures == 1 {
                    tracing::warn!(leader = %self.leader, %error, "a fetch has no answer");
                } else {
                    tracing::debug!(leader = %self.leader, %error, failures = self.failures, "a fetch has no answer");
                }
            }
        }
        let longest = self.context.settings().replica_fetch_backoff_ms.max(0);
        let longest = Duration::from_millis(longest.unsigned_abs());
        let doubled = FIRST_BACKOFF.saturating_mul(1 << (self.failures - 1).min(16));
        tokio::time::sleep(doubled.min(longest)).await;
    }

    /// Waits until a partition is ready again, is added or is taken off.
    async fn rest(&self) {
        let now_ms = self.context.now_ms();
        let next = self.followed.with_started(|started| {
            started
                .filter(|(_, state)| !state.is_failed())
                .map(|(_, state)| match state.backed_off_until_ms() {
                    Some(until_ms) if until_ms > now_ms => until_ms,
                    // Ready, but throttled.
                    _ => now_ms + THROTTLE_REST_MS,
                })
                .min()
        });
        let Some(next_ms) = next else {
            return self.followed.changed().await;
        };
        let wait_ms = next_ms.saturating_sub(self.context.now_ms()).max(1);
        let wait = Duration::from_millis(wait_ms.unsigned_abs());
        // Over or changed: both are a reason to look again.
        let _ = tokio::time::timeout(wait, self.followed.changed()).await;
    }

    /// The partition cannot be followed in its leader epoch any more.
    pub(super) fn fail(&self, partition: &Arc<Partition>, error: FollowError) {
        let topic_partition = partition.topic_partition();
        match error {
            FollowError::Storage(error) => {
                tracing::error!(%topic_partition, %error, "the log of a follower failed");
                let handler = Arc::clone(&self.on_storage_error);
                let partition = Arc::clone(partition);
                // It may block, and need not be waited for.
                drop(tokio::task::spawn_blocking(move || {
                    handler(partition, error);
                }));
            }
            error => {
                tracing::error!(%topic_partition, %error, leader = %self.leader, "following no more in this leader epoch");
            }
        }
        let (key, epoch) = (key_of(partition), partition.leader_epoch());
        self.followed.update(&key, epoch, |state| state.on_failed());
    }
}

/// Does what may wait for the disk where that disturbs nobody.
pub(super) async fn blocking<T: Send + 'static>(
    partition: &Arc<Partition>,
    work: impl FnOnce(&Partition) -> Result<T, FollowError> + Send + 'static,
) -> Result<T, FollowError> {
    let partition = Arc::clone(partition);
    let done = tokio::task::spawn_blocking(move || work(&partition)).await;
    done.unwrap_or_else(|error| {
        // The panic hook has told where; the log is in an unknown state.
        Err(FollowError::Corrupt(error.to_string()))
    })
}
