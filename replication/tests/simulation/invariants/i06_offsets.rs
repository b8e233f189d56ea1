use std::collections::BTreeMap;

use highwater_storage::{BrokerId, LeaderEpoch};
use uuid::Uuid;

use super::Invariant;
use crate::model::serving::effective_min_isr;
use crate::model::world::World;

/// log start <= high watermark <= log end on every replica. On a leader the high watermark never goes back, and stands
/// still while the ISR is smaller than min.insync.replicas.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    leaders: BTreeMap<BrokerId, Leadership>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Leadership {
    run: Uuid,
    leader_epoch: LeaderEpoch,
    high_watermark: i64,
    has_min_isr: bool,
}

impl Invariant for Offsets {
    fn name(&self) -> &'static str {
        "I6 offsets"
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        for broker in world.brokers.values() {
            let (id, log) = (broker.id, &broker.log);
            let (start, end) = (log.start_offset(), log.end_offset());
            let high_watermark = log.high_watermark();
            if broker.run.is_some() && !(start <= high_watermark && high_watermark <= end) {
                return Err(format!(
                    "broker {id}: log {start}..{end}, high watermark {high_watermark}"
                ));
            }
            let Some((run, leader)) = broker.run.as_ref().zip(broker.leading()) else {
                self.leaders.remove(&id);
                continue;
            };
            let min_isr = effective_min_isr(broker.min_isr, leader);
            let now = Leadership {
                run: run.incarnation,
                leader_epoch: leader.leader_epoch(),
                high_watermark,
                has_min_isr: leader.isr().committed().len() >= min_isr,
            };
            let before = self
                .leaders
                .insert(id, now)
                .filter(|before| before.run == now.run && before.leader_epoch == now.leader_epoch);
            let Some(before) = before else { continue };
            if high_watermark < before.high_watermark {
                return Err(format!(
                    "the high watermark of leader {id} went from {} back to {high_watermark}",
                    before.high_watermark
                ));
            }
            if high_watermark > before.high_watermark && !before.has_min_isr && !now.has_min_isr {
                return Err(format!(
                    "leader {id} moved its high watermark to {high_watermark} with too few in-sync replicas"
                ));
            }
        }
        Ok(())
    }
}
