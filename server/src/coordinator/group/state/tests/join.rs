//! JoinGroup, heartbeats, leaving, time-outs.

use super::*;

#[test]
fn a_lone_member_leads_generation_one() {
    let mut h = Harness::without_delay();
    let token = h.join(newcomer("g", "a"));
    let reply = h.joined(token);
    assert_eq!(reply.error, None);
    assert_eq!(reply.generation, 1);
    assert_eq!(&*reply.leader, "a");
    assert_eq!(&*reply.member_id, "a");
    assert_eq!(reply.protocol_name.as_deref(), Some("range"));
    assert_eq!(reply.protocol_type.as_deref(), Some("consumer"));
    assert_eq!(reply.members.len(), 1);
    assert_eq!(h.state("g"), GroupState::CompletingRebalance);
}

#[test]
fn a_new_group_is_written_empty_as_kafka_does() {
    let mut h = Harness::without_delay();
    h.join(newcomer("g", "a"));
    let GroupRecord::GroupMetadata {
        group,
        value: Some(value),
    } = &h.log[0]
    else {
        panic!("{:?}", h.log);
    };
    assert_eq!(group, "g");
    assert_eq!(value.protocol_type, "");
    assert_eq!(value.generation, 0);
    assert_eq!(value.leader, None);
    assert_eq!(value.current_state_timestamp_ms, 1_000_000);
    assert_eq!(h.log.len(), 1);
}

#[test]
fn a_dynamic_member_must_come_back_with_its_id() {
    let mut h = Harness::without_delay();
    let known_id = |member_id: &str| JoinRequest {
        requires_known_member_id: true,
        ..newcomer("g", member_id)
    };
    let token = h.join(known_id("a"));
    assert_eq!(h.join_error(token), Some(ResponseError::MemberIdRequired));
    assert_eq!(&*h.joined(token).member_id, "a");
    assert_eq!(
        h.heartbeat("g", "a", 0),
        Err(ResponseError::UnknownMemberId)
    );
    assert_eq!(h.state("g"), GroupState::Empty);
    let token = h.join(request("g", "a"));
    assert_eq!(h.join_error(token), None);
    assert_eq!(h.joined(token).generation, 1);
}

#[test]
fn ten_thousand_unused_member_ids_leave_nothing_behind() {
    let mut h = Harness::without_delay();
    for i in 0..10_000 {
        let request = JoinRequest {
            requires_known_member_id: true,
            ..newcomer("g", &format!("m{i}"))
        };
        h.join(request);
    }
    assert_eq!(h.group("g").pending_joins.len(), 10_000);
    h.advance(i64::from(SESSION_MS) + 1);
    assert!(h.group("g").pending_joins.is_empty());
    assert_eq!(
        h.shard.timers.len(),
        1,
        "only the check for expired offsets"
    );
}

#[test]
fn an_unused_member_id_holds_a_rebalance_back_until_it_expires_or_leaves() {
    for leaves in [true, false] {
        let mut h = Harness::without_delay();
        let generation = h.stable("g", &["a"]);
        h.join(JoinRequest {
            requires_known_member_id: true,
            ..newcomer("g", "b")
        });
        let token = h.join(request("g", "a"));
        assert!(h.is_parked(token), "b has an id and is expected");
        if leaves {
            assert_eq!(h.leave("g", "b"), Ok(()));
        } else {
            h.advance(i64::from(SESSION_MS));
        }
        // A leave of a pending member is no leave of a member, but the join phase is looked at again.
        assert_eq!(h.joined(token).generation, generation + 1);
    }
}

#[test]
fn joins_that_cannot_fit_are_refused() {
    let mut h = Harness::without_delay();
    let refusals = [
        (
            JoinRequest {
                protocols: vec![],
                ..newcomer("g", "x")
            },
            "no protocols",
        ),
        (
            JoinRequest {
                protocol_type: "".into(),
                ..newcomer("g", "x")
            },
            "no type",
        ),
    ];
    for (request, what) in refusals {
        let token = h.join(request);
        assert_eq!(
            h.join_error(token),
            Some(ResponseError::InconsistentGroupProtocol),
            "{what}"
        );
    }
    assert_eq!(h.state("g"), GroupState::Empty);
    h.stable("g", &["a"]);
    let other_type = JoinRequest {
        protocol_type: "connect".into(),
        ..newcomer("g", "x")
    };
    let other_protocol = JoinRequest {
        protocols: protocols(&["sticky"]),
        ..newcomer("g", "x")
    };
    for request in [other_type, other_protocol] {
        let token = h.join(request);
        assert_eq!(
            h.join_error(token),
            Some(ResponseError::InconsistentGroupProtocol)
        );
    }
    for group in ["g", "unknown"] {
        let token = h.join(request(group, "stranger"));
        assert_eq!(h.join_error(token), Some(ResponseError::UnknownMemberId));
        assert_eq!(&*h.joined(token).member_id, "stranger");
    }
    assert!(
        h.shard.group("unknown").is_none(),
        "an unknown member does not make a group"
    );
    assert_eq!(h.state("g"), GroupState::Stable, "refusals disturb nobody");
}

#[test]
fn the_first_rebalance_waits_and_waits_again_while_members_come() {
    let mut h = Harness::new(GroupConfig::default());
    let first = h.join(newcomer("g", "a"));
    h.advance(2_900);
    let second = h.join(newcomer("g", "b"));
    h.advance(2_000);
    assert!(h.is_parked(first) && h.is_parked(second), "extended to 6 s");
    h.advance(1_200);
    assert_eq!(h.joined(first).generation, 1);
    assert_eq!(h.joined(second).generation, 1);
    assert_eq!(h.joined(first).members.len(), 2);
    assert!(h.joined(second).members.is_empty());
}

#[test]
fn the_first_rebalance_waits_no_longer_than_the_rebalance_timeout() {
    let mut h = Harness::new(GroupConfig::default());
    let short = |member_id: &str| JoinRequest {
        rebalance_timeout_ms: 7_000,
        ..newcomer("g", member_id)
    };
    let first = h.join(short("a"));
    for i in 0..6 {
        h.advance(1_500);
        if h.is_parked(first) {
            h.join(short(&format!("m{i}")));
        }
    }
    assert!(!h.is_parked(first));
    assert_eq!(h.joined(first).generation, 1);
}

#[test]
fn a_second_member_starts_a_rebalance_that_the_first_learns_of_by_heartbeat() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a"]);
    let second = h.join(newcomer("g", "b"));
    assert!(h.is_parked(second));
    assert_eq!(h.state("g"), GroupState::PreparingRebalance);
    assert_eq!(
        h.heartbeat("g", "a", 1),
        Err(ResponseError::RebalanceInProgress)
    );
    let first = h.join(request("g", "a"));
    assert_eq!(h.joined(first).generation, 2);
    assert_eq!(&*h.joined(second).leader, "a");
    assert_eq!(h.joined(first).members.len(), 2);
}

#[test]
fn waiting_keeps_a_member_alive() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a", "b"]);
    // Member a waits for b, which goes on with its heartbeats, far longer than a session.
    let token = h.join(request("g", "a"));
    for _ in 0..5 {
        h.advance(5_000);
        assert_eq!(
            h.heartbeat("g", "b", 2),
            Err(ResponseError::RebalanceInProgress)
        );
    }
    assert!(h.is_parked(token));
    h.join(request("g", "b"));
    assert_eq!(h.join_error(token), None);
    // The same while it waits for the leader's assignment.
    let parked = h.sync("g", "b", 3, &[]);
    for _ in 0..5 {
        h.advance(5_000);
        assert_eq!(h.heartbeat("g", "a", 3), Ok(()));
    }
    assert!(h.is_parked(parked));
    h.sync("g", "a", 3, &[("b", "B")]);
    assert_eq!(h.synced(parked).assignment, "B");
}

#[test]
fn who_does_not_rejoin_in_time_is_out_and_the_leader_is_chosen_anew() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a", "b"]);
    assert!(h.group("g").is_leader("a"));
    let token = h.join(newcomer("g", "c"));
    let again = h.join(request("g", "b"));
    for _ in 0..6 {
        h.advance(5_000);
        // Member a lives but does not rejoin.
        let _ = h.heartbeat("g", "a", 2);
    }
    assert_eq!(h.joined(token).generation, 3);
    assert_eq!(&*h.joined(again).leader, "b");
    assert_eq!(h.joined(again).members.len(), 2);
    assert_eq!(
        h.heartbeat("g", "a", 2),
        Err(ResponseError::UnknownMemberId)
    );
}

#[test]
fn a_silent_member_is_removed_and_the_others_rebalance() {
    let mut h = Harness::without_delay();
    let generation = h.stable("g", &["a", "b"]);
    h.advance(6_000);
    assert_eq!(h.heartbeat("g", "b", generation), Ok(()));
    h.advance(4_000);
    assert_eq!(h.state("g"), GroupState::PreparingRebalance);
    assert!(!h.group("g").members().contains_key("a"));
    assert_eq!(
        h.heartbeat("g", "b", generation),
        Err(ResponseError::RebalanceInProgress)
    );
}

#[test]
fn a_heartbeat_moves_the_deadline_not_the_timer() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a"]);
    let timers = h.shard.timers.len();
    for _ in 0..100 {
        h.advance(9_000);
        assert_eq!(h.heartbeat("g", "a", 1), Ok(()));
        assert_eq!(h.shard.timers.len(), timers);
    }
    h.advance(i64::from(SESSION_MS));
    assert_eq!(h.state("g"), GroupState::Empty);
}

#[test]
fn leaving_or_dying_during_a_rebalance_ends_the_join_phase() {
    for leaves in [true, false] {
        let mut h = Harness::without_delay();
        h.stable("g", &["a", "b"]);
        let token = h.join(request("g", "a"));
        assert!(h.is_parked(token));
        if leaves {
            assert_eq!(h.leave("g", "b"), Ok(()));
        } else {
            h.advance(i64::from(SESSION_MS));
        }
        assert_eq!(h.joined(token).generation, 3, "leaves: {leaves}");
        assert_eq!(h.joined(token).members.len(), 1);
    }
}

#[test]
fn the_last_member_leaves_an_empty_group_that_keeps_its_protocol_type() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a"]);
    assert_eq!(h.leave("g", "a"), Ok(()));
    let description = h.group("g").describe();
    assert_eq!(description.state, GroupState::Empty);
    assert_eq!(&*description.protocol_type, "consumer");
    assert_eq!(h.group("g").generation, 2);
    assert_eq!(
        h.heartbeat("g", "a", 2),
        Err(ResponseError::UnknownMemberId)
    );
    assert_eq!(h.shard.timers.len(), 1);
    h.restart();
    assert_eq!(h.group("g").describe(), description);
}

#[test]
fn a_parked_new_member_that_never_comes_back_goes_after_five_minutes() {
    let mut h = Harness::without_delay();
    let long = |request| JoinRequest {
        rebalance_timeout_ms: 600_000,
        ..request
    };
    h.join(long(newcomer("g", "a")));
    h.sync("g", "a", 1, &[]);
    let ghost = h.join(long(newcomer("g", "ghost")));
    for _ in 0..61 {
        let _ = h.heartbeat("g", "a", 1);
        h.advance(5_000);
    }
    assert_eq!(h.join_error(ghost), Some(ResponseError::UnknownMemberId));
    assert_eq!(h.group("g").members().len(), 1);
}

#[test]
fn a_full_group_takes_nobody_else() {
    let mut h = Harness::new(GroupConfig {
        initial_rebalance_delay_ms: 0,
        max_size: 2,
        ..GroupConfig::default()
    });
    h.stable("g", &["a", "b"]);
    let token = h.join(newcomer("g", "c"));
    assert_eq!(
        h.join_error(token),
        Some(ResponseError::GroupMaxSizeReached)
    );
    assert_eq!(&*h.joined(token).member_id, "");
    assert_eq!(h.state("g"), GroupState::Stable);
    // During a rebalance the first to come are served.
    let first = h.join(request("g", "a"));
    let second = h.join(request("g", "b"));
    assert_eq!(h.join_error(first), None);
    assert_eq!(h.join_error(second), None);
}

#[test]
fn a_loaded_group_larger_than_allowed_rebalances() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a", "b", "c"]);
    h.config = Arc::new(GroupConfig {
        max_size: 2,
        initial_rebalance_delay_ms: 0,
        ..GroupConfig::default()
    });
    h.restart();
    assert_eq!(h.state("g"), GroupState::PreparingRebalance);
    let tokens = ["a", "b", "c"].map(|member_id| h.join(request("g", member_id)));
    assert_eq!(
        h.join_error(tokens[2]),
        Some(ResponseError::GroupMaxSizeReached)
    );
    assert_eq!(h.joined(tokens[0]).members.len(), 2);
}

#[test]
fn members_vote_for_the_protocol_that_all_support() {
    let mut h = Harness::new(GroupConfig::default());
    let with = |member_id: &str, names: &[&str]| JoinRequest {
        protocols: protocols(names),
        ..newcomer("g", member_id)
    };
    let token = h.join(with("a", &["range", "sticky", "roundrobin"]));
    h.join(with("b", &["sticky", "roundrobin", "range"]));
    h.join(with("c", &["roundrobin", "sticky"]));
    h.join(with("d", &["sticky", "roundrobin"]));
    h.advance(30_000);
    assert_eq!(h.joined(token).protocol_name.as_deref(), Some("sticky"));
}

#[test]
fn a_rejoin_that_changes_nothing_is_answered_without_a_rebalance() {
    let mut h = Harness::without_delay();
    let generation = h.stable("g", &["a", "b"]);
    let token = h.join(request("g", "b"));
    let reply = h.joined(token);
    assert_eq!((reply.error, reply.generation), (None, generation));
    assert!(reply.members.is_empty());
    assert_eq!(h.state("g"), GroupState::Stable);
    // The leader rejoins when it wants a new assignment, a follower when its subscription changed.
    let changed = JoinRequest {
        protocols: vec![MemberProtocol {
            name: "range".into(),
            metadata: subscription("other"),
        }],
        ..request("g", "b")
    };
    h.join(changed);
    assert_eq!(h.state("g"), GroupState::PreparingRebalance);
}

#[test]
fn a_lost_join_answer_is_given_again_while_the_assignment_is_awaited() {
    let mut h = Harness::without_delay();
    h.join(newcomer("g", "a"));
    let token = h.join(request("g", "a"));
    assert_eq!(h.joined(token).generation, 1);
    assert_eq!(
        h.joined(token).members.len(),
        1,
        "the leader gets the members again"
    );
    assert_eq!(h.state("g"), GroupState::CompletingRebalance);
}

#[test]
fn a_second_parked_join_of_one_member_sends_the_first_away() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a", "b"]);
    let first = h.join(request("g", "a"));
    let second = h.join(request("g", "a"));
    assert_eq!(
        h.join_error(first),
        Some(ResponseError::RebalanceInProgress)
    );
    assert!(h.is_parked(second));
}

#[test]
fn a_batch_of_leaves_is_answered_one_by_one() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a", "b"]);
    let leaving = |member_id: &str, instance_id: Option<&str>| LeavingMember {
        member_id: member_id.into(),
        instance_id: instance_id.map(Arc::from),
        reason: "".into(),
    };
    let members = [
        leaving("nobody", None),
        leaving("a", None),
        leaving("", Some("i")),
        leaving("", None),
        leaving("b", None),
    ];
    let (results, effects) = h.shard.leave("g", &members, h.now);
    h.carry_out(effects);
    let unknown = Err(ResponseError::UnknownMemberId);
    assert_eq!(results, [unknown, Ok(()), unknown, unknown, Ok(())]);
    assert_eq!(h.state("g"), GroupState::Empty);
    let (results, _) = h.shard.leave("unknown", &members, h.now);
    assert_eq!(results, [unknown; 5]);
}

#[test]
fn members_go_on_after_a_restart() {
    let mut h = Harness::without_delay();
    let generation = h.stable("g", &["a", "b"]);
    let before = h.group("g").describe();
    h.restart();
    assert_eq!(h.group("g").describe(), before);
    assert_eq!(h.heartbeat("g", "a", generation), Ok(()));
    let token = h.sync("g", "b", generation, &[]);
    assert_eq!(h.synced(token).assignment, "b");
    h.advance(i64::from(SESSION_MS) + 1);
    assert_eq!(
        h.state("g"),
        GroupState::Empty,
        "sessions began anew at the restart"
    );
}

#[test]
fn unloading_answers_whoever_waits() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a", "b"]);
    let join = h.join(request("g", "a"));
    h.stable("k", &["a"]);
    let other = h.join(newcomer("k", "b"));
    h.restart();
    for token in [join, other] {
        assert_eq!(h.join_error(token), Some(ResponseError::NotCoordinator));
    }
    assert!(h.outstanding.is_empty());
}
