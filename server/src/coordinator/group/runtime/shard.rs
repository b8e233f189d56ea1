//! One partition of `__consumer_offsets`: its lock, its timer task, its parked requests and its appends in flight.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use kafka_protocol::ResponseError;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use super::Clock;
use crate::coordinator::group::GroupConfig;
use crate::coordinator::group::offsets_log::{Appended, OffsetsLog, coordinator_error};
use crate::coordinator::group::state::{
    AfterAppend, Append, Effects, GroupReply, GroupShard, Now, ReplyToken,
};

/// A partition that this broker leads.
pub(super) struct Shard {
    partition: i32,
    leader_epoch: i32,
    log: Arc<dyn OffsetsLog>,
    clock: Clock,
    state: Mutex<State>,
    /// An earlier deadline than the timer task sleeps for, or the end.
    wake: Notify,
}

enum State {
    Loading,
    Active(Box<Active>),
    Unloaded(ResponseError),
}

struct Active {
    groups: GroupShard,
    waiting: HashMap<ReplyToken, oneshot::Sender<GroupReply>>,
    next_token: ReplyToken,
    /// Batches that were appended and are not committed yet, in the order of the log.
    uncommitted: VecDeque<Uncommitted>,
    /// What the timer task sleeps for.
    armed_ms: Option<i64>,
    tasks: Handle,
}

struct Uncommitted {
    base_offset: i64,
    then: AfterAppend,
    /// Taken by the task that waits for it.
    commit: Option<BoxFuture<'static, Result<(), ResponseError>>>,
}

impl Shard {
    pub(super) fn new(
        partition: i32,
        leader_epoch: i32,
        log: Arc<dyn OffsetsLog>,
        clock: Clock,
    ) -> Arc<Self> {
        Arc::new(Shard {
            partition,
            leader_epoch,
            log,
            clock,
            state: Mutex::new(State::Loading),
            wake: Notify::new(),
        })
    }

    pub(super) fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// Replays the log and opens the shard for requests.
    pub(super) fn load(self: &Arc<Self>, config: &Arc<GroupConfig>, tasks: &Handle) {
        let mut groups = GroupShard::new(config.clone());
        let mut next_offset = Some(0);
        while let Some(offset) = next_offset {
            let is_wanted = matches!(*self.state.lock(), State::Loading);
            if !is_wanted {
                return;
            }
            match self.log.read(self.partition, offset) {
                Ok(chunk) => {
                    let now = self.clock.now();
                    for (offset, record) in chunk.records {
                        groups.replay(offset, record, now);
                    }
                    next_offset = chunk.next_offset;
                }
                Err(error) => {
                    let partition = self.partition;
                    tracing::error!(partition, %error, "groups of an offsets partition cannot be loaded");
                    self.end(ResponseError::NotCoordinator);
                    return;
                }
            }
        }
        self.activate(groups, tasks);
    }

    fn activate(self: &Arc<Self>, mut groups: GroupShard, tasks: &Handle) {
        let mut state = self.state.lock();
        if !matches!(*state, State::Loading) {
            return;
        }
        let now = self.clock.now();
        let effects = groups.on_loaded(now);
        let count = groups.groups().count();
        if count > 0 {
            let partition = self.partition;
            tracing::info!(
                partition,
                groups = count,
                "loaded groups of an offsets partition"
            );
        }
        let mut active = Active {
            groups,
            waiting: HashMap::new(),
            next_token: 0,
            uncommitted: VecDeque::new(),
            armed_ms: None,
            tasks: tasks.clone(),
        };
        self.carry_out(&mut active, effects, now);
        *state = State::Active(Box::new(active));
        tasks.spawn(self.clone().run_timers());
    }

    /// Answers whoever waits and refuses whoever comes.
    pub(super) fn unload(&self) {
        self.end(ResponseError::NotCoordinator);
    }

    fn end(&self, error: ResponseError) {
        let old = std::mem::replace(&mut *self.state.lock(), State::Unloaded(error));
        if let State::Active(mut active) = old {
            let effects = active.groups.unload();
            for (token, reply) in effects.replies {
                answer(&mut active.waiting, token, reply);
            }
        }
        self.wake.notify_one();
    }

    /// Looks at the groups.
    pub(super) fn read<R>(&self, look: impl FnOnce(&GroupShard) -> R) -> Result<R, ResponseError> {
        match &*self.state.lock() {
            State::Active(active) => Ok(look(&active.groups)),
            State::Loading => Err(ResponseError::CoordinatorLoadInProgress),
            State::Unloaded(error) => Err(*error),
        }
    }

    /// Runs an operation and carries out its effects.
    pub(super) fn run<R>(
        self: &Arc<Self>,
        operation: impl FnOnce(&mut GroupShard, Now) -> (R, Effects),
    ) -> Result<R, ResponseError> {
        let mut state = self.state.lock();
        let active = state.active()?;
        let now = self.clock.now();
        let (result, effects) = operation(&mut active.groups, now);
        self.carry_out(active, effects, now);
        self.wake_timers(active);
        Ok(result)
    }

    /// Runs an operation that is answered through the returned channel, now or later.
    pub(super) fn run_with_token<R>(
        self: &Arc<Self>,
        operation: impl FnOnce(&mut GroupShard, ReplyToken, Now) -> (R, Effects),
    ) -> Result<(R, oneshot::Receiver<GroupReply>), ResponseError> {
        let mut state = self.state.lock();
        let active = state.active()?;
        let now = self.clock.now();
        let token = active.next_token;
        active.next_token += 1;
        let (sender, receiver) = oneshot::channel();
        active.waiting.insert(token, sender);
        let (result, effects) = operation(&mut active.groups, token, now);
        self.carry_out(active, effects, now);
        self.wake_timers(active);
        Ok((result, receiver))
    }

    /// Sends answers and appends records, and whatever follows from these.
    fn carry_out(self: &Arc<Self>, active: &mut Active, effects: Effects, now: Now) {
        let mut to_do = VecDeque::from([effects]);
        while let Some(effects) = to_do.pop_front() {
            for (token, reply) in effects.replies {
                answer(&mut active.waiting, token, reply);
            }
            for append in effects.appends {
                to_do.extend(self.append(active, append, now));
            }
        }
    }

    /// Appends a batch; its consequences come back if they are known already.
    fn append(self: &Arc<Self>, active: &mut Active, append: Append, now: Now) -> Option<Effects> {
        let Append { records, then } = append;
        let appended = self
            .log
            .append(self.partition, self.leader_epoch, &records, now.wall_ms);
        let Appended {
            base_offset,
            commit,
        } = match appended {
            Ok(appended) => appended,
            Err(error) => {
                let partition = self.partition;
                tracing::warn!(partition, %error, "append to an offsets partition failed");
                let error = coordinator_error(error);
                return Some(active.groups.on_appended(then, Err(error), now));
            }
        };
        let is_first = active.uncommitted.is_empty();
        if commit.is_none() && is_first {
            return Some(active.groups.on_appended(then, Ok(base_offset), now));
        }
        active.uncommitted.push_back(Uncommitted {
            base_offset,
            then,
            commit: Some(commit.unwrap_or_else(|| std::future::ready(Ok(())).boxed())),
        });
        if is_first {
            active.tasks.spawn(self.clone().wait_for_commits());
        }
        None
    }

    /// Waits for one batch after the other, so that they take effect in the order of the log.
    async fn wait_for_commits(self: Arc<Self>) {
        loop {
            let commit = {
                let mut state = self.state.lock();
                let Ok(active) = state.active() else {
                    return;
                };
                active
                    .uncommitted
                    .front_mut()
                    .and_then(|batch| batch.commit.take())
            };
            let Some(commit) = commit else {
                return;
            };
            let committed = commit.await;
            let mut state = self.state.lock();
            let Ok(active) = state.active() else {
                return;
            };
            let Some(batch) = active.uncommitted.pop_front() else {
                return;
            };
            let now = self.clock.now();
            let result = committed
                .map(|()| batch.base_offset)
                .map_err(coordinator_error);
            let effects = active.groups.on_appended(batch.then, result, now);
            // Appends made here join the queue; this task goes on with them.
            let was_empty = active.uncommitted.is_empty();
            self.carry_out(active, effects, now);
            self.wake_timers(active);
            if was_empty {
                // If something was appended, `append` began a task of its own for it.
                return;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn waiting_requests(&self) -> usize {
        match &*self.state.lock() {
            State::Active(active) => active.waiting.len(),
            State::Loading | State::Unloaded(_) => 0,
        }
    }

    fn wake_timers(&self, active: &Active) {
        let next_ms = active.groups.next_deadline_ms();
        let is_earlier = match (next_ms, active.armed_ms) {
            (Some(next_ms), Some(armed_ms)) => next_ms < armed_ms,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if is_earlier {
            self.wake.notify_one();
        }
    }

    /// Sleeps until the next deadline, runs what is due, and so on until the shard is unloaded.
    async fn run_timers(self: Arc<Self>) {
        loop {
            let deadline_ms = {
                let mut state = self.state.lock();
                let Ok(active) = state.active() else {
                    return;
                };
                let now = self.clock.now();
                let effects = active.groups.on_time(now);
                self.carry_out(active, effects, now);
                active.armed_ms = active.groups.next_deadline_ms();
                active.armed_ms
            };
            match deadline_ms {
                Some(deadline_ms) => {
                    let deadline = self.clock.instant(deadline_ms);
                    tokio::select! {
                        () = tokio::time::sleep_until(deadline) => {}
                        () = self.wake.notified() => {}
                    }
                }
                None => self.wake.notified().await,
            }
        }
    }
}

impl State {
    fn active(&mut self) -> Result<&mut Active, ResponseError> {
        match self {
            State::Active(active) => Ok(active),
            State::Loading => Err(ResponseError::CoordinatorLoadInProgress),
            State::Unloaded(error) => Err(*error),
        }
    }
}

fn answer(
    waiting: &mut HashMap<ReplyToken, oneshot::Sender<GroupReply>>,
    token: ReplyToken,
    reply: GroupReply,
) {
    if let Some(sender) = waiting.remove(&token) {
        // A client that is gone does not matter to its group.
        let _ = sender.send(reply);
    }
}
