//! Committing, fetching and deleting offsets.

use super::*;

fn committed(h: &Harness, group: &str) -> Option<i64> {
    let group = h.shard.group(group)?;
    Some(group.offsets().get("t")?.get(&0)?.offset)
}

#[test]
fn a_commit_counts_when_it_is_on_disk() {
    let mut h = Harness::without_delay();
    let generation = h.stable("g", &["a"]);
    h.holds_commits = true;
    let (outcome, token) = h.commit_request(&commit("g", "a", generation, 5));
    assert_eq!(outcome, Ok(vec![Ok(())]));
    assert!(h.is_parked(token));
    assert_eq!(committed(&h, "g"), None);
    h.commit();
    assert_eq!(h.written(token), Ok(()));
    assert_eq!(committed(&h, "g"), Some(5));
    h.holds_commits = false;
    h.append_error = Some(ResponseError::NotCoordinator);
    let (_, token) = h.commit_request(&commit("g", "a", generation, 6));
    assert_eq!(h.written(token), Err(ResponseError::NotCoordinator));
    assert_eq!(committed(&h, "g"), Some(5));
}

#[test]
fn commits_are_fenced_as_kafka_does() {
    let mut h = Harness::without_delay();
    let generation = h.stable("g", &["a", "b"]);
    let mut error = |request: &CommitRequest| h.commit_request(request).0.err();
    assert_eq!(error(&commit("g", "a", generation, 1)), None);
    assert_eq!(
        error(&commit("g", "a", generation + 4, 1)),
        Some(ResponseError::IllegalGeneration)
    );
    assert_eq!(
        error(&commit("g", "a", -1, 1)),
        Some(ResponseError::IllegalGeneration)
    );
    assert_eq!(
        error(&commit("g", "x", generation, 1)),
        Some(ResponseError::UnknownMemberId)
    );
    assert_eq!(
        error(&commit("g", "", -1, 1)),
        Some(ResponseError::UnknownMemberId)
    );
    assert_eq!(
        error(&commit("unknown", "x", 3, 1)),
        Some(ResponseError::IllegalGeneration)
    );
    let newer = CommitRequest {
        unknown_group_error: ResponseError::GroupIdNotFound,
        ..commit("unknown", "x", 3, 1)
    };
    assert_eq!(error(&newer), Some(ResponseError::GroupIdNotFound));
    h.join(request("g", "a"));
    assert_eq!(h.state("g"), GroupState::PreparingRebalance);
    assert_eq!(
        h.commit_request(&commit("g", "b", generation, 2)).0.err(),
        None
    );
    h.join(request("g", "b"));
    assert_eq!(h.state("g"), GroupState::CompletingRebalance);
    let (outcome, token) = h.commit_request(&commit("g", "b", generation + 1, 3));
    assert_eq!(outcome.err(), Some(ResponseError::RebalanceInProgress));
    assert_eq!(h.written(token), Err(ResponseError::RebalanceInProgress));
}

#[test]
fn a_simple_consumer_commits_to_a_group_without_members() {
    let mut h = Harness::without_delay();
    let (outcome, _) = h.commit_request(&commit("simple", "", -1, 9));
    assert_eq!(outcome, Ok(vec![Ok(())]));
    assert_eq!(committed(&h, "simple"), Some(9));
    let description = h.group("simple").describe();
    assert_eq!(
        (description.state, &*description.protocol_type),
        (GroupState::Empty, "")
    );
    h.stable("g", &["a"]);
    h.leave("g", "a").unwrap();
    assert_eq!(h.commit_request(&commit("g", "", -1, 7)).0.err(), None);
    assert_eq!(h.commit_request(&commit("g", "m", -1, 8)).0.err(), None);
    let (outcome, _) = h.commit_request(&commit("g", "", 3, 7));
    assert_eq!(outcome.err(), Some(ResponseError::UnknownMemberId));
    assert_eq!(committed(&h, "g"), Some(8));
}

#[test]
fn a_commit_is_a_heartbeat() {
    let mut h = Harness::without_delay();
    let generation = h.stable("g", &["a"]);
    for i in 0..5 {
        h.advance(9_000);
        assert_eq!(
            h.commit_request(&commit("g", "a", generation, i)).0.err(),
            None
        );
    }
    assert_eq!(h.state("g"), GroupState::Stable);
}

#[test]
fn metadata_is_measured_in_utf16_units() {
    let mut h = Harness::without_delay();
    let with = |metadata: String, partition| OffsetToCommit {
        metadata: metadata.into(),
        ..to_commit("t", partition, 1)
    };
    let request = CommitRequest {
        offsets: vec![
            with("x".repeat(4_096), 0),
            with("x".repeat(4_097), 1),
            with("ä".repeat(4_096), 2),
            with("\u{1F600}".repeat(2_049), 3),
        ],
        ..commit("g", "", -1, 0)
    };
    let (outcome, _) = h.commit_request(&request);
    let too_large = Err(ResponseError::OffsetMetadataTooLarge);
    assert_eq!(outcome, Ok(vec![Ok(()), too_large, Ok(()), too_large]));
    let partitions: Vec<_> = h.group("g").offsets()["t"].keys().copied().collect();
    assert_eq!(partitions, [0, 2]);
}

#[test]
fn a_commit_of_nothing_is_answered_at_once() {
    let mut h = Harness::without_delay();
    let request = CommitRequest {
        offsets: vec![],
        ..commit("g", "", -1, 0)
    };
    let (outcome, token) = h.commit_request(&request);
    assert_eq!(outcome, Ok(vec![]));
    assert_eq!(h.written(token), Ok(()));
    assert!(h.shard.group("g").is_none());
}

#[test]
fn offsets_of_consumed_topics_cannot_be_deleted() {
    let mut h = Harness::without_delay();
    let generation = h.stable("g", &["a"]);
    let request = CommitRequest {
        offsets: vec![to_commit("t", 0, 1), to_commit("other", 0, 2)],
        ..commit("g", "a", generation, 1)
    };
    h.must_commit(&request);
    let partitions = [
        (Arc::from("t"), 0),
        (Arc::from("other"), 0),
        (Arc::from("other"), 7),
    ];
    let token = h.token();
    let (outcome, effects) = h.shard.delete_offsets("g", &partitions, token);
    h.carry_out(effects);
    let consumed = Err(ResponseError::GroupSubscribedToTopic);
    assert_eq!(outcome, Ok(vec![consumed, Ok(()), Ok(())]));
    assert_eq!(h.written(token), Ok(()));
    assert_eq!(
        h.group("g")
            .offsets()
            .keys()
            .map(|t| &**t)
            .collect::<Vec<_>>(),
        ["t"]
    );
    let token = h.token();
    let (outcome, effects) = h.shard.delete_offsets("unknown", &partitions, token);
    h.carry_out(effects);
    assert_eq!(outcome.err(), Some(ResponseError::GroupIdNotFound));
}

#[test]
fn offsets_of_a_live_group_of_another_type_cannot_be_deleted() {
    let mut h = Harness::without_delay();
    h.join(JoinRequest {
        protocol_type: "connect".into(),
        ..newcomer("g", "a")
    });
    let token = h.token();
    let (outcome, effects) = h.shard.delete_offsets("g", &[(Arc::from("t"), 0)], token);
    h.carry_out(effects);
    assert_eq!(outcome.err(), Some(ResponseError::NonEmptyGroup));
}

#[test]
fn only_a_group_without_members_can_be_deleted() {
    let mut h = Harness::without_delay();
    h.stable("live", &["a"]);
    h.must_commit(&commit("dead", "", -1, 1));
    h.join(JoinRequest {
        requires_known_member_id: true,
        ..newcomer("dead", "pending")
    });
    let token = h.token();
    let groups = ["live", "dead", "unknown"].map(Arc::from);
    let (results, effects) = h.shard.delete_groups(&groups, token);
    h.carry_out(effects);
    assert_eq!(
        results,
        [
            Err(ResponseError::NonEmptyGroup),
            Ok(()),
            Err(ResponseError::GroupIdNotFound)
        ]
    );
    assert!(h.shard.group("dead").is_none());
    assert!(h.replayed().group("dead").is_none());
    let late = h.join(request("dead", "pending"));
    assert_eq!(h.join_error(late), Some(ResponseError::UnknownMemberId));
}

#[test]
fn a_group_that_got_a_member_while_its_deletion_was_written_lives_on() {
    let mut h = Harness::without_delay();
    h.must_commit(&commit("g", "", -1, 1));
    h.holds_commits = true;
    let token = h.token();
    let (_, effects) = h.shard.delete_groups(&[Arc::from("g")], token);
    h.carry_out(effects);
    let join = h.join(newcomer("g", "a"));
    h.commit();
    assert_eq!(h.join_error(join), None);
    assert_eq!(h.heartbeat("g", "a", 1), Ok(()));
    assert_eq!(committed(&h, "g"), None, "its offsets are gone");
}

#[test]
fn deleting_a_topic_drops_what_was_committed_for_it() {
    let mut h = Harness::without_delay();
    let old = Uuid::from_u128(7);
    let new = Uuid::from_u128(8);
    h.must_commit(&commit("g", "", -1, 1));
    let again = CommitRequest {
        offsets: vec![OffsetToCommit {
            topic_id: new,
            ..to_commit("t", 0, 2)
        }],
        ..commit("k", "", -1, 2)
    };
    h.must_commit(&again);
    let effects = h
        .shard
        .on_topics_deleted(&[(Arc::from("t"), old), (Arc::from("u"), new)]);
    h.carry_out(effects);
    assert_eq!(committed(&h, "g"), None);
    assert_eq!(
        committed(&h, "k"),
        Some(2),
        "a later topic of the same name"
    );
}

#[test]
fn offsets_of_a_transaction_hold_when_it_is_committed_unless_a_later_one_came() {
    let mut h = Harness::without_delay();
    let record = |offset| GroupRecord::OffsetCommit {
        group: "g".to_owned(),
        topic: "t".to_owned(),
        partition: 0,
        value: Some(crate::coordinator::group::records::OffsetCommitValue {
            offset,
            leader_epoch: -1,
            metadata: String::new(),
            commit_timestamp_ms: 0,
            expire_timestamp_ms: None,
            topic_id: Uuid::nil(),
        }),
    };
    let transactional = |producer_id, offset| ReplayedRecord::Transactional {
        producer_id,
        record: record(offset),
    };
    let end = |producer_id, committed| ReplayedRecord::EndTransaction {
        producer_id,
        committed,
    };
    h.shard.replay(0, transactional(1, 10), h.now);
    h.shard.replay(1, transactional(2, 20), h.now);
    assert_eq!(committed(&h, "g"), None);
    h.shard.replay(2, end(2, false), h.now);
    assert_eq!(committed(&h, "g"), None);
    h.shard.replay(3, ReplayedRecord::Plain(record(30)), h.now);
    h.shard.replay(4, end(1, true), h.now);
    assert_eq!(committed(&h, "g"), Some(30), "30 was written after 10");
    h.shard.replay(5, transactional(1, 40), h.now);
    h.shard.replay(6, end(1, true), h.now);
    assert_eq!(committed(&h, "g"), Some(40));
}
