//! Topics that are made because somebody asks for them: `auto.create.topics.enable`, and Kafka's internal topics.

use std::collections::HashSet;
use std::sync::Arc;

use highwater_replication::cluster::topic_name::GROUP_METADATA_TOPIC;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::{CreateTopicsRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use parking_lot::Mutex;

use super::controller_channel::{ChannelError, ControllerChannel};
use crate::config::{BrokerConfig, DynamicConfig};

/// How long the controller may take, as in Kafka.
const TIMEOUT_MS: i32 = 30_000;

/// A topic as it is made without being described: Kafka's internal ones by their own settings, others by the defaults
/// of this broker.
fn described(name: &str, config: &BrokerConfig) -> CreatableTopic {
    let topic = CreatableTopic::default().with_name(TopicName(text(name)));
    if name != GROUP_METADATA_TOPIC {
        return topic
            .with_num_partitions(config.num_partitions)
            .with_replication_factor(replication_factor(config.default_replication_factor));
    }
    let set = |key: &'static str, value: &str| {
        CreatableTopicConfig::default()
            .with_name(StrBytes::from_static_str(key))
            .with_value(Some(text(value)))
    };
    topic
        .with_num_partitions(config.offsets_topic_num_partitions)
        .with_replication_factor(config.offsets_topic_replication_factor)
        .with_configs(vec![
            set("cleanup.policy", "compact"),
            set("compression.type", "producer"),
            set(
                "segment.bytes",
                &config.offsets_topic_segment_bytes.to_string(),
            ),
        ])
}

fn replication_factor(configured: i32) -> i16 {
    i16::try_from(configured).unwrap_or(i16::MAX)
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// Why a topic was not made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AutoTopicError {
    /// The controller did not answer.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The controller does not make the topic.
    #[error("{0}")]
    Refused(String),
}

/// Has the controller make topics on demand, each once at a time.
#[derive(Debug, Clone)]
pub struct AutoTopicCreation {
    channel: ControllerChannel,
    config: Arc<DynamicConfig>,
    in_flight: Arc<Mutex<HashSet<String>>>,
}

impl AutoTopicCreation {
    /// Creation over `channel`, with the defaults of `config`.
    pub fn new(channel: ControllerChannel, config: Arc<DynamicConfig>) -> Self {
        Self {
            channel,
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
            let created = creation.create(&new).await;
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
    ///
    /// # Errors
    /// When the controller does not answer, or does not make it.
    pub async fn ensure(&self, name: &str) -> Result<(), AutoTopicError> {
        let results = self.create(&[name.to_owned()]).await?;
        match results.iter().find_map(refusal) {
            Some(refusal) => Err(AutoTopicError::Refused(refusal)),
            None => Ok(()),
        }
    }

    async fn create(&self, names: &[String]) -> Result<Vec<CreatableTopicResult>, ChannelError> {
        let config = self.config.current();
        let topics = names.iter().map(|name| described(name, &config));
        let request = CreateTopicsRequest::default()
            .with_topics(topics.collect())
            .with_timeout_ms(TIMEOUT_MS);
        Ok(self.channel.call(&request).await?.topics)
    }
}

/// Why a topic is not there; `None` when it is.
fn refusal(result: &CreatableTopicResult) -> Option<String> {
    match ResponseError::try_from_code(result.error_code) {
        None if result.error_code == 0 => None,
        Some(ResponseError::TopicAlreadyExists) => None,
        error => {
            let error = error.map_or_else(|| result.error_code.to_string(), |e| e.to_string());
            let message = result.error_message.as_deref();
            Some(message.map_or(error, str::to_owned))
        }
    }
}

fn log_result(result: &CreatableTopicResult) {
    let topic = result.name.as_str();
    match refusal(result) {
        None if result.error_code == 0 => {
            tracing::info!(topic, topic_id = %result.topic_id, partitions = result.num_partitions, "created topic on demand");
        }
        None => {}
        Some(error) => tracing::warn!(topic, error, "automatic topic creation failed"),
    }
}
