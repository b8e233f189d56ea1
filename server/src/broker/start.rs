//! Starting a node, part by part, and stopping it in reverse.
//!
//! What a node has depends on its roles: a controller takes part in the quorum, a broker hosts partitions, registers and
//! sends heartbeats. A node with one of them only lacks the other's parts, but is built the same way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use highwater_replication::cluster::liveness::LivenessConfig;
use highwater_replication::runtime::replica_manager::ReplicaManager;
use highwater_storage::{BrokerId, LogManager, StorageError};
use uuid::Uuid;

use super::Broker;
use super::background::Background;
use super::membership::{Membership, MembershipParts};
use super::metadata_source::MetadataSource;
use super::wiring::{
    apply_dynamic_config, broker_subscribers, config_subscriber, controller_registration,
    group_coordinator, own_voter, recover_metadata, registration,
};
use crate::broker::now_ms;
use crate::config::{BrokerConfig, DynamicConfig};
use crate::controller::{BrokerSessions, ControllerError, ControllerHandle};
use crate::fetch_session::FetchSessionCache;
use crate::log_dirs::LogDirs;
use crate::metadata::MetadataError;
use crate::network::{BindError, Listener, ListenerKind, NetworkMetrics, SocketServer};
use crate::peer::auto_topics::AutoTopicCreation;
use crate::peer::controller_channel::{ControllerChannels, LocalController};
use crate::peer::lifecycle::LifecycleEnded;
use crate::peer::producer_ids::ProducerIdManager;
use crate::refusals::Refusals;

/// How long connections may take to send what they owe when the broker stops.
const CONNECTION_GRACE: Duration = Duration::from_secs(3);
/// How long a request that is handed on to the controller may take, as in Kafka.
const FORWARDING_PATIENCE: Duration = Duration::from_secs(60);
/// How long a producer waits for a block of ids; then it is told to ask again.
const PRODUCER_ID_PATIENCE: Duration = Duration::from_secs(5);
/// After so long a fetch session may be evicted by another, as in Kafka.
const FETCH_SESSION_EVICTION_MS: i64 = 120_000;

/// The listeners of a node with their real ports. Nobody is served yet: that begins with [`RunningBroker::start`].
pub struct BoundListeners {
    server: SocketServer,
    metrics: Arc<NetworkMetrics>,
}

impl BoundListeners {
    /// Binds what `listeners` names. Done before the data directories are opened, so that a start with a port in use
    /// changes nothing on disk. Must run inside a tokio runtime.
    ///
    /// # Errors
    /// When one cannot be bound; the text names it.
    pub fn bind(config: &BrokerConfig) -> Result<Self, BindError> {
        let metrics = Arc::new(NetworkMetrics::default());
        let server = SocketServer::bind(
            &config.network_listeners(),
            config.network(),
            Arc::clone(&metrics),
        )?;
        Ok(BoundListeners { server, metrics })
    }
}

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The metadata cannot be read or written.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The controller cannot start.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// The data directories cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The controllers do not take this broker.
    #[error(transparent)]
    Lifecycle(#[from] LifecycleEnded),
}

/// A node that serves, with what is needed to stop it.
pub struct RunningBroker {
    broker: Arc<Broker>,
    server: SocketServer,
    metadata: MetadataSource,
    /// `None` without the broker role.
    membership: Option<Membership>,
    /// `None` without the broker role.
    background: Option<Background>,
}

impl RunningBroker {
    /// Starts a node on its listeners and data directories, and waits until it serves: a broker until the controllers have let it in.
    /// Blocks on the disk and must run inside a tokio runtime, on a thread that may block.
    ///
    /// # Errors
    /// When the data or the metadata cannot be used, or the controllers do not let the broker in.
    pub async fn start(
        listeners: BoundListeners,
        log_dirs: LogDirs,
        config: Arc<DynamicConfig>,
    ) -> Result<Self, StartError> {
        let BoundListeners {
            mut server,
            metrics: network_metrics,
        } = listeners;
        let LogDirs {
            manager,
            cluster_id,
            directory_ids,
            ..
        } = log_dirs;
        let logs = Arc::new(manager);
        let current = config.current();
        let replica = recover_metadata(&logs, &cluster_id, &current)?;
        let id = BrokerId(current.node_id);
        let image = Arc::clone(replica.image());
        let current = apply_dynamic_config(&config, &image, id);
        server.settings().replace(current.network());
        logs.set_cleaner_io_max_bytes_per_second(current.log_cleaner_io_max_bytes_per_second);

        let own = own_voter(id, server.listeners());
        // The metadata log lies in the first of them.
        let directory_id = directory_ids.first().map_or_else(Uuid::nil, |id| id.0);
        let metadata = MetadataSource::start(replica, &current, own, directory_id)?;
        let controller = metadata.handle().clone();
        let log_dirs = logs.log_dirs().into_iter().map(|dir| dir.path);
        let ids = log_dirs.zip(directory_ids.iter().map(|id| id.0)).collect();
        let replicas = ReplicaManager::new(id, logs, current.topic_defaults.clone());
        replicas.set_directory_ids(ids);
        replicas.configure(current.replication());
        let local = Arc::new(LocalController::new(Arc::clone(&network_metrics)));
        let channels = ControllerChannels::new(
            id.0,
            controller.active_controller(),
            Arc::clone(&local),
            current.controller_client(),
        );
        let broker = broker(
            network_metrics,
            Arc::new(replicas),
            controller,
            channels,
            config,
        );
        local.open(&broker);
        let follow_config =
            config_subscriber(id, &broker.replicas, &broker.config, server.settings());
        // From the image that the configuration above was taken from, so that no change is missed. Before all others: the
        // default of min.insync.replicas is to be known before a smaller ISR is.
        broker
            .controller
            .publisher()
            .join(&image, vec![follow_config]);
        // The other controllers are answered at once: without this one they may have no majority.
        server.start_listeners(ListenerKind::Controller, &broker);
        metadata.until_usable(&current).await?;
        let as_controller = controller_registration(&current, server.listeners());
        let metadata = metadata.with_background(&broker, as_controller);

        let mut running = RunningBroker {
            broker,
            server,
            metadata,
            membership: None,
            background: None,
        };
        if current.quorum.roles.broker {
            let registration = registration(
                &current,
                running.server.listeners(),
                &cluster_id,
                &directory_ids,
                running.broker.replicas.logs(),
            );
            let failed = running.metadata.until_failed();
            let entered = tokio::select! {
                entered = running.enter(&current, registration) => entered,
                reason = failed => Err(ControllerError::Failed(reason).into()),
            };
            if let Err(error) = entered {
                // As if it had been told to stop: the next start finds closed logs.
                running.stop().await?;
                return Err(error);
            }
        }
        Ok(running)
    }

    /// Hosts what the metadata assign to this broker, enters the cluster, and serves clients.
    async fn enter(
        &mut self,
        current: &BrokerConfig,
        registration: super::wiring::BrokerRegistration,
    ) -> Result<(), StartError> {
        let broker = &self.broker;
        let id = broker.controller.broker_id();
        let image = broker.controller.image();
        broker.replicas.load(&image, now_ms());
        broker.groups.on_start(&image, id);
        let subscribers = broker_subscribers(id, &broker.replicas, &broker.groups);
        broker.controller.publisher().join(&image, subscribers);
        let parts = MembershipParts {
            broker,
            config: current,
            registration,
        };
        let membership = self
            .membership
            .insert(Membership::enter(parts, self.metadata.controller()).await?);
        membership.until_running().await?;
        self.background = Some(Background::start(&broker.replicas, current));
        self.server
            .start_listeners(ListenerKind::Broker, &self.broker);
        Ok(())
    }

    /// What handlers reach everything through.
    pub fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// The bound listeners, in the order of the configuration.
    pub fn listeners(&self) -> &[Arc<Listener>] {
        self.server.listeners()
    }

    /// Waits until this node cannot go on, and says why: its copy of the metadata no longer follows the cluster's, or its
    /// controller can write none.
    pub async fn until_failed(&self) -> Arc<str> {
        self.metadata.until_failed().await
    }

    /// Hands over what this broker leads, stops accepting, answers what is parked, stops the controller, writes
    /// everything to disk and marks the directories as cleanly closed.
    ///
    /// # Errors
    /// When the logs cannot be closed; the next start recovers them.
    pub async fn stop(self) -> Result<(), StorageError> {
        let RunningBroker {
            broker,
            server,
            metadata,
            membership,
            background,
        } = self;
        if let Some(membership) = &membership {
            membership.leave(&broker).await;
        }
        broker.stopping.store(true, Ordering::Release);
        broker.replicas.wake_all();
        broker.groups.shutdown();
        server.stop(CONNECTION_GRACE).await;
        if let Some(background) = background {
            background.stop().await;
        }
        broker.replicas.stop().await;
        if let Some(membership) = membership {
            membership.end().await;
        }
        let logs = Arc::clone(broker.replicas.logs());
        let broker_epoch = broker.controller.broker_epoch();
        let publisher = Arc::clone(broker.controller.publisher());
        let closed = tokio::task::spawn_blocking(move || {
            metadata.stop();
            publisher.close();
            LogManager::close(&logs, broker_epoch.0)
        });
        match closed.await {
            Ok(closed) => closed,
            Err(error) => {
                tracing::error!(%error, "closing the logs failed");
                Ok(())
            }
        }
    }
}

/// What handlers reach everything through; a node without the broker role hosts nothing and coordinates nothing.
fn broker(
    network_metrics: Arc<NetworkMetrics>,
    replicas: Arc<ReplicaManager>,
    controller: ControllerHandle,
    controllers: ControllerChannels,
    config: Arc<DynamicConfig>,
) -> Arc<Broker> {
    let current = config.current();
    let session_timeout_ms = current.broker_session_timeout_ms.into();
    let sessions = BrokerSessions::new(LivenessConfig::new(session_timeout_ms));
    let forwarding = controllers.channel("forwarding", FORWARDING_PATIENCE);
    let fetch_session_slots = usize::try_from(current.max_incremental_fetch_session_cache_slots);
    Arc::new(Broker {
        network_metrics,
        refusals: Refusals::default(),
        groups: group_coordinator(&current, &replicas),
        replicas,
        fetch_sessions: FetchSessionCache::new(
            fetch_session_slots.unwrap_or(0),
            FETCH_SESSION_EVICTION_MS,
        ),
        fetch_max_bytes: current.fetch_max_bytes,
        broker_sessions: Arc::new(sessions),
        producer_ids: ProducerIdManager::new(
            controllers.channel("producer-ids", PRODUCER_ID_PATIENCE),
            controller.clone(),
        ),
        auto_topics: AutoTopicCreation::new(forwarding.clone(), Arc::clone(&config)),
        forwarding,
        config,
        controller,
        controllers,
        stopping: AtomicBool::new(false),
    })
}
