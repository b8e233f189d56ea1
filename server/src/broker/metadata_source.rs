//! Where a node's metadata come from: the controller of the same process, or the observer that follows another.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use highwater_replication::cluster::registration::ControllerRegistrationRequest;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::Broker;
use super::start::StartError;
use super::wiring::min_insync_replicas;
use crate::config::{BrokerConfig, QuorumVoter};
use crate::controller::{
    Controller, ControllerBackground, ControllerHandle, ControllerSettings, QuorumView,
};
use crate::metadata::{MetadataPublisher, MetadataReplica};
use crate::peer::controller_registration::keep_registered;
use crate::peer::observer::MetadataObserver;

/// How long one registration of a controller is tried.
const REGISTRATION_PATIENCE: Duration = Duration::from_secs(60);

/// The part of a node that writes its copy of the metadata.
pub(super) struct MetadataSource {
    handle: ControllerHandle,
    part: Part,
    /// Periodic work of a controller.
    background: Option<ControllerBackground>,
    /// Keeps a controller registered with the active one.
    registering: JoinSet<()>,
    failure: watch::Sender<Option<Arc<str>>>,
}

enum Part {
    Controller(Controller),
    Observer(MetadataObserver),
}

impl MetadataSource {
    /// Begins to follow the cluster's metadata: as a voter of the quorum with the controller role, else as an observer.
    /// `own` is this node as it listens, `directory_id` where its metadata log is. Must run inside a tokio runtime.
    pub(super) fn start(
        replica: MetadataReplica,
        config: &BrokerConfig,
        own: QuorumVoter,
        directory_id: Uuid,
    ) -> Result<Self, StartError> {
        let failure = watch::Sender::new(None);
        if config.quorum.roles.controller {
            let settings = ControllerSettings {
                quorum: config.quorum_settings(own),
                min_insync_replicas: min_insync_replicas(config),
            };
            let controller = Controller::start(replica, settings, Vec::new())?;
            return Ok(Self {
                handle: controller.handle().clone(),
                part: Part::Controller(controller),
                background: None,
                registering: JoinSet::new(),
                failure,
            });
        }
        let image = Arc::clone(replica.image());
        let publisher = Arc::new(MetadataPublisher::new(Arc::clone(&image), Vec::new()));
        let view = Arc::new(QuorumView::new(
            config.node_id,
            config.quorum.voters.clone(),
            Arc::clone(replica.metadata_log()),
        ));
        let settings = config.observer(directory_id, image.cluster_id().to_string());
        let dir = replica.dir().to_owned();
        let on_failure = {
            let failure = failure.clone();
            move |error: crate::peer::observer::ObserverError| {
                failure.send_replace(Some(error.to_string().into()));
            }
        };
        let observer = MetadataObserver::start(
            replica,
            Arc::clone(&publisher),
            Arc::clone(&view),
            settings,
            on_failure,
        );
        let observer = observer.map_err(|error| {
            highwater_storage::StorageError::io("start a thread for", &dir, error)
        })?;
        Ok(Self {
            handle: ControllerHandle::without_controller(publisher, view),
            part: Part::Observer(observer),
            background: None,
            registering: JoinSet::new(),
            failure,
        })
    }

    /// How the rest of the node reaches the controller.
    pub(super) fn handle(&self) -> &ControllerHandle {
        &self.handle
    }

    /// The controller of this process.
    pub(super) fn controller(&self) -> Option<&Controller> {
        match &self.part {
            Part::Controller(controller) => Some(controller),
            Part::Observer(_) => None,
        }
    }

    /// Waits until the metadata can be used: the only controller decides alone, and at once; others may take a while to
    /// agree, and what they had agreed on before is good to begin with.
    pub(super) async fn until_usable(&self, config: &BrokerConfig) -> Result<(), StartError> {
        if let Part::Controller(controller) = &self.part
            && config.quorum.is_quorum_of_one()
        {
            controller.until_active().await?;
        }
        Ok(())
    }

    /// With what a controller does by itself, if it is one. `registration` is what it says of itself to the others.
    pub(super) fn with_background(
        mut self,
        broker: &Arc<Broker>,
        registration: ControllerRegistrationRequest,
    ) -> Self {
        if let Part::Controller(controller) = &self.part {
            // The only controller knows itself.
            if controller.handle().quorum().voters().len() > 1 {
                let channel = broker
                    .controllers
                    .channel("registration", REGISTRATION_PATIENCE);
                let handle = controller.handle().clone();
                self.registering
                    .spawn(keep_registered(registration, channel, handle));
            }
            self.background = Some(ControllerBackground::start(
                controller.handle(),
                &broker.broker_sessions,
                &broker.config,
            ));
        }
        self
    }

    /// Waits until the metadata can be followed no more, and says why.
    pub(super) fn until_failed(&self) -> BoxFuture<'static, Arc<str>> {
        let mut failure = self.failure.subscribe();
        match &self.part {
            Part::Controller(controller) => Box::pin(controller.until_failed()),
            Part::Observer(_) => Box::pin(async move {
                let reason = failure.wait_for(Option::is_some).await;
                let reason = reason.ok().and_then(|reason| reason.clone());
                match reason {
                    Some(reason) => reason,
                    // The node has stopped meanwhile.
                    None => std::future::pending().await,
                }
            }),
        }
    }

    /// Ends it and waits for its threads. Blocks.
    pub(super) fn stop(self) {
        drop((self.background, self.registering));
        match self.part {
            Part::Controller(controller) => controller.stop(),
            Part::Observer(observer) => observer.stop(),
        }
    }
}
