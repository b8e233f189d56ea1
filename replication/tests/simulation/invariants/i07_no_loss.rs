use std::collections::BTreeMap;

use highwater_storage::BrokerId;

use super::{Invariant, effective_min_isr};
use crate::model::metadata::partition;
use crate::model::world::World;

/// Nothing that was promised is lost: every record that was acknowledged with acks=all is committed, at its offset. An
/// unclean election happens only where the topic allows it or somebody asks for it, or when so many brokers have lost
/// records since the ISR was last large enough that nobody can know any more (KIP-966).
#[derive(Debug, Default)]
pub(super) struct NoLoss {
    position: usize,
    min_isr: usize,
    /// How many in-sync replicas were enough when the ISR was last large enough: so many had all that is committed.
    enough: usize,
    /// Whether a change of min.insync.replicas has made the controller forget who has all records.
    is_account_lost: bool,
    unclean_elections: usize,
    /// How often each broker had registered uncleanly when the ISR was last large enough.
    registrations: BTreeMap<BrokerId, usize>,
}

impl Invariant for NoLoss {
    fn name(&self) -> &'static str {
        "I7 no loss"
    }

    fn is_about_loss(&self) -> bool {
        true
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        let history = &world.history;
        for (offset, record) in &history.acked {
            if history.committed.get(*offset as usize) != Some(record) {
                return Err(format!(
                    "{record:?} was acknowledged at {offset} and is not committed"
                ));
            }
        }
        if world.metadata.len() == self.position {
            return Ok(());
        }
        self.position = world.metadata.len();
        let image = world.metadata.latest();
        let partition = partition(image);
        if history.unclean_elections > self.unclean_elections {
            self.unclean_elections = history.unclean_elections;
            let lossy = world.brokers.values().filter(|broker| {
                let before = self.registrations.get(&broker.id).copied().unwrap_or(0);
                broker.unclean_registrations > before
            });
            let lossy = lossy.count();
            let is_allowed = world.allows_unclean() || world.unclean_was_asked;
            if !is_allowed && lossy < self.enough && !self.is_account_lost {
                return Err(format!(
                    "{:?} was elected uncleanly, and only {lossy} brokers had lost records",
                    partition.leader
                ));
            }
        }
        self.is_account_lost |= world.min_isr() != self.min_isr;
        self.min_isr = world.min_isr();
        let enough = effective_min_isr(world, partition);
        if partition.isr.len() >= enough {
            self.is_account_lost = false;
            self.enough = enough;
            let brokers = world.brokers.values();
            self.registrations = brokers
                .map(|broker| (broker.id, broker.unclean_registrations))
                .collect();
        }
        Ok(())
    }
}
