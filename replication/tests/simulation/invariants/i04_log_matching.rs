use highwater_storage::BrokerId;

use super::Invariant;
use crate::model::log::ReplicaLog;
use crate::model::world::World;

/// Two logs that have a record of the same epoch at the same offset have the same records up to there.
#[derive(Debug, Default)]
pub(super) struct LogMatching {
    versions: Vec<(BrokerId, u64)>,
}

impl Invariant for LogMatching {
    fn name(&self) -> &'static str {
        "I4 log matching"
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        let brokers = world.brokers.values();
        let versions: Vec<_> = brokers
            .map(|broker| (broker.id, broker.log.version()))
            .collect();
        let brokers: Vec<_> = world.brokers.values().collect();
        for (index, first) in brokers.iter().enumerate() {
            for second in &brokers[..index] {
                let same = |id: BrokerId| {
                    let version = versions.iter().find(|(broker, _)| *broker == id);
                    version.is_some_and(|version| self.versions.contains(version))
                };
                if !(same(first.id) && same(second.id))
                    && let Some(offset) = mismatch(&first.log, &second.log)
                {
                    return Err(format!(
                        "brokers {} and {} differ at {offset}: {:?} and {:?}, although later epochs agree",
                        first.id,
                        second.id,
                        first.log.get(offset),
                        second.log.get(offset)
                    ));
                }
            }
        }
        self.versions = versions;
        Ok(())
    }
}

/// An offset at which two logs differ although they have the same epoch there or later.
fn mismatch(first: &ReplicaLog, second: &ReplicaLog) -> Option<i64> {
    let start = first.start_offset().max(second.start_offset());
    let end = first.end_offset().min(second.end_offset());
    let epoch = |log: &ReplicaLog, offset: i64| log.get(offset).map(|record| record.epoch);
    let common = (start..end)
        .rev()
        .find(|offset| epoch(first, *offset) == epoch(second, *offset))?;
    (start..=common).find(|offset| first.get(*offset) != second.get(*offset))
}
