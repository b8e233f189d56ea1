//! IncrementalAlterConfigs (KIP-339).

use std::sync::Arc;

use kafka_protocol::messages::incremental_alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::config_changes::{Change, ResourceChange, alter_configs};
use super::{Reply, RequestContext};
use crate::broker::Broker;

/// Handles an IncrementalAlterConfigs request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: IncrementalAlterConfigsRequest,
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
    ctx.encode(&IncrementalAlterConfigsResponse::default().with_responses(responses.collect()))
        .into()
}

fn resource_change(resource: &AlterConfigsResource) -> ResourceChange {
    let operations = resource.configs.iter().map(|config| {
        let value = config.value.as_ref().map(|value| value.to_string());
        (config.name.to_string(), config.config_operation, value)
    });
    ResourceChange {
        resource_type: resource.resource_type,
        name: resource.resource_name.to_string(),
        change: Change::Incremental(operations.collect()),
    }
}
