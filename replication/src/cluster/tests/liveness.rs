//! Sessions and heartbeats: scenarios 35 to 37.

use highwater_storage::types::BrokerEpoch;

use super::super::heartbeat::{
    BrokerControlState, BrokerHeartbeat, HeartbeatReply, broker_heartbeat,
};
use super::super::liveness::{BrokerLiveness, LivenessConfig};
use super::*;

const SESSION_MS: i64 = 9000;

/// A controller to which no broker has spoken for long.
pub(super) fn idle(image: &ClusterImage) -> BrokerLiveness {
    BrokerLiveness::new(LivenessConfig::new(SESSION_MS), image, -1_000_000)
}

fn epoch(image: &ClusterImage, id: i32) -> BrokerEpoch {
    image.broker(BrokerId(id)).expect("registered").epoch
}

/// A controller that has just heard of every broker, which have applied all metadata.
fn fresh(image: &ClusterImage) -> BrokerLiveness {
    let mut liveness = BrokerLiveness::new(LivenessConfig::new(SESSION_MS), image, 0);
    for broker in image.brokers().values() {
        liveness.on_heartbeat(image, broker.id, broker.epoch, image.offset(), 0);
    }
    liveness
}

fn heartbeat(image: &ClusterImage, id: i32) -> BrokerHeartbeat {
    BrokerHeartbeat {
        id: BrokerId(id),
        epoch: epoch(image, id),
        current_metadata_offset: image.offset(),
        want_fence: false,
        want_shut_down: false,
        offline_log_dirs: Vec::new(),
    }
}

fn beat(
    image: &ClusterImage,
    liveness: &BrokerLiveness,
    heartbeat: &BrokerHeartbeat,
) -> (ClusterImage, HeartbeatReply) {
    let (records, reply) =
        broker_heartbeat(image, &RULES, liveness, heartbeat).expect("a good heartbeat");
    (apply(image, &records), reply)
}

#[test]
fn a_broker_is_unfenced_once_it_has_applied_its_own_registration() {
    // 36.
    let image = super::registration::restart(&cluster_of(&[2]), 1, None);
    let liveness = fresh(&image);
    let behind = BrokerHeartbeat {
        current_metadata_offset: epoch(&image, 1).0 - 1,
        ..heartbeat(&image, 1)
    };
    let (same, reply) = beat(&image, &liveness, &behind);
    assert_eq!(
        (same, reply.is_caught_up, reply.is_fenced()),
        (image.clone(), false, true)
    );
    let waiting = BrokerHeartbeat {
        want_fence: true,
        ..heartbeat(&image, 1)
    };
    let (same, reply) = beat(&image, &liveness, &waiting);
    assert_eq!(
        (same, reply.is_caught_up, reply.is_fenced()),
        (image.clone(), true, true)
    );
    let (unfenced, reply) = beat(&image, &liveness, &heartbeat(&image, 1));
    assert_eq!((reply.is_caught_up, reply.is_fenced()), (true, false));
    assert!(unfenced.is_active(BrokerId(1)));
    // A broker in service that heartbeats changes nothing.
    let (same, _) = beat(&unfenced, &liveness, &heartbeat(&unfenced, 1));
    assert_eq!(same, unfenced);
}

#[test]
fn a_heartbeat_of_an_earlier_run_or_a_stranger_is_refused() {
    let image = cluster_of(&[1]);
    let liveness = fresh(&image);
    let stale = BrokerHeartbeat {
        epoch: BrokerEpoch(0),
        ..heartbeat(&image, 1)
    };
    let refused = broker_heartbeat(&image, &RULES, &liveness, &stale);
    assert!(
        matches!(refused, Err(ClusterError::StaleBrokerEpoch(_))),
        "{refused:?}"
    );
    let stranger = BrokerHeartbeat {
        id: BrokerId(9),
        ..heartbeat(&image, 1)
    };
    assert!(broker_heartbeat(&image, &RULES, &liveness, &stranger).is_err());
}

#[test]
fn controlled_shutdown_ends_when_every_active_broker_knows_of_the_move() {
    // 37.
    let image = with_replicas(&cluster_of(&[1, 2, 3]), "t", &[&[1, 2, 3]], &[]);
    let mut liveness = fresh(&image);
    let stop = |image: &ClusterImage| BrokerHeartbeat {
        want_shut_down: true,
        ..heartbeat(image, 1)
    };
    let (moving, reply) = beat(&image, &liveness, &stop(&image));
    assert_eq!(reply.state, BrokerControlState::ControlledShutdown);
    assert_eq!(reply.controlled_shutdown_offset, Some(moving.offset()));
    assert_eq!(
        (reply.is_fenced(), reply.should_shut_down()),
        (false, false)
    );
    assert_eq!(state(&moving), (vec![2, 3], vec![], vec![], 2, 1, 1));
    let id = BrokerId(1);
    liveness.on_controlled_shutdown(id, epoch(&image, 1), moving.offset());

    // One of the others has not applied it.
    liveness.on_heartbeat(&image, BrokerId(2), epoch(&image, 2), moving.offset(), 10);
    let (same, reply) = beat(&moving, &liveness, &stop(&moving));
    assert_eq!((&same, reply.should_shut_down()), (&moving, false));
    liveness.on_heartbeat(&image, BrokerId(3), epoch(&image, 3), moving.offset(), 20);
    let (gone, reply) = beat(&moving, &liveness, &stop(&moving));
    assert_eq!((reply.is_fenced(), reply.should_shut_down()), (true, true));
    assert!(gone.broker(id).expect("registered").fenced);
    // Its process may start again at once.
    assert!(liveness.has_live_session(id, epoch(&image, 1), 30));
    liveness.on_session_end(id, epoch(&image, 1));
    assert!(!liveness.has_live_session(id, epoch(&image, 1), 30));
}

#[test]
fn a_controlled_shutdown_begun_under_another_controller_ends_too() {
    let image = with_replicas(&cluster_of(&[1, 2]), "t", &[&[1, 2]], &[]);
    let stop = |image: &ClusterImage| BrokerHeartbeat {
        want_shut_down: true,
        ..heartbeat(image, 1)
    };
    let (moving, _) = beat(&image, &fresh(&image), &stop(&image));
    let mut liveness = fresh(&moving);
    let (same, reply) = beat(&moving, &liveness, &stop(&moving));
    assert_eq!(
        (&same, reply.state),
        (&moving, BrokerControlState::ControlledShutdown)
    );
    let offset = reply.controlled_shutdown_offset.expect("told");
    liveness.on_controlled_shutdown(BrokerId(1), epoch(&image, 1), offset);
    let (_, reply) = beat(&moving, &liveness, &stop(&moving));
    assert!(reply.should_shut_down());
}

#[test]
fn a_broker_that_leads_nothing_or_is_fenced_stops_at_once() {
    let image = cluster_of(&[1, 2]);
    let liveness = fresh(&image);
    let stop = |image: &ClusterImage| BrokerHeartbeat {
        want_shut_down: true,
        ..heartbeat(image, 1)
    };
    let (fenced, reply) = beat(&image, &liveness, &stop(&image));
    assert!(reply.should_shut_down());
    assert!(fenced.broker(BrokerId(1)).expect("registered").fenced);
    let (same, reply) = beat(&fenced, &liveness, &stop(&fenced));
    assert_eq!((same, reply.should_shut_down()), (fenced.clone(), true));
    // By its own wish, also when it leads.
    let leading = with_replicas(&image, "t", &[&[1, 2]], &[]);
    let at_once = BrokerHeartbeat {
        want_fence: true,
        ..stop(&leading)
    };
    let (after, reply) = beat(&leading, &liveness, &at_once);
    assert!(reply.should_shut_down());
    assert_eq!(state(&after), (vec![2], vec![], vec![], 2, 1, 1));
    let only_fence = BrokerHeartbeat {
        want_fence: true,
        ..heartbeat(&leading, 1)
    };
    let (_, reply) = beat(&leading, &liveness, &only_fence);
    assert_eq!(reply.state, BrokerControlState::Fenced);
}

#[test]
fn the_only_broker_can_stop_though_nobody_can_take_its_partitions() {
    let image = with_replicas(&cluster_of(&[1]), "t", &[&[1]], &[]);
    let mut liveness = fresh(&image);
    let stop = |image: &ClusterImage| BrokerHeartbeat {
        want_shut_down: true,
        ..heartbeat(image, 1)
    };
    let (moving, reply) = beat(&image, &liveness, &stop(&image));
    assert_eq!(reply.state, BrokerControlState::ControlledShutdown);
    assert_eq!(state(&moving), (vec![], vec![1], vec![1], -1, 1, 1));
    liveness.on_controlled_shutdown(BrokerId(1), epoch(&image, 1), moving.offset());
    let (gone, reply) = beat(&moving, &liveness, &stop(&moving));
    assert!(reply.should_shut_down());
    // And leads again after a clean start.
    let back = super::registration::restart(&gone, 1, Some(epoch(&image, 1)));
    let back = unfence(&back, 1);
    assert_eq!(state(&back), (vec![1], vec![], vec![], 1, 2, 2));
    assert!(!partition(&back).recovering);
}

#[test]
fn a_heartbeat_that_changes_more_than_one_thing_is_judged_in_steps() {
    let image = with_replicas(&cluster_of(&[1, 2]), "t", &[&[1, 2]], &[]);
    let both = BrokerHeartbeat {
        want_shut_down: true,
        offline_log_dirs: vec![directory(1)],
        ..heartbeat(&image, 1)
    };
    let (after, _) = beat(&image, &fresh(&image), &both);
    assert_eq!(state(&after), (vec![2], vec![], vec![], 2, 1, 1));
}

#[test]
fn silence_ends_a_session_and_one_broker_is_fenced_at_a_time() {
    let image = cluster_of(&[1, 2, 3]);
    let mut liveness = fresh(&image);
    liveness.on_heartbeat(&image, BrokerId(2), epoch(&image, 2), 1, 500);
    liveness.on_heartbeat(&image, BrokerId(3), epoch(&image, 3), 1, 1000);
    assert_eq!(liveness.expired_broker(&image, SESSION_MS), None);
    assert_eq!(
        liveness.expired_broker(&image, SESSION_MS + 600),
        Some(BrokerId(1))
    );
    let image = fence(&image, 1);
    assert_eq!(
        liveness.expired_broker(&image, SESSION_MS + 600),
        Some(BrokerId(2))
    );
    let image = fence(&image, 2);
    assert_eq!(liveness.expired_broker(&image, SESSION_MS + 600), None);
    assert_eq!(
        liveness.expired_broker(&image, SESSION_MS + 1001),
        Some(BrokerId(3))
    );
}

#[test]
fn a_new_controller_gives_every_broker_a_whole_session() {
    let image = cluster_of(&[1, 2]);
    let now_ms = 1_000_000;
    let mut liveness = BrokerLiveness::new(LivenessConfig::new(SESSION_MS), &image, now_ms);
    assert_eq!(liveness.expired_broker(&image, now_ms + SESSION_MS), None);
    assert!(
        liveness
            .expired_broker(&image, now_ms + SESSION_MS + 1)
            .is_some()
    );
    // Also one that an earlier controller unfenced meanwhile.
    let image = with_broker(&image, 3);
    let now_ms = now_ms + SESSION_MS;
    liveness.on_heartbeat(&image, BrokerId(1), epoch(&image, 1), 1, now_ms);
    liveness.on_heartbeat(&image, BrokerId(2), epoch(&image, 2), 1, now_ms);
    assert_eq!(liveness.expired_broker(&image, now_ms), None);
    assert_eq!(liveness.expired_broker(&image, now_ms + SESSION_MS), None);
}

#[test]
fn a_heartbeat_of_an_earlier_run_does_not_keep_the_broker_alive() {
    let image = cluster_of(&[1]);
    let old = epoch(&image, 1);
    let image = unfence(&super::registration::restart(&image, 1, None), 1);
    let mut liveness = fresh(&image);
    liveness.on_heartbeat(&image, BrokerId(1), old, 1, SESSION_MS);
    assert_eq!(
        liveness.expired_broker(&image, SESSION_MS + 1),
        Some(BrokerId(1))
    );
}

#[test]
fn a_broker_whose_connection_ended_is_fenced_early_unless_it_comes_back() {
    let image = cluster_of(&[1, 2]);
    let mut liveness = fresh(&image);
    let (one, two) = (BrokerId(1), BrokerId(2));
    let grace = liveness.config().disconnect_grace_ms.expect("by default");
    liveness.on_disconnected(one, epoch(&image, 1), 100);
    liveness.on_disconnected(two, epoch(&image, 2), 100);
    liveness.on_heartbeat(&image, two, epoch(&image, 2), 1, 200);
    assert_eq!(liveness.expired_broker(&image, 100 + grace), None);
    assert_eq!(liveness.expired_broker(&image, 101 + grace), Some(one));
    let fenced = fence(&image, 1);
    assert_eq!(liveness.expired_broker(&fenced, 101 + grace), None);

    // It was alive after all: from now on only silence counts against it.
    let back_ms = 102 + grace;
    liveness.on_heartbeat(&image, one, epoch(&image, 1), 1, back_ms);
    liveness.on_disconnected(one, epoch(&image, 1), back_ms);
    liveness.on_heartbeat(&image, two, epoch(&image, 2), 1, back_ms);
    assert_eq!(liveness.expired_broker(&image, back_ms + SESSION_MS), None);
    liveness.on_heartbeat(&image, two, epoch(&image, 2), 1, back_ms + SESSION_MS);
    assert_eq!(
        liveness.expired_broker(&image, back_ms + SESSION_MS + 1),
        Some(one)
    );
}

#[test]
fn a_broker_whose_process_is_gone_is_fenced_without_grace() {
    let image = cluster_of(&[1, 2]);
    let mut liveness = fresh(&image);
    let (one, two) = (BrokerId(1), BrokerId(2));
    let (of_one, of_two) = (epoch(&image, 1), epoch(&image, 2));
    assert_eq!(liveness.suspects(&image), []);
    liveness.on_disconnected(one, of_one, 100);
    liveness.on_disconnected(two, of_two, 100);
    assert_eq!(liveness.suspects(&image), [(one, of_one), (two, of_two)]);
    // Heard of before the answer of those who looked.
    liveness.on_heartbeat(&image, two, of_two, 1, 101);
    liveness.on_process_gone(one, of_one);
    liveness.on_process_gone(two, of_two);
    assert_eq!(liveness.suspects(&image), []);
    assert_eq!(liveness.expired_broker(&image, 101), Some(one));
    assert_eq!(liveness.expired_broker(&fence(&image, 1), 101), None);

    // Whoever looked was wrong: from now on only silence counts against it.
    liveness.on_heartbeat(&image, one, of_one, 1, 102);
    liveness.on_disconnected(one, of_one, 103);
    liveness.on_heartbeat(&image, two, of_two, 1, 103);
    assert_eq!(liveness.suspects(&image), []);
    assert_eq!(liveness.expired_broker(&image, 102 + SESSION_MS), None);
}

#[test]
fn a_process_of_an_earlier_run_that_is_gone_says_nothing_of_this_one() {
    let image = cluster_of(&[1]);
    let old = epoch(&image, 1);
    let mut liveness = fresh(&image);
    liveness.on_disconnected(BrokerId(1), old, 100);
    let image = unfence(&super::registration::restart(&image, 1, None), 1);
    assert_eq!(liveness.suspects(&image), []);
    liveness.on_registered(BrokerId(1), epoch(&image, 1), 101);
    liveness.on_process_gone(BrokerId(1), old);
    assert_eq!(liveness.expired_broker(&image, 101), None);
}
