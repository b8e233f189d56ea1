//! Starting a broker, part by part, and stopping it in reverse.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use highwater_replication::cluster::brokers::BrokerRegistrationRequest;
use highwater_replication::cluster::liveness::LivenessConfig;
use highwater_replication::cluster::records::Endpoint;
use highwater_replication::cluster::{ClusterImage, ConfigResource};
use highwater_replication::runtime::replica_manager::ReplicaManager;
use highwater_storage::record_batch::Compression;
use highwater_storage::{BrokerId, LogConfig, LogManager, StorageError, TopicId};
use uuid::Uuid;

use super::background::Background;
use super::{Broker, now_ms};
use crate::config::{BrokerConfig, DynamicConfig, QuorumConfig, QuorumVoter, SecurityProtocol};
use crate::controller::{
    AutoTopicCreation, BrokerSessions, Controller, ControllerError, ControllerSettings,
    ProducerIdManager, supported_features,
};
use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::group::replicated_log::ReplicatedOffsetsLog;
use crate::fetch_session::FetchSessionCache;
use crate::log_dirs::LogDirs;
use crate::metadata::{
    MetadataError, MetadataReplica, MetadataSubscriber, metadata_log_config, metadata_topic_id,
    metadata_topic_partition,
};
use crate::network::{
    BindError, Listener, ListenerKind, NetworkMetrics, NetworkSettings, SocketServer,
};

/// How long connections may take to send what they owe when the broker stops.
const CONNECTION_GRACE: Duration = Duration::from_secs(3);
/// After so long a fetch session may be evicted by another, as in Kafka.
const FETCH_SESSION_EVICTION_MS: i64 = 120_000;

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The metadata cannot be read or written.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The controller cannot start.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// The data directories cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A role of this node is not served yet.
    #[error("{0}")]
    NotSupported(String),
}

/// A broker that serves its clients, with what is needed to stop it.
pub struct RunningBroker {
    broker: Arc<Broker>,
    server: SocketServer,
    background: Background,
    controller: Controller,
}

impl RunningBroker {
    /// Starts a broker on its data directories. Blocks on the disk and must run inside a tokio runtime, on a thread
    /// that may block.
    ///
    /// # Errors
    /// When a listener cannot be bound, or the data or the metadata cannot be used.
    pub async fn start(log_dirs: LogDirs, config: Arc<DynamicConfig>) -> Result<Self, StartError> {
        let LogDirs {
            manager,
            cluster_id,
            directory_ids,
            ..
        } = log_dirs;
        check_roles(&config.current().quorum)?;
        let logs = Arc::new(manager);
        let current = config.current();
        let network_metrics = Arc::new(NetworkMetrics::default());
        // Bound before any log is opened: with a port in use nothing has changed on disk, and the registration tells
        // the real ports.
        let mut server = SocketServer::bind(
            &current.network_listeners(),
            current.network(),
            Arc::clone(&network_metrics),
        )?;
        let metadata = recover_metadata(&logs, &cluster_id, &current)?;
        let image = Arc::clone(metadata.image());
        let id = BrokerId(current.node_id);
        let current = apply_dynamic_config(&config, &image, id);
        server.settings().replace(current.network());
        logs.set_cleaner_io_max_bytes_per_second(current.log_cleaner_io_max_bytes_per_second);
        let replicas = ReplicaManager::new(id, Arc::clone(&logs), current.topic_defaults.clone());
        let replicas = Arc::new(replicas);
        replicas.configure(current.replication());
        replicas.load(&image, now_ms());
        let groups = group_coordinator(&current, &replicas);

        let settings = ControllerSettings {
            quorum: current.quorum_settings(own_voter(id, server.listeners())),
            min_insync_replicas: min_insync_replicas(&current),
        };
        let subscribers = subscribers(id, &replicas, &groups, &config, server.settings());
        let controller = Controller::start(metadata, settings, subscribers)?;
        controller.until_active().await?;
        let registration = registration(&current, server.listeners(), &directory_ids);
        let last_stop_was_clean = logs.log_dirs().iter().all(|dir| dir.was_clean);
        controller
            .register(registration, last_stop_was_clean)
            .await?;
        let handle = controller.handle().clone();
        groups.on_start(&handle.image(), id);

        let background = Background::start(&replicas, &handle, &current);
        let broker = Arc::new(Broker {
            network_metrics,
            replicas,
            groups,
            fetch_sessions: FetchSessionCache::new(
                usize::try_from(current.max_incremental_fetch_session_cache_slots).unwrap_or(0),
                FETCH_SESSION_EVICTION_MS,
            ),
            fetch_max_bytes: current.fetch_max_bytes,
            broker_sessions: Arc::new(BrokerSessions::new(LivenessConfig::new(
                current.broker_session_timeout_ms.into(),
            ))),
            producer_ids: ProducerIdManager::new(handle.clone()),
            auto_topics: AutoTopicCreation::new(handle.clone(), Arc::clone(&config)),
            config,
            controller: handle,
            stopping: AtomicBool::new(false),
        });
        server.start(&broker);
        Ok(RunningBroker {
            broker,
            server,
            background,
            controller,
        })
    }

    /// What handlers reach everything through.
    pub fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// The bound listeners, in the order of the configuration.
    pub fn listeners(&self) -> &[Arc<Listener>] {
        self.server.listeners()
    }

    /// Stops accepting, answers what is parked, stops the controller, writes everything to disk and marks the
    /// directories as cleanly closed.
    ///
    /// # Errors
    /// When the logs cannot be closed; the next start recovers them.
    pub async fn stop(self) -> Result<(), StorageError> {
        let RunningBroker {
            broker,
            server,
            background,
            controller,
        } = self;
        broker.stopping.store(true, Ordering::Release);
        broker.replicas.wake_all();
        broker.groups.shutdown();
        server.stop(CONNECTION_GRACE).await;
        broker.replicas.stop().await;
        background.stop().await;
        let logs = Arc::clone(broker.replicas.logs());
        let broker_epoch = broker.controller.broker_epoch();
        let closed = tokio::task::spawn_blocking(move || {
            controller.stop();
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

/// The broker and the only controller are one process so far.
fn check_roles(quorum: &QuorumConfig) -> Result<(), StartError> {
    let both = quorum.roles.broker && quorum.roles.controller;
    if both && quorum.is_quorum_of_one() {
        return Ok(());
    }
    Err(StartError::NotSupported(
        "process.roles other than broker,controller and more than one controller are not supported yet"
            .to_owned(),
    ))
}

/// This node as the only voter, with the address that it really listens on.
fn own_voter(id: BrokerId, listeners: &[Arc<Listener>]) -> QuorumVoter {
    let mut listeners = listeners.iter();
    let controller = listeners.find(|listener| listener.kind == ListenerKind::Controller);
    let (host, port) = controller.map_or((String::new(), 0), |listener| {
        let port = u16::try_from(listener.advertised_port).unwrap_or_default();
        (listener.advertised_host.to_string(), port)
    });
    QuorumVoter {
        id: id.0,
        host,
        port,
    }
}

/// Opens and replays the metadata log. When it cannot be used, the directories are left as they were found.
fn recover_metadata(
    logs: &LogManager,
    cluster_id: &str,
    config: &BrokerConfig,
) -> Result<MetadataReplica, StartError> {
    let log_config = LogConfig {
        segment_bytes: config.metadata_log_segment_bytes.unsigned_abs(),
        segment_ms: config.metadata_log_segment_ms,
        ..metadata_log_config()
    };
    let log = logs.get_or_create(
        &metadata_topic_partition(),
        Some(metadata_topic_id()),
        log_config,
        now_ms(),
    )?;
    MetadataReplica::open(log, cluster_id).map_err(|error| {
        if let Err(error) = logs.leave_unchanged() {
            tracing::warn!(%error, "the next start will recover the logs");
        }
        error.into()
    })
}

/// What this run of the broker registers with.
fn registration(
    config: &BrokerConfig,
    listeners: &[Arc<Listener>],
    directory_ids: &[TopicId],
) -> BrokerRegistrationRequest {
    BrokerRegistrationRequest {
        id: BrokerId(config.node_id),
        incarnation_id: Uuid::new_v4(),
        end_points: end_points(listeners, config),
        features: supported_features(),
        rack: config.broker_rack.clone(),
        log_dirs: directory_ids.iter().map(|id| id.0).collect(),
    }
}

fn group_coordinator(
    config: &BrokerConfig,
    replicas: &Arc<ReplicaManager>,
) -> Arc<GroupCoordinator> {
    let codec = u8::try_from(config.offsets_topic_compression_codec).unwrap_or_default();
    let compression = Compression::from_id(codec).unwrap_or(Compression::None);
    let log = ReplicatedOffsetsLog::new(Arc::clone(replicas), compression);
    GroupCoordinator::new(
        config.groups(),
        Arc::new(log),
        config.offsets_topic_num_partitions,
    )
}

/// The listeners as the registration tells them.
fn end_points(listeners: &[Arc<Listener>], config: &BrokerConfig) -> Vec<Endpoint> {
    let protocol = |listener: &Listener| {
        let configured = config
            .listeners
            .iter()
            .find(|configured| configured.name == listener.name);
        configured.map_or(SecurityProtocol::Plaintext, |configured| {
            configured.protocol
        })
    };
    listeners
        .iter()
        .filter(|listener| listener.kind == ListenerKind::Broker)
        .map(|listener| Endpoint {
            name: listener.name.clone(),
            host: listener.advertised_host.to_string(),
            port: u16::try_from(listener.advertised_port).unwrap_or_default(),
            security_protocol: protocol(listener).id(),
        })
        .collect()
}

/// `min.insync.replicas` of the configuration.
fn min_insync_replicas(config: &BrokerConfig) -> i32 {
    let configured = config.topic_defaults.get("min.insync.replicas");
    configured.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Puts the broker's configuration in the metadata into effect.
fn apply_dynamic_config(
    config: &DynamicConfig,
    image: &ClusterImage,
    id: BrokerId,
) -> Arc<BrokerConfig> {
    let entries = |resource| {
        image
            .configs(&resource)
            .map(|entries| (*entries).clone())
            .unwrap_or_default()
    };
    config.apply(
        &entries(ConfigResource::default_broker()),
        &entries(ConfigResource::broker(id)),
    )
}

/// Who acts on changes of the metadata, in this order.
fn subscribers(
    id: BrokerId,
    replicas: &Arc<ReplicaManager>,
    groups: &Arc<GroupCoordinator>,
    config: &Arc<DynamicConfig>,
    network: NetworkSettings,
) -> Vec<MetadataSubscriber> {
    let follow_partitions: MetadataSubscriber = {
        let replicas = Arc::clone(replicas);
        Box::new(move |image, delta| replicas.apply(image, delta, now_ms()))
    };
    let follow_config: MetadataSubscriber = {
        let (replicas, config) = (Arc::clone(replicas), Arc::clone(config));
        let own = [ConfigResource::default_broker(), ConfigResource::broker(id)];
        Box::new(move |image, delta| {
            if !own
                .iter()
                .any(|resource| delta.changed_configs.contains(resource))
            {
                return;
            }
            let before = config.current();
            let now = apply_dynamic_config(&config, image, id);
            if now.topic_defaults != before.topic_defaults {
                replicas.set_log_defaults(image, now.topic_defaults.clone());
            }
            replicas
                .logs()
                .set_cleaner_io_max_bytes_per_second(now.log_cleaner_io_max_bytes_per_second);
            if now.replication() != before.replication() {
                replicas.configure(now.replication());
            }
            network.replace(now.network());
        })
    };
    let follow_groups: MetadataSubscriber = {
        let groups = Arc::clone(groups);
        Box::new(move |image, delta| groups.on_metadata(image, delta, id))
    };
    vec![follow_partitions, follow_config, follow_groups]
}
