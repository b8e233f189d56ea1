//! The checks of AlterPartition in their order: scenarios 28, 31, 33, 64, 78.

use highwater_storage::types::{BrokerEpoch, LeaderEpoch, PartitionEpoch};

use super::super::alter_partition::{
    IsrProposal, IsrProposalResult, PartitionState, alter_partition,
};
use super::super::reassign::{Reassignment, alter_partition_reassignments};
use super::*;

/// What the leader of partition 0 of topic `t` would propose.
pub(super) fn proposal(image: &ClusterImage, isr: &[i32]) -> IsrProposal {
    let current = partition(image);
    let with_epoch = |id: &i32| {
        let id = BrokerId(*id);
        (id, image.broker(id).map(|broker| broker.epoch))
    };
    IsrProposal {
        topic_id: image.topic("t").expect("the topic").id,
        partition: 0,
        leader_epoch: current.leader_epoch,
        partition_epoch: current.partition_epoch,
        new_isr: isr.iter().map(with_epoch).collect(),
        recovering: false,
    }
}

fn send(
    image: &ClusterImage,
    sender: i32,
    proposals: &[IsrProposal],
) -> (ClusterImage, Vec<IsrProposalResult>) {
    let id = BrokerId(sender);
    let epoch = image.broker(id).expect("registered").epoch;
    let (records, results) =
        alter_partition(image, &RULES, id, epoch, proposals).expect("judged one by one");
    (apply(image, &records), results)
}

/// The cluster after the leader got the ISR that it asked for.
pub(super) fn set_isr(image: &ClusterImage, isr: &[i32]) -> ClusterImage {
    let leader = partition(image).leader.expect("a leader");
    let (image, results) = send(image, leader.0, &[proposal(image, isr)]);
    assert_eq!(results[0].as_ref().err(), None);
    image
}

/// The refusal of one proposal, which must change nothing.
fn refusal(image: &ClusterImage, sender: i32, proposal: IsrProposal) -> ClusterError {
    let (after, results) = send(image, sender, &[proposal]);
    assert_eq!(after, *image);
    results[0].clone().expect_err("a refusal")
}

fn cluster() -> ClusterImage {
    with_replicas(&cluster_of(&[1, 2, 3]), "t", &[&[1, 2, 3]], &[])
}

#[test]
fn a_leader_shrinks_and_expands_its_isr() {
    let image = cluster();
    let (image, results) = send(&image, 1, &[proposal(&image, &[1, 2])]);
    let expected = PartitionState {
        leader: Some(BrokerId(1)),
        leader_epoch: LeaderEpoch(0),
        isr: broker_ids(&[1, 2]),
        recovering: false,
        partition_epoch: PartitionEpoch(1),
    };
    assert_eq!(results, [Ok(expected)]);
    assert_eq!(state(&image), (vec![1, 2], vec![], vec![], 1, 0, 1));
    // The same ISR again is no change.
    let (same, results) = send(&image, 1, &[proposal(&image, &[1, 2])]);
    assert_eq!(same, image);
    assert_eq!(results, [Ok(PartitionState::from(partition(&image)))]);
    let image = set_isr(&image, &[1, 2, 3]);
    assert_eq!(state(&image), (vec![1, 2, 3], vec![], vec![], 1, 0, 2));
}

#[test]
fn the_sender_must_be_this_run_of_a_registered_broker() {
    let image = cluster();
    let request = [proposal(&image, &[1])];
    let stale = alter_partition(&image, &RULES, BrokerId(1), BrokerEpoch(0), &request);
    assert!(
        matches!(stale, Err(ClusterError::StaleBrokerEpoch(_))),
        "{stale:?}"
    );
}

#[test]
fn unknown_topics_and_partitions_have_errors_of_their_own() {
    let image = cluster();
    let unknown_topic = IsrProposal {
        topic_id: TopicId(Uuid::from_u128(9999)),
        ..proposal(&image, &[1])
    };
    assert_eq!(
        refusal(&image, 1, unknown_topic),
        ClusterError::UnknownTopicId
    );
    let unknown_partition = IsrProposal {
        partition: 7,
        ..proposal(&image, &[1])
    };
    assert_eq!(
        refusal(&image, 1, unknown_partition),
        ClusterError::unknown_topic()
    );
}

#[test]
fn epochs_are_compared_before_anything_else() {
    // 28, 64. Everything else about this proposal is wrong too.
    let image = fence(&set_isr(&cluster(), &[1, 2]), 1);
    let current = partition(&image);
    let with_epochs = |leader: i32, partition: i32| IsrProposal {
        leader_epoch: LeaderEpoch(current.leader_epoch.0 + leader),
        partition_epoch: PartitionEpoch(current.partition_epoch.0 + partition),
        ..proposal(&image, &[9])
    };
    let refused = |leader, partition| refusal(&image, 3, with_epochs(leader, partition));
    assert!(matches!(refused(1, 0), ClusterError::NotController(_)));
    assert!(matches!(refused(0, 1), ClusterError::NotController(_)));
    assert!(matches!(refused(-1, 1), ClusterError::NotController(_)));
    assert!(matches!(refused(-1, 0), ClusterError::FencedLeaderEpoch(_)));
    // The sender counts before the partition epoch.
    assert!(matches!(refused(0, -1), ClusterError::InvalidRequest(_)));
    let from_leader = refusal(&image, 2, with_epochs(0, -1));
    assert!(
        matches!(from_leader, ClusterError::InvalidUpdateVersion(_)),
        "{from_leader:?}"
    );
}

#[test]
fn an_isr_is_a_set_of_replicas_with_the_leader() {
    let image = cluster();
    for isr in [&[1, 9][..], &[1, 1], &[2, 3], &[]] {
        let refused = refusal(&image, 1, proposal(&image, isr));
        assert!(
            matches!(refused, ClusterError::InvalidRequest(_)),
            "{isr:?}: {refused:?}"
        );
    }
}

#[test]
fn a_recovering_leader_is_alone_and_a_recovered_one_stays_so() {
    let image = cluster();
    let recovering = |image: &ClusterImage, isr: &[i32]| IsrProposal {
        recovering: true,
        ..proposal(image, isr)
    };
    for isr in [&[1][..], &[1, 2]] {
        let refused = refusal(&image, 1, recovering(&image, isr));
        assert!(
            matches!(refused, ClusterError::InvalidRequest(_)),
            "{refused:?}"
        );
    }
    let change = super::super::records::PartitionChangeRecord {
        partition_id: 0,
        topic_id: image.topic("t").expect("the topic").id.0,
        isr: Some(vec![1]),
        leader_recovery_state: 1,
        ..Default::default()
    };
    let image = apply(&image, &[change.into()]);
    let (same, results) = send(&image, 1, &[recovering(&image, &[1])]);
    assert_eq!((same, results[0].is_ok()), (image.clone(), true));
    let (image, results) = send(&image, 1, &[proposal(&image, &[1])]);
    assert!(results[0].as_ref().is_ok_and(|state| !state.recovering));
    assert!(!partition(&image).recovering);
}

#[test]
fn who_is_not_in_service_or_was_restarted_cannot_enter_the_isr() {
    // 31, 33.
    let image = set_isr(&cluster(), &[1, 2]);
    let ineligible = |image: &ClusterImage, proposal: IsrProposal| {
        let refused = refusal(image, 1, proposal);
        assert!(
            matches!(refused, ClusterError::IneligibleReplica(_)),
            "{refused:?}"
        );
    };
    let fenced = fence(&image, 3);
    ineligible(&fenced, proposal(&fenced, &[1, 2, 3]));
    let stopping =
        super::super::broker_changes::begin_controlled_shutdown(&image, &RULES, BrokerId(3));
    let stopping = apply(&image, &stopping.expect("registered"));
    ineligible(&stopping, proposal(&stopping, &[1, 2, 3]));
    let mut old = proposal(&image, &[1, 2, 3]);
    let restarted = unfence(&super::registration::restart(&image, 3, None), 3);
    old.partition_epoch = partition(&restarted).partition_epoch;
    ineligible(&restarted, old.clone());
    // Who does not say its epoch is believed (Fetch before version 15).
    old.new_isr[2].1 = None;
    let (_, results) = send(&restarted, 1, &[old]);
    assert!(results[0].is_ok());
    let gone = super::super::broker_changes::unregister_broker(&image, &RULES, BrokerId(3));
    let gone = apply(&image, &gone.expect("registered"));
    ineligible(&gone, proposal(&gone, &[1, 2, 3]));
}

#[test]
fn an_observer_cannot_enter_the_isr() {
    let configs = [(super::super::topic_rules::OBSERVER_REPLICAS, "3")];
    let image = with_replicas(&cluster_of(&[1, 2, 3]), "t", &[&[1, 2, 3]], &configs);
    assert_eq!(state(&image).0, [1, 2]);
    let refused = refusal(&image, 1, proposal(&image, &[1, 2, 3]));
    assert!(
        matches!(refused, ClusterError::IneligibleReplica(_)),
        "{refused:?}"
    );
}

#[test]
fn a_second_proposal_for_the_partition_in_one_request_is_out_of_date() {
    let image = cluster();
    let request = [proposal(&image, &[1, 2]), proposal(&image, &[1])];
    let (image, results) = send(&image, 1, &request);
    assert!(results[0].is_ok());
    assert!(
        matches!(results[1], Err(ClusterError::InvalidUpdateVersion(_))),
        "{results:?}"
    );
    assert_eq!(state(&image).0, [1, 2]);
}

#[test]
fn the_change_that_ends_a_reassignment_takes_the_leadership_along() {
    // 78.
    let image = with_replicas(&cluster_of(&[1, 2, 3, 4, 5, 6]), "t", &[&[1, 2, 3]], &[]);
    let reassignment = Reassignment {
        topic: "t".to_owned(),
        partition: 0,
        replicas: Some(vec![4, 5, 6]),
    };
    let (records, results) =
        alter_partition_reassignments(&image, &RULES, &[reassignment], false).expect("judged");
    assert_eq!(results, [Ok(())]);
    let image = apply(&image, &records);
    assert_eq!(partition(&image).replicas, broker_ids(&[4, 5, 6, 1, 2, 3]));
    assert_eq!(state(&image), (vec![1, 2, 3], vec![], vec![], 1, 0, 1));
    let image = set_isr(&image, &[1, 2, 3, 4, 5]);
    assert!(partition(&image).is_reassigning());
    let (image, results) = send(&image, 1, &[proposal(&image, &[1, 2, 3, 4, 5, 6])]);
    assert!(
        matches!(results[0], Err(ClusterError::NewLeaderElected(_))),
        "{results:?}"
    );
    let done = partition(&image);
    assert_eq!(done.replicas, broker_ids(&[4, 5, 6]));
    assert!(!done.is_reassigning());
    assert_eq!(state(&image), (vec![4, 5, 6], vec![], vec![], 4, 1, 3));
    assert_eq!(done.directories, [4, 5, 6].map(directory));
    assert_invariants(&image);
}
