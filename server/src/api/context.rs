//! What a handler knows about the request besides its body.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kafka_protocol::ResponseError;
use kafka_protocol::protocol::{Encodable, HeaderVersion, StrBytes};

use super::reply::{ResponseBody, ResponseWriter, response_header_version};
use crate::network::{Listener, NetworkMetrics};

/// Who asks, over which listener, in which version.
#[derive(Clone, Debug)]
pub struct RequestContext {
    /// Kafka's api key.
    pub api_key: i16,
    /// The version of the request and of its response.
    pub api_version: i16,
    /// The client's number for the request, repeated in the response header.
    pub correlation_id: i32,
    /// What the client calls itself, from the request header.
    pub client_id: Option<StrBytes>,
    /// The listener the connection came in on; its advertised address is what this client is told.
    pub listener: Arc<Listener>,
    /// The client's address.
    pub peer: SocketAddr,
    /// A number of the connection, unique in this process.
    pub connection_id: u64,
    pub(crate) metrics: Arc<NetworkMetrics>,
    /// Set when the request is answered with NOT_CONTROLLER; who hands the request on looks at it.
    pub(crate) not_controller: Option<Arc<AtomicBool>>,
}

impl RequestContext {
    /// The capacity that a response buffer starts with.
    const RESPONSE_CAPACITY: usize = 128;

    /// Encodes `response` at the request's version, behind its header. A field that the version does not have must be
    /// at its default; otherwise the error is logged and the connection is closed.
    pub fn encode<Response: Encodable + HeaderVersion>(&self, response: &Response) -> ResponseBody {
        let mut writer = self.response_writer::<Response>();
        writer.put(response, self.api_version);
        writer.finish()
    }

    /// A writer behind the header of a `Response`, for a response whose record bytes are spliced in.
    pub fn response_writer<Response: HeaderVersion>(&self) -> ResponseWriter {
        let header_version = response_header_version::<Response>(self.api_version);
        ResponseWriter::new(self.correlation_id, header_version, Self::RESPONSE_CAPACITY)
    }

    /// Counts an error that this request is answered with, once for each entry of the response that carries it.
    pub fn count_error(&self, error: ResponseError) {
        self.metrics.count_error(self.api_key, error.code());
        if error == ResponseError::NotController
            && let Some(flag) = &self.not_controller
        {
            flag.store(true, Ordering::Release);
        }
    }

    /// The client's address as Kafka shows it in group descriptions: a slash and the IP.
    pub fn client_host(&self) -> String {
        format!("/{}", self.peer.ip().to_canonical())
    }
}
