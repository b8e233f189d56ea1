//! Produce: appends record batches to partitions that this broker leads.
//!
//! Stage 1 appends everything, in the order of arrival; with `acks=all` and batches that are not
//! committed yet, stage 2 waits for them while the connection goes on.

use std::sync::Arc;
use std::time::Duration;

use highwater_replication::cluster::topic_name;
use highwater_replication::runtime::commit_wait::CommitWait;
use highwater_replication::runtime::error::PartitionError;
use highwater_replication::runtime::partition::{Appended, Partition};
use highwater_replication::state::commit::Acks;
use highwater_storage::record_batch::{BatchHeader, Compression};
use highwater_storage::{AppendError, AppendOrigin, RecordError};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
    TopicProduceResponse,
};
use kafka_protocol::messages::{ProduceRequest, ProduceResponse};
use kafka_protocol::protocol::StrBytes;
use tokio::time::Instant;

use super::current_leader::{CurrentLeaders, means_another_leader};
use super::error_code::ErrorCode;
use super::partitions;
use super::pending::{Place, settle_each};
use super::{CloseReason, Reply, RequestContext};
use crate::broker::Broker;

/// The first version whose error for a partition outside of a transaction is TRANSACTION_ABORTABLE.
const TRANSACTION_ABORTABLE_FROM: i16 = 11;
/// The first version that accepts zstd (KIP-110).
const ZSTD_FROM: i16 = 7;
/// The first version whose clients know KAFKA_STORAGE_ERROR; earlier ones look for the leader again.
const STORAGE_ERROR_FROM: i16 = 4;
/// The first version that names topics by id.
const TOPIC_IDS_FROM: i16 = 13;
/// The first version that tells who leads instead (KIP-951).
const CURRENT_LEADER_FROM: i16 = 10;
/// The first version with an error message and the errors of single records (KIP-467).
const RECORD_ERRORS_FROM: i16 = 8;
/// The client id with which Kafka's own tools may write to internal topics.
const ADMIN_CLIENT_ID: &str = "__admin_client";

/// Handles a Produce request.
pub(super) fn handle(broker: &Arc<Broker>, ctx: &RequestContext, request: ProduceRequest) -> Reply {
    let now_ms = broker.now_ms();
    let acks = Acks::from_wire(request.acks);
    let mut producing = Producing {
        broker,
        ctx,
        request: &request,
        acks,
        now_ms,
        waits: Vec::new(),
    };
    let topics = request.topic_data.iter().enumerate();
    let responses = topics
        .map(|(index, topic)| producing.topic(index, topic))
        .collect();
    let waits = producing.waits;
    let response = ProduceResponse::default().with_responses(responses);
    if acks == Some(Acks::None) {
        let failed = response
            .responses
            .iter()
            .flat_map(|topic| &topic.partition_responses);
        return match failed
            .map(|partition| partition.error_code)
            .find(|code| *code != 0)
        {
            None => Reply::Nothing,
            // There is no answer to carry the error: closing makes the client look again.
            Some(_) => Reply::Close(CloseReason::FailedWithoutResponse),
        };
    }
    if waits.is_empty() {
        return Reply::Ready(encode(broker, ctx, response));
    }
    let timeout = Duration::from_millis(request.timeout_ms.max(0).unsigned_abs().into());
    let deadline = Instant::now() + timeout;
    Reply::Parked(Box::pin(answer_when_committed(
        Arc::clone(broker),
        ctx.clone(),
        response,
        waits,
        deadline,
    )))
}

async fn answer_when_committed(
    broker: Arc<Broker>,
    ctx: RequestContext,
    mut response: ProduceResponse,
    waits: Vec<(Place, CommitWait)>,
    deadline: Instant,
) -> super::ResponseBody {
    let committed = |wait: CommitWait| async move {
        let committed = wait.committed().await;
        (wait, committed)
    };
    settle_each(waits, deadline, committed, |place, outcome| {
        let error = match outcome {
            Some((_, Ok(()))) => return,
            Some((wait, Err(error))) => {
                broker.refusals.on_partition_error(
                    &error,
                    wait.topic_partition(),
                    &"a producer, after the append",
                    broker.now_ms(),
                );
                error.error_code()
            }
            None => ResponseError::RequestTimedOut,
        };
        ctx.count_error(error);
        // What was appended stays appended, and the answer tells where.
        let entry = &mut response.responses[place.topic].partition_responses[place.partition];
        entry.error_code = error.code();
    })
    .await;
    encode(&broker, &ctx, response)
}

/// Encodes a response. Who came to the wrong broker is told where the leader is (KIP-951).
fn encode(
    broker: &Broker,
    ctx: &RequestContext,
    mut response: ProduceResponse,
) -> super::ResponseBody {
    let mut entries = response
        .responses
        .iter()
        .flat_map(|topic| &topic.partition_responses);
    if ctx.api_version >= CURRENT_LEADER_FROM
        && entries.any(|entry| means_another_leader(entry.error_code))
    {
        name_leaders(broker, ctx, &mut response);
    }
    ctx.encode(&response)
}

fn name_leaders(broker: &Broker, ctx: &RequestContext, response: &mut ProduceResponse) {
    let mut leaders = CurrentLeaders::new(broker, ctx);
    for topic in &mut response.responses {
        let failed = topic
            .partition_responses
            .iter_mut()
            .filter(|entry| means_another_leader(entry.error_code));
        for entry in failed {
            if let Some(leader) = leaders.of(&topic.name, topic.topic_id, entry.index) {
                entry.current_leader = LeaderIdAndEpoch::default()
                    .with_leader_id(leader.leader_id.into())
                    .with_leader_epoch(leader.leader_epoch);
            }
        }
    }
    let nodes = leaders.into_nodes().map(|node| {
        NodeEndpoint::default()
            .with_node_id(node.id)
            .with_host(node.host)
            .with_port(node.port)
            .with_rack(node.rack)
    });
    response.node_endpoints = nodes.collect();
}

/// Why one partition's records are refused, with what the client is told. As in Apache Kafka there is a text only beside
/// single records that are at fault.
struct Refusal {
    error: ResponseError,
    message: Option<String>,
    record_errors: Vec<RecordError>,
    /// Where the log begins, if it was asked; else -1.
    log_start_offset: i64,
}

impl From<ResponseError> for Refusal {
    fn from(error: ResponseError) -> Self {
        Self {
            error,
            message: None,
            record_errors: Vec::new(),
            log_start_offset: -1,
        }
    }
}

impl Refusal {
    fn of_append(broker: &Broker, partition: &Partition, error: PartitionError) -> Self {
        let topic_partition = partition.topic_partition();
        tracing::debug!(%topic_partition, %error, "refused a batch");
        broker
            .refusals
            .on_partition_error(&error, topic_partition, &"a producer", broker.now_ms());
        let code = error.error_code();
        let log_start_offset = if tells_log_start(&error) {
            partition.log().log_start_offset()
        } else {
            -1
        };
        let (message, record_errors) = match error {
            PartitionError::Append(
                AppendError::InvalidRecord {
                    message,
                    record_errors,
                }
                | AppendError::InvalidTimestamp {
                    message,
                    record_errors,
                },
            ) if !record_errors.is_empty() => (Some(message), record_errors),
            _ => (None, Vec::new()),
        };
        Self {
            error: code,
            message,
            record_errors,
            log_start_offset,
        }
    }
}

/// Whether Apache Kafka tells where the log begins beside this error: not when it has not come to the log, and not for
/// what it expects to go wrong.
fn tells_log_start(error: &PartitionError) -> bool {
    match error {
        PartitionError::NotEnoughReplicas { .. } => true,
        PartitionError::Append(error) => !matches!(
            error,
            AppendError::NotOneBatch(_)
                | AppendError::CorruptMessage(_)
                | AppendError::MessageTooLarge { .. }
                | AppendError::RecordListTooLarge { .. }
                | AppendError::Storage(_)
        ),
        _ => false,
    }
}

struct Producing<'a> {
    broker: &'a Arc<Broker>,
    ctx: &'a RequestContext,
    request: &'a ProduceRequest,
    acks: Option<Acks>,
    now_ms: i64,
    waits: Vec<(Place, CommitWait)>,
}

impl Producing<'_> {
    fn topic(&mut self, index: usize, topic: &TopicProduceData) -> TopicProduceResponse {
        let entries = topic.partition_data.iter().enumerate();
        let partition_responses = entries
            .map(|(entry, data)| {
                let place = Place {
                    topic: index,
                    partition: entry,
                };
                self.partition(topic, data, place)
            })
            .collect();
        TopicProduceResponse::default()
            .with_name(topic.name.clone())
            .with_topic_id(topic.topic_id)
            .with_partition_responses(partition_responses)
    }

    fn partition(
        &mut self,
        topic: &TopicProduceData,
        data: &PartitionProduceData,
        place: Place,
    ) -> PartitionProduceResponse {
        let response = PartitionProduceResponse::default().with_index(data.index);
        match self.append(topic, data) {
            Ok(Appended { info, commit }) => {
                if let Some(wait) = commit {
                    self.waits.push((place, wait));
                }
                response
                    .with_base_offset(info.base_offset)
                    .with_log_append_time_ms(info.log_append_time_ms)
                    .with_log_start_offset(self.log_start_offset(info.log_start_offset))
            }
            Err(refusal) => self.refused(response, refusal),
        }
    }

    /// The field exists from v5 on.
    fn log_start_offset(&self, offset: i64) -> i64 {
        if self.ctx.api_version >= 5 {
            offset
        } else {
            -1
        }
    }

    fn refused(
        &self,
        response: PartitionProduceResponse,
        mut refusal: Refusal,
    ) -> PartitionProduceResponse {
        if refusal.error == ResponseError::KafkaStorageError
            && self.ctx.api_version < STORAGE_ERROR_FROM
        {
            refusal.error = ResponseError::NotLeaderOrFollower;
        }
        self.ctx.count_error(refusal.error);
        let response = response
            .with_error_code(refusal.error.code())
            .with_base_offset(-1)
            .with_log_start_offset(self.log_start_offset(refusal.log_start_offset));
        if self.ctx.api_version < RECORD_ERRORS_FROM {
            return response;
        }
        let record_errors = refusal.record_errors.into_iter().map(|record| {
            BatchIndexAndErrorMessage::default()
                .with_batch_index(record.batch_index)
                .with_batch_index_error_message(Some(StrBytes::from_string(record.message)))
        });
        response
            .with_error_message(refusal.message.map(StrBytes::from_string))
            .with_record_errors(record_errors.collect())
    }

    fn append(
        &self,
        topic: &TopicProduceData,
        data: &PartitionProduceData,
    ) -> Result<Appended, Refusal> {
        let acks = self.acks.ok_or(ResponseError::InvalidRequiredAcks)?;
        let partition = self.find(topic, data.index)?;
        let records = data
            .records
            .as_ref()
            .filter(|records| !records.is_empty())
            .ok_or(ResponseError::InvalidRecord)?;
        if let Ok(header) = BatchHeader::parse(records) {
            self.check_header(&header)?;
        }
        partition
            .append_as_leader(records, acks, AppendOrigin::Client, self.now_ms)
            .map_err(|error| Refusal::of_append(self.broker, &partition, error))
    }

    fn find(&self, topic: &TopicProduceData, index: i32) -> Result<Arc<Partition>, Refusal> {
        let partition = if self.ctx.api_version >= TOPIC_IDS_FROM {
            partitions::by_id(self.broker, topic.topic_id, index)?
        } else {
            partitions::by_name(self.broker, &topic.name, index)?
        };
        let internal = topic_name::is_internal(&partition.topic_partition().topic);
        if internal && self.ctx.client_id.as_deref() != Some(ADMIN_CLIENT_ID) {
            return Err(ResponseError::InvalidTopicException.into());
        }
        Ok(partition)
    }

    /// What depends on the request's version, and transactions, which this broker does not
    /// coordinate: no transactional batch belongs to a running transaction.
    fn check_header(&self, header: &BatchHeader) -> Result<(), Refusal> {
        if header.is_transactional() {
            return Err(match &self.request.transactional_id {
                None => ResponseError::TransactionalIdAuthorizationFailed.into(),
                Some(_) if self.ctx.api_version >= TRANSACTION_ABORTABLE_FROM => {
                    ResponseError::TransactionAbortable.into()
                }
                Some(_) => ResponseError::InvalidTxnState.into(),
            });
        }
        if self.ctx.api_version < ZSTD_FROM && header.compression().ok() == Some(Compression::Zstd)
        {
            return Err(ResponseError::UnsupportedCompressionType.into());
        }
        Ok(())
    }
}
