//! Configurations of resources.

use kafka_protocol::messages::DescribeConfigsRequest;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult,
};
use kafka_protocol::protocol::StrBytes;

use super::{Cluster, KafkaError};

/// DEFAULT_CONFIG of `DescribeConfigs`' sources: nobody has set it.
pub(crate) const DEFAULT_SOURCE: i8 = 5;

/// The type of a resource, as `DescribeConfigs` numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub(crate) enum ResourceType {
    /// A topic.
    Topic = 2,
    /// A broker; the empty name is what all brokers have.
    Broker = 4,
    /// The log levels of a broker.
    BrokerLogger = 8,
    /// A subscription of client metrics.
    ClientMetrics = 16,
    /// A group.
    Group = 32,
}

impl Cluster {
    /// The configurations of resources of one type, in the order of `names`. A broker is asked for its own. Retried.
    ///
    /// # Errors
    /// When nobody answers, or a resource is refused.
    pub(crate) async fn describe_configs(
        &self,
        kind: ResourceType,
        names: &[&str],
        with_synonyms: bool,
    ) -> Result<Vec<Vec<DescribeConfigsResourceResult>>, KafkaError> {
        let mut all = Vec::new();
        let resource = |name: &str| {
            DescribeConfigsResource::default()
                .with_resource_type(kind as i8)
                .with_resource_name(StrBytes::from_string(name.to_owned()))
                .with_configuration_keys(None)
        };
        let request = |resources| {
            DescribeConfigsRequest::default()
                .with_resources(resources)
                .with_include_synonyms(with_synonyms)
        };
        let call = "describeConfigs";
        if matches!(kind, ResourceType::Broker | ResourceType::BrokerLogger) {
            for name in names {
                let request = request(vec![resource(name)]);
                let response = match name.parse() {
                    Ok(id) => self.call_node(call, id, &request).await?,
                    Err(_) => self.call_any(call, &request).await?,
                };
                all.extend(response.results);
            }
        } else if !names.is_empty() {
            let resources = names.iter().copied().map(resource).collect();
            all = self.call_any(call, &request(resources)).await?.results;
        }
        names
            .iter()
            .map(|name| entries_of(&mut all, name))
            .collect()
    }
}

fn entries_of(
    results: &mut [DescribeConfigsResult],
    name: &str,
) -> Result<Vec<DescribeConfigsResourceResult>, KafkaError> {
    let result = results
        .iter_mut()
        .find(|result| result.resource_name.as_str() == name)
        .ok_or_else(|| {
            let text = format!("Malformed broker response: missing config for {name}");
            KafkaError::of_client("UnknownServerException", text)
        })?;
    KafkaError::check(result.error_code, result.error_message.as_deref())?;
    Ok(std::mem::take(&mut result.configs))
}
