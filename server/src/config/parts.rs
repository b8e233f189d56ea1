//! The settings of each part of the broker, made from the configuration.

use std::time::Duration;

use highwater_replication::runtime::settings::ReplicaSettings;
use highwater_replication::state::replica_selector::ReplicaSelector;
use highwater_replication::state::replication_quota::QuotaConfig;
use highwater_storage::LogManagerSettings;
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::keys::RACK_AWARE_REPLICA_SELECTOR;
use super::{BrokerConfig, QuorumVoter};
use crate::controller::QuorumSettings;
use crate::coordinator::group::GroupConfig;
use crate::network::client::ClientConfig;
use crate::network::{ListenerConfig, ListenerKind, NetworkConfig};
use crate::peer::lifecycle::LifecycleSettings;
use crate::peer::observer::ObserverSettings;

impl BrokerConfig {
    /// The bounds and socket options of the network layer.
    pub fn network(&self) -> NetworkConfig {
        NetworkConfig {
            socket_request_max_bytes: positive(self.socket_request_max_bytes),
            socket_receive_buffer_bytes: usize::try_from(self.socket_receive_buffer_bytes).ok(),
            socket_send_buffer_bytes: usize::try_from(self.socket_send_buffer_bytes).ok(),
            socket_listen_backlog_size: self.socket_listen_backlog_size.unsigned_abs(),
            connections_max_idle: u64::try_from(self.connections_max_idle_ms)
                .ok()
                .map(Duration::from_millis),
            max_connections: positive(self.max_connections),
            max_connections_per_ip: positive(self.max_connections_per_ip),
            max_connections_per_ip_overrides: self
                .max_connections_per_ip_overrides
                .iter()
                .map(|(address, count)| (*address, positive(*count)))
                .collect(),
        }
    }

    /// The settings of replication.
    pub fn replication(&self) -> ReplicaSettings {
        let is_rack_aware =
            self.replica_selector_class.as_deref() == Some(RACK_AWARE_REPLICA_SELECTOR);
        ReplicaSettings {
            replica_lag_time_max_ms: self.replica_lag_time_max_ms,
            replica_selector: match is_rack_aware {
                true => ReplicaSelector::RackAware,
                false => ReplicaSelector::Leader,
            },
            num_replica_fetchers: positive(self.num_replica_fetchers),
            replica_fetch_max_bytes: self.replica_fetch_max_bytes,
            replica_fetch_min_bytes: self.replica_fetch_min_bytes,
            replica_fetch_response_max_bytes: self.replica_fetch_response_max_bytes,
            replica_fetch_wait_max_ms: self.replica_fetch_wait_max_ms,
            replica_fetch_backoff_ms: i64::from(self.replica_fetch_backoff_ms),
            leader_throttle: self.throttle(self.leader_replication_throttled_rate),
            follower_throttle: self.throttle(self.follower_replication_throttled_rate),
        }
    }

    fn throttle(&self, rate_bytes_per_second: i64) -> QuotaConfig {
        QuotaConfig {
            rate_bytes_per_second,
            window_num: positive(self.replication_quota_window_num),
            window_size_ms: i64::from(self.replication_quota_window_size_seconds) * 1_000,
        }
    }

    /// The listeners to open: those for clients and brokers, then those of the controller.
    pub fn network_listeners(&self) -> Vec<ListenerConfig> {
        let listener = |kind| {
            move |listener: &super::ListenerConfig| ListenerConfig {
                name: listener.name.clone(),
                kind,
                host: listener.host.clone(),
                port: listener.port,
                advertised_host: listener.advertised_host.clone(),
                advertised_port: listener.advertised_port,
            }
        };
        let broker = self.listeners.iter().map(listener(ListenerKind::Broker));
        let controller = self.controller_listeners.iter();
        let controller = controller.map(listener(ListenerKind::Controller));
        broker.chain(controller).collect()
    }

    /// The settings of the quorum of controllers. `own` is this node as it listens, for a quorum of one.
    pub fn quorum_settings(&self, own: QuorumVoter) -> QuorumSettings {
        let voters = match self.quorum.is_quorum_of_one() {
            true => vec![own],
            false => self.quorum.voters.clone(),
        };
        QuorumSettings {
            node_id: self.node_id,
            voters,
            election_timeout: millis(self.controller_quorum_election_timeout_ms.into()),
            fetch_timeout: millis(self.controller_quorum_fetch_timeout_ms.into()),
            request_timeout: millis(self.controller_quorum_request_timeout_ms.into()),
            retry_backoff: millis(self.controller_quorum_retry_backoff_ms.into()),
            snapshot_max_bytes: self
                .controller_quorum_fetch_snapshot_max_bytes
                .unsigned_abs()
                .into(),
            max_bytes_between_snapshots: self
                .metadata_log_max_record_bytes_between_snapshots
                .unsigned_abs(),
        }
    }

    /// How this node connects to brokers that it follows.
    pub fn replica_client(&self) -> ClientConfig {
        ClientConfig {
            request_timeout: millis(self.replica_socket_timeout_ms.into()),
            connection_setup_timeout: millis(self.socket_connection_setup_timeout_ms),
            socket_receive_buffer_bytes: usize::try_from(self.replica_socket_receive_buffer_bytes)
                .ok(),
            // The first batch comes whatever its size; it would be refused again and again.
            max_response_bytes: i32::MAX as usize,
            ..ClientConfig::named(StrBytes::from_string(format!(
                "broker-{}-fetcher",
                self.node_id
            )))
        }
    }

    /// How this node connects to the active controller.
    pub fn controller_client(&self) -> ClientConfig {
        ClientConfig {
            request_timeout: millis(self.controller_socket_timeout_ms.into()),
            connection_setup_timeout: millis(self.socket_connection_setup_timeout_ms),
            ..ClientConfig::named(StrBytes::from_string(self.node_id.to_string()))
        }
    }

    /// How the console of this node connects to brokers.
    pub fn console_client(&self) -> ClientConfig {
        ClientConfig::named(StrBytes::from_string(format!(
            "broker-{}-console",
            self.node_id
        )))
    }

    /// The settings of a broker's registration and heartbeats.
    pub fn lifecycle(&self) -> LifecycleSettings {
        LifecycleSettings {
            heartbeat_interval_ms: self.broker_heartbeat_interval_ms.into(),
            session_timeout_ms: self.broker_session_timeout_ms.into(),
            registration_timeout_ms: self.initial_broker_registration_timeout_ms.into(),
        }
    }

    /// Where a broker without the controller role finds the metadata, and the bounds of what it fetches.
    pub fn observer(&self, directory_id: Uuid, cluster_id: String) -> ObserverSettings {
        ObserverSettings {
            node_id: self.node_id,
            directory_id,
            cluster_id,
            voters: self.quorum.voters.clone(),
            bootstrap_servers: self.quorum.bootstrap_servers.clone(),
            request_timeout: millis(self.controller_quorum_request_timeout_ms.into()),
            retry_backoff: millis(self.controller_quorum_retry_backoff_ms.into()),
            fetch_max_bytes: self.controller_quorum_fetch_max_bytes,
            fetch_snapshot_max_bytes: self.controller_quorum_fetch_snapshot_max_bytes,
            max_bytes_between_snapshots: self
                .metadata_log_max_record_bytes_between_snapshots
                .unsigned_abs(),
        }
    }

    /// The settings of the group coordinator.
    pub fn groups(&self) -> GroupConfig {
        GroupConfig {
            min_session_timeout_ms: self.group_min_session_timeout_ms,
            max_session_timeout_ms: self.group_max_session_timeout_ms,
            initial_rebalance_delay_ms: i64::from(self.group_initial_rebalance_delay_ms),
            max_size: positive(self.group_max_size),
            offset_metadata_max_bytes: positive(self.offset_metadata_max_bytes),
            offsets_retention_ms: i64::from(self.offsets_retention_minutes) * 60_000,
            offsets_retention_check_interval_ms: self.offsets_retention_check_interval_ms,
            offset_commit_timeout_ms: i64::from(self.offsets_commit_timeout_ms),
        }
    }

    /// The settings of the manager of all logs.
    pub fn log_manager(&self) -> LogManagerSettings {
        LogManagerSettings {
            log_dirs: self.log_dirs.clone(),
            recovery_threads_per_dir: positive(self.num_recovery_threads_per_data_dir),
            producer_id_expiration_ms: i64::from(self.producer_id_expiration_ms),
            cleaner_enabled: self.log_cleaner_enable,
            cleaner_dedupe_buffer_bytes: usize::try_from(self.log_cleaner_dedupe_buffer_size)
                .unwrap_or(usize::MAX),
            cleaner_io_max_bytes_per_second: self.log_cleaner_io_max_bytes_per_second,
        }
    }
}

/// The table of keys lets no negative number through where this is used.
fn positive(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// A configured time; a negative one is over at once.
fn millis(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
