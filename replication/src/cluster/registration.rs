//! Registration of brokers and controllers (KIP-631, KIP-919).

use std::collections::BTreeMap;

use highwater_storage::types::{BrokerEpoch, BrokerId};
use uuid::Uuid;

use super::broker_changes::{Transition, in_isr, partition_changes};
use super::error::ClusterError;
use super::image::{BrokerRegistration, ClusterImage, METADATA_VERSION_FEATURE, PartitionImage};
use super::liveness::BrokerLiveness;
use super::records::{
    Endpoint, FeatureRange, MetadataRecord, RegisterBrokerRecord, RegisterControllerRecord,
};
use super::topic_rules::ReplicationDefaults;

/// Directory ids below this have meanings of their own (KIP-858).
const RESERVED_DIRECTORY_IDS: u128 = 100;

/// What a broker says of itself when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerRegistrationRequest {
    /// The broker.
    pub id: BrokerId,
    /// The cluster that it belongs to.
    pub cluster_id: String,
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
    /// The epoch of the run that closed all log directories cleanly; `None` when they were not closed so.
    pub previous_broker_epoch: Option<BrokerEpoch>,
}

/// The records that register a broker run, and its epoch: the offset of its registration.
///
/// A new run starts fenced. Before its registration, the run before it is taken out of the ISRs; when that may have
/// lost records, out of the eligible leader replicas too (KIP-966). The same run registering again keeps its epoch and
/// whether it is fenced.
pub fn register_broker(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    liveness: &BrokerLiveness,
    request: BrokerRegistrationRequest,
    now_ms: i64,
) -> Result<(Vec<MetadataRecord>, BrokerEpoch), ClusterError> {
    let id = request.id;
    check_cluster(image, &request)?;
    let existing = image.broker(id);
    let same_run = existing.filter(|broker| broker.incarnation_id == request.incarnation_id);
    if let Some(existing) = existing
        && same_run.is_none()
        && liveness.has_live_session(id, existing.epoch, now_ms)
    {
        return Err(ClusterError::DuplicateBrokerRegistration(
            "Another broker is registered with that broker id. If the broker was recently restarted this should \
             self-resolve once the heartbeat manager expires the broker's session."
                .to_owned(),
        ));
    }
    check_registration(image, &request)?;
    let mut records = Vec::new();
    if same_run.is_none() {
        // What lay in a directory that is gone, this run does not have, however the one before ended.
        let is_clean = existing.is_some_and(|existing| {
            let mut directories = existing.log_dirs.iter();
            request.previous_broker_epoch == Some(existing.epoch)
                && directories.all(|directory| request.log_dirs.contains(directory))
        });
        end_of_previous_run(image, defaults, id, is_clean, &mut records);
    }
    let new_epoch = BrokerEpoch(image.offset() + 1 + records.len() as i64);
    let epoch = same_run.map_or(new_epoch, |broker| broker.epoch);
    let same_run = same_run.map(|broker| &**broker);
    records.push(registration_record(request, epoch, same_run).into());
    Ok((records, epoch))
}

/// Refuses a broker of another cluster, of another release, or with directories that are not its own.
pub(super) fn check_registration(
    image: &ClusterImage,
    request: &BrokerRegistrationRequest,
) -> Result<(), ClusterError> {
    check_cluster(image, request)?;
    check_log_dirs(image, request)?;
    check_features(image, &request.features)
}

/// The record of a registration; `same_run` is what is known of the same run already.
pub(super) fn registration_record(
    request: BrokerRegistrationRequest,
    epoch: BrokerEpoch,
    same_run: Option<&BrokerRegistration>,
) -> RegisterBrokerRecord {
    RegisterBrokerRecord {
        broker_id: request.id.0,
        is_migrating_zk_broker: false,
        incarnation_id: request.incarnation_id,
        broker_epoch: epoch.0,
        end_points: request.end_points,
        features: request.features,
        rack: request.rack,
        fenced: same_run.is_none_or(|broker| broker.fenced),
        in_controlled_shutdown: same_run.is_some_and(|broker| broker.in_controlled_shutdown),
        log_dirs: request.log_dirs,
        cordoned_log_dirs: same_run.and_then(|broker| broker.cordoned_log_dirs.clone()),
    }
}

/// What the end of an earlier run of a broker changes, of which nobody may have been told yet.
fn end_of_previous_run(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    id: BrokerId,
    is_clean: bool,
    records: &mut Vec<MetadataRecord>,
) {
    if is_clean || !image.is_elr_enabled() {
        partition_changes(
            image,
            defaults,
            Transition::Departs(id),
            in_isr(id),
            records,
        );
        return;
    }
    let has_replica_that_counts = |partition: &PartitionImage| {
        partition.isr.contains(&id) || partition.eligible_leader_replicas.contains(&id)
    };
    let unclean = Transition::UncleanShutdown(id);
    partition_changes(image, defaults, unclean, has_replica_that_counts, records);
}

fn check_cluster(
    image: &ClusterImage,
    request: &BrokerRegistrationRequest,
) -> Result<(), ClusterError> {
    match request.cluster_id == **image.cluster_id() {
        true => Ok(()),
        false => Err(ClusterError::InconsistentClusterId(format!(
            "Expected cluster ID {}, but got cluster ID {}",
            image.cluster_id(),
            request.cluster_id
        ))),
    }
}

fn check_log_dirs(
    image: &ClusterImage,
    request: &BrokerRegistrationRequest,
) -> Result<(), ClusterError> {
    let refuse = |text: &str| Err(ClusterError::InvalidRegistration(text.to_owned()));
    if request.log_dirs.is_empty() {
        return refuse("No directories specified in request");
    }
    let is_reserved = |directory: &Uuid| directory.as_u128() < RESERVED_DIRECTORY_IDS;
    if request.log_dirs.iter().any(is_reserved) {
        return refuse("Reserved directory ID in request");
    }
    for (index, directory) in request.log_dirs.iter().enumerate() {
        if request.log_dirs[..index].contains(directory) {
            return refuse("Duplicate directory ID in request");
        }
        let mut others = image
            .brokers()
            .values()
            .filter(|broker| broker.id != request.id);
        if let Some(owner) = others.find(|broker| broker.log_dirs.contains(directory)) {
            let directory = highwater_storage::types::TopicId(*directory);
            return Err(ClusterError::InvalidRegistration(format!(
                "Broker {} is already registered with directory {directory}",
                owner.id
            )));
        }
    }
    Ok(())
}

/// Every finalized level must lie in the range of the broker; a feature that it does not name has the range 0 to 0.
fn check_features(image: &ClusterImage, features: &[FeatureRange]) -> Result<(), ClusterError> {
    if !features
        .iter()
        .any(|feature| feature.name == METADATA_VERSION_FEATURE)
    {
        return Err(ClusterError::InvalidRegistration(format!(
            "Request features do not contain '{METADATA_VERSION_FEATURE}'"
        )));
    }
    let named: BTreeMap<&str, (i16, i16)> = features
        .iter()
        .map(|feature| {
            let range = (feature.min_supported_version, feature.max_supported_version);
            (feature.name.as_str(), range)
        })
        .collect();
    let finalized = image.features().keys().map(String::as_str);
    for name in named.keys().copied().chain(finalized) {
        let (min, max) = named.get(name).copied().unwrap_or((0, 0));
        let level = image.feature_level(name);
        if level < min || level > max {
            return Err(ClusterError::UnsupportedVersion(format!(
                "Unable to register because the broker does not support finalized version {level} of {name}. The \
                 broker wants a version between {min} and {max}, inclusive."
            )));
        }
    }
    Ok(())
}

/// What a controller says of itself when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerRegistrationRequest {
    /// The controller.
    pub id: i32,
    /// Id of this run of the process.
    pub incarnation_id: Uuid,
    /// Its listeners.
    pub end_points: Vec<Endpoint>,
    /// Supported features.
    pub features: Vec<FeatureRange>,
}

/// The record that registers a controller run.
pub fn register_controller(request: ControllerRegistrationRequest) -> MetadataRecord {
    RegisterControllerRecord {
        controller_id: request.id,
        incarnation_id: request.incarnation_id,
        zk_migration_ready: false,
        end_points: request.end_points,
        features: request.features,
    }
    .into()
}
