//! The life of brokers: registration, unfencing and their epochs.

use highwater_storage::types::{BrokerEpoch, BrokerId};
use uuid::Uuid;

use super::error::ClusterError;
use super::image::ClusterImage;
use super::records::{
    BrokerRegistrationChangeRecord, Endpoint, FeatureRange, MetadataRecord, RegisterBrokerRecord,
};

/// What a broker says of itself when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerRegistrationRequest {
    /// The broker.
    pub id: BrokerId,
    /// Id of this run of the process.
    pub incarnation_id: Uuid,
    /// Advertised listeners.
    pub end_points: Vec<Endpoint>,
    /// Supported features.
    pub features: Vec<FeatureRange>,
    /// Rack of the broker.
    pub rack: Option<String>,
    /// Ids of its online log directories.
    pub log_dirs: Vec<Uuid>,
}

/// The record that registers a broker run, fenced, and the epoch it gets: the offset of that record, which must be the
/// first after the image.
pub fn register_broker(
    image: &ClusterImage,
    request: BrokerRegistrationRequest,
) -> (Vec<MetadataRecord>, BrokerEpoch) {
    let epoch = BrokerEpoch(image.offset() + 1);
    let record = RegisterBrokerRecord {
        broker_id: request.id.0,
        is_migrating_zk_broker: false,
        incarnation_id: request.incarnation_id,
        broker_epoch: epoch.0,
        end_points: request.end_points,
        features: request.features,
        rack: request.rack,
        fenced: true,
        in_controlled_shutdown: false,
        log_dirs: request.log_dirs,
        cordoned_log_dirs: None,
    };
    (vec![record.into()], epoch)
}

/// The records that let a registered broker lead and be in ISRs.
pub fn unfence_broker(
    image: &ClusterImage,
    id: BrokerId,
    epoch: BrokerEpoch,
) -> Result<Vec<MetadataRecord>, ClusterError> {
    check_broker_epoch(image, id, epoch)?;
    let change =
        |fenced: i8, cordoned_log_dirs: Option<Vec<Uuid>>| BrokerRegistrationChangeRecord {
            broker_id: id.0,
            broker_epoch: epoch.0,
            fenced,
            cordoned_log_dirs,
            ..BrokerRegistrationChangeRecord::default()
        };
    Ok(vec![
        change(-1, None).into(),
        change(0, Some(Vec::new())).into(),
    ])
}

/// Refuses a request of a broker that is not registered, or not in this run.
pub fn check_broker_epoch(
    image: &ClusterImage,
    id: BrokerId,
    epoch: BrokerEpoch,
) -> Result<(), ClusterError> {
    match image.broker(id) {
        None => Err(ClusterError::BrokerIdNotRegistered(format!(
            "Broker ID {id} is not currently registered"
        ))),
        Some(broker) if broker.epoch != epoch => Err(ClusterError::StaleBrokerEpoch(format!(
            "Expected broker epoch {}, but got broker epoch {epoch}",
            broker.epoch
        ))),
        Some(_) => Ok(()),
    }
}
