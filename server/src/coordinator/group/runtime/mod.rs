//! [`GroupCoordinator`]: the groups of the `__consumer_offsets` partitions that this broker leads.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::{BoxFuture, FutureExt};
use kafka_protocol::ResponseError;
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use super::offsets_log::OffsetsLog;
use super::state::{
    CommitOutcome, CommitRequest, Group, GroupDescription, GroupReply, JoinReply, JoinRequest,
    LeavingMember, Now, SyncReply, SyncRequest, TopicOffsets,
};
use super::{GroupConfig, GroupId, partition_for};

mod shard;

#[cfg(test)]
mod tests;

use shard::Shard;

/// The longest group id that a record of `__consumer_offsets` can hold.
const MAX_GROUP_ID_BYTES: usize = i16::MAX as usize;

/// The answer to a request that may have to wait.
pub enum Answer<T> {
    /// It is here.
    Ready(T),
    /// It comes later.
    Parked(BoxFuture<'static, T>),
}

impl<T: Send + 'static> Answer<T> {
    /// Turns the answer into something else.
    pub fn map<U>(self, into: impl FnOnce(T) -> U + Send + 'static) -> Answer<U> {
        match self {
            Answer::Ready(answer) => Answer::Ready(into(answer)),
            Answer::Parked(later) => Answer::Parked(later.map(into).boxed()),
        }
    }
}

/// A group as ListGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    /// The group's id.
    pub group_id: GroupId,
    /// The protocol type, empty for a simple group.
    pub protocol_type: Arc<str>,
    /// Kafka's name of the group's state.
    pub state: &'static str,
}

/// Serves the groups of all `__consumer_offsets` partitions that this broker leads.
pub struct GroupCoordinator {
    config: Arc<GroupConfig>,
    log: Arc<dyn OffsetsLog>,
    clock: Clock,
    tasks: Handle,
    partitions: AtomicI32,
    is_stopped: AtomicBool,
    shards: RwLock<HashMap<i32, Arc<Shard>>>,
    to_load: Mutex<LoadQueue>,
}

#[derive(Default)]
struct LoadQueue {
    shards: VecDeque<Arc<Shard>>,
    is_running: bool,
}

/// Both clocks; the monotonic one is tokio's, so that tests can stop it.
#[derive(Clone, Copy, Debug)]
struct Clock {
    start: Instant,
}

impl Clock {
    fn now(&self) -> Now {
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            wall_ms: since_1970.as_millis() as i64,
            monotonic_ms: self.start.elapsed().as_millis() as i64,
        }
    }

    fn instant(&self, monotonic_ms: i64) -> Instant {
        self.start + Duration::from_millis(u64::try_from(monotonic_ms).unwrap_or(0))
    }
}

impl GroupCoordinator {
    /// A coordinator that leads no partition yet. `partitions` is the number of partitions that `__consumer_offsets`
    /// has or will be made with. Must be called within a tokio runtime.
    pub fn new(config: GroupConfig, log: Arc<dyn OffsetsLog>, partitions: i32) -> Arc<Self> {
        Arc::new(GroupCoordinator {
            config: Arc::new(config),
            log,
            clock: Clock {
                start: Instant::now(),
            },
            tasks: Handle::current(),
            partitions: AtomicI32::new(partitions),
            is_stopped: AtomicBool::new(false),
            shards: RwLock::new(HashMap::new()),
            to_load: Mutex::new(LoadQueue::default()),
        })
    }

    /// The settings.
    pub fn config(&self) -> &GroupConfig {
        &self.config
    }

    /// Takes note of the number of partitions that `__consumer_offsets` has.
    pub fn set_partitions(&self, partitions: i32) {
        self.partitions.store(partitions, Ordering::Relaxed);
    }

    /// The partition of `__consumer_offsets` that a group belongs to.
    pub fn partition_for(&self, group_id: &str) -> i32 {
        partition_for(group_id, self.partitions.load(Ordering::Relaxed))
    }

    /// A member id that nobody has: the client's id or instance id and a random part.
    pub fn new_member_id(prefix: &str) -> Arc<str> {
        Arc::from(format!("{prefix}-{}", Uuid::new_v4()))
    }

    /// This broker has become leader of a partition: its groups are loaded, in the background if there are any.
    pub fn on_elected(self: &Arc<Self>, partition: i32, leader_epoch: i32) {
        if self.is_stopped.load(Ordering::Acquire) {
            return;
        }
        let shard = {
            let mut shards = self.shards.write();
            if shards
                .get(&partition)
                .is_some_and(|shard| shard.leader_epoch() >= leader_epoch)
            {
                return;
            }
            let shard = Shard::new(partition, leader_epoch, self.log.clone(), self.clock);
            if let Some(old) = shards.insert(partition, shard.clone()) {
                old.unload();
            }
            shard
        };
        if self.log.is_empty(partition) {
            shard.load(&self.config, &self.tasks);
            return;
        }
        let mut to_load = self.to_load.lock();
        to_load.shards.push_back(shard);
        if !to_load.is_running {
            to_load.is_running = true;
            let coordinator = self.clone();
            self.tasks.spawn_blocking(move || coordinator.load_all());
        }
    }

    fn load_all(&self) {
        loop {
            let shard = {
                let mut to_load = self.to_load.lock();
                match to_load.shards.pop_front() {
                    Some(shard) => shard,
                    None => {
                        to_load.is_running = false;
                        return;
                    }
                }
            };
            shard.load(&self.config, &self.tasks);
        }
    }

    /// This broker no longer leads a partition: whoever waits is sent to the next leader.
    pub fn on_resigned(&self, partition: i32) {
        let shard = self.shards.write().remove(&partition);
        if let Some(shard) = shard {
            shard.unload();
        }
    }

    /// Topics were deleted, with the ids they had: what groups committed for them goes.
    pub fn on_topics_deleted(&self, topics: &[(Arc<str>, Uuid)]) {
        for shard in self.all_shards() {
            // A partition that is being loaded is found to hold other topic ids when its offsets are fetched.
            let _ = shard.run(|groups, _| ((), groups.on_topics_deleted(topics)));
        }
    }

    /// Answers all that is parked; nothing is served from now on.
    pub fn shutdown(&self) {
        self.is_stopped.store(true, Ordering::Release);
        let shards = std::mem::take(&mut *self.shards.write());
        for shard in shards.into_values() {
            shard.unload();
        }
    }

    fn all_shards(&self) -> Vec<Arc<Shard>> {
        self.shards.read().values().cloned().collect()
    }

    fn shard(&self, group_id: &str) -> Result<Arc<Shard>, ResponseError> {
        if self.is_stopped.load(Ordering::Acquire) {
            return Err(ResponseError::CoordinatorNotAvailable);
        }
        if group_id.len() > MAX_GROUP_ID_BYTES {
            return Err(ResponseError::InvalidGroupId);
        }
        let shard = self
            .shards
            .read()
            .get(&self.partition_for(group_id))
            .cloned();
        shard.ok_or(ResponseError::NotCoordinator)
    }

    /// JoinGroup.
    pub fn join(&self, request: JoinRequest) -> Answer<JoinReply> {
        let member_id = request.member_id.clone();
        let refused = |error| Answer::Ready(JoinReply::error(error, &member_id));
        let bounds = self.config.min_session_timeout_ms..=self.config.max_session_timeout_ms;
        if request.group_id.is_empty() {
            return refused(ResponseError::InvalidGroupId);
        }
        if !bounds.contains(&request.session_timeout_ms) {
            return refused(ResponseError::InvalidSessionTimeout);
        }
        let waiting = self.shard(&request.group_id).and_then(|shard| {
            shard.run_with_token(|groups, token, now| ((), groups.join(request, token, now)))
        });
        match waiting {
            Err(error) => refused(error),
            Ok(((), waiting)) => answer(waiting, move |reply| match reply {
                Some(GroupReply::Join(reply)) => reply,
                _ => JoinReply::error(ResponseError::NotCoordinator, &member_id),
            }),
        }
    }

    /// SyncGroup.
    pub fn sync(&self, request: SyncRequest) -> Answer<SyncReply> {
        if request.group_id.is_empty() {
            return Answer::Ready(SyncReply::error(ResponseError::InvalidGroupId));
        }
        let waiting = self.shard(&request.group_id).and_then(|shard| {
            shard.run_with_token(|groups, token, now| ((), groups.sync(request, token, now)))
        });
        match waiting {
            Err(error) => Answer::Ready(SyncReply::error(error)),
            Ok(((), waiting)) => answer(waiting, |reply| match reply {
                Some(GroupReply::Sync(reply)) => reply,
                _ => SyncReply::error(ResponseError::NotCoordinator),
            }),
        }
    }

    /// Heartbeat. A partition that is being loaded answers without error: the member's session begins anew after it.
    pub fn heartbeat(
        &self,
        group_id: &str,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), ResponseError> {
        if group_id.is_empty() {
            return Err(ResponseError::InvalidGroupId);
        }
        let beat = self.shard(group_id)?.run(|groups, now| {
            let result = groups.heartbeat(group_id, member_id, instance_id, generation, now);
            (result, Default::default())
        });
        match beat {
            Err(ResponseError::CoordinatorLoadInProgress) => Ok(()),
            Err(error) => Err(error),
            Ok(result) => result,
        }
    }

    /// LeaveGroup: the result for each member, or one for the request.
    pub fn leave(
        &self,
        group_id: &str,
        members: &[LeavingMember],
    ) -> Result<Vec<Result<(), ResponseError>>, ResponseError> {
        if group_id.is_empty() {
            return Err(ResponseError::InvalidGroupId);
        }
        self.shard(group_id)?
            .run(|groups, now| groups.leave(group_id, members, now))
    }

    /// OffsetCommit, for partitions that exist.
    pub fn commit_offsets(&self, request: &CommitRequest) -> Answer<CommitOutcome> {
        let started = self.shard(&request.group_id).and_then(|shard| {
            shard.run_with_token(|groups, token, now| groups.commit_offsets(request, token, now))
        });
        self.written(started)
    }

    /// OffsetDelete, for partitions that exist.
    pub fn delete_offsets(
        &self,
        group_id: &str,
        partitions: &[(Arc<str>, i32)],
    ) -> Answer<CommitOutcome> {
        if group_id.is_empty() {
            return Answer::Ready(Err(ResponseError::InvalidGroupId));
        }
        let started = self.shard(group_id).and_then(|shard| {
            shard.run_with_token(|groups, token, _| {
                groups.delete_offsets(group_id, partitions, token)
            })
        });
        self.written(started)
    }

    /// DeleteGroups, for one group.
    pub fn delete_group(&self, group_id: &GroupId) -> Answer<Result<(), ResponseError>> {
        let started = self.shard(group_id).and_then(|shard| {
            shard.run_with_token(|groups, token, _| {
                let (results, effects) =
                    groups.delete_groups(std::slice::from_ref(group_id), token);
                (Ok(results), effects)
            })
        });
        self.written(started)
            .map(|outcome| outcome.and_then(|results| results.into_iter().collect()))
    }

    /// The results of a request once its records are committed.
    fn written(
        &self,
        started: Result<(CommitOutcome, oneshot::Receiver<GroupReply>), ResponseError>,
    ) -> Answer<CommitOutcome> {
        let (outcome, waiting) = match started {
            Err(error) | Ok((Err(error), _)) => return Answer::Ready(Err(error)),
            Ok((Ok(results), waiting)) => (results, waiting),
        };
        let timeout_ms = u64::try_from(self.config.offset_commit_timeout_ms).unwrap_or(0);
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        let finish = move |reply| match reply {
            Some(GroupReply::Written(Ok(()))) => Ok(outcome),
            Some(GroupReply::Written(Err(error))) => Err(error),
            _ => Err(ResponseError::NotCoordinator),
        };
        match answer(waiting, finish) {
            Answer::Ready(outcome) => Answer::Ready(outcome),
            Answer::Parked(later) => Answer::Parked(
                async move {
                    let outcome = tokio::time::timeout_at(deadline, later).await;
                    outcome.unwrap_or(Err(ResponseError::CoordinatorNotAvailable))
                }
                .boxed(),
            ),
        }
    }

    /// Looks at a group's committed offsets; `None` if there is no such group.
    pub fn with_offsets<R>(
        &self,
        group_id: &str,
        look: impl FnOnce(Option<&TopicOffsets>) -> R,
    ) -> Result<R, ResponseError> {
        self.shard(group_id)?
            .read(|groups| look(groups.group(group_id).map(Group::offsets)))
    }

    /// DescribeGroups, for one group; `None` if there is no such group.
    pub fn describe(&self, group_id: &str) -> Result<Option<GroupDescription>, ResponseError> {
        self.shard(group_id)?
            .read(|groups| groups.group(group_id).map(Group::describe))
    }

    /// ListGroups.
    pub fn list(&self) -> Result<Vec<ListedGroup>, ResponseError> {
        if self.is_stopped.load(Ordering::Acquire) {
            return Err(ResponseError::CoordinatorNotAvailable);
        }
        let mut listed = Vec::new();
        for shard in self.all_shards() {
            let of_shard = shard.read(|groups| {
                listed.extend(groups.groups().map(|group| ListedGroup {
                    group_id: group.id().clone(),
                    protocol_type: group.protocol_type().cloned().unwrap_or_default(),
                    state: group.state().as_str(),
                }));
            });
            match of_shard {
                Ok(()) | Err(ResponseError::NotCoordinator) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(listed)
    }
}

/// What came, or will come, through `waiting`; nothing if the partition is unloaded first.
fn answer<T: Send + 'static>(
    mut waiting: oneshot::Receiver<GroupReply>,
    finish: impl FnOnce(Option<GroupReply>) -> T + Send + 'static,
) -> Answer<T> {
    match waiting.try_recv() {
        Ok(reply) => Answer::Ready(finish(Some(reply))),
        Err(oneshot::error::TryRecvError::Closed) => Answer::Ready(finish(None)),
        Err(oneshot::error::TryRecvError::Empty) => {
            Answer::Parked(async move { finish(waiting.await.ok()) }.boxed())
        }
    }
}
