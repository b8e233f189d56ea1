//! One partition on this broker: its log, who leads it, and who waits for it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use highwater_storage::{
    AppendInfo, AppendOrigin, BrokerId, LeaderEpoch, Log, LogConfig, TopicId, TopicPartition,
};
use parking_lot::Mutex;

use super::commit_wait::CommitWait;
use super::error::PartitionError;
use super::offset_watch::OffsetWatch;
use crate::state::commit::{Acks, CommitStatus, admit_append, commit_status, effective_min_isr};
use crate::state::fencing::check_leader_epoch;
use crate::state::high_watermark::{HighWatermarkInput, next_high_watermark};
pub use crate::state::leadership::Leadership;

/// One partition that this broker hosts.
///
/// Appends and changes of leadership take `role_lock`; reads take no lock at all.
#[derive(Debug)]
pub struct Partition {
    topic_partition: TopicPartition,
    topic_id: TopicId,
    local_broker: BrokerId,
    log: Arc<Log>,
    leadership: ArcSwap<Leadership>,
    role_lock: Mutex<()>,
    high_watermark_watch: Arc<OffsetWatch>,
}

/// What an append did.
#[derive(Debug)]
pub struct Appended {
    /// Offsets and times, as the log gave them.
    pub info: AppendInfo,
    /// For `acks=all` that is not committed yet: completes when it is, or fails.
    pub commit: Option<CommitWait>,
}

impl Partition {
    /// A partition over an opened log. Call [`become_as`](Self::become_as) next.
    #[must_use]
    pub fn new(
        topic_partition: TopicPartition,
        topic_id: TopicId,
        local_broker: BrokerId,
        log: Arc<Log>,
        leadership: Leadership,
    ) -> Self {
        Self {
            topic_partition,
            topic_id,
            local_broker,
            log,
            leadership: ArcSwap::from_pointee(leadership),
            role_lock: Mutex::new(()),
            high_watermark_watch: Arc::default(),
        }
    }

    /// Its topic and index.
    pub fn topic_partition(&self) -> &TopicPartition {
        &self.topic_partition
    }

    /// The id of its topic.
    pub fn topic_id(&self) -> TopicId {
        self.topic_id
    }

    /// Its log.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Who leads it, as of now.
    pub fn leadership(&self) -> Arc<Leadership> {
        self.leadership.load_full()
    }

    /// The current leader epoch.
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leadership.load().leader_epoch
    }

    /// Where readers up to the high watermark wait.
    pub fn high_watermark_watch(&self) -> &Arc<OffsetWatch> {
        &self.high_watermark_watch
    }

    /// Takes the role that the metadata gives. A state with an older partition epoch is ignored.
    ///
    /// # Errors
    /// When the start of a new leader epoch cannot be written.
    pub fn become_as(&self, next: Leadership) -> Result<(), PartitionError> {
        {
            let _role = self.role_lock.lock();
            let current = self.leadership.load();
            if next.partition_epoch < current.partition_epoch {
                return Ok(());
            }
            let leads = next.leader == Some(self.local_broker);
            if leads && self.log.latest_epoch() < Some(next.leader_epoch) {
                // Even if nothing is ever written in this epoch: followers with records of dead
                // epochs find where to truncate by it (KIP-101, KIP-279).
                self.log
                    .assign_epoch_start(next.leader_epoch, self.log.log_end_offset())?;
            }
            self.leadership.store(Arc::new(next));
            if leads {
                self.advance_high_watermark(&self.leadership.load());
            }
        }
        self.high_watermark_watch.wake_all();
        Ok(())
    }

    /// Gives up every role: the topic was deleted, or the broker stops. Parked requests look again
    /// and find that this broker does not lead.
    pub fn resign(&self) {
        {
            let _role = self.role_lock.lock();
            let current = self.leadership.load();
            self.leadership.store(Arc::new(Leadership {
                leader: None,
                ..Leadership::clone(&current)
            }));
        }
        self.high_watermark_watch.wake_all();
    }

    /// Gives the log a new configuration. A lower `min.insync.replicas` may move the high
    /// watermark at once, and parked requests look again.
    pub fn set_log_config(&self, config: LogConfig) {
        {
            let _role = self.role_lock.lock();
            self.log.set_config(config);
            let leadership = self.leadership.load();
            if self.check_leads(&leadership).is_ok() {
                self.advance_high_watermark(&leadership);
            }
        }
        self.high_watermark_watch.wake_all();
    }

    /// Appends as the leader and moves the high watermark if it may move.
    ///
    /// # Errors
    /// Not the leader; too few in-sync replicas for `acks=all`; whatever the log refuses. Nothing
    /// is written then.
    pub fn append_as_leader(
        self: &Arc<Self>,
        records: &Bytes,
        acks: Acks,
        origin: AppendOrigin,
        now_ms: i64,
    ) -> Result<Appended, PartitionError> {
        let (info, high_watermark) = {
            let _role = self.role_lock.lock();
            let leadership = self.leadership.load();
            self.check_leads(&leadership)?;
            let min_isr = self.effective_min_isr(&leadership);
            if !admit_append(acks, leadership.isr.len(), min_isr) {
                let isr = leadership.isr.len();
                return Err(PartitionError::NotEnoughReplicas { isr, min_isr });
            }
            let info =
                self.log
                    .append_as_leader(records, leadership.leader_epoch, origin, now_ms)?;
            (info, self.advance_high_watermark(&leadership))
        };
        if let Some(high_watermark) = high_watermark {
            self.high_watermark_watch.advance(high_watermark);
        }
        let required_offset = info.last_offset + 1;
        let commit = (acks == Acks::All && self.log.high_watermark() < required_offset)
            .then(|| CommitWait::new(Arc::clone(self), required_offset));
        Ok(Appended { info, commit })
    }

    /// Where an `acks=all` produce that ends before `required_offset` stands.
    ///
    /// # Errors
    /// When this broker does not lead the partition any more.
    pub fn commit_status(&self, required_offset: i64) -> Result<CommitStatus, PartitionError> {
        let leadership = self.leadership.load();
        self.check_leads(&leadership)?;
        let min_isr = self.effective_min_isr(&leadership);
        let high_watermark = self.log.high_watermark();
        Ok(commit_status(
            high_watermark,
            required_offset,
            leadership.isr.len(),
            min_isr,
        ))
    }

    /// Judges the leader epoch that a request names, and that this broker leads.
    ///
    /// # Errors
    /// [`PartitionError::Fenced`] or [`PartitionError::NotLeader`].
    pub fn check_leader(&self, requested_epoch: Option<LeaderEpoch>) -> Result<(), PartitionError> {
        let leadership = self.leadership.load();
        check_leader_epoch(leadership.leader_epoch, requested_epoch)?;
        self.check_leads(&leadership)
    }

    fn check_leads(&self, leadership: &Leadership) -> Result<(), PartitionError> {
        if leadership.leader == Some(self.local_broker) {
            return Ok(());
        }
        let Leadership {
            leader,
            leader_epoch,
            ..
        } = *leadership;
        Err(PartitionError::NotLeader {
            leader,
            leader_epoch,
        })
    }

    fn effective_min_isr(&self, leadership: &Leadership) -> usize {
        let configured = self.log.config().min_insync_replicas;
        effective_min_isr(
            usize::try_from(configured).unwrap_or(1),
            leadership.replicas.len(),
        )
    }

    /// Moves the high watermark if the rule says so. Called with the role lock held.
    fn advance_high_watermark(&self, leadership: &Leadership) -> Option<i64> {
        let input = HighWatermarkInput {
            high_watermark: self.log.high_watermark(),
            log_end_offset: self.log.log_end_offset(),
            committed_isr: leadership.isr.len(),
            effective_min_isr: self.effective_min_isr(leadership),
        };
        // Log end offsets of other in-sync replicas are not known without replica fetchers: -1.
        let others = leadership
            .isr
            .iter()
            .filter(|broker| **broker != self.local_broker);
        let next = next_high_watermark(input, others.map(|_| (-1, || true)))?;
        self.log.set_high_watermark(next);
        Some(next)
    }
}
