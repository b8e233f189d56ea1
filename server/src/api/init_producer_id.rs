//! InitProducerId for idempotent producers. Transactions are not served yet: a transactional id is refused with an
//! error that clients do not retry.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};

use super::{Reply, RequestContext};
use crate::broker::Broker;

/// No producer id, or no producer epoch.
const NONE: i64 = -1;

/// Handles an InitProducerId request. A producer that says its id and epoch gets new ones: without transactions there
/// is nothing that an epoch of the same id would have to fence (KIP-360).
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: InitProducerIdRequest,
) -> Reply {
    if let Some(error) = invalid_request(&request) {
        return refuse(&ctx, error);
    }
    match broker.producer_ids.next_producer_id().await {
        Ok(producer_id) => {
            let response = InitProducerIdResponse::default()
                .with_producer_id(ProducerId(producer_id))
                .with_producer_epoch(0);
            ctx.encode(&response).into()
        }
        Err(error) => {
            tracing::warn!(%error, "no producer id can be given out");
            // Idempotent producers ask again.
            refuse(&ctx, ResponseError::CoordinatorLoadInProgress)
        }
    }
}

fn invalid_request(request: &InitProducerIdRequest) -> Option<ResponseError> {
    let id_and_epoch = (
        request.producer_id.0 == NONE,
        i64::from(request.producer_epoch) == NONE,
    );
    if matches!(id_and_epoch, (true, false) | (false, true)) {
        return Some(ResponseError::InvalidRequest);
    }
    match request.transactional_id.as_deref() {
        None => None,
        Some(id) if id.is_empty() => Some(ResponseError::InvalidRequest),
        Some(_) => Some(ResponseError::TransactionalIdAuthorizationFailed),
    }
}

fn refuse(ctx: &RequestContext, error: ResponseError) -> Reply {
    ctx.count_error(error);
    let response = InitProducerIdResponse::default()
        .with_error_code(error.code())
        .with_producer_id(ProducerId(NONE))
        .with_producer_epoch(-1);
    ctx.encode(&response).into()
}
