//! The lines that are printed.

use std::fmt;
use std::time::Duration;

use crate::tools::fixed::Fixed;

const MIB: f64 = 1024.0 * 1024.0;

pub(super) fn header(is_detailed: bool) -> &'static str {
    match is_detailed {
        true => {
            "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, \
             fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
        }
        false => {
            "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, \
             fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
        }
    }
}

/// What was consumed so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) records: u64,
    /// Of keys and values.
    pub(super) bytes: u64,
}

impl Totals {
    fn mib(self) -> f64 {
        self.bytes as f64 / MIB
    }
}

/// The last line, behind its two times.
pub(super) fn total(totals: Totals, elapsed: Duration, rebalance: Duration) -> String {
    let seconds = elapsed.as_millis() as f64 / 1000.0;
    let fetch_ms = elapsed.as_millis() as i128 - rebalance.as_millis() as i128;
    let fetch_seconds = fetch_ms as f64 / 1000.0;
    format!(
        "{}, {}, {}, {}, {}, {fetch_ms}, {}, {}",
        Fixed::<4>(totals.mib()),
        Fixed::<4>(totals.mib() / seconds),
        totals.records,
        Fixed::<4>(totals.records as f64 / seconds),
        rebalance.as_millis(),
        Fixed::<4>(totals.mib() / fetch_seconds),
        Fixed::<4>(totals.records as f64 / fetch_seconds),
    )
}

/// A line of progress.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) end: String,
    pub(super) elapsed: Duration,
    /// Joining the group since the last line.
    pub(super) rebalance: Duration,
    pub(super) before: Totals,
    pub(super) now: Totals,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elapsed_ms = self.elapsed.as_millis() as f64;
        let fetch_ms = self.elapsed.as_millis() as i128 - self.rebalance.as_millis() as i128;
        let mib = self.now.mib() - self.before.mib();
        let records = (self.now.records - self.before.records) as f64;
        let per_fetch = |amount: f64| match fetch_ms {
            1.. => 1000.0 * amount / fetch_ms as f64,
            _ => 0.0,
        };
        write!(
            f,
            "{}, 0, {}, {}, {}, {}, {}, {fetch_ms}, {}, {}",
            self.end,
            Fixed::<4>(self.now.mib()),
            Fixed::<4>(1000.0 * mib / elapsed_ms),
            self.now.records,
            Fixed::<4>(records / elapsed_ms * 1000.0),
            self.rebalance.as_millis(),
            Fixed::<4>(per_fetch(mib)),
            Fixed::<4>(per_fetch(records)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_kafkas() {
        let now = Totals {
            records: 30,
            bytes: 3 << 20,
        };
        let ms = Duration::from_millis;
        assert_eq!(
            total(now, ms(3000), ms(1000)),
            "3.0000, 1.0000, 30, 10.0000, 1000, 2000, 1.5000, 15.0000"
        );
        let progress = Progress {
            end: "T".to_owned(),
            elapsed: ms(2000),
            rebalance: ms(2000),
            before: Totals {
                records: 10,
                bytes: 1 << 20,
            },
            now,
        };
        assert_eq!(
            progress.to_string(),
            "T, 0, 3.0000, 1.0000, 30, 10.0000, 2000, 0, 0.0000, 0.0000"
        );
    }
}
