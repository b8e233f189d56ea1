use super::{Invariant, Seen, lacks_nothing, registered};
use crate::model::metadata::partition;
use crate::model::world::World;

/// Whoever may be elected without loss, members of the ISR and eligible leader replicas (KIP-966), has every committed
/// record.
#[derive(Debug, Default)]
pub(super) struct CandidateCompleteness {
    seen: Seen,
}

impl Invariant for CandidateCompleteness {
    fn name(&self) -> &'static str {
        "I2 candidate completeness"
    }

    fn is_about_loss(&self) -> bool {
        true
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        let history = &world.history;
        if history.is_loss_open {
            return Ok(());
        }
        let partition = partition(world.metadata.latest());
        let candidates = partition
            .isr
            .iter()
            .chain(&partition.eligible_leader_replicas);
        let running: Vec<_> = candidates.filter_map(|id| registered(world, *id)).collect();
        let key = running
            .iter()
            .map(|broker| (broker.id, broker.log.version()));
        if self.seen.is_same(key.collect(), history) {
            return Ok(());
        }
        running
            .into_iter()
            .try_for_each(|broker| lacks_nothing(broker, history))
    }
}
