//! UpdateFeatures: changes of the finalized feature levels (KIP-584).

use std::collections::BTreeMap;

use super::configs::config_record;
use super::error::ClusterError;
use super::image::{
    ClusterImage, ConfigResource, ELR_FEATURE, METADATA_VERSION_FEATURE, ResourceType,
};
use super::records::{FeatureLevelRecord, FeatureRange, MetadataRecord};
use super::topic_rules::{MIN_INSYNC_REPLICAS, ReplicationDefaults};

/// In which direction a level may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeType {
    /// Up only.
    Upgrade,
    /// Down, if nothing is lost.
    SafeDowngrade,
    /// Down, whatever is lost.
    UnsafeDowngrade,
    /// A direction that this release does not know.
    Unknown,
}

impl UpgradeType {
    /// The direction with Kafka's id.
    pub fn from_id(id: i8) -> Self {
        match id {
            1 => Self::Upgrade,
            2 => Self::SafeDowngrade,
            3 => Self::UnsafeDowngrade,
            _ => Self::Unknown,
        }
    }
}

/// A level that a feature shall have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureUpdate {
    /// Name of the feature.
    pub name: String,
    /// The level; 0 turns it off.
    pub level: i16,
    /// In which direction it may go.
    pub upgrade_type: UpgradeType,
}

/// The controllers that must be able to work at a level.
#[derive(Debug, Clone, Copy)]
pub struct ControllerFeatures<'a> {
    /// The id of the active controller.
    pub node_id: i32,
    /// What it supports.
    pub supported: &'a [FeatureRange],
    /// The ids of all controllers of the quorum; each must have registered.
    pub quorum: &'a [i32],
}

/// The records that change the levels: all of them, or the refusal of the first that cannot be changed.
pub fn update_features(
    image: &ClusterImage,
    defaults: &ReplicationDefaults,
    controllers: ControllerFeatures<'_>,
    updates: &[FeatureUpdate],
) -> Result<Vec<MetadataRecord>, ClusterError> {
    let mut records = Vec::new();
    let updates: BTreeMap<&str, &FeatureUpdate> = updates
        .iter()
        .map(|update| (update.name.as_str(), update))
        .collect();
    for update in updates.into_values() {
        check_update(image, controllers, update)?;
        if image.feature_level(&update.name) == update.level {
            continue;
        }
        if update.name == ELR_FEATURE && update.level > 0 {
            records.extend(settle_min_isr(image, defaults));
        }
        records.push(
            FeatureLevelRecord {
                name: update.name.clone(),
                feature_level: update.level,
            }
            .into(),
        );
    }
    Ok(records)
}

fn check_update(
    image: &ClusterImage,
    controllers: ControllerFeatures<'_>,
    update: &FeatureUpdate,
) -> Result<(), ClusterError> {
    let FeatureUpdate {
        name,
        level,
        upgrade_type,
    } = update;
    let refuse = |reason: String| {
        Err(ClusterError::InvalidUpdateVersion(format!(
            "Invalid update version {level} for feature {name}. {reason}"
        )))
    };
    if *upgrade_type == UpgradeType::Unknown {
        return refuse("The controller does not support the given upgrade type.".to_owned());
    }
    if *level < 0 {
        return refuse("A feature version cannot be less than 0.".to_owned());
    }
    if let Some(reason) = why_not_supported(image, controllers, name, *level) {
        return refuse(reason);
    }
    let current = image.feature_level(name);
    if *level < current && *upgrade_type == UpgradeType::Upgrade {
        return refuse(
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe \
             downgrade."
                .to_owned(),
        );
    }
    if *level > current && *upgrade_type != UpgradeType::Upgrade {
        return refuse("Can't downgrade to a newer version.".to_owned());
    }
    if name == METADATA_VERSION_FEATURE && *level < current {
        return Err(ClusterError::InvalidUpdateVersion(format!(
            "Invalid metadata.version {level}. Refusing to perform the requested downgrade because it might delete \
             metadata information."
        )));
    }
    Ok(())
}

/// Who cannot work at this level, in words.
fn why_not_supported(
    image: &ClusterImage,
    controllers: ControllerFeatures<'_>,
    name: &str,
    level: i16,
) -> Option<String> {
    let local = controllers
        .supported
        .iter()
        .find(|range| range.name == name);
    let local = local.map(|range| (range.min_supported_version, range.max_supported_version));
    if let Some(reason) = why_outside(
        &format!("Local controller {}", controllers.node_id),
        local,
        level,
    ) {
        return Some(reason);
    }
    let range_of = |features: &[FeatureRange]| {
        let range = features.iter().find(|range| range.name == name)?;
        Some((range.min_supported_version, range.max_supported_version))
    };
    for broker in image.brokers().values() {
        let reason = why_outside(
            &format!("Broker {}", broker.id),
            range_of(&broker.features),
            level,
        );
        if reason.is_some() {
            return reason;
        }
    }
    for (id, controller) in image.controllers() {
        if *id == controllers.node_id {
            continue;
        }
        let reason = why_outside(
            &format!("Controller {id}"),
            range_of(&controller.features),
            level,
        );
        if reason.is_some() {
            return reason;
        }
    }
    let is_registered =
        |id: &&i32| **id == controllers.node_id || image.controllers().contains_key(*id);
    let missing = controllers.quorum.iter().find(|id| !is_registered(id))?;
    Some(format!(
        "controller {missing} has not registered, and may not support this feature"
    ))
}

fn why_outside(who: &str, range: Option<(i16, i16)>, level: i16) -> Option<String> {
    match range {
        _ if level == 0 && range.is_none() => None,
        None => Some(format!("{who} does not support this feature.")),
        Some((min, max)) if level < min || level > max => {
            Some(format!("{who} only supports versions {min}-{max}"))
        }
        Some(_) => None,
    }
}

/// Before eligible leader replicas are kept, leader and controller must agree on min.insync.replicas: the cluster has
/// one, and no broker has its own (KIP-966).
fn settle_min_isr(image: &ClusterImage, defaults: &ReplicationDefaults) -> Vec<MetadataRecord> {
    let mut records = Vec::new();
    let cluster = ConfigResource::default_broker();
    let is_set = image
        .configs(&cluster)
        .is_some_and(|configs| configs.contains_key(MIN_INSYNC_REPLICAS));
    if !is_set {
        let value = Some(defaults.min_insync_replicas.to_string());
        records.push(config_record(&cluster, MIN_INSYNC_REPLICAS, value));
    }
    for (resource, configs) in image.config_resources() {
        let is_of_one_broker =
            resource.resource_type == ResourceType::Broker && !resource.name.is_empty();
        if is_of_one_broker && configs.contains_key(MIN_INSYNC_REPLICAS) {
            records.push(config_record(resource, MIN_INSYNC_REPLICAS, None));
        }
    }
    records
}
