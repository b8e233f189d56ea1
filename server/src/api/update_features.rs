//! UpdateFeatures (KIP-584): changes of the finalized feature levels.

use std::sync::Arc;

use highwater_replication::cluster::features::{
    ControllerFeatures, FeatureUpdate, UpgradeType, update_features,
};
use kafka_protocol::messages::update_features_response::UpdatableFeatureResult;
use kafka_protocol::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};
use kafka_protocol::protocol::StrBytes;

use super::error_code::ErrorCode;
use super::metadata_change::{Refusal, decide, flatten, submit_within};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::controller::{replication_defaults, supported_features};

/// From here on the direction of a change is named by a number.
const UPGRADE_TYPE_FROM: i16 = 1;
/// From here on a response has one result for all features.
const ONE_RESULT_FROM: i16 = 2;

/// Handles an UpdateFeatures request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: UpdateFeaturesRequest,
) -> Reply {
    let response = UpdateFeaturesResponse::default().with_error_message(None);
    let updated = update(&broker, ctx.api_version, &request).await;
    if let Err((error, _)) = &updated {
        ctx.count_error(*error);
    }
    let response = match updated {
        Err((error, text)) => response
            .with_error_code(error.code())
            .with_error_message(text),
        Ok(()) if ctx.api_version >= ONE_RESULT_FROM => response,
        Ok(()) => {
            let results = request.feature_updates.into_iter().map(|update| {
                UpdatableFeatureResult::default()
                    .with_feature(update.feature)
                    .with_error_message(None)
            });
            response.with_results(results.collect())
        }
    };
    ctx.encode(&response).into()
}

async fn update(
    broker: &Arc<Broker>,
    api_version: i16,
    request: &UpdateFeaturesRequest,
) -> Result<(), Refusal> {
    let updates: Vec<FeatureUpdate> = request
        .feature_updates
        .iter()
        .map(|update| FeatureUpdate {
            name: update.feature.to_string(),
            level: update.max_version_level,
            upgrade_type: match api_version < UPGRADE_TYPE_FROM {
                true if update.allow_downgrade => UpgradeType::SafeDowngrade,
                true => UpgradeType::Upgrade,
                false => UpgradeType::from_id(update.upgrade_type),
            },
        })
        .collect();
    let validate_only = request.validate_only;
    let defaults = replication_defaults(&broker.config.current());
    let quorum = broker.controller.quorum();
    let node_id = quorum.node_id();
    let voters: Vec<i32> = quorum.voters().iter().map(|voter| voter.id).collect();
    let submitted = submit_within(broker, request.timeout_ms, move |image, _| {
        let supported = supported_features();
        let controllers = ControllerFeatures {
            node_id,
            supported: &supported,
            quorum: &voters,
        };
        let records = update_features(image, &defaults, controllers, &updates);
        decide(records.map(|records| match validate_only {
            true => (Vec::new(), ()),
            false => (records, ()),
        }))
    });
    match submitted.await {
        // All or none: the first that cannot be changed is named for all.
        Ok(Err(error)) => {
            let text = format!(
                "The update failed for all features since the following feature had an error: {error}"
            );
            Err((error.error_code(), Some(StrBytes::from_string(text))))
        }
        other => flatten(other),
    }
}
