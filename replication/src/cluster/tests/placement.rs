//! Placement over racks.

use std::collections::BTreeSet;

use super::super::create_topics::create_topics;
use super::*;

fn cluster(brokers: &[(i32, &str)]) -> ClusterImage {
    brokers.iter().fold(cluster_of(&[]), |image, (id, rack)| {
        let request = super::super::registration::BrokerRegistrationRequest {
            rack: (!rack.is_empty()).then(|| (*rack).to_owned()),
            ..super::registration::request(*id)
        };
        let nobody = super::liveness::idle(&image);
        let (records, _) =
            super::super::registration::register_broker(&image, &RULES, &nobody, request, 0)
                .expect("registers");
        unfence(&apply(&image, &records), *id)
    })
}

fn placed(image: &ClusterImage, partitions: i32, replicas: i16) -> Vec<Vec<i32>> {
    let new = topic("t", partitions, replicas);
    let (records, results) =
        create_topics(image, &[new], DEFAULTS, &TestRules, &mut ids()).expect("judged");
    assert_eq!(results[0].1.as_ref().err(), None);
    let image = apply(image, &records);
    let partitions = &image.topic("t").expect("the topic").partitions;
    let raw = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect();
    partitions
        .iter()
        .map(|partition| raw(&partition.replicas))
        .collect()
}

fn times_first(placed: &[Vec<i32>], id: i32) -> usize {
    placed.iter().filter(|replicas| replicas[0] == id).count()
}

#[test]
fn every_partition_spans_as_many_racks_as_it_can() {
    let brokers = [(1, "a"), (2, "a"), (3, "b"), (4, "b"), (5, "c"), (6, "c")];
    let placed = placed(&cluster(&brokers), 60, 3);
    let rack = |id: &i32| (id - 1) / 2;
    for replicas in &placed {
        let racks: BTreeSet<i32> = replicas.iter().map(rack).collect();
        assert_eq!(racks.len(), 3, "{replicas:?}");
    }
    for id in 1..=6 {
        assert_eq!(times_first(&placed, id), 10, "broker {id}: {placed:?}");
    }
    // Not the same few groups again and again.
    let distinct: BTreeSet<&Vec<i32>> = placed.iter().collect();
    assert!(distinct.len() > 12, "{distinct:?}");
}

#[test]
fn more_replicas_than_racks_fill_the_racks_evenly() {
    let brokers = [(1, "a"), (2, "a"), (3, "b"), (4, "b")];
    for replicas in placed(&cluster(&brokers), 8, 4) {
        let all: BTreeSet<i32> = replicas.iter().copied().collect();
        assert_eq!(all, BTreeSet::from([1, 2, 3, 4]), "{replicas:?}");
    }
    for replicas in placed(&cluster(&[(1, "a"), (2, "a"), (3, "a"), (4, "b")]), 8, 2) {
        assert!(replicas.contains(&4), "one of each rack: {replicas:?}");
    }
}

#[test]
fn brokers_without_a_rack_take_turns() {
    let placed = placed(&cluster(&[(1, ""), (2, ""), (3, "")]), 30, 2);
    for id in 1..=3 {
        assert_eq!(times_first(&placed, id), 10, "broker {id}");
    }
    for replicas in &placed {
        assert_ne!(replicas[0], replicas[1]);
    }
}

#[test]
fn fenced_brokers_get_replicas_only_when_the_others_are_too_few_and_never_the_first() {
    let image = fence(&cluster(&[(1, "a"), (2, "a"), (3, "a")]), 2);
    for replicas in placed(&image, 12, 2) {
        assert!(!replicas.contains(&2), "{replicas:?}");
    }
    for replicas in placed(&image, 12, 3) {
        assert_ne!(replicas[0], 2);
        assert!(replicas.contains(&2), "{replicas:?}");
    }
}

#[test]
fn another_rack_counts_for_more_than_that_its_only_broker_is_fenced() {
    let image = fence(&cluster(&[(1, "a"), (2, "a"), (3, "b")]), 3);
    for replicas in placed(&image, 12, 2) {
        assert_eq!(replicas[1], 3, "{replicas:?}");
    }
}

#[test]
fn a_broker_that_is_stopping_gets_nothing() {
    let image = cluster(&[(1, ""), (2, ""), (3, "")]);
    let stopping =
        super::super::broker_changes::begin_controlled_shutdown(&image, &RULES, BrokerId(3));
    let image = apply(&image, &stopping.expect("registered"));
    for replicas in placed(&image, 6, 2) {
        assert!(!replicas.contains(&3), "{replicas:?}");
    }
}
