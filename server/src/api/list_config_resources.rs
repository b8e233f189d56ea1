//! ListConfigResources (KIP-1142): what has, or may have, configurations. Version 0 lists client metrics only.

use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_replication::cluster::{ClusterImage, ResourceType};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_config_resources_response::ConfigResource;
use kafka_protocol::messages::{ListConfigResourcesRequest, ListConfigResourcesResponse};
use kafka_protocol::protocol::StrBytes;

use super::config_entries::BROKER_LOGGER;
use super::{Reply, RequestContext};
use crate::broker::Broker;

/// From here on other types than client metrics are listed.
const ALL_TYPES_FROM: i16 = 1;
const SUPPORTED: [i8; 5] = [2, 4, BROKER_LOGGER, 16, 32];
const CLIENT_METRICS: i8 = 16;

/// Handles a ListConfigResources request.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: ListConfigResourcesRequest,
) -> Reply {
    let types: BTreeSet<i8> = match (
        ctx.api_version < ALL_TYPES_FROM,
        request.resource_types.is_empty(),
    ) {
        (true, _) => BTreeSet::from([CLIENT_METRICS]),
        (false, true) => BTreeSet::from(SUPPORTED),
        (false, false) => request.resource_types.iter().copied().collect(),
    };
    if types
        .iter()
        .any(|resource_type| !SUPPORTED.contains(resource_type))
    {
        let error = ResponseError::UnsupportedVersion;
        ctx.count_error(error);
        return ctx
            .encode(&ListConfigResourcesResponse::default().with_error_code(error.code()))
            .into();
    }
    let image = broker.image();
    let resources = types.into_iter().flat_map(|resource_type| {
        names(&image, resource_type).into_iter().map(move |name| {
            ConfigResource::default()
                .with_resource_type(resource_type)
                .with_resource_name(StrBytes::from_string(name))
        })
    });
    ctx.encode(&ListConfigResourcesResponse::default().with_config_resources(resources.collect()))
        .into()
}

fn names(image: &ClusterImage, resource_type: i8) -> Vec<String> {
    match ResourceType::from_id(resource_type) {
        Some(ResourceType::Topic) => image.topics().map(|topic| topic.name.to_string()).collect(),
        Some(kind @ (ResourceType::ClientMetrics | ResourceType::Group)) => {
            let resources = image.config_resources().map(|(resource, _)| resource);
            resources
                .filter(|resource| resource.resource_type == kind)
                .map(|resource| resource.name.to_string())
                .collect()
        }
        // Brokers and their loggers.
        Some(ResourceType::Broker) | None => {
            image.brokers().keys().map(|id| id.to_string()).collect()
        }
    }
}
