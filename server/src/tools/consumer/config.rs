//! The properties of a consumer.

use std::time::Duration;

use crate::tools::client::{ClientProperties, KafkaError};

/// Properties that this consumer knows.
const KNOWN: &[&str] = &[
    "auto.commit.interval.ms",
    "auto.offset.reset",
    "bootstrap.servers",
    "client.id",
    "default.api.timeout.ms",
    "enable.auto.commit",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.id",
    "group.protocol",
    "heartbeat.interval.ms",
    "isolation.level",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "security.protocol",
    "session.timeout.ms",
    "socket.connection.setup.timeout.ms",
];

/// Properties that Kafka's consumer knows besides; those that end in a dot are all that begin so.
const REFUSED: &[&str] = &[
    "allow.auto.create.topics",
    "bootstrap.resolve.timeout.ms",
    "check.crcs",
    "client.dns.lookup",
    "client.rack",
    "config.providers",
    "connections.max.idle.ms",
    "enable.metrics.push",
    "exclude.internal.topics",
    "group.instance.id",
    "group.remote.assignor",
    "interceptor.classes",
    "key.deserializer",
    "max.poll.records",
    "metadata.",
    "metric.reporters",
    "metrics.",
    "partition.assignment.strategy",
    "receive.buffer.bytes",
    "security.providers",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "value.deserializer",
];

/// Where reading begins when nothing else says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reset {
    /// At the first record.
    Earliest,
    /// Behind the last record.
    Latest,
    /// Nowhere: that is an error.
    None,
}

/// How a consumer reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConsumerConfig {
    /// The group that it is a member of; without one it reads all partitions and commits nothing.
    pub(crate) group: Option<String>,
    /// Whether records of transactions are read before they are committed.
    pub(crate) is_read_committed: bool,
    /// Where reading begins.
    pub(crate) reset: Reset,
    /// How often offsets are committed; `None` for never.
    pub(crate) auto_commit: Option<Duration>,
    /// Bytes for which a fetch waits.
    pub(crate) fetch_min_bytes: i32,
    /// Bytes that a fetch brings at most.
    pub(crate) fetch_max_bytes: i32,
    /// How long a fetch waits.
    pub(crate) fetch_max_wait: Duration,
    /// Bytes of one partition that a fetch brings at most.
    pub(crate) max_partition_fetch_bytes: i32,
    /// How long the coordinator hears nothing of a member before it is put out.
    pub(crate) session_timeout: Duration,
    /// How often a member is heard of.
    pub(crate) heartbeat_interval: Duration,
    /// How long the others may take to join.
    pub(crate) max_poll_interval: Duration,
    /// The rest before another attempt.
    pub(crate) retry_backoff: Duration,
}

impl ConsumerConfig {
    /// Reads the properties; what is not set has Kafka's default.
    ///
    /// # Errors
    /// For a property that is wrong or not supported.
    pub(crate) fn of(properties: &ClientProperties) -> Result<Self, KafkaError> {
        properties.check_known("consumer", KNOWN, REFUSED)?;
        let invalid = |key: &str, value: &str, allowed: &str| {
            KafkaError::config(format!(
                "Invalid value {value} for configuration {key}: String must be one of: {allowed}"
            ))
        };
        if let Some(protocol) = properties.get("group.protocol")
            && !protocol.eq_ignore_ascii_case("classic")
        {
            return Err(KafkaError::config(format!(
                "group.protocol={protocol} is not supported; there is group.protocol=classic"
            )));
        }
        let is_read_committed = match properties.get("isolation.level") {
            None | Some("read_uncommitted") => false,
            Some("read_committed") => true,
            Some(other) => {
                let allowed = "read_committed, read_uncommitted";
                return Err(invalid("isolation.level", other, allowed));
            }
        };
        let reset = match properties.get("auto.offset.reset") {
            None | Some("latest") => Reset::Latest,
            Some("earliest") => Reset::Earliest,
            Some("none") => Reset::None,
            Some(other) => {
                return Err(invalid(
                    "auto.offset.reset",
                    other,
                    "earliest, latest, none",
                ));
            }
        };
        let auto_commit = match properties.get("enable.auto.commit") {
            None | Some("true") => Some(properties.millis("auto.commit.interval.ms", 5_000)?),
            Some("false") => None,
            Some(other) => return Err(invalid("enable.auto.commit", other, "true, false")),
        };
        Ok(ConsumerConfig {
            group: properties.get("group.id").map(str::to_owned),
            is_read_committed,
            reset,
            auto_commit,
            fetch_min_bytes: properties.number("fetch.min.bytes", 1)?,
            fetch_max_bytes: properties.number("fetch.max.bytes", 52_428_800)?,
            fetch_max_wait: properties.millis("fetch.max.wait.ms", 500)?,
            max_partition_fetch_bytes: properties.number("max.partition.fetch.bytes", 1_048_576)?,
            session_timeout: properties.millis("session.timeout.ms", 45_000)?,
            heartbeat_interval: properties.millis("heartbeat.interval.ms", 3_000)?,
            max_poll_interval: properties.millis("max.poll.interval.ms", 300_000)?,
            retry_backoff: properties.millis("retry.backoff.ms", 100)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(entries: &[(&str, &str)]) -> Result<ConsumerConfig, String> {
        let mut properties = ClientProperties::default();
        for (key, value) in entries {
            properties.set(key, value);
        }
        ConsumerConfig::of(&properties).map_err(|error| error.message)
    }

    #[test]
    fn the_defaults_are_kafkas() {
        let config = config(&[]).expect("sound");
        assert_eq!((config.group, config.reset), (None, Reset::Latest));
        assert_eq!(config.auto_commit, Some(Duration::from_secs(5)));
    }

    #[test]
    fn what_is_wrong_or_not_known_is_refused() {
        for (key, value) in [
            ("isolation.level", "x"),
            ("auto.offset.reset", "x"),
            ("enable.auto.commit", "x"),
            ("group.protocol", "consumer"),
            ("fetch.min.bytes", "x"),
            ("interceptor.classes", "x"),
        ] {
            let error = config(&[(key, value)]).expect_err(key);
            assert!(error.contains(key), "{error}");
        }
    }
}
