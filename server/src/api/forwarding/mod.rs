//! Handing a client's request on to the active controller (KIP-590): it goes in an Envelope with who the client is, and
//! the response inside comes back to the client as it is.

mod refusal;

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{DefaultPrincipalData, EnvelopeRequest, EnvelopeResponse};
use kafka_protocol::protocol::{Encodable, StrBytes};

pub(crate) use refusal::Forwarded;

use super::table::{DecodeError, Dispatched, decode};
use super::{Reply, RequestContext, ResponseBody};
use crate::broker::Broker;
use crate::peer::controller_channel::{ChannelError, ControllerChannel};

/// The version of the principal's encoding.
const PRINCIPAL_VERSION: i16 = 0;
/// Who a client is that has not said: nobody is asked yet.
const PRINCIPAL_TYPE: &str = "User";
const ANONYMOUS: &str = "ANONYMOUS";
/// Bytes of the correlation id, with which a response begins.
const CORRELATION_ID_BYTES: usize = 4;

/// Hands the request `frame` (header and body) on, if it parses.
pub(super) fn forward<R: Forwarded + Send + 'static>(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    frame: Bytes,
    body: Bytes,
) -> Result<Dispatched, DecodeError> {
    let request = decode::<R>(ctx.api_version, body)?;
    let (channel, ctx) = (broker.forwarding.clone(), ctx.clone());
    let forwarded = async move {
        let answered = hand_on(&channel, &ctx, frame).await;
        let reply: Reply = match answered {
            Ok(body) => body.into(),
            Err(error) => {
                ctx.count_error(error);
                ctx.encode(&request.refused(error, ctx.api_version)).into()
            }
        };
        reply
    };
    Ok(Dispatched::Running(Box::pin(forwarded)))
}

async fn hand_on(
    channel: &ControllerChannel,
    ctx: &RequestContext,
    frame: Bytes,
) -> Result<ResponseBody, ResponseError> {
    let envelope = envelope(ctx.peer.ip(), frame)?;
    match channel.call(&envelope).await {
        Ok(response) => opened(ctx, response),
        Err(error @ ChannelError::TimedOut { .. }) => {
            tracing::warn!(api_key = ctx.api_key, %error, "request was not handed on in time");
            Err(ResponseError::RequestTimedOut)
        }
        Err(error) => {
            tracing::error!(api_key = ctx.api_key, %error, "request could not be handed on");
            Err(ResponseError::UnknownServerError)
        }
    }
}

fn envelope(client: IpAddr, frame: Bytes) -> Result<EnvelopeRequest, ResponseError> {
    let mut principal = PRINCIPAL_VERSION.to_be_bytes().to_vec();
    let encoded = DefaultPrincipalData::default()
        .with_type(StrBytes::from_static_str(PRINCIPAL_TYPE))
        .with_name(StrBytes::from_static_str(ANONYMOUS))
        .encode(&mut principal, PRINCIPAL_VERSION);
    encoded.map_err(|_| ResponseError::UnknownServerError)?;
    let client = match client.to_canonical() {
        IpAddr::V4(client) => client.octets().to_vec(),
        IpAddr::V6(client) => client.octets().to_vec(),
    };
    Ok(EnvelopeRequest::default()
        .with_request_data(frame)
        .with_request_principal(Some(principal.into()))
        .with_client_host_address(client.into()))
}

/// The response inside. An error of the envelope itself is none that the client could do anything about.
fn opened(ctx: &RequestContext, response: EnvelopeResponse) -> Result<ResponseBody, ResponseError> {
    let inside = response
        .response_data
        .filter(|_| response.error_code == 0)
        .ok_or_else(|| {
            tracing::error!(
                api_key = ctx.api_key,
                error_code = response.error_code,
                "the controller does not take what this broker hands on"
            );
            ResponseError::UnknownServerError
        })?;
    let answers = (inside.len() >= CORRELATION_ID_BYTES).then(|| inside.clone().get_i32());
    if answers != Some(ctx.correlation_id) {
        tracing::error!(
            api_key = ctx.api_key,
            correlation_id = ctx.correlation_id,
            ?answers,
            "the controller answers another request than was handed on"
        );
        return Err(ResponseError::UnknownServerError);
    }
    Ok(ResponseBody::from_frame(inside))
}
