//! AlterPartition (KIP-497): a leader asks for another ISR.

use std::sync::Arc;

use highwater_replication::cluster::ClusterError;
use highwater_replication::cluster::alter_partition::{
    IsrProposal, IsrProposalResult, alter_partition,
};
use highwater_storage::{BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, TopicId};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::alter_partition_request::PartitionData as Proposed;
use kafka_protocol::messages::alter_partition_response::{PartitionData, TopicData};
use kafka_protocol::messages::{AlterPartitionRequest, AlterPartitionResponse};

use super::cluster_nodes::broker_ids;
use super::error_code::ErrorCode;
use super::metadata_change::{decide, flatten_noting, note, submit};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::controller::replication_defaults;

/// From here on each member of the ISR comes with its broker epoch (KIP-903).
const BROKER_EPOCHS_FROM: i16 = 3;
const RECOVERED: i8 = 0;
const RECOVERING: i8 = 1;

/// Handles an AlterPartition request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: AlterPartitionRequest,
) -> Reply {
    let sender = BrokerId(request.broker_id.0);
    let sender_epoch = BrokerEpoch(request.broker_epoch);
    let proposals: Vec<Result<IsrProposal, ClusterError>> = request
        .topics
        .iter()
        .flat_map(|topic| {
            let proposals = topic.partitions.iter();
            proposals.map(|partition| proposal(ctx.api_version, topic.topic_id, partition))
        })
        .collect();
    let sound: Vec<IsrProposal> = proposals
        .iter()
        .filter_map(|one| one.clone().ok())
        .collect();
    let defaults = replication_defaults(&broker.config.current());
    let submitted = submit(&broker, move |image, _| {
        decide(alter_partition(
            image,
            &defaults,
            sender,
            sender_epoch,
            &sound,
        ))
    });
    let judged = match flatten_noting(&broker, "in-sync replicas", sender, submitted.await) {
        Ok(judged) => judged,
        Err((error, text)) => {
            ctx.count_error(error);
            tracing::info!(
                broker_id = sender.0,
                ?error,
                reason = text.as_deref(),
                "refused to alter partitions"
            );
            let response = AlterPartitionResponse::default().with_error_code(error.code());
            return ctx.encode(&response).into();
        }
    };
    let mut judged = judged.into_iter();
    let mut results = proposals.into_iter().map(|proposal| match proposal {
        Ok(_) => judged
            .next()
            .unwrap_or_else(|| Err(ClusterError::UnknownServerError("no result".to_owned()))),
        Err(error) => Err(error),
    });
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let result = results.next().unwrap_or(Err(ClusterError::UnknownTopicId));
            let result = result.inspect_err(|error| {
                let (id, index) = (TopicId(topic.topic_id), partition.partition_index);
                note(&broker, error, &format!("{id}-{index}"), sender);
            });
            response_partition(
                &ctx,
                sender,
                topic.topic_id,
                partition.partition_index,
                result,
            )
        });
        TopicData::default()
            .with_topic_id(topic.topic_id)
            .with_partitions(partitions.collect())
    });
    let response = AlterPartitionResponse::default().with_topics(topics.collect());
    ctx.encode(&response).into()
}

fn proposal(
    api_version: i16,
    topic_id: uuid::Uuid,
    partition: &Proposed,
) -> Result<IsrProposal, ClusterError> {
    let new_isr = match api_version < BROKER_EPOCHS_FROM {
        true => partition
            .new_isr
            .iter()
            .map(|id| (BrokerId(id.0), None))
            .collect(),
        false => {
            let members = partition.new_isr_with_epochs.iter();
            members
                .map(|member| {
                    let epoch =
                        (member.broker_epoch >= 0).then_some(BrokerEpoch(member.broker_epoch));
                    (BrokerId(member.broker_id.0), epoch)
                })
                .collect()
        }
    };
    let recovering = match partition.leader_recovery_state {
        RECOVERED => false,
        RECOVERING => true,
        other => {
            return Err(ClusterError::InvalidRequest(format!(
                "unknown leader recovery state {other}"
            )));
        }
    };
    Ok(IsrProposal {
        topic_id: TopicId(topic_id),
        partition: partition.partition_index,
        leader_epoch: LeaderEpoch(partition.leader_epoch),
        partition_epoch: PartitionEpoch(partition.partition_epoch),
        new_isr,
        recovering,
    })
}

fn response_partition(
    ctx: &RequestContext,
    sender: BrokerId,
    topic_id: uuid::Uuid,
    partition: i32,
    result: IsrProposalResult,
) -> PartitionData {
    let response = PartitionData::default().with_partition_index(partition);
    match result {
        Ok(state) => response
            .with_leader_id(state.leader.map_or(-1, |leader| leader.0).into())
            .with_leader_epoch(state.leader_epoch.0)
            .with_isr(broker_ids(&state.isr))
            .with_leader_recovery_state(i8::from(state.recovering))
            .with_partition_epoch(state.partition_epoch.0),
        Err(error) => {
            let code: ResponseError = error.error_code();
            ctx.count_error(code);
            tracing::info!(
                broker_id = sender.0,
                topic_id = %TopicId(topic_id),
                partition,
                error = ?code,
                reason = %error,
                "refused to alter a partition"
            );
            response.with_error_code(code.code())
        }
    }
}
