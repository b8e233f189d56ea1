//! BrokerHeartbeat: whether a broker is fenced, in service, stopping, or may stop now.

use highwater_storage::types::{BrokerEpoch, BrokerId};
use uuid::Uuid;

use super::broker_changes::{
    begin_controlled_shutdown, fence_broker, take_directories_offline, unfence_broker,
};
use super::brokers::check_broker_epoch;
use super::error::ClusterError;
use super::image::{BrokerRegistration, ClusterImage};
use super::liveness::BrokerLiveness;
use super::records::MetadataRecord;
use super::topic_rules::ReplicationDefaults;

/// What a broker tells of itself and asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerHeartbeat {
    /// The broker.
    pub id: BrokerId,
    /// Its epoch.
    pub epoch: BrokerEpoch,
    /// The last metadata offset that it has applied.
    pub current_metadata_offset: i64,
    /// It wants to be, or to stay, fenced.
    pub want_fence: bool,
    /// It wants to stop.
    pub want_shut_down: bool,
    /// Log directories that went offline.
    pub offline_log_dirs: Vec<Uuid>,
}

/// What a broker may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerControlState {
    /// It is out of service.
    Fenced,
    /// It is in service.
    Unfenced,
    /// Its leaderships are moving; it stays until everybody knows.
    ControlledShutdown,
    /// It is out of service and may stop.
    ShutdownNow,
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatReply {
    /// Whether the broker has applied the metadata up to its registration.
    pub is_caught_up: bool,
    /// What it may do from now on.
    pub state: BrokerControlState,
    /// In controlled shutdown: the offset from which on it leads nothing. To be told to
    /// [`BrokerLiveness::on_controlled_shutdown`] once the records are committed.
    pub controlled_shutdown_offset: Option<i64>,
}

impl HeartbeatReply {
    /// Whether the broker is out of service.
    pub fn is_fenced(&self) -> bool {
        matches!(
            self.state,
            BrokerControlState::Fenced | BrokerControlState::ShutdownNow
        )
    }

    /// Whether the broker may stop.
    pub fn should_shut_down(&self) -> bool {
        self.state == BrokerControlState::ShutdownNow
    }
}

/// The records that a heartbeat causes, and its answer. `liveness` must have been told of the heartbeat.
pub fn broker_heartbeat(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    liveness: &BrokerLiveness,
    heartbeat: &BrokerHeartbeat,
) -> Result<(Vec<MetadataRecord>, HeartbeatReply), ClusterError> {
    let (id, epoch) = (heartbeat.id, heartbeat.epoch);
    check_broker_epoch(image, id, epoch)?;
    let Some(broker) = image.broker(id) else {
        return Err(ClusterError::BrokerIdNotRegistered(format!(
            "Broker ID {id} is not currently registered"
        )));
    };
    let is_caught_up = heartbeat.current_metadata_offset >= epoch.0;
    let state = next_state(image, liveness, broker, heartbeat, is_caught_up);
    let mut records = match (current_state(broker), state) {
        (current, next) if current == next => Vec::new(),
        // Fenced already: nothing changes.
        (BrokerControlState::Fenced, BrokerControlState::ShutdownNow) => Vec::new(),
        (_, BrokerControlState::Fenced | BrokerControlState::ShutdownNow) => {
            fence_broker(image, defaults, id)?
        }
        (_, BrokerControlState::Unfenced) => unfence_broker(image, defaults, id, epoch)?,
        (_, BrokerControlState::ControlledShutdown) => {
            begin_controlled_shutdown(image, defaults, id)?
        }
    };
    if !heartbeat.offline_log_dirs.is_empty() {
        let offline = &heartbeat.offline_log_dirs;
        // Judged against what the records so far make of the cluster.
        let last_offset = image.offset() + records.len() as i64;
        let (changed, _) = image
            .apply(&records, last_offset, image.epoch())
            .map_err(|error| ClusterError::UnknownServerError(error.to_string()))?;
        records.extend(take_directories_offline(&changed, defaults, id, offline)?);
    }
    let controlled_shutdown_offset = (state == BrokerControlState::ControlledShutdown)
        .then(|| image.offset() + records.len() as i64);
    let reply = HeartbeatReply {
        is_caught_up,
        state,
        controlled_shutdown_offset,
    };
    Ok((records, reply))
}

fn current_state(broker: &BrokerRegistration) -> BrokerControlState {
    match (broker.fenced, broker.in_controlled_shutdown) {
        (true, _) => BrokerControlState::Fenced,
        (false, true) => BrokerControlState::ControlledShutdown,
        (false, false) => BrokerControlState::Unfenced,
    }
}

fn next_state(
    image: &ClusterImage,
    liveness: &BrokerLiveness,
    broker: &BrokerRegistration,
    heartbeat: &BrokerHeartbeat,
    is_caught_up: bool,
) -> BrokerControlState {
    use BrokerControlState::{ControlledShutdown, Fenced, ShutdownNow, Unfenced};
    match current_state(broker) {
        Fenced if heartbeat.want_shut_down => ShutdownNow,
        Fenced if !heartbeat.want_fence && is_caught_up => Unfenced,
        Fenced => Fenced,
        Unfenced if heartbeat.want_fence && heartbeat.want_shut_down => ShutdownNow,
        Unfenced if heartbeat.want_fence => Fenced,
        Unfenced if heartbeat.want_shut_down && !leads_anything(image, broker.id) => ShutdownNow,
        Unfenced if heartbeat.want_shut_down => ControlledShutdown,
        Unfenced => Unfenced,
        _ if leads_anything(image, broker.id) => ControlledShutdown,
        _ => match liveness.controlled_shutdown_offset(broker.id, broker.epoch) {
            Some(offset) if offset <= liveness.lowest_active_offset(image) => ShutdownNow,
            // The move was begun under another controller: what is known now is late enough.
            _ => ControlledShutdown,
        },
    }
}

fn leads_anything(image: &ClusterImage, id: BrokerId) -> bool {
    let mut partitions = image.topics().flat_map(|topic| &topic.partitions);
    partitions.any(|partition| partition.leader == Some(id))
}
