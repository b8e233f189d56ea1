//! From a frame to a handler: header, version check, decoding, and a net under panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestHeader};
use kafka_protocol::protocol::Decodable;

use super::context::RequestContext;
use super::reply::{CloseReason, Reply, ResponseWriter};
use super::table::Dispatched;
use super::{api, api_versions};
use crate::broker::Broker;
use crate::controller::QUORUM_API_KEY;
use crate::network::{ListenerKind, RequestHandler};

/// Bytes of the api key, the api version and the correlation id.
const FIXED_HEADER_BYTES: usize = 8;

/// Decodes the request in `frame` (without its length prefix) into `ctx` and runs its handler.
pub(crate) fn dispatch(
    broker: &Arc<Broker>,
    ctx: &mut RequestContext,
    mut frame: Bytes,
) -> Dispatched {
    let Some(header) = frame.get(..FIXED_HEADER_BYTES) else {
        return close(
            ctx,
            CloseReason::MalformedHeader,
            "frame is shorter than a request header",
        );
    };
    let mut fixed = header;
    ctx.api_key = fixed.get_i16();
    ctx.api_version = fixed.get_i16();
    ctx.correlation_id = fixed.get_i32();
    ctx.client_id = None;
    if ctx.api_key == QUORUM_API_KEY && ctx.listener.kind == ListenerKind::Controller {
        return quorum_message(broker, ctx, frame);
    }
    let Some(entry) = api(ctx.listener.kind, ctx.api_key) else {
        return close(ctx, CloseReason::UnknownApi, "no handler for this api key");
    };
    if !(entry.min_version..=entry.max_version).contains(&ctx.api_version) {
        if entry.key == ApiKey::ApiVersions as i16 {
            ctx.metrics.count_request(ctx.api_key);
            return Dispatched::Done(api_versions::unsupported_version(ctx, entry).into());
        }
        return close(
            ctx,
            CloseReason::UnsupportedVersion,
            "api version is not served",
        );
    }
    let forward = entry
        .forward
        .filter(|_| ctx.listener.kind == ListenerKind::Broker && !broker.controller.is_active());
    let whole = forward.map(|_| frame.clone()).unwrap_or_default();
    if let Err(error) = decode_header(ctx, &mut frame) {
        return close(ctx, CloseReason::MalformedHeader, &error);
    }
    ctx.metrics.count_request(ctx.api_key);
    let handle = || match forward {
        Some(forward) => forward(broker, ctx, whole, frame),
        None => (entry.dispatch)(broker, ctx, frame),
    };
    match catch_unwind(AssertUnwindSafe(handle)) {
        Ok(Ok(dispatched)) => dispatched,
        Ok(Err(error)) => close(ctx, CloseReason::MalformedRequest, &error.to_string()),
        // The panic hook has logged the message and the place.
        Err(_) => close(ctx, CloseReason::Internal, "handler panicked"),
    }
}

/// A message of another controller, which is not of Kafka's protocol but for its frame.
fn quorum_message(broker: &Broker, ctx: &RequestContext, mut frame: Bytes) -> Dispatched {
    // The client id is null.
    const HEADER_BYTES: usize = FIXED_HEADER_BYTES + 2;
    let Some(server) = broker.controller.quorum_server().cloned() else {
        return close(ctx, CloseReason::UnknownApi, "this node is no controller");
    };
    if frame.len() < HEADER_BYTES {
        return close(
            ctx,
            CloseReason::MalformedHeader,
            "frame is shorter than its header",
        );
    }
    frame.advance(HEADER_BYTES);
    let ctx = ctx.clone();
    Dispatched::Running(Box::pin(async move {
        match server.handle(ctx.api_version, &frame).await {
            Ok(answer) => {
                let mut writer = ResponseWriter::new(ctx.correlation_id, 0, answer.len());
                writer.buffer().extend_from_slice(&answer);
                writer.finish().into()
            }
            Err(error) => {
                tracing::warn!(peer = %ctx.peer, %error, "message of a controller does not parse");
                Reply::Close(CloseReason::MalformedRequest)
            }
        }
    }))
}

fn decode_header(ctx: &mut RequestContext, frame: &mut Bytes) -> Result<(), String> {
    let api_key = ApiKey::try_from(ctx.api_key).map_err(|()| "unknown api key".to_string())?;
    let version = api_key.request_header_version(ctx.api_version);
    normalize_client_id(frame);
    let header = RequestHeader::decode(frame, version).map_err(|error| error.to_string())?;
    ctx.client_id = header.client_id;
    Ok(())
}

/// Kafka reads every negative length of the client id as null, kafka-protocol only -1.
fn normalize_client_id(frame: &mut Bytes) {
    let range = FIXED_HEADER_BYTES..FIXED_HEADER_BYTES + 2;
    let length = frame.get(range.clone());
    if length.is_some_and(|length| length[0] >= 0x80 && length != [0xff; 2]) {
        let mut copy = BytesMut::from(std::mem::take(frame));
        copy[range].fill(0xff);
        *frame = copy.freeze();
    }
}

fn close(ctx: &RequestContext, reason: CloseReason, detail: &str) -> Dispatched {
    tracing::warn!(
        peer = %ctx.peer,
        listener = ctx.listener.name,
        api_key = ctx.api_key,
        api_version = ctx.api_version,
        client_id = ctx.client_id.as_deref(),
        %reason,
        detail,
        "closing connection"
    );
    Dispatched::Done(Reply::Close(reason))
}

impl RequestHandler for Broker {
    fn handle(self: &Arc<Self>, ctx: &mut RequestContext, frame: Bytes) -> Dispatched {
        dispatch(self, ctx, frame)
    }

    fn on_connection_end(&self, ctx: &RequestContext) {
        if ctx.listener.kind == ListenerKind::Controller {
            self.broker_sessions.on_connection_end(ctx.connection_id);
        }
    }
}
