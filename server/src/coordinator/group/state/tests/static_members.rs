//! Static membership (KIP-345).

use super::*;

fn static_newcomer(member_id: &str) -> JoinRequest {
    JoinRequest {
        instance_id: Some("i".into()),
        ..newcomer("g", member_id)
    }
}

/// A stable group of the static member "old" alone.
fn stable_static() -> Harness {
    let mut h = Harness::without_delay();
    h.join(static_newcomer("old"));
    h.sync("g", "old", 1, &[("old", "A")]);
    h
}

#[test]
fn a_static_member_comes_back_without_a_rebalance_under_a_new_id() {
    let mut h = stable_static();
    let records = h.log.len();
    let token = h.join(static_newcomer("new"));
    let reply = h.joined(token).clone();
    assert_eq!((reply.error, reply.generation), (None, 1));
    assert_eq!(&*reply.member_id, "new");
    assert_eq!(
        &*reply.leader, "old",
        "an older client must not take itself for the leader"
    );
    assert!(reply.members.is_empty() && !reply.skip_assignment);
    assert_eq!(h.state("g"), GroupState::Stable);
    assert_eq!(h.log.len(), records + 1, "the new id is stored");
    let token = h.sync("g", "new", 1, &[]);
    assert_eq!(h.synced(token).assignment, "A");
    h.restart();
    assert!(h.group("g").members().contains_key("new"));
    assert_eq!(h.group("g").members()["new"].assignment(), "A");
}

#[test]
fn a_leader_that_comes_back_with_version_nine_skips_the_assignment() {
    let mut h = stable_static();
    let token = h.join(JoinRequest {
        supports_skipping_assignment: true,
        ..static_newcomer("new")
    });
    let reply = h.joined(token);
    assert!(reply.skip_assignment);
    assert_eq!(&*reply.leader, "new");
    assert_eq!(reply.members.len(), 1);
}

#[test]
fn whoever_uses_the_old_id_is_fenced() {
    let mut h = stable_static();
    h.join(static_newcomer("new"));
    let fenced = Err(ResponseError::FencedInstanceId);
    let unknown = Err(ResponseError::UnknownMemberId);
    assert_eq!(h.shard.heartbeat("g", "old", Some("i"), 1, h.now), fenced);
    assert_eq!(h.shard.heartbeat("g", "old", None, 1, h.now), unknown);
    assert_eq!(
        h.shard.heartbeat("g", "new", Some("other"), 1, h.now),
        unknown
    );
    assert_eq!(h.shard.heartbeat("g", "new", Some("i"), 1, h.now), Ok(()));
    let token = h.join(JoinRequest {
        member_id: "old".into(),
        ..static_newcomer("unused")
    });
    assert_eq!(h.join_error(token), fenced.err());
    let (outcome, _) = h.commit_request(&CommitRequest {
        instance_id: Some("i".into()),
        ..commit("g", "old", 1, 5)
    });
    assert_eq!(outcome.err(), fenced.err());
    let leaving = LeavingMember {
        member_id: "old".into(),
        instance_id: Some("i".into()),
        reason: "".into(),
    };
    let (results, _) = h.shard.leave("g", &[leaving], h.now);
    assert_eq!(results, [fenced]);
}

#[test]
fn a_request_parked_under_the_old_id_is_fenced() {
    let mut h = stable_static();
    h.join(newcomer("g", "b"));
    let parked = h.join(JoinRequest {
        member_id: "old".into(),
        ..static_newcomer("unused")
    });
    h.join(JoinRequest {
        member_id: "b".into(),
        ..request("g", "b")
    });
    assert_eq!(h.join_error(parked), None);
    let parked = h.sync("g", "old", 2, &[]);
    let parked_too = h.sync("g", "b", 2, &[]);
    h.commit();
    // The leader's own sync made the group stable; park one in the next rebalance.
    assert_eq!(h.synced(parked).error, None);
    assert_eq!(h.synced(parked_too).error, None);
    let parked = h.join(JoinRequest {
        member_id: "old".into(),
        ..static_newcomer("unused")
    });
    assert!(h.is_parked(parked));
    let new = h.join(static_newcomer("new"));
    assert_eq!(h.join_error(parked), Some(ResponseError::FencedInstanceId));
    assert!(h.is_parked(new), "b has not rejoined");
    h.join(request("g", "b"));
    assert_eq!(h.join_error(new), None);
}

#[test]
fn a_static_member_leaves_by_its_instance_id() {
    let mut h = stable_static();
    let leaving = LeavingMember {
        member_id: "".into(),
        instance_id: Some("i".into()),
        reason: "".into(),
    };
    let (results, effects) = h.shard.leave("g", &[leaving], h.now);
    h.carry_out(effects);
    assert_eq!(results, [Ok(())]);
    assert_eq!(h.state("g"), GroupState::Empty);
    assert!(h.group("g").static_members.is_empty());
}

#[test]
fn a_static_member_stays_through_a_rebalance_it_misses() {
    let mut h = stable_static();
    let b = h.join(newcomer("g", "b"));
    for _ in 0..6 {
        h.advance(5_000);
        let _ = h.shard.heartbeat("g", "old", Some("i"), 1, h.now);
    }
    assert_eq!(h.joined(b).generation, 2);
    assert_eq!(&*h.joined(b).leader, "b", "somebody who is there leads");
    assert_eq!(h.joined(b).members.len(), 2);
}

#[test]
fn a_group_of_absent_static_members_waits_for_another_rebalance_timeout() {
    let mut h = stable_static();
    h.join(newcomer("g", "b"));
    h.leave("g", "b").unwrap();
    for _ in 0..7 {
        h.advance(5_000);
        let _ = h.shard.heartbeat("g", "old", Some("i"), 1, h.now);
    }
    assert_eq!(h.state("g"), GroupState::PreparingRebalance);
    let token = h.join(JoinRequest {
        member_id: "old".into(),
        ..static_newcomer("unused")
    });
    assert_eq!(h.joined(token).generation, 2);
}

#[test]
fn a_return_that_changes_the_protocol_rebalances() {
    let mut h = Harness::without_delay();
    let with = |names: &[&str], id: &str| JoinRequest {
        protocols: protocols(names),
        ..static_newcomer(id)
    };
    h.join(with(&["range", "sticky"], "old"));
    h.sync("g", "old", 1, &[]);
    let token = h.join(with(&["sticky", "range"], "new"));
    assert_eq!(h.joined(token).generation, 2);
    assert_eq!(h.joined(token).protocol_name.as_deref(), Some("sticky"));
}

#[test]
fn a_return_that_cannot_be_stored_is_undone() {
    let mut h = stable_static();
    h.append_error = Some(ResponseError::CoordinatorNotAvailable);
    let token = h.join(static_newcomer("new"));
    assert_eq!(
        h.join_error(token),
        Some(ResponseError::CoordinatorNotAvailable)
    );
    assert_eq!(h.shard.heartbeat("g", "old", Some("i"), 1, h.now), Ok(()));
    assert!(h.group("g").is_leader("old"));
    assert_eq!(h.group("g").members().len(), 1);
    assert_eq!(h.group("g").awaiting_join, 0);
}

#[test]
fn a_return_that_is_committed_after_a_rebalance_began_is_answered_by_it() {
    let mut h = stable_static();
    h.holds_commits = true;
    let token = h.join(static_newcomer("new"));
    assert!(h.is_parked(token));
    let other = h.join(newcomer("g", "b"));
    h.commit();
    for token in [token, other] {
        assert_eq!(h.join_error(token), None);
        assert_eq!(h.joined(token).generation, 2);
    }
}
