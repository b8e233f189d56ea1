//! Requests to the controller in this process: they go through the same handlers as those that come over the wire.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock, Weak};

use bytes::{Buf, Bytes};
use kafka_protocol::messages::RequestHeader;
use kafka_protocol::protocol::{Encodable, Request, StrBytes};

use crate::api::table::Dispatched;
use crate::api::{Reply, RequestContext, api};
use crate::network::client::decode_response;
use crate::network::{Listener, ListenerKind, NetworkMetrics, RequestHandler};

/// Bytes of a frame's length prefix.
const LENGTH_BYTES: usize = 4;

/// Why the controller of this process gives no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocalError {
    /// The node is not far enough in its start, or is stopping.
    #[error("this node is starting or stopping")]
    NotReady,
    /// The request cannot be encoded, or the response does not parse.
    #[error("{0}")]
    Malformed(Arc<str>),
    /// The handler ended the connection instead of answering.
    #[error("the request was not answered: {0}")]
    NotAnswered(&'static str),
}

/// Serves a frame; `None` when who serves is gone.
type Serve = dyn Fn(&mut RequestContext, Bytes) -> Option<Dispatched> + Send + Sync;

/// Where requests go that are for this node's own controller.
pub struct LocalController {
    serve: OnceLock<Box<Serve>>,
    ctx: RequestContext,
}

impl LocalController {
    /// A way that leads nowhere until [`open`](Self::open) says where.
    pub fn new(metrics: Arc<NetworkMetrics>) -> Self {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener {
            name: "CONTROLLER".to_owned(),
            kind: ListenerKind::Controller,
            local_address: nowhere,
            advertised_host: StrBytes::from_static_str("localhost"),
            advertised_port: 0,
        };
        LocalController {
            serve: OnceLock::new(),
            ctx: RequestContext {
                api_key: -1,
                api_version: -1,
                correlation_id: 0,
                client_id: None,
                listener: Arc::new(listener),
                peer: nowhere,
                connection_id: 0,
                metrics,
                not_controller: None,
            },
        }
    }

    /// Has requests served by `handler` from now on. It is not kept alive by this. Only the first one counts.
    pub fn open<H: RequestHandler>(&self, handler: &Arc<H>) {
        let handler: Weak<H> = Arc::downgrade(handler);
        let serve =
            move |ctx: &mut RequestContext, frame| Some(handler.upgrade()?.handle(ctx, frame));
        if self.serve.set(Box::new(serve)).is_err() {
            tracing::error!("the way to this node's controller was opened twice");
        }
    }

    /// Serves a request in its highest version.
    pub(super) async fn call<R: Request>(&self, request: &R) -> Result<R::Response, LocalError> {
        let serve = self.serve.get().ok_or(LocalError::NotReady)?;
        let served = api(ListenerKind::Controller, R::KEY)
            .map_or(R::VERSIONS.max, |entry| entry.max_version);
        let version = served.min(R::VERSIONS.max);
        let frame = encode(request, version)?;
        let mut ctx = self.ctx.clone();
        let dispatched = serve(&mut ctx, frame).ok_or(LocalError::NotReady)?;
        let reply = match dispatched {
            Dispatched::Done(reply) => reply,
            Dispatched::Running(running) => running.await,
        };
        let body = match reply {
            Reply::Ready(body) => body,
            Reply::Parked(parked) => parked.await,
            Reply::Nothing => return Err(LocalError::NotAnswered("it has no response")),
            Reply::Close(reason) => return Err(LocalError::NotAnswered(reason.as_str())),
        };
        if body.is_unencodable() {
            return Err(LocalError::NotAnswered("the response has no encoding"));
        }
        let mut frame = Bytes::from(body.to_vec());
        frame.advance(LENGTH_BYTES);
        decode_response::<R>(frame, version).map_err(LocalError::Malformed)
    }
}

fn encode<R: Request>(request: &R, version: i16) -> Result<Bytes, LocalError> {
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version);
    let mut frame = Vec::new();
    header
        .encode(&mut frame, R::header_version(version))
        .and_then(|()| request.encode(&mut frame, version))
        .map_err(|error| LocalError::Malformed(error.to_string().into()))?;
    Ok(Bytes::from(frame))
}

#[cfg(test)]
impl LocalController {
    /// A request context of this node itself.
    pub(crate) fn context(&self) -> RequestContext {
        self.ctx.clone()
    }
}
