//! The answer to a fetch.

use bytes::Bytes;
use highwater_replication::runtime::read::PartitionRead;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint,
    PartitionData,
};
use kafka_protocol::messages::{FetchResponse, ProducerId, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::evaluate::{Entry, Evaluation};
use super::splice::encode_spliced;
use crate::api::current_leader::{CurrentLeaders, means_another_leader};
use crate::api::{RequestContext, ResponseBody};
use crate::broker::Broker;
use crate::fetch_session::TopicRef;
use crate::fetch_session::context::SessionAnswer;

/// The first version with log start offsets.
const LOG_START_OFFSET_FROM: i16 = 5;
/// The first version with sessions.
const SESSIONS_FROM: i16 = 7;

/// The first version that tells who leads instead, with its address (KIP-951).
const CURRENT_LEADER_FROM: i16 = 16;
/// The first version whose clients know KAFKA_STORAGE_ERROR; earlier ones look for the leader again.
const STORAGE_ERROR_FROM: i16 = 6;

/// Encodes what is sent of an evaluation.
pub(super) fn encode(
    broker: &Broker,
    ctx: &RequestContext,
    evaluation: Evaluation,
    answer: &SessionAnswer,
) -> ResponseBody {
    let mut response = FetchResponse::default();
    if ctx.api_version >= SESSIONS_FROM {
        response.session_id = answer.session_id;
    }
    let sent = evaluation
        .entries
        .into_iter()
        .zip(&answer.send)
        .filter(|(_, send)| **send);
    for (entry, _) in sent {
        let topic = topic_of(&mut response.responses, &entry.key.topic);
        topic.partitions.push(partition_data(ctx, entry));
    }
    if ctx.api_version >= CURRENT_LEADER_FROM {
        name_leaders(broker, ctx, &mut response);
    }
    let mut writer = ctx.response_writer::<FetchResponse>();
    if let Err(error) = encode_spliced(response, ctx.api_version, &mut writer) {
        tracing::error!(%error, api_version = ctx.api_version, "fetch response cannot be encoded");
        return ResponseBody::unencodable();
    }
    writer.finish()
}

/// Tells who came to the wrong broker where the leader is (KIP-951).
fn name_leaders(broker: &Broker, ctx: &RequestContext, response: &mut FetchResponse) {
    let mut leaders = None;
    for topic in &mut response.responses {
        let failed = topic
            .partitions
            .iter_mut()
            .filter(|entry| means_another_leader(entry.error_code));
        for entry in failed {
            let leaders = leaders.get_or_insert_with(|| CurrentLeaders::new(broker, ctx));
            if let Some(leader) = leaders.of(&topic.topic, topic.topic_id, entry.partition_index) {
                entry.current_leader = LeaderIdAndEpoch::default()
                    .with_leader_id(leader.leader_id.into())
                    .with_leader_epoch(leader.leader_epoch);
            }
        }
    }
    let nodes = leaders.into_iter().flat_map(CurrentLeaders::into_nodes);
    let nodes = nodes.map(|node| {
        NodeEndpoint::default()
            .with_node_id(node.id)
            .with_host(node.host)
            .with_port(node.port)
            .with_rack(node.rack)
    });
    response.node_endpoints = nodes.collect();
}

/// The response's last topic if it is this one, else a new one behind it.
fn topic_of<'a>(
    responses: &'a mut Vec<FetchableTopicResponse>,
    topic: &TopicRef,
) -> &'a mut FetchableTopicResponse {
    let same = responses.last().is_some_and(|last| match topic {
        TopicRef::Name(name) => **last.topic == **name,
        TopicRef::Id(id) => last.topic_id == *id,
    });
    if !same {
        responses.push(match topic {
            TopicRef::Name(name) => FetchableTopicResponse::default()
                .with_topic(TopicName(StrBytes::from_string(name.to_string()))),
            TopicRef::Id(id) => FetchableTopicResponse::default().with_topic_id(*id),
        });
    }
    let last = responses.len() - 1;
    &mut responses[last]
}

fn partition_data(ctx: &RequestContext, entry: Entry) -> PartitionData {
    let data = PartitionData::default().with_partition_index(entry.key.partition);
    match entry.outcome {
        Ok(read) => filled(ctx, data, read),
        Err(failure) => {
            let error = match failure.error {
                ResponseError::KafkaStorageError if ctx.api_version < STORAGE_ERROR_FROM => {
                    ResponseError::NotLeaderOrFollower
                }
                error => error,
            };
            ctx.count_error(error);
            // As Apache Kafka has it: null when a partition was there and refused to be read.
            let unknown = matches!(
                error,
                ResponseError::UnknownTopicOrPartition
                    | ResponseError::UnknownTopicId
                    | ResponseError::InconsistentTopicId
            );
            data.with_error_code(error.code())
                .with_aborted_transactions(unknown.then(Vec::new))
                .with_high_watermark(-1)
                .with_last_stable_offset(-1)
                .with_records(Some(Bytes::new()))
        }
    }
}

fn filled(ctx: &RequestContext, data: PartitionData, read: PartitionRead) -> PartitionData {
    let aborted = read.aborted_transactions.map(|aborted| {
        let entry = |aborted: highwater_storage::AbortedTxn| {
            AbortedTransaction::default()
                .with_producer_id(ProducerId(aborted.producer_id))
                .with_first_offset(aborted.first_offset)
        };
        aborted.into_iter().map(entry).collect()
    });
    let mut data = data
        .with_high_watermark(read.high_watermark)
        .with_last_stable_offset(read.last_stable_offset)
        .with_aborted_transactions(aborted)
        .with_records(Some(
            read.records.map_or_else(Bytes::new, |read| read.records),
        ));
    if ctx.api_version >= LOG_START_OFFSET_FROM {
        data.log_start_offset = read.log_start_offset;
    }
    if let Some(replica) = read.preferred_read_replica {
        data.preferred_read_replica = replica.0.into();
    }
    if let Some((epoch, end_offset)) = read.diverging_epoch {
        data.diverging_epoch = EpochEndOffset::default()
            .with_epoch(epoch.0)
            .with_end_offset(end_offset);
    }
    data
}

/// A random number for a session's id; the cache asks again for one that is not positive or taken.
pub(super) fn random_session_id() -> i32 {
    let [a, b, c, d, ..] = *Uuid::new_v4().as_bytes();
    i32::from_be_bytes([a & 0x7f, b, c, d])
}
