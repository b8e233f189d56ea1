//! What the controller answers to a leader that proposes an ISR, and to the other requests of a broker: a hand-made
//! broker leads.

use compat_tests::cluster::{Cluster, HandMadeBroker, for_each_cluster};
use compat_tests::raw::code;
use kafka_protocol::messages::alter_partition_response::PartitionData;
use kafka_protocol::messages::{
    AllocateProducerIdsRequest, AlterPartitionRequest, BrokerId, UnregisterBrokerRequest,
};
use uuid::Uuid;

use crate::registration::{small, wait_until_shown};
use crate::support::{elect_preferred, reassign};

const TOPIC: &str = "proposed";

/// Topic that hand-made broker 101 leads and broker 1 and hand-made broker 102 follow, all in sync.
fn led_by_hand(cluster: &Cluster) -> (HandMadeBroker, HandMadeBroker, Uuid) {
    let leader = HandMadeBroker::running(cluster, 101);
    let follower = HandMadeBroker::running(cluster, 102);
    wait_until_shown(cluster, 101, true);
    wait_until_shown(cluster, 102, true);
    let topic = cluster.create_topic(TOPIC, &[&[101, 1, 102]], &[]);
    (leader, follower, topic)
}

#[track_caller]
fn accepted(broker: &mut HandMadeBroker, request: &AlterPartitionRequest) -> PartitionData {
    let answer = broker.alter_partition(request).unwrap().unwrap();
    assert_eq!(answer.error_code, code::NONE, "{answer:?}");
    answer
}

#[track_caller]
fn refused(broker: &mut HandMadeBroker, request: &AlterPartitionRequest) -> i16 {
    let answer = broker.alter_partition(request).unwrap().unwrap();
    assert_ne!(answer.error_code, code::NONE, "{answer:?}");
    answer.error_code
}

#[test]
fn isr_is_changed_by_compare_and_swap_on_both_epochs() {
    for_each_cluster(&small(), |cluster| {
        let (mut leader, follower, topic) = led_by_hand(cluster);
        let me = (101, leader.epoch);
        let shrink = leader.isr_change(topic, 0, 0, &[me, (102, follower.epoch)]);
        let answer = accepted(&mut leader, &shrink);
        assert_eq!(
            (
                answer.leader_id.0,
                answer.leader_epoch,
                answer.partition_epoch
            ),
            (101, 0, 1)
        );
        assert_eq!(answer.isr, [BrokerId(101), BrokerId(102)]);
        let view = cluster.wait_for_leader_and_isr(TOPIC, 0, 101, &[101, 102]);
        assert_eq!(view.leader_epoch, 0, "{view:?}");

        // The answer was lost: the same again is too late.
        assert_eq!(refused(&mut leader, &shrink), code::INVALID_UPDATE_VERSION);
        // What is already so is not written.
        let same = leader.isr_change(topic, 0, 1, &[me, (102, follower.epoch)]);
        assert_eq!(accepted(&mut leader, &same).partition_epoch, 1);

        // Broker 1 comes back with the epoch that only its registration knows, which need not be said.
        let expand = leader.isr_change(topic, 0, 1, &[me, (1, -1), (102, -1)]);
        assert_eq!(accepted(&mut leader, &expand).partition_epoch, 2);
        cluster.wait_for_leader_and_isr(TOPIC, 0, 101, &[1, 101, 102]);

        let from_the_future = leader.isr_change(topic, 0, 3, &[me]);
        assert_eq!(refused(&mut leader, &from_the_future), code::NOT_CONTROLLER);
        let from_the_future = leader.isr_change(topic, 1, 2, &[me]);
        assert_eq!(refused(&mut leader, &from_the_future), code::NOT_CONTROLLER);

        // Two more leader epochs: broker 102 leads, and then 101 again.
        reassign(cluster, TOPIC, &[102, 101, 1]);
        assert_eq!(elect_preferred(cluster, TOPIC), code::NONE);
        cluster.wait_for_leader_and_isr(TOPIC, 0, 102, &[1, 101, 102]);
        reassign(cluster, TOPIC, &[101, 102, 1]);
        assert_eq!(elect_preferred(cluster, TOPIC), code::NONE);
        let view = cluster.wait_for_leader_and_isr(TOPIC, 0, 101, &[1, 101, 102]);
        let fenced = leader.isr_change(topic, view.leader_epoch - 1, 2, &[me]);
        assert_eq!(refused(&mut leader, &fenced), code::FENCED_LEADER_EPOCH);
    });
}

#[test]
fn impossible_isrs_are_refused_and_change_nothing() {
    for_each_cluster(&small(), |cluster| {
        let (mut leader, mut follower, topic) = led_by_hand(cluster);
        let stranger = HandMadeBroker::running(cluster, 103);
        let me = (101, leader.epoch);
        let with_me = |leader: &HandMadeBroker, other: (i32, i64)| {
            leader.isr_change(topic, 0, 0, &[me, other])
        };
        for (what, isr) in [
            ("one that is no replica", vec![me, (103, stranger.epoch)]),
            ("one twice", vec![me, (1, -1), (1, -1)]),
            ("without its leader", vec![(1, -1), (102, -1)]),
            ("nobody", vec![]),
        ] {
            let request = leader.isr_change(topic, 0, 0, &isr);
            assert_eq!(
                refused(&mut leader, &request),
                code::INVALID_REQUEST,
                "{what}"
            );
        }
        let by_a_follower = follower.isr_change(topic, 0, 0, &[(102, follower.epoch), me]);
        assert_eq!(
            refused(&mut follower, &by_a_follower),
            code::INVALID_REQUEST
        );
        let earlier_life = with_me(&leader, (102, follower.epoch - 1));
        assert_eq!(
            refused(&mut leader, &earlier_life),
            code::INELIGIBLE_REPLICA
        );
        let mut recovering = with_me(&leader, (102, follower.epoch));
        recovering.topics[0].partitions[0].leader_recovery_state = 1;
        assert_eq!(refused(&mut leader, &recovering), code::INVALID_REQUEST);
        let mut no_such_topic = with_me(&leader, (1, -1));
        no_such_topic.topics[0].topic_id = Uuid::from_u128(77);
        assert_eq!(refused(&mut leader, &no_such_topic), code::UNKNOWN_TOPIC_ID);
        let mut no_such_partition = with_me(&leader, (1, -1));
        no_such_partition.topics[0].partitions[0].partition_index = 7;
        assert_eq!(
            refused(&mut leader, &no_such_partition),
            code::UNKNOWN_TOPIC_OR_PARTITION
        );
        let stale = with_me(&leader, (1, -1)).with_broker_epoch(leader.epoch - 1);
        assert_eq!(
            leader.alter_partition(&stale).unwrap(),
            Err(code::STALE_BROKER_EPOCH)
        );
        let unknown = with_me(&leader, (1, -1)).with_broker_id(BrokerId(999));
        assert_eq!(
            leader.alter_partition(&unknown).unwrap(),
            Err(code::STALE_BROKER_EPOCH)
        );
        let view = cluster.partition(1, TOPIC, 0).unwrap();
        assert_eq!(view.isr, [1, 101, 102]);

        // A fenced broker cannot come in, whatever its leader thinks.
        follower.fall_silent();
        cluster.wait_for_leader_and_isr(TOPIC, 0, 101, &[1, 101]);
        let fenced = leader.isr_change(topic, 0, 1, &[me, (1, -1), (102, follower.epoch)]);
        assert_eq!(refused(&mut leader, &fenced), code::INELIGIBLE_REPLICA);
    });
}

#[test]
fn blocks_of_producer_ids_follow_each_other_and_go_only_to_living_brokers() {
    for_each_cluster(&small(), |cluster| {
        let broker = HandMadeBroker::running(cluster, 101);
        let controller = cluster.controller_address(3001).unwrap();
        let mut controller = compat_tests::raw::Connection::open(controller).unwrap();
        let mut ask = |epoch: i64| {
            let request = AllocateProducerIdsRequest::default()
                .with_broker_id(BrokerId(101))
                .with_broker_epoch(epoch);
            controller.call(0, &request).unwrap()
        };
        let mut next = None;
        for _ in 0..3 {
            let block = ask(broker.epoch);
            assert_eq!(
                (block.error_code, block.producer_id_len),
                (code::NONE, 1000),
                "{block:?}"
            );
            let first = block.producer_id_start.0;
            // Broker 1 takes blocks too.
            assert!(
                next.is_none_or(|next| first >= next && (first - next) % 1000 == 0),
                "{block:?}"
            );
            next = Some(first + 1000);
        }
        assert_eq!(ask(broker.epoch - 1).error_code, code::STALE_BROKER_EPOCH);
    });
}

#[test]
fn unregistered_broker_is_gone_from_isr_and_metadata_and_may_register_again() {
    for_each_cluster(&small(), |cluster| {
        let (_leader, mut follower, _) = led_by_hand(cluster);
        let mut connection = cluster.connect(1).unwrap();
        let mut unregister = |id| {
            let request = UnregisterBrokerRequest::default().with_broker_id(BrokerId(id));
            connection.call(0, &request).unwrap().error_code
        };
        assert_eq!(unregister(999), code::BROKER_ID_NOT_REGISTERED);
        follower.fall_silent();
        assert_eq!(unregister(102), code::NONE);
        cluster.wait_for_leader_and_isr(TOPIC, 0, 101, &[1, 101]);
        wait_until_shown(cluster, 102, false);
        let reply = follower.send_heartbeat(&follower.heartbeat()).unwrap();
        assert_eq!(reply.error_code, code::STALE_BROKER_EPOCH, "{reply:?}");
        follower.incarnation = Uuid::new_v4();
        assert_eq!(follower.register().unwrap(), code::NONE);
        follower.unfence().unwrap();
        wait_until_shown(cluster, 102, true);
    });
}
