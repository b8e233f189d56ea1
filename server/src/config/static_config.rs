//! What the properties file, the environment and the command line say.

use std::collections::BTreeMap;
use std::path::Path;

use super::{
    ConfigError, Support, container_defaults, environment_properties, keys, parse_properties,
};

/// The entries that are fixed until the next start, and what is to be said about them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StaticConfig {
    entries: BTreeMap<String, String>,
}

/// Something about an entry that the operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigNotice {
    /// No such key exists; the name of one that is close may be there.
    Unknown {
        /// The key as given.
        key: String,
        /// A key of nearly the same name.
        similar: Option<&'static str>,
    },
    /// What the key governs does not exist yet.
    NotSupportedYet {
        /// The key as given.
        key: String,
    },
    /// The key tunes a part of Apache Kafka that this broker does not have.
    NoCounterpart {
        /// The key as given.
        key: String,
        /// Why it does nothing here.
        reason: &'static str,
    },
}

impl StaticConfig {
    /// Reads the file, then the environment over it, then the overrides (`key=value`) over both.
    ///
    /// # Errors
    /// When the file cannot be read, an override has no equals sign, a value is not what its key allows, or a key is
    /// set whose absence here would be dangerous to overlook.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        overrides: &[String],
    ) -> Result<Self, ConfigError> {
        Self::from_entries(read(file, environment, overrides)?)
    }

    /// As [`StaticConfig::load`], and under all of them what suits a container
    /// ([`container_defaults`](super::container_defaults)).
    ///
    /// # Errors
    /// As [`StaticConfig::load`].
    pub fn load_in_container(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        overrides: &[String],
    ) -> Result<Self, ConfigError> {
        let given = read(file, environment, overrides)?;
        let mut entries = container_defaults(&given);
        entries.extend(given);
        Self::from_entries(entries)
    }

    /// A configuration of these entries, checked as [`StaticConfig::load`] does.
    ///
    /// # Errors
    /// As [`StaticConfig::load`].
    pub fn from_entries<K: Into<String>, V: Into<String>>(
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, ConfigError> {
        let mut config = StaticConfig {
            entries: entries
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        };
        config.check()?;
        config.complete_node_id();
        Ok(config)
    }

    /// Of `node.id` and `broker.id`, the one that is not given is the other, as in Kafka.
    fn complete_node_id(&mut self) {
        for (given, absent) in [("node.id", "broker.id"), ("broker.id", "node.id")] {
            if let Some(id) = self.entries.get(given).cloned()
                && !self.entries.contains_key(absent)
                && id.trim() != "-1"
            {
                self.entries.insert(absent.to_owned(), id);
            }
        }
    }

    /// The entries as given.
    pub fn entries(&self) -> &BTreeMap<String, String> {
        &self.entries
    }

    fn check(&self) -> Result<(), ConfigError> {
        for (name, text) in &self.entries {
            let Some(key) = keys::find(name).or_else(|| Some(keys::find_for_listener(name)?.1))
            else {
                continue;
            };
            let value = key.parse(text)?;
            if key.support == Support::Refused && !key.is_default(&value) {
                return Err(ConfigError::not_supported(
                    name,
                    text.trim(),
                    "leave it out",
                ));
            }
        }
        Ok(())
    }

    /// What should be said about these entries at start, sorted by key.
    pub fn notices(&self) -> Vec<ConfigNotice> {
        self.entries
            .iter()
            .filter_map(|(name, text)| notice(name, text))
            .collect()
    }
}

/// The entries of the file, the environment over it, and the overrides over both.
fn read(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (String, String)>,
    overrides: &[String],
) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut entries = BTreeMap::new();
    if let Some(path) = file {
        let bytes = std::fs::read(path).map_err(|error| ConfigError::UnreadableFile {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        let parsed =
            parse_properties(&bytes).map_err(|(line, reason)| ConfigError::MalformedFile {
                path: path.to_owned(),
                line,
                reason,
            })?;
        entries.extend(parsed);
    }
    entries.extend(environment_properties(environment));
    for text in overrides {
        let (key, value) = text
            .split_once('=')
            .filter(|(key, _)| !key.trim().is_empty())
            .ok_or_else(|| ConfigError::MalformedOverride(text.clone()))?;
        entries.insert(key.trim().to_owned(), value.to_owned());
    }
    Ok(entries)
}

fn notice(name: &str, text: &str) -> Option<ConfigNotice> {
    let (key, of_listener) = match (keys::find(name), keys::find_for_listener(name)) {
        (Some(key), _) => (key, false),
        (None, Some((_, key))) => (key, true),
        (None, None) => {
            return Some(ConfigNotice::Unknown {
                key: name.to_owned(),
                similar: similar(name),
            });
        }
    };
    let is_default = key.parse(text).is_ok_and(|value| key.is_default(&value));
    match key.support {
        _ if is_default && !of_listener => None,
        Support::NoCounterpart(reason) => Some(ConfigNotice::NoCounterpart {
            key: name.to_owned(),
            reason,
        }),
        Support::Active if !of_listener => None,
        _ => Some(ConfigNotice::NotSupportedYet {
            key: name.to_owned(),
        }),
    }
}

/// The key whose name is at most two changes away, if there is one.
fn similar(name: &str) -> Option<&'static str> {
    keys::all()
        .filter(|key| !key.internal && key.name.len().abs_diff(name.len()) <= 2)
        .map(|key| (distance(key.name, name), key.name))
        .min()
        .filter(|(distance, _)| *distance <= 2)
        .map(|(_, name)| name)
}

/// Levenshtein distance of two texts, in bytes.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.bytes().enumerate() {
            let substituted = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

impl std::fmt::Display for ConfigNotice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConfigNotice::Unknown {
                key,
                similar: Some(similar),
            } => {
                write!(
                    f,
                    "unknown configuration key {key}, did you mean {similar}?"
                )
            }
            ConfigNotice::Unknown { key, similar: None } => {
                write!(f, "unknown configuration key {key}")
            }
            ConfigNotice::NotSupportedYet { key } => {
                write!(f, "{key} is not supported yet and has no effect")
            }
            ConfigNotice::NoCounterpart { key, reason } => {
                write!(f, "{key} has no effect here: {reason}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notices(entries: &[(&str, &str)]) -> Vec<String> {
        let config =
            StaticConfig::from_entries(entries.iter().copied()).expect("acceptable entries");
        config.notices().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("server.properties");
        std::fs::write(&path, "num.partitions=2\nnode.id=2\nbroker.rack=file\n").expect("written");
        let environment = [("KAFKA_NODE_ID", "3"), ("KAFKA_BROKER_RACK", "environment")];
        let config = StaticConfig::load(
            Some(&path),
            environment.map(|(name, value)| (name.to_owned(), value.to_owned())),
            &["broker.rack=command=line".to_owned()],
        )
        .expect("a configuration");
        let expected = [
            ("broker.rack", "command=line"),
            ("node.id", "3"),
            ("num.partitions", "2"),
        ];
        assert_eq!(
            config,
            StaticConfig::from_entries(expected).expect("the same")
        );
    }

    #[test]
    fn a_file_that_is_not_there_and_a_malformed_override_are_refused() {
        let error =
            StaticConfig::load(Some(Path::new("/no/such/file")), [], &[]).expect_err("no file");
        assert!(
            error
                .to_string()
                .starts_with("cannot read the configuration file /no/such/file: "),
            "{error}"
        );
        let error =
            StaticConfig::load(None, [], &["node.id".to_owned()]).expect_err("no equals sign");
        assert_eq!(
            error.to_string(),
            "--override node.id: key=value is expected"
        );
    }

    #[test]
    fn unknown_and_unsupported_keys_are_named_and_defaults_are_not() {
        assert_eq!(
            notices(&[("num.partition", "3")]),
            ["unknown configuration key num.partition, did you mean num.partitions?"]
        );
        assert_eq!(
            notices(&[("zookeeper.connect", "x:2181")]),
            ["unknown configuration key zookeeper.connect"]
        );
        assert_eq!(
            notices(&[("ssl.keystore.location", "/k.jks")]),
            ["ssl.keystore.location is not supported yet and has no effect"]
        );
        assert_eq!(
            notices(&[
                ("num.io.threads", "8"),
                ("authorizer.class.name", ""),
                ("quota.window.num", "11")
            ]),
            [] as [&str; 0]
        );
        assert_eq!(
            notices(&[("num.io.threads", "16")]),
            [
                "num.io.threads has no effect here: one worker a core does both network and request work"
            ]
        );
        assert_eq!(
            notices(&[("listener.name.plaintext.max.connections", "5")]),
            ["listener.name.plaintext.max.connections is not supported yet and has no effect"]
        );
    }

    #[test]
    fn what_would_be_dangerous_to_overlook_stops_the_start() {
        let error =
            StaticConfig::from_entries([("authorizer.class.name", "org.example.Authorizer")])
                .expect_err("refused");
        assert_eq!(
            error.to_string(),
            "authorizer.class.name=org.example.Authorizer is not supported yet: leave it out"
        );
        assert!(
            StaticConfig::from_entries([("remote.log.storage.system.enable", "true")]).is_err()
        );
        let error = StaticConfig::from_entries([("delegation.token.secret.key", "s3cret")])
            .expect_err("refused");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}
