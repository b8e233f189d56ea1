//! What a broker hosts, by the name and by the id of the topics.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use highwater_storage::TopicId;

use crate::runtime::error::PartitionError;
use crate::runtime::partition::Partition;

/// All topics of which this broker has heard.
#[derive(Debug, Default)]
pub(super) struct Hosted {
    pub(super) by_name: HashMap<Arc<str>, Arc<HostedTopic>>,
    pub(super) by_id: HashMap<TopicId, Arc<HostedTopic>>,
}

/// The replicas of one topic, by partition number.
#[derive(Debug, Clone)]
pub(super) struct HostedTopic {
    pub(super) name: Arc<str>,
    pub(super) id: TopicId,
    pub(super) replicas: Vec<Replica>,
}

#[derive(Debug, Clone)]
pub(super) enum Replica {
    /// Another broker's.
    Elsewhere,
    /// Ours, with an open log, which may have failed since.
    Online(Arc<Partition>),
    /// Ours, but its log could not be opened.
    Offline {
        reason: Arc<str>,
        /// The disk was full: it may open when there is space again.
        may_open_later: bool,
    },
}

impl Hosted {
    pub(super) fn insert(&mut self, topic: HostedTopic) {
        let topic = Arc::new(topic);
        let name = Arc::clone(&topic.name);
        self.by_name.insert(name, Arc::clone(&topic));
        self.by_id.insert(topic.id, topic);
    }

    /// Takes a topic off; its name may be another topic's by now.
    pub(super) fn remove(&mut self, name: &str, id: TopicId) -> Option<Arc<HostedTopic>> {
        if self.by_name.get(name).is_some_and(|named| named.id == id) {
            self.by_name.remove(name);
        }
        self.by_id.remove(&id)
    }

    pub(super) fn offline_count(&self) -> usize {
        let replicas = self.by_name.values().flat_map(|topic| &topic.replicas);
        replicas
            .filter(|replica| match replica {
                Replica::Online(partition) => partition.log().failure().is_some(),
                Replica::Offline { .. } => true,
                Replica::Elsewhere => false,
            })
            .count()
    }
}

impl HostedTopic {
    pub(super) fn replica(&self, partition: i32) -> Result<Arc<Partition>, PartitionError> {
        let index = usize::try_from(partition).map_err(|_| PartitionError::NotHosted)?;
        match self.replicas.get(index) {
            Some(Replica::Online(partition)) => match partition.log().failure() {
                None => Ok(Arc::clone(partition)),
                Some(failure) => Err(PartitionError::Offline(failure.to_string())),
            },
            Some(Replica::Offline { reason, .. }) => {
                Err(PartitionError::Offline(reason.to_string()))
            }
            Some(Replica::Elsewhere) | None => Err(PartitionError::NotHosted),
        }
    }

    /// The replica with an open log, also when the log has failed since.
    pub(super) fn hosted(&self, partition: i32) -> Option<Arc<Partition>> {
        let index = usize::try_from(partition).ok()?;
        match self.replicas.get(index)? {
            Replica::Online(partition) => Some(Arc::clone(partition)),
            Replica::Elsewhere | Replica::Offline { .. } => None,
        }
    }

    pub(super) fn waiting_for_space(&self) -> BTreeSet<i32> {
        let waits = |replica: &Replica| {
            matches!(
                replica,
                Replica::Offline {
                    may_open_later: true,
                    ..
                }
            )
        };
        let waiting = (0..)
            .zip(&self.replicas)
            .filter(|(_, replica)| waits(replica));
        waiting.map(|(partition, _)| partition).collect()
    }

    pub(super) fn online(&self) -> impl Iterator<Item = &Arc<Partition>> {
        self.replicas.iter().filter_map(|replica| match replica {
            Replica::Online(partition) => Some(partition),
            Replica::Elsewhere | Replica::Offline { .. } => None,
        })
    }
}
