//! Retention by Kafka's rule.

use super::*;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

fn retention(days: i64) -> Harness {
    Harness::new(GroupConfig {
        initial_rebalance_delay_ms: 0,
        offsets_retention_ms: days * DAY_MS,
        ..GroupConfig::default()
    })
}

fn has_offset(h: &Harness, group: &str, topic: &str) -> bool {
    let group = h.shard.group(group);
    group.is_some_and(|group| group.offsets().contains_key(topic))
}

/// Keeps member "a" of group "g" alive for some time.
fn live_on(h: &mut Harness, generation: i32, for_ms: i64) {
    for _ in 0..for_ms / 5_000 {
        h.advance(5_000);
        assert_eq!(h.heartbeat("g", "a", generation), Ok(()));
    }
}

#[test]
fn a_simple_group_goes_when_its_last_commit_is_old_enough() {
    let mut h = retention(7);
    h.must_commit(&commit("simple", "", -1, 1));
    h.advance(7 * DAY_MS - 600_001);
    assert!(has_offset(&h, "simple", "t"));
    h.advance(600_001);
    assert!(h.shard.group("simple").is_none());
    assert!(h.replayed().group("simple").is_none());
}

#[test]
fn a_group_counts_from_when_it_became_empty() {
    let mut h = retention(1);
    let generation = h.stable("g", &["a"]);
    h.must_commit(&commit("g", "a", generation, 1));
    live_on(&mut h, generation, 2 * DAY_MS);
    assert!(has_offset(&h, "g", "t"), "the topic is consumed");
    h.leave("g", "a").unwrap();
    h.advance(DAY_MS - 600_001);
    assert!(has_offset(&h, "g", "t"), "old commit, but not long empty");
    // The moment it became empty is on disk.
    h.restart();
    h.advance(1_200_000);
    assert!(h.shard.group("g").is_none());
}

#[test]
fn a_stable_group_loses_offsets_of_topics_it_no_longer_consumes() {
    let mut h = retention(1);
    let generation = h.stable("g", &["a"]);
    let request = CommitRequest {
        offsets: vec![to_commit("t", 0, 1), to_commit("old", 0, 2)],
        ..commit("g", "a", generation, 1)
    };
    h.must_commit(&request);
    live_on(&mut h, generation, DAY_MS + 600_000);
    assert!(has_offset(&h, "g", "t"));
    assert!(!has_offset(&h, "g", "old"));
}

#[test]
fn nothing_expires_during_a_rebalance() {
    let mut h = retention(1);
    let long = |request| JoinRequest {
        rebalance_timeout_ms: i32::MAX,
        session_timeout_ms: 1_800_000,
        ..request
    };
    h.join(long(newcomer("g", "a")));
    h.sync("g", "a", 1, &[]);
    let request = CommitRequest {
        offsets: vec![to_commit("old", 0, 2)],
        ..commit("g", "a", 1, 1)
    };
    h.must_commit(&request);
    h.join(long(newcomer("g", "b")));
    for _ in 0..2 * DAY_MS / 240_000 {
        h.advance(240_000);
        let _ = h.heartbeat("g", "a", 1);
        if !h.group("g").members().contains_key("b") {
            h.join(long(newcomer("g", "b")));
        }
    }
    // New members that never come back go after five minutes, so somebody must keep joining to hold the rebalance.
    if h.state("g") == GroupState::PreparingRebalance {
        assert!(has_offset(&h, "g", "old"));
    }
}

#[test]
fn a_client_may_say_how_long_its_offsets_are_kept() {
    let mut h = retention(7);
    h.must_commit(&CommitRequest {
        retention_ms: Some(3_600_000),
        ..commit("g", "", -1, 1)
    });
    h.restart();
    h.advance(3_000_000);
    assert!(has_offset(&h, "g", "t"));
    h.advance(1_200_000);
    assert!(h.shard.group("g").is_none());
}

#[test]
fn an_empty_group_that_never_committed_goes_at_the_next_check() {
    let mut h = retention(7);
    h.stable("g", &["a"]);
    h.leave("g", "a").unwrap();
    assert!(h.shard.group("g").is_some());
    h.advance(600_000);
    assert!(h.shard.group("g").is_none());
    assert!(h.replayed().group("g").is_none());
}

#[test]
fn offsets_of_a_group_of_another_type_are_kept_while_it_lives() {
    let mut h = retention(1);
    h.join(JoinRequest {
        protocol_type: "connect".into(),
        ..newcomer("g", "a")
    });
    h.sync("g", "a", 1, &[]);
    h.must_commit(&commit("g", "a", 1, 1));
    live_on(&mut h, 1, DAY_MS + 600_000);
    assert!(has_offset(&h, "g", "t"));
    h.leave("g", "a").unwrap();
    h.advance(DAY_MS + 600_000);
    assert!(!has_offset(&h, "g", "t"));
}
