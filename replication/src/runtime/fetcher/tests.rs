//! A fetcher of broker 1 against a leader on broker 2: both have real logs, and nothing but the
//! wire is missing between them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use highwater_storage::BrokerEpoch;
use tokio::sync::Notify;

use super::super::BoxFuture;
use super::super::leader_endpoint::{
    FetchRequest, FetchResponse, FetchedPartition, FetchedRecords, LeaderEndpoint,
    LeaderEndpointError, ReplicaOffset, TopicIdPartition,
};
use super::super::partition::FollowerRead;
use super::super::read::{OffsetQuery, PartitionReadRequest, ReadIsolation};
use super::super::testing::*;
use super::*;
use crate::runtime::error::PartitionError;
use crate::state::commit::Acks;
use crate::state::fencing::EpochFence;
use crate::state::follower::{FetchPosition, LeaderError};
use crate::state::replica_progress::FollowerFetch;
use crate::state::truncation::EpochEnd;

mod diverging;
mod fetching;

const ALL: &[BrokerId] = &[B1, B2, B3];

/// A leader's broker as a follower reaches it.
#[derive(Debug)]
struct Leader {
    partition: Arc<Partition>,
    /// What the session remembers.
    told: Mutex<ToldFetches>,
    requests: Mutex<Vec<FetchRequest>>,
    /// Fetches that are answered so rather than from the log.
    instead: Mutex<VecDeque<Result<FetchResponse, LeaderEndpointError>>>,
    disconnects: AtomicUsize,
    asked: Notify,
}

impl Leader {
    fn position(&self, key: &Key) -> Option<FetchPosition> {
        self.told.lock().0.get(key).map(|told| told.position)
    }

    /// Remembers a request as a session does.
    fn hear(&self, request: &FetchRequest) {
        self.told.lock().hear(request);
        self.requests.lock().push(request.clone());
        self.asked.notify_one();
    }

    /// Reads for the follower; `None` while there is nothing to answer.
    fn look(&self, request: &FetchRequest, is_first_look: bool) -> Option<FetchedPartition> {
        let key = key_of(&self.partition);
        let position = self.position(&key)?;
        let fetch_offset = position.fetch_offset;
        let read = self.partition.read_for_follower(
            PartitionReadRequest {
                current_leader_epoch: Some(position.leader_epoch),
                last_fetched_epoch: position.last_fetched_epoch,
                ..read_request(fetch_offset)
            },
            FollowerRead {
                fetch: FollowerFetch {
                    replica: request.replica,
                    broker_epoch: request.broker_epoch,
                    fetch_offset,
                    log_start_offset: 0,
                },
                is_first_look,
            },
        );
        let answer = match read {
            Ok(read) => {
                let diverging_epoch = read
                    .diverging_epoch
                    .map(|(epoch, end_offset)| EpochEnd { epoch, end_offset });
                let records = read.records.map_or_else(Bytes::new, |read| read.records);
                if records.is_empty() && diverging_epoch.is_none() {
                    return None;
                }
                Ok(FetchedRecords {
                    high_watermark: read.high_watermark,
                    log_start_offset: read.log_start_offset,
                    diverging_epoch,
                    records,
                })
            }
            Err(error) => Err(leader_error(&error)),
        };
        Some(FetchedPartition {
            topic_id: key.0,
            partition: key.1,
            answer,
        })
    }

    async fn answer(&self, request: FetchRequest) -> Result<FetchResponse, LeaderEndpointError> {
        self.hear(&request);
        let instead = self.instead.lock().pop_front();
        if let Some(instead) = instead {
            return instead;
        }
        let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).expect("positive"));
        let deadline = tokio::time::Instant::now() + wait;
        let notify = Arc::new(Notify::new());
        let mut is_first_look = true;
        let partitions = loop {
            let next = self.partition.log().log_end_offset() + 1;
            let watch = self.partition.log_end_watch();
            let _registration = watch.register(next, Arc::clone(&notify));
            if let Some(fetched) = self.look(&request, is_first_look) {
                break vec![fetched];
            }
            is_first_look = false;
            if tokio::time::timeout_at(deadline, notify.notified())
                .await
                .is_err()
            {
                break self.idle();
            }
        };
        Ok(FetchResponse {
            session_id: 7,
            partitions,
        })
    }

    /// An answer after the wait: a session tells the high watermark.
    fn idle(&self) -> Vec<FetchedPartition> {
        let key = key_of(&self.partition);
        let log = self.partition.log();
        let fetched = FetchedPartition {
            topic_id: key.0,
            partition: key.1,
            answer: Ok(FetchedRecords {
                high_watermark: log.high_watermark(),
                log_start_offset: log.log_start_offset(),
                diverging_epoch: None,
                records: Bytes::new(),
            }),
        };
        self.position(&key).map(|_| fetched).into_iter().collect()
    }
}

fn leader_error(error: &PartitionError) -> LeaderError {
    match error {
        PartitionError::OffsetOutOfRange { .. } => LeaderError::OffsetOutOfRange,
        PartitionError::Fenced(EpochFence::Fenced { .. }) => LeaderError::FencedLeaderEpoch,
        PartitionError::Fenced(EpochFence::Unknown { .. }) => LeaderError::UnknownLeaderEpoch,
        _ => LeaderError::NotLeaderOrFollower,
    }
}

impl LeaderEndpoint for Leader {
    fn fetch(
        &self,
        request: FetchRequest,
    ) -> BoxFuture<'_, Result<FetchResponse, LeaderEndpointError>> {
        Box::pin(self.answer(request))
    }

    fn list_offset(
        &self,
        _: TopicIdPartition,
        current_leader_epoch: LeaderEpoch,
        which: ReplicaOffset,
    ) -> BoxFuture<'_, Result<Result<i64, LeaderError>, LeaderEndpointError>> {
        let query = match which {
            ReplicaOffset::LogEnd => OffsetQuery::Latest,
            ReplicaOffset::LogStart => OffsetQuery::Earliest,
        };
        let epoch = Some(current_leader_epoch);
        let found = self
            .partition
            .list_offset(query, ReadIsolation::LogEnd, epoch, true);
        Box::pin(async move {
            Ok(found
                .map(|found| found.expect("the ends are known").offset)
                .map_err(|error| leader_error(&error)))
        })
    }

    fn end_offset_for_epoch(
        &self,
        _: TopicIdPartition,
        current_leader_epoch: LeaderEpoch,
        epoch: LeaderEpoch,
    ) -> BoxFuture<'_, Result<Result<Option<EpochEnd>, LeaderError>, LeaderEndpointError>> {
        let current = Some(current_leader_epoch);
        let found = self.partition.end_offset_for_epoch(epoch, current);
        Box::pin(async move {
            let end = |(epoch, end_offset)| EpochEnd { epoch, end_offset };
            Ok(found
                .map(|found| found.map(end))
                .map_err(|error| leader_error(&error)))
        })
    }

    fn disconnect(&self) {
        self.disconnects.fetch_add(1, Ordering::Relaxed);
    }
}

/// Every broker is the same leader.
#[derive(Debug)]
struct Network(Arc<Leader>);

impl LeaderEndpointFactory for Network {
    fn endpoint(&self, _: BrokerId, _: usize) -> Arc<dyn LeaderEndpoint> {
        Arc::clone(&self.0) as Arc<dyn LeaderEndpoint>
    }
}

/// A leader on broker 2, a follower on broker 1, and broker 1's fetchers.
struct Pair {
    leading: Fixture,
    following: Fixture,
    leader: Arc<Leader>,
    fetchers: ReplicaFetcherManager,
    storage_errors: Arc<Mutex<Vec<StorageError>>>,
}

impl Pair {
    /// Neither has a role yet.
    fn new() -> Self {
        let leading = Fixture::on(B2, 1);
        let following = Fixture::on(B1, 1);
        let leader = Arc::new(Leader {
            partition: Arc::clone(&leading.partition),
            told: Mutex::default(),
            requests: Mutex::default(),
            instead: Mutex::default(),
            disconnects: AtomicUsize::new(0),
            asked: Notify::new(),
        });
        following.context.set_broker_epoch(BrokerEpoch(10));
        let storage_errors = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&storage_errors);
        let fetchers = ReplicaFetcherManager::new(
            Arc::clone(&following.context),
            Arc::new(Network(Arc::clone(&leader))),
            Arc::new(move |_, error| seen.lock().push(error)),
            Handle::current(),
        );
        Self {
            leading,
            following,
            leader,
            fetchers,
            storage_errors,
        }
    }

    /// Broker 2 leads in `epoch` and broker 1 follows it, but does not fetch yet.
    fn elect(&self, epoch: i32, isr: &[BrokerId]) {
        self.leading
            .become_as(leadership(Some(B2), epoch, epoch, isr));
        self.following
            .become_as(leadership(Some(B2), epoch, epoch, isr));
    }

    /// Broker 1 begins to fetch in `epoch`.
    fn follow(&self, epoch: i32) {
        let partition = Arc::clone(&self.following.partition);
        self.fetchers.follow(partition, B2, LeaderEpoch(epoch));
    }

    /// Lets the fetcher run until the follower has all that the leader has.
    async fn catch_up(&self) {
        let has_all = || self.following.log_end_offset() == self.leading.log_end_offset();
        self.until(has_all).await;
    }

    async fn until(&self, is_reached: impl Fn() -> bool) {
        for _ in 0..1_000 {
            if is_reached() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not reached; the follower is at {:?}", self.fetchers);
    }

    fn requests(&self) -> usize {
        self.leader.requests.lock().len()
    }

    /// Answers the next fetch so.
    fn answer_next(&self, answer: Result<FetchedRecords, LeaderError>) {
        let (topic_id, partition) = key_of(&self.following.partition);
        let response = FetchResponse {
            session_id: 7,
            partitions: vec![FetchedPartition {
                topic_id,
                partition,
                answer,
            }],
        };
        self.leader.instead.lock().push_back(Ok(response));
    }

    fn assert_same_logs(&self) {
        let [one, other] = [&self.leading, &self.following].map(|fixture| {
            let log = fixture.partition.log();
            let read = log.read(0, 1 << 20, i64::MAX, true).expect("read");
            (log.log_end_offset(), read.records)
        });
        assert_eq!(one, other);
    }
}
