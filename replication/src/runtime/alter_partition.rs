//! Asking the controller for other in-sync replicas: at most one request is in flight, and it
//! carries everything that waits.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use highwater_storage::TopicId;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::Notify;

use super::BoxFuture;
use super::partition::Partition;
use crate::state::alter_partition::{AlterPartitionError, AlteredPartition};
use crate::state::isr::IsrProposal;

/// How long to wait before what failed is sent again.
const RETRY_BACKOFF: Duration = Duration::from_millis(50);
/// Kafka's code of UNKNOWN_SERVER_ERROR, for a partition that an answer leaves out.
const UNKNOWN_SERVER_ERROR: i16 = -1;

/// A proposal for one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterPartition {
    /// The id of the partition's topic.
    pub topic_id: TopicId,
    /// The partition's number.
    pub partition: i32,
    /// What its leader asks for. The leader recovery state is always RECOVERED.
    pub proposal: IsrProposal,
}

/// The controller's answer for one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlteredPartitionResponse {
    /// The id of the partition's topic.
    pub topic_id: TopicId,
    /// The partition's number.
    pub partition: i32,
    /// The partition as it is now, or why nothing changed.
    pub result: Result<AlteredPartition, AlterPartitionError>,
}

/// Why the controller gave no answer: not active, not reachable, or it refuses the whole request
/// (NOT_CONTROLLER, STALE_BROKER_EPOCH, …). All proposals are sent again a little later.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct AlterPartitionChannelError(pub String);

/// The way to the active controller.
///
/// The implementation adds this broker's id and the epoch of its present run.
pub trait AlterPartitionChannel: Send + Sync + fmt::Debug {
    /// Sends one AlterPartition request (v2 or later). At most one is in flight.
    ///
    /// # Errors
    /// When the request as a whole failed.
    fn alter_partitions(
        &self,
        partitions: Vec<AlterPartition>,
    ) -> BoxFuture<'_, Result<Vec<AlteredPartitionResponse>, AlterPartitionChannelError>>;
}

type Key = (TopicId, i32);

/// Proposals that wait for the controller: the latest one of each partition.
#[derive(Debug, Default)]
pub struct AlterPartitionQueue {
    waiting: Mutex<BTreeMap<Key, Waiting>>,
    notify: Notify,
}

#[derive(Debug)]
struct Waiting {
    partition: Arc<Partition>,
    proposal: IsrProposal,
}

impl AlterPartitionQueue {
    /// Queues a proposal. It takes the place of an older one of the partition, whose answer would
    /// be ignored.
    pub fn submit(&self, partition: Arc<Partition>, proposal: IsrProposal) {
        let waiting = Waiting {
            partition,
            proposal,
        };
        self.waiting.lock().insert(waiting.key(), waiting);
        self.notify.notify_one();
    }

    /// How many partitions wait to have their proposal sent.
    pub fn len(&self) -> usize {
        self.waiting.lock().len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The proposal of a partition that waits to be sent.
    pub fn latest(&self, partition: &Partition) -> Option<IsrProposal> {
        let key = (partition.topic_id(), partition.topic_partition().partition);
        let waiting = self.waiting.lock();
        waiting.get(&key).map(|waiting| waiting.proposal.clone())
    }

    /// Sends what is queued, for ever; what fails is sent again. Ends when it is dropped.
    pub async fn run(&self, channel: Arc<dyn AlterPartitionChannel>) {
        let mut failures: u64 = 0;
        loop {
            let batch = std::mem::take(&mut *self.waiting.lock());
            if batch.is_empty() {
                self.notify.notified().await;
                continue;
            }
            let request = batch.values().map(Waiting::to_request).collect();
            match channel.alter_partitions(request).await {
                Ok(answers) => {
                    failures = 0;
                    if self.on_answers(batch, answers) {
                        tokio::time::sleep(RETRY_BACKOFF).await;
                    }
                }
                Err(error) => {
                    failures += 1;
                    let partitions = batch.len();
                    if failures == 1 {
                        tracing::warn!(%error, partitions, "the controller does not answer a change of in-sync replicas, trying again");
                    } else {
                        tracing::debug!(%error, partitions, failures, "the controller does not answer a change of in-sync replicas");
                    }
                    self.put_back(batch.into_values());
                    tokio::time::sleep(RETRY_BACKOFF).await;
                }
            }
        }
    }

    /// Tells the partitions; gives whether some proposals are to be sent again.
    fn on_answers(
        &self,
        mut batch: BTreeMap<Key, Waiting>,
        answers: Vec<AlteredPartitionResponse>,
    ) -> bool {
        let mut again = Vec::new();
        let mut tell = |waiting: Waiting, result| {
            let Waiting {
                partition,
                proposal,
            } = waiting;
            if let Some(proposal) = partition.on_alter_partition_reply(&proposal, result) {
                again.push(Waiting {
                    partition,
                    proposal,
                });
            }
        };
        for answer in answers {
            if let Some(waiting) = batch.remove(&(answer.topic_id, answer.partition)) {
                tell(waiting, answer.result);
            }
        }
        for waiting in batch.into_values() {
            tell(
                waiting,
                Err(AlterPartitionError::Other(UNKNOWN_SERVER_ERROR)),
            );
        }
        let is_any = !again.is_empty();
        self.put_back(again);
        is_any
    }

    /// Queues proposals again, unless newer ones of their partitions wait by now.
    fn put_back(&self, proposals: impl IntoIterator<Item = Waiting>) {
        let mut queue = self.waiting.lock();
        for waiting in proposals {
            queue.entry(waiting.key()).or_insert(waiting);
        }
    }
}

impl Waiting {
    fn key(&self) -> Key {
        let topic_partition = self.partition.topic_partition();
        (self.partition.topic_id(), topic_partition.partition)
    }

    fn to_request(&self) -> AlterPartition {
        let (topic_id, partition) = self.key();
        AlterPartition {
            topic_id,
            partition,
            proposal: self.proposal.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
