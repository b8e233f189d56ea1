//! Latencies and throughput, in Kafka's lines.

use std::time::Duration;

use tokio::time::Instant;

use crate::tools::fixed::Fixed;

/// Latencies that are kept for the percentiles, at most.
const SAMPLES: u64 = 500_000;
const MIB: f64 = 1024.0 * 1024.0;

#[derive(Debug, Clone, Copy)]
struct Sums {
    since: Instant,
    count: u64,
    bytes: u64,
    latency_ms: u64,
    max_latency_ms: u64,
}

impl Sums {
    fn new(since: Instant) -> Self {
        Sums {
            since,
            count: 0,
            bytes: 0,
            latency_ms: 0,
            max_latency_ms: 0,
        }
    }

    fn add(&mut self, latency_ms: u64, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
        self.latency_ms += latency_ms;
        self.max_latency_ms = self.max_latency_ms.max(latency_ms);
    }

    /// Records and MiB per second, and the mean latency in ms.
    fn rates(&self, now: Instant) -> (f64, f64, f64) {
        let elapsed_ms = now.saturating_duration_since(self.since).as_millis() as f64;
        let per_second = |amount: f64| 1000.0 * amount / elapsed_ms;
        (
            per_second(self.count as f64),
            per_second(self.bytes as f64) / MIB,
            self.latency_ms as f64 / self.count as f64,
        )
    }
}

/// What was measured.
#[derive(Debug)]
pub(super) struct Stats {
    all: Sums,
    window: Sums,
    interval: Duration,
    sampling: u64,
    latencies_ms: Vec<u64>,
    is_steady_state: bool,
    is_silent: bool,
}

impl Stats {
    /// For so many records.
    pub(super) fn new(
        records: u64,
        interval: Duration,
        is_steady_state: bool,
        now: Instant,
    ) -> Self {
        Stats {
            all: Sums::new(now),
            window: Sums::new(now),
            interval,
            sampling: records / records.clamp(1, SAMPLES),
            latencies_ms: Vec::new(),
            is_steady_state,
            is_silent: false,
        }
    }

    /// Prints no more windows.
    pub(super) fn suppress_printing(&mut self) {
        self.is_silent = true;
    }

    /// Notes a record that was acknowledged; gives the line to print when a window has ended.
    pub(super) fn record(&mut self, latency: Duration, bytes: u64, now: Instant) -> Option<String> {
        let latency_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        if self.all.count.is_multiple_of(self.sampling.max(1)) {
            self.latencies_ms.push(latency_ms);
        }
        self.all.add(latency_ms, bytes);
        self.window.add(latency_ms, bytes);
        if now.saturating_duration_since(self.window.since) < self.interval {
            return None;
        }
        let is_first = self.all.count == self.window.count;
        let line = (!self.is_silent).then(|| {
            let (records, mib, mean) = self.window.rates(now);
            let start = match self.is_steady_state && is_first {
                true => "In steady state.\n",
                false => "",
            };
            format!(
                "{start}{} records sent, {} records/sec ({} MB/sec), {} ms avg latency, {} ms max latency.",
                self.window.count,
                Fixed::<1>(records),
                Fixed::<2>(mib),
                Fixed::<1>(mean),
                Fixed::<1>(self.window.max_latency_ms as f64),
            )
        });
        self.window = Sums::new(now);
        line
    }

    /// The last line.
    pub(super) fn total(&mut self, now: Instant) -> String {
        let (records, mib, mean) = self.all.rates(now);
        self.latencies_ms.sort_unstable();
        let samples = &self.latencies_ms;
        let percentile = |part: f64| {
            let index = (part * samples.len() as f64) as usize;
            samples.get(index).copied().unwrap_or(0)
        };
        let steady = if self.is_steady_state {
            " steady state"
        } else {
            ""
        };
        format!(
            "{}{steady} records sent, {} records/sec ({} MB/sec), {} ms avg latency, {} ms max latency, {} ms 50th, {} ms \
             95th, {} ms 99th, {} ms 99.9th.",
            self.all.count,
            Fixed::<6>(records),
            Fixed::<2>(mib),
            Fixed::<2>(mean),
            Fixed::<2>(self.all.max_latency_ms as f64),
            percentile(0.5),
            percentile(0.95),
            percentile(0.99),
            percentile(0.999),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_and_the_total_are_kafkas_lines() {
        let began = Instant::now();
        let mut stats = Stats::new(4, Duration::from_secs(1), false, began);
        let at = |ms| began + Duration::from_millis(ms);
        let ms = Duration::from_millis;
        assert_eq!(stats.record(ms(1), 1 << 20, at(10)), None);
        assert_eq!(stats.record(ms(2), 1 << 20, at(20)), None);
        assert_eq!(
            stats.record(ms(6), 1 << 20, at(1000)).as_deref(),
            Some(
                "3 records sent, 3.0 records/sec (3.00 MB/sec), 3.0 ms avg latency, 6.0 ms max latency."
            )
        );
        assert_eq!(stats.record(ms(3), 1 << 20, at(1500)), None);
        assert_eq!(
            stats.total(at(2000)),
            "4 records sent, 2.000000 records/sec (2.00 MB/sec), 3.00 ms avg latency, 6.00 ms max latency, 3 ms 50th, 6 \
             ms 95th, 6 ms 99th, 6 ms 99.9th."
        );
    }

    #[test]
    fn a_rate_over_no_time_is_infinite() {
        let began = Instant::now();
        let mut stats = Stats::new(1, Duration::from_secs(1), false, began);
        stats.record(Duration::ZERO, 1, began);
        let line = stats.total(began);
        let expected =
            "1 records sent, Infinity records/sec (Infinity MB/sec), 0.00 ms avg latency, ";
        assert!(line.starts_with(expected), "{line}");
    }

    #[test]
    fn the_steady_state_says_so() {
        let began = Instant::now();
        let mut stats = Stats::new(1, Duration::from_millis(1), true, began);
        let later = began + Duration::from_millis(5);
        let line = stats.record(Duration::ZERO, 1, later).expect("a window");
        assert!(
            line.starts_with("In steady state.\n1 records sent"),
            "{line}"
        );
        assert!(
            stats
                .total(later)
                .starts_with("1 steady state records sent")
        );
    }
}
