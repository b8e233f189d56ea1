//! DeleteRecords: moves the log start offset up, on every live replica.

use std::sync::Arc;
use std::time::Duration;

use highwater_replication::cluster::topic_name;
use highwater_replication::runtime::low_watermark_wait::LowWatermarkWait;
use highwater_replication::runtime::read::DeletedRecords;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};
use tokio::time::Instant;

use super::error_code::ErrorCode;
use super::pending::{Place, settle_each};
use super::{Reply, RequestContext, partitions};
use crate::broker::Broker;

/// Handles a DeleteRecords request.
pub(super) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: DeleteRecordsRequest,
) -> Reply {
    let timeout = Duration::from_millis(request.timeout_ms.max(0).unsigned_abs().into());
    let deadline = Instant::now() + timeout;
    // The new log start is on disk before it is answered.
    let context = ctx.clone();
    let deleted = tokio::task::spawn_blocking(move || delete_all(&broker, &context, request));
    match deleted.await {
        Ok((response, waits)) if waits.is_empty() => Reply::Ready(ctx.encode(&response)),
        Ok((response, waits)) => {
            Reply::Parked(Box::pin(answer_when_done(ctx, response, waits, deadline)))
        }
        Err(error) => {
            tracing::error!(%error, "deleting records failed");
            Reply::Close(super::CloseReason::Internal)
        }
    }
}

fn delete_all(
    broker: &Broker,
    ctx: &RequestContext,
    request: DeleteRecordsRequest,
) -> (DeleteRecordsResponse, Vec<(Place, LowWatermarkWait)>) {
    let mut waits = Vec::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    for (topic_entry, topic) in request.topics.into_iter().enumerate() {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for (partition_entry, asked) in topic.partitions.iter().enumerate() {
            let answer =
                DeleteRecordsPartitionResult::default().with_partition_index(asked.partition_index);
            let deleted = delete(broker, &topic.name, asked.partition_index, asked.offset);
            partitions.push(match deleted {
                Ok(deleted) => {
                    let place = Place {
                        topic: topic_entry,
                        partition: partition_entry,
                    };
                    waits.extend(deleted.wait.map(|wait| (place, wait)));
                    answer.with_low_watermark(deleted.low_watermark)
                }
                Err(error) => failed(ctx, answer, error),
            });
        }
        topics.push(
            DeleteRecordsTopicResult::default()
                .with_partitions(partitions)
                .with_name(topic.name),
        );
    }
    (DeleteRecordsResponse::default().with_topics(topics), waits)
}

fn failed(
    ctx: &RequestContext,
    answer: DeleteRecordsPartitionResult,
    error: ResponseError,
) -> DeleteRecordsPartitionResult {
    ctx.count_error(error);
    answer.with_low_watermark(-1).with_error_code(error.code())
}

async fn answer_when_done(
    ctx: RequestContext,
    mut response: DeleteRecordsResponse,
    waits: Vec<(Place, LowWatermarkWait)>,
    deadline: Instant,
) -> super::ResponseBody {
    let reached = |wait: LowWatermarkWait| async move { wait.reached().await };
    settle_each(waits, deadline, reached, |place, outcome| {
        let answer = &mut response.topics[place.topic].partitions[place.partition];
        let index =
            DeleteRecordsPartitionResult::default().with_partition_index(answer.partition_index);
        *answer = match outcome {
            Some(Ok(low_watermark)) => index.with_low_watermark(low_watermark),
            Some(Err(error)) => failed(&ctx, index, error.error_code()),
            None => failed(&ctx, index, ResponseError::RequestTimedOut),
        };
    })
    .await;
    ctx.encode(&response)
}

fn delete(
    broker: &Broker,
    topic: &str,
    index: i32,
    offset: i64,
) -> Result<DeletedRecords, ResponseError> {
    if topic_name::is_internal(topic) {
        return Err(ResponseError::InvalidTopicException);
    }
    let partition = partitions::by_name(broker, topic, index)?;
    partition
        .delete_records(offset)
        .map_err(|error| error.error_code())
}
