//! The sessions of brokers, which only the active controller keeps: what it knew is forgotten with its epoch.

use std::collections::BTreeMap;
use std::time::Instant;

use highwater_replication::cluster::ClusterImage;
use highwater_replication::cluster::liveness::{BrokerLiveness, LivenessConfig};
use highwater_storage::{BrokerEpoch, BrokerId};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Sessions of all brokers, under the clock of this process. Every use names the epoch that this node leads in; the
/// first one of an epoch begins afresh.
#[derive(Debug)]
pub struct BrokerSessions {
    started: Instant,
    config: LivenessConfig,
    sessions: Mutex<Option<(i32, BrokerLiveness)>>,
    /// The connection that the last heartbeat of each broker came over, with the broker's epoch.
    connections: Mutex<BTreeMap<BrokerId, (u64, BrokerEpoch)>>,
    /// The connection of a broker's heartbeats has ended.
    disconnected: Notify,
}

impl BrokerSessions {
    /// No session yet.
    pub fn new(config: LivenessConfig) -> Self {
        Self {
            started: Instant::now(),
            config,
            sessions: Mutex::new(None),
            connections: Mutex::default(),
            disconnected: Notify::new(),
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

    /// A heartbeat of a registered broker came over this connection.
    pub fn on_heartbeat_over(&self, connection_id: u64, id: BrokerId, epoch: BrokerEpoch) {
        self.connections.lock().insert(id, (connection_id, epoch));
    }

    /// A connection has ended. If a broker's last heartbeat came over it, the broker may be dead.
    pub fn on_connection_end(&self, connection_id: u64) {
        let broker = {
            let mut connections = self.connections.lock();
            let mut of_brokers = connections.iter();
            let broker = of_brokers
                .find(|(_, (connection, _))| *connection == connection_id)
                .map(|(id, (_, epoch))| (*id, *epoch));
            if let Some((id, _)) = broker {
                connections.remove(&id);
            }
            broker
        };
        let Some((id, epoch)) = broker else {
            return;
        };
        let now_ms = self.now_ms();
        if let Some((_, liveness)) = &mut *self.sessions.lock() {
            tracing::debug!(
                broker_id = id.0,
                "the connection of a broker's heartbeats ended"
            );
            liveness.on_disconnected(id, epoch, now_ms);
            self.disconnected.notify_one();
        }
    }

    /// Waits until the connection of some broker's heartbeats ends. For one waiter.
    pub async fn until_disconnected(&self) {
        self.disconnected.notified().await;
    }
}
