//! Envelope (KIP-590): a broker hands on a client's request that only the active controller can answer.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Buf, Bytes};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{EnvelopeRequest, EnvelopeResponse};

use super::dispatch::dispatch;
use super::metadata_change::active_epoch;
use super::table::Dispatched;
use super::{Reply, RequestContext, ResponseBody, api};
use crate::broker::Broker;
use crate::network::ListenerKind;

/// Bytes of a frame's length prefix.
const LENGTH_BYTES: usize = 4;
/// Bytes of an api key.
const API_KEY_BYTES: usize = 2;

/// Handles an Envelope request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: EnvelopeRequest,
) -> Reply {
    let response = match serve(&broker, &ctx, request).await {
        Ok(data) => EnvelopeResponse::default().with_response_data(Some(data)),
        Err(error) => {
            ctx.count_error(error);
            EnvelopeResponse::default()
                .with_response_data(None)
                .with_error_code(error.code())
        }
    };
    ctx.encode(&response).into()
}

/// The response to the request inside, with its header.
async fn serve(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: EnvelopeRequest,
) -> Result<Bytes, ResponseError> {
    active_epoch(broker)?;
    let client = client_address(&request.client_host_address)?;
    let mut header = request.request_data.clone();
    if header.len() < API_KEY_BYTES {
        return Err(ResponseError::InvalidRequest);
    }
    let api_key = header.get_i16();
    let may_be_forwarded =
        api(ListenerKind::Controller, api_key).is_some_and(|entry| entry.forward.is_some());
    if !may_be_forwarded {
        tracing::warn!(api_key, peer = %ctx.peer, "an envelope holds a request that is not for the controller");
        return Err(ResponseError::InvalidRequest);
    }
    let not_controller = Arc::new(AtomicBool::new(false));
    let mut inner = RequestContext {
        peer: client,
        not_controller: Some(Arc::clone(&not_controller)),
        ..ctx.clone()
    };
    let reply = match dispatch(broker, &mut inner, request.request_data) {
        Dispatched::Done(reply) => reply,
        Dispatched::Running(running) => running.await,
    };
    let body = match reply {
        Reply::Ready(body) => body,
        Reply::Parked(parked) => parked.await,
        // The client's broker closes the client's connection.
        Reply::Close(_) | Reply::Nothing => return Err(ResponseError::InvalidRequest),
    };
    // Another controller became active meanwhile: the sender shall ask that one, the client need not know.
    if not_controller.load(Ordering::Acquire) {
        return Err(ResponseError::NotController);
    }
    response_data(&body)
}

fn response_data(body: &ResponseBody) -> Result<Bytes, ResponseError> {
    if body.is_unencodable() {
        return Err(ResponseError::UnknownServerError);
    }
    let mut frame = Bytes::from(body.to_vec());
    frame.advance(LENGTH_BYTES);
    Ok(frame)
}

/// The client behind the broker, of which the port is not told.
fn client_address(bytes: &Bytes) -> Result<SocketAddr, ResponseError> {
    let ip: IpAddr = match bytes.len() {
        4 => <[u8; 4]>::try_from(&bytes[..]).map(IpAddr::from),
        16 => <[u8; 16]>::try_from(&bytes[..]).map(IpAddr::from),
        _ => return Err(ResponseError::InvalidRequest),
    }
    .map_err(|_| ResponseError::InvalidRequest)?;
    Ok(SocketAddr::new(ip, 0))
}
