use std::collections::BTreeMap;

use highwater_storage::{BrokerId, LeaderEpoch, PartitionEpoch};
use uuid::Uuid;

use super::Invariant;
use crate::model::metadata::partition;
use crate::model::world::World;

type Epochs = (LeaderEpoch, PartitionEpoch);

/// Leader epoch and partition epoch never go back, in the metadata or on a broker; a new leader epoch has a new
/// partition epoch.
#[derive(Debug, Default)]
pub(super) struct MonotonicEpochs {
    position: usize,
    committed: Option<Epochs>,
    brokers: BTreeMap<BrokerId, (Uuid, Epochs)>,
}

impl Invariant for MonotonicEpochs {
    fn name(&self) -> &'static str {
        "I10 monotonic epochs"
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        if world.metadata.len() > self.position {
            self.position = world.metadata.len();
            let partition = partition(world.metadata.latest());
            let now = (partition.leader_epoch, partition.partition_epoch);
            compare("the metadata", self.committed.replace(now), now)?;
        }
        for broker in world.brokers.values() {
            let Some(run) = &broker.run else { continue };
            if run.replica.leader_epoch().0 < 0 {
                continue;
            }
            let now = (run.replica.leader_epoch(), run.replica.partition_epoch());
            let before = self.brokers.insert(broker.id, (run.incarnation, now));
            let before = before.filter(|(incarnation, _)| *incarnation == run.incarnation);
            compare(
                &format!("broker {}", broker.id),
                before.map(|(_, epochs)| epochs),
                now,
            )?;
        }
        Ok(())
    }
}

fn compare(who: &str, before: Option<Epochs>, now: Epochs) -> Result<(), String> {
    let Some(before) = before else { return Ok(()) };
    let went_back = now.0 < before.0 || now.1 < before.1;
    let same_partition_epoch = now.0 != before.0 && now.1 == before.1;
    match went_back || same_partition_epoch {
        false => Ok(()),
        true => Err(format!(
            "{who} went from leader and partition epoch {before:?} to {now:?}"
        )),
    }
}
