//! Which run of a broker a request comes from.

use highwater_storage::types::{BrokerEpoch, BrokerId};

use super::error::ClusterError;
use super::image::ClusterImage;

/// Refuses a request of a broker that is not registered, or not in this run.
pub fn check_broker_epoch(
    image: &ClusterImage,
    id: BrokerId,
    epoch: BrokerEpoch,
) -> Result<(), ClusterError> {
    match image.broker(id) {
        None => Err(ClusterError::StaleBrokerEpoch(format!(
            "No broker registration found for broker id {id}"
        ))),
        Some(broker) if broker.epoch != epoch => Err(ClusterError::StaleBrokerEpoch(format!(
            "Expected broker epoch {}, but got broker epoch {epoch}",
            broker.epoch
        ))),
        Some(_) => Ok(()),
    }
}
