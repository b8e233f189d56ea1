//! Lines of a script that stand for several steps.

use std::sync::Arc;

use highwater_storage::BrokerId;

use super::controller::Wish;
use super::message::{Channel, Node, Purpose};
use super::setup::{id, number};
use super::step::Step;
use super::world::World;

/// How many rounds something that repeats itself may take in a script.
const MAX_ROUNDS: usize = 50;

/// One line of a script.
#[derive(Debug, Clone)]
pub(crate) enum Line {
    Step(Step),
    /// A follower asks its leader and gets the answer, so many times.
    Fetch(BrokerId, usize),
    /// A leader's proposal goes to the controller, is committed and answered.
    Alter(BrokerId),
    /// A heartbeat or registration goes to the controller, what it causes is committed, and it is answered.
    Heartbeat(BrokerId),
    /// The controller does something and commits it.
    Do(Wish),
    /// All brokers receive all metadata.
    MetadataForAll,
    /// Everything goes on undisturbed until nothing changes any more.
    Settle,
    /// The state of a broker is shown, or of the metadata and all brokers.
    Show(Option<BrokerId>),
}

impl Line {
    /// Reads a line.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        Ok(match words.as_slice() {
            ["fetch", broker] => Self::Fetch(id(broker)?, 1),
            ["fetch", broker, times] => {
                Self::Fetch(id(broker)?, number(times.trim_start_matches('x'))?)
            }
            ["alter", broker] => Self::Alter(id(broker)?),
            ["heartbeat", broker] => Self::Heartbeat(id(broker)?),
            ["metadata", "all"] => Self::MetadataForAll,
            ["settle"] => Self::Settle,
            ["show"] => Self::Show(None),
            ["show", broker] => Self::Show(Some(id(broker)?)),
            _ => match Step::parse_wish(line)? {
                Some(wish) => Self::Do(wish),
                None => Self::Step(Step::parse(line)?),
            },
        })
    }
}

/// Metadata position, log end offset, high watermark, and which image the broker acts on.
type BrokerFingerprint = (usize, i64, i64, Option<usize>);

impl World {
    /// Does what a line says, and gives what is to be seen then.
    pub(crate) fn perform(&mut self, line: &Line) -> Vec<String> {
        let mut shown = Vec::new();
        match line {
            Line::Step(step) => self.perform_step(step, &mut shown),
            Line::Fetch(follower, times) => {
                for _ in 0..*times {
                    self.round_trip(
                        Step::SendFetch(*follower),
                        *follower,
                        Purpose::Fetch,
                        &mut shown,
                    );
                }
            }
            Line::Alter(leader) => {
                let step = Step::SendAlter(*leader, self.elected);
                self.round_trip(step, *leader, Purpose::Alter, &mut shown);
            }
            Line::Heartbeat(broker) => {
                let step = Step::SendHeartbeat(*broker, self.elected);
                self.round_trip(step, *broker, Purpose::Heartbeat, &mut shown);
            }
            Line::Do(wish) => {
                self.perform_step(&Step::Ask(self.elected, wish.clone()), &mut shown);
                let _ = self.apply(&Step::Commit(self.elected));
                shown.extend(self.notes.take());
            }
            Line::MetadataForAll => {
                for broker in self.setup.brokers.clone() {
                    let _ = self.apply(&Step::Metadata(broker, None));
                    shown.extend(self.notes.take());
                }
            }
            Line::Settle => {
                self.settle();
                shown.extend(self.notes.take());
            }
            Line::Show(Some(broker)) => shown.extend(self.show(*broker)),
            Line::Show(None) => {
                shown.push(self.show_metadata());
                for broker in self.setup.brokers.clone() {
                    shown.extend(self.show(broker));
                }
            }
        }
        shown
    }

    fn perform_step(&mut self, step: &Step, shown: &mut Vec<String>) {
        let applied = self.apply(step);
        shown.extend(self.notes.take());
        if let Err(idle) = applied {
            shown.push(format!("(nothing: {idle})"));
        }
    }

    /// Sends a request, lets it arrive, commits what it makes a controller write, and lets the answer arrive.
    fn round_trip(
        &mut self,
        send: Step,
        from: BrokerId,
        purpose: Purpose,
        shown: &mut Vec<String>,
    ) {
        self.network.take_sent();
        self.perform_step(&send, shown);
        let Some(request) = self.network.take_sent().pop() else {
            return;
        };
        self.perform_step(&Step::Deliver(request), shown);
        if purpose != Purpose::Fetch {
            let _ = self.apply(&Step::Commit(self.elected));
            shown.extend(self.notes.take());
        }
        let is_answer = |channel: &Channel| {
            channel.to == Node::Broker(from)
                && channel.purpose == purpose
                && channel.connection == request.connection
        };
        let answer = self.network.busy().find(is_answer);
        if let Some(answer) = answer {
            self.perform_step(&Step::Deliver(answer), shown);
        }
        self.network.take_sent();
    }

    /// Lets everything go on, without faults and without time passing, until nothing changes.
    fn settle(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let before = self.fingerprint();
            while let Some(channel) = self.deliverable() {
                let _ = self.apply(&Step::Deliver(channel));
            }
            let _ = self.apply(&Step::Commit(self.elected));
            for broker in self.setup.brokers.clone() {
                let _ = self.apply(&Step::Metadata(broker, None));
                let _ = self.apply(&Step::SendHeartbeat(broker, self.elected));
                let _ = self.apply(&Step::SendFetch(broker));
                let _ = self.apply(&Step::SendAlter(broker, self.elected));
            }
            if self.fingerprint() == before {
                return;
            }
        }
    }

    fn deliverable(&self) -> Option<Channel> {
        let is_awake = |node: Node| match node {
            Node::Broker(id) => self
                .brokers
                .get(&id)
                .is_some_and(|broker| broker.awake().is_some()),
            Node::Controller(_) => true,
        };
        let passes = |channel: &Channel| {
            is_awake(channel.to) && !self.network.is_cut(channel.from, channel.to)
        };
        self.network.busy().find(passes)
    }

    /// What settles: logs, high watermarks and the metadata that brokers have.
    fn fingerprint(&self) -> (usize, Vec<BrokerFingerprint>) {
        let brokers = self.brokers.values().map(|broker| {
            let image = broker.image().map(|image| Arc::as_ptr(image) as usize);
            let (position, log) = (broker.metadata_position, &broker.log);
            (position, log.end_offset(), log.high_watermark(), image)
        });
        (self.metadata.len(), brokers.collect())
    }
}
