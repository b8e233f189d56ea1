//! What the parts of a node are made from, and who acts on changes of the metadata.

use std::sync::Arc;

use highwater_replication::cluster::records::Endpoint;
use highwater_replication::cluster::registration::{
    BrokerRegistrationRequest, ControllerRegistrationRequest,
};
use highwater_replication::cluster::{ClusterImage, ConfigResource};
use highwater_replication::runtime::replica_manager::ReplicaManager;
use highwater_storage::record_batch::Compression;
use highwater_storage::{BrokerEpoch, BrokerId, LogConfig, LogManager, TopicId};
use uuid::Uuid;

use super::start::StartError;
use crate::broker::now_ms;
use crate::config::{BrokerConfig, DynamicConfig, QuorumVoter, SecurityProtocol};
use crate::controller::supported_features;
use crate::coordinator::group::GroupCoordinator;
use crate::coordinator::group::replicated_log::ReplicatedOffsetsLog;
use crate::metadata::{
    MetadataReplica, MetadataSubscriber, metadata_log_config, metadata_topic_id,
    metadata_topic_partition, refuse_inert,
};
use crate::network::{Listener, ListenerKind, NetworkSettings};

/// What this run of the broker says of itself.
pub(super) struct BrokerRegistration {
    /// What the controllers are told.
    pub(super) request: BrokerRegistrationRequest,
    /// Whether every log directory was closed cleanly by the run before.
    pub(super) last_stop_was_clean: bool,
}

/// This node as the only voter, with the address that it really listens on.
pub(super) fn own_voter(id: BrokerId, listeners: &[Arc<Listener>]) -> QuorumVoter {
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
pub(super) fn recover_metadata(
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
    let opened = MetadataReplica::open(log, cluster_id).and_then(|replica| {
        if config.quorum.roles.controller {
            refuse_inert(replica.image(), replica.dir())?;
        }
        Ok(replica)
    });
    opened.map_err(|error| {
        if let Err(error) = logs.leave_unchanged() {
            tracing::warn!(%error, "the next start will recover the logs");
        }
        error.into()
    })
}

/// What this run of the broker registers with.
pub(super) fn registration(
    config: &BrokerConfig,
    listeners: &[Arc<Listener>],
    cluster_id: &str,
    directory_ids: &[TopicId],
    logs: &LogManager,
) -> BrokerRegistration {
    let dirs = logs.log_dirs();
    // Of a directory that cannot be used nobody knows.
    let last_stop_was_clean =
        dirs.iter().all(|dir| dir.was_clean) && logs.unusable_dirs().is_empty();
    // Of a run that closed some directories and not others, records may be missing.
    let previous = dirs.iter().map(|dir| dir.previous_broker_epoch).min();
    let previous = previous.filter(|epoch| last_stop_was_clean && *epoch >= 0);
    BrokerRegistration {
        request: BrokerRegistrationRequest {
            id: BrokerId(config.node_id),
            cluster_id: cluster_id.to_owned(),
            incarnation_id: Uuid::new_v4(),
            end_points: end_points(listeners, ListenerKind::Broker, config),
            features: supported_features(),
            rack: config.broker_rack.clone(),
            log_dirs: directory_ids.iter().map(|id| id.0).collect(),
            previous_broker_epoch: previous.map(BrokerEpoch),
        },
        last_stop_was_clean,
    }
}

/// What this run of the controller registers with.
pub(super) fn controller_registration(
    config: &BrokerConfig,
    listeners: &[Arc<Listener>],
) -> ControllerRegistrationRequest {
    ControllerRegistrationRequest {
        id: config.node_id,
        incarnation_id: Uuid::new_v4(),
        end_points: end_points(listeners, ListenerKind::Controller, config),
        features: supported_features(),
    }
}

pub(super) fn group_coordinator(
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

/// The listeners of one kind as a registration tells them.
fn end_points(
    listeners: &[Arc<Listener>],
    kind: ListenerKind,
    config: &BrokerConfig,
) -> Vec<Endpoint> {
    let protocol = |listener: &Listener| {
        let mut configured = config.listeners.iter().chain(&config.controller_listeners);
        let configured = configured.find(|configured| configured.name == listener.name);
        configured.map_or(SecurityProtocol::Plaintext, |configured| {
            configured.protocol
        })
    };
    listeners
        .iter()
        .filter(|listener| listener.kind == kind)
        .map(|listener| Endpoint {
            name: listener.name.clone(),
            host: listener.advertised_host.to_string(),
            port: u16::try_from(listener.advertised_port).unwrap_or_default(),
            security_protocol: protocol(listener).id(),
        })
        .collect()
}

/// `min.insync.replicas` of the configuration.
pub(super) fn min_insync_replicas(config: &BrokerConfig) -> i32 {
    let configured = config.topic_defaults.get("min.insync.replicas");
    configured.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Puts the broker's configuration in the metadata into effect.
pub(super) fn apply_dynamic_config(
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

/// Puts changes of the configuration of a node, whatever its roles are, into effect.
pub(super) fn config_subscriber(
    id: BrokerId,
    replicas: &Arc<ReplicaManager>,
    config: &Arc<DynamicConfig>,
    network: NetworkSettings,
) -> MetadataSubscriber {
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
}

/// Who acts on changes of the metadata in a broker, in this order.
pub(super) fn broker_subscribers(
    id: BrokerId,
    replicas: &Arc<ReplicaManager>,
    groups: &Arc<GroupCoordinator>,
) -> Vec<MetadataSubscriber> {
    let follow_partitions: MetadataSubscriber = {
        let replicas = Arc::clone(replicas);
        Box::new(move |image, delta| replicas.apply(image, delta, now_ms()))
    };
    let follow_groups: MetadataSubscriber = {
        let groups = Arc::clone(groups);
        Box::new(move |image, delta| groups.on_metadata(image, delta, id))
    };
    vec![follow_partitions, follow_groups]
}
