//! Tells the active controller where replicas lie, and which cannot be used (KIP-858).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use highwater_replication::cluster::assign_dirs::DirectoryAssignment;
use highwater_replication::runtime::replica_manager::ReplicaManager;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::assign_replicas_to_dirs_request::{
    DirectoryData, PartitionData, TopicData,
};
use kafka_protocol::messages::{AssignReplicasToDirsRequest, BrokerId};
use tokio::time::timeout;
use uuid::Uuid;

use super::controller_channel::ControllerChannel;
use crate::controller::ControllerHandle;

/// The most replicas in one request, as in Kafka.
const MAX_ASSIGNMENTS: usize = 2250;
/// The rest before what the controller did not take is told again.
const RETRY_BACKOFF: Duration = Duration::from_secs(1);

/// Tells the controller of replicas as [`ReplicaManager::wanted_assignments`] wants, as long as the broker runs. It
/// begins once the broker is registered.
pub async fn tell_directories(
    replicas: Arc<ReplicaManager>,
    controller: ControllerHandle,
    channel: ControllerChannel,
) {
    let mut epochs = controller.watch_broker_epoch();
    if epochs.wait_for(|epoch| epoch.0 >= 0).await.is_err() {
        return;
    }
    loop {
        let wanted = replicas.wanted_assignments();
        let is_taken = tell(&wanted, &controller, &channel).await;
        let changed = replicas.context().places_changed();
        match is_taken {
            // What the controller took comes back as metadata.
            true => changed.await,
            false => {
                // A change or the time, whichever is first.
                let _ = timeout(RETRY_BACKOFF, changed).await;
            }
        }
    }
}

/// Whether the controller took all of it.
async fn tell(
    wanted: &[DirectoryAssignment],
    controller: &ControllerHandle,
    channel: &ControllerChannel,
) -> bool {
    for assignments in wanted.chunks(MAX_ASSIGNMENTS) {
        let request = request(controller, assignments);
        let response = match channel.call(&request).await {
            Ok(response) => response,
            Err(error) => {
                tracing::warn!(%error, "the controller does not hear where replicas lie, telling it again");
                return false;
            }
        };
        let partitions = response
            .directories
            .iter()
            .flat_map(|directory| &directory.topics)
            .flat_map(|topic| &topic.partitions);
        let refused = partitions
            .map(|partition| partition.error_code)
            .chain([response.error_code])
            .find(|error_code| *error_code != 0);
        if let Some(error_code) = refused {
            let error = ResponseError::try_from_code(error_code);
            tracing::warn!(
                error_code,
                ?error,
                "the controller does not take where replicas lie, telling it again"
            );
            return false;
        }
        tracing::info!(
            replicas = assignments.len(),
            "told the controller where replicas lie"
        );
    }
    true
}

fn request(
    controller: &ControllerHandle,
    assignments: &[DirectoryAssignment],
) -> AssignReplicasToDirsRequest {
    let mut by_directory: BTreeMap<Uuid, BTreeMap<Uuid, Vec<PartitionData>>> = BTreeMap::new();
    for assignment in assignments {
        let topics = by_directory.entry(assignment.directory).or_default();
        let partitions = topics.entry(assignment.topic_id.0).or_default();
        partitions.push(PartitionData::default().with_partition_index(assignment.partition));
    }
    let directories = by_directory.into_iter().map(|(id, topics)| {
        let topics = topics.into_iter().map(|(topic_id, partitions)| {
            TopicData::default()
                .with_topic_id(topic_id)
                .with_partitions(partitions)
        });
        DirectoryData::default()
            .with_id(id)
            .with_topics(topics.collect())
    });
    AssignReplicasToDirsRequest::default()
        .with_broker_id(BrokerId(controller.broker_id().0))
        .with_broker_epoch(controller.broker_epoch().0)
        .with_directories(directories.collect())
}
