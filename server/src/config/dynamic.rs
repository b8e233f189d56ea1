//! Configuration that changes at run time (KIP-226), and what DescribeConfigs says of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use highwater_storage::log_config::topic_config_key;

use super::layers::{Entries, Layers};
use super::{
    BrokerConfig, ConfigError, ConfigKey, ConfigType, ConfigValue, StaticConfig, Support,
    UpdateMode, keys,
};

/// Whom a change at run time concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DynamicScope {
    /// The broker with this id; stored under its id.
    Broker,
    /// All brokers; stored under the empty name.
    AllBrokers,
}

/// Where a value comes from, as DescribeConfigs numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigSource {
    /// Set at run time for one broker.
    DynamicBroker,
    /// Set at run time for all brokers.
    DynamicDefaultBroker,
    /// From the file, the environment or the command line.
    StaticBroker,
    /// The default.
    Default,
}

impl ConfigSource {
    /// The code in a DescribeConfigs response.
    pub fn code(self) -> i8 {
        match self {
            ConfigSource::DynamicBroker => 2,
            ConfigSource::DynamicDefaultBroker => 3,
            ConfigSource::StaticBroker => 4,
            ConfigSource::Default => 5,
        }
    }
}

/// A key that gives the value, directly or when nothing stronger does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSynonym {
    /// The key.
    pub name: String,
    /// Its value; `None` when it is null or sensitive.
    pub value: Option<String>,
    /// Where the value comes from.
    pub source: ConfigSource,
}

/// One entry of DescribeConfigs for a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerConfigEntry {
    /// The key.
    pub name: String,
    /// The value in effect; `None` when it is null or sensitive.
    pub value: Option<String>,
    /// Where the value comes from.
    pub source: ConfigSource,
    /// Whether only a restart changes it.
    pub read_only: bool,
    /// Whether the value is hidden.
    pub sensitive: bool,
    /// Type of the value; `None` for a key that is not in the table.
    pub config_type: Option<ConfigType>,
    /// What the key does; empty for a key that is not in the table.
    pub documentation: &'static str,
    /// The keys and sources that give the value, the strongest first.
    pub synonyms: Vec<ConfigSynonym>,
}

/// The configuration in effect and the static one that it is built on.
#[derive(Debug)]
pub struct DynamicConfig {
    base: StaticConfig,
    current: ArcSwap<BrokerConfig>,
}

impl DynamicConfig {
    /// Begins with the static configuration alone.
    ///
    /// # Errors
    /// As [`BrokerConfig::from_static`].
    pub fn new(base: StaticConfig) -> Result<Self, ConfigError> {
        let current = ArcSwap::from_pointee(BrokerConfig::from_static(&base)?);
        Ok(DynamicConfig { base, current })
    }

    /// The configuration in effect.
    pub fn current(&self) -> Arc<BrokerConfig> {
        self.current.load_full()
    }

    /// Puts other overrides into effect: those of all brokers and those of this one, each as a whole.
    ///
    /// Entries that are unknown, that may not change at run time or whose value is not allowed have no effect, so that
    /// one bad entry in the metadata log does not undo the others; they are logged. Returns the configuration now in
    /// effect.
    pub fn apply(
        &self,
        all_brokers: &BTreeMap<String, String>,
        this_broker: &BTreeMap<String, String>,
    ) -> Arc<BrokerConfig> {
        let usable_all = usable(all_brokers, DynamicScope::AllBrokers);
        let usable_this = usable(this_broker, DynamicScope::Broker);
        match BrokerConfig::from_layers(&Layers(vec![
            &usable_this,
            &usable_all,
            self.base.entries(),
        ])) {
            Ok(config) => self.current.store(Arc::new(config)),
            Err(error) => tracing::error!(%error, "dynamic broker configuration has no effect"),
        }
        self.current()
    }

    /// Judges a change before it is written: `entries` is what the resource holds after the change, `changed` the keys
    /// that the request names. Keys outside the table are let through, as in Kafka.
    ///
    /// # Errors
    /// A sentence for the client; the code is INVALID_REQUEST.
    pub fn validate(
        &self,
        scope: DynamicScope,
        entries: &BTreeMap<String, String>,
        changed: &BTreeSet<String>,
    ) -> Result<(), String> {
        for name in changed {
            let Some(key) = keys::find(name) else {
                if keys::find_for_listener(name).is_some() {
                    return Err(format!("{name} is not supported yet"));
                }
                continue;
            };
            match (key.update_mode, key.support) {
                (UpdateMode::ReadOnly, _) => {
                    return Err(format!("Cannot update these configs dynamically: [{name}]"));
                }
                // Taking it away asks for nothing.
                (_, Support::NotYet | Support::Refused) if entries.contains_key(name) => {
                    return Err(format!("{name} is not supported yet"));
                }
                (UpdateMode::PerBroker, _) if scope == DynamicScope::AllBrokers => {
                    return Err(format!(
                        "Cannot update these configs at default cluster level, broker id must be specified: [{name}]"
                    ));
                }
                _ => {}
            }
            if let Some(text) = entries.get(name) {
                key.parse(text).map_err(|error| error.to_string())?;
            }
        }
        let usable = usable(entries, scope);
        BrokerConfig::from_layers(&Layers(vec![&usable, self.base.entries()]))
            .map(|_| ())
            .map_err(|error| error.to_string())
    }

    /// What DescribeConfigs says of this broker, sorted by key: every key of the table, and those of the overrides and
    /// the file that are not in it.
    pub fn describe(
        &self,
        all_brokers: &BTreeMap<String, String>,
        this_broker: &BTreeMap<String, String>,
    ) -> Vec<BrokerConfigEntry> {
        let mut names: BTreeSet<&str> = keys::all()
            .filter(|key| !key.internal)
            .map(|key| key.name)
            .collect();
        names.extend(self.base.entries().keys().map(String::as_str));
        names.extend(all_brokers.keys().map(String::as_str));
        names.extend(this_broker.keys().map(String::as_str));
        let sources = [
            (ConfigSource::DynamicBroker, this_broker),
            (ConfigSource::DynamicDefaultBroker, all_brokers),
            (ConfigSource::StaticBroker, self.base.entries()),
        ];
        names
            .into_iter()
            .map(|name| describe_key(name, &sources))
            .collect()
    }

    /// What DescribeConfigs says of the resource of all brokers: its own entries only.
    pub fn describe_all_brokers(
        &self,
        all_brokers: &BTreeMap<String, String>,
    ) -> Vec<BrokerConfigEntry> {
        let sources = [(ConfigSource::DynamicDefaultBroker, all_brokers)];
        all_brokers
            .keys()
            .map(|name| {
                let mut entry = describe_key(name, &sources);
                entry
                    .synonyms
                    .retain(|synonym| synonym.source == ConfigSource::DynamicDefaultBroker);
                entry
            })
            .collect()
    }

    /// The broker's part of a topic key's synonyms, the strongest first: for DescribeConfigs of topics.
    pub fn topic_synonyms(
        &self,
        topic_key: &str,
        all_brokers: &BTreeMap<String, String>,
        this_broker: &BTreeMap<String, String>,
    ) -> Vec<ConfigSynonym> {
        let sources = [
            (ConfigSource::DynamicBroker, this_broker),
            (ConfigSource::DynamicDefaultBroker, all_brokers),
            (ConfigSource::StaticBroker, self.base.entries()),
        ];
        let names: Vec<&str> = topic_config_key(topic_key)
            .map(|key| key.synonyms.iter().map(|synonym| synonym.name).collect())
            .unwrap_or_default();
        synonyms(&names, &sources)
    }
}

type Sources<'a> = [(ConfigSource, &'a Entries)];

/// Entries that take effect in this scope.
fn usable(entries: &BTreeMap<String, String>, scope: DynamicScope) -> Entries {
    entries
        .iter()
        .filter(|(name, text)| {
            let Some(key) = keys::find(name) else {
                return false;
            };
            let changes = match key.update_mode {
                UpdateMode::ReadOnly => false,
                UpdateMode::PerBroker => scope == DynamicScope::Broker,
                UpdateMode::ClusterWide => true,
            };
            let usable = changes && key.parse(text).is_ok();
            if !usable {
                tracing::warn!(key = %name, "dynamic broker configuration entry has no effect");
            }
            usable
        })
        .map(|(name, text)| (name.clone(), text.clone()))
        .collect()
}

/// The names under which a broker key may be given, the strongest first: `log.retention.ms` also as minutes and hours,
/// and a listener's own key also without its prefix.
fn names_of(name: &str) -> Vec<&str> {
    let families: [&[&str]; 4] = [
        &[
            "log.retention.ms",
            "log.retention.minutes",
            "log.retention.hours",
        ],
        &["log.roll.ms", "log.roll.hours"],
        &["log.roll.jitter.ms", "log.roll.jitter.hours"],
        &["log.flush.interval.ms", "log.flush.scheduler.interval.ms"],
    ];
    if let Some(family) = families.into_iter().find(|family| family[0] == name) {
        return family.to_vec();
    }
    match keys::find_for_listener(name) {
        Some((_, key)) => vec![name, key.name],
        None => vec![name],
    }
}

fn known(name: &str) -> Option<&'static ConfigKey> {
    keys::find(name).or_else(|| Some(keys::find_for_listener(name)?.1))
}

/// All values that there are for these names: first by source, then by name.
fn synonyms(names: &[&str], sources: &Sources<'_>) -> Vec<ConfigSynonym> {
    let mut list = Vec::new();
    for (source, entries) in sources {
        for name in names {
            let Some(text) = entries.get(*name) else {
                continue;
            };
            let value = match known(name) {
                Some(key) if key.is_sensitive() => None,
                Some(key) => key
                    .parse(text)
                    .map_or_else(|_| Some(text.clone()), |value| value.to_text()),
                None => None,
            };
            list.push(ConfigSynonym {
                name: (*name).to_owned(),
                value,
                source: *source,
            });
        }
    }
    for name in names {
        if let Some(key) = keys::find(name)
            && key.default.is_some()
        {
            let value = key
                .default_value()
                .to_text()
                .filter(|_| !key.is_sensitive());
            list.push(ConfigSynonym {
                name: (*name).to_owned(),
                value,
                source: ConfigSource::Default,
            });
        }
    }
    list
}

fn describe_key(name: &str, sources: &Sources<'_>) -> BrokerConfigEntry {
    let key = known(name);
    let sensitive = key.is_none_or(ConfigKey::is_sensitive);
    let own = sources
        .iter()
        .find_map(|(source, entries)| Some((*source, entries.get(name)?)));
    let value = match (key, own) {
        (Some(key), Some((_, text))) => key.parse(text).unwrap_or(ConfigValue::Text(text.clone())),
        (Some(key), None) => key.default_value(),
        (None, _) => ConfigValue::Null,
    };
    let mut synonyms = synonyms(&names_of(name), sources);
    if value == ConfigValue::Null && !sensitive {
        synonyms.clear();
    }
    BrokerConfigEntry {
        name: name.to_owned(),
        value: value.to_text().filter(|_| !sensitive),
        source: own.map_or(ConfigSource::Default, |(source, _)| source),
        read_only: key.is_none_or(|key| {
            key.update_mode == UpdateMode::ReadOnly
                || matches!(key.support, Support::NotYet | Support::Refused)
        }),
        sensitive,
        config_type: key.map(|key| key.config_type),
        documentation: key.map_or("", |key| key.doc),
        synonyms,
    }
}

#[cfg(test)]
#[path = "dynamic_tests.rs"]
mod tests;
