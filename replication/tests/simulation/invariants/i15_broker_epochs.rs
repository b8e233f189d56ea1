use std::collections::BTreeMap;

use highwater_storage::{BrokerEpoch, BrokerId};

use super::Invariant;
use crate::model::world::World;

/// Broker epochs grow with each registration, and no two brokers ever have the same.
#[derive(Debug, Default)]
pub(super) struct BrokerEpochs {
    position: usize,
    latest: BTreeMap<BrokerId, BrokerEpoch>,
    owners: BTreeMap<BrokerEpoch, BrokerId>,
}

impl Invariant for BrokerEpochs {
    fn name(&self) -> &'static str {
        "I15 broker epochs"
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        if world.metadata.len() == self.position {
            return Ok(());
        }
        self.position = world.metadata.len();
        for registration in world.metadata.latest().brokers().values() {
            let (id, epoch) = (registration.id, registration.epoch);
            let before = self.latest.insert(id, epoch);
            if before.is_some_and(|before| epoch < before) {
                return Err(format!(
                    "broker {id} went from epoch {before:?} back to {epoch}"
                ));
            }
            let owner = *self.owners.entry(epoch).or_insert(id);
            if owner != id {
                return Err(format!("brokers {owner} and {id} have the epoch {epoch}"));
            }
        }
        Ok(())
    }
}
