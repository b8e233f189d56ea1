//! Which versions of each API a node serves, and the choice of one.

use std::ops::RangeInclusive;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::{Message, Request};

use crate::api::API_KEYS;

/// The versions of each API that a node serves, as its ApiVersions response tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiVersionRanges {
    by_key: Box<[Option<(i16, i16)>]>,
}

impl ApiVersionRanges {
    /// Reads a response. Api keys that are none of Kafka's are left out.
    pub fn new(response: &ApiVersionsResponse) -> Self {
        let mut by_key = vec![None; API_KEYS].into_boxed_slice();
        for api in &response.api_keys {
            if let Some(slot) = usize::try_from(api.api_key)
                .ok()
                .and_then(|key| by_key.get_mut(key))
            {
                *slot = Some((api.min_version, api.max_version));
            }
        }
        ApiVersionRanges { by_key }
    }

    /// The highest version within `ours` that the node serves; `None` without one.
    pub fn highest_common(&self, api_key: i16, ours: RangeInclusive<i16>) -> Option<i16> {
        let index = usize::try_from(api_key).ok()?;
        let (min, max) = self.by_key.get(index).copied().flatten()?;
        let version = max.min(*ours.end());
        (version >= min && version >= *ours.start()).then_some(version)
    }
}

/// The versions of an API that kafka-protocol can encode.
pub(super) fn encodable<R: Request>() -> RangeInclusive<i16> {
    R::VERSIONS.min..=R::VERSIONS.max
}

/// The version to ask with for the node's versions: the highest, or after a refusal what the node names.
pub(super) fn api_versions_version(refusal: Option<&ApiVersionsResponse>) -> i16 {
    let ours = ApiVersionsRequest::VERSIONS;
    let named = refusal.map(|response| {
        let range = ApiVersionRanges::new(response);
        range.highest_common(ApiVersionsRequest::KEY, ours.min..=ours.max)
    });
    match named {
        None => ours.max,
        Some(version) => version.unwrap_or(ours.min),
    }
}

/// Whether the node refuses the version of the ApiVersions request: then the response is in version 0 (KIP-511).
pub(super) fn is_unsupported_version(response_body: &[u8]) -> bool {
    response_body.starts_with(&ResponseError::UnsupportedVersion.code().to_be_bytes())
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::FetchRequest;
    use kafka_protocol::messages::api_versions_response::ApiVersion;

    use super::*;

    fn ranges(api_key: i16, min: i16, max: i16) -> ApiVersionsResponse {
        let api = ApiVersion::default()
            .with_api_key(api_key)
            .with_min_version(min)
            .with_max_version(max);
        ApiVersionsResponse::default().with_api_keys(vec![api])
    }

    #[test]
    fn the_highest_version_that_both_know_is_chosen() {
        let theirs = ApiVersionRanges::new(&ranges(FetchRequest::KEY, 4, 18));
        assert_eq!(theirs.highest_common(1, 13..=17), Some(17));
        assert_eq!(theirs.highest_common(1, 13..=20), Some(18));
        assert_eq!(theirs.highest_common(1, 0..=3), None, "only older ones");
        assert_eq!(theirs.highest_common(1, 19..=20), None, "only newer ones");
        assert_eq!(theirs.highest_common(2, 0..=20), None, "not served");
        assert_eq!(theirs.highest_common(-1, 0..=20), None, "no api");
    }

    #[test]
    fn api_versions_is_asked_again_with_what_a_refusal_names() {
        assert_eq!(api_versions_version(None), ApiVersionsRequest::VERSIONS.max);
        let refusal = ranges(ApiVersionsRequest::KEY, 0, 2);
        assert_eq!(api_versions_version(Some(&refusal)), 2);
        let silent = ApiVersionsResponse::default();
        assert_eq!(api_versions_version(Some(&silent)), 0);
    }
}
