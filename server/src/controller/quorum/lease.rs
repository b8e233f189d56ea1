//! How long ago a majority was heard from: a leader that others may have replaced must not decide any more.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

const NEVER: i64 = i64::MIN;

/// The time in which a leader may act on the last word from a majority.
#[derive(Debug)]
pub(super) struct Lease {
    since: Instant,
    /// When a majority was last heard from, in ms after `since`.
    acked_ms: AtomicI64,
    /// `None` where the node is the majority.
    limit: Option<Duration>,
}

impl Lease {
    pub(super) fn new(limit: Option<Duration>) -> Self {
        Self {
            since: Instant::now(),
            acked_ms: AtomicI64::new(NEVER),
            limit,
        }
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.since.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Notes that a majority was heard from so many ms ago, or that this node does not lead.
    pub(super) fn set(&self, ms_since_ack: Option<u64>) {
        let acked = ms_since_ack.map_or(NEVER, |ms| {
            self.now_ms()
                .saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX))
        });
        self.acked_ms.store(acked, Ordering::Release);
    }

    /// What is left of the lease; zero when it is over.
    pub(super) fn rest(&self) -> Duration {
        let Some(limit) = self.limit else {
            return Duration::MAX;
        };
        let acked = self.acked_ms.load(Ordering::Acquire);
        let age = u64::try_from(self.now_ms().saturating_sub(acked)).unwrap_or(0);
        limit.saturating_sub(Duration::from_millis(age))
    }

    /// Whether a majority was heard from not long ago.
    pub(super) fn is_valid(&self) -> bool {
        !self.rest().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_when_the_majority_is_silent_for_too_long() {
        let lease = Lease::new(Some(Duration::from_millis(500)));
        assert!(!lease.is_valid(), "nobody was heard from yet");
        lease.set(Some(0));
        assert!(lease.is_valid());
        lease.set(Some(499));
        assert!(lease.rest() <= Duration::from_millis(1));
        lease.set(Some(500));
        assert!(!lease.is_valid());
        lease.set(Some(10));
        lease.set(None);
        assert!(!lease.is_valid(), "it does not lead");
        assert!(Lease::new(None).is_valid(), "a quorum of one");
    }
}
