//! Producer ids for this broker, from blocks of the controller (KIP-730).

use std::ops::Range;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{AllocateProducerIdsRequest, BrokerId};
use tokio::sync::Mutex;

use super::controller_channel::{ChannelError, ControllerChannel};
use crate::controller::ControllerHandle;

/// Why there is no producer id.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ProducerIdError {
    /// The controller did not answer.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The controller gives no block.
    #[error("the controller gives no block of producer ids: {0}")]
    Refused(String),
}

/// Gives out producer ids, each once; asks for a block when one is used up. A block that is lost with a crash is never
/// given out again.
#[derive(Debug)]
pub struct ProducerIdManager {
    channel: ControllerChannel,
    /// Knows who this broker is.
    controller: ControllerHandle,
    block: Mutex<Range<i64>>,
}

impl ProducerIdManager {
    /// A manager that asks over `channel` for its first block with the first id.
    pub fn new(channel: ControllerChannel, controller: ControllerHandle) -> Self {
        Self {
            channel,
            controller,
            block: Mutex::new(0..0),
        }
    }

    /// An id that no producer has had.
    ///
    /// # Errors
    /// When the block is used up and there is no other to be had.
    pub async fn next_producer_id(&self) -> Result<i64, ProducerIdError> {
        let mut block = self.block.lock().await;
        if let Some(id) = block.next() {
            return Ok(id);
        }
        *block = self.next_block().await?;
        block
            .next()
            .ok_or_else(|| ProducerIdError::Refused("an empty block".to_owned()))
    }

    async fn next_block(&self) -> Result<Range<i64>, ProducerIdError> {
        let request = AllocateProducerIdsRequest::default()
            .with_broker_id(BrokerId(self.controller.broker_id().0))
            .with_broker_epoch(self.controller.broker_epoch().0);
        let response = self.channel.call(&request).await?;
        if response.error_code != 0 {
            let error = ResponseError::try_from_code(response.error_code);
            let error = error.map_or_else(|| response.error_code.to_string(), |e| e.to_string());
            return Err(ProducerIdError::Refused(error));
        }
        let first = response.producer_id_start.0;
        let next = first.checked_add(response.producer_id_len.into());
        next.map(|next| first..next)
            .ok_or_else(|| ProducerIdError::Refused("a block beyond the last id".to_owned()))
    }
}
