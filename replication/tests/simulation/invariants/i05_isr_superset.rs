use super::{Invariant, registered};
use crate::model::metadata::partition;
use crate::model::world::World;

/// The leader waits for everybody who may be elected: its maximal ISR contains the controller's ISR and eligible leader
/// replicas, as long as it may move the high watermark at all.
#[derive(Debug)]
pub(super) struct IsrSuperset;

impl Invariant for IsrSuperset {
    fn name(&self) -> &'static str {
        "I5 ISR superset"
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        let partition = partition(world.metadata.latest());
        let broker = partition
            .leader
            .and_then(|leader| registered(world, leader));
        let Some((broker, leader)) = broker.and_then(|broker| Some((broker, broker.leading()?)))
        else {
            return Ok(());
        };
        let isr = leader.isr();
        if leader.leader_epoch() != partition.leader_epoch
            || isr.committed().len() < leader.effective_min_isr()
        {
            return Ok(());
        }
        let electable = partition
            .isr
            .iter()
            .chain(&partition.eligible_leader_replicas);
        for id in electable {
            if !isr.is_maximal_member(*id) {
                return Err(format!(
                    "broker {} leads with the maximal ISR {:?}, but {id} may be elected",
                    broker.id,
                    isr.maximal().collect::<Vec<_>>()
                ));
            }
        }
        Ok(())
    }
}
