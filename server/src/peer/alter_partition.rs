//! Asking the active controller for other in-sync replicas (KIP-497).

use highwater_replication::runtime::BoxFuture;
use highwater_replication::runtime::alter_partition::{
    AlterPartition, AlterPartitionChannel, AlterPartitionChannelError, AlteredPartitionResponse,
};
use highwater_replication::state::alter_partition::{AlterPartitionError, AlteredPartition};
use highwater_storage::{BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, TopicId};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::alter_partition_request::{BrokerState, PartitionData, TopicData};
use kafka_protocol::messages::{
    self, AlterPartitionRequest, AlterPartitionResponse, alter_partition_response,
};

use super::controller_channel::ControllerChannel;
use crate::controller::ControllerHandle;

/// The leader id of a partition without one.
const NO_LEADER: i32 = -1;

/// AlterPartition over a channel to the controller.
#[derive(Debug, Clone)]
pub struct PeerAlterPartition {
    channel: ControllerChannel,
    controller: ControllerHandle,
}

impl PeerAlterPartition {
    /// Requests of this broker, whose present epoch `controller` knows.
    pub fn new(channel: ControllerChannel, controller: ControllerHandle) -> Self {
        PeerAlterPartition {
            channel,
            controller,
        }
    }
}

impl AlterPartitionChannel for PeerAlterPartition {
    fn alter_partitions(
        &self,
        partitions: Vec<AlterPartition>,
    ) -> BoxFuture<'_, Result<Vec<AlteredPartitionResponse>, AlterPartitionChannelError>> {
        Box::pin(async move {
            let (broker, epoch) = (self.controller.broker_id(), self.controller.broker_epoch());
            let request = request(broker, epoch, partitions);
            match self.channel.call(&request).await {
                Ok(response) => altered(response),
                Err(error) => Err(AlterPartitionChannelError(error.to_string())),
            }
        })
    }
}

fn request(
    broker: BrokerId,
    broker_epoch: BrokerEpoch,
    partitions: Vec<AlterPartition>,
) -> AlterPartitionRequest {
    let mut topics: Vec<TopicData> = Vec::new();
    for partition in partitions {
        let topic_id = partition.topic_id.0;
        let proposal = partition.proposal;
        let isr = proposal.isr.iter().map(|member| {
            BrokerState::default()
                .with_broker_id(messages::BrokerId(member.broker.0))
                .with_broker_epoch(member.broker_epoch.0)
        });
        // A leader has recovered as soon as it leads: the recovery state stays 0.
        let asked = PartitionData::default()
            .with_partition_index(partition.partition)
            .with_leader_epoch(proposal.leader_epoch.0)
            .with_partition_epoch(proposal.partition_epoch.0)
            .with_new_isr_with_epochs(isr.collect());
        match topics.iter_mut().find(|topic| topic.topic_id == topic_id) {
            Some(topic) => topic.partitions.push(asked),
            None => topics.push(
                TopicData::default()
                    .with_topic_id(topic_id)
                    .with_partitions(vec![asked]),
            ),
        }
    }
    AlterPartitionRequest::default()
        .with_broker_id(messages::BrokerId(broker.0))
        .with_broker_epoch(broker_epoch.0)
        .with_topics(topics)
}

fn altered(
    response: AlterPartitionResponse,
) -> Result<Vec<AlteredPartitionResponse>, AlterPartitionChannelError> {
    if response.error_code != 0 {
        let error = ResponseError::try_from_code(response.error_code);
        let error = error.map_or_else(
            || format!("error code {}", response.error_code),
            |error| error.to_string(),
        );
        return Err(AlterPartitionChannelError(error));
    }
    let topics = response.topics.into_iter();
    let partitions = topics.flat_map(|topic| {
        let topic_id = TopicId(topic.topic_id);
        let partitions = topic.partitions.into_iter();
        partitions.map(move |partition| AlteredPartitionResponse {
            topic_id,
            partition: partition.partition_index,
            result: result(&partition),
        })
    });
    Ok(partitions.collect())
}

fn result(
    partition: &alter_partition_response::PartitionData,
) -> Result<AlteredPartition, AlterPartitionError> {
    if partition.error_code != 0 {
        return Err(refusal(partition.error_code));
    }
    let leader = partition.leader_id.0;
    Ok(AlteredPartition {
        leader: (leader != NO_LEADER).then_some(BrokerId(leader)),
        leader_epoch: LeaderEpoch(partition.leader_epoch),
        partition_epoch: PartitionEpoch(partition.partition_epoch),
        isr: partition.isr.iter().map(|id| BrokerId(id.0)).collect(),
    })
}

fn refusal(error_code: i16) -> AlterPartitionError {
    use AlterPartitionError as Error;
    match ResponseError::try_from_code(error_code) {
        Some(ResponseError::OperationNotAttempted) => Error::OperationNotAttempted,
        Some(ResponseError::IneligibleReplica) => Error::IneligibleReplica,
        Some(ResponseError::FencedLeaderEpoch) => Error::FencedLeaderEpoch,
        Some(ResponseError::InvalidUpdateVersion) => Error::InvalidUpdateVersion,
        Some(ResponseError::UnknownTopicOrPartition) => Error::UnknownTopicOrPartition,
        Some(ResponseError::UnknownTopicId) => Error::UnknownTopicId,
        Some(ResponseError::InvalidRequest) => Error::InvalidRequest,
        Some(ResponseError::NewLeaderElected) => Error::NewLeaderElected,
        _ => Error::Other(error_code),
    }
}
