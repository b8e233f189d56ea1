//! A broker that follows: it asks the product's `FollowerState` and carries out what that decides.

use highwater_replication::state::follower::{
    FetchAnswer, FetchPosition, FollowerState, FollowerStep, LeaderError, LogEndStep, LogStartStep,
    follower_high_watermark, follower_log_start_offset,
};
use highwater_replication::state::replica_progress::{FollowerFetch, UNSPECIFIED_BROKER_EPOCH};
use highwater_replication::state::truncation::{EpochEnd, FollowerLog, truncation};
use highwater_storage::LeaderEpoch;

use super::around::Around;
use super::broker::{Broker, Question};
use super::log::Record;
use super::message::{Body, Channel, LogEnd, Node, Purpose};
use super::rules::Rule;

/// `replica.fetch.backoff.ms`.
const BACK_OFF_MS: i64 = 1_000;

impl Broker {
    /// Begins to follow in a leader epoch.
    pub(crate) fn begin_to_follow(&mut self, leader_epoch: LeaderEpoch, around: &mut Around<'_>) {
        if around.is_off(Rule::TruncateByEpoch) {
            self.log.truncate_to(self.log.high_watermark());
        }
        let (follower, truncate_to) = FollowerState::on_become_follower(leader_epoch, &self.log);
        let id = self.id;
        if let Some(offset) = truncate_to {
            around
                .notes
                .add(|| format!("{id}: knows no epochs, truncates to {offset}"));
            self.log.truncate_to(offset);
        }
        let leader = self.run.as_ref().and_then(|run| run.replica.leader());
        let Some(run) = &mut self.run else { return };
        run.follower = Some(follower);
        run.question = Question::Records;
        if run
            .fetch_connection
            .is_some_and(|channel| leader.is_none_or(|leader| channel.to != Node::Broker(leader)))
        {
            run.fetch_connection = None;
            run.awaits_leader = false;
        }
    }

    /// Sends the follower's next request to its leader, if it may and none is on its way.
    pub(crate) fn send_fetch(&mut self, around: &mut Around<'_>) -> bool {
        let id = self.id;
        let now_ms = self.clock.read(around.now_ms);
        let log_start_offset = self.log.start_offset();
        let Some(run) = &mut self.run else {
            return false;
        };
        let (Some(leader), Some(follower)) = (run.replica.leader(), &run.follower) else {
            return false;
        };
        if run.awaits_leader || leader == id || !follower.is_ready(now_ms) {
            return false;
        }
        let position = follower.position();
        let leader_epoch = position.leader_epoch;
        let body = match run.question {
            Question::Records => Body::Fetch {
                position,
                fetch: FollowerFetch {
                    replica: id,
                    broker_epoch: match around.is_off(Rule::BrokerEpoch) {
                        true => UNSPECIFIED_BROKER_EPOCH,
                        false => run.epoch.unwrap_or(UNSPECIFIED_BROKER_EPOCH),
                    },
                    fetch_offset: position.fetch_offset,
                    log_start_offset,
                },
            },
            Question::LogEnd(end) => Body::ListOffset { leader_epoch, end },
            Question::EpochEnd(epoch) => Body::EpochEnd {
                leader_epoch,
                epoch,
            },
        };
        let to = Node::Broker(leader);
        let network = &mut around.network;
        let channel = run
            .fetch_connection
            .filter(|channel| channel.to == to)
            .unwrap_or_else(|| network.connect(Purpose::Fetch, Node::Broker(id), to));
        run.fetch_connection = Some(channel);
        run.awaits_leader = true;
        network.send(channel, body);
        true
    }

    /// The leader answered. An answer on a connection that was given up is looked at, too: it must not matter.
    pub(crate) fn on_leader_reply(
        &mut self,
        channel: Channel,
        body: Body,
        around: &mut Around<'_>,
    ) {
        let now_ms = self.clock.read(around.now_ms);
        let Some(run) = &mut self.run else { return };
        if run.fetch_connection == Some(channel.back()) {
            run.awaits_leader = false;
        }
        let Some(follower) = &run.follower else {
            return;
        };
        let present = follower.position().leader_epoch;
        match body {
            Body::Fetched {
                sent,
                answer,
                leader_high_watermark,
                records,
            } => {
                let sent = match around.is_off(Rule::StaleAnswer) {
                    true => follower.position(),
                    false => sent,
                };
                let step = follower.on_fetch_answer(sent, answer, &self.log, now_ms);
                if step != FollowerStep::Drop {
                    run.validated_epoch = match answer {
                        FetchAnswer::Records { .. } => Some(sent.leader_epoch),
                        _ => run.validated_epoch,
                    };
                    run.question = Question::Records;
                }
                self.take_step(step, sent, records, leader_high_watermark, around);
            }
            Body::ListedOffset {
                leader_epoch,
                end,
                offset,
            } if leader_epoch == present && run.question == Question::LogEnd(end) => match offset {
                Ok(offset) => self.on_listed_offset(end, offset, around),
                Err(error) => self.on_leader_error(error, around),
            },
            Body::EpochEnded { leader_epoch, end } if leader_epoch == present => {
                if let Question::EpochEnd(_) = run.question {
                    match end {
                        Ok(end) => self.on_epoch_end(end, around),
                        Err(error) => self.on_leader_error(error, around),
                    }
                }
            }
            _ => {}
        }
    }

    fn take_step(
        &mut self,
        step: FollowerStep,
        sent: FetchPosition,
        records: Vec<Record>,
        leader_high_watermark: i64,
        around: &mut Around<'_>,
    ) {
        let id = self.id;
        match step {
            FollowerStep::Drop => around.notes.add(|| format!("{id}: drops the answer")),
            FollowerStep::Append {
                up_to_epoch,
                high_watermark,
                log_start_offset,
            } => {
                let up_to_epoch = match around.is_off(Rule::LaterEpochs) {
                    true => LeaderEpoch(i32::MAX),
                    false => up_to_epoch,
                };
                self.append_as_follower(up_to_epoch, sent, records, around);
                self.take_over(high_watermark, log_start_offset, around);
            }
            FollowerStep::Truncate(truncation) => {
                let offset = truncation.offset;
                around.notes.add(|| {
                    let more = if truncation.is_complete {
                        ""
                    } else {
                        ", and asks again"
                    };
                    format!("{id}: truncates to {offset}{more}")
                });
                self.log.truncate_to(offset);
                if around.is_off(Rule::DivergingHighWatermark) {
                    self.log
                        .set_high_watermark(leader_high_watermark.min(self.log.end_offset()));
                }
                self.on_log_changed();
            }
            FollowerStep::FindOffset => {
                if let Some(run) = &mut self.run {
                    run.question = Question::LogEnd(LogEnd::End);
                }
            }
            FollowerStep::BackOff | FollowerStep::Fail => self.rest(step, around),
        }
    }

    fn append_as_follower(
        &mut self,
        up_to_epoch: LeaderEpoch,
        sent: FetchPosition,
        records: Vec<Record>,
        around: &mut Around<'_>,
    ) {
        let id = self.id;
        let first = self.log.end_offset();
        debug_assert!(
            sent.fetch_offset == first || around.off.is_some(),
            "an accepted answer follows the log"
        );
        for record in records
            .into_iter()
            .take_while(|record| record.epoch <= up_to_epoch)
        {
            self.log.append(record);
        }
        let end = self.log.end_offset();
        if end > first {
            around
                .notes
                .add(|| format!("{id}: appends {first}..{}", end - 1));
        }
    }

    /// Takes over the leader's high watermark and log start after an append.
    fn take_over(
        &mut self,
        leader_high_watermark: i64,
        leader_log_start_offset: i64,
        around: &mut Around<'_>,
    ) {
        let id = self.id;
        let before = self.log.offsets();
        let high_watermark = follower_high_watermark(leader_high_watermark, before);
        if high_watermark != before.high_watermark {
            let from = before.high_watermark;
            around
                .notes
                .add(|| format!("{id}: high watermark {from} -> {high_watermark}"));
            self.log.set_high_watermark(high_watermark);
        }
        let offsets = self.log.offsets();
        if let Some(offset) = follower_log_start_offset(leader_log_start_offset, offsets) {
            around.notes.add(|| format!("{id}: log begins at {offset}"));
            self.log.advance_start(offset);
        }
        let log = &self.log;
        let latest_epoch = log.get(log.end_offset() - 1).map(|record| record.epoch);
        if let Some(follower) = self.run.as_mut().and_then(|run| run.follower.as_mut()) {
            follower.on_appended(log.end_offset(), latest_epoch, leader_high_watermark);
        }
    }

    fn on_listed_offset(&mut self, end: LogEnd, offset: i64, around: &mut Around<'_>) {
        let id = self.id;
        let Some(run) = &mut self.run else { return };
        let Some(follower) = &run.follower else {
            return;
        };
        run.question = Question::Records;
        match end {
            LogEnd::End => match follower.on_leader_log_end_offset(offset, &self.log) {
                LogEndStep::TruncateTo(offset) => {
                    around
                        .notes
                        .add(|| format!("{id}: truncates to the leader's end {offset}"));
                    self.log.truncate_to(offset);
                    self.on_log_changed();
                }
                LogEndStep::FindLogStart => run.question = Question::LogEnd(LogEnd::Start),
            },
            LogEnd::Start => match follower.on_leader_log_start_offset(offset, &self.log) {
                LogStartStep::RestartAt(offset) => {
                    around
                        .notes
                        .add(|| format!("{id}: drops its log, begins at {offset}"));
                    self.log.restart_at(offset);
                    self.on_log_changed();
                }
                LogStartStep::FindEpochEnd(epoch) => run.question = Question::EpochEnd(epoch),
                LogStartStep::FetchAgain => self.on_log_changed(),
            },
        }
    }

    fn on_epoch_end(&mut self, end: Option<EpochEnd>, around: &mut Around<'_>) {
        let id = self.id;
        let cut = truncation(end, &self.log);
        around
            .notes
            .add(|| format!("{id}: truncates to {}", cut.offset));
        self.log.truncate_to(cut.offset);
        if let Some(run) = &mut self.run {
            run.question = Question::Records;
        }
        self.on_log_changed();
    }

    fn on_leader_error(&mut self, error: LeaderError, around: &mut Around<'_>) {
        let Some(run) = &mut self.run else { return };
        let Some(follower) = &run.follower else {
            return;
        };
        run.question = Question::Records;
        let step = follower.on_error(error);
        self.rest(step, around);
    }

    fn rest(&mut self, step: FollowerStep, around: &mut Around<'_>) {
        let id = self.id;
        let now_ms = self.clock.read(around.now_ms);
        let Some(follower) = self.run.as_mut().and_then(|run| run.follower.as_mut()) else {
            return;
        };
        match step {
            FollowerStep::Fail => {
                around
                    .notes
                    .add(|| format!("{id}: fetches no more in this leader epoch"));
                follower.on_failed();
            }
            _ => {
                around.notes.add(|| format!("{id}: backs off"));
                follower.on_back_off(now_ms + BACK_OFF_MS);
            }
        }
    }

    fn on_log_changed(&mut self) {
        let log = &self.log;
        if let Some(follower) = self.run.as_mut().and_then(|run| run.follower.as_mut()) {
            follower.on_log_changed(log);
        }
    }
}
