use super::*;

const SETTINGS: LifecycleSettings = LifecycleSettings {
    heartbeat_interval_ms: 2000,
    session_timeout_ms: 9000,
    registration_timeout_ms: 60_000,
};

fn answer(is_caught_up: bool, is_fenced: bool, should_shut_down: bool) -> HeartbeatAnswer {
    HeartbeatAnswer {
        is_caught_up,
        is_fenced,
        should_shut_down,
    }
}

const FENCED: (bool, bool, bool) = (true, true, false);
const UNFENCED: (bool, bool, bool) = (true, false, false);

fn told(lifecycle: &mut Lifecycle, (caught_up, fenced, shut_down): (bool, bool, bool), now: i64) {
    lifecycle.on_heartbeat(answer(caught_up, fenced, shut_down), now);
}

/// A broker of epoch 50 that was unfenced at time 0.
fn running() -> Lifecycle {
    let mut lifecycle = Lifecycle::new(SETTINGS, 49, 0);
    lifecycle.on_ready_to_unfence(0);
    assert_eq!(lifecycle.next(0), Some(Communication::Register));
    lifecycle.on_metadata_offset(50, 0);
    lifecycle.on_registered(50, 0);
    assert!(lifecycle.next(0).is_some());
    told(&mut lifecycle, UNFENCED, 0);
    assert_eq!(lifecycle.state(), BrokerState::Running);
    lifecycle
}

fn heartbeat(metadata_offset: i64, want_fence: bool, want_shut_down: bool) -> Communication {
    Communication::Heartbeat {
        broker_epoch: 50,
        metadata_offset,
        want_fence,
        want_shut_down,
    }
}

#[test]
fn a_ready_broker_is_unfenced_by_its_first_heartbeat() {
    let mut lifecycle = Lifecycle::new(SETTINGS, 49, 0);
    lifecycle.on_ready_to_unfence(0);
    assert_eq!(lifecycle.next(0), Some(Communication::Register));
    assert_eq!(lifecycle.next(0), None, "one at a time");
    lifecycle.on_metadata_offset(50, 3);
    lifecycle.on_registered(50, 3);
    assert_eq!(lifecycle.due_ms(), Some(3));
    assert_eq!(lifecycle.next(3), Some(heartbeat(50, false, false)));
    told(&mut lifecycle, UNFENCED, 5);
    assert_eq!(lifecycle.state(), BrokerState::Running);
    assert_eq!(lifecycle.due_ms(), Some(2005));
}

#[test]
fn the_first_heartbeat_waits_for_the_registration_to_be_seen() {
    let mut lifecycle = Lifecycle::new(SETTINGS, 10, 0);
    lifecycle.on_ready_to_unfence(0);
    assert!(lifecycle.next(0).is_some());
    lifecycle.on_registered(50, 5);
    assert_eq!(lifecycle.due_ms(), Some(2005), "nothing to tell before");
    lifecycle.on_metadata_offset(49, 10);
    assert_eq!(lifecycle.next(10), None);
    lifecycle.on_metadata_offset(55, 20);
    assert_eq!(lifecycle.next(20), Some(heartbeat(55, false, false)));
}

#[test]
fn a_broker_that_is_not_ready_asks_to_stay_fenced_until_it_is() {
    let mut lifecycle = Lifecycle::new(SETTINGS, 60, 0);
    assert!(lifecycle.next(0).is_some());
    lifecycle.on_registered(50, 0);
    assert_eq!(lifecycle.next(0), Some(heartbeat(60, true, false)));
    told(&mut lifecycle, FENCED, 1);
    assert_eq!(lifecycle.state(), BrokerState::Recovery);
    assert_eq!(lifecycle.due_ms(), Some(2001), "nothing to wait for");
    lifecycle.on_ready_to_unfence(500);
    assert_eq!(lifecycle.next(500), Some(heartbeat(60, false, false)));
    told(&mut lifecycle, UNFENCED, 501);
    assert_eq!(lifecycle.state(), BrokerState::Running);
}

#[test]
fn a_broker_that_became_ready_during_a_heartbeat_sends_another_at_once() {
    let mut lifecycle = Lifecycle::new(SETTINGS, 60, 0);
    assert!(lifecycle.next(0).is_some());
    lifecycle.on_registered(50, 0);
    assert!(lifecycle.next(0).is_some());
    lifecycle.on_ready_to_unfence(1);
    told(&mut lifecycle, FENCED, 2);
    assert_eq!(lifecycle.next(2), Some(heartbeat(60, false, false)));
}

#[test]
fn while_it_waits_to_be_unfenced_a_broker_asks_often_then_less_often() {
    let mut lifecycle = Lifecycle::new(SETTINGS, 60, 0);
    lifecycle.on_ready_to_unfence(0);
    assert!(lifecycle.next(0).is_some());
    lifecycle.on_registered(50, 0);
    let mut now = 0;
    let mut rests = Vec::new();
    for _ in 0..10 {
        assert!(lifecycle.next(now).is_some());
        told(&mut lifecycle, FENCED, now);
        let due = lifecycle.due_ms().unwrap();
        rests.push(due - now);
        now = due;
    }
    assert_eq!(rests, [10, 20, 40, 80, 160, 320, 640, 1280, 2000, 2000]);
}

#[test]
fn a_running_broker_that_was_fenced_asks_to_be_unfenced_soon() {
    let mut lifecycle = running();
    assert!(lifecycle.next(9000).is_some());
    told(&mut lifecycle, FENCED, 9001);
    assert_eq!(lifecycle.state(), BrokerState::Running);
    assert_eq!(lifecycle.due_ms(), Some(9011));
}

#[test]
fn a_refused_registration_is_tried_again_until_the_time_is_over() {
    let mut lifecycle = Lifecycle::new(SETTINGS, 0, 0);
    let (mut now, mut attempts) = (0, 0);
    loop {
        if let Err(error) = lifecycle.check(now) {
            assert_eq!(error, RegistrationTimedOut(60_000));
            break;
        }
        if lifecycle.next(now).is_some() {
            attempts += 1;
            // DUPLICATE_BROKER_REGISTRATION: the former run's session has not expired.
            lifecycle.on_failure(now);
        }
        now = lifecycle.due_ms().unwrap();
    }
    assert_eq!(now, 60_000);
    assert!((30..40).contains(&attempts), "{attempts} attempts");
    assert_eq!(lifecycle.state(), BrokerState::ShuttingDown);
    assert_eq!(lifecycle.due_ms(), None);
    assert_eq!(lifecycle.next(100_000), None);
}

#[test]
fn the_registration_times_out_while_its_request_is_on_its_way() {
    let mut lifecycle = Lifecycle::new(SETTINGS, 0, 0);
    assert!(lifecycle.next(0).is_some());
    assert_eq!(lifecycle.due_ms(), Some(60_000));
    assert!(lifecycle.check(59_999).is_ok());
    assert!(lifecycle.check(60_000).is_err());
}

#[test]
fn a_failed_heartbeat_is_sent_again_sooner_than_the_next_would_be() {
    let mut lifecycle = running();
    let mut now = 2000;
    let mut rests = Vec::new();
    for _ in 0..6 {
        assert!(lifecycle.next(now).is_some());
        lifecycle.on_failure(now);
        let due = lifecycle.due_ms().unwrap();
        rests.push(due - now);
        now = due;
    }
    assert_eq!(rests, [100, 200, 400, 800, 1600, 2000]);
    assert!(lifecycle.next(now).is_some());
    told(&mut lifecycle, UNFENCED, now);
    assert_eq!(lifecycle.due_ms(), Some(now + 2000));
}

#[test]
fn a_broker_without_an_answered_heartbeat_for_a_session_may_be_fenced() {
    let mut lifecycle = Lifecycle::new(SETTINGS, 0, 0);
    assert_eq!(lifecycle.session_end_ms(), None, "not registered yet");
    assert!(lifecycle.next(0).is_some());
    lifecycle.on_registered(50, 300);
    assert_eq!(lifecycle.session_end_ms(), Some(9000));
    let mut lifecycle = running();
    assert_eq!(lifecycle.session_end_ms(), Some(9000));
    // From when it was sent: the controller may have counted from then.
    assert!(lifecycle.next(2000).is_some());
    told(&mut lifecycle, UNFENCED, 5000);
    assert_eq!(lifecycle.session_end_ms(), Some(11_000));
    assert!(lifecycle.next(7000).is_some());
    lifecycle.on_failure(8000);
    assert_eq!(lifecycle.session_end_ms(), Some(11_000));
    assert!(lifecycle.next(8100).is_some());
    told(&mut lifecycle, FENCED, 8200);
    assert_eq!(lifecycle.session_end_ms(), None, "it knows");
    assert!(lifecycle.next(8210).is_some());
    told(&mut lifecycle, UNFENCED, 8300);
    assert_eq!(lifecycle.session_end_ms(), Some(17_210));
}

#[test]
fn a_broker_whose_place_another_takes_before_it_runs_ends() {
    let mut lifecycle = Lifecycle::new(SETTINGS, 0, 0);
    assert!(lifecycle.next(0).is_some());
    lifecycle.on_registered(50, 0);
    lifecycle.on_metadata_offset(50, 100);
    assert!(lifecycle.next(100).is_some());
    lifecycle.on_stale_epoch(200);
    assert_eq!(lifecycle.state(), BrokerState::ShuttingDown);
    assert!(lifecycle.is_superseded());
    // One that runs is silent, and asks again, as in Kafka.
    let mut lifecycle = running();
    assert!(lifecycle.next(2000).is_some());
    lifecycle.on_stale_epoch(2100);
    assert_eq!(lifecycle.state(), BrokerState::Running);
    assert_eq!(lifecycle.session_end_ms(), None);
    assert!(lifecycle.next(2200).is_some());
}

#[test]
fn a_controlled_shutdown_waits_until_the_controller_lets_the_broker_go() {
    let mut lifecycle = running();
    lifecycle.on_begin_controlled_shutdown(100);
    assert_eq!(lifecycle.state(), BrokerState::PendingControlledShutdown);
    let mut now = 100;
    let mut rests = Vec::new();
    for _ in 0..4 {
        assert_eq!(lifecycle.next(now), Some(heartbeat(50, false, true)));
        told(&mut lifecycle, UNFENCED, now);
        rests.push(lifecycle.due_ms().unwrap() - now);
        now = lifecycle.due_ms().unwrap();
    }
    assert_eq!(rests, [50, 100, 200, 400]);
    assert!(lifecycle.next(now).is_some());
    told(&mut lifecycle, (true, false, true), now);
    assert_eq!(lifecycle.state(), BrokerState::ShuttingDown);
    assert_eq!(lifecycle.next(now + 10_000), None);
}

#[test]
fn a_shutdown_that_begins_during_a_heartbeat_is_told_right_after_it() {
    let mut lifecycle = running();
    assert!(lifecycle.next(2000).is_some());
    lifecycle.on_begin_controlled_shutdown(2001);
    assert_eq!(lifecycle.next(2001), None);
    told(&mut lifecycle, UNFENCED, 2003);
    assert_eq!(lifecycle.next(2003), Some(heartbeat(50, false, true)));
}

#[test]
fn a_broker_that_does_not_run_yet_stops_without_being_let_go() {
    let mut lifecycle = Lifecycle::new(SETTINGS, 0, 0);
    assert!(lifecycle.next(0).is_some());
    lifecycle.on_begin_controlled_shutdown(1);
    assert_eq!(lifecycle.state(), BrokerState::ShuttingDown);
    // The answer that was under way changes nothing.
    lifecycle.on_registered(50, 2);
    assert_eq!(lifecycle.state(), BrokerState::ShuttingDown);
    assert_eq!(lifecycle.next(2000), None);
}
