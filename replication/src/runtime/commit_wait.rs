//! The second half of an `acks=all` produce: waiting until it is committed.

use std::sync::Arc;

use highwater_storage::{LeaderEpoch, TopicPartition};
use tokio::sync::Notify;

use super::error::PartitionError;
use super::offset_watch::Registration;
use super::partition::Partition;
use crate::state::commit::CommitStatus;

/// Waits until the high watermark of a partition covers an append.
#[derive(Debug)]
pub struct CommitWait {
    partition: Arc<Partition>,
    led_since: LeaderEpoch,
    required_offset: i64,
    notify: Arc<Notify>,
    _registration: Registration,
}

impl CommitWait {
    /// Waits for `required_offset`, the last offset of the append plus one, within the leadership
    /// that began in epoch `led_since`.
    #[must_use]
    pub fn new(partition: Arc<Partition>, led_since: LeaderEpoch, required_offset: i64) -> Self {
        let notify = Arc::new(Notify::new());
        let watch = partition.high_watermark_watch();
        let registration = watch.register(required_offset, Arc::clone(&notify));
        Self {
            partition,
            led_since,
            required_offset,
            notify,
            _registration: registration,
        }
    }

    /// The partition that was appended to.
    pub fn topic_partition(&self) -> &TopicPartition {
        self.partition.topic_partition()
    }

    /// Completes when the append is committed. The caller sets the time limit.
    ///
    /// # Errors
    /// The leadership was lost, or the in-sync replicas became too few after the append; the
    /// records stay in the log.
    pub async fn committed(&self) -> Result<(), PartitionError> {
        loop {
            let (led_since, required_offset) = (self.led_since, self.required_offset);
            match self.partition.commit_status(led_since, required_offset)? {
                CommitStatus::Committed => return Ok(()),
                CommitStatus::NotEnoughReplicasAfterAppend => {
                    return Err(PartitionError::NotEnoughReplicasAfterAppend);
                }
                CommitStatus::Waiting => self.notify.notified().await,
            }
        }
    }
}
