//! AlterConfigs: the older API, which sets all keys of a resource at once.

use std::sync::Arc;

use kafka_protocol::messages::alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::config_changes::{Change, ResourceChange, alter_configs};
use super::{Reply, RequestContext};
use crate::broker::Broker;

/// Handles an AlterConfigs request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: AlterConfigsRequest,
) -> Reply {
    let changes = request.resources.iter().map(resource_change).collect();
    let results = alter_configs(&broker, &ctx, changes, request.validate_only).await;
    let responses = request
        .resources
        .into_iter()
        .zip(results)
        .map(|(resource, result)| {
            let response = AlterConfigsResourceResponse::default()
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name)
                .with_error_message(None);
            match result {
                Ok(()) => response,
                Err((error, text)) => {
                    ctx.count_error(error);
                    response
                        .with_error_code(error.code())
                        .with_error_message(text.map(StrBytes::from_string))
                }
            }
        });
    ctx.encode(&AlterConfigsResponse::default().with_responses(responses.collect()))
        .into()
}

fn resource_change(resource: &AlterConfigsResource) -> ResourceChange {
    let configs = resource.configs.iter().map(|config| {
        (
            config.name.to_string(),
            config.value.as_ref().map(|value| value.to_string()),
        )
    });
    ResourceChange {
        resource_type: resource.resource_type,
        name: resource.resource_name.to_string(),
        change: Change::Replace(configs.collect()),
    }
}
