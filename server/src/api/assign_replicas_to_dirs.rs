//! AssignReplicasToDirs (KIP-858): a broker says in which of its log directories replicas lie.

use std::sync::Arc;

use highwater_replication::cluster::assign_dirs::{DirectoryAssignment, assign_replicas_to_dirs};
use highwater_storage::{BrokerEpoch, BrokerId, TopicId};
use kafka_protocol::messages::assign_replicas_to_dirs_response::{
    DirectoryData, PartitionData, TopicData,
};
use kafka_protocol::messages::{AssignReplicasToDirsRequest, AssignReplicasToDirsResponse};

use super::error_code::ErrorCode;
use super::metadata_change::{decide, flatten_noting, note, submit};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::controller::replication_defaults;

/// Handles an AssignReplicasToDirs request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: AssignReplicasToDirsRequest,
) -> Reply {
    let id = BrokerId(request.broker_id.0);
    let epoch = BrokerEpoch(request.broker_epoch);
    let assignments: Vec<DirectoryAssignment> = request
        .directories
        .iter()
        .flat_map(|directory| {
            directory.topics.iter().flat_map(|topic| {
                topic
                    .partitions
                    .iter()
                    .map(|partition| DirectoryAssignment {
                        directory: directory.id,
                        topic_id: TopicId(topic.topic_id),
                        partition: partition.partition_index,
                    })
            })
        })
        .collect();
    let defaults = replication_defaults(&broker.config.current());
    let submitted = submit(&broker, move |image, _| {
        decide(assign_replicas_to_dirs(
            image,
            &defaults,
            id,
            epoch,
            &assignments,
        ))
    });
    let results = match flatten_noting(&broker, "log directories", id, submitted.await) {
        Ok(results) => results,
        Err((error, _)) => {
            ctx.count_error(error);
            let response = AssignReplicasToDirsResponse::default().with_error_code(error.code());
            return ctx.encode(&response).into();
        }
    };
    let mut results = results.into_iter();
    let mut response_partition = |partition: i32| {
        let response = PartitionData::default().with_partition_index(partition);
        match results.next() {
            Some(Err(error)) => {
                let code = error.error_code();
                ctx.count_error(code);
                note(&broker, &error, &partition, id);
                tracing::warn!(broker_id = id.0, partition, reason = %error, "refused to assign a replica to a directory");
                response.with_error_code(code.code())
            }
            Some(Ok(())) | None => response,
        }
    };
    let mut directories = Vec::with_capacity(request.directories.len());
    for directory in &request.directories {
        let mut topics = Vec::with_capacity(directory.topics.len());
        for topic in &directory.topics {
            let partitions = topic.partitions.iter();
            let partitions = partitions
                .map(|partition| response_partition(partition.partition_index))
                .collect();
            topics.push(
                TopicData::default()
                    .with_topic_id(topic.topic_id)
                    .with_partitions(partitions),
            );
        }
        directories.push(
            DirectoryData::default()
                .with_id(directory.id)
                .with_topics(topics),
        );
    }
    let response = AssignReplicasToDirsResponse::default().with_directories(directories);
    ctx.encode(&response).into()
}
