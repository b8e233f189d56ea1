//! Elections on demand and by the controller itself: scenarios 69, 76.

use super::super::elect_leaders::{
    ElectionType, PartitionElection, balance_leaders, elect_leaders, elect_unclean_leaders,
};
use super::*;

fn elect(
    image: &ClusterImage,
    election_type: ElectionType,
    partitions: &[i32],
) -> (ClusterImage, Vec<PartitionElection>) {
    let asked = [("t".to_owned(), partitions.to_vec())];
    let (records, mut results) =
        elect_leaders(image, &RULES, election_type, Some(&asked)).expect("judged one by one");
    assert_eq!(results.len(), 1);
    (apply(image, &records), results.remove(0).1)
}

#[test]
fn the_preferred_leader_gets_its_leadership_back_when_it_is_in_sync() {
    // 76.
    let image = with_replicas(&cluster_of(&[1, 2, 3]), "t", &[&[1, 2, 3]], &[]);
    let (same, results) = elect(&image, ElectionType::Preferred, &[0]);
    assert_eq!(results, [(0, Err(ClusterError::ElectionNotNeeded))]);
    assert_eq!(same, image);
    let image = unfence(&fence(&image, 1), 1);
    let (same, results) = elect(&image, ElectionType::Preferred, &[0]);
    assert_eq!(
        results,
        [(0, Err(ClusterError::PreferredLeaderNotAvailable))]
    );
    assert_eq!(same, image, "the leader is kept");
    let image = super::alter_partition::set_isr(&image, &[2, 3, 1]);
    let (image, results) = elect(&image, ElectionType::Preferred, &[0, 0]);
    assert_eq!(
        results,
        [(0, Ok(())), (0, Err(ClusterError::ElectionNotNeeded))]
    );
    assert_eq!(state(&image), (vec![2, 3, 1], vec![], vec![], 1, 2, 3));
    assert_invariants(&image);
}

#[test]
fn an_unclean_election_is_for_partitions_without_a_leader() {
    let image = with_replicas(&cluster_of(&[1, 2, 3]), "t", &[&[1, 2, 3]], &[]);
    let (_, results) = elect(&image, ElectionType::Unclean, &[0]);
    assert_eq!(results, [(0, Err(ClusterError::ElectionNotNeeded))]);
    let image = fence(&fence(&fence(&image, 2), 3), 1);
    let (same, results) = elect(&image, ElectionType::Unclean, &[0]);
    assert_eq!(
        results,
        [(0, Err(ClusterError::EligibleLeadersNotAvailable))]
    );
    assert_eq!(same, image);
    let image = unfence(&image, 3);
    let (image, results) = elect(&image, ElectionType::Unclean, &[0]);
    assert_eq!(results, [(0, Ok(()))]);
    assert_eq!(state(&image), (vec![3], vec![], vec![], 3, 2, 4));
    assert!(partition(&image).recovering);
    assert_invariants(&image);
}

#[test]
fn what_does_not_exist_has_an_error_of_its_own() {
    let image = with_replicas(&cluster_of(&[1]), "t", &[&[1]], &[]);
    let (_, results) = elect(&image, ElectionType::Preferred, &[5]);
    let unknown = |text: &str| Err(ClusterError::UnknownTopicOrPartition(text.to_owned()));
    assert_eq!(results, [(5, unknown("No such partition as t-5"))]);
    let asked = [("nope".to_owned(), vec![0])];
    let (_, results) =
        elect_leaders(&image, &RULES, ElectionType::Preferred, Some(&asked)).expect("judged");
    assert_eq!(results[0].1, [(0, unknown("No such topic as nope"))]);
    assert!(ElectionType::from_id(2).is_err());
}

#[test]
fn of_all_partitions_those_are_told_that_needed_an_election() {
    let image = with_replicas(&cluster_of(&[1, 2]), "t", &[&[1, 2], &[2, 1], &[1, 2]], &[]);
    let image = unfence(&fence(&image, 1), 1);
    let (records, results) =
        elect_leaders(&image, &RULES, ElectionType::Preferred, None).expect("judged");
    assert_eq!(records, []);
    let unavailable = Err(ClusterError::PreferredLeaderNotAvailable);
    assert_eq!(
        results,
        [(
            "t".to_owned(),
            vec![(0, unavailable.clone()), (2, unavailable)]
        )]
    );
}

#[test]
fn balancing_stops_at_its_bound_and_says_that_there_is_more() {
    // 76.
    let image = with_replicas(&cluster_of(&[1, 2]), "t", &[&[1, 2][..]; 5], &[]);
    let image = unfence(&fence(&image, 1), 1);
    assert_eq!(
        balance_leaders(&image, &RULES, 10),
        (vec![], false),
        "1 is not in sync"
    );
    let topic_id = image.topic("t").expect("the topic").id.0;
    let records: Vec<MetadataRecord> = (0..5)
        .map(|partition_id| {
            let change = super::super::records::PartitionChangeRecord {
                partition_id,
                topic_id,
                isr: Some(vec![2, 1]),
                ..Default::default()
            };
            change.into()
        })
        .collect();
    let image = apply(&image, &records);
    let (records, more) = balance_leaders(&image, &RULES, 3);
    assert_eq!((records.len(), more), (3, true));
    let image = apply(&image, &records);
    let (records, more) = balance_leaders(&image, &RULES, 3);
    assert_eq!((records.len(), more), (2, false));
    let image = apply(&image, &records);
    assert_eq!(balance_leaders(&image, &RULES, 3), (vec![], false));
    assert_eq!(partition(&image).leader, Some(BrokerId(1)));
}

#[test]
fn topics_that_allow_it_get_an_unclean_leader_by_themselves() {
    // 69: also when the configuration is changed while the partition is offline.
    let image = without_elr(&with_replicas(&cluster_of(&[1, 2]), "t", &[&[1, 2]], &[]));
    let image = unfence(&fence(&fence(&image, 2), 1), 2);
    assert_eq!(elect_unclean_leaders(&image, &RULES, 10), (vec![], false));
    let allow = super::super::configs::ConfigOperation::Set("true".to_owned());
    let records = super::super::configs::incremental_alter_configs(
        &image,
        &ConfigResource::topic("t"),
        &[("unclean.leader.election.enable".to_owned(), allow)],
        &TestRules,
    );
    let image = apply(&image, &records.expect("allowed"));
    let (records, more) = elect_unclean_leaders(&image, &RULES, 10);
    assert_eq!((records.len(), more), (1, false));
    assert_eq!(
        state(&apply(&image, &records)),
        (vec![2], vec![], vec![], 2, 2, 3)
    );
}

#[test]
fn an_observer_is_never_elected() {
    let configs = [
        (super::super::topic_rules::OBSERVER_REPLICAS, "2"),
        ("unclean.leader.election.enable", "true"),
    ];
    let image = with_replicas(&cluster_of(&[1, 2]), "t", &[&[1, 2]], &configs);
    let image = fence(&image, 1);
    assert_eq!(partition(&image).leader, None);
    let (_, results) = elect(&image, ElectionType::Unclean, &[0]);
    assert_eq!(
        results,
        [(0, Err(ClusterError::EligibleLeadersNotAvailable))]
    );
    let back = unfence(&image, 1);
    assert_eq!(partition(&back).leader, Some(BrokerId(1)));
    assert_invariants(&back);
}
