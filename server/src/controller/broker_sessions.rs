//! The sessions of brokers, which only the active controller keeps: what it knew is forgotten with its epoch.

use std::time::Instant;

use highwater_replication::cluster::ClusterImage;
use highwater_replication::cluster::liveness::{BrokerLiveness, LivenessConfig};
use parking_lot::Mutex;

/// Sessions of all brokers, under the clock of this process. Every use names the epoch that this node leads in; the
/// first one of an epoch begins afresh.
#[derive(Debug)]
pub struct BrokerSessions {
    started: Instant,
    config: LivenessConfig,
    sessions: Mutex<Option<(i32, BrokerLiveness)>>,
}

impl BrokerSessions {
    /// No session yet.
    pub fn new(config: LivenessConfig) -> Self {
        Self {
            started: Instant::now(),
            config,
            sessions: Mutex::new(None),
        }
    }

    /// How long brokers may be silent.
    pub fn config(&self) -> &LivenessConfig {
        &self.config
    }

    /// Milliseconds of a clock that never goes back.
    pub fn now_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Reads or changes the sessions of the epoch that this node leads in, at the time that is handed on in ms. `image`
    /// is the latest: brokers in service in it get a session when the epoch is new.
    pub fn with<R>(
        &self,
        epoch: i32,
        image: &ClusterImage,
        act: impl FnOnce(&mut BrokerLiveness, i64) -> R,
    ) -> R {
        let now_ms = self.now_ms();
        let mut sessions = self.sessions.lock();
        let of_epoch = match sessions.take() {
            Some((of_epoch, sessions)) if of_epoch >= epoch => (of_epoch, sessions),
            _ => (epoch, BrokerLiveness::new(self.config, image, now_ms)),
        };
        let (_, liveness) = sessions.insert(of_epoch);
        act(liveness, now_ms)
    }
}
