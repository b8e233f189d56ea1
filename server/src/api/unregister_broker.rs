//! UnregisterBroker (KIP-631): a broker that is gone for good is taken out of the cluster.

use std::sync::Arc;

use highwater_replication::cluster::broker_changes::unregister_broker;
use highwater_storage::BrokerId;
use kafka_protocol::messages::{UnregisterBrokerRequest, UnregisterBrokerResponse};

use super::metadata_change::{decide, flatten, submit};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::controller::replication_defaults;

/// Handles an UnregisterBroker request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: UnregisterBrokerRequest,
) -> Reply {
    let id = BrokerId(request.broker_id.0);
    let defaults = replication_defaults(&broker.config.current());
    let submitted = submit(&broker, move |image, _| {
        decide(unregister_broker(image, &defaults, id).map(|records| (records, ())))
    });
    let response = UnregisterBrokerResponse::default().with_error_message(None);
    let response = match flatten(submitted.await) {
        Ok(()) => response,
        Err((error, text)) => {
            ctx.count_error(error);
            response
                .with_error_code(error.code())
                .with_error_message(text)
        }
    };
    ctx.encode(&response).into()
}
