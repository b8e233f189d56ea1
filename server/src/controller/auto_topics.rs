//! Topics that are made because somebody asks for them: `auto.create.topics.enable`, and Kafka's internal topics.

use std::collections::HashSet;
use std::sync::Arc;

use highwater_replication::cluster::ClusterError;
use highwater_replication::cluster::create_topics::{
    CreateTopicResult, NewTopic, TopicDefaults, create_topics,
};
use highwater_replication::cluster::topic_name::GROUP_METADATA_TOPIC;
use highwater_storage::TopicId;
use parking_lot::Mutex;

use super::{ControllerError, ControllerHandle, Decision, ServerConfigRules};
use crate::config::{BrokerConfig, DynamicConfig};

/// What topics get that do not say: `num.partitions` and `default.replication.factor`.
pub fn topic_defaults(config: &BrokerConfig) -> TopicDefaults {
    TopicDefaults {
        num_partitions: config.num_partitions,
        replication_factor: i16::try_from(config.default_replication_factor).unwrap_or(i16::MAX),
    }
}

/// A topic as it is made without being described: Kafka's internal ones by their own settings, others by the defaults.
fn described(name: &str, config: &BrokerConfig) -> NewTopic {
    let topic = NewTopic {
        name: name.to_owned(),
        num_partitions: -1,
        replication_factor: -1,
        assignments: Vec::new(),
        configs: Vec::new(),
    };
    if name != GROUP_METADATA_TOPIC {
        return topic;
    }
    let set = |key: &str, value: String| (key.to_owned(), Some(value));
    NewTopic {
        num_partitions: config.offsets_topic_num_partitions,
        replication_factor: config.offsets_topic_replication_factor,
        configs: vec![
            set("cleanup.policy", "compact".to_owned()),
            set("compression.type", "producer".to_owned()),
            set(
                "segment.bytes",
                config.offsets_topic_segment_bytes.to_string(),
            ),
        ],
        ..topic
    }
}

/// Why a topic was not made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AutoTopicError {
    /// The controller could not write.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// The topic cannot be made.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// Makes topics on demand, each once at a time.
#[derive(Debug, Clone)]
pub struct AutoTopicCreation {
    controller: ControllerHandle,
    config: Arc<DynamicConfig>,
    in_flight: Arc<Mutex<HashSet<String>>>,
}

impl AutoTopicCreation {
    /// Creation through `controller`, with the defaults of `config`.
    pub fn new(controller: ControllerHandle, config: Arc<DynamicConfig>) -> Self {
        Self {
            controller,
            config,
            in_flight: Arc::default(),
        }
    }

    /// Begins to make topics and does not wait; those that are being made already are left out. Failures are logged.
    pub fn create_in_background(&self, names: &[&str]) {
        let new: Vec<String> = {
            let mut in_flight = self.in_flight.lock();
            names
                .iter()
                .filter(|name| in_flight.insert((**name).to_owned()))
                .map(|name| (*name).to_owned())
                .collect()
        };
        if new.is_empty() {
            return;
        }
        let creation = self.clone();
        tokio::spawn(async move {
            let created = creation.submit(&new).await;
            {
                let mut in_flight = creation.in_flight.lock();
                for name in &new {
                    in_flight.remove(name);
                }
            }
            match created {
                Ok(results) => results.iter().for_each(log_result),
                Err(error) => {
                    tracing::warn!(topics = ?new, %error, "automatic topic creation failed")
                }
            }
        });
    }

    /// Makes a topic and waits until it is there, or was there already.
    pub async fn ensure(&self, name: &str) -> Result<(), AutoTopicError> {
        let results = self.submit(&[name.to_owned()]).await?;
        for (_, result) in results {
            match result {
                Ok(_) | Err(ClusterError::TopicAlreadyExists(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn submit(&self, names: &[String]) -> Result<Vec<CreateTopicResult>, AutoTopicError> {
        let config = self.config.current();
        let topics: Vec<NewTopic> = names.iter().map(|name| described(name, &config)).collect();
        let defaults = topic_defaults(&config);
        let rules = ServerConfigRules::new(self.config.clone());
        let submitted = self.controller.submit(move |image, _| {
            match create_topics(image, &topics, defaults, &rules, &mut TopicId::random) {
                Ok((records, results)) => Decision {
                    records,
                    response: Ok(results),
                },
                Err(error) => Decision::unchanged(Err(error)),
            }
        });
        Ok(submitted.await??)
    }
}

fn log_result((topic, result): &CreateTopicResult) {
    match result {
        Ok(created) => {
            tracing::info!(topic, topic_id = %created.topic_id, partitions = created.num_partitions, "created topic on demand");
        }
        Err(ClusterError::TopicAlreadyExists(_)) => {}
        Err(error) => tracing::warn!(topic, %error, "automatic topic creation failed"),
    }
}
