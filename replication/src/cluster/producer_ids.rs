//! Blocks of producer ids (KIP-730): each id is given out once in the life of the cluster, since the record that moves
//! the next block on is durable before the block is used.

use std::ops::Range;

use highwater_storage::types::{BrokerEpoch, BrokerId};

use super::brokers::check_broker_epoch;
use super::error::ClusterError;
use super::image::ClusterImage;
use super::records::{MetadataRecord, ProducerIdsRecord};

/// How many producer ids one block has.
pub const PRODUCER_ID_BLOCK_SIZE: i64 = 1000;

/// The next block of producer ids for a broker, and the record that makes it the broker's.
pub fn allocate_producer_ids(
    image: &ClusterImage,
    broker_id: BrokerId,
    broker_epoch: BrokerEpoch,
) -> Result<(Vec<MetadataRecord>, Range<i64>), ClusterError> {
    check_broker_epoch(image, broker_id, broker_epoch)?;
    let first = image.next_producer_id();
    let Some(next_producer_id) = first.checked_add(PRODUCER_ID_BLOCK_SIZE) else {
        return Err(ClusterError::UnknownServerError(format!(
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit: {first}"
        )));
    };
    let record = ProducerIdsRecord {
        broker_id: broker_id.0,
        broker_epoch: broker_epoch.0,
        next_producer_id,
    };
    Ok((vec![record.into()], first..next_producer_id))
}
