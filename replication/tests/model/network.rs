//! Messages on their way. The network keeps them; when one arrives, or is lost, is decided outside.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::message::{Body, Channel, Node, Purpose};

/// All messages that were sent and have not arrived, and who cannot reach whom.
#[derive(Debug, Default)]
pub(crate) struct Network {
    in_flight: BTreeMap<Channel, VecDeque<Body>>,
    cuts: BTreeSet<(Node, Node)>,
    last_connection: u32,
    /// Channels on which something was sent since this was last taken.
    sent: Vec<Channel>,
}

impl Network {
    /// A new connection from `from` to `to`; older ones stay, and what is on its way there may still arrive.
    pub(crate) fn connect(&mut self, purpose: Purpose, from: Node, to: Node) -> Channel {
        self.last_connection += 1;
        Channel {
            purpose,
            from,
            to,
            connection: self.last_connection,
        }
    }

    pub(crate) fn send(&mut self, channel: Channel, body: Body) {
        self.in_flight.entry(channel).or_default().push_back(body);
        self.sent.push(channel);
    }

    /// The next message of a channel.
    pub(crate) fn take(&mut self, channel: Channel) -> Option<Body> {
        let queue = self.in_flight.get_mut(&channel)?;
        let body = queue.pop_front();
        if queue.is_empty() {
            self.in_flight.remove(&channel);
        }
        body
    }

    /// A channel breaks: what is on its way there is lost. Gives how much that was.
    pub(crate) fn lose(&mut self, channel: Channel) -> usize {
        self.in_flight.remove(&channel).map_or(0, |lost| lost.len())
    }

    /// The process of `node` ends: nothing that was sent to it arrives.
    pub(crate) fn lose_to(&mut self, node: Node) {
        self.in_flight.retain(|channel, _| channel.to != node);
    }

    /// Channels with messages, in order.
    pub(crate) fn busy(&self) -> impl Iterator<Item = Channel> {
        self.in_flight.keys().copied()
    }

    /// Whether messages from `from` do not reach `to`.
    pub(crate) fn is_cut(&self, from: Node, to: Node) -> bool {
        self.cuts.contains(&(from, to))
    }

    pub(crate) fn cut(&mut self, from: Node, to: Node) {
        self.cuts.insert((from, to));
    }

    pub(crate) fn mend(&mut self, from: Node, to: Node) {
        self.cuts.remove(&(from, to));
    }

    /// Channels on which something was sent since the last time, once for each message.
    pub(crate) fn take_sent(&mut self) -> Vec<Channel> {
        std::mem::take(&mut self.sent)
    }
}
