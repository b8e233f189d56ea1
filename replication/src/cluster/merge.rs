//! What a record of a change makes of a partition.

use highwater_storage::types::{BrokerId, LeaderEpoch, PartitionEpoch};
use uuid::Uuid;

use super::apply::ApplyError;
use super::directories::UNASSIGNED_DIRECTORY;
use super::image::PartitionImage;
use super::records::{NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord};

impl PartitionImage {
    /// Makes the change of `record`. Each change raises the partition epoch; one that names a leader, be it the same,
    /// raises the leader epoch too.
    pub fn merge(&mut self, record: &PartitionChangeRecord) -> Result<(), ApplyError> {
        let replace = |target: &mut Vec<BrokerId>, change: &Option<Vec<i32>>| {
            if let Some(ids) = change {
                *target = broker_ids(ids);
            }
        };
        if record.leader_recovery_state != -1 {
            self.recovering = recovering("PartitionChangeRecord", record.leader_recovery_state)?;
        }
        replace(&mut self.isr, &record.isr);
        replace(&mut self.replicas, &record.replicas);
        replace(&mut self.removing_replicas, &record.removing_replicas);
        replace(&mut self.adding_replicas, &record.adding_replicas);
        replace(
            &mut self.eligible_leader_replicas,
            &record.eligible_leader_replicas,
        );
        replace(&mut self.last_known_elr, &record.last_known_elr);
        if let Some(directories) = &record.directories {
            self.directories.clone_from(directories);
        }
        if record.leader != NO_LEADER_CHANGE {
            self.leader = leader(record.leader);
            self.leader_epoch = LeaderEpoch(self.leader_epoch.0 + 1);
        }
        self.partition_epoch = PartitionEpoch(self.partition_epoch.0 + 1);
        Ok(())
    }

    /// The log directory of the replica on `broker`, zero when nobody has said.
    pub fn directory_of(&self, broker: BrokerId) -> Uuid {
        let position = self.replicas.iter().position(|id| *id == broker);
        let directory = position.and_then(|position| self.directories.get(position));
        directory.copied().unwrap_or(UNASSIGNED_DIRECTORY)
    }

    /// Whether replicas are being added or removed.
    pub fn is_reassigning(&self) -> bool {
        !self.adding_replicas.is_empty() || !self.removing_replicas.is_empty()
    }
}

pub(super) fn broker_ids(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

pub(super) fn leader(id: i32) -> Option<BrokerId> {
    (id != NO_LEADER).then_some(BrokerId(id))
}

pub(super) fn recovering(record: &'static str, state: i8) -> Result<bool, ApplyError> {
    match state {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(ApplyError::InvalidValue {
            record,
            field: "leader_recovery_state",
            value: other.into(),
        }),
    }
}
