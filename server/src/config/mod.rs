//! Configuration of the broker: Kafka's keys, where their values come from, and what they mean.
//!
//! [`keys`] is the one table of all keys. It feeds the parser ([`StaticConfig`]), the typed [`BrokerConfig`] that the
//! rest of the server reads, DescribeConfigs and changes at run time ([`DynamicConfig`]), and the documentation that
//! `highwater config-docs` prints.
//!
//! A value comes from, strongest first: the configuration of this one broker changed at run time, the one of all
//! brokers, `--override`, the environment (`KAFKA_…`), the properties file, in a container what suits one, the default.

mod broker_config;
mod container;
mod documentation;
mod dynamic;
mod environment;
mod key;
pub mod keys;
mod layers;
mod listeners;
mod node;
mod parts;
mod properties;
mod roles;
mod static_config;
mod value;

pub use broker_config::{BrokerConfig, HttpAddress};
pub use container::{container_defaults, container_file};
pub use documentation::markdown;
pub use dynamic::{BrokerConfigEntry, ConfigSource, ConfigSynonym, DynamicConfig, DynamicScope};
pub use environment::{VARIABLE_PREFIX, environment_properties};
pub use key::{Allowed, ConfigKey, ConfigType, Support, UpdateMode};
pub use listeners::{ListenerConfig, SecurityProtocol};
pub use properties::parse_properties;
pub use roles::{ProcessRoles, QuorumConfig, QuorumVoter};
pub use static_config::{ConfigNotice, StaticConfig};
pub use value::ConfigValue;

use std::path::PathBuf;

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone)]
pub enum ConfigError {
    /// The value of one key cannot be used.
    #[error("invalid value '{value}' for {key}: {allowed}")]
    InvalidValue {
        /// The key.
        key: String,
        /// The value as given; hidden when the key is sensitive.
        value: String,
        /// What would be accepted instead.
        allowed: String,
    },
    /// A key whose effect this version does not have, where going on without it would be dangerous.
    #[error("{key}={value} is not supported yet: {reason}")]
    NotSupported {
        /// The key.
        key: String,
        /// The value as given; hidden when the key is sensitive.
        value: String,
        /// What is supported.
        reason: String,
    },
    /// Two keys contradict each other.
    #[error("{0}")]
    Conflict(String),
    /// `--override` without an equals sign.
    #[error("--override {0}: key=value is expected")]
    MalformedOverride(String),
    /// The properties file cannot be read.
    #[error("cannot read the configuration file {path}: {reason}")]
    UnreadableFile {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        reason: String,
    },
    /// In a container, two places have a properties file.
    #[error("both {first} and {second} are there: mount one of them", first = first.display(), second = second.display())]
    TwoFiles {
        /// One of them.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// The value of a variable that gives a key is not text.
    #[error("the value of {0} is not UTF-8")]
    VariableIsNotText(String),
    /// The properties file has a bad escape.
    #[error("{path}, line {line}: {reason}")]
    MalformedFile {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

impl ConfigError {
    /// An [`ConfigError::InvalidValue`]; the value of a sensitive key is hidden.
    pub(crate) fn invalid(key: &str, value: &str, allowed: impl Into<String>) -> Self {
        ConfigError::InvalidValue {
            key: key.to_owned(),
            value: shown(key, value),
            allowed: allowed.into(),
        }
    }

    /// A [`ConfigError::NotSupported`]; the value of a sensitive key is hidden.
    pub(crate) fn not_supported(key: &str, value: &str, reason: impl Into<String>) -> Self {
        ConfigError::NotSupported {
            key: key.to_owned(),
            value: shown(key, value),
            reason: reason.into(),
        }
    }
}

/// The value as it may be shown: not at all when the key is sensitive.
fn shown(key: &str, value: &str) -> String {
    if keys::find(key).is_some_and(ConfigKey::is_sensitive) {
        "(hidden)".to_owned()
    } else {
        value.to_owned()
    }
}
