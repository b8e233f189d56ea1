use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_storage::BrokerId;

use super::Invariant;
use crate::model::world::World;

/// What a broker acts on is committed metadata: one of the clusters that the metadata log made.
#[derive(Debug, Default)]
pub(super) struct MetadataPrefix {
    seen: BTreeMap<BrokerId, usize>,
}

impl Invariant for MetadataPrefix {
    fn name(&self) -> &'static str {
        "I12 metadata prefix"
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        for broker in world.brokers.values() {
            let Some(image) = broker.image() else {
                continue;
            };
            let address = Arc::as_ptr(image) as usize;
            if self.seen.insert(broker.id, address) == Some(address) {
                continue;
            }
            let images = world.metadata.images();
            if !images
                .iter()
                .rev()
                .any(|committed| Arc::ptr_eq(committed, image))
            {
                return Err(format!(
                    "broker {} acts on metadata up to {} that is not committed",
                    broker.id,
                    image.offset()
                ));
            }
        }
        Ok(())
    }
}
