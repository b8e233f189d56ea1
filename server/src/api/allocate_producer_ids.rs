//! AllocateProducerIds (KIP-730): a block of producer ids for a broker.

use std::sync::Arc;

use highwater_replication::cluster::producer_ids::allocate_producer_ids;
use highwater_storage::{BrokerEpoch, BrokerId};
use kafka_protocol::messages::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, ProducerId,
};

use super::metadata_change::{decide, flatten, submit};
use super::{Reply, RequestContext};
use crate::broker::Broker;

/// Handles an AllocateProducerIds request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: AllocateProducerIdsRequest,
) -> Reply {
    let id = BrokerId(request.broker_id.0);
    let epoch = BrokerEpoch(request.broker_epoch);
    let submitted = submit(&broker, move |image, _| {
        decide(allocate_producer_ids(image, id, epoch))
    });
    let response = match flatten(submitted.await) {
        Ok(block) => AllocateProducerIdsResponse::default()
            .with_producer_id_start(ProducerId(block.start))
            .with_producer_id_len((block.end - block.start) as i32),
        Err((error, _)) => {
            ctx.count_error(error);
            AllocateProducerIdsResponse::default().with_error_code(error.code())
        }
    };
    ctx.encode(&response).into()
}
