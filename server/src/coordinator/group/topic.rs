//! What changes of the cluster's metadata mean to the group coordinator.

use std::sync::Arc;

use highwater_replication::cluster::{ClusterDelta, ClusterImage};
use highwater_storage::BrokerId;

use super::{GroupCoordinator, OFFSETS_TOPIC};

impl GroupCoordinator {
    /// Takes up the partitions of `__consumer_offsets` that `local_broker` leads when the broker starts.
    pub fn on_start(self: &Arc<Self>, image: &ClusterImage, local_broker: BrokerId) {
        if let Some(topic) = image.topic(OFFSETS_TOPIC) {
            for partition in 0..topic.partitions.len() {
                self.follow(image, local_broker, partition as i32);
            }
        }
    }

    /// Follows a change of the metadata, after the replica manager has: partitions of `__consumer_offsets` that were
    /// won or lost, and offsets of topics that are gone.
    pub fn on_metadata(
        self: &Arc<Self>,
        image: &ClusterImage,
        delta: &ClusterDelta,
        local_broker: BrokerId,
    ) {
        let deleted = &delta.deleted_topics;
        for topic in deleted.iter().filter(|topic| &*topic.name == OFFSETS_TOPIC) {
            for partition in 0..topic.partitions.len() {
                self.on_resigned(partition as i32);
            }
        }
        let dropped: Vec<_> = deleted
            .iter()
            .map(|topic| (topic.name.clone(), topic.id.0))
            .collect();
        if !dropped.is_empty() {
            self.on_topics_deleted(&dropped);
        }
        let Some(topic) = image.topic(OFFSETS_TOPIC) else {
            return;
        };
        for partition in delta
            .changed_partitions
            .get(&topic.id)
            .into_iter()
            .flatten()
        {
            self.follow(image, local_broker, *partition);
        }
    }

    fn follow(self: &Arc<Self>, image: &ClusterImage, local_broker: BrokerId, partition: i32) {
        let Some(topic) = image.topic(OFFSETS_TOPIC) else {
            return;
        };
        self.set_partitions(i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX));
        match topic.partition(partition) {
            Some(state) if state.leader == Some(local_broker) => {
                self.on_elected(partition, state.leader_epoch.0);
            }
            _ => self.on_resigned(partition),
        }
    }
}
