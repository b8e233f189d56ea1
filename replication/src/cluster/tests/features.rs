//! Changes of finalized feature levels.

use super::super::features::{ControllerFeatures, FeatureUpdate, UpgradeType, update_features};
use super::super::records::{ConfigRecord, FeatureRange};
use super::*;

fn supported() -> Vec<FeatureRange> {
    let range = |name: &str, min, max| FeatureRange {
        name: name.to_owned(),
        min_supported_version: min,
        max_supported_version: max,
    };
    vec![
        range(METADATA_VERSION_FEATURE, 7, 33),
        range(ELR_FEATURE, 0, 1),
    ]
}

fn update(
    image: &ClusterImage,
    name: &str,
    level: i16,
    upgrade_type: UpgradeType,
) -> Result<Vec<MetadataRecord>, ClusterError> {
    let update = FeatureUpdate {
        name: name.to_owned(),
        level,
        upgrade_type,
    };
    let supported = supported();
    let controllers = ControllerFeatures {
        node_id: 1,
        supported: &supported,
        quorum: &[1],
    };
    update_features(image, &RULES, controllers, &[update])
}

fn refusal(result: Result<Vec<MetadataRecord>, ClusterError>) -> String {
    match result {
        Err(ClusterError::InvalidUpdateVersion(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn with_features(image: &ClusterImage) -> ClusterImage {
    super::registration::restart(image, 1, None)
}

#[test]
fn turning_elr_on_settles_min_isr_for_the_whole_cluster_first() {
    let image = without_elr(&with_features(&cluster_of(&[])));
    let own = ConfigRecord {
        resource_type: 4,
        resource_name: "1".to_owned(),
        name: "min.insync.replicas".to_owned(),
        value: Some("2".to_owned()),
    };
    let image = apply(&image, &[own.clone().into()]);
    let records = update(&image, ELR_FEATURE, 1, UpgradeType::Upgrade).expect("possible");
    let of_cluster = ConfigRecord {
        resource_name: String::new(),
        value: Some("1".to_owned()),
        ..own.clone()
    };
    let removed = ConfigRecord { value: None, ..own };
    assert_eq!(records[..2], [of_cluster.into(), removed.into()]);
    let image = apply(&image, &records);
    assert!(image.is_elr_enabled());
    assert_eq!(
        update(&image, ELR_FEATURE, 1, UpgradeType::Upgrade),
        Ok(vec![])
    );
}

#[test]
fn a_level_goes_down_only_when_that_is_said() {
    let image = with_features(&cluster_of(&[]));
    let down = refusal(update(&image, ELR_FEATURE, 0, UpgradeType::Upgrade));
    assert!(down.starts_with(
        "Invalid update version 0 for feature eligible.leader.replicas.version. Can't downgrade"
    ));
    let records = update(&image, ELR_FEATURE, 0, UpgradeType::SafeDowngrade).expect("possible");
    assert!(!apply(&image, &records).is_elr_enabled());
    let image = without_elr(&image);
    let up = refusal(update(&image, ELR_FEATURE, 1, UpgradeType::SafeDowngrade));
    assert!(up.ends_with("Can't downgrade to a newer version."), "{up}");
    let metadata = update(
        &image,
        METADATA_VERSION_FEATURE,
        32,
        UpgradeType::SafeDowngrade,
    );
    assert!(refusal(metadata).starts_with("Invalid metadata.version 32."));
}

#[test]
fn every_node_must_support_the_level() {
    let image = cluster_of(&[]);
    let unknown = refusal(update(&image, "nope", 1, UpgradeType::Upgrade));
    assert!(
        unknown.ends_with("Local controller 1 does not support this feature."),
        "{unknown}"
    );
    let outside = refusal(update(&image, ELR_FEATURE, 2, UpgradeType::Upgrade));
    assert!(
        outside.ends_with("Local controller 1 only supports versions 0-1"),
        "{outside}"
    );
    refusal(update(&image, ELR_FEATURE, -1, UpgradeType::Upgrade));
    refusal(update(&image, ELR_FEATURE, 1, UpgradeType::Unknown));
    // A broker without the feature.
    let with_old_broker = {
        let image = without_elr(&image);
        let request = super::super::registration::BrokerRegistrationRequest {
            features: supported()[..1].to_vec(),
            ..super::registration::request(2)
        };
        let nobody = super::liveness::idle(&image);
        let registered =
            super::super::registration::register_broker(&image, &RULES, &nobody, request, 0);
        apply(&image, &registered.expect("registers").0)
    };
    let broker = refusal(update(
        &with_old_broker,
        ELR_FEATURE,
        1,
        UpgradeType::Upgrade,
    ));
    assert!(
        broker.ends_with("Broker 2 does not support this feature."),
        "{broker}"
    );
    // A controller that nobody has heard of.
    let supported = supported();
    let controllers = ControllerFeatures {
        node_id: 1,
        supported: &supported,
        quorum: &[1, 2],
    };
    let up = FeatureUpdate {
        name: ELR_FEATURE.to_owned(),
        level: 1,
        upgrade_type: UpgradeType::Upgrade,
    };
    let missing = refusal(update_features(
        &without_elr(&image),
        &RULES,
        controllers,
        &[up],
    ));
    assert!(missing.ends_with("controller 2 has not registered, and may not support this feature"));
}
