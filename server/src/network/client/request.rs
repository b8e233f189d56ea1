//! Requests and responses as bytes.

use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

use super::ClientError;

/// Where the correlation id lies: behind the length prefix, the api key and the version.
const CORRELATION_ID_POSITION: usize = 4 + 2 + 2;
/// Bytes of the length prefix.
const LENGTH_BYTES: usize = 4;

/// A request as a frame, whose correlation id is filled in when it is sent.
pub(super) struct EncodedRequest {
    frame: Vec<u8>,
}

impl EncodedRequest {
    /// Encodes a request with its header and length prefix.
    pub(super) fn new<R: Request>(
        request: &R,
        version: i16,
        client_id: &StrBytes,
    ) -> Result<Self, ClientError> {
        let failed = |reason: String| ClientError::Encode {
            api: api::<R>(),
            version,
            reason: reason.into(),
        };
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_client_id(Some(client_id.clone()));
        let mut frame = vec![0; LENGTH_BYTES];
        header
            .encode(&mut frame, R::header_version(version))
            .and_then(|()| request.encode(&mut frame, version))
            .map_err(|error| failed(error.to_string()))?;
        let length = i32::try_from(frame.len() - LENGTH_BYTES)
            .map_err(|_| failed("the request is too large for a frame".to_owned()))?;
        frame[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
        Ok(EncodedRequest { frame })
    }

    /// The frame with its correlation id.
    pub(super) fn into_frame(mut self, correlation_id: i32) -> Bytes {
        let place = CORRELATION_ID_POSITION..CORRELATION_ID_POSITION + 4;
        self.frame[place].copy_from_slice(&correlation_id.to_be_bytes());
        Bytes::from(self.frame)
    }
}

/// Takes the header off a response frame and decodes the body. Record bytes of the body are slices of the frame, not
/// copies.
///
/// # Errors
/// Says what does not parse.
pub fn decode_response<R: Request>(
    mut frame: Bytes,
    version: i16,
) -> Result<R::Response, Arc<str>> {
    let header_version = R::Response::header_version(version);
    ResponseHeader::decode(&mut frame, header_version)
        .and_then(|_| R::Response::decode(&mut frame, version))
        .map_err(|error| error.to_string().into())
}

/// Kafka's name of the API, without "Request".
pub(super) fn api<R: Request>() -> &'static str {
    let name = std::any::type_name::<R>();
    let name = name.rsplit("::").next().unwrap_or(name);
    name.strip_suffix("Request").unwrap_or(name)
}
