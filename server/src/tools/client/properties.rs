//! The settings of a tool's client: `--command-config` and the like.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::protocol::StrBytes;

use super::KafkaError;
use crate::network::client::{Backoff, ClientConfig};
use crate::tools::ToolError;
use crate::tools::properties::read_properties;

/// Properties that are numbers of 64 bits in Kafka; all others have 32.
const LONGS: &[&str] = &[
    "buffer.memory",
    "linger.ms",
    "max.block.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "socket.connection.setup.timeout.ms",
];
/// Properties that may not be 0 in Kafka.
const AT_LEAST_ONE: &[&str] = &[
    "max.in.flight.requests.per.connection",
    "max.poll.interval.ms",
];

/// Properties of a client as its file and options give them, later ones over earlier ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientProperties {
    entries: Vec<(String, String)>,
}

impl ClientProperties {
    /// Reads a properties file; without one everything has its default.
    ///
    /// # Errors
    /// When the file cannot be read or is no properties file, or asks for what this client does not speak.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, KafkaError> {
        let Some(file) = file else {
            return Ok(Self::default());
        };
        let entries = read_properties(file).map_err(KafkaError::config)?;
        let properties = ClientProperties { entries };
        properties.check()?;
        Ok(properties)
    }

    /// As [`load`](Self::load), with the properties of options (`KEY=VALUE`) over those of the file.
    ///
    /// # Errors
    /// As `load`, and for an option that is no property.
    pub(crate) fn load_with<'a>(
        file: Option<&Path>,
        options: impl IntoIterator<Item = &'a String>,
    ) -> Result<Self, KafkaError> {
        let mut properties = Self::load(file)?;
        for option in options {
            let (key, value) = key_value(option)?;
            properties.set(key, value);
        }
        Ok(properties)
    }

    /// Sets a property over what was there.
    pub(crate) fn set(&mut self, key: &str, value: &str) {
        self.entries.push((key.to_owned(), value.to_owned()));
    }

    /// The value of a property, if it is set.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let mut latest_first = self.entries.iter().rev();
        latest_first
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.trim())
    }

    /// The names of all properties that are set.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(key, _)| key.as_str())
    }

    /// Refuses what a client of Kafka knows and this one does not, rather than to do without it. A property that no such
    /// client knows has no effect, and stderr says so, as Kafka's log does: a file may be meant for several clients.
    /// `refused` are names, or what names begin with where it ends in a dot.
    ///
    /// # Errors
    /// For the first property that is refused.
    pub(crate) fn check_known(
        &self,
        client: &str,
        known: &[&str],
        refused: &[&str],
    ) -> Result<(), KafkaError> {
        let is_refused = |key: &str| {
            let refused = refused.iter().chain(&["sasl.", "ssl."]);
            refused.into_iter().any(|name| match name.ends_with('.') {
                true => key.starts_with(name),
                false => key == *name,
            })
        };
        let mut unknown: Vec<&str> = self.keys().filter(|key| !known.contains(key)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        if let Some(key) = unknown.iter().find(|key| is_refused(key)) {
            return Err(KafkaError::config(format!(
                "the {client} property {key} is not supported"
            )));
        }
        for key in unknown {
            ToolError::warn(&format!(
                "The {client} property {key} is not known and has no effect."
            ));
        }
        Ok(())
    }

    /// A property that is a number, 0 or more where it is set (some 1 or more).
    ///
    /// # Errors
    /// In Kafka's words when it is none, or too small or too large a one.
    pub(crate) fn number<N: TryFrom<i64>>(&self, key: &str, default: N) -> Result<N, KafkaError> {
        let Some(value) = self.get(key) else {
            return Ok(default);
        };
        let wrong = |reason: String| {
            let text = format!("Invalid value {value} for configuration {key}: {reason}");
            KafkaError::config(text)
        };
        let (of_type, most) = match LONGS.contains(&key) {
            true => ("LONG", i64::MAX),
            false => ("INT", i64::from(i32::MAX)),
        };
        let no_number = || wrong(format!("Not a number of type {of_type}"));
        let number: i64 = value.parse().map_err(|_| no_number())?;
        let least = i64::from(AT_LEAST_ONE.contains(&key));
        if (-most - 1..least).contains(&number) {
            return Err(wrong(format!("Value must be at least {least}")));
        }
        let number = Some(number).filter(|number| (least..=most).contains(number));
        let number = number.and_then(|number| N::try_from(number).ok());
        number.ok_or_else(no_number)
    }

    /// A property in milliseconds.
    ///
    /// # Errors
    /// When it is no number.
    pub(crate) fn millis(&self, key: &str, default: u64) -> Result<Duration, KafkaError> {
        self.number(key, default).map(Duration::from_millis)
    }

    /// Refuses what this client cannot do.
    ///
    /// # Errors
    /// For a security protocol other than PLAINTEXT.
    pub(crate) fn check(&self) -> Result<(), KafkaError> {
        match self.get("security.protocol") {
            None => Ok(()),
            Some(protocol) if protocol.eq_ignore_ascii_case("PLAINTEXT") => Ok(()),
            Some(protocol) => Err(KafkaError::config(format!(
                "security.protocol={protocol} is not supported: Highwater's tools connect in PLAINTEXT only"
            ))),
        }
    }

    /// How the network client is to behave.
    ///
    /// # Errors
    /// When a property does not parse.
    pub(super) fn client_config(&self, client_id: &str) -> Result<Arc<ClientConfig>, KafkaError> {
        let client_id = self.get("client.id").unwrap_or(client_id).to_owned();
        let defaults = ClientConfig::named(StrBytes::from_string(client_id));
        Ok(Arc::new(ClientConfig {
            request_timeout: self.millis("request.timeout.ms", 30_000)?,
            connection_setup_timeout: self.millis("socket.connection.setup.timeout.ms", 10_000)?,
            reconnect_backoff: Backoff::new(
                self.millis("reconnect.backoff.ms", 50)?,
                self.millis("reconnect.backoff.max.ms", 1_000)?,
            ),
            ..defaults
        }))
    }
}

/// Takes `key=value` apart, as an option gives a property; the value may be empty.
///
/// # Errors
/// When there is no key or no `=`.
pub(crate) fn key_value(property: &str) -> Result<(&str, &str), KafkaError> {
    match property.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key, value)),
        _ => Err(KafkaError::of_client(
            "IllegalArgumentException",
            format!("Invalid command line properties: {property}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<ClientProperties, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("client.properties");
        std::fs::write(&file, text).expect("written");
        ClientProperties::load(Some(&file)).map_err(|error| error.to_string())
    }

    #[test]
    fn properties_are_read_and_set_over() {
        let mut properties = load("request.timeout.ms = 5\nclient.id=me\n").expect("loads");
        assert_eq!(
            properties.millis("request.timeout.ms", 7),
            Ok(Duration::from_millis(5))
        );
        assert_eq!(properties.number("no.such", 7), Ok(7));
        properties.set("request.timeout.ms", "x");
        let error = properties
            .millis("request.timeout.ms", 7)
            .expect_err("no number");
        assert!(error.message.contains("request.timeout.ms"), "{error}");
    }

    #[test]
    fn a_number_that_is_none_is_told_in_kafkas_words() {
        let told = |key: &str, value: &str| {
            let mut properties = ClientProperties::default();
            properties.set(key, value);
            let error = properties.number(key, 7_u64).expect_err("refused");
            let text = error.message;
            let reason =
                text.strip_prefix(&format!("Invalid value {value} for configuration {key}: "));
            reason.expect("the value and the key").to_owned()
        };
        assert_eq!(told("max.block.ms", "-1"), "Value must be at least 0");
        assert_eq!(told("request.timeout.ms", "-1"), "Value must be at least 0");
        assert_eq!(told("max.block.ms", "2.5"), "Not a number of type LONG");
        assert_eq!(told("retries", "x"), "Not a number of type INT");
        assert_eq!(told("retries", "2147483648"), "Not a number of type INT");
        assert_eq!(told("retries", "-2147483649"), "Not a number of type INT");
        let in_flight = "max.in.flight.requests.per.connection";
        assert_eq!(told(in_flight, "0"), "Value must be at least 1");
        let mut properties = ClientProperties::default();
        properties.set("linger.ms", "2147483648");
        assert_eq!(properties.number("linger.ms", 7_i64), Ok(2_147_483_648));
    }

    #[test]
    fn a_property_has_a_key() {
        assert_eq!(key_value("a=b=c"), Ok(("a", "b=c")));
        assert_eq!(key_value("a="), Ok(("a", "")));
        assert!(key_value("a").is_err() && key_value("=b").is_err());
    }

    #[test]
    fn what_kafkas_clients_know_is_refused_and_what_they_do_not_is_left() {
        let check = |text: &str| {
            load(text)
                .expect("loads")
                .check_known("x", &["a"], &["b", "c."])
        };
        assert_eq!(check("a=1\nfoo=2\nfoo=3\nbc=4\nc=5"), Ok(()));
        for key in ["b", "c.d", "ssl.key.password", "sasl.mechanism"] {
            let error = check(&format!("{key}=1")).expect_err(key);
            assert!(error.message.contains(key), "{error}");
        }
    }

    #[test]
    fn only_plaintext_is_spoken() {
        assert!(load("security.protocol=PLAINTEXT").is_ok());
        let error = load("security.protocol=SASL_SSL").expect_err("refused");
        assert!(error.contains("SASL_SSL is not supported"), "{error}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = ClientProperties::load(Some(Path::new("/no/such.properties")));
        assert!(
            error
                .expect_err("missing")
                .message
                .contains("/no/such.properties")
        );
    }
}
