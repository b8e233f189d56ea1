//! Who may register, and what becomes of the run before: scenarios 35, 38, 72.

use highwater_storage::types::BrokerEpoch;

use super::super::liveness::{BrokerLiveness, LivenessConfig};
use super::super::records::{FeatureRange, RegisterBrokerRecord};
use super::super::registration::{BrokerRegistrationRequest, register_broker};
use super::*;

fn features(ranges: &[(&str, i16, i16)]) -> Vec<FeatureRange> {
    let range = |(name, min, max): &(&str, i16, i16)| FeatureRange {
        name: (*name).to_owned(),
        min_supported_version: *min,
        max_supported_version: *max,
    };
    ranges.iter().map(range).collect()
}

pub(super) fn request(id: i32) -> BrokerRegistrationRequest {
    BrokerRegistrationRequest {
        id: BrokerId(id),
        cluster_id: "test-cluster".to_owned(),
        incarnation_id: Uuid::from_u128(id as u128 + 70_000),
        end_points: Vec::new(),
        features: features(&[(METADATA_VERSION_FEATURE, 7, 33), (ELR_FEATURE, 0, 1)]),
        rack: None,
        log_dirs: vec![directory(id)],
        previous_broker_epoch: None,
    }
}

fn nobody_alive(image: &ClusterImage) -> BrokerLiveness {
    super::liveness::idle(image)
}

/// The cluster after another run of broker `id` has registered.
pub(super) fn restart(
    image: &ClusterImage,
    id: i32,
    previous_broker_epoch: Option<BrokerEpoch>,
) -> ClusterImage {
    let request = BrokerRegistrationRequest {
        incarnation_id: Uuid::from_u128(image.offset() as u128 + 500_000),
        previous_broker_epoch,
        ..request(id)
    };
    let (records, epoch) =
        register_broker(image, &RULES, &nobody_alive(image), request, 0).expect("registers");
    let image = apply(image, &records);
    assert_eq!(
        epoch.0,
        image.offset(),
        "the epoch is the offset of the registration"
    );
    assert_eq!(
        image.broker(BrokerId(id)).map(|broker| broker.epoch),
        Some(epoch)
    );
    image
}

fn refused(image: &ClusterImage, request: BrokerRegistrationRequest) -> ClusterError {
    register_broker(image, &RULES, &nobody_alive(image), request, 0).expect_err("a refusal")
}

#[test]
fn a_new_broker_starts_fenced_with_the_offset_of_its_registration_as_epoch() {
    let image = cluster_of(&[]);
    let (records, epoch) =
        register_broker(&image, &RULES, &nobody_alive(&image), request(5), 0).expect("registers");
    assert_eq!(epoch.0, image.offset() + 1);
    let [MetadataRecord::RegisterBroker(record)] = records.as_slice() else {
        panic!("one registration: {records:?}");
    };
    assert_eq!((record.broker_epoch, record.fenced), (epoch.0, true));
    assert_eq!(record.cordoned_log_dirs, None);
}

#[test]
fn cleaning_up_after_the_run_before_comes_first_and_counts_for_the_epoch() {
    let image = with_replicas(&cluster_of(&[1, 2]), "t", &[&[1, 2], &[2, 1]], &[]);
    let (records, epoch) =
        register_broker(&image, &RULES, &nobody_alive(&image), request(1), 0).expect("registers");
    assert_eq!(records.len(), 3);
    assert!(
        matches!(records[2], MetadataRecord::RegisterBroker(_)),
        "{records:?}"
    );
    assert_eq!(epoch.0, image.offset() + 3);
    let image = apply(&image, &records);
    assert_eq!(state(&image), (vec![2], vec![], vec![], 2, 1, 1));
    assert_invariants(&image);
}

#[test]
fn the_same_run_keeps_its_epoch_and_whether_it_is_fenced() {
    let image = cluster_of(&[]);
    let live = BrokerLiveness::new(LivenessConfig::new(9000), &image, 0);
    let (records, epoch) =
        register_broker(&image, &RULES, &live, request(1), 0).expect("registers");
    let image = unfence(&apply(&image, &records), 1);
    let image = with_replicas(&image, "t", &[&[1]], &[]);
    let live = BrokerLiveness::new(LivenessConfig::new(9000), &image, 0);
    let again = BrokerRegistrationRequest {
        rack: Some("r".to_owned()),
        ..request(1)
    };
    let (records, same) = register_broker(&image, &RULES, &live, again, 5).expect("registers");
    assert_eq!((records.len(), same), (1, epoch));
    let after = apply(&image, &records);
    let broker = after.broker(BrokerId(1)).expect("registered");
    assert_eq!((broker.fenced, broker.rack.as_deref()), (false, Some("r")));
    assert_eq!(state(&after), state(&image));
}

#[test]
fn another_process_with_the_id_of_a_live_one_waits_for_its_session_to_end() {
    // 35.
    let image = cluster_of(&[2]);
    let live = BrokerLiveness::new(LivenessConfig::new(9000), &image, 1000);
    let duplicate = register_broker(&image, &RULES, &live, request(2), 10_000);
    assert!(
        matches!(duplicate, Err(ClusterError::DuplicateBrokerRegistration(_))),
        "{duplicate:?}"
    );
    let (records, epoch) =
        register_broker(&image, &RULES, &live, request(2), 10_001).expect("the session is over");
    let old = image.broker(BrokerId(2)).expect("registered").epoch;
    let image = apply(&image, &records);
    assert!(epoch > old);
    let stale = super::super::brokers::check_broker_epoch(&image, BrokerId(2), old);
    assert!(
        matches!(stale, Err(ClusterError::StaleBrokerEpoch(_))),
        "{stale:?}"
    );
}

#[test]
fn a_broker_of_another_cluster_is_refused() {
    let other = BrokerRegistrationRequest {
        cluster_id: "other".to_owned(),
        ..request(1)
    };
    assert_eq!(
        refused(&cluster_of(&[]), other),
        ClusterError::InconsistentClusterId(
            "Expected cluster ID test-cluster, but got cluster ID other".to_owned()
        )
    );
}

#[test]
fn every_finalized_level_must_be_in_the_range_of_the_broker() {
    // 38.
    let image = cluster_of(&[]);
    let with = |ranges: &[(&str, i16, i16)]| {
        let features = features(ranges);
        refused(
            &image,
            BrokerRegistrationRequest {
                features,
                ..request(1)
            },
        )
    };
    let too_old = with(&[(METADATA_VERSION_FEATURE, 7, 32), (ELR_FEATURE, 0, 1)]);
    assert_eq!(
        too_old,
        ClusterError::UnsupportedVersion(
            "Unable to register because the broker does not support finalized version 33 of metadata.version. The \
             broker wants a version between 7 and 32, inclusive."
                .to_owned()
        )
    );
    let unaware = with(&[(METADATA_VERSION_FEATURE, 7, 33)]);
    assert!(
        matches!(&unaware, ClusterError::UnsupportedVersion(text) if text.contains(ELR_FEATURE))
    );
    // What is not finalized has level 0.
    let eager = with(&[
        (METADATA_VERSION_FEATURE, 7, 33),
        (ELR_FEATURE, 0, 1),
        ("new", 1, 2),
    ]);
    assert!(matches!(&eager, ClusterError::UnsupportedVersion(text) if text.contains("of new")));
    assert!(matches!(
        with(&[(ELR_FEATURE, 0, 1)]),
        ClusterError::InvalidRegistration(_)
    ));
}

#[test]
fn log_directories_must_be_there_and_belong_to_the_broker_alone() {
    let image = cluster_of(&[2]);
    let with = |log_dirs: Vec<Uuid>| {
        let error = refused(
            &image,
            BrokerRegistrationRequest {
                log_dirs,
                ..request(1)
            },
        );
        let ClusterError::InvalidRegistration(text) = error else {
            panic!("{error:?}");
        };
        text
    };
    assert_eq!(with(vec![]), "No directories specified in request");
    assert_eq!(
        with(vec![Uuid::from_u128(99)]),
        "Reserved directory ID in request"
    );
    assert_eq!(
        with(vec![directory(1); 2]),
        "Duplicate directory ID in request"
    );
    assert_eq!(
        with(vec![directory(1), directory(2)]),
        "Broker 2 is already registered with directory AAAAAAAAAAAAAAAAAAAD6g"
    );
}

#[test]
fn a_run_in_controlled_shutdown_that_restarts_is_not_shutting_down_any_more() {
    let image = cluster_of(&[1]);
    let records =
        super::super::broker_changes::begin_controlled_shutdown(&image, &RULES, BrokerId(1));
    let image = apply(&image, &records.expect("registered"));
    let image = restart(&image, 1, None);
    let broker = image.broker(BrokerId(1)).expect("registered");
    assert_eq!(
        (broker.in_controlled_shutdown, broker.fenced),
        (false, true)
    );
}

#[test]
fn a_registration_record_is_whole() {
    let image = cluster_of(&[]);
    let wanted = BrokerRegistrationRequest {
        rack: Some("r1".to_owned()),
        ..request(3)
    };
    let (records, epoch) =
        register_broker(&image, &RULES, &nobody_alive(&image), wanted.clone(), 0)
            .expect("registers");
    let expected = RegisterBrokerRecord {
        broker_id: 3,
        incarnation_id: wanted.incarnation_id,
        broker_epoch: epoch.0,
        features: wanted.features,
        rack: wanted.rack,
        log_dirs: wanted.log_dirs,
        ..RegisterBrokerRecord::default()
    };
    assert_eq!(records, [expected.into()]);
}
