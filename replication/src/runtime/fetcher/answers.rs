//! Carrying out what a leader answered, partition by partition.

use std::sync::Arc;

use highwater_storage::{LeaderEpoch, StorageError};

use super::followed::key_of;
use super::session::Key;
use super::task::{Fetcher, blocking};
use crate::runtime::context::time_of_day_ms;
use crate::runtime::leader_endpoint::{
    FetchedPartition, FetchedRecords, LeaderEndpointError, ReplicaOffset, TopicIdPartition,
};
use crate::runtime::partition::{FollowError, Partition};
use crate::state::follower::{
    FetchAnswer, FetchPosition, FollowerState, FollowerStep, LeaderError, LogEndStep, LogStartStep,
};
use crate::state::truncation::truncation;

/// After so many bytes others get their turn on this thread.
const BYTES_BETWEEN_YIELDS: usize = 1 << 20;

/// A partition that an answer is for, as it was when the answer came.
struct Answered {
    key: Key,
    partition: Arc<Partition>,
    state: FollowerState,
    sent: FetchPosition,
}

impl Fetcher {
    /// Carries out all answers of a response.
    pub(super) async fn on_answers(&mut self, answers: Vec<FetchedPartition>) {
        let mut unyielded = 0;
        for answer in answers {
            let key = (answer.topic_id, answer.partition);
            let Some(sent) = self.session.sent(&key) else {
                continue;
            };
            let Some((partition, state)) = self.followed.get(&key) else {
                continue;
            };
            let answered = Answered {
                key,
                partition,
                state,
                sent,
            };
            unyielded += self.on_answer(answered, answer.answer).await;
            if unyielded >= BYTES_BETWEEN_YIELDS {
                unyielded = 0;
                tokio::task::yield_now().await;
            }
        }
    }

    /// Carries out an answer; gives how much was appended, in bytes.
    async fn on_answer(
        &self,
        answered: Answered,
        answer: Result<FetchedRecords, LeaderError>,
    ) -> usize {
        let log = Arc::clone(answered.partition.log());
        let told = match &answer {
            Err(error) => FetchAnswer::Error(*error),
            Ok(FetchedRecords {
                diverging_epoch: Some(end),
                ..
            }) => FetchAnswer::Diverging(*end),
            Ok(fetched) => FetchAnswer::Records {
                high_watermark: fetched.high_watermark,
                log_start_offset: fetched.log_start_offset,
            },
        };
        let now_ms = self.context.now_ms();
        let state = &answered.state;
        match state.on_fetch_answer(answered.sent, told, &*log, now_ms) {
            FollowerStep::Drop => {}
            FollowerStep::Append { .. } => {
                if let Ok(fetched) = answer {
                    return self.append(&answered, &fetched);
                }
            }
            FollowerStep::Truncate(cut) => self.truncate(&answered, cut.offset).await,
            FollowerStep::FindOffset => {
                if let Err(error) = self.find_offset(&answered).await {
                    self.on_look_up_error(&answered, &error);
                }
            }
            FollowerStep::BackOff => {
                self.log_refusal(&answered, answer.err());
                self.back_off(&answered);
            }
            FollowerStep::Fail => self.fence(&answered),
        }
        0
    }

    fn append(&self, answered: &Answered, fetched: &FetchedRecords) -> usize {
        let appended = answered.partition.append_as_follower(
            answered.sent,
            &fetched.records,
            fetched.high_watermark,
            fetched.log_start_offset,
            time_of_day_ms(),
        );
        match appended {
            Ok(appended) => {
                self.update(answered, |state| {
                    state.on_appended(
                        appended.log_end_offset,
                        appended.last_epoch,
                        fetched.high_watermark,
                    );
                });
                if appended.size_bytes == 0 && !fetched.records.is_empty() {
                    // Only batches of a leader epoch that this broker is about to hear of.
                    self.back_off(answered);
                }
                appended.size_bytes
            }
            Err(error) => {
                self.on_follow_error(answered, error);
                0
            }
        }
    }

    /// Cuts the log. If there is nothing to cut, the leader would answer the same again.
    async fn truncate(&self, answered: &Answered, offset: i64) {
        let leader_epoch = answered.sent.leader_epoch;
        let cut = blocking(&answered.partition, move |partition| {
            partition.truncate_as_follower(leader_epoch, offset)
        });
        match cut.await {
            Ok(()) => self.go_on_at_log_end(answered),
            Err(error) => self.on_follow_error(answered, error),
        }
    }

    /// The log may have changed: goes on where it ends, but not at once if that is where it was.
    fn go_on_at_log_end(&self, answered: &Answered) {
        let log = answered.partition.log();
        let mut has_moved = false;
        self.update(answered, |state| {
            let before = state.position();
            state.on_log_changed(&**log);
            has_moved = state.position() != before;
        });
        if !has_moved {
            self.back_off(answered);
        }
    }

    /// After OFFSET_OUT_OF_RANGE: finds out where the leader's log begins and ends, and goes on
    /// there.
    async fn find_offset(&self, answered: &Answered) -> Result<(), LookUpError> {
        let partition = &answered.partition;
        let leader_epoch = answered.sent.leader_epoch;
        let log = partition.log();
        let leader_end = self.list_offset(answered, ReplicaOffset::LogEnd).await?;
        let topic_partition = partition.topic_partition();
        let step = answered.state.on_leader_log_end_offset(leader_end, &**log);
        tracing::warn!(%topic_partition, %leader_epoch, fetch_offset = answered.sent.fetch_offset, leader_end, ?step, "the leader does not have the offset");
        if let LogEndStep::TruncateTo(offset) = step {
            self.truncate(answered, offset).await;
            return Ok(());
        }
        let leader_start = self.list_offset(answered, ReplicaOffset::LogStart).await?;
        let step = answered
            .state
            .on_leader_log_start_offset(leader_start, &**log);
        match step {
            LogStartStep::RestartAt(offset) => {
                let restarted = blocking(partition, move |partition| {
                    partition.restart_as_follower(leader_epoch, offset)
                });
                match restarted.await {
                    Ok(()) => self.go_on_at_log_end(answered),
                    Err(error) => self.on_follow_error(answered, error),
                }
            }
            LogStartStep::FindEpochEnd(epoch) => {
                let asked = self.endpoint.end_offset_for_epoch(
                    topic_id_partition(partition),
                    leader_epoch,
                    epoch,
                );
                let end = asked.await??;
                let cut = truncation(end, &**log);
                self.truncate(answered, cut.offset).await;
            }
            LogStartStep::FetchAgain => self.back_off(answered),
        }
        Ok(())
    }

    async fn list_offset(
        &self,
        answered: &Answered,
        which: ReplicaOffset,
    ) -> Result<i64, LookUpError> {
        let partition = topic_id_partition(&answered.partition);
        let leader_epoch = answered.sent.leader_epoch;
        let asked = self.endpoint.list_offset(partition, leader_epoch, which);
        Ok(asked.await??)
    }

    fn on_look_up_error(&self, answered: &Answered, error: &LookUpError) {
        let topic_partition = answered.partition.topic_partition();
        tracing::warn!(%topic_partition, %error, "the leader does not tell its offsets");
        match error {
            LookUpError::Leader(error) if answered.state.on_error(*error) == FollowerStep::Fail => {
                self.fence(answered);
            }
            LookUpError::Leader(_) | LookUpError::Endpoint(_) => self.back_off(answered),
        }
    }

    fn on_follow_error(&self, answered: &Answered, error: FollowError) {
        let topic_partition = answered.partition.topic_partition();
        let leader = self.leader;
        match error {
            // Its role changed, or it is being deleted; or its log is not where it was thought.
            FollowError::Stale | FollowError::Storage(StorageError::Closed(_)) => {
                self.go_on_at_log_end(answered);
            }
            FollowError::Corrupt(reason) => {
                tracing::error!(%topic_partition, %leader, fetch_offset = answered.sent.fetch_offset, reason, "dropping what the leader sent, and fetching it again");
                self.go_on_at_log_end(answered);
                self.back_off(answered);
            }
            FollowError::Storage(error @ StorageError::Io { .. }) if !error.is_disk_failure() => {
                tracing::error!(%topic_partition, %error, "cannot follow for now, trying again");
                self.go_on_at_log_end(answered);
                self.back_off(answered);
            }
            error @ (FollowError::Storage(_) | FollowError::Unexpected(_)) => {
                self.fail(&answered.partition, error);
            }
        }
    }

    /// The leader epoch is over, and the metadata will say which one follows.
    fn fence(&self, answered: &Answered) {
        let topic_partition = answered.partition.topic_partition();
        let leader_epoch = answered.sent.leader_epoch;
        tracing::info!(%topic_partition, leader = %self.leader, %leader_epoch, "the leader knows a newer leader epoch, waiting for the metadata");
        self.update(answered, FollowerState::on_failed);
    }

    fn back_off(&self, answered: &Answered) {
        let backoff_ms = self.context.settings().replica_fetch_backoff_ms;
        let until_ms = self.context.now_ms().saturating_add(backoff_ms);
        self.update(answered, |state| state.on_back_off(until_ms));
    }

    fn log_refusal(&self, answered: &Answered, error: Option<LeaderError>) {
        let Some(error) = error else { return };
        let topic_partition = answered.partition.topic_partition();
        let (leader, leader_epoch) = (self.leader, answered.sent.leader_epoch);
        if matches!(error, LeaderError::Other(_)) {
            tracing::warn!(%topic_partition, %leader, %leader_epoch, %error, "the leader refuses a fetch");
        } else {
            tracing::debug!(%topic_partition, %leader, %leader_epoch, %error, "the leader refuses a fetch");
        }
    }

    fn update(&self, answered: &Answered, change: impl FnOnce(&mut FollowerState)) {
        let leader_epoch: LeaderEpoch = answered.sent.leader_epoch;
        self.followed.update(&answered.key, leader_epoch, change);
    }
}

/// Why a leader's offsets are not known.
#[derive(Debug, thiserror::Error)]
enum LookUpError {
    #[error(transparent)]
    Endpoint(#[from] LeaderEndpointError),
    #[error(transparent)]
    Leader(#[from] LeaderError),
}

fn topic_id_partition(partition: &Partition) -> TopicIdPartition {
    let (topic_id, _) = key_of(partition);
    TopicIdPartition {
        topic_id,
        topic_partition: partition.topic_partition().clone(),
    }
}
