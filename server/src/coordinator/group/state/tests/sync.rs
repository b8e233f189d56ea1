//! SyncGroup.

use super::*;

#[test]
fn followers_wait_for_the_leaders_assignment() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a", "b"]);
    h.join(request("g", "a"));
    h.join(request("g", "b"));
    let follower = h.sync("g", "b", 3, &[("a", "ignored")]);
    assert!(h.is_parked(follower));
    let leader = h.sync("g", "a", 3, &[("a", "A"), ("stranger", "S")]);
    assert_eq!(h.synced(leader).assignment, "A");
    assert_eq!(h.synced(leader).protocol_name.as_deref(), Some("range"));
    assert_eq!(h.synced(follower).assignment, "", "the leader forgot b");
    assert_eq!(h.state("g"), GroupState::Stable);
    let again = h.sync("g", "a", 3, &[]);
    assert_eq!(h.synced(again).assignment, "A");
}

#[test]
fn syncs_that_do_not_fit_are_refused() {
    let mut h = Harness::without_delay();
    let generation = h.stable("g", &["a", "b"]);
    let error = |h: &mut Harness, group: &str, member_id: &str, generation| {
        let token = h.sync(group, member_id, generation, &[]);
        h.synced(token).error
    };
    assert_eq!(
        error(&mut h, "unknown", "a", 1),
        Some(ResponseError::UnknownMemberId)
    );
    assert_eq!(
        error(&mut h, "g", "x", generation),
        Some(ResponseError::UnknownMemberId)
    );
    assert_eq!(
        error(&mut h, "g", "a", generation + 1),
        Some(ResponseError::IllegalGeneration)
    );
    let other = SyncRequest {
        group_id: "g".into(),
        generation,
        member_id: "a".into(),
        instance_id: None,
        protocol_type: Some("consumer".into()),
        protocol_name: Some("sticky".into()),
        assignments: BTreeMap::new(),
    };
    let token = h.sync_request(other);
    assert_eq!(
        h.synced(token).error,
        Some(ResponseError::InconsistentGroupProtocol)
    );
    h.join(request("g", "a"));
    assert_eq!(
        error(&mut h, "g", "a", generation),
        Some(ResponseError::RebalanceInProgress)
    );
    h.leave("g", "a").unwrap();
    h.leave("g", "b").unwrap();
    assert_eq!(
        error(&mut h, "g", "a", generation),
        Some(ResponseError::UnknownMemberId)
    );
}

#[test]
fn a_member_that_leaves_sends_parked_syncs_into_the_next_rebalance() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a", "b", "c"]);
    for member_id in ["a", "b", "c"] {
        h.join(request("g", member_id));
    }
    let generation = h.group("g").generation;
    let parked = h.sync("g", "b", generation, &[]);
    let own = h.sync("g", "c", generation, &[]);
    h.leave("g", "c").unwrap();
    assert_eq!(
        h.synced(parked).error,
        Some(ResponseError::RebalanceInProgress)
    );
    assert_eq!(h.synced(own).error, Some(ResponseError::UnknownMemberId));
    assert_eq!(h.state("g"), GroupState::PreparingRebalance);
}

#[test]
fn members_that_never_sync_are_removed() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a", "b"]);
    h.join(request("g", "a"));
    h.join(request("g", "b"));
    let generation = h.group("g").generation;
    h.sync("g", "a", generation, &[("a", "A"), ("b", "B")]);
    for _ in 0..6 {
        h.advance(5_000);
        let _ = h.heartbeat("g", "a", generation);
        let _ = h.heartbeat("g", "b", generation);
    }
    assert_eq!(h.state("g"), GroupState::PreparingRebalance);
    assert!(!h.group("g").members().contains_key("b"));
    // With everybody synced the timer is gone.
    h.join(request("g", "a"));
    h.sync("g", "a", generation + 1, &[]);
    assert_eq!(h.group("g").sync_deadline_ms, None);
}

#[test]
fn an_assignment_that_cannot_be_stored_starts_over() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a", "b"]);
    h.join(request("g", "a"));
    h.join(request("g", "b"));
    let follower = h.sync("g", "b", 3, &[]);
    h.append_error = Some(ResponseError::NotCoordinator);
    let leader = h.sync("g", "a", 3, &[("a", "A")]);
    for token in [leader, follower] {
        assert_eq!(h.synced(token).error, Some(ResponseError::NotCoordinator));
    }
    assert_eq!(h.state("g"), GroupState::PreparingRebalance);
}

#[test]
fn an_assignment_that_is_committed_after_the_next_rebalance_began_is_not_handed_out() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a", "b"]);
    h.join(request("g", "a"));
    h.join(request("g", "b"));
    h.holds_commits = true;
    let leader = h.sync("g", "a", 3, &[("a", "A")]);
    assert!(h.is_parked(leader));
    h.join(newcomer("g", "c"));
    assert_eq!(
        h.synced(leader).error,
        Some(ResponseError::RebalanceInProgress)
    );
    h.commit();
    assert_eq!(h.state("g"), GroupState::PreparingRebalance);
}

#[test]
fn a_second_parked_sync_of_one_member_sends_the_first_away() {
    let mut h = Harness::without_delay();
    h.stable("g", &["a", "b"]);
    h.join(request("g", "a"));
    h.join(request("g", "b"));
    let first = h.sync("g", "b", 3, &[]);
    let second = h.sync("g", "b", 3, &[]);
    assert_eq!(
        h.synced(first).error,
        Some(ResponseError::RebalanceInProgress)
    );
    h.sync("g", "a", 3, &[("b", "B")]);
    assert_eq!(h.synced(second).assignment, "B");
}
