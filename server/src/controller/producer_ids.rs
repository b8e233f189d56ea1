//! Producer ids for this broker, from blocks of the controller (KIP-730).

use std::ops::Range;

use highwater_replication::cluster::ClusterError;
use highwater_replication::cluster::producer_ids::allocate_producer_ids;
use tokio::sync::Mutex;

use super::{ControllerError, ControllerHandle, Decision};

/// Why there is no producer id.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ProducerIdError {
    /// The controller could not write.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// The controller gives no block.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// Gives out producer ids, each once; asks for a block when one is used up. A block that is lost with a crash is never
/// given out again.
#[derive(Debug)]
pub struct ProducerIdManager {
    controller: ControllerHandle,
    block: Mutex<Range<i64>>,
}

impl ProducerIdManager {
    /// A manager that asks `controller` for its first block with the first id.
    pub fn new(controller: ControllerHandle) -> Self {
        Self {
            controller,
            block: Mutex::new(0..0),
        }
    }

    /// An id that no producer has had.
    pub async fn next_producer_id(&self) -> Result<i64, ProducerIdError> {
        let mut block = self.block.lock().await;
        if let Some(id) = block.next() {
            return Ok(id);
        }
        let (broker_id, broker_epoch) =
            (self.controller.broker_id(), self.controller.broker_epoch());
        let allocated = self.controller.submit(move |image, _| {
            match allocate_producer_ids(image, broker_id, broker_epoch) {
                Ok((records, block)) => Decision {
                    records,
                    response: Ok(block),
                },
                Err(error) => Decision::unchanged(Err(error)),
            }
        });
        *block = allocated.await??;
        // A block is never empty.
        block.next().ok_or_else(|| {
            ProducerIdError::Cluster(ClusterError::UnknownServerError(
                "the controller gave an empty block".to_owned(),
            ))
        })
    }
}
