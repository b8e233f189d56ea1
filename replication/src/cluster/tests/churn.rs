//! Random lives of a cluster: brokers come, go and crash, leaders propose ISRs, administrators move and elect. Whatever
//! happens, in whatever order, what must always hold holds.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::alter_partition::{IsrProposal, alter_partition};
use super::super::broker_changes::{begin_controlled_shutdown, fence_broker, unregister_broker};
use super::super::configs::{ConfigOperation, incremental_alter_configs};
use super::super::elect_leaders::{
    ElectionType, balance_leaders, elect_leaders, elect_unclean_leaders,
};
use super::super::reassign::{Reassignment, alter_partition_reassignments};
use super::super::topic_rules::OBSERVER_REPLICAS;
use super::*;

const BROKERS: i32 = 5;

#[derive(Debug, Clone)]
enum Event {
    Fence(i32),
    Unfence(i32),
    Restart(i32, bool),
    BeginShutdown(i32),
    Unregister(i32),
    /// The leader proposes its replicas whose bits are set, as far as they are replicas.
    Propose(usize, u8),
    Reassign(usize, u8),
    Cancel(usize),
    Elect(ElectionType),
    Balance,
    ElectUnclean,
    Set(&'static str, Option<String>),
}

fn event() -> impl Strategy<Value = Event> {
    let broker = 1..=BROKERS;
    let partition = 0usize..3;
    let min_isr = prop_oneof![
        Just(None),
        (1i32..4).prop_map(|value| Some(value.to_string()))
    ];
    let unclean = any::<bool>().prop_map(|value| Some(value.to_string()));
    let observers = prop_oneof![
        2 => Just(None),
        1 => (1..=BROKERS).prop_map(|id| Some(id.to_string()))
    ];
    prop_oneof![
        6 => broker.clone().prop_map(Event::Fence),
        8 => broker.clone().prop_map(Event::Unfence),
        4 => (broker.clone(), any::<bool>()).prop_map(|(id, clean)| Event::Restart(id, clean)),
        2 => broker.clone().prop_map(Event::BeginShutdown),
        1 => broker.prop_map(Event::Unregister),
        12 => (partition.clone(), any::<u8>()).prop_map(|(of, bits)| Event::Propose(of, bits)),
        3 => (partition.clone(), any::<u8>()).prop_map(|(of, bits)| Event::Reassign(of, bits)),
        2 => partition.prop_map(Event::Cancel),
        2 => prop_oneof![Just(ElectionType::Preferred), Just(ElectionType::Unclean)]
            .prop_map(Event::Elect),
        1 => Just(Event::Balance),
        1 => Just(Event::ElectUnclean),
        2 => min_isr.prop_map(|value| Event::Set("min.insync.replicas", value)),
        1 => unclean.prop_map(|value| Event::Set("unclean.leader.election.enable", value)),
        1 => observers.prop_map(|value| Event::Set(OBSERVER_REPLICAS, value)),
    ]
}

fn ids_of(bits: u8) -> Vec<i32> {
    (0..BROKERS)
        .filter(|bit| bits & (1 << bit) != 0)
        .map(|bit| bit + 1)
        .collect()
}

/// What the controller makes of an event; nothing when it refuses.
fn records(image: &ClusterImage, event: &Event) -> Vec<MetadataRecord> {
    match event {
        Event::Fence(id) => fence_broker(image, &RULES, BrokerId(*id)).unwrap_or_default(),
        Event::Unfence(id) => {
            let broker = image.broker(BrokerId(*id)).filter(|broker| broker.fenced);
            let Some(broker) = broker else {
                return Vec::new();
            };
            let unfenced = super::super::broker_changes::unfence_broker(
                image,
                &RULES,
                broker.id,
                broker.epoch,
            );
            unfenced.expect("registered with this epoch")
        }
        Event::Restart(id, clean) => {
            let previous = image.broker(BrokerId(*id)).map(|broker| broker.epoch);
            let request = super::super::registration::BrokerRegistrationRequest {
                incarnation_id: Uuid::from_u128(image.offset() as u128 + 900_000),
                previous_broker_epoch: previous.filter(|_| *clean),
                ..super::registration::request(*id)
            };
            let nobody = super::liveness::idle(image);
            let registered =
                super::super::registration::register_broker(image, &RULES, &nobody, request, 0);
            registered.expect("a good registration").0
        }
        Event::BeginShutdown(id) => {
            let is_active = image.is_active(BrokerId(*id));
            let begun = begin_controlled_shutdown(image, &RULES, BrokerId(*id));
            begun.ok().filter(|_| is_active).unwrap_or_default()
        }
        Event::Unregister(id) => {
            unregister_broker(image, &RULES, BrokerId(*id)).unwrap_or_default()
        }
        Event::Propose(index, bits) => propose(image, *index as i32, &ids_of(*bits)),
        Event::Reassign(index, bits) => {
            let ids = ids_of(*bits);
            reassign(image, *index as i32, (!ids.is_empty()).then_some(ids))
        }
        Event::Cancel(index) => reassign(image, *index as i32, None),
        Event::Elect(election_type) => {
            let elected = elect_leaders(image, &RULES, *election_type, None);
            elected.expect("judged one by one").0
        }
        Event::Balance => balance_leaders(image, &RULES, 100).0,
        Event::ElectUnclean => elect_unclean_leaders(image, &RULES, 100).0,
        Event::Set(key, value) => {
            let operation = match value {
                Some(value) => ConfigOperation::Set(value.clone()),
                None => ConfigOperation::Delete,
            };
            let operations = [((*key).to_owned(), operation)];
            let topic = ConfigResource::topic("t");
            incremental_alter_configs(image, &topic, &operations, &TestRules).unwrap_or_default()
        }
    }
}

fn propose(image: &ClusterImage, index: i32, isr: &[i32]) -> Vec<MetadataRecord> {
    let topic = image.topic("t").expect("the topic");
    let partition = topic.partition(index).expect("the partition");
    let Some(leader) = partition.leader else {
        return Vec::new();
    };
    let mut members: Vec<BrokerId> = vec![leader];
    for id in isr.iter().copied().map(BrokerId) {
        if partition.replicas.contains(&id) && id != leader {
            members.push(id);
        }
    }
    let with_epoch = |id: BrokerId| (id, image.broker(id).map(|broker| broker.epoch));
    let proposal = IsrProposal {
        topic_id: topic.id,
        partition: index,
        leader_epoch: partition.leader_epoch,
        partition_epoch: partition.partition_epoch,
        new_isr: members.into_iter().map(with_epoch).collect(),
        recovering: false,
    };
    let epoch = image.broker(leader).expect("a leader is registered").epoch;
    let judged = alter_partition(image, &RULES, leader, epoch, &[proposal]);
    judged.expect("a known sender").0
}

fn reassign(
    image: &ClusterImage,
    partition: i32,
    replicas: Option<Vec<i32>>,
) -> Vec<MetadataRecord> {
    let reassignment = Reassignment {
        topic: "t".to_owned(),
        partition,
        replicas,
    };
    let judged = alter_partition_reassignments(image, &RULES, &[reassignment], true);
    judged.expect("judged one by one").0
}

/// Leader, its epoch, and the partition epoch, of each partition.
fn epochs(image: &ClusterImage) -> BTreeMap<usize, (Option<BrokerId>, i32, i32)> {
    let partitions = &image.topic("t").expect("the topic").partitions;
    let state = |(index, partition): (usize, &std::sync::Arc<PartitionImage>)| {
        let epochs = (partition.leader_epoch.0, partition.partition_epoch.0);
        (index, (partition.leader, epochs.0, epochs.1))
    };
    partitions.iter().enumerate().map(state).collect()
}

fn assert_epochs_grow(before: &ClusterImage, after: &ClusterImage, event: &Event) {
    let before = epochs(before);
    for (index, (leader, leader_epoch, partition_epoch)) in epochs(after) {
        let (old_leader, old_leader_epoch, old_partition_epoch) = before[&index];
        let what = format!("partition {index} after {event:?}");
        assert!(leader_epoch >= old_leader_epoch, "{what}");
        assert!(partition_epoch >= old_partition_epoch, "{what}");
        assert!(
            leader == old_leader || leader_epoch > old_leader_epoch,
            "{what}"
        );
        assert!(
            leader_epoch == old_leader_epoch || partition_epoch > old_partition_epoch,
            "{what}"
        );
    }
}

/// Outside of unclean elections, whoever leads had all committed records: it was in the ISR, or eligible.
fn assert_leaders_have_all_records(before: &ClusterImage, after: &ClusterImage, event: &Event) {
    let (old, new) = (
        before.topic("t").expect("it"),
        after.topic("t").expect("it"),
    );
    for (old, new) in old.partitions.iter().zip(&new.partitions) {
        let Some(leader) = new.leader.filter(|leader| old.leader != Some(*leader)) else {
            continue;
        };
        let had_all = old.isr.contains(&leader) || old.eligible_leader_replicas.contains(&leader);
        assert!(
            had_all || new.recovering || comes_in_sync(event),
            "{event:?}: {old:?} {new:?}"
        );
    }
}

/// A proposal may let a replica into the ISR and make it the leader in one go, when that ends a reassignment.
fn comes_in_sync(event: &Event) -> bool {
    matches!(event, Event::Propose(..))
}

fn live(start: ClusterImage, events: &[Event]) {
    let replicas: [&[i32]; 3] = [&[1, 2, 3], &[3, 4, 5], &[2, 1, 4]];
    let mut image = with_replicas(&start, "t", &replicas, &[("min.insync.replicas", "2")]);
    for event in events {
        let records = records(&image, event);
        let next = apply(&image, &records);
        assert_invariants(&next);
        assert_epochs_grow(&image, &next, event);
        assert_leaders_have_all_records(&image, &next, event);
        image = next;
    }
    // What was written is what is read.
    let restored = apply(&ClusterImage::empty("test-cluster"), &image.to_records());
    assert_eq!(restored.topic("t"), image.topic("t"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_happens_the_rules_hold_with_eligible_leader_replicas(
        events in prop::collection::vec(event(), 1..80),
    ) {
        live(cluster_of(&[1, 2, 3, 4, 5]), &events);
    }

    #[test]
    fn whatever_happens_the_rules_hold_without_eligible_leader_replicas(
        events in prop::collection::vec(event(), 1..80),
    ) {
        live(without_elr(&cluster_of(&[1, 2, 3, 4, 5])), &events);
    }
}
