use super::{Invariant, effective_min_isr};
use crate::model::metadata::partition;
use crate::model::world::World;

/// The partition in the metadata makes sense: the leader is in the ISR; ISR and eligible leader replicas are replicas,
/// and different ones; no observer, fenced or stopping broker is in the ISR; a large enough ISR has no eligible leader
/// replicas beside it.
#[derive(Debug, Default)]
pub(super) struct ControllerState {
    position: usize,
}

impl Invariant for ControllerState {
    fn name(&self) -> &'static str {
        "I11 controller state"
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        if world.metadata.len() == self.position {
            return Ok(());
        }
        self.position = world.metadata.len();
        let image = world.metadata.latest();
        let partition = partition(image);
        let (isr, elr) = (&partition.isr, &partition.eligible_leader_replicas);
        let wrong = |what: &str| Err(format!("{what}: {partition:?}"));
        if partition
            .leader
            .is_some_and(|leader| !isr.contains(&leader))
        {
            return wrong("the leader is not in the ISR");
        }
        if !isr
            .iter()
            .chain(elr)
            .all(|id| partition.replicas.contains(id))
        {
            return wrong("ISR or ELR are no replicas");
        }
        if isr.iter().any(|id| elr.contains(id)) {
            return wrong("ISR and ELR overlap");
        }
        let mut members: Vec<_> = isr.iter().chain(elr).collect();
        members.sort();
        members.dedup();
        if members.len() != isr.len() + elr.len() {
            return wrong("a member is there twice");
        }
        if isr.iter().any(|id| world.setup.observers.contains(id)) {
            return wrong("an observer is in the ISR");
        }
        if isr.len() >= effective_min_isr(world, partition) && !elr.is_empty() {
            return wrong("the ISR is large enough, and there is an ELR");
        }
        // Without eligible leader replicas the last member stays listed when it goes.
        let may_be_gone = !image.is_elr_enabled() && isr.len() == 1 && partition.leader.is_none();
        if !may_be_gone && isr.iter().any(|id| !image.is_active(*id)) {
            return wrong("a fenced or stopping broker is in the ISR");
        }
        Ok(())
    }
}
