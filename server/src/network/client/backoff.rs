//! How long to rest after the n-th failure in a row.

use std::time::Duration;

use uuid::Uuid;

/// How far a rest is spread around its length, in percent, so that nodes that failed together do not return together.
const JITTER_PERCENT: u32 = 20;
/// Doublings after which the rest grows no more, whatever its limit.
const MAX_DOUBLINGS: u32 = 20;

/// Rests that double from a first one up to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    max: Duration,
}

impl Backoff {
    /// Rests from `first` to `max`; always `first` if that is the longer.
    pub const fn new(first: Duration, max: Duration) -> Self {
        Backoff { first, max }
    }

    /// The rest after `failures` failures in a row, which are at least one. `random` places it within the spread.
    pub fn after(&self, failures: u32, random: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(MAX_DOUBLINGS);
        let rest = self.first.saturating_mul(1 << doublings);
        let rest = rest.min(self.max.max(self.first));
        let percent = 100 - JITTER_PERCENT + random % (2 * JITTER_PERCENT + 1);
        rest.saturating_mul(percent) / 100
    }
}

/// A new random number, to place a rest within its spread or to choose among some.
pub(crate) fn random() -> u32 {
    let (random, ..) = Uuid::new_v4().as_fields();
    random
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn rests_double_up_to_the_limit() {
        let backoff = Backoff::new(50 * MS, 1000 * MS);
        let rests = [1, 2, 3, 4, 5, 6, 7, u32::MAX].map(|failures| backoff.after(failures, 20));
        assert_eq!(
            rests.map(|rest| rest.as_millis()),
            [50, 100, 200, 400, 800, 1000, 1000, 1000]
        );
    }

    #[test]
    fn rests_spread_by_a_fifth() {
        let backoff = Backoff::new(100 * MS, 100 * MS);
        let rests: Vec<_> = (0..1000).map(|random| backoff.after(3, random)).collect();
        assert_eq!(rests.iter().min(), Some(&(80 * MS)));
        assert_eq!(rests.iter().max(), Some(&(120 * MS)));
    }
}
