use highwater_storage::BrokerId;

use super::Invariant;
use crate::model::broker::Broker;
use crate::model::world::World;

/// Along a log leader epochs never go back, and the epoch cache is what the records say, followed by at most epochs that
/// have no records yet. (That an epoch has one leader and one writer is seen as it happens.)
#[derive(Debug, Default)]
pub(super) struct LeaderEpochs {
    versions: Vec<(BrokerId, u64)>,
}

impl Invariant for LeaderEpochs {
    fn name(&self) -> &'static str {
        "I9 leader epochs"
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        let mut versions = Vec::with_capacity(self.versions.len());
        for broker in world.brokers.values().filter(|broker| broker.run.is_some()) {
            let version = (broker.id, broker.log.version());
            if !self.versions.contains(&version) {
                check_log(broker)?;
            }
            versions.push(version);
        }
        self.versions = versions;
        Ok(())
    }
}

fn check_log(broker: &Broker) -> Result<(), String> {
    let log = &broker.log;
    let mut entries = log.epochs().entries().iter().peekable();
    let mut last = None;
    for (offset, record) in log.records() {
        if Some(record.epoch) < last {
            return Err(format!(
                "broker {}: epoch {} at {offset} after {last:?}",
                broker.id, record.epoch
            ));
        }
        if Some(record.epoch) != last {
            let entry = entries.next();
            if entry != Some(&(record.epoch, offset)) {
                return Err(format!(
                    "broker {}: epoch {} begins at {offset}, its cache says {entry:?}",
                    broker.id, record.epoch
                ));
            }
            last = Some(record.epoch);
        }
    }
    for (epoch, start) in entries {
        if *start != log.end_offset() || Some(*epoch) <= last {
            return Err(format!(
                "broker {}: epoch {epoch} at {start} in the cache",
                broker.id
            ));
        }
    }
    Ok(())
}
