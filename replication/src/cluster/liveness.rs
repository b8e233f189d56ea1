//! Which brokers are alive, as the active controller sees it: when each was last heard of, how far it has followed the
//! metadata, and whether its connection is gone. None of it is in the metadata; a new controller begins afresh.
//!
//! Times are milliseconds of a clock that never goes back; they are arguments.

use std::collections::BTreeMap;

use highwater_storage::types::{BrokerEpoch, BrokerId};

use super::image::ClusterImage;

/// How long brokers may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivenessConfig {
    /// `broker.session.timeout.ms`: a broker that is silent for longer is fenced.
    pub session_timeout_ms: i64,
    /// A broker whose heartbeat connection ended and that does not come back within this is fenced early; `None` to
    /// wait for the session to end.
    pub disconnect_grace_ms: Option<i64>,
}

impl LivenessConfig {
    /// A configuration with Kafka's session time-out. A live broker whose connection broke has time for its next
    /// heartbeat (2 of 9 seconds by default) before it is given up for dead.
    pub fn new(session_timeout_ms: i64) -> Self {
        Self {
            session_timeout_ms,
            disconnect_grace_ms: Some(session_timeout_ms / 4),
        }
    }

    /// How often to look for sessions that ended.
    pub fn check_interval_ms(&self) -> i64 {
        (self.session_timeout_ms / 8).max(1)
    }
}

/// One run of a broker, as far as it was heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Session {
    epoch: BrokerEpoch,
    last_contact_ms: i64,
    /// When the connection of its last heartbeat ended, if it was not heard of since.
    disconnected_at_ms: Option<i64>,
    /// Since then nobody listens where it is reached: its process has ended.
    is_process_gone: bool,
    /// It was fenced for a lost connection and came back: a lost connection proves nothing about it.
    survives_disconnects: bool,
    /// Last metadata offset that it said to have applied, -1 before the first heartbeat.
    metadata_offset: i64,
    /// Offset at which its leaderships have moved, once it is in controlled shutdown.
    controlled_shutdown_offset: Option<i64>,
}

/// The sessions of all brokers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerLiveness {
    config: LivenessConfig,
    sessions: BTreeMap<BrokerId, Session>,
}

impl BrokerLiveness {
    /// What a controller knows when it becomes the active one: nothing, so every broker in service gets a whole session
    /// to be heard of.
    pub fn new(config: LivenessConfig, image: &ClusterImage, now_ms: i64) -> Self {
        let mut liveness = Self {
            config,
            sessions: BTreeMap::new(),
        };
        for broker in image.brokers().values().filter(|broker| !broker.fenced) {
            liveness.begin_session(broker.id, broker.epoch, now_ms);
        }
        liveness
    }

    /// How long brokers may be silent.
    pub fn config(&self) -> &LivenessConfig {
        &self.config
    }

    /// Changes how long brokers may be silent.
    pub fn set_config(&mut self, config: LivenessConfig) {
        self.config = config;
    }

    /// A broker run registered: its session begins, that of an earlier run ends.
    pub fn on_registered(&mut self, id: BrokerId, epoch: BrokerEpoch, now_ms: i64) {
        match self.sessions.get_mut(&id) {
            Some(session) if session.epoch > epoch => {}
            Some(session) if session.epoch == epoch => session.last_contact_ms = now_ms,
            _ => self.begin_session(id, epoch, now_ms),
        }
    }

    /// A heartbeat came in, whatever will be answered. One that is not of the registered run says nothing.
    pub fn on_heartbeat(
        &mut self,
        image: &ClusterImage,
        id: BrokerId,
        epoch: BrokerEpoch,
        metadata_offset: i64,
        now_ms: i64,
    ) {
        if image.broker(id).is_none_or(|broker| broker.epoch != epoch) {
            return;
        }
        self.on_registered(id, epoch, now_ms);
        let grace_ms = self.config.disconnect_grace_ms;
        if let Some(session) = self.session_mut(id, epoch) {
            let is_late =
                |since: i64| grace_ms.is_some_and(|grace| now_ms.saturating_sub(since) > grace);
            let disconnected = session.disconnected_at_ms.take();
            let was_gone = std::mem::take(&mut session.is_process_gone);
            session.survives_disconnects |= was_gone || disconnected.is_some_and(is_late);
            session.last_contact_ms = session.last_contact_ms.max(now_ms);
            session.metadata_offset = metadata_offset;
        }
    }

    /// The connection of a broker's heartbeats ended.
    pub fn on_disconnected(&mut self, id: BrokerId, epoch: BrokerEpoch, now_ms: i64) {
        if let Some(session) = self.session_mut(id, epoch) {
            session.disconnected_at_ms.get_or_insert(now_ms);
        }
    }

    /// Brokers in service whose connection ended and that were not heard of since, for somebody to look whether their
    /// processes are there. Not those who came back before.
    pub fn suspects(&self, image: &ClusterImage) -> Vec<(BrokerId, BrokerEpoch)> {
        let is_suspect = |session: &Session| {
            let is_judged = session.survives_disconnects || session.is_process_gone;
            session.disconnected_at_ms.is_some() && !is_judged
        };
        let sessions = self.sessions.iter();
        sessions
            .filter(|(id, session)| {
                let broker = image.broker(**id);
                let is_in_service = broker.is_some_and(|b| b.epoch == session.epoch && !b.fenced);
                is_in_service && is_suspect(session)
            })
            .map(|(id, session)| (*id, session.epoch))
            .collect()
    }

    /// Nobody listens where a suspect is reached. Without grace it is given up for dead, unless it was heard of since.
    pub fn on_process_gone(&mut self, id: BrokerId, epoch: BrokerEpoch) {
        if let Some(session) = self.session_mut(id, epoch) {
            session.is_process_gone = session.disconnected_at_ms.is_some();
        }
    }

    /// The leaderships of a stopping broker have moved with the records up to `offset`.
    pub fn on_controlled_shutdown(&mut self, id: BrokerId, epoch: BrokerEpoch, offset: i64) {
        if let Some(session) = self.session_mut(id, epoch) {
            session.controlled_shutdown_offset.get_or_insert(offset);
        }
    }

    /// A broker was told to shut down, or left the cluster: another process may take its id at once.
    pub fn on_session_end(&mut self, id: BrokerId, epoch: BrokerEpoch) {
        if self.session_mut(id, epoch).is_some() {
            self.sessions.remove(&id);
        }
    }

    /// Whether this run of the broker was heard of within the session time-out.
    pub fn has_live_session(&self, id: BrokerId, epoch: BrokerEpoch, now_ms: i64) -> bool {
        let session = self.sessions.get(&id);
        session.is_some_and(|session| session.epoch == epoch && !self.is_over(session, now_ms))
    }

    /// The broker in service that has been silent for too long; of several the one that was silent longest. Fence one,
    /// then ask again, so that each sees the effect of the one before.
    pub fn expired_broker(&mut self, image: &ClusterImage, now_ms: i64) -> Option<BrokerId> {
        let in_service = image.brokers().values().filter(|broker| !broker.fenced);
        for broker in in_service.clone() {
            if self.session_mut(broker.id, broker.epoch).is_none() {
                // Unfenced by an earlier controller after this one has looked.
                self.on_registered(broker.id, broker.epoch, now_ms);
            }
        }
        in_service
            .filter_map(|broker| Some((self.sessions.get(&broker.id)?, broker)))
            .filter(|(session, broker)| {
                session.epoch == broker.epoch && self.is_over(session, now_ms)
            })
            .min_by_key(|(session, _)| session.last_contact_ms)
            .map(|(_, broker)| broker.id)
    }

    /// The offset of the metadata that every active broker has applied; the highest there is when none is active.
    pub fn lowest_active_offset(&self, image: &ClusterImage) -> i64 {
        let active = image.brokers().values().filter(|broker| broker.is_active());
        let offsets = active.map(|broker| match self.sessions.get(&broker.id) {
            Some(session) if session.epoch == broker.epoch => session.metadata_offset,
            _ => -1,
        });
        offsets.min().unwrap_or(i64::MAX)
    }

    /// The offset from which on this broker in controlled shutdown leads nothing, if it is known.
    pub fn controlled_shutdown_offset(&self, id: BrokerId, epoch: BrokerEpoch) -> Option<i64> {
        let session = self.sessions.get(&id)?;
        session
            .controlled_shutdown_offset
            .filter(|_| session.epoch == epoch)
    }

    /// The metadata offset that a broker said to have applied; `None` before its first heartbeat.
    pub fn metadata_offset(&self, id: BrokerId, epoch: BrokerEpoch) -> Option<i64> {
        let session = self
            .sessions
            .get(&id)
            .filter(|session| session.epoch == epoch)?;
        (session.metadata_offset >= 0).then_some(session.metadata_offset)
    }

    fn begin_session(&mut self, id: BrokerId, epoch: BrokerEpoch, now_ms: i64) {
        let session = Session {
            epoch,
            last_contact_ms: now_ms,
            disconnected_at_ms: None,
            is_process_gone: false,
            survives_disconnects: false,
            metadata_offset: -1,
            controlled_shutdown_offset: None,
        };
        self.sessions.insert(id, session);
    }

    fn session_mut(&mut self, id: BrokerId, epoch: BrokerEpoch) -> Option<&mut Session> {
        self.sessions
            .get_mut(&id)
            .filter(|session| session.epoch == epoch)
    }

    fn is_over(&self, session: &Session, now_ms: i64) -> bool {
        let silent_ms = now_ms.saturating_sub(session.last_contact_ms);
        if silent_ms > self.config.session_timeout_ms {
            return true;
        }
        match (session.disconnected_at_ms, self.config.disconnect_grace_ms) {
            (Some(since), Some(grace)) if !session.survives_disconnects => {
                session.is_process_gone || now_ms.saturating_sub(since) > grace
            }
            _ => false,
        }
    }
}
