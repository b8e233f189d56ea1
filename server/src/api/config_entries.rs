//! Configurations of topics as clients see them: every key with its value, where that comes from, and the broker's
//! keys that give it.

use highwater_replication::cluster::{ClusterImage, ConfigMap, ConfigResource};
use highwater_storage::TOPIC_CONFIG_KEYS;
use highwater_storage::log_config::ConfigType;
use std::sync::Arc;

use crate::broker::Broker;
use crate::config::ConfigSynonym;

/// Kafka's id of the kind of resource that stands for the log levels of a broker.
pub(super) const BROKER_LOGGER: i8 = 8;
/// The source of a value that was set on the topic itself.
const TOPIC_CONFIG_SOURCE: i8 = 1;
/// The source of a value that nobody set.
const DEFAULT_CONFIG_SOURCE: i8 = 5;

/// A key that gives a value.
pub(super) struct Synonym {
    pub(super) name: String,
    pub(super) value: Option<String>,
    pub(super) source: i8,
}

/// One key of a topic.
pub(super) struct TopicConfigEntry {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) source: i8,
    /// Kafka's id of the type.
    pub(super) config_type: i8,
    pub(super) documentation: &'static str,
    /// The strongest first.
    pub(super) synonyms: Vec<Synonym>,
}

/// What is set at run time on all brokers and on this one.
pub(super) fn dynamic_broker_configs(
    broker: &Broker,
    image: &ClusterImage,
) -> (Arc<ConfigMap>, Arc<ConfigMap>) {
    let of = |resource: &ConfigResource| image.configs(resource).cloned().unwrap_or_default();
    (
        of(&ConfigResource::default_broker()),
        of(&ConfigResource::broker(broker.controller.broker_id())),
    )
}

/// Every key of a topic on which `overrides` are set, by name.
pub(super) fn topic_config_entries(
    broker: &Broker,
    image: &ClusterImage,
    overrides: &ConfigMap,
) -> Vec<TopicConfigEntry> {
    let (all_brokers, this_broker) = dynamic_broker_configs(broker, image);
    let defaults = &broker.config.current().topic_defaults;
    let keys = TOPIC_CONFIG_KEYS.iter().filter(|key| !key.internal);
    let mut entries: Vec<TopicConfigEntry> = keys
        .map(|key| {
            let synonyms = broker
                .config
                .topic_synonyms(key.name, &all_brokers, &this_broker);
            // As in Kafka, a weaker synonym alone (hours of retention) is not told.
            let strongest = key.synonyms.first().map(|synonym| synonym.name);
            let mut synonyms: Vec<Synonym> = synonyms
                .into_iter()
                .skip_while(|synonym| Some(synonym.name.as_str()) != strongest)
                .map(Synonym::from)
                .collect();
            let set = overrides.get(key.name).map(String::as_str);
            let text = set
                .or_else(|| defaults.get(key.name).map(String::as_str))
                .or(key.default)
                .unwrap_or_default();
            // A value in the metadata was checked when it was set; one that is not readable is shown as it is.
            let value = key
                .parse(text)
                .map_or_else(|_| text.to_owned(), |value| value.to_string());
            if set.is_some() {
                let own = Synonym {
                    name: key.name.to_owned(),
                    value: Some(value.clone()),
                    source: TOPIC_CONFIG_SOURCE,
                };
                synonyms.insert(0, own);
            }
            TopicConfigEntry {
                name: key.name,
                value,
                source: synonyms
                    .first()
                    .map_or(DEFAULT_CONFIG_SOURCE, |strongest| strongest.source),
                config_type: type_id(key.kind),
                documentation: key.doc,
                synonyms,
            }
        })
        .collect();
    entries.sort_unstable_by_key(|entry| entry.name);
    entries
}

impl From<ConfigSynonym> for Synonym {
    fn from(synonym: ConfigSynonym) -> Self {
        Self {
            name: synonym.name,
            value: synonym.value,
            source: synonym.source.code(),
        }
    }
}

/// Kafka's ids of the types (KIP-569).
fn type_id(kind: ConfigType) -> i8 {
    match kind {
        ConfigType::Boolean => 1,
        ConfigType::String => 2,
        ConfigType::Int => 3,
        ConfigType::Long => 5,
        ConfigType::Double => 6,
        ConfigType::List => 7,
    }
}
