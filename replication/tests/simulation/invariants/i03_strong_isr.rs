use super::Invariant;
use crate::model::world::World;

/// Whoever believes to lead, rightly or not, has below its high watermark what is committed and nothing else. With I2
/// that makes Kafka's StrongIsr: all of it is on every member of the true ISR.
#[derive(Debug)]
pub(super) struct StrongIsr;

impl Invariant for StrongIsr {
    fn name(&self) -> &'static str {
        "I3 strong ISR"
    }

    fn is_about_loss(&self) -> bool {
        true
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        for broker in world.brokers.values() {
            let Some(leader) = broker.leading() else {
                continue;
            };
            if world.history.is_void(leader.leader_epoch()) || world.history.is_loss_open {
                continue;
            }
            let high_watermark = broker.log.high_watermark();
            if high_watermark > world.history.true_high_watermark() {
                return Err(format!(
                    "the high watermark of broker {} is {high_watermark}, beyond the true one",
                    broker.id
                ));
            }
            // Below, each record was compared when the high watermark passed it; the last one tells of changes since.
            let last = high_watermark - 1;
            if last >= broker.log.start_offset()
                && broker.log.get(last) != world.history.committed.get(last as usize).copied()
            {
                return Err(format!(
                    "broker {} has {:?} at {last} below its high watermark",
                    broker.id,
                    broker.log.get(last)
                ));
            }
        }
        Ok(())
    }
}
