//! How much may be replicated of throttled partitions (KIP-73): a rate over a sliding window.

use std::collections::VecDeque;

/// Rate and window of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaConfig {
    /// Bytes a second; `i64::MAX` for no limit.
    pub rate_bytes_per_second: i64,
    /// `replication.quota.window.num`: samples in the window, the one that grows among them.
    pub window_num: usize,
    /// `replication.quota.window.size.seconds`, in ms.
    pub window_size_ms: i64,
}

impl QuotaConfig {
    /// A quota of so many bytes a second, over Kafka's default window.
    #[must_use]
    pub fn of(rate_bytes_per_second: i64) -> Self {
        Self {
            rate_bytes_per_second,
            window_num: 11,
            window_size_ms: 1_000,
        }
    }
}

/// What was replicated of throttled partitions within the window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicationQuota {
    /// When each sample began, and its bytes; the oldest first.
    samples: VecDeque<(i64, u64)>,
}

impl ReplicationQuota {
    /// Takes note of so many bytes.
    pub fn record(&mut self, bytes: u64, config: &QuotaConfig, now_ms: i64) {
        self.purge(config, now_ms);
        match self.samples.back_mut() {
            Some((began_ms, sum)) if now_ms - *began_ms < config.window_size_ms => *sum += bytes,
            _ => self.samples.push_back((now_ms, bytes)),
        }
    }

    /// Whether more was replicated than the rate allows.
    pub fn is_exceeded(&mut self, config: &QuotaConfig, now_ms: i64) -> bool {
        if config.rate_bytes_per_second == i64::MAX {
            return false;
        }
        self.purge(config, now_ms);
        let Some((oldest_ms, _)) = self.samples.front() else {
            return false;
        };
        let elapsed_ms = (now_ms - oldest_ms).max(config.window_size_ms);
        let bytes: u64 = self.samples.iter().map(|(_, bytes)| bytes).sum();
        let allowed = i128::from(config.rate_bytes_per_second) * i128::from(elapsed_ms);
        i128::from(bytes) * 1_000 > allowed
    }

    fn purge(&mut self, config: &QuotaConfig, now_ms: i64) {
        let window_num = i64::try_from(config.window_num).unwrap_or(i64::MAX);
        let span_ms = config.window_size_ms.saturating_mul(window_num);
        while let Some((began_ms, _)) = self.samples.front()
            && now_ms - began_ms >= span_ms
        {
            self.samples.pop_front();
        }
    }
}

/// Which replicas of a topic are throttled (`*.replication.throttled.replicas`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ThrottledReplicas {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// These partitions on these brokers.
    Of(Vec<(i32, i32)>),
}

impl ThrottledReplicas {
    /// Reads a value of the configuration, which was validated: `*`, or a list of
    /// `partition:broker`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let entries: Vec<&str> = text
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .collect();
        if entries.is_empty() {
            return Self::None;
        }
        if entries.contains(&"*") {
            return Self::All;
        }
        let pairs = entries.iter().filter_map(|entry| {
            let (partition, broker) = entry.split_once(':')?;
            Some((partition.trim().parse().ok()?, broker.trim().parse().ok()?))
        });
        Self::Of(pairs.collect())
    }

    /// Whether a partition is throttled on a broker.
    #[must_use]
    pub fn contains(&self, partition: i32, broker: i32) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Of(pairs) => pairs.contains(&(partition, broker)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_measured_over_the_window() {
        let config = QuotaConfig::of(1_000);
        let mut quota = ReplicationQuota::default();
        assert!(!quota.is_exceeded(&config, 0), "nothing was replicated");
        quota.record(1_000, &config, 0);
        assert!(!quota.is_exceeded(&config, 0));
        quota.record(1, &config, 0);
        assert!(quota.is_exceeded(&config, 0));
        assert!(quota.is_exceeded(&config, 1_000));
        assert!(!quota.is_exceeded(&config, 1_001), "1001 bytes in 1001 ms");
    }

    #[test]
    fn what_left_the_window_does_not_count() {
        let config = QuotaConfig::of(1_000);
        let mut quota = ReplicationQuota::default();
        quota.record(1_000_000, &config, 0);
        assert!(quota.is_exceeded(&config, 10_999));
        assert!(!quota.is_exceeded(&config, 11_000));
    }

    #[test]
    fn samples_are_bounded_by_the_window() {
        let config = QuotaConfig::of(1_000);
        let mut quota = ReplicationQuota::default();
        for now_ms in 0..100_000 {
            quota.record(1, &config, now_ms);
        }
        assert_eq!(quota.samples.len(), 11);
        assert!(!quota.is_exceeded(&config, 100_000), "1000 bytes a second");
    }

    #[test]
    fn without_a_rate_nothing_is_exceeded() {
        let config = QuotaConfig::of(i64::MAX);
        let mut quota = ReplicationQuota::default();
        quota.record(u64::MAX / 2_000, &config, 0);
        assert!(!quota.is_exceeded(&config, 0));
    }

    #[test]
    fn throttled_replicas_are_none_all_or_pairs() {
        assert_eq!(ThrottledReplicas::parse(""), ThrottledReplicas::None);
        assert_eq!(ThrottledReplicas::parse("*"), ThrottledReplicas::All);
        let of = ThrottledReplicas::parse("0:1, 2:3");
        assert_eq!(of, ThrottledReplicas::Of(vec![(0, 1), (2, 3)]));
        assert!(of.contains(2, 3));
        assert!(!of.contains(0, 3));
        assert!(ThrottledReplicas::All.contains(9, 9));
        assert!(!ThrottledReplicas::None.contains(0, 1));
    }
}
