//! A broker that serves clients: produces, and reads up to the high watermark.

use highwater_replication::state::commit::{self, Acks, CommitStatus};
use highwater_replication::state::leader::LeaderState;

use super::around::Around;
use super::broker::{Broker, Parked, acks_name};
use super::history::{Answer, Produce};
use super::leading::ask_leader;
use super::log::Record;
use super::rules::Rule;

impl Broker {
    /// A producer sends one record here. Gives whether anybody listens.
    pub(crate) fn produce(&mut self, value: u32, acks: Acks, around: &mut Around<'_>) -> bool {
        let id = self.id;
        if self.run.as_ref().is_none_or(|run| !run.serves_clients) {
            return false;
        }
        let deadline_ms = around.now_ms + around.setup.produce_timeout_ms;
        around.history.produced.insert(
            value,
            Produce {
                acks,
                broker: id,
                answer: None,
                is_orphan: false,
                deadline_ms,
            },
        );
        let answer = |answer: Answer, around: &mut Around<'_>| {
            around.history.on_answer(value, answer);
            around.notes.add(|| match answer {
                Answer::Ok(offset) => {
                    format!("m{value}: acks={} promised at {offset}", acks_name(acks))
                }
                Answer::Refused(error) => format!("m{value}: {error}, nothing written"),
                Answer::Unknown(error) => format!("m{value}: {error}"),
            });
        };
        let Some(leader) = self.leading() else {
            answer(Answer::Refused("NOT_LEADER_OR_FOLLOWER"), around);
            return true;
        };
        let admitted = match around.off {
            Some(Rule::MinIsrBeforeAppend) => true,
            Some(Rule::StrictMinIsr) => {
                let isr = leader.isr().committed().len();
                commit::admit_append(acks, isr, effective_min_isr(self.min_isr, leader))
            }
            _ => leader.admits_append(acks),
        };
        if !admitted {
            answer(Answer::Refused("NOT_ENOUGH_REPLICAS"), around);
            return true;
        }
        let epoch = leader.leader_epoch();
        let isr = leader.isr().committed().len();
        let min_isr = effective_min_isr(self.min_isr, leader);
        let base_offset = self.log.end_offset();
        self.log.append(Record { epoch, value });
        around.history.on_appended(id, epoch);
        if acks == Acks::All && isr < min_isr {
            around.history.violations.push(format!(
                "broker {id} appends for acks=all with {isr} in-sync replicas"
            ));
        }
        around
            .notes
            .add(|| format!("{id}: appends m{value} at {base_offset}"));
        self.after_append(around);
        match acks {
            Acks::None | Acks::Leader => answer(Answer::Ok(base_offset), around),
            Acks::All => {
                let parked = Parked {
                    value,
                    base_offset,
                    required_offset: base_offset + 1,
                    deadline_ms,
                };
                if let Some(run) = &mut self.run {
                    run.parked.push(parked);
                }
                self.look_at_parked(around);
            }
        }
        true
    }

    fn after_append(&mut self, around: &mut Around<'_>) {
        let next = ask_leader!(self, around, |state, log, moment| {
            state.on_append(log, moment)
        });
        self.move_high_watermark(next.flatten(), around);
        self.look_at_parked(around);
    }

    /// Looks which parked produces are done, unless they are held back.
    pub(crate) fn look_at_parked(&mut self, around: &mut Around<'_>) {
        let high_watermark = self.log.high_watermark();
        let min_isr = self.min_isr;
        let Some(run) = &mut self.run else { return };
        if run.holds_parked {
            return;
        }
        let Some(leader) = run.replica.as_leader() else {
            return;
        };
        let parked = std::mem::take(&mut run.parked);
        let mut still = Vec::new();
        for produce in parked {
            let status = match around.off {
                Some(Rule::AckAtHighWatermark) => CommitStatus::Committed,
                Some(Rule::StrictMinIsr) => commit::commit_status(
                    high_watermark,
                    produce.required_offset,
                    leader.isr().maximal_len(),
                    effective_min_isr(min_isr, leader),
                ),
                _ => leader.commit_status(high_watermark, produce.required_offset),
            };
            let Parked {
                value, base_offset, ..
            } = produce;
            let answer = match status {
                CommitStatus::Waiting => {
                    still.push(produce);
                    continue;
                }
                CommitStatus::Committed => Answer::Ok(base_offset),
                CommitStatus::NotEnoughReplicasAfterAppend => {
                    Answer::Unknown("NOT_ENOUGH_REPLICAS_AFTER_APPEND")
                }
            };
            around.history.on_answer(value, answer);
            if let Answer::Ok(offset) = answer
                && let Some(record) = self.log.get(offset)
            {
                around
                    .history
                    .on_acked(leader.leader_epoch(), offset, record);
            }
            around.notes.add(|| match answer {
                Answer::Ok(offset) => format!("m{value}: acks=all promised at {offset}"),
                Answer::Refused(error) | Answer::Unknown(error) => format!("m{value}: {error}"),
            });
        }
        run.parked = still;
    }

    /// Parked produces that have waited for too long are answered.
    pub(crate) fn expire_parked(&mut self, around: &mut Around<'_>) -> bool {
        let Some(run) = &mut self.run else {
            return false;
        };
        let parked = std::mem::take(&mut run.parked);
        let (expired, still): (Vec<_>, Vec<_>) = parked
            .into_iter()
            .partition(|produce| produce.deadline_ms <= around.now_ms);
        run.parked = still;
        for produce in &expired {
            let value = produce.value;
            around
                .history
                .on_answer(value, Answer::Unknown("REQUEST_TIMED_OUT"));
            around.notes.add(|| format!("m{value}: REQUEST_TIMED_OUT"));
        }
        !expired.is_empty()
    }

    /// A consumer reads here from `offset` on, as far as it may.
    pub(crate) fn consume(&mut self, offset: i64, around: &mut Around<'_>) -> bool {
        let id = self.id;
        let Some(run) = self.run.as_ref().filter(|run| run.serves_clients) else {
            return false;
        };
        let leads = run.replica.as_leader().is_some();
        if !self.has_log || (!leads && run.replica.leader().is_none()) {
            around.notes.add(|| format!("{id}: NOT_LEADER_OR_FOLLOWER"));
            return true;
        }
        if offset < self.log.start_offset() || offset > self.log.end_offset() {
            around.notes.add(|| format!("{id}: OFFSET_OUT_OF_RANGE"));
            return true;
        }
        let end = match around.is_off(Rule::ReadToHighWatermark) {
            true => self.log.end_offset(),
            false => self.log.high_watermark(),
        };
        let records = self.log.read(offset, end, usize::MAX);
        around.notes.add(|| match records.len() as i64 {
            0 => format!("{id}: no records"),
            count => format!("{id}: records {offset}..{}", offset + count - 1),
        });
        // Since an unclean election a replica that has not been compared with the new leader shows what is void.
        let validated = match leads {
            true => Some(run.replica.leader_epoch()),
            false => run.validated_epoch,
        };
        if around.history.unclean_epoch <= validated || around.history.unclean_epoch.is_none() {
            for (offset, record) in (offset..).zip(records) {
                around.history.on_consumed(id, offset, record);
            }
        }
        true
    }
}

/// min.insync.replicas as it counts for a leader, whatever its state was told.
pub(crate) fn effective_min_isr(min_isr: usize, leader: &LeaderState) -> usize {
    let followers = leader.followers().iter();
    let voters = followers.filter(|(follower, _)| !leader.is_observer(*follower));
    commit::effective_min_isr(min_isr, 1 + voters.count())
}
