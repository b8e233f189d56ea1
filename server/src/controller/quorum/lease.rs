//! How long ago a majority answered: a leader that others may have replaced must not decide any more.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The time in which a leader may act on the last word from a majority: as long as a follower that answered votes for
/// nobody else, counted from when the leader sent what was answered.
#[derive(Debug)]
pub(super) struct Lease {
    limit: Duration,
    /// How many others make a majority with this node.
    others_needed: usize,
    acks: Mutex<Acks>,
}

/// Who answered in the newest term.
#[derive(Debug, Default)]
struct Acks {
    term: u64,
    /// When each of the others was sent what it answered last.
    sent: BTreeMap<u64, Instant>,
}

impl Acks {
    fn on_term(&mut self, term: u64) {
        if term > self.term {
            self.term = term;
            self.sent.clear();
        }
    }
}

impl Lease {
    /// The lease of one of so many voters.
    pub(super) fn new(limit: Duration, voters: usize) -> Self {
        Self {
            limit,
            others_needed: voters / 2,
            acks: Mutex::default(),
        }
    }

    /// How long the last word of a majority counts.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Another one follows this node in `term`, by its answer to what was sent at `sent`.
    pub(super) fn on_ack(&self, other: u64, term: u64, sent: Instant) {
        let mut acks = self.acks.lock();
        acks.on_term(term);
        if term == acks.term {
            let last = acks.sent.entry(other).or_insert(sent);
            *last = sent.max(*last);
        }
    }

    /// There is a term as new as this; what was answered in older ones counts no more.
    pub(super) fn on_term(&self, term: u64) {
        self.acks.lock().on_term(term);
    }

    /// What is left of the lease; zero when it is over.
    pub(super) fn rest(&self) -> Duration {
        let Some(oldest_needed) = self.others_needed.checked_sub(1) else {
            // Alone, this node is the majority.
            return Duration::MAX;
        };
        let mut sent: Vec<Instant> = self.acks.lock().sent.values().copied().collect();
        sent.sort_unstable_by(|a, b| b.cmp(a));
        sent.get(oldest_needed).map_or(Duration::ZERO, |sent| {
            self.limit.saturating_sub(sent.elapsed())
        })
    }

    /// Whether a majority was heard from not long ago.
    pub(super) fn is_valid(&self) -> bool {
        !self.rest().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(500);

    fn ago(seconds: u64) -> Instant {
        Instant::now() - Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_ends_when_the_majority_is_silent_for_too_long() {
        let lease = Lease::new(LIMIT, 3);
        assert!(!lease.is_valid(), "nobody was heard from yet");
        lease.on_ack(2, 5, ago(0));
        assert!(lease.is_valid());
        let lease = Lease::new(LIMIT, 3);
        lease.on_ack(2, 5, ago(499));
        assert!(lease.is_valid() && lease.rest() <= Duration::from_secs(1));
        lease.on_ack(2, 5, ago(500));
        assert!(lease.is_valid(), "an older answer that comes later");
        let lease = Lease::new(LIMIT, 3);
        lease.on_ack(2, 5, ago(500));
        assert!(!lease.is_valid());
        assert!(Lease::new(LIMIT, 1).is_valid(), "a quorum of one");
    }

    #[test]
    fn as_many_answers_count_as_make_a_majority() {
        let lease = Lease::new(LIMIT, 5);
        lease.on_ack(2, 5, ago(0));
        assert!(!lease.is_valid(), "two of five");
        lease.on_ack(3, 5, ago(400));
        assert!(lease.is_valid());
        assert!(lease.rest() <= Duration::from_secs(100));
        lease.on_ack(4, 5, ago(300));
        assert!(lease.rest() > Duration::from_secs(100));
    }

    #[test]
    fn answers_of_an_older_term_count_no_more() {
        let lease = Lease::new(LIMIT, 3);
        lease.on_ack(2, 5, ago(0));
        lease.on_term(5);
        assert!(lease.is_valid());
        lease.on_term(6);
        assert!(!lease.is_valid());
        lease.on_ack(2, 5, ago(0));
        assert!(!lease.is_valid(), "it comes too late");
        lease.on_ack(3, 7, ago(0));
        assert!(lease.is_valid());
    }
}
