//! A cluster of one node starts again.

use super::super::lone_broker::register_lone_broker;
use super::*;

fn start_again(image: &ClusterImage, last_stop_was_clean: bool) -> ClusterImage {
    let request = super::registration::request(1);
    let (records, epoch) =
        register_lone_broker(image, &RULES, request, last_stop_was_clean).expect("registers");
    assert_eq!(epoch.0, image.offset() + 1);
    let after = apply(image, &records);
    let broker = after.broker(BrokerId(1)).expect("registered");
    assert_eq!((broker.epoch, broker.is_active()), (epoch, true));
    assert_eq!(broker.cordoned_log_dirs, Some(Vec::new()));
    assert_invariants(&after);
    after
}

#[test]
fn after_a_clean_stop_it_leads_as_before_and_nothing_is_written_for_its_partitions() {
    let image = with_replicas(&cluster_of(&[1]), "t", &[&[1]], &[]);
    let after = start_again(&image, true);
    assert_eq!(after.offset(), image.offset() + 3);
    assert_eq!(state(&after), state(&image));
}

#[test]
fn after_a_crash_it_leads_in_a_new_epoch() {
    let image = with_replicas(&cluster_of(&[1]), "t", &[&[1]], &[]);
    let after = start_again(&image, false);
    assert_eq!(state(&after), (vec![1], vec![], vec![], 1, 1, 1));
    assert!(!partition(&after).recovering);
}

#[test]
fn what_nobody_leads_it_leads_if_it_has_all_records() {
    // As Apache Kafka leaves a directory behind: the last leader is eligible only.
    let image = with_replicas(&cluster_of(&[1]), "t", &[&[1]], &[]);
    let left = fence(&image, 1);
    assert_eq!(state(&left), (vec![], vec![1], vec![1], -1, 1, 1));
    let after = start_again(&left, true);
    assert_eq!(state(&after), (vec![1], vec![], vec![], 1, 2, 2));
    assert!(!partition(&after).recovering);
    let listed = fence(&without_elr(&image), 1);
    let after = start_again(&listed, true);
    assert_eq!(state(&after).3, 1);
}

#[test]
fn it_must_fit_the_cluster_as_any_other_broker() {
    let image = cluster_of(&[]);
    let other = super::super::registration::BrokerRegistrationRequest {
        cluster_id: "other".to_owned(),
        ..super::registration::request(1)
    };
    let refused = register_lone_broker(&image, &RULES, other, true);
    assert!(
        matches!(refused, Err(ClusterError::InconsistentClusterId(_))),
        "{refused:?}"
    );
}
