use super::{Invariant, Seen, lacks_nothing, registered};
use crate::model::metadata::partition;
use crate::model::world::World;

/// The leader has every committed record: its log reaches the true high watermark, with the same records.
#[derive(Debug, Default)]
pub(super) struct LeaderCompleteness {
    seen: Seen,
}

impl Invariant for LeaderCompleteness {
    fn name(&self) -> &'static str {
        "I1 leader completeness"
    }

    fn is_about_loss(&self) -> bool {
        true
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        let history = &world.history;
        if history.is_loss_open {
            return Ok(());
        }
        let leader = partition(world.metadata.latest()).leader;
        let Some(broker) = leader.and_then(|leader| registered(world, leader)) else {
            return Ok(());
        };
        if self
            .seen
            .is_same(vec![(broker.id, broker.log.version())], history)
        {
            return Ok(());
        }
        lacks_nothing(broker, history)
    }
}
