//! Configurations of resources, and their changes.

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult,
};
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::{DescribeConfigsRequest, IncrementalAlterConfigsRequest};
use kafka_protocol::protocol::StrBytes;

use super::{Cluster, KafkaError};

/// DEFAULT_CONFIG of `DescribeConfigs`' sources: nobody has set it.
pub(crate) const DEFAULT_SOURCE: i8 = 5;

/// IncrementalAlterConfigs' operations.
const SET: i8 = 0;
const DELETE: i8 = 1;

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

impl ResourceType {
    /// Whether each resource of the type is a node's own.
    fn is_of_nodes(self) -> bool {
        matches!(self, ResourceType::Broker | ResourceType::BrokerLogger)
    }

    /// The node to ask about a resource that is a node's own.
    fn node(self, name: &str) -> Option<i32> {
        name.parse().ok().filter(|_| self.is_of_nodes())
    }
}

/// Settings with their new values; one without a value is taken back.
pub(crate) type ConfigChanges = Vec<(String, Option<String>)>;

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
        if kind.is_of_nodes() {
            for name in names {
                let request = request(vec![resource(name)]);
                let response = match kind.node(name) {
                    Some(id) => self.call_node(call, id, &request).await?,
                    None => self.call_any(call, &request).await?,
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

    /// Changes settings of resources of one type: names with changes. A broker is asked for its own, the controller
    /// for all others together. Retried.
    ///
    /// # Errors
    /// When one does not answer, or a resource is refused; what others were asked for is done.
    pub(crate) async fn alter_configs(
        &self,
        kind: ResourceType,
        resources: &[(String, ConfigChanges)],
    ) -> Result<(), KafkaError> {
        let call = "incrementalAlterConfigs";
        let mut responses = Vec::new();
        for (node, request) in alter_requests(kind, resources) {
            responses.push(match node {
                Some(id) => self.call_node(call, id, &request).await?,
                None => self.call_controller(call, &request).await?,
            });
        }
        for result in responses.iter().flat_map(|response| &response.responses) {
            KafkaError::check(result.error_code, result.error_message.as_deref())?;
        }
        Ok(())
    }
}

/// The requests, each with the node that gets it, or none for the controller.
fn alter_requests(
    kind: ResourceType,
    resources: &[(String, ConfigChanges)],
) -> Vec<(Option<i32>, IncrementalAlterConfigsRequest)> {
    let request = |resources| IncrementalAlterConfigsRequest::default().with_resources(resources);
    let mut requests = Vec::new();
    let mut of_controller = Vec::new();
    for (name, changes) in resources {
        let resource = altered(kind, name, changes);
        match kind.node(name) {
            Some(id) => requests.push((Some(id), request(vec![resource]))),
            None => of_controller.push(resource),
        }
    }
    if !of_controller.is_empty() {
        requests.push((None, request(of_controller)));
    }
    requests
}

fn altered(kind: ResourceType, name: &str, changes: &ConfigChanges) -> AlterConfigsResource {
    let configs = changes.iter().map(|(key, value)| {
        AlterableConfig::default()
            .with_name(StrBytes::from_string(key.clone()))
            .with_config_operation(if value.is_some() { SET } else { DELETE })
            .with_value(value.clone().map(StrBytes::from_string))
    });
    AlterConfigsResource::default()
        .with_resource_type(kind as i8)
        .with_resource_name(StrBytes::from_string(name.to_owned()))
        .with_configs(configs.collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(changes: &[(&str, Option<&str>)]) -> ConfigChanges {
        let changes = changes.iter();
        changes
            .map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned)))
            .collect()
    }

    #[test]
    fn a_setting_without_a_value_is_taken_back() {
        let changes = changes(&[("a", Some("1")), ("b", None)]);
        let resource = altered(ResourceType::Topic, "t", &changes);
        assert_eq!(
            (resource.resource_type, resource.resource_name.as_str()),
            (2, "t")
        );
        let configs = resource.configs.iter();
        let configs: Vec<_> = configs
            .map(|config| {
                (
                    config.name.as_str(),
                    config.config_operation,
                    config.value.as_deref(),
                )
            })
            .collect();
        assert_eq!(configs, [("a", SET, Some("1")), ("b", DELETE, None)]);
    }

    #[test]
    fn a_broker_is_asked_for_its_own_and_the_controller_for_the_others() {
        let asked = |kind, names: &[&str]| {
            let resources: Vec<_> = names
                .iter()
                .map(|name| ((*name).to_owned(), changes(&[("a", None)])))
                .collect();
            let requests = alter_requests(kind, &resources).into_iter();
            let requests = requests.map(|(node, request)| {
                let resources = request.resources.iter();
                let names = resources.map(|resource| resource.resource_name.to_string());
                (node, names.collect::<Vec<_>>())
            });
            requests.collect::<Vec<_>>()
        };
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            asked(ResourceType::Broker, &["2", "", "1"]),
            [
                (Some(2), names(&["2"])),
                (Some(1), names(&["1"])),
                (None, names(&[""]))
            ]
        );
        assert_eq!(
            asked(ResourceType::Topic, &["2", "t"]),
            [(None, names(&["2", "t"]))]
        );
        assert_eq!(asked(ResourceType::Topic, &[]), []);
    }
}
