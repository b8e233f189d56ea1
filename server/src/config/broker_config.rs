//! The configuration in effect, typed.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use highwater_storage::LogConfig;

use super::layers::Layers;
use super::listeners::{ListenerKeys, Listeners};
use super::node::check_node_id;
use super::{ConfigError, ListenerConfig, QuorumConfig, StaticConfig};

macro_rules! broker_config {
    ($($field:ident: $type:ty = $key:literal,)*) => {
        /// The values in effect of the keys that act, each under its own name with underscores for dots.
        #[derive(Debug, Clone, PartialEq)]
        pub struct BrokerConfig {
            $(
                #[doc = concat!("`", $key, "`; its meaning and default are in [`super::keys`].")]
                pub $field: $type,
            )*
            /// `process.roles`, and the controllers of the cluster.
            pub quorum: QuorumConfig,
            /// `listeners`, `advertised.listeners` and their protocols, without the controller's.
            pub listeners: Vec<ListenerConfig>,
            /// The listeners that `controller.listener.names` names, in the order of that key.
            pub controller_listeners: Vec<ListenerConfig>,
            /// Name of the listener that brokers reach each other by: `inter.broker.listener.name`, or the one that
            /// is called as `security.inter.broker.protocol`, or the first; empty on a node that is no broker.
            pub inter_broker_listener_name: String,
            /// `log.dirs`, or `log.dir` when that is absent.
            pub log_dirs: Vec<PathBuf>,
            /// `max.connections.per.ip.overrides`: connections that single addresses may hold open; names
            /// are resolved.
            pub max_connections_per_ip_overrides: BTreeMap<IpAddr, i32>,
            /// `http.listeners`: where the HTTP port listens.
            pub http_listeners: Vec<HttpAddress>,
            /// Defaults of topic configurations that the broker's own keys set, by the topic's key; for
            /// [`LogConfig::from_overrides`].
            pub topic_defaults: BTreeMap<&'static str, String>,
        }

        /// Keys that have a field of their own.
        #[cfg(test)]
        const FIELD_KEYS: &[&str] = &[$($key),*];

        impl BrokerConfig {
            fn fields(layers: &Layers<'_>, derived: Derived) -> Result<Self, ConfigError> {
                Ok(BrokerConfig {
                    $($field: layers.get($key)?,)*
                    quorum: derived.quorum,
                    listeners: derived.listeners.broker,
                    controller_listeners: derived.listeners.controller,
                    inter_broker_listener_name: derived.listeners.inter_broker_name,
                    log_dirs: derived.log_dirs,
                    max_connections_per_ip_overrides: derived.max_connections_per_ip_overrides,
                    http_listeners: derived.http_listeners,
                    topic_defaults: derived.topic_defaults,
                })
            }
        }
    };
}

broker_config! {
    node_id: i32 = "node.id",
    broker_rack: Option<String> = "broker.rack",

    socket_request_max_bytes: i32 = "socket.request.max.bytes",
    socket_send_buffer_bytes: i32 = "socket.send.buffer.bytes",
    socket_receive_buffer_bytes: i32 = "socket.receive.buffer.bytes",
    socket_listen_backlog_size: i32 = "socket.listen.backlog.size",
    connections_max_idle_ms: i64 = "connections.max.idle.ms",
    max_connections: i32 = "max.connections",
    max_connections_per_ip: i32 = "max.connections.per.ip",

    num_recovery_threads_per_data_dir: i32 = "num.recovery.threads.per.data.dir",
    log_initial_task_delay_ms: i64 = "log.initial.task.delay.ms",
    log_retention_check_interval_ms: i64 = "log.retention.check.interval.ms",
    log_flush_scheduler_interval_ms: i64 = "log.flush.scheduler.interval.ms",
    log_flush_offset_checkpoint_interval_ms: i32 = "log.flush.offset.checkpoint.interval.ms",
    log_flush_start_offset_checkpoint_interval_ms: i32 = "log.flush.start.offset.checkpoint.interval.ms",
    log_cleaner_enable: bool = "log.cleaner.enable",
    log_cleaner_io_max_bytes_per_second: f64 = "log.cleaner.io.max.bytes.per.second",
    log_cleaner_dedupe_buffer_size: i64 = "log.cleaner.dedupe.buffer.size",
    log_cleaner_backoff_ms: i64 = "log.cleaner.backoff.ms",

    auto_create_topics_enable: bool = "auto.create.topics.enable",
    num_partitions: i32 = "num.partitions",
    default_replication_factor: i32 = "default.replication.factor",
    delete_topic_enable: bool = "delete.topic.enable",
    max_request_partition_size_limit: i32 = "max.request.partition.size.limit",

    replica_lag_time_max_ms: i64 = "replica.lag.time.max.ms",
    num_replica_fetchers: i32 = "num.replica.fetchers",
    replica_fetch_max_bytes: i32 = "replica.fetch.max.bytes",
    replica_fetch_min_bytes: i32 = "replica.fetch.min.bytes",
    replica_fetch_response_max_bytes: i32 = "replica.fetch.response.max.bytes",
    replica_fetch_wait_max_ms: i32 = "replica.fetch.wait.max.ms",
    replica_fetch_backoff_ms: i32 = "replica.fetch.backoff.ms",
    replica_socket_timeout_ms: i32 = "replica.socket.timeout.ms",
    replica_socket_receive_buffer_bytes: i32 = "replica.socket.receive.buffer.bytes",
    replica_selector_class: Option<String> = "replica.selector.class",
    controlled_shutdown_enable: bool = "controlled.shutdown.enable",
    broker_heartbeat_interval_ms: i32 = "broker.heartbeat.interval.ms",
    initial_broker_registration_timeout_ms: i32 = "initial.broker.registration.timeout.ms",
    controller_socket_timeout_ms: i32 = "controller.socket.timeout.ms",
    controller_quorum_request_timeout_ms: i32 = "controller.quorum.request.timeout.ms",
    controller_quorum_fetch_max_bytes: i32 = "controller.quorum.fetch.max.bytes",
    socket_connection_setup_timeout_ms: i64 = "socket.connection.setup.timeout.ms",
    leader_replication_throttled_rate: i64 = "leader.replication.throttled.rate",
    follower_replication_throttled_rate: i64 = "follower.replication.throttled.rate",
    replication_quota_window_num: i32 = "replication.quota.window.num",
    replication_quota_window_size_seconds: i32 = "replication.quota.window.size.seconds",
    replica_high_watermark_checkpoint_interval_ms: i64 = "replica.high.watermark.checkpoint.interval.ms",
    fetch_max_bytes: i32 = "fetch.max.bytes",
    max_incremental_fetch_session_cache_slots: i32 = "max.incremental.fetch.session.cache.slots",

    producer_id_expiration_ms: i32 = "producer.id.expiration.ms",

    group_min_session_timeout_ms: i32 = "group.min.session.timeout.ms",
    group_max_session_timeout_ms: i32 = "group.max.session.timeout.ms",
    group_initial_rebalance_delay_ms: i32 = "group.initial.rebalance.delay.ms",
    group_max_size: i32 = "group.max.size",
    offsets_topic_num_partitions: i32 = "offsets.topic.num.partitions",
    offsets_topic_replication_factor: i16 = "offsets.topic.replication.factor",
    offsets_topic_segment_bytes: i32 = "offsets.topic.segment.bytes",
    offsets_topic_compression_codec: i32 = "offsets.topic.compression.codec",
    offsets_retention_minutes: i32 = "offsets.retention.minutes",
    offsets_retention_check_interval_ms: i64 = "offsets.retention.check.interval.ms",
    offset_metadata_max_bytes: i32 = "offset.metadata.max.bytes",
    offsets_commit_timeout_ms: i32 = "offsets.commit.timeout.ms",

    controller_quorum_election_timeout_ms: i32 = "controller.quorum.election.timeout.ms",
    controller_quorum_fetch_timeout_ms: i32 = "controller.quorum.fetch.timeout.ms",
    controller_quorum_retry_backoff_ms: i32 = "controller.quorum.retry.backoff.ms",
    controller_quorum_fetch_snapshot_max_bytes: i32 = "controller.quorum.fetch.snapshot.max.bytes",
    broker_session_timeout_ms: i32 = "broker.session.timeout.ms",
    auto_leader_rebalance_enable: bool = "auto.leader.rebalance.enable",
    leader_imbalance_check_interval_seconds: i64 = "leader.imbalance.check.interval.seconds",
    unclean_leader_election_interval_ms: i64 = "unclean.leader.election.interval.ms",

    metadata_log_segment_bytes: i32 = "metadata.log.segment.bytes",
    metadata_log_segment_ms: i64 = "metadata.log.segment.ms",
    metadata_log_max_record_bytes_between_snapshots: i64 = "metadata.log.max.record.bytes.between.snapshots",
}

struct Derived {
    quorum: QuorumConfig,
    listeners: Listeners,
    log_dirs: Vec<PathBuf>,
    max_connections_per_ip_overrides: BTreeMap<IpAddr, i32>,
    http_listeners: Vec<HttpAddress>,
    topic_defaults: BTreeMap<&'static str, String>,
}

/// One address of the HTTP port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAddress {
    /// Host or address to bind; empty for every interface.
    pub host: String,
    /// Port to bind; 0 for a free one.
    pub port: u16,
}

impl BrokerConfig {
    /// The configuration of these static entries alone.
    ///
    /// # Errors
    /// When a value is not allowed, or two keys contradict each other.
    pub fn from_static(config: &StaticConfig) -> Result<Self, ConfigError> {
        Self::from_layers(&Layers(vec![config.entries()]))
    }

    pub(super) fn from_layers(layers: &Layers<'_>) -> Result<Self, ConfigError> {
        check_node_id(layers)?;
        let quorum = QuorumConfig::from_layers(layers)?;
        check_times(layers)?;
        let log_dirs = log_dirs(layers)?;
        check_metadata_log_dir(layers, &log_dirs)?;
        let derived = Derived {
            listeners: listeners(layers, &quorum)?,
            quorum,
            log_dirs,
            max_connections_per_ip_overrides: connection_overrides(layers)?,
            http_listeners: http_listeners(layers)?,
            topic_defaults: topic_defaults(layers)?,
        };
        let config = Self::fields(layers, derived)?;
        config.check(layers)?;
        Ok(config)
    }

    fn check(&self, layers: &Layers<'_>) -> Result<(), ConfigError> {
        let refuse = |key: &'static str, expected: &str| {
            let text = layers
                .value(key)
                .map(|value| value.to_string())
                .unwrap_or_default();
            Err(ConfigError::invalid(key, &text, expected))
        };
        if self.max_connections_per_ip == 0 && self.max_connections_per_ip_overrides.is_empty() {
            return refuse(
                "max.connections.per.ip",
                "at least 1 is expected unless max.connections.per.ip.overrides lets someone in",
            );
        }
        if !(0..=4).contains(&self.offsets_topic_compression_codec) {
            return refuse(
                "offsets.topic.compression.codec",
                "a whole number from 0 to 4 is expected",
            );
        }
        if self.default_replication_factor < 1 {
            return refuse(
                "default.replication.factor",
                "a whole number from 1 to 32767 is expected",
            );
        }
        if i64::from(self.replica_fetch_wait_max_ms) > self.replica_lag_time_max_ms {
            return refuse(
                "replica.fetch.wait.max.ms",
                "at most replica.lag.time.max.ms is expected",
            );
        }
        if self.log_cleaner_dedupe_buffer_size < 1 << 20 {
            return refuse(
                "log.cleaner.dedupe.buffer.size",
                "at least 1048576 is expected",
            );
        }
        Ok(())
    }
}

/// Times that have no range in the table because they may also be absent.
fn check_times(layers: &Layers<'_>) -> Result<(), ConfigError> {
    let refuse = |key: &'static str, time: i64, expected: &str| {
        Err(ConfigError::invalid(key, &time.to_string(), expected))
    };
    for key in [
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    ] {
        if let Some(time) = layers.get::<Option<i64>>(key)?
            && (time < -1 || time == 0)
        {
            return refuse(key, time, "at least 1, or -1 for ever, is expected");
        }
    }
    for (key, least) in [
        ("log.roll.ms", 1),
        ("log.roll.jitter.ms", 0),
        ("log.flush.interval.ms", 0),
    ] {
        if let Some(time) = layers.get::<Option<i64>>(key)?
            && time < least
        {
            return refuse(key, time, &format!("at least {least} is expected"));
        }
    }
    Ok(())
}

fn listeners(layers: &Layers<'_>, quorum: &QuorumConfig) -> Result<Listeners, ConfigError> {
    ListenerKeys {
        roles: quorum.roles,
        is_quorum_of_one: quorum.is_quorum_of_one(),
        listeners: &layers.get::<Vec<String>>("listeners")?,
        advertised_listeners: layers
            .get::<Option<Vec<String>>>("advertised.listeners")?
            .as_deref(),
        protocol_map: &layers.get::<String>("listener.security.protocol.map")?,
        controller_listener_names: &layers.get::<Vec<String>>("controller.listener.names")?,
        inter_broker_listener_name: layers
            .get::<Option<String>>("inter.broker.listener.name")?
            .as_deref(),
        inter_broker_protocol: &layers.get::<String>("security.inter.broker.protocol")?,
    }
    .resolve(|| {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    })
}

fn log_dirs(layers: &Layers<'_>) -> Result<Vec<PathBuf>, ConfigError> {
    let dirs = match layers.get::<Option<Vec<String>>>("log.dirs")? {
        Some(dirs) => dirs,
        None => layers.get("log.dir")?,
    };
    if dirs.is_empty() {
        let key = if layers.text("log.dirs").is_some() {
            "log.dirs"
        } else {
            "log.dir"
        };
        return Err(ConfigError::invalid(
            key,
            "",
            "at least one directory is expected",
        ));
    }
    Ok(dirs.into_iter().map(PathBuf::from).collect())
}

/// The metadata log lies in the first data directory; another place is not served yet.
fn check_metadata_log_dir(layers: &Layers<'_>, log_dirs: &[PathBuf]) -> Result<(), ConfigError> {
    const KEY: &str = "metadata.log.dir";
    match layers
        .get::<Option<String>>(KEY)?
        .filter(|dir| !dir.is_empty())
    {
        Some(dir) if log_dirs.first() != Some(&PathBuf::from(&dir)) => Err(
            ConfigError::not_supported(KEY, &dir, "the metadata log lies in the first of log.dirs"),
        ),
        _ => Ok(()),
    }
}

fn connection_overrides(layers: &Layers<'_>) -> Result<BTreeMap<IpAddr, i32>, ConfigError> {
    const KEY: &str = "max.connections.per.ip.overrides";
    let text = layers.get::<String>(KEY)?;
    let mut overrides = BTreeMap::new();
    for entry in text
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
    {
        let refuse = |expected: &str| {
            ConfigError::invalid(
                KEY,
                &text,
                format!("{expected} is expected in place of '{entry}'"),
            )
        };
        let (host, count) = entry
            .rsplit_once(':')
            .and_then(|(host, count)| Some((host.trim(), count.trim().parse::<i32>().ok()?)))
            .filter(|(host, count)| !host.is_empty() && *count >= 0)
            .ok_or_else(|| refuse("host:count"))?;
        match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => {
                overrides.insert(address, count);
            }
            Err(_) => {
                let addresses = (host, 0)
                    .to_socket_addrs()
                    .map_err(|_| refuse("the name of a known host"))?;
                overrides.extend(addresses.map(|address| (address.ip(), count)));
            }
        }
    }
    Ok(overrides)
}

fn http_listeners(layers: &Layers<'_>) -> Result<Vec<HttpAddress>, ConfigError> {
    const KEY: &str = "http.listeners";
    let texts = layers.get::<Vec<String>>(KEY)?;
    let parse = |text: &String| {
        let address = text.strip_prefix("http://").unwrap_or(text);
        if let Ok(address) = address.parse::<SocketAddr>() {
            return Some(HttpAddress {
                host: address.ip().to_string(),
                port: address.port(),
            });
        }
        let (host, port) = address.split_once(':')?;
        let host_fits = host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        (host_fits && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(())?;
        Some(HttpAddress {
            host: host.to_owned(),
            port: port.parse().ok()?,
        })
    };
    texts
        .iter()
        .map(|text| {
            parse(text).ok_or_else(|| {
                ConfigError::invalid(
                    KEY,
                    &texts.join(","),
                    format!("host:port is expected in place of '{text}'"),
                )
            })
        })
        .collect()
}

/// What the broker's keys say about topics, judged by the table of topic keys.
fn topic_defaults(layers: &Layers<'_>) -> Result<BTreeMap<&'static str, String>, ConfigError> {
    use highwater_storage::ConfigError as TopicConfigError;
    LogConfig::defaults_from_broker(|key| layers.text(key)).map_err(|error| match error {
        TopicConfigError::InvalidValue { key, value, reason } => {
            ConfigError::invalid(key, &value, reason)
        }
        TopicConfigError::NotSupported { key, value, reason } => {
            ConfigError::not_supported(key, &value, reason)
        }
        other => ConfigError::Conflict(other.to_string()),
    })
}

#[cfg(test)]
#[path = "broker_config_tests.rs"]
mod tests;
