//! DescribeConfigs: topics and brokers, every key with its source and synonyms.
//!
//! Groups, client metrics and loggers have no key that acts here: they are described without entries.

use std::sync::Arc;

use highwater_replication::cluster::{ClusterError, ClusterImage, ResourceType, topic_name};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::config_entries::{
    BROKER_LOGGER, Synonym, TopicConfigEntry, dynamic_broker_configs, topic_config_entries,
};
use super::error_code::ErrorCode;
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::config::BrokerConfigEntry;

/// Type of a key that is not in any table.
const UNKNOWN_TYPE: i8 = 0;

/// Handles a DescribeConfigs request.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: DescribeConfigsRequest,
) -> Reply {
    let image = broker.image();
    if let Some(unknown) = request
        .resources
        .iter()
        .find(|resource| !is_known_type(resource.resource_type))
    {
        let error = ClusterError::InvalidRequest(
            // The text of Kafka's code: it gives no other here.
            "This most likely occurs because of a request being malformed by the client library or the message was \
             sent to an incompatible broker. See the broker logs for more details."
                .to_owned(),
        );
        tracing::debug!(
            resource_type = unknown.resource_type,
            "configurations of an unknown type were asked for"
        );
        let results = request
            .resources
            .iter()
            .map(|resource| failed(ctx, resource, &error));
        return ctx
            .encode(&DescribeConfigsResponse::default().with_results(results.collect()))
            .into();
    }
    let view = View {
        broker,
        image: &image,
        with_synonyms: request.include_synonyms,
        with_documentation: request.include_documentation,
    };
    let results = request
        .resources
        .iter()
        .map(|resource| match view.describe(resource) {
            Ok(configs) => result(resource).with_configs(configs),
            Err(error) => failed(ctx, resource, &error),
        });
    ctx.encode(&DescribeConfigsResponse::default().with_results(results.collect()))
        .into()
}

fn is_known_type(resource_type: i8) -> bool {
    resource_type == BROKER_LOGGER || ResourceType::from_id(resource_type).is_some()
}

fn result(resource: &DescribeConfigsResource) -> DescribeConfigsResult {
    DescribeConfigsResult::default()
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name.clone())
}

fn failed(
    ctx: &RequestContext,
    resource: &DescribeConfigsResource,
    error: &ClusterError,
) -> DescribeConfigsResult {
    let code = error.error_code();
    ctx.count_error(code);
    // Kafka leaves the text of an unknown topic empty.
    let text = match code {
        ResponseError::UnknownTopicOrPartition => String::new(),
        _ => error.to_string(),
    };
    result(resource)
        .with_error_code(code.code())
        .with_error_message(Some(StrBytes::from_string(text)))
}

/// What one request wants to know.
struct View<'a> {
    broker: &'a Arc<Broker>,
    image: &'a ClusterImage,
    with_synonyms: bool,
    with_documentation: bool,
}

impl View<'_> {
    fn describe(
        &self,
        resource: &DescribeConfigsResource,
    ) -> Result<Vec<DescribeConfigsResourceResult>, ClusterError> {
        let name = resource.resource_name.as_str();
        let entries = match ResourceType::from_id(resource.resource_type) {
            Some(ResourceType::Topic) => self.topic(name)?,
            Some(ResourceType::Broker) if name.is_empty() => {
                let (all_brokers, _) = dynamic_broker_configs(self.broker, self.image);
                self.broker_entries(self.broker.config.describe_all_brokers(&all_brokers))
            }
            Some(ResourceType::Broker) => {
                self.check_broker_id(name, "or empty string, but")?;
                let (all_brokers, this_broker) = dynamic_broker_configs(self.broker, self.image);
                self.broker_entries(self.broker.config.describe(&all_brokers, &this_broker))
            }
            Some(ResourceType::ClientMetrics) if name.is_empty() => {
                let text = "Client metrics subscription name must not be empty";
                return Err(ClusterError::InvalidRequest(text.to_owned()));
            }
            Some(ResourceType::Group) if name.is_empty() => {
                return Err(ClusterError::InvalidRequest(
                    "Group name must not be empty".to_owned(),
                ));
            }
            Some(ResourceType::ClientMetrics | ResourceType::Group) => Vec::new(),
            None if name.is_empty() => {
                return Err(ClusterError::InvalidRequest(
                    "Broker id must not be empty".to_owned(),
                ));
            }
            None => {
                self.check_broker_id(name, "but")?;
                Vec::new()
            }
        };
        let asked = resource.configuration_keys.as_deref().unwrap_or_default();
        let is_asked =
            |entry: &DescribeConfigsResourceResult| asked.is_empty() || asked.contains(&entry.name);
        Ok(entries.into_iter().filter(is_asked).collect())
    }

    fn check_broker_id(&self, name: &str, conjunction: &str) -> Result<(), ClusterError> {
        let own = self.broker.controller.broker_id().0;
        match name.parse::<i32>() {
            Ok(id) if id == own => Ok(()),
            Ok(_) => Err(ClusterError::InvalidRequest(format!(
                "Unexpected broker id, expected {own} {conjunction} received {name}"
            ))),
            Err(_) => Err(ClusterError::InvalidRequest(format!(
                "Broker id must be an integer, but it is: {name}"
            ))),
        }
    }

    fn topic(&self, name: &str) -> Result<Vec<DescribeConfigsResourceResult>, ClusterError> {
        topic_name::validate(name)?;
        if self.image.topic(name).is_none() {
            return Err(ClusterError::unknown_topic());
        }
        let overrides = self.image.topic_configs(name).cloned().unwrap_or_default();
        let entries = topic_config_entries(self.broker, self.image, &overrides).into_iter();
        Ok(entries.map(|entry| self.topic_entry(entry)).collect())
    }

    fn topic_entry(&self, entry: TopicConfigEntry) -> DescribeConfigsResourceResult {
        DescribeConfigsResourceResult::default()
            .with_name(StrBytes::from_static_str(entry.name))
            .with_value(Some(StrBytes::from_string(entry.value)))
            .with_config_source(entry.source)
            .with_config_type(entry.config_type)
            .with_synonyms(self.synonyms(entry.synonyms))
            .with_documentation(self.documentation(entry.documentation))
    }

    fn broker_entries(
        &self,
        entries: Vec<BrokerConfigEntry>,
    ) -> Vec<DescribeConfigsResourceResult> {
        let entry = |entry: BrokerConfigEntry| {
            let synonyms = entry.synonyms.into_iter().map(Synonym::from).collect();
            DescribeConfigsResourceResult::default()
                .with_name(StrBytes::from_string(entry.name))
                .with_value(entry.value.map(StrBytes::from_string))
                .with_read_only(entry.read_only)
                .with_config_source(entry.source.code())
                .with_is_sensitive(entry.sensitive)
                .with_config_type(
                    entry
                        .config_type
                        .map_or(UNKNOWN_TYPE, |kind| kind.describe_code()),
                )
                .with_synonyms(self.synonyms(synonyms))
                .with_documentation(self.documentation(entry.documentation))
        };
        entries.into_iter().map(entry).collect()
    }

    fn synonyms(&self, synonyms: Vec<Synonym>) -> Vec<DescribeConfigsSynonym> {
        if !self.with_synonyms {
            return Vec::new();
        }
        let synonym = |synonym: Synonym| {
            DescribeConfigsSynonym::default()
                .with_name(StrBytes::from_string(synonym.name))
                .with_value(synonym.value.map(StrBytes::from_string))
                .with_source(synonym.source)
        };
        synonyms.into_iter().map(synonym).collect()
    }

    fn documentation(&self, text: &'static str) -> Option<StrBytes> {
        self.with_documentation
            .then(|| StrBytes::from_static_str(text))
    }
}
