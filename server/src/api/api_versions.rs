//! ApiVersions (key 18): the APIs and versions that have a handler.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};

use super::table::ApiEntry;
use super::{Reply, RequestContext, ResponseBody, apis};
use crate::broker::Broker;

/// The version from which the client names its software.
const CLIENT_SOFTWARE_VERSION: i16 = 3;

/// Answers with every API of the table. A client software name or version that Kafka would not take (KIP-511) gets
/// INVALID_REQUEST; the connection goes on.
pub(crate) fn handle(_: &Arc<Broker>, ctx: &RequestContext, request: ApiVersionsRequest) -> Reply {
    let named = ctx.api_version >= CLIENT_SOFTWARE_VERSION;
    let legal = is_legal_software_text(&request.client_software_name)
        && is_legal_software_text(&request.client_software_version);
    if named && !legal {
        ctx.count_error(ResponseError::InvalidRequest);
        let response =
            ApiVersionsResponse::default().with_error_code(ResponseError::InvalidRequest.code());
        return ctx.encode(&response).into();
    }
    tracing::debug!(
        client_id = ctx.client_id.as_deref(),
        software = &*request.client_software_name,
        version = &*request.client_software_version,
        peer = %ctx.peer,
        "client software"
    );
    let response = ApiVersionsResponse::default().with_api_keys(apis().map(api_version).collect());
    ctx.encode(&response).into()
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
