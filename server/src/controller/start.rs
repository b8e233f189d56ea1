//! Starting the controller: the consensus, then the thread that judges requests; and the registration of a broker in the
//! same process.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use highwater_replication::cluster::brokers::{self, register_broker, unfence_broker};
use highwater_replication::cluster::records::{ConfigRecord, PartitionChangeRecord};
use highwater_replication::cluster::registration::BrokerRegistrationRequest;
use highwater_replication::cluster::{ClusterImage, ConfigResource, MetadataRecord};
use highwater_storage::{BrokerEpoch, BrokerId, StorageError};
use tokio::sync::{mpsc, watch};

use super::handle::ControllerHandle;
use super::quorum::{Events, Quorum, QuorumEvent, QuorumSettings};
use super::writer::{Activation, Writer, WriterState};
use super::{ControllerError, Decision, QuorumView, features};
use crate::metadata::{MetadataPublisher, MetadataReplica, MetadataSubscriber};

/// Requests that may wait for the controller; more wait to be let in.
const REQUEST_QUEUE: usize = 1024;
/// How long a start waits for this node to become the active controller, where it is the only one.
const ACTIVATION_PATIENCE: Duration = Duration::from_secs(60);
/// The key that leader and controller must agree on (KIP-966).
const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";

/// What a controller needs to know.
#[derive(Debug, Clone)]
pub struct ControllerSettings {
    /// The quorum that it is part of.
    pub quorum: QuorumSettings,
    /// `min.insync.replicas` of the static configuration: a new cluster keeps it in its metadata, as leader and
    /// controller must agree on it (KIP-966).
    pub min_insync_replicas: i32,
}

/// The running controller. Dropping it leaves its threads to end by themselves; [`Controller::stop`] waits for them.
#[derive(Debug)]
pub struct Controller {
    handle: ControllerHandle,
    events: Events,
    activation: watch::Receiver<Activation>,
    thread: JoinHandle<()>,
}

impl Controller {
    /// Takes up the consensus where this node left it, tells `subscribers` of what changes from here on, and serves
    /// requests whenever this node is the active controller. Blocks on the disk.
    ///
    /// # Errors
    /// When what is on disk cannot be read, or belongs to a quorum of other nodes.
    pub fn start(
        replica: MetadataReplica,
        settings: ControllerSettings,
        subscribers: Vec<MetadataSubscriber>,
    ) -> Result<Controller, ControllerError> {
        let ControllerSettings {
            quorum: settings,
            min_insync_replicas,
        } = settings;
        let dir = replica.dir().to_owned();
        let image = Arc::clone(replica.image());
        let view = QuorumView::new(
            settings.node_id,
            settings.voters.clone(),
            Arc::clone(replica.metadata_log()),
        );
        let view = Arc::new(view);
        let publisher = Arc::new(MetadataPublisher::new(Arc::clone(&image), subscribers));
        let (events, received_events) = mpsc::unbounded_channel();
        let quorum = Quorum::start(replica, &view, &settings, events.clone())?;
        let (requests, received_requests) = mpsc::channel(REQUEST_QUEUE);
        let handle = ControllerHandle::new(
            requests,
            Arc::clone(&publisher),
            Arc::clone(&view),
            Arc::clone(quorum.server()),
        );
        let (activation, watched) = watch::channel(Activation::Inactive);
        let writer = Writer {
            quorum,
            view,
            publisher,
            image,
            min_insync_replicas,
            activation,
            state: WriterState::default(),
        };
        let failed = |error| StorageError::io("start a thread for", &dir, error);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(failed)?;
        let thread = std::thread::Builder::new()
            .name("controller".to_owned())
            .spawn(move || runtime.block_on(writer.run(received_requests, received_events)))
            .map_err(failed)?;
        Ok(Controller {
            handle,
            events,
            activation: watched,
            thread,
        })
    }

    /// How the rest of the process reaches the controller.
    pub fn handle(&self) -> &ControllerHandle {
        &self.handle
    }

    /// Waits until this node is the active controller; for a quorum of one.
    ///
    /// # Errors
    /// When the controller has failed, or another one is active for too long.
    pub async fn until_active(&self) -> Result<(), ControllerError> {
        let mut activation = self.activation.clone();
        let until_decided =
            activation.wait_for(|activation| !matches!(activation, Activation::Inactive));
        match tokio::time::timeout(ACTIVATION_PATIENCE, until_decided).await {
            Ok(Ok(activation)) => match &*activation {
                Activation::Failed(reason) => Err(ControllerError::Failed(reason.clone())),
                Activation::Active | Activation::Inactive => Ok(()),
            },
            Ok(Err(_)) => Err(ControllerError::Stopping),
            Err(_) => Err(ControllerError::NotController {
                leader: self.handle.quorum().leader_id(),
            }),
        }
    }

    /// Registers a broker of this process, which must be the only broker and this the only controller, and lets it lead
    /// what it can lead, all with one entry: nobody else needs to be told of the end of the run before. `last_stop_was_clean` says whether every
    /// log directory was closed cleanly by the run that registered last: if not, partitions that it leads get a new
    /// leader epoch, so that records lost with an unsynced tail cannot be mistaken for new ones.
    ///
    /// # Errors
    /// When the controller is not active or cannot write.
    pub async fn register(
        &self,
        registration: BrokerRegistrationRequest,
        last_stop_was_clean: bool,
    ) -> Result<BrokerEpoch, ControllerError> {
        let submitted = self.handle.submit(move |image, _| {
            match registered(image, registration, last_stop_was_clean) {
                Ok((records, epoch)) => Decision {
                    records,
                    response: Ok(epoch),
                },
                Err(error) => Decision::unchanged(Err(error)),
            }
        });
        let epoch = submitted.await??;
        self.handle.set_broker_epoch(epoch);
        Ok(epoch)
    }

    /// Takes no more requests, finishes those that were submitted, and waits for the threads. Blocks.
    pub fn stop(self) {
        // A closed channel means that the thread has ended already.
        let _ = self.events.send(QuorumEvent::Stop);
        if self.thread.join().is_err() {
            tracing::error!("the controller thread panicked");
        }
    }
}

/// The records that register a broker, let it lead, and elect it where nobody else leads.
fn registered(
    image: &ClusterImage,
    registration: BrokerRegistrationRequest,
    last_stop_was_clean: bool,
) -> Result<(Vec<MetadataRecord>, BrokerEpoch), ControllerError> {
    let id = registration.id;
    let mut image = image.clone();
    let mut records = Vec::new();
    let mut add = |image: &mut ClusterImage, more: Vec<MetadataRecord>| {
        let last_offset = image.offset() + more.len() as i64;
        let applied = image.apply(&more, last_offset, image.epoch());
        *image = applied
            .map_err(|source| crate::metadata::MetadataError::Apply {
                offset: last_offset + 1,
                source,
            })?
            .0;
        records.extend(more);
        Ok::<_, ControllerError>(())
    };
    let registration = brokers::BrokerRegistrationRequest {
        id,
        incarnation_id: registration.incarnation_id,
        end_points: registration.end_points,
        features: registration.features,
        rack: registration.rack,
        log_dirs: registration.log_dirs,
    };
    let (register, epoch) = register_broker(&image, registration);
    add(&mut image, register)?;
    let unfence = unfence_broker(&image, id, epoch)
        .map_err(|error| ControllerError::Incompatible(error.to_string()))?;
    add(&mut image, unfence)?;
    let elections = elections(&image, id, last_stop_was_clean);
    records.extend(elections);
    Ok((records, epoch))
}

/// The records before all others of a new cluster, or what another release left that must change.
pub(super) fn first_records(image: &ClusterImage, min_insync_replicas: i32) -> Vec<MetadataRecord> {
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
