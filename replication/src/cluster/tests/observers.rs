//! Observers: placed last, never in sync, never leading.

use super::super::configs::{ConfigOperation, incremental_alter_configs};
use super::super::create_partitions::{MorePartitions, create_partitions};
use super::super::create_topics::create_topics;
use super::super::topic_rules::OBSERVER_REPLICAS;
use super::*;

fn created(image: &ClusterImage, new: NewTopic) -> Result<ClusterImage, ClusterError> {
    let (records, mut results) =
        create_topics(image, &[new], DEFAULTS, &TestRules, &mut ids()).expect("judged");
    results.remove(0).1.map(|_| apply(image, &records))
}

fn observed_by(new: NewTopic, observers: &str) -> NewTopic {
    let configs = vec![(OBSERVER_REPLICAS.to_owned(), Some(observers.to_owned()))];
    NewTopic { configs, ..new }
}

fn set_observers(image: &ClusterImage, observers: &str) -> Result<ClusterImage, ClusterError> {
    let set = ConfigOperation::Set(observers.to_owned());
    let operations = [(OBSERVER_REPLICAS.to_owned(), set)];
    let topic = ConfigResource::topic("t");
    let records = incremental_alter_configs(image, &topic, &operations, &TestRules)?;
    let after = apply(image, &records);
    assert_invariants(&after);
    Ok(after)
}

#[test]
fn observers_are_placed_behind_the_replicas_that_vote() {
    let image = cluster_of(&[1, 2, 3, 4]);
    let image = created(&image, observed_by(topic("t", 6, 3), "2")).expect("created");
    for partition in &image.topic("t").expect("the topic").partitions {
        assert_eq!(partition.replicas.len(), 3);
        assert_eq!(partition.replicas[2], BrokerId(2));
        assert_eq!(partition.isr, partition.replicas[..2]);
    }
    let more = MorePartitions {
        name: "t".to_owned(),
        count: 7,
        assignments: None,
    };
    let image = apply(&image, &create_partitions(&image, &[more]).expect("made").0);
    let added = image.partition("t", 6).expect("the partition");
    assert_eq!((added.replicas[2], added.isr.len()), (BrokerId(2), 2));
    assert_invariants(&image);
}

#[test]
fn somebody_must_be_able_to_lead() {
    let image = cluster_of(&[1, 2, 3]);
    let refused = |new: NewTopic, observers: &str| {
        created(&image, observed_by(new, observers)).expect_err("a refusal")
    };
    let none_left = refused(topic("t", 1, 2), "1,2");
    assert!(
        matches!(none_left, ClusterError::InvalidReplicationFactor(_)),
        "{none_left:?}"
    );
    assert!(matches!(
        refused(topic("t", 1, 3), "9"),
        ClusterError::InvalidConfig(_)
    ));
    assert!(matches!(
        refused(topic("t", 1, 3), "2,2"),
        ClusterError::InvalidConfig(_)
    ));
    // Only 1 and 3 are left to vote.
    let too_few = refused(topic("t", 1, 4), "2");
    assert!(
        matches!(too_few, ClusterError::InvalidReplicationFactor(_)),
        "{too_few:?}"
    );
    let first = NewTopic {
        assignments: vec![(0, vec![2, 1])],
        ..topic("t", -1, -1)
    };
    let first = refused(first, "2");
    assert!(
        matches!(first, ClusterError::InvalidReplicaAssignment(_)),
        "{first:?}"
    );
}

#[test]
fn a_replica_that_becomes_an_observer_leaves_isr_and_leadership() {
    let image = with_replicas(&cluster_of(&[1, 2, 3]), "t", &[&[1, 2, 3]], &[]);
    let after = set_observers(&image, "1").expect("others are in sync");
    assert_eq!(state(&after), (vec![2, 3], vec![], vec![], 2, 1, 1));
    // The preferred leader is now the first that can lead.
    let balanced = super::super::elect_leaders::balance_leaders(&after, &RULES, 10);
    assert_eq!(balanced, (vec![], false));
    // It votes again once it is none any more, by way of the ISR.
    let back = set_observers(&after, "").expect("allowed");
    assert_eq!(state(&back), state(&after));
    assert_eq!(
        state(&super::alter_partition::set_isr(&back, &[1, 2, 3])).0,
        [1, 2, 3]
    );
}

#[test]
fn the_last_in_sync_replica_cannot_become_an_observer() {
    let image = with_replicas(&cluster_of(&[1, 2]), "t", &[&[1, 2]], &[]);
    let image = fence(&image, 2);
    let refused = set_observers(&image, "1");
    assert!(
        matches!(refused, Err(ClusterError::InvalidConfig(_))),
        "{refused:?}"
    );
    assert!(matches!(
        set_observers(&image, "9"),
        Err(ClusterError::InvalidConfig(_))
    ));
}

#[test]
fn observers_count_neither_for_min_isr_nor_as_eligible() {
    let configs = [(OBSERVER_REPLICAS, "3"), ("min.insync.replicas", "3")];
    let image = with_replicas(&cluster_of(&[1, 2, 3]), "t", &[&[1, 2, 3]], &configs);
    assert_eq!(state(&image), (vec![1, 2], vec![], vec![], 1, 0, 0));
    let image = fence(&image, 2);
    assert_eq!(state(&image).1, [2]);
    let image = set_observers(&image, "2,3").expect("1 is in sync");
    assert_eq!(state(&image), (vec![1], vec![], vec![], 1, 0, 2));
}

#[test]
fn a_reassignment_does_not_wait_for_an_observer() {
    let configs = [(OBSERVER_REPLICAS, "3")];
    let image = with_replicas(&cluster_of(&[1, 2, 3]), "t", &[&[1, 2]], &configs);
    let target = super::super::reassign::Reassignment {
        topic: "t".to_owned(),
        partition: 0,
        replicas: Some(vec![1, 2, 3]),
    };
    let (records, results) =
        super::super::reassign::alter_partition_reassignments(&image, &RULES, &[target], true)
            .expect("judged");
    assert_eq!(results, [Ok(())]);
    let image = apply(&image, &records);
    assert_eq!(partition(&image).replicas, broker_ids(&[1, 2, 3]));
    assert!(!partition(&image).is_reassigning());
    assert_invariants(&image);
}
