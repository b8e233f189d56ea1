//! Fencing, unfencing, controlled shutdown, unregistration and lost directories: scenarios A4, A7.

use super::super::broker_changes::{
    begin_controlled_shutdown, fence_broker, take_directories_offline, unfence_broker,
    unregister_broker,
};
use super::super::records::{BrokerRegistrationChangeRecord, PartitionChangeRecord};
use super::super::registration::register_broker;
use super::liveness::idle;
use super::registration::restart;
use super::*;

const UNCLEAN: ReplicationDefaults = ReplicationDefaults {
    min_insync_replicas: 1,
    unclean_leader_election_enable: true,
};

fn change(partition_id: i32, of: &ClusterImage) -> PartitionChangeRecord {
    PartitionChangeRecord {
        partition_id,
        topic_id: of.topic("t").expect("the topic").id.0,
        ..PartitionChangeRecord::default()
    }
}

fn three(configs: &[(&str, &str)]) -> ClusterImage {
    with_replicas(&cluster_of(&[1, 2, 3]), "t", &[&[2, 3, 1]], configs)
}

#[test]
fn a_fenced_leader_leaves_its_isrs_before_it_is_fenced_and_the_next_replica_leads() {
    // 34, 66: replica order, not the order of ids.
    let image = three(&[]);
    let records = fence_broker(&image, &RULES, BrokerId(2)).expect("registered");
    let moved = PartitionChangeRecord {
        isr: Some(vec![3, 1]),
        leader: 3,
        ..change(0, &image)
    };
    let fenced = BrokerRegistrationChangeRecord {
        broker_id: 2,
        broker_epoch: image.broker(BrokerId(2)).expect("registered").epoch.0,
        fenced: 1,
        ..BrokerRegistrationChangeRecord::default()
    };
    assert_eq!(records, [moved.into(), fenced.into()]);
    let after = apply(&image, &records);
    assert_eq!(state(&after), (vec![3, 1], vec![], vec![], 3, 1, 1));
    assert_invariants(&after);
}

#[test]
fn an_isr_change_alone_leaves_the_leader_epoch() {
    // 67.
    let after = fence(&three(&[]), 1);
    assert_eq!(state(&after), (vec![2, 3], vec![], vec![], 2, 0, 1));
}

#[test]
fn without_elr_the_last_replica_stays_listed_and_nobody_else_leads() {
    // 34, 60, 68.
    let image = without_elr(&three(&[]));
    let image = fence(&fence(&fence(&image, 3), 1), 2);
    assert_eq!(state(&image), (vec![2], vec![], vec![], -1, 1, 3));
    assert_invariants(&image);
    let others = unfence(&unfence(&image, 1), 3);
    assert_eq!(state(&others), state(&image));
    let back = unfence(&others, 2);
    assert_eq!(state(&back), (vec![2], vec![], vec![], 2, 2, 4));
    assert!(!partition(&back).recovering);
    assert_invariants(&back);
}

#[test]
fn an_unclean_election_takes_the_first_live_replica_when_the_topic_allows_it() {
    // 69.
    let image = without_elr(&three(&[("unclean.leader.election.enable", "true")]));
    let image = fence(&fence(&image, 3), 1);
    let image = unfence(&unfence(&image, 1), 3);
    let records = fence_broker(&image, &RULES, BrokerId(2)).expect("registered");
    let after = apply(&image, &records);
    let expected = (vec![3], vec![], vec![], 3, 1, 3);
    assert_eq!(state(&after), expected);
    assert!(partition(&after).recovering);
    assert_invariants(&after);
    // By the controller's own default too; not if the topic says no.
    let plain = without_elr(&three(&[]));
    let plain = unfence(&fence(&fence(&plain, 3), 1), 3);
    let records = fence_broker(&plain, &UNCLEAN, BrokerId(2)).expect("registered");
    assert_eq!(
        partition(&apply(&plain, &records)).leader,
        Some(BrokerId(3))
    );
    let never = without_elr(&three(&[("unclean.leader.election.enable", "false")]));
    let never = unfence(&fence(&fence(&never, 3), 1), 3);
    let records = fence_broker(&never, &UNCLEAN, BrokerId(2)).expect("registered");
    assert_eq!(partition(&apply(&never, &records)).leader, None);
}

#[test]
fn who_left_below_min_isr_is_eligible_and_is_elected_before_anybody_else() {
    // 70.
    let cluster = cluster_of(&[1, 2, 3]);
    let image = with_replicas(
        &cluster,
        "t",
        &[&[1, 2, 3]],
        &[("min.insync.replicas", "2")],
    );
    let image = fence(&image, 2);
    assert_eq!(state(&image), (vec![1, 3], vec![], vec![], 1, 0, 1));
    let image = fence(&image, 3);
    assert_eq!(state(&image), (vec![1], vec![3], vec![], 1, 0, 2));
    let image = fence(&image, 1);
    assert_eq!(state(&image), (vec![], vec![1, 3], vec![1], -1, 1, 3));
    assert_invariants(&image);
    // 2 left while there were enough: it may lack records.
    let image = unfence(&image, 2);
    assert_eq!(partition(&image).leader, None);
    let image = unfence(&image, 3);
    assert_eq!(state(&image), (vec![3], vec![1], vec![], 3, 2, 4));
    assert!(!partition(&image).recovering);
    assert_invariants(&image);
    // 1 lost its tail: it is no candidate any more.
    let image = restart(&image, 1, None);
    assert_eq!(state(&image), (vec![3], vec![], vec![], 3, 2, 5));
    assert_invariants(&image);
}

#[test]
fn an_unclean_restart_leaves_the_eligible_replicas_and_a_clean_one_does_not() {
    // 72.
    let cluster = cluster_of(&[1, 2, 3]);
    let image = with_replicas(
        &cluster,
        "t",
        &[&[1, 2, 3]],
        &[("min.insync.replicas", "3")],
    );
    let image = fence(&fence(&fence(&image, 2), 3), 1);
    assert_eq!(state(&image), (vec![], vec![1, 2, 3], vec![1], -1, 1, 3));
    let epoch = image.broker(BrokerId(2)).expect("registered").epoch;
    let clean = restart(&image, 2, Some(epoch));
    assert_eq!(state(&clean), state(&image));
    let wrong = restart(
        &image,
        2,
        Some(highwater_storage::types::BrokerEpoch(epoch.0 - 1)),
    );
    assert_eq!(state(&wrong), (vec![], vec![1, 3], vec![1], -1, 1, 4));
    assert_invariants(&wrong);
    // Ended cleanly, but what lay in a directory that is gone is lost.
    let moved = super::super::registration::BrokerRegistrationRequest {
        incarnation_id: Uuid::from_u128(500_000),
        log_dirs: vec![Uuid::from_u128(5001)],
        previous_broker_epoch: Some(epoch),
        ..super::registration::request(2)
    };
    let (records, _) = register_broker(&image, &RULES, &idle(&image), moved, 0).expect("registers");
    assert_eq!(state(&apply(&image, &records)), state(&wrong));
}

#[test]
fn the_last_known_leader_is_elected_only_when_it_is_back_and_nobody_is_eligible() {
    // 73, 75.
    let cluster = cluster_of(&[1, 2, 3]);
    let image = with_replicas(
        &cluster,
        "t",
        &[&[1, 2, 3]],
        &[("min.insync.replicas", "2")],
    );
    let image = fence(&fence(&fence(&image, 2), 3), 1);
    let image = restart(&restart(&image, 3, None), 1, None);
    assert_eq!(state(&image), (vec![], vec![], vec![1], -1, 1, 5));
    let others = unfence(&unfence(&image, 3), 2);
    assert_eq!(state(&others), state(&image));
    let back = unfence(&others, 1);
    assert_eq!(state(&back), (vec![1], vec![], vec![], 1, 2, 6));
    assert!(partition(&back).recovering, "records may be lost");
    assert_invariants(&back);
}

#[test]
fn eligible_replicas_are_forgotten_when_enough_are_in_sync_again() {
    // 71.
    let cluster = cluster_of(&[1, 2, 3]);
    let image = with_replicas(
        &cluster,
        "t",
        &[&[1, 2, 3]],
        &[("min.insync.replicas", "2")],
    );
    let image = fence(&fence(&image, 2), 3);
    assert_eq!(state(&image).1, [3]);
    let image = super::alter_partition::set_isr(&unfence(&image, 2), &[1, 2]);
    assert_eq!(state(&image), (vec![1, 2], vec![], vec![], 1, 0, 3));
}

#[test]
fn min_isr_counts_no_more_than_there_are_replicas() {
    let image = with_replicas(
        &cluster_of(&[1]),
        "t",
        &[&[1]],
        &[("min.insync.replicas", "3")],
    );
    let image = unfence(&fence(&image, 1), 1);
    assert_eq!(state(&image), (vec![1], vec![], vec![], 1, 2, 2));
}

#[test]
fn controlled_shutdown_is_told_first_then_leaderships_move() {
    // 37.
    let image = with_replicas(&cluster_of(&[1, 2, 3]), "t", &[&[1, 2, 3], &[2, 1, 3]], &[]);
    let records = begin_controlled_shutdown(&image, &RULES, BrokerId(1)).expect("registered");
    let MetadataRecord::BrokerRegistrationChange(first) = &records[0] else {
        panic!("the registration changes first: {records:?}");
    };
    assert_eq!((first.in_controlled_shutdown, first.fenced), (1, 0));
    assert_eq!(records.len(), 3);
    let image = apply(&image, &records);
    assert_eq!(state(&image), (vec![2, 3], vec![], vec![], 2, 1, 1));
    let other = image.partition("t", 1).expect("the partition");
    assert_eq!((other.leader_epoch.0, other.isr.len()), (0, 2));
    assert_invariants(&image);
    // Asked for again, nothing changes any more.
    assert_eq!(
        begin_controlled_shutdown(&image, &RULES, BrokerId(1)),
        Ok(vec![])
    );
}

#[test]
fn an_unregistered_broker_leaves_isr_and_cluster() {
    let image = three(&[("min.insync.replicas", "3")]);
    let records = unregister_broker(&image, &RULES, BrokerId(2)).expect("registered");
    let image = apply(&image, &records);
    assert_eq!(state(&image), (vec![3, 1], vec![2], vec![], 3, 1, 1));
    assert!(image.broker(BrokerId(2)).is_none());
    let again = unregister_broker(&image, &RULES, BrokerId(2));
    assert!(
        matches!(again, Err(ClusterError::BrokerIdNotRegistered(_))),
        "{again:?}"
    );
}

#[test]
fn replicas_in_a_lost_directory_leave_isr_and_leadership_and_others_stay() {
    // 77.
    let dirs = [Uuid::from_u128(5001), Uuid::from_u128(5002)];
    let image = cluster_of(&[2]);
    let request = super::super::registration::BrokerRegistrationRequest {
        log_dirs: dirs.to_vec(),
        ..super::registration::request(1)
    };
    let (records, _) =
        register_broker(&image, &RULES, &idle(&image), request, 0).expect("registers");
    let image = unfence(&apply(&image, &records), 1);
    let image = with_replicas(&image, "t", &[&[1, 2], &[1, 2], &[1, 2]], &[]);
    let image = super::assign_dirs::assign(&image, 1, &[(dirs[0], 0), (dirs[1], 1)]);
    let records =
        take_directories_offline(&image, &RULES, BrokerId(1), &dirs[..1]).expect("registered");
    assert_eq!(
        records.len(),
        2,
        "one partition and the registration: {records:?}"
    );
    let after = apply(&image, &records);
    let leader = |id: i32| after.partition("t", id).expect("the partition").leader;
    assert_eq!(
        [leader(0), leader(1), leader(2)],
        [2, 1, 1].map(|id| Some(BrokerId(id)))
    );
    let broker = after.broker(BrokerId(1)).expect("registered");
    assert_eq!(
        (broker.log_dirs.as_slice(), broker.fenced),
        (&dirs[1..], false)
    );
    // Reported again with every heartbeat.
    let again = take_directories_offline(&after, &RULES, BrokerId(1), &dirs[..1]);
    assert_eq!(again, Ok(vec![]));
    // A replica in it is not elected.
    let after = fence(&after, 2);
    assert_eq!(after.partition("t", 0).expect("the partition").leader, None);
    assert_eq!(
        after.partition("t", 1).expect("the partition").leader,
        Some(BrokerId(1))
    );
}

#[test]
fn a_broker_of_an_earlier_run_is_not_unfenced() {
    let image = cluster_of(&[1]);
    let epoch = image.broker(BrokerId(1)).expect("registered").epoch;
    let stale = highwater_storage::types::BrokerEpoch(epoch.0 - 1);
    let unknown = unfence_broker(&image, &RULES, BrokerId(9), stale);
    assert!(
        matches!(unknown, Err(ClusterError::StaleBrokerEpoch(_))),
        "{unknown:?}"
    );
    let refused = unfence_broker(&image, &RULES, BrokerId(1), stale);
    assert!(
        matches!(refused, Err(ClusterError::StaleBrokerEpoch(_))),
        "{refused:?}"
    );
}

#[test]
fn ten_thousand_partitions_move_in_one_pass() {
    let image = cluster_of(&[1]);
    let assignments = vec![&[1][..]; 10_000];
    let image = with_replicas_in_topics(&image, &assignments, 10);
    let began = std::time::Instant::now();
    let image = restart(&image, 1, None);
    let image = unfence(&image, 1);
    let took = began.elapsed();
    assert_eq!(
        image
            .partition("t-9", 999)
            .expect("a partition")
            .leader_epoch
            .0,
        2
    );
    // Far more than it takes even unoptimized: what is asserted is that it is not quadratic.
    assert!(took.as_secs() < 20, "{took:?}");
}

fn with_replicas_in_topics(
    image: &ClusterImage,
    assignments: &[&[i32]],
    topics: usize,
) -> ClusterImage {
    let chunks = assignments.chunks(assignments.len() / topics).enumerate();
    chunks.fold(image.clone(), |image, (index, chunk)| {
        with_replicas(&image, &format!("t-{index}"), chunk, &[])
    })
}
