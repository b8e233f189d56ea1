//! Starting the controller: the consensus, then the thread that judges requests; and the registration of a broker in the
//! same process.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use highwater_replication::cluster::lone_broker::register_lone_broker;
use highwater_replication::cluster::records::ConfigRecord;
use highwater_replication::cluster::registration::BrokerRegistrationRequest;
use highwater_replication::cluster::{
    ClusterImage, ConfigResource, MetadataRecord, ReplicationDefaults,
};
use highwater_storage::{BrokerEpoch, StorageError};
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

    /// Waits until the controller has failed, and says why: it writes nothing and votes no more before a restart.
    pub fn until_failed(&self) -> impl Future<Output = Arc<str>> + Send + use<> {
        let mut activation = self.activation.clone();
        async move {
            let has_failed = |activation: &Activation| matches!(activation, Activation::Failed(_));
            match activation.wait_for(has_failed).await.as_deref() {
                Ok(Activation::Failed(reason)) => {
                    format!("the controller has failed: {reason}").into()
                }
                // Its thread has ended without being told to.
                _ => "the controller has failed".into(),
            }
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
            // Nobody else is there: no setting of replicas matters.
            let defaults = ReplicationDefaults::default();
            match register_lone_broker(image, &defaults, registration, last_stop_was_clean) {
                Ok((records, epoch)) => Decision {
                    records,
                    response: Ok(epoch),
                },
                Err(error) => Decision::unchanged(Err(error)),
            }
        });
        let registered = submitted.await?;
        let epoch = registered.map_err(|error| ControllerError::Incompatible(error.to_string()))?;
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
