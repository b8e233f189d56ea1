use super::Invariant;
use crate::model::world::World;

/// What a consumer has read at an offset is committed there, and stays. (That nobody reads another value there is seen
/// at the moment of the read.)
#[derive(Debug)]
pub(super) struct ConsistentReads;

impl Invariant for ConsistentReads {
    fn name(&self) -> &'static str {
        "I8 consistent reads"
    }

    fn is_about_loss(&self) -> bool {
        true
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        let history = &world.history;
        for (offset, record) in &history.consumed {
            let committed = history.committed.get(*offset as usize);
            if committed != Some(record) {
                return Err(format!(
                    "a consumer read {record:?} at {offset}, where {committed:?} is committed"
                ));
            }
        }
        Ok(())
    }
}
