//! DeleteGroups (key 42): groups without members go, with their offsets.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::{FutureExt, join_all};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse, GroupId};

use super::group_answer::{code, owned, reply};
use super::{Reply, RequestContext, ResponseBody};
use crate::broker::Broker;
use crate::coordinator::group::runtime::Answer;

type GroupResult = Result<(), ResponseError>;

/// Deletes groups, each by itself; one named twice is deleted once.
pub(crate) fn handle(
    broker: &Arc<Broker>,
    ctx: &RequestContext,
    request: DeleteGroupsRequest,
) -> Reply {
    let mut seen = HashSet::new();
    let mut names = request.groups_names;
    names.retain(|name| seen.insert(name.clone()));
    let answers: Vec<_> = names
        .iter()
        .map(|name| broker.groups.delete_group(&owned(name)))
        .collect();
    reply(ctx, all(answers), move |ctx, results| {
        respond(ctx, names, results)
    })
}

/// All answers as one.
fn all(answers: Vec<Answer<GroupResult>>) -> Answer<Vec<GroupResult>> {
    let is_parked = |answer: &Answer<_>| matches!(answer, Answer::Parked(_));
    if answers.iter().any(is_parked) {
        let later = answers.into_iter().map(|answer| match answer {
            Answer::Ready(result) => std::future::ready(result).boxed(),
            Answer::Parked(later) => later,
        });
        return Answer::Parked(join_all(later).boxed());
    }
    let results = answers.into_iter().filter_map(|answer| match answer {
        Answer::Ready(result) => Some(result),
        Answer::Parked(_) => None,
    });
    Answer::Ready(results.collect())
}

fn respond(ctx: &RequestContext, names: Vec<GroupId>, results: Vec<GroupResult>) -> ResponseBody {
    let results = names.into_iter().zip(results).map(|(name, result)| {
        DeletableGroupResult::default()
            .with_group_id(name)
            .with_error_code(code(ctx, result.err()))
    });
    ctx.encode(&DeleteGroupsResponse::default().with_results(results.collect()))
}
