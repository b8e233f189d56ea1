//! What really happened, as only somebody knows who sees all of the cluster: what is committed, what was promised to
//! producers and shown to consumers.

use std::collections::BTreeMap;

use highwater_replication::state::commit::Acks;
use highwater_storage::{BrokerId, LeaderEpoch};

use super::log::{Record, ReplicaLog};

/// Stands for a record that nobody has any more: it is before the start of the leader's log.
const DELETED: Record = Record {
    epoch: LeaderEpoch(-1),
    value: 0,
};

/// What a producer was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It succeeded; the records begin at this offset.
    Ok(i64),
    /// Refused, and nothing was written.
    Refused(&'static str),
    /// It failed after the append: the records may be there or not.
    Unknown(&'static str),
}

/// A produce of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Produce {
    pub(crate) acks: Acks,
    pub(crate) broker: BrokerId,
    /// `None` while it waits, or when the broker ended before it could answer.
    pub(crate) answer: Option<Answer>,
    /// Whether the broker that knew of it is gone.
    pub(crate) is_orphan: bool,
    /// When it is to be answered at the latest.
    pub(crate) deadline_ms: i64,
}

/// The truth about the partition.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// All that is committed, from offset 0 on. Its length is the true high watermark: the highest that any leader
    /// ever had. Only an unclean election takes something away.
    pub(crate) committed: Vec<Record>,
    /// Produces, by the value of their record.
    pub(crate) produced: BTreeMap<u32, Produce>,
    /// Offsets and records that were promised to a producer with acks=all.
    pub(crate) acked: BTreeMap<i64, Record>,
    /// Offsets and records that a consumer has read.
    pub(crate) consumed: BTreeMap<i64, Record>,
    /// The leader epoch of the last unclean election. What leaders of older epochs believe since does not count.
    pub(crate) unclean_epoch: Option<LeaderEpoch>,
    /// How many unclean elections there were.
    pub(crate) unclean_elections: usize,
    /// Whether the leader of an unclean election has not begun to lead yet, so that nobody knows what is lost.
    pub(crate) is_loss_open: bool,
    /// Who leads in each leader epoch, and who appended in it.
    leaders: BTreeMap<LeaderEpoch, BrokerId>,
    writers: BTreeMap<LeaderEpoch, BrokerId>,
    /// What must never be, seen at the moment when it happened.
    pub(crate) violations: Vec<String>,
}

impl History {
    /// The highest high watermark that any leader ever had.
    pub(crate) fn true_high_watermark(&self) -> i64 {
        self.committed.len() as i64
    }

    /// Whether an unclean election has made what this leader believes void.
    pub(crate) fn is_void(&self, leader_epoch: LeaderEpoch) -> bool {
        self.unclean_epoch
            .is_some_and(|unclean_epoch| leader_epoch < unclean_epoch)
    }

    /// A leader moves its high watermark: what is below is committed.
    pub(crate) fn on_leader_high_watermark(
        &mut self,
        broker: BrokerId,
        leader_epoch: LeaderEpoch,
        log: &ReplicaLog,
        from: i64,
    ) {
        if self.is_void(leader_epoch) {
            return;
        }
        let to = log.high_watermark();
        for offset in from.max(log.start_offset())..to {
            let Some(record) = log.get(offset) else {
                self.violations.push(format!(
                    "broker {broker} says that {offset} is committed, but does not have it"
                ));
                return;
            };
            match self.committed.get(offset as usize) {
                Some(committed) if *committed == record => {}
                Some(committed) => self.violations.push(format!(
                    "broker {broker} says in leader epoch {leader_epoch} that {record:?} at {offset} is committed, but \
                     that is {committed:?}"
                )),
                None if offset == self.true_high_watermark() => self.committed.push(record),
                None => self.violations.push(format!(
                    "broker {broker} says that {offset} is committed, before {}",
                    self.true_high_watermark()
                )),
            }
        }
    }

    /// A consumer has read a record.
    pub(crate) fn on_consumed(&mut self, broker: BrokerId, offset: i64, record: Record) {
        match self.consumed.insert(offset, record) {
            Some(before) if before != record => self.violations.push(format!(
                "a consumer read {record:?} at {offset} on broker {broker}, where {before:?} was read before"
            )),
            _ => {}
        }
    }

    /// A leader has appended a record for a producer.
    pub(crate) fn on_appended(&mut self, broker: BrokerId, leader_epoch: LeaderEpoch) {
        let writer = *self.writers.entry(leader_epoch).or_insert(broker);
        if writer != broker {
            self.violations.push(format!(
                "brokers {writer} and {broker} both append in leader epoch {leader_epoch}"
            ));
        }
    }

    /// A producer was promised that its record is committed.
    pub(crate) fn on_acked(&mut self, leader_epoch: LeaderEpoch, offset: i64, record: Record) {
        if !self.is_void(leader_epoch) {
            self.acked.insert(offset, record);
        }
    }

    /// A producer was told something.
    pub(crate) fn on_answer(&mut self, value: u32, answer: Answer) {
        let Some(produce) = self.produced.get_mut(&value) else {
            return;
        };
        if let Some(before) = produce.answer.replace(answer) {
            self.violations.push(format!(
                "m{value} was answered twice: {before:?}, {answer:?}"
            ));
        }
    }

    /// The broker that would have answered a produce is gone.
    pub(crate) fn on_orphan(&mut self, value: u32) {
        if let Some(produce) = self.produced.get_mut(&value) {
            produce.is_orphan = true;
        }
    }

    /// A replica that may lack committed records was elected, as the rules allow.
    pub(crate) fn on_unclean_election(&mut self, leader_epoch: LeaderEpoch) {
        self.unclean_epoch = Some(leader_epoch);
        self.unclean_elections += 1;
        self.is_loss_open = true;
    }

    /// A broker begins to lead. After an unclean election, what it lacks is lost.
    pub(crate) fn on_begin_to_lead(
        &mut self,
        broker: BrokerId,
        leader_epoch: LeaderEpoch,
        log: &ReplicaLog,
    ) {
        match self.leaders.insert(leader_epoch, broker) {
            Some(before) if before != broker => self.violations.push(format!(
                "brokers {before} and {broker} both lead in leader epoch {leader_epoch}"
            )),
            _ => {}
        }
        if !self.is_loss_open || self.is_void(leader_epoch) {
            return;
        }
        self.is_loss_open = false;
        let is_kept = |offset: i64, record: &Record| {
            offset < log.start_offset() || log.get(offset) == Some(*record)
        };
        let mut kept = 0;
        for record in &self.committed {
            if !is_kept(kept, record) {
                break;
            }
            kept += 1;
        }
        self.committed.truncate(kept as usize);
        // What it has below its high watermark counts again, if an unclean leader before it lacked that.
        for offset in kept..log.high_watermark() {
            self.committed.push(log.get(offset).unwrap_or(DELETED));
        }
        self.acked.retain(|offset, _| *offset < kept);
        self.consumed.retain(|offset, _| *offset < kept);
    }
}
