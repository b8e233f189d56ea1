//! A leader's responses in a replica's terms.

use highwater_replication::runtime::leader_endpoint::{
    FetchResponse, FetchedPartition, FetchedRecords, LeaderEndpointError, TopicIdPartition,
};
use highwater_replication::state::follower::LeaderError;
use highwater_replication::state::truncation::EpochEnd;
use highwater_storage::{LeaderEpoch, TopicId};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::{self, ListOffsetsResponse, OffsetForLeaderEpochResponse};

/// No offset, or no epoch.
const NONE: i64 = -1;

/// A refusal by its code; `None` for no error.
fn refusal(error_code: i16) -> Option<LeaderError> {
    if error_code == 0 {
        return None;
    }
    Some(match ResponseError::try_from_code(error_code) {
        Some(ResponseError::OffsetOutOfRange) => LeaderError::OffsetOutOfRange,
        Some(ResponseError::FencedLeaderEpoch) => LeaderError::FencedLeaderEpoch,
        Some(ResponseError::UnknownLeaderEpoch) => LeaderError::UnknownLeaderEpoch,
        Some(ResponseError::NotLeaderOrFollower) => LeaderError::NotLeaderOrFollower,
        Some(ResponseError::UnknownTopicOrPartition) => LeaderError::UnknownTopicOrPartition,
        Some(ResponseError::UnknownTopicId) => LeaderError::UnknownTopicId,
        Some(ResponseError::InconsistentTopicId) => LeaderError::InconsistentTopicId,
        _ => LeaderError::Other(error_code),
    })
}

/// What is wrong with the request as a whole.
fn check(error_code: i16) -> Result<(), LeaderEndpointError> {
    match ResponseError::try_from_code(error_code) {
        None if error_code == 0 => Ok(()),
        Some(
            error @ (ResponseError::FetchSessionIdNotFound
            | ResponseError::InvalidFetchSessionEpoch
            | ResponseError::FetchSessionTopicIdError),
        ) => Err(LeaderEndpointError::Session(error.to_string())),
        _ => Err(LeaderEndpointError::Refused(error_code)),
    }
}

pub(super) fn fetch(
    response: messages::FetchResponse,
) -> Result<FetchResponse, LeaderEndpointError> {
    check(response.error_code)?;
    let topics = response.responses.into_iter();
    let partitions = topics.flat_map(|topic| {
        let topic_id = TopicId(topic.topic_id);
        let partitions = topic.partitions.into_iter();
        partitions.map(move |partition| FetchedPartition {
            topic_id,
            partition: partition.partition_index,
            answer: fetched(partition),
        })
    });
    Ok(FetchResponse {
        session_id: response.session_id,
        partitions: partitions.collect(),
    })
}

fn fetched(partition: PartitionData) -> Result<FetchedRecords, LeaderError> {
    if let Some(error) = refusal(partition.error_code) {
        return Err(error);
    }
    let diverging = partition.diverging_epoch;
    let diverges = diverging.end_offset != NONE;
    Ok(FetchedRecords {
        high_watermark: partition.high_watermark,
        log_start_offset: partition.log_start_offset,
        diverging_epoch: diverges.then_some(EpochEnd {
            epoch: LeaderEpoch(diverging.epoch),
            end_offset: diverging.end_offset,
        }),
        records: partition.records.unwrap_or_default(),
    })
}

/// A response that leaves out what was asked for.
fn left_out(partition: &TopicIdPartition) -> LeaderEndpointError {
    LeaderEndpointError::Disconnected(format!(
        "the response says nothing of {}",
        partition.topic_partition
    ))
}

pub(super) fn list_offset(
    response: ListOffsetsResponse,
    partition: &TopicIdPartition,
) -> Result<Result<i64, LeaderError>, LeaderEndpointError> {
    let told = response
        .topics
        .into_iter()
        .filter(|topic| **topic.name == *partition.topic_partition.topic)
        .flat_map(|topic| topic.partitions)
        .find(|told| told.partition_index == partition.topic_partition.partition)
        .ok_or_else(|| left_out(partition))?;
    Ok(match refusal(told.error_code) {
        Some(error) => Err(error),
        None => Ok(told.offset),
    })
}

pub(super) fn end_offset_for_epoch(
    response: OffsetForLeaderEpochResponse,
    partition: &TopicIdPartition,
) -> Result<Result<Option<EpochEnd>, LeaderError>, LeaderEndpointError> {
    let told = response
        .topics
        .into_iter()
        .filter(|topic| **topic.topic == *partition.topic_partition.topic)
        .flat_map(|topic| topic.partitions)
        .find(|told| told.partition == partition.topic_partition.partition)
        .ok_or_else(|| left_out(partition))?;
    let is_known = told.end_offset != NONE && i64::from(told.leader_epoch) != NONE;
    Ok(match refusal(told.error_code) {
        Some(error) => Err(error),
        None => Ok(is_known.then_some(EpochEnd {
            epoch: LeaderEpoch(told.leader_epoch),
            end_offset: told.end_offset,
        })),
    })
}
