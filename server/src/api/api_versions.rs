//! ApiVersions (key 18): the APIs and versions that have a handler on the listener.

use std::sync::Arc;

use highwater_replication::cluster::records::FeatureRange;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::api_versions_response::{
    ApiVersion, FinalizedFeatureKey, SupportedFeatureKey,
};
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::StrBytes;

use super::table::ApiEntry;
use super::{Reply, RequestContext, ResponseBody, apis};
use crate::broker::Broker;
use crate::controller::{finalized_features, supported_features};

/// The version from which the client names its software.
const CLIENT_SOFTWARE_VERSION: i16 = 3;
/// The version from which the features of broker and cluster are told.
const FEATURES_VERSION: i16 = 3;
/// The version from which a feature's lowest level may be 0.
const FEATURES_FROM_ZERO_VERSION: i16 = 4;

/// Answers with every API that the table has for the listener. A client software name or version that Kafka would not take (KIP-511) gets
/// INVALID_REQUEST; the connection goes on.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: ApiVersionsRequest,
) -> Reply {
    if let Err(error) = check_client_software(ctx, &request) {
        ctx.count_error(error);
        let response = ApiVersionsResponse::default().with_error_code(error.code());
        return ctx.encode(&response).into();
    }
    let response = with_features(
        ApiVersionsResponse::default()
            .with_api_keys(apis(ctx.listener.kind).map(api_version).collect()),
        ctx.api_version,
        supported_features(),
        finalized_features(&broker.image()),
    );
    ctx.encode(&response).into()
}

fn check_client_software(
    ctx: &RequestContext,
    request: &ApiVersionsRequest,
) -> Result<(), ResponseError> {
    if ctx.api_version < CLIENT_SOFTWARE_VERSION {
        return Ok(());
    }
    let (software, version) = (
        &request.client_software_name,
        &request.client_software_version,
    );
    if !is_legal_software_text(software) || !is_legal_software_text(version) {
        return Err(ResponseError::InvalidRequest);
    }
    tracing::debug!(
        client_id = ctx.client_id.as_deref(),
        software = software.as_str(),
        version = version.as_str(),
        peer = %ctx.peer,
        "client software"
    );
    Ok(())
}

/// Adds the features (KIP-584) where the version has them. Before version 4 a range that begins with 0 is left out,
/// because clients of that time refuse it.
fn with_features(
    response: ApiVersionsResponse,
    api_version: i16,
    supported: Vec<FeatureRange>,
    (epoch, finalized): (i64, Vec<(String, i16)>),
) -> ApiVersionsResponse {
    if api_version < FEATURES_VERSION {
        return response;
    }
    let supported = supported.into_iter().filter(|feature| {
        feature.min_supported_version > 0 || api_version >= FEATURES_FROM_ZERO_VERSION
    });
    let supported = supported.map(|feature| {
        SupportedFeatureKey::default()
            .with_name(StrBytes::from_string(feature.name))
            .with_min_version(feature.min_supported_version)
            .with_max_version(feature.max_supported_version)
    });
    let finalized = finalized.into_iter().map(|(name, level)| {
        FinalizedFeatureKey::default()
            .with_name(StrBytes::from_string(name))
            .with_min_version_level(level)
            .with_max_version_level(level)
    });
    response
        .with_supported_features(supported.collect())
        .with_finalized_features_epoch(epoch)
        .with_finalized_features(finalized.collect())
}

/// The answer to an ApiVersions version that we do not know: in version 0, with UNSUPPORTED_VERSION and the range of
/// ApiVersions alone, so that the client can ask again on the same connection (KIP-511).
pub(crate) fn unsupported_version(ctx: &RequestContext, entry: &ApiEntry) -> ResponseBody {
    ctx.count_error(ResponseError::UnsupportedVersion);
    let response = ApiVersionsResponse::default()
        .with_error_code(ResponseError::UnsupportedVersion.code())
        .with_api_keys(vec![api_version(entry)]);
    RequestContext {
        api_version: 0,
        ..ctx.clone()
    }
    .encode(&response)
}

fn api_version(entry: &ApiEntry) -> ApiVersion {
    ApiVersion::default()
        .with_api_key(entry.key)
        .with_min_version(entry.advertised_min_version)
        .with_max_version(entry.max_version)
}

/// Letters, digits, dots and dashes, beginning and ending with a letter or digit.
fn is_legal_software_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_names_follow_the_rule_of_kip_511() {
        for legal in ["librdkafka", "apache-kafka-java", "1.9.0-rc1", "a"] {
            assert!(is_legal_software_text(legal), "{legal}");
        }
        for illegal in ["", "-a", "a-", "a b", "a_b", ".", "ä"] {
            assert!(!is_legal_software_text(illegal), "{illegal}");
        }
    }

    #[test]
    fn ranges_from_zero_are_told_from_version_4_and_features_from_version_3() {
        let supported = || {
            [("from.one", 1), ("from.zero", 0)]
                .map(|(name, min_supported_version)| FeatureRange {
                    name: name.to_owned(),
                    min_supported_version,
                    max_supported_version: 2,
                })
                .to_vec()
        };
        for (version, names) in [
            (2, vec![]),
            (3, vec!["from.one"]),
            (4, vec!["from.one", "from.zero"]),
        ] {
            let finalized = (7, vec![("from.one".to_owned(), 2)]);
            let told = with_features(
                ApiVersionsResponse::default(),
                version,
                supported(),
                finalized,
            );
            let told_names: Vec<_> = told
                .supported_features
                .iter()
                .map(|f| f.name.as_str())
                .collect();
            assert_eq!(told_names, names, "version {version}");
            assert_eq!(told.finalized_features.len(), usize::from(version >= 3));
        }
    }
}
