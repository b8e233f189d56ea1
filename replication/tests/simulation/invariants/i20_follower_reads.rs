use super::{Invariant, Seen};
use crate::model::world::World;

/// What a follower would show to consumers is committed: its high watermark is not beyond the true one, and below it are
/// the committed records. A follower that has not been compared with its leader since an unclean election is left out.
#[derive(Debug, Default)]
pub(super) struct FollowerReads {
    seen: Seen,
}

impl Invariant for FollowerReads {
    fn name(&self) -> &'static str {
        "I20 follower reads"
    }

    fn is_about_loss(&self) -> bool {
        true
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        let history = &world.history;
        if history.is_loss_open {
            return Ok(());
        }
        let followers: Vec<_> = world
            .brokers
            .values()
            .filter(|broker| {
                broker.run.as_ref().is_some_and(|run| {
                    run.follower.is_some()
                        && (history.unclean_epoch.is_none()
                            || run.validated_epoch >= history.unclean_epoch)
                })
            })
            .collect();
        let key = followers.iter().map(|broker| {
            let high_watermark = broker.log.high_watermark() as u64;
            (broker.id, broker.log.version() * 1_000_000 + high_watermark)
        });
        if self.seen.is_same(key.collect(), history) {
            return Ok(());
        }
        for broker in followers {
            let log = &broker.log;
            for offset in log.start_offset()..log.high_watermark() {
                let committed = history.committed.get(offset as usize).copied();
                if log.get(offset) != committed {
                    return Err(format!(
                        "follower {} shows {:?} at {offset}, where {committed:?} is committed",
                        broker.id,
                        log.get(offset)
                    ));
                }
            }
        }
        Ok(())
    }
}
