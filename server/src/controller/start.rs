//! Taking the lead: a new epoch, the first records of a cluster, the registration of this node, then the thread.

use std::sync::Arc;
use std::thread::JoinHandle;

use highwater_replication::cluster::brokers::{
    BrokerRegistrationRequest, register_broker, unfence_broker,
};
use highwater_replication::cluster::records::{ConfigRecord, PartitionChangeRecord};
use highwater_replication::cluster::{ClusterImage, ConfigResource, MetadataRecord};
use highwater_storage::{BrokerEpoch, BrokerId, LeaderEpoch};
use tokio::sync::mpsc;

use super::handle::{ControllerHandle, Request};
use super::reserve::Reserve;
use super::writer::{Writer, now_ms};
use super::{ControllerError, ControllerNode, QuorumView, features, quorum_state};
use crate::config::QuorumVoter;
use crate::metadata::{MetadataError, MetadataPublisher, MetadataReplica, MetadataSubscriber};

/// Requests that may wait for the controller; more wait to be let in.
const REQUEST_QUEUE: usize = 1024;
/// The key that leader and controller must agree on (KIP-966).
const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";

/// What the controller of a single node needs to know.
#[derive(Debug, Clone)]
pub struct ControllerSettings {
    /// This node as a broker: it registers itself.
    pub registration: BrokerRegistrationRequest,
    /// The controllers of the quorum: this node.
    pub voters: Vec<QuorumVoter>,
    /// `min.insync.replicas` of the static configuration: a new cluster keeps it in its metadata, as leader and
    /// controller must agree on it (KIP-966).
    pub min_insync_replicas: i32,
    /// Whether every log directory was closed cleanly by the run that registered last. If not, partitions led by this
    /// node get a new leader epoch, so that records lost with an unsynced tail cannot be mistaken for new ones.
    pub last_stop_was_clean: bool,
    /// `metadata.log.max.record.bytes.between.snapshots`.
    pub max_bytes_between_snapshots: u64,
}

/// The running controller. Dropping it leaves the thread to end by itself; [`Controller::stop`] waits for it.
#[derive(Debug)]
pub struct Controller {
    handle: ControllerHandle,
    thread: JoinHandle<()>,
}

impl Controller {
    /// How the rest of the broker reaches the controller.
    pub fn handle(&self) -> &ControllerHandle {
        &self.handle
    }

    /// Takes no more requests, finishes those that were submitted, and waits for the thread. Blocks.
    pub fn stop(self) {
        if let Some(requests) = self.handle.requests() {
            // A closed channel means that the thread has ended already.
            let _ = requests.blocking_send(Request::Stop);
        }
        if self.thread.join().is_err() {
            tracing::error!("the controller thread panicked");
        }
    }
}

impl Controller {
    /// Leads from here on: begins an epoch, registers this node, tells `subscribers` of what that changes and serves
    /// requests on a thread of its own. Blocks on the disk.
    pub fn start(
        replica: MetadataReplica,
        settings: ControllerSettings,
        subscribers: Vec<MetadataSubscriber>,
    ) -> Result<Controller, ControllerError> {
        let node_id = settings.registration.id.0;
        let mut reserve = Reserve::new(replica.dir());
        let epoch = reserve.write_when_full(|| claim_epoch(&replica, node_id))?;
        let publisher = Arc::new(MetadataPublisher::new(replica.image().clone(), subscribers));
        let mut writer = Writer {
            metadata_log: replica.metadata_log().clone(),
            node_id,
            epoch,
            image: replica.image().clone(),
            publisher: publisher.clone(),
            timestamp_ms: replica.timestamp_ms(),
            bytes_since_snapshot: replica.bytes_since_snapshot(),
            max_bytes_between_snapshots: settings.max_bytes_between_snapshots,
            reserve,
            failed: None,
        };
        let quorum = QuorumView::new(
            node_id,
            settings.voters.clone(),
            replica.metadata_log().clone(),
        );
        let broker_epoch = write_first_records(&replica, &mut writer, settings)?;
        let own = quorum.voters().iter().find(|voter| voter.id == node_id);
        let (host, port) = own.map_or((String::new(), 0), |own| (own.host.clone(), own.port));
        quorum.set_active_controller(Some(ControllerNode {
            id: node_id,
            epoch,
            host,
            port,
        }));
        let (requests, receiver) = mpsc::channel(REQUEST_QUEUE);
        let handle = ControllerHandle::new(requests, publisher, Arc::new(quorum));
        handle.set_broker_epoch(broker_epoch);
        let thread = std::thread::Builder::new()
            .name("controller".to_owned())
            .spawn(move || writer.run(receiver))
            .map_err(|error| {
                highwater_storage::StorageError::io("start a thread for", replica.dir(), error)
            })?;
        Ok(Controller { handle, thread })
    }
}

/// The next epoch, durable before anything is written in it.
fn claim_epoch(replica: &MetadataReplica, node_id: i32) -> Result<i32, MetadataError> {
    let in_log = replica
        .log()
        .latest_epoch()
        .map_or(0, |epoch| epoch.0)
        .max(replica.image().epoch());
    let in_state = quorum_state::read_leader_epoch(replica.dir())?.unwrap_or(0);
    let epoch = in_log.max(in_state) + 1;
    quorum_state::write_leader_epoch(replica.dir(), node_id, epoch)?;
    replica
        .log()
        .assign_epoch_start(LeaderEpoch(epoch), replica.log().log_end_offset())?;
    Ok(epoch)
}

/// Writes the start of the epoch, what a new cluster begins with, and the registration of this node: with one
/// write to disk.
fn write_first_records(
    replica: &MetadataReplica,
    writer: &mut Writer,
    settings: ControllerSettings,
) -> Result<BrokerEpoch, ControllerError> {
    let now_ms = now_ms();
    let mut group = writer.new_group();
    writer.add_leader_change(&mut group, now_ms)?;
    if replica.in_transaction() {
        // The log's readers hold back what follows an open transaction.
        let reason = Some("the controller that began it is gone".to_owned());
        let abort = highwater_replication::cluster::records::AbortTransactionRecord { reason };
        writer.add(&mut group, &[abort.into()], now_ms)?;
    }
    let first = first_records(group.image(), settings.min_insync_replicas);
    writer.add(&mut group, &first, now_ms)?;
    let id = settings.registration.id;
    let (registration, broker_epoch) = register_broker(group.image(), settings.registration);
    writer.add(&mut group, &registration, now_ms)?;
    let unfence = unfence_broker(group.image(), id, broker_epoch)
        .map_err(|error| ControllerError::Incompatible(error.to_string()))?;
    writer.add(&mut group, &unfence, now_ms)?;
    let elections = elections(group.image(), id, settings.last_stop_was_clean);
    writer.add(&mut group, &elections, now_ms)?;
    writer.finish_first(group, now_ms)?;
    Ok(broker_epoch)
}

/// The records before all others of a new cluster, or what another release left that must change.
fn first_records(image: &ClusterImage, min_insync_replicas: i32) -> Vec<MetadataRecord> {
    let mut records = features::feature_records(image);
    let default_broker = ConfigResource::default_broker();
    let is_set = image
        .configs(&default_broker)
        .is_some_and(|configs| configs.contains_key(MIN_INSYNC_REPLICAS));
    if !is_set {
        let record = ConfigRecord {
            resource_type: default_broker.resource_type.id(),
            resource_name: default_broker.name.to_string(),
            name: MIN_INSYNC_REPLICAS.to_owned(),
            value: Some(min_insync_replicas.to_string()),
        };
        records.push(record.into());
    }
    records
}

/// Records that make `broker` the leader of every partition without one that it can lead (Apache Kafka takes the last
/// leader out of the in-sync replicas when it stops in order, and keeps it as eligible, KIP-966), and that raise the
/// leader epoch where it leads already and the last stop was not clean.
fn elections(
    image: &ClusterImage,
    broker: BrokerId,
    last_stop_was_clean: bool,
) -> Vec<MetadataRecord> {
    let mut records = Vec::new();
    for topic in image.topics() {
        for (partition, state) in topic.partitions.iter().enumerate() {
            let bump = state.leader == Some(broker) && !last_stop_was_clean;
            let in_sync = state.leader.is_none() && state.isr.contains(&broker);
            let eligible = state.leader.is_none()
                && state.isr.is_empty()
                && state.eligible_leader_replicas.contains(&broker);
            if !(bump || in_sync || eligible) {
                continue;
            }
            let mut record = PartitionChangeRecord {
                partition_id: partition as i32,
                topic_id: topic.id.0,
                leader: broker.0,
                ..PartitionChangeRecord::default()
            };
            if eligible {
                let others = state.eligible_leader_replicas.iter();
                let others = others.filter(|id| **id != broker).map(|id| id.0);
                record.isr = Some(vec![broker.0]);
                record.eligible_leader_replicas = Some(others.collect());
                record.last_known_elr = Some(Vec::new());
            }
            records.push(record.into());
        }
    }
    records
}
