use super::Invariant;
use crate::model::world::World;

/// A follower fetches in its present leader epoch; a leader does not fetch.
#[derive(Debug)]
pub(super) struct OneFetcher;

impl Invariant for OneFetcher {
    fn name(&self) -> &'static str {
        "I13 one fetcher"
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        for broker in world.brokers.values() {
            let Some(run) = &broker.run else { continue };
            let id = broker.id;
            let leads = run.replica.as_leader().is_some();
            match &run.follower {
                Some(_) if leads => return Err(format!("leader {id} fetches")),
                Some(follower) if !run.replica.follows_in(follower.position().leader_epoch) => {
                    return Err(format!(
                        "broker {id} fetches in leader epoch {}, but is in {}",
                        follower.position().leader_epoch,
                        run.replica.leader_epoch()
                    ));
                }
                None if run.replica.follows_in(run.replica.leader_epoch()) => {
                    return Err(format!("follower {id} does not fetch"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
