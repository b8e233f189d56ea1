//! The properties of a producer.

use std::time::Duration;

use highwater_storage::record_batch::Compression;

use crate::tools::client::{ClientProperties, KafkaError};

/// Properties that this producer knows.
const KNOWN: &[&str] = &[
    "acks",
    "batch.size",
    "bootstrap.servers",
    "buffer.memory",
    "client.id",
    "compression.type",
    "default.api.timeout.ms",
    "delivery.timeout.ms",
    "enable.idempotence",
    "linger.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retries",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "security.protocol",
    "socket.connection.setup.timeout.ms",
];

/// Properties that Kafka's producer knows besides; those that end in a dot are all that begin so.
const REFUSED: &[&str] = &[
    "bootstrap.resolve.timeout.ms",
    "buffer.memory.allocation.strategy",
    "client.dns.lookup",
    "client.rack",
    "compression.",
    "config.providers",
    "connections.max.idle.ms",
    "enable.metrics.push",
    "interceptor.classes",
    "key.serializer",
    "metadata.",
    "metric.reporters",
    "metrics.",
    "partitioner.",
    "receive.buffer.bytes",
    "security.providers",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "transaction.",
    "transactional.id",
    "value.serializer",
];

/// How a producer gathers and sends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProducerConfig {
    /// How many replicas must have a batch before it is acknowledged: -1 for all in sync, 1 for the
    /// leader, 0 for none: then it is acknowledged as soon as it is written to the socket.
    pub(crate) acks: i16,
    /// Size at which a batch is sent, in bytes before compression.
    pub(crate) batch_size: usize,
    /// How long a batch waits for more records.
    pub(crate) linger: Duration,
    /// The codec of batches.
    pub(crate) compression: Compression,
    /// Whether batches have sequence numbers, so that a repeated one is stored once (KIP-98).
    pub(crate) is_idempotent: bool,
    /// Requests that may wait for the response of one broker.
    pub(crate) max_in_flight: usize,
    /// The largest record and the largest request, in bytes.
    pub(crate) max_request_size: usize,
    /// Bytes of the batches that are not acknowledged, at most; each counts with at least its full size.
    pub(crate) buffer_memory: usize,
    /// Attempts after the first.
    pub(crate) retries: u32,
    /// How long a batch may take from its first record to being acknowledged.
    pub(crate) delivery_timeout: Duration,
    /// How long the metadata of the topic may take, and how long a record waits for room in the buffer.
    pub(crate) max_block: Duration,
    /// How long a broker may wait for its replicas.
    pub(crate) request_timeout: Duration,
    /// The rest before another attempt.
    pub(crate) retry_backoff: Duration,
}

impl ProducerConfig {
    /// Reads the properties; what is not set has Kafka's default.
    ///
    /// # Errors
    /// For a property that is wrong or not supported.
    pub(crate) fn of(properties: &ClientProperties) -> Result<Self, KafkaError> {
        properties.check_known("producer", KNOWN, REFUSED)?;
        let acks = match properties.get("acks").unwrap_or("all") {
            "all" | "-1" => -1,
            "1" => 1,
            "0" => 0,
            other => {
                return Err(KafkaError::config(format!(
                    "Invalid value {other} for configuration acks: String must be one of: all, -1, 0, 1"
                )));
            }
        };
        let linger = properties.millis("linger.ms", 5)?;
        let request_timeout = properties.millis("request.timeout.ms", 30_000)?;
        let max_in_flight = properties.number("max.in.flight.requests.per.connection", 5)?;
        Ok(ProducerConfig {
            acks,
            batch_size: properties.number("batch.size", 16_384)?.max(1),
            linger,
            compression: match properties.get("compression.type") {
                None => Compression::None,
                Some(name) => name.parse().map_err(|_| {
                    KafkaError::config(format!(
                        "Invalid value {name} for configuration compression.type: String must be one of: gzip, snappy, \
                         lz4, zstd, none"
                    ))
                })?,
            },
            is_idempotent: idempotence(properties, acks, max_in_flight)?,
            max_in_flight: max_in_flight.max(1),
            max_request_size: properties.number("max.request.size", 1_048_576)?,
            buffer_memory: properties.number("buffer.memory", 33_554_432)?,
            retries: properties.number("retries", i32::MAX as u32)?,
            delivery_timeout: delivery_timeout(properties, linger + request_timeout)?,
            max_block: properties.millis("max.block.ms", 60_000)?,
            request_timeout,
            retry_backoff: properties.millis("retry.backoff.ms", 100)?,
        })
    }
}

/// A batch must be able to linger and be sent once; the default yields to that.
fn delivery_timeout(
    properties: &ClientProperties,
    least: Duration,
) -> Result<Duration, KafkaError> {
    const NAME: &str = "delivery.timeout.ms";
    let timeout = properties.millis(NAME, 120_000)?;
    if timeout < least && properties.get(NAME).is_some() {
        return Err(KafkaError::config(
            "delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms",
        ));
    }
    Ok(timeout.max(least))
}

/// On unless something that is set speaks against it; then asking for it is an error.
fn idempotence(
    properties: &ClientProperties,
    acks: i16,
    max_in_flight: usize,
) -> Result<bool, KafkaError> {
    let retries: u32 = properties.number("retries", 1)?;
    let against = if retries == 0 {
        Some("Must set retries to non-zero when using the idempotent producer.")
    } else if acks != -1 {
        Some(
            "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence.",
        )
    } else if max_in_flight > 5 {
        Some(
            "Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent producer.",
        )
    } else {
        None
    };
    match (properties.get("enable.idempotence"), against) {
        (Some("false"), _) => Ok(false),
        (Some("true"), Some(reason)) => Err(KafkaError::config(reason)),
        (Some("true") | None, None) => Ok(true),
        (None, Some(_)) => Ok(false),
        (Some(other), _) => Err(KafkaError::config(format!(
            "Invalid value {other} for configuration enable.idempotence: Expected value to be either true or false"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(entries: &[(&str, &str)]) -> Result<ProducerConfig, String> {
        let mut properties = ClientProperties::default();
        for (key, value) in entries {
            properties.set(key, value);
        }
        ProducerConfig::of(&properties).map_err(|error| error.message)
    }

    #[test]
    fn the_defaults_are_kafkas() {
        let config = config(&[]).expect("sound");
        assert_eq!((config.acks, config.batch_size), (-1, 16_384));
        assert_eq!((config.is_idempotent, config.max_in_flight), (true, 5));
        assert_eq!(config.linger, Duration::from_millis(5));
    }

    #[test]
    fn idempotence_goes_with_acks_of_all() {
        for acks in ["0", "1"] {
            assert!(!config(&[("acks", acks)]).expect("sound").is_idempotent);
            let error = config(&[("acks", acks), ("enable.idempotence", "true")]);
            assert_eq!(
                error.expect_err("refused"),
                "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee \
                 idempotence."
            );
        }
        assert!(!config(&[("retries", "0")]).expect("sound").is_idempotent);
        let many = ("max.in.flight.requests.per.connection", "6");
        assert!(!config(&[many]).expect("sound").is_idempotent);
    }

    #[test]
    fn a_batch_has_time_to_linger_and_to_be_sent() {
        let long = ("linger.ms", "100000");
        let config_of = |entries: &[(&str, &str)]| config(entries).map(|c| c.delivery_timeout);
        assert_eq!(config_of(&[]), Ok(Duration::from_secs(120)));
        assert_eq!(config_of(&[long]), Ok(Duration::from_secs(130)));
        let error = config_of(&[long, ("delivery.timeout.ms", "129999")]).expect_err("too short");
        assert!(error.contains("delivery.timeout.ms should be"), "{error}");
        let enough = config_of(&[long, ("delivery.timeout.ms", "130000")]);
        assert_eq!(enough, Ok(Duration::from_secs(130)));
    }

    #[test]
    fn what_is_wrong_or_not_known_is_refused() {
        for (key, value) in [
            ("acks", "2"),
            ("batch.size", "x"),
            ("compression.type", "zip"),
            ("transactional.id", "t"),
            ("interceptor.classes", "x"),
        ] {
            let error = config(&[(key, value)]).expect_err(key);
            assert!(error.contains(key), "{error}");
        }
    }
}
