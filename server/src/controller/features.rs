//! Which features of the cluster (KIP-584) this release has, and the levels a new cluster starts with.

use highwater_replication::cluster::image::{ELR_FEATURE, METADATA_VERSION_FEATURE};
use highwater_replication::cluster::records::{FeatureLevelRecord, FeatureRange};
use highwater_replication::cluster::{ClusterImage, MetadataRecord};

/// Apache Kafka 4.4's last metadata version, 4.4-IV2.
const METADATA_VERSION: i16 = 33;

/// Name, lowest and highest level, and the level of a new cluster. Features that are not here are at level 0: nothing
/// that needs them is served.
const FEATURES: &[(&str, i16, i16)] = &[
    (METADATA_VERSION_FEATURE, METADATA_VERSION, METADATA_VERSION),
    (ELR_FEATURE, 0, 1),
];

/// The features of this release with the range of levels it can work with, as ApiVersions and the broker's
/// registration tell.
pub fn supported_features() -> Vec<FeatureRange> {
    let range = |(name, min, max): &(&str, i16, i16)| FeatureRange {
        name: (*name).to_owned(),
        min_supported_version: *min,
        max_supported_version: *max,
    };
    FEATURES.iter().map(range).collect()
}

/// The finalized levels that ApiVersions tells, with the offset of the image as their epoch.
pub fn finalized_features(image: &ClusterImage) -> (i64, Vec<(String, i16)>) {
    let levels = image
        .features()
        .iter()
        .map(|(name, level)| (name.clone(), *level));
    (image.offset().max(0), levels.collect())
}

/// The records that bring the finalized levels to what this release can work with: all of them in a new cluster, else
/// those that another release left higher (a data directory of Apache Kafka).
pub(super) fn feature_records(image: &ClusterImage) -> Vec<MetadataRecord> {
    let record = |name: &str, feature_level: i16| {
        FeatureLevelRecord {
            name: name.to_owned(),
            feature_level,
        }
        .into()
    };
    if image.feature_level(METADATA_VERSION_FEATURE) == 0 {
        return FEATURES
            .iter()
            .map(|(name, _, max)| record(name, *max))
            .collect();
    }
    let mut records = Vec::new();
    for (name, level) in image.features() {
        let known = FEATURES.iter().find(|(known, ..)| known == name);
        let (min, max) = known.map_or((0, 0), |(_, min, max)| (*min, *max));
        if *level < min || *level > max {
            tracing::warn!(
                feature = name,
                level,
                min,
                max,
                "feature level is not supported by this release, changing it"
            );
            records.push(record(name, max));
        }
    }
    records
}
