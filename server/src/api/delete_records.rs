//! DeleteRecords: moves the log start offset up.

use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

use super::error_code::ErrorCode;
use super::{Reply, RequestContext, partitions};
use crate::broker::Broker;

/// Handles a DeleteRecords request.
pub(super) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: DeleteRecordsRequest,
) -> Reply {
    // The new log start is on disk before it is answered.
    let deleted = tokio::task::spawn_blocking(move || {
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| {
                let answer = DeleteRecordsPartitionResult::default()
                    .with_partition_index(asked.partition_index);
                match delete(&broker, &topic.name, asked.partition_index, asked.offset) {
                    Ok(log_start_offset) => answer.with_low_watermark(log_start_offset),
                    Err(error) => {
                        ctx.count_error(error);
                        answer.with_low_watermark(-1).with_error_code(error.code())
                    }
                }
            });
            DeleteRecordsTopicResult::default()
                .with_partitions(partitions.collect())
                .with_name(topic.name)
        });
        ctx.encode(&DeleteRecordsResponse::default().with_topics(topics.collect()))
    });
    match deleted.await {
        Ok(response) => Reply::Ready(response),
        Err(error) => {
            tracing::error!(%error, "deleting records failed");
            Reply::Close(super::CloseReason::Internal)
        }
    }
}

fn delete(broker: &Broker, topic: &str, index: i32, offset: i64) -> Result<i64, ResponseError> {
    if partitions::is_internal(topic) {
        return Err(ResponseError::InvalidTopicException);
    }
    let partition = partitions::by_name(broker, topic, index)?;
    partition
        .delete_records(offset)
        .map_err(|error| error.error_code())
}
