//! Reassignments: scenarios 78, 79.

use super::super::reassign::{
    Reassignment, alter_partition_reassignments, list_partition_reassignments,
};
use super::alter_partition::set_isr;
use super::*;

fn reassignment(replicas: Option<&[i32]>) -> Reassignment {
    Reassignment {
        topic: "t".to_owned(),
        partition: 0,
        replicas: replicas.map(<[i32]>::to_vec),
    }
}

fn reassign(
    image: &ClusterImage,
    replicas: Option<&[i32]>,
) -> (ClusterImage, Result<(), ClusterError>) {
    let request = [reassignment(replicas)];
    let (records, mut results) =
        alter_partition_reassignments(image, &RULES, &request, true).expect("judged one by one");
    let after = apply(image, &records);
    assert_invariants(&after);
    (after, results.remove(0))
}

fn cluster() -> ClusterImage {
    with_replicas(&cluster_of(&[1, 2, 3, 4, 5, 6]), "t", &[&[1, 2, 3]], &[])
}

#[test]
fn replicas_come_before_others_go() {
    // 78; the end of it is a test of AlterPartition.
    let (image, result) = reassign(&cluster(), Some(&[3, 4, 5]));
    assert_eq!(result, Ok(()));
    let ongoing = partition(&image);
    assert_eq!(ongoing.replicas, broker_ids(&[3, 4, 5, 1, 2]));
    assert_eq!(ongoing.adding_replicas, broker_ids(&[4, 5]));
    assert_eq!(ongoing.removing_replicas, broker_ids(&[1, 2]));
    assert_eq!(ongoing.directories, [3, 4, 5, 1, 2].map(directory));
    let listed = list_partition_reassignments(&image, None);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].2[0].adding_replicas, broker_ids(&[4, 5]));
    let asked = [("t".to_owned(), vec![0, 9]), ("nope".to_owned(), vec![0])];
    assert_eq!(list_partition_reassignments(&image, Some(&asked)), listed);
    assert_eq!(list_partition_reassignments(&image, Some(&[])), []);
}

#[test]
fn another_order_is_done_at_once_and_leaves_the_leader() {
    let (image, result) = reassign(&cluster(), Some(&[3, 2, 1]));
    assert_eq!(result, Ok(()));
    assert_eq!(partition(&image).replicas, broker_ids(&[3, 2, 1]));
    assert!(!partition(&image).is_reassigning());
    assert_eq!(state(&image), (vec![1, 2, 3], vec![], vec![], 1, 0, 1));
    assert_eq!(reassign(&image, Some(&[3, 2, 1])), (image, Ok(())));
}

#[test]
fn fewer_replicas_are_done_at_once_and_the_leader_epoch_rises() {
    let (image, _) = reassign(&cluster(), Some(&[1, 2]));
    assert_eq!(partition(&image).replicas, broker_ids(&[1, 2]));
    assert_eq!(state(&image), (vec![1, 2], vec![], vec![], 1, 1, 1));
    // The leader itself goes.
    let (image, _) = reassign(&image, Some(&[2]));
    assert_eq!(state(&image), (vec![2], vec![], vec![], 2, 2, 2));
}

#[test]
fn a_reassignment_ends_when_all_that_stay_are_in_sync() {
    let (image, _) = reassign(&cluster(), Some(&[4, 5]));
    let image = set_isr(&image, &[1, 2, 3, 4]);
    assert!(partition(&image).is_reassigning());
    // 3 may go meanwhile: it is not waited for.
    let image = fence(&image, 3);
    assert!(partition(&image).is_reassigning());
    let image = {
        let records = super::super::alter_partition::alter_partition(
            &image,
            &RULES,
            BrokerId(1),
            image.broker(BrokerId(1)).expect("registered").epoch,
            &[super::alter_partition::proposal(&image, &[1, 2, 4, 5])],
        );
        apply(&image, &records.expect("judged").0)
    };
    assert_eq!(partition(&image).replicas, broker_ids(&[4, 5]));
    assert_eq!(state(&image).0, [4, 5]);
    assert_eq!(state(&image).3, 4);
    assert_invariants(&image);
}

#[test]
fn cancelling_restores_what_was() {
    // 79.
    let (image, _) = reassign(&cluster(), Some(&[4, 5, 6]));
    let image = set_isr(&image, &[1, 2, 3, 4]);
    let (image, result) = reassign(&image, None);
    assert_eq!(result, Ok(()));
    assert_eq!(partition(&image).replicas, broker_ids(&[1, 2, 3]));
    assert!(!partition(&image).is_reassigning());
    assert_eq!(state(&image).0, [1, 2, 3]);
    assert_eq!(state(&image).4, 1, "replicas went: the leader epoch rises");
    assert_eq!(
        reassign(&image, None).1,
        Err(ClusterError::NoReassignmentInProgress)
    );
}

#[test]
fn cancelling_that_would_lose_records_needs_the_topics_consent() {
    // 79: only a replica that is being added is in sync.
    let only_added = |configs: &[(&str, &str)]| {
        let image = with_replicas(&cluster_of(&[1, 4]), "t", &[&[1]], configs);
        let (image, _) = reassign(&image, Some(&[1, 4]));
        assert!(partition(&image).is_reassigning());
        let topic_id = image.topic("t").expect("the topic").id.0;
        let change = super::super::records::PartitionChangeRecord {
            partition_id: 0,
            topic_id,
            isr: Some(vec![4]),
            leader: 4,
            ..Default::default()
        };
        apply(&image, &[change.into()])
    };
    let image = only_added(&[]);
    let (same, result) = reassign(&image, None);
    assert!(
        matches!(result, Err(ClusterError::InvalidReplicaAssignment(_))),
        "{result:?}"
    );
    assert_eq!(same, image);
    let (image, result) = reassign(
        &only_added(&[("unclean.leader.election.enable", "true")]),
        None,
    );
    assert_eq!(result, Ok(()));
    assert_eq!(partition(&image).replicas, broker_ids(&[1]));
    assert_eq!((state(&image).0, state(&image).3), (vec![1], 1));
    assert!(partition(&image).recovering);
}

#[test]
fn cancelling_while_nobody_leads_leaves_who_is_eligible() {
    let image = with_replicas(
        &cluster_of(&[1, 2, 4]),
        "t",
        &[&[1, 2]],
        &[("min.insync.replicas", "2")],
    );
    let (image, _) = reassign(&image, Some(&[4, 1]));
    let image = fence(&fence(&image, 2), 1);
    assert_eq!(state(&image), (vec![], vec![1, 2], vec![1], -1, 1, 3));
    let (image, result) = reassign(&image, None);
    assert_eq!(result, Ok(()));
    assert_eq!(partition(&image).replicas, broker_ids(&[1, 2]));
    assert_eq!((state(&image).0, state(&image).1), (vec![], vec![1, 2]));
    let image = unfence(&image, 1);
    assert_eq!(state(&image).3, 1);
    assert!(!partition(&image).recovering);
}

#[test]
fn cancelling_while_only_an_added_replica_is_eligible_is_refused() {
    let image = with_replicas(&cluster_of(&[1, 2, 4, 5]), "t", &[&[1, 2]], &[]);
    let (image, _) = reassign(&image, Some(&[4, 5]));
    let image = set_isr(&image, &[1, 2, 4]);
    let eligible = fence(&fence(&fence(&image, 1), 2), 4);
    assert_eq!((state(&eligible).0, state(&eligible).1), (vec![], vec![4]));
    // The same when it is only the last leader, since it stopped uncleanly.
    let topic_id = image.topic("t").expect("the topic").id.0;
    let change = super::super::records::PartitionChangeRecord {
        partition_id: 0,
        topic_id,
        eligible_leader_replicas: Some(Vec::new()),
        ..Default::default()
    };
    let last_known = apply(&eligible, &[change.into()]);
    assert_eq!(state(&last_known).2, [4]);
    for image in [eligible, last_known] {
        let (same, result) = reassign(&image, None);
        assert!(
            matches!(result, Err(ClusterError::InvalidReplicaAssignment(_))),
            "{result:?}"
        );
        assert_eq!(same, image);
    }
}

#[test]
fn a_target_must_be_possible() {
    let image = cluster();
    let refused = |replicas: &[i32]| {
        let (same, result) = reassign(&image, Some(replicas));
        assert_eq!(same, image);
        result.expect_err("a refusal").to_string()
    };
    assert!(refused(&[]).contains("empty replica list"));
    assert!(refused(&[1, 1]).contains("more than once"));
    assert!(refused(&[9]).contains("no such broker"));
    let unknown = Reassignment {
        partition: 5,
        ..reassignment(Some(&[1]))
    };
    let (_, results) =
        alter_partition_reassignments(&image, &RULES, &[unknown], true).expect("judged");
    assert_eq!(
        results[0],
        Err(ClusterError::UnknownTopicOrPartition(
            "Unable to find partition t:5.".to_owned()
        ))
    );
}

#[test]
fn the_number_of_replicas_stays_unless_it_may_change() {
    let judge = |image: &ClusterImage, replicas: &[i32]| {
        let request = [reassignment(Some(replicas))];
        let (records, mut results) =
            alter_partition_reassignments(image, &RULES, &request, false).expect("judged");
        (apply(image, &records), results.remove(0))
    };
    let image = cluster();
    let refused = judge(&image, &[1, 2]).1;
    let text = "The replication factor is changed from 3 to 2".to_owned();
    assert_eq!(refused, Err(ClusterError::InvalidReplicationFactor(text)));
    let (image, _) = judge(&image, &[4, 5, 6]);
    assert_eq!(
        judge(&image, &[1, 2, 4]).1,
        Ok(()),
        "counted without what goes"
    );
}

#[test]
fn the_same_partition_twice_is_refused_the_second_time() {
    let request = [reassignment(Some(&[4])), reassignment(Some(&[5]))];
    let (records, results) =
        alter_partition_reassignments(&cluster(), &RULES, &request, true).expect("judged");
    assert_eq!(
        (records.len(), results[0].is_ok(), results[1].is_ok()),
        (1, true, false)
    );
}

#[test]
fn a_last_known_leader_that_is_no_replica_any_more_is_not_elected() {
    let image = with_replicas(
        &cluster_of(&[1, 2, 3]),
        "t",
        &[&[1, 2]],
        &[("min.insync.replicas", "1")],
    );
    let image = super::alter_partition::set_isr(&image, &[1]);
    let image = super::registration::restart(&fence(&image, 1), 1, None);
    assert_eq!(state(&image), (vec![], vec![], vec![1], -1, 1, 3));
    let (image, _) = reassign(&image, Some(&[2, 3]));
    let (image, result) = {
        let records = super::super::records::PartitionChangeRecord {
            partition_id: 0,
            topic_id: image.topic("t").expect("the topic").id.0,
            replicas: Some(vec![2, 3]),
            removing_replicas: Some(vec![]),
            adding_replicas: Some(vec![]),
            directories: Some([2, 3].map(directory).to_vec()),
            ..Default::default()
        };
        reassign(&apply(&image, &[records.into()]), Some(&[3, 2]))
    };
    assert_eq!(result, Ok(()));
    let image = unfence(&image, 1);
    assert_eq!(partition(&image).leader, None);
    assert_eq!(state(&image).2, [] as [i32; 0]);
    assert_invariants(&image);
}
