use super::Invariant;
use crate::model::world::World;

/// A produce is parked on a leader only, and not beyond its time and some more. (That it is answered once is seen as it
/// happens.)
#[derive(Debug)]
pub(super) struct ParkedProduces;

/// How late a leader that is awake may be, in ms.
const SLACK_MS: i64 = 5_000;

impl Invariant for ParkedProduces {
    fn name(&self) -> &'static str {
        "I14 parked produces"
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        for broker in world.brokers.values() {
            let Some(run) = broker.run.as_ref().filter(|run| !run.parked.is_empty()) else {
                continue;
            };
            if run.replica.as_leader().is_none() {
                return Err(format!(
                    "broker {} does not lead and has parked produces",
                    broker.id
                ));
            }
            let late = run
                .parked
                .iter()
                .find(|parked| parked.deadline_ms + SLACK_MS < world.now_ms);
            if let Some(parked) = late
                && !broker.is_paused
                && broker.awake_since_ms + SLACK_MS < world.now_ms
            {
                return Err(format!(
                    "m{} on broker {} is never answered",
                    parked.value, broker.id
                ));
            }
        }
        Ok(())
    }
}
