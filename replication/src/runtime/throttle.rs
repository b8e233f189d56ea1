//! The throttles of replication on this broker: as leader, and as follower.

use parking_lot::Mutex;

use crate::state::replication_quota::{QuotaConfig, ReplicationQuota};

/// One throttle.
#[derive(Debug)]
pub struct Throttle(Mutex<(QuotaConfig, ReplicationQuota)>);

impl Default for Throttle {
    /// Without a limit.
    fn default() -> Self {
        Self(Mutex::new((
            QuotaConfig::of(i64::MAX),
            ReplicationQuota::default(),
        )))
    }
}

impl Throttle {
    /// Takes up another limit.
    pub fn configure(&self, config: QuotaConfig) {
        self.0.lock().0 = config;
    }

    /// Takes note of so many bytes of throttled partitions.
    pub fn record(&self, bytes: u64, now_ms: i64) {
        let (config, quota) = &mut *self.0.lock();
        quota.record(bytes, config, now_ms);
    }

    /// Whether throttled partitions have to wait.
    pub fn is_exceeded(&self, now_ms: i64) -> bool {
        let (config, quota) = &mut *self.0.lock();
        quota.is_exceeded(config, now_ms)
    }
}
