//! What the handlers of the group coordinator share: texts, and answers that may have to wait.

use std::sync::Arc;

use futures_util::future::FutureExt;
use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;

use super::{Reply, RequestContext, ResponseBody};
use crate::coordinator::group::runtime::Answer;

/// Replies with the answer, now or when it is there.
pub(super) fn reply<T: Send + 'static>(
    ctx: &RequestContext,
    answer: Answer<T>,
    respond: impl FnOnce(&RequestContext, T) -> ResponseBody + Send + 'static,
) -> Reply {
    match answer {
        Answer::Ready(answer) => Reply::Ready(respond(ctx, answer)),
        Answer::Parked(later) => {
            let ctx = ctx.clone();
            Reply::Parked(later.map(move |answer| respond(&ctx, answer)).boxed())
        }
    }
}

/// The error code of a result, counted if it is an error.
pub(super) fn code(ctx: &RequestContext, error: Option<ResponseError>) -> i16 {
    match error {
        Some(error) => {
            ctx.count_error(error);
            error.code()
        }
        None => 0,
    }
}

/// A text to keep: it does not hold on to the buffer of its request.
pub(super) fn owned(text: &str) -> Arc<str> {
    Arc::from(text)
}

/// A nullable text to keep.
pub(super) fn owned_option(text: Option<&StrBytes>) -> Option<Arc<str>> {
    text.map(|text| Arc::from(text.as_str()))
}

/// A kept text for a response.
pub(super) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// A nullable kept text for a response.
pub(super) fn text_option(kept: Option<&Arc<str>>) -> Option<StrBytes> {
    kept.map(|kept| text(kept))
}
