//! Events in the order of their times; those of the same time in an order that is drawn.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use fastrand::Rng;
use highwater_storage::BrokerId;

use crate::model::message::{Channel, Purpose};
use crate::model::step::Step;

/// What a broker does again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tick {
    Fetch,
    Metadata,
    Heartbeat,
    LagCheck,
    Expire,
    Sync,
    Checkpoint,
}

/// What a controller does again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Chore {
    SessionCheck,
    Balance,
    UncleanCheck,
}

/// Something that is to happen at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The next message of a channel arrives.
    Arrival(Channel),
    Tick(BrokerId, Tick),
    Chore(usize, Chore),
    /// An entry of a controller is committed.
    Commit(usize),
    /// A proposal is sent.
    Propose(BrokerId),
    /// A request was not answered in time.
    TimeOut(BrokerId, Purpose, u32),
    /// A client does something.
    Client,
    /// A fault begins.
    Fault,
    /// A fault ends.
    End(Vec<Step>),
    /// A broker that was made slow in something is as before.
    Quicken(BrokerId, Tick),
}

/// Events to come.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    heap: BinaryHeap<Reverse<(i64, u32, u64)>>,
    events: BTreeMap<u64, Event>,
    next: u64,
    /// When the last message that was sent on a channel arrives: later ones do not overtake it.
    arrivals: BTreeMap<Channel, i64>,
}

impl Schedule {
    /// Something happens at a time.
    pub(crate) fn at(&mut self, time_ms: i64, event: Event, rng: &mut Rng) {
        self.next += 1;
        self.events.insert(self.next, event);
        self.heap.push(Reverse((time_ms, rng.u32(..), self.next)));
    }

    /// A message was sent and takes so long, or longer if one before it on the channel takes longer.
    pub(crate) fn arrival(&mut self, channel: Channel, time_ms: i64, rng: &mut Rng) {
        let last = self.arrivals.get(&channel).copied().unwrap_or(time_ms);
        let time_ms = time_ms.max(last + i64::from(self.arrivals.contains_key(&channel)));
        self.arrivals.insert(channel, time_ms);
        self.at(time_ms, Event::Arrival(channel), rng);
    }

    /// The next event and its time.
    pub(crate) fn pop(&mut self) -> Option<(i64, Event)> {
        let Reverse((time_ms, _, number)) = self.heap.pop()?;
        let event = self.events.remove(&number)?;
        if let Event::Arrival(channel) = event
            && self
                .arrivals
                .get(&channel)
                .is_some_and(|last| *last <= time_ms)
        {
            self.arrivals.remove(&channel);
        }
        Some((time_ms, event))
    }
}
