//! Consumer groups of the classic protocol (F).

use std::time::Duration;

use bytes::Bytes;
use compat_tests::broker::{Broker, BrokerOptions};
use compat_tests::each_broker::{for_each_broker, for_each_broker_with};
use compat_tests::process::eventually;
use compat_tests::raw::Connection;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, HeartbeatRequest, JoinGroupRequest,
    JoinGroupResponse, LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest,
    OffsetDeleteRequest, OffsetFetchRequest, SyncGroupRequest, SyncGroupResponse,
};

use crate::support::{
    code, connect, create_topic, delete_topic, group_id, on_highwater, s, topic_name,
    wait_for_coordinator,
};

/// Versions of the group's requests used here.
const JOIN: i16 = 5;
const SYNC: i16 = 3;

fn join_request(group: &str, member: &str) -> JoinGroupRequest {
    JoinGroupRequest::default()
        .with_group_id(group_id(group))
        .with_member_id(s(member))
        .with_session_timeout_ms(30_000)
        .with_rebalance_timeout_ms(30_000)
        .with_protocol_type(s("consumer"))
        .with_protocols(vec![protocol("range")])
}

fn protocol(name: &str) -> JoinGroupRequestProtocol {
    JoinGroupRequestProtocol::default()
        .with_name(s(name))
        .with_metadata(Bytes::from_static(b"metadata"))
}

/// Gets a member id, as clients of version 4 and above do.
fn take_member_id(connection: &mut Connection, group: &str) -> String {
    let reply = connection
        .call(JOIN, &join_request(group, ""))
        .expect("JoinGroup is answered");
    assert_eq!(reply.error_code, code::MEMBER_ID_REQUIRED, "{reply:?}");
    assert!(!reply.member_id.is_empty());
    reply.member_id.to_string()
}

/// Joins an empty group alone and syncs; gives the member id. The generation is 1.
fn alone(connection: &mut Connection, group: &str) -> String {
    let member = take_member_id(connection, group);
    let joined = connection
        .call(JOIN, &join_request(group, &member))
        .unwrap();
    assert_eq!(
        (joined.error_code, joined.generation_id),
        (code::NONE, 1),
        "{joined:?}"
    );
    assert_eq!(joined.leader, joined.member_id);
    let synced = sync(connection, group, &member, 1, &[(&member, b"all")]);
    assert_eq!(
        (synced.error_code, &synced.assignment[..]),
        (code::NONE, &b"all"[..])
    );
    member
}

fn sync_request(
    group: &str,
    member: &str,
    generation: i32,
    assignments: &[(&str, &[u8])],
) -> SyncGroupRequest {
    let assignments = assignments.iter().map(|(member, bytes)| {
        SyncGroupRequestAssignment::default()
            .with_member_id(s(member))
            .with_assignment(Bytes::copy_from_slice(bytes))
    });
    SyncGroupRequest::default()
        .with_group_id(group_id(group))
        .with_member_id(s(member))
        .with_generation_id(generation)
        .with_assignments(assignments.collect())
}

fn sync(
    connection: &mut Connection,
    group: &str,
    member: &str,
    generation: i32,
    assignments: &[(&str, &[u8])],
) -> SyncGroupResponse {
    let request = sync_request(group, member, generation, assignments);
    connection
        .call(SYNC, &request)
        .expect("SyncGroup is answered")
}

fn heartbeat(connection: &mut Connection, group: &str, member: &str, generation: i32) -> i16 {
    let request = HeartbeatRequest::default()
        .with_group_id(group_id(group))
        .with_member_id(s(member))
        .with_generation_id(generation);
    connection
        .call(3, &request)
        .expect("Heartbeat is answered")
        .error_code
}

fn leave(connection: &mut Connection, group: &str, member: &str) -> i16 {
    let member = MemberIdentity::default().with_member_id(s(member));
    let request = LeaveGroupRequest::default()
        .with_group_id(group_id(group))
        .with_members(vec![member]);
    let reply = connection
        .call(4, &request)
        .expect("LeaveGroup is answered");
    assert_eq!(reply.error_code, code::NONE);
    reply.members[0].error_code
}

fn state(connection: &mut Connection, group: &str) -> (String, String) {
    let request = DescribeGroupsRequest::default().with_groups(vec![group_id(group)]);
    let reply = connection
        .call(4, &request)
        .expect("DescribeGroups is answered");
    let group = &reply.groups[0];
    (
        group.group_state.to_string(),
        group.protocol_type.to_string(),
    )
}

fn commit_request(
    group: &str,
    member: &str,
    generation: i32,
    topic: &str,
    offset: i64,
) -> OffsetCommitRequest {
    let part = OffsetCommitRequestPartition::default()
        .with_partition_index(0)
        .with_committed_offset(offset)
        .with_committed_metadata(Some(s("note")));
    OffsetCommitRequest::default()
        .with_group_id(group_id(group))
        .with_member_id(s(member))
        .with_generation_id_or_member_epoch(generation)
        .with_topics(vec![
            OffsetCommitRequestTopic::default()
                .with_name(topic_name(topic))
                .with_partitions(vec![part]),
        ])
}

fn commit(
    connection: &mut Connection,
    group: &str,
    member: &str,
    generation: i32,
    topic: &str,
    offset: i64,
) -> i16 {
    let request = commit_request(group, member, generation, topic, offset);
    let reply = connection
        .call(8, &request)
        .expect("OffsetCommit is answered");
    reply.topics[0].partitions[0].error_code
}

/// The committed offset of partition 0, or -1.
fn committed(connection: &mut Connection, group: &str, topic: &str) -> i64 {
    let topics = OffsetFetchRequestTopic::default()
        .with_name(topic_name(topic))
        .with_partition_indexes(vec![0]);
    let request = OffsetFetchRequest::default()
        .with_group_id(group_id(group))
        .with_topics(Some(vec![topics]));
    let reply = connection
        .call(7, &request)
        .expect("OffsetFetch is answered");
    assert_eq!(reply.error_code, code::NONE);
    let found = &reply.topics[0].partitions[0];
    assert_eq!(found.error_code, code::NONE);
    found.committed_offset
}

/// A group of this test's own, its coordinator loaded, and a topic to commit for.
fn prepare(broker: &Broker, group: &str) -> Connection {
    create_topic(broker, &format!("{group}-topic"), 1);
    wait_for_coordinator(broker, group);
    connect(broker)
}

#[test]
fn version_0_takes_the_session_time_out_for_the_rebalance() {
    for_each_broker(|broker| {
        let group = "groups-v0";
        let mut first = prepare(broker, group);
        let mut second = connect(broker);
        let request = |member: &str| {
            join_request(group, member)
                .with_rebalance_timeout_ms(-1)
                .with_session_timeout_ms(10_000)
        };
        let joined = first.call(0, &request("")).unwrap();
        assert_eq!((joined.error_code, joined.generation_id), (code::NONE, 1));
        let member = joined.member_id.to_string();
        sync(&mut first, group, &member, 1, &[(&member, b"x")]);
        second.send(0, &request("")).unwrap();
        eventually(Duration::from_secs(10), "the rebalance is told", || {
            (heartbeat(&mut first, group, &member, 1) == code::REBALANCE_IN_PROGRESS).then_some(())
        });
        first.send(0, &request(&member)).unwrap();
        let one = first.receive::<JoinGroupRequest>(0).unwrap();
        let two = second.receive::<JoinGroupRequest>(0).unwrap();
        assert_eq!((one.error_code, two.error_code), (code::NONE, code::NONE));
        assert_eq!(
            (one.generation_id, two.generation_id),
            (2, 2),
            "no endless rebalance"
        );
    });
}

#[test]
fn joins_that_cannot_fit_are_refused() {
    for_each_broker(|broker| {
        let group = "groups-misfits";
        let mut connection = prepare(broker, group);
        let member = alone(&mut connection, group);
        let mut refuses = |what: &str, request: JoinGroupRequest, expected: i16| {
            let reply = connection.call(JOIN, &request).unwrap();
            assert_eq!(reply.error_code, expected, "{what}: {reply:?}");
            assert_eq!(reply.generation_id, -1, "{what}");
        };
        let short = join_request(group, "").with_session_timeout_ms(10);
        refuses("short session", short, code::INVALID_SESSION_TIMEOUT);
        let long = join_request(group, "").with_session_timeout_ms(i32::MAX);
        refuses("long session", long, code::INVALID_SESSION_TIMEOUT);
        let other = join_request(group, "").with_protocols(vec![protocol("sticky")]);
        refuses(
            "no common protocol",
            other,
            code::INCONSISTENT_GROUP_PROTOCOL,
        );
        let kind = join_request(group, "").with_protocol_type(s("connect"));
        refuses("another type", kind, code::INCONSISTENT_GROUP_PROTOCOL);
        let none = join_request(group, "").with_protocols(vec![]);
        refuses("no protocols", none, code::INCONSISTENT_GROUP_PROTOCOL);
        refuses(
            "empty group id",
            join_request("", ""),
            code::INVALID_GROUP_ID,
        );
        refuses(
            "unknown member",
            join_request(group, "nobody"),
            code::UNKNOWN_MEMBER_ID,
        );
        refuses(
            "unknown group",
            join_request("no-group", "nobody"),
            code::UNKNOWN_MEMBER_ID,
        );
        assert_eq!(heartbeat(&mut connection, group, &member, 1), code::NONE);
        assert_eq!(
            heartbeat(&mut connection, group, &member, 2),
            code::ILLEGAL_GENERATION
        );
        let unknown = code::UNKNOWN_MEMBER_ID;
        assert_eq!(heartbeat(&mut connection, group, "nobody", 1), unknown);
        assert_eq!(heartbeat(&mut connection, "no-group", &member, 1), unknown);
        assert_eq!(
            heartbeat(&mut connection, "", &member, 1),
            code::INVALID_GROUP_ID
        );
        let wrong = sync(&mut connection, group, &member, 7, &[]);
        assert_eq!(wrong.error_code, code::ILLEGAL_GENERATION);
        assert_eq!(
            sync(&mut connection, "no-group", &member, 1, &[]).error_code,
            unknown
        );
    });
}

/// Two members in generation 2: their connections, ids, and which one leads.
fn pair(broker: &Broker, group: &str) -> [(Connection, String, JoinGroupResponse); 2] {
    let mut first = prepare(broker, group);
    let one = alone(&mut first, group);
    let mut second = connect(broker);
    let two = take_member_id(&mut second, group);
    second.send(JOIN, &join_request(group, &two)).unwrap();
    eventually(Duration::from_secs(10), "the rebalance is told", || {
        (heartbeat(&mut first, group, &one, 1) == code::REBALANCE_IN_PROGRESS).then_some(())
    });
    first.send(JOIN, &join_request(group, &one)).unwrap();
    let joined = [
        first.receive::<JoinGroupRequest>(JOIN).unwrap(),
        second.receive::<JoinGroupRequest>(JOIN).unwrap(),
    ];
    for reply in &joined {
        assert_eq!((reply.error_code, reply.generation_id), (code::NONE, 2));
        let is_leader = reply.leader == reply.member_id;
        assert_eq!(reply.members.len(), if is_leader { 2 } else { 0 });
    }
    let [joined_first, joined_second] = joined;
    [(first, one, joined_first), (second, two, joined_second)]
}

#[test]
fn second_member_gets_its_share_from_the_leader() {
    for_each_broker(|broker| {
        let group = "groups-pair";
        let [(mut first, one, _), (mut second, two, _)] = pair(broker, group);
        assert_eq!(state(&mut first, group).0, "CompletingRebalance");
        // A commit has to wait for the new generation to be ready.
        let topic = "groups-pair-topic";
        let busy = commit(&mut first, group, &one, 2, topic, 5);
        assert_eq!(busy, code::REBALANCE_IN_PROGRESS);
        // The follower's sync waits for the leader's. The first one leads: it was there before.
        second
            .send(SYNC, &sync_request(group, &two, 2, &[]))
            .unwrap();
        let shares = [(one.as_str(), &b"one"[..]), (two.as_str(), &b"two"[..])];
        assert_eq!(
            &sync(&mut first, group, &one, 2, &shares).assignment[..],
            b"one"
        );
        let synced = second.receive::<SyncGroupRequest>(SYNC).unwrap();
        assert_eq!(
            (synced.error_code, &synced.assignment[..]),
            (code::NONE, &b"two"[..])
        );
        assert_eq!(
            state(&mut first, group),
            ("Stable".into(), "consumer".into())
        );
        assert_eq!(commit(&mut second, group, &two, 2, topic, 6), code::NONE);
        // A late sync gets the same again.
        assert_eq!(
            &sync(&mut second, group, &two, 2, &[]).assignment[..],
            b"two"
        );
    });
}

#[test]
fn leaving_while_others_wait_finishes_the_join() {
    for_each_broker(|broker| {
        let group = "groups-leave";
        let mut first = prepare(broker, group);
        let one = alone(&mut first, group);
        let mut second = connect(broker);
        let two = take_member_id(&mut second, group);
        second.send(JOIN, &join_request(group, &two)).unwrap();
        eventually(Duration::from_secs(10), "the rebalance is told", || {
            (heartbeat(&mut first, group, &one, 1) == code::REBALANCE_IN_PROGRESS).then_some(())
        });
        assert_eq!(state(&mut first, group).0, "PreparingRebalance");
        // A commit of the last generation is still taken.
        assert_eq!(
            commit(&mut first, group, &one, 1, "groups-leave-topic", 3),
            code::NONE
        );
        assert_eq!(leave(&mut first, group, &one), code::NONE);
        let joined = second.receive::<JoinGroupRequest>(JOIN).unwrap();
        assert_eq!((joined.error_code, joined.generation_id), (code::NONE, 2));
        assert_eq!(joined.leader.as_str(), two);
        assert_eq!(leave(&mut first, group, &one), code::UNKNOWN_MEMBER_ID);
        assert_eq!(leave(&mut first, group, &two), code::NONE);
        assert_eq!(
            state(&mut first, group),
            ("Empty".into(), "consumer".into())
        );
    });
}

#[test]
fn silent_member_is_removed_and_the_others_go_on() {
    let options = BrokerOptions::new().set("group.min.session.timeout.ms", 100);
    for_each_broker_with(&options, |broker| {
        let group = "groups-silent";
        let mut first = prepare(broker, group);
        let short = |member: &str| {
            join_request(group, member)
                .with_session_timeout_ms(1500)
                .with_rebalance_timeout_ms(1500)
        };
        let one = first.call(JOIN, &short("")).unwrap().member_id.to_string();
        assert_eq!(
            first.call(JOIN, &short(&one)).unwrap().error_code,
            code::NONE
        );
        sync(&mut first, group, &one, 1, &[(&one, b"x")]);
        eventually(
            Duration::from_secs(20),
            "the silent member is removed",
            || (state(&mut connect(broker), group).0 == "Empty").then_some(()),
        );
        assert_eq!(
            heartbeat(&mut first, group, &one, 1),
            code::UNKNOWN_MEMBER_ID
        );
        // A member id that was handed out and never used is forgotten too.
        let pending = first.call(JOIN, &short("")).unwrap();
        assert_eq!(pending.error_code, code::MEMBER_ID_REQUIRED);
        eventually(
            Duration::from_secs(20),
            "the pending member is forgotten",
            || {
                let code = first
                    .call(JOIN, &short(&pending.member_id))
                    .unwrap()
                    .error_code;
                // Each try within the time joins: leave again and wait longer than it.
                if code == code::NONE {
                    leave(&mut first, group, &pending.member_id);
                    std::thread::sleep(Duration::from_millis(200));
                }
                (code == code::UNKNOWN_MEMBER_ID).then_some(())
            },
        );
    });
}

#[test]
fn abandoned_joins_cost_no_memory() {
    let options = BrokerOptions::new().set("group.min.session.timeout.ms", 100);
    on_highwater(&options, |broker| {
        let group = "groups-abandoned";
        wait_for_coordinator(broker, group);
        let request = join_request(group, "").with_session_timeout_ms(500);
        let abandon = |count: usize| {
            for _ in 0..count {
                let mut connection = connect(broker);
                connection.send(JOIN, &request).unwrap();
                connection.read_frame().unwrap().expect("an answer");
            }
        };
        abandon(500);
        let before = crate::process::resident_bytes(broker);
        abandon(5000);
        let mut connection = connect(broker);
        eventually(
            Duration::from_secs(30),
            "the group is forgotten or empty",
            || {
                ["Dead", "Empty"]
                    .contains(&state(&mut connection, group).0.as_str())
                    .then_some(())
            },
        );
        let grown = crate::process::resident_bytes(broker).saturating_sub(before);
        assert!(
            grown < 16 << 20,
            "5,000 abandoned joins took {} MiB",
            grown >> 20
        );
    });
}

#[test]
fn static_member_comes_back_without_a_rebalance_and_fences_its_old_self() {
    for_each_broker(|broker| {
        let group = "groups-static";
        let mut connection = prepare(broker, group);
        let fixed = |member: &str| {
            join_request(group, member).with_group_instance_id(Some(s("instance-1")))
        };
        let joined = connection.call(JOIN, &fixed("")).unwrap();
        assert_eq!(
            (joined.error_code, joined.generation_id),
            (code::NONE, 1),
            "no id is required"
        );
        let old = joined.member_id.to_string();
        let mut request = sync_request(group, &old, 1, &[(&old, b"mine")]);
        request.group_instance_id = Some(s("instance-1"));
        assert_eq!(
            connection.call(SYNC, &request).unwrap().error_code,
            code::NONE
        );

        let back = connection.call(JOIN, &fixed("")).unwrap();
        assert_eq!(
            (back.error_code, back.generation_id),
            (code::NONE, 1),
            "no rebalance"
        );
        let new = back.member_id.to_string();
        assert_ne!(old, new);
        let mut beat = |member: &str| {
            let request = HeartbeatRequest::default()
                .with_group_id(group_id(group))
                .with_member_id(s(member))
                .with_generation_id(1)
                .with_group_instance_id(Some(s("instance-1")));
            connection.call(3, &request).unwrap().error_code
        };
        assert_eq!(beat(&old), code::FENCED_INSTANCE_ID);
        assert_eq!(beat(&new), code::NONE);
        let mut late = commit_request(group, &old, 1, "groups-static-topic", 9);
        late.group_instance_id = Some(s("instance-1"));
        let reply = connection.call(8, &late).unwrap();
        assert_eq!(
            reply.topics[0].partitions[0].error_code,
            code::FENCED_INSTANCE_ID
        );
        let mut request = sync_request(group, &new, 1, &[]);
        request.group_instance_id = Some(s("instance-1"));
        assert_eq!(
            &connection.call(SYNC, &request).unwrap().assignment[..],
            b"mine"
        );
        // An administrator removes it by its instance id.
        let member = MemberIdentity::default().with_group_instance_id(Some(s("instance-1")));
        let request = LeaveGroupRequest::default()
            .with_group_id(group_id(group))
            .with_members(vec![member]);
        let reply = connection.call(4, &request).unwrap();
        assert_eq!(
            (reply.error_code, reply.members[0].error_code),
            (code::NONE, code::NONE)
        );
        assert_eq!(state(&mut connection, group).0, "Empty");
    });
}

#[test]
fn commits_are_fenced() {
    for_each_broker(|broker| {
        let group = "groups-fenced";
        let topic = "groups-fenced-topic";
        let mut connection = prepare(broker, group);
        // Nobody lives in it: a simple commit is taken.
        assert_eq!(commit(&mut connection, group, "", -1, topic, 1), code::NONE);
        let unknown = commit(&mut connection, "groups-none", "nobody", 3, topic, 1);
        assert_eq!(unknown, code::ILLEGAL_GENERATION);
        let request = commit_request("groups-none", "nobody", 3, topic, 1);
        let reply = connection.call(9, &request).unwrap();
        assert_eq!(
            reply.topics[0].partitions[0].error_code,
            code::GROUP_ID_NOT_FOUND
        );

        let member = alone(&mut connection, group);
        let mut expect = |member: &str, generation: i32, topic: &str, expected: i16| {
            let found = commit(&mut connection, group, member, generation, topic, 2);
            assert_eq!(
                found, expected,
                "member {member:?}, generation {generation}, {topic}"
            );
        };
        expect(&member, 1, topic, code::NONE);
        expect(&member, 2, topic, code::ILLEGAL_GENERATION);
        expect(&member, 0, topic, code::ILLEGAL_GENERATION);
        expect("nobody", 1, topic, code::UNKNOWN_MEMBER_ID);
        expect("", -1, topic, code::UNKNOWN_MEMBER_ID);
        expect(
            &member,
            1,
            "no-such-topic",
            code::UNKNOWN_TOPIC_OR_PARTITION,
        );
        let mut long = commit_request(group, &member, 1, topic, 3);
        long.topics[0].partitions[0].committed_metadata = Some(s(&"x".repeat(4097)));
        let reply = connection.call(8, &long).unwrap();
        assert_eq!(
            reply.topics[0].partitions[0].error_code,
            code::OFFSET_METADATA_TOO_LARGE
        );
        assert_eq!(committed(&mut connection, group, topic), 2);
        // For simple commits the empty group is one like any other.
        assert_eq!(commit(&mut connection, "", "", -1, topic, 2), code::NONE);
    });
}

#[test]
fn offset_fetch_tells_all_some_and_none() {
    for_each_broker(|broker| {
        let group = "groups-offsets";
        let topic = "groups-offsets-topic";
        let mut connection = prepare(broker, group);
        assert_eq!(
            commit(&mut connection, group, "", -1, topic, 42),
            code::NONE
        );
        for version in 2..=7 {
            let request = OffsetFetchRequest::default()
                .with_group_id(group_id(group))
                .with_topics(None);
            let reply = connection.call(version, &request).unwrap();
            assert_eq!(reply.error_code, code::NONE);
            assert_eq!(reply.topics.len(), 1, "v{version}");
            assert_eq!(reply.topics[0].partitions[0].committed_offset, 42);
            assert_eq!(reply.topics[0].partitions[0].metadata, Some(s("note")));
            let nobody = request.with_group_id(group_id("groups-nobody"));
            assert!(connection.call(version, &nobody).unwrap().topics.is_empty());
        }
        for version in 8..=9 {
            let of = |group: &str, topics: Option<Vec<&str>>| {
                let topics = topics.map(|topics| {
                    let topics = topics.into_iter().map(|name| {
                        OffsetFetchRequestTopics::default()
                            .with_name(topic_name(name))
                            .with_partition_indexes(vec![0, 9])
                    });
                    topics.collect()
                });
                OffsetFetchRequestGroup::default()
                    .with_group_id(group_id(group))
                    .with_topics(topics)
            };
            let groups = vec![
                of(group, None),
                of(group, Some(vec![topic, "no-such-topic"])),
                of("groups-nobody", Some(vec![topic])),
                of(group, Some(vec![])),
            ];
            // The same group may be asked once only by real clients: ask apart.
            let mut found = Vec::new();
            for group in groups {
                let request = OffsetFetchRequest::default().with_groups(vec![group]);
                let mut reply = connection.call(version, &request).unwrap();
                let group = reply.groups.remove(0);
                assert_eq!(group.error_code, code::NONE);
                let offsets: Vec<Vec<i64>> = group
                    .topics
                    .iter()
                    .map(|t| t.partitions.iter().map(|p| p.committed_offset).collect())
                    .collect();
                found.push(offsets);
            }
            let expected: Vec<Vec<Vec<i64>>> = vec![
                vec![vec![42]],
                vec![vec![42, -1], vec![-1, -1]],
                vec![vec![-1, -1]],
                vec![],
            ];
            assert_eq!(found, expected, "v{version}");
        }
        // Version 1 knows no null.
        connection
            .send_body(9, 1, &[0, 1, b'g', 0xff, 0xff, 0xff, 0xff])
            .unwrap();
        assert!(
            connection.read_frame().unwrap().is_none(),
            "OffsetFetch v1 of null closes"
        );
    });
}

/// A compact string.
fn compact(text: &str) -> Vec<u8> {
    let mut out = vec![text.len() as u8 + 1];
    out.extend(text.as_bytes());
    out
}

#[test]
fn version_10_names_topics_by_id() {
    for_each_broker(|broker| {
        let group = "groups-v10";
        wait_for_coordinator(broker, group);
        let id = create_topic(broker, "groups-v10-topic", 1);
        let unknown = uuid::Uuid::from_u128(404);
        let mut connection = connect(broker);
        // The codec stops at version 9: these bytes are made by hand.
        let mut body = compact(group);
        body.extend((-1_i32).to_be_bytes()); // generation
        body.extend([1, 0, 3]); // member "", no instance, two topics
        for topic in [id, unknown] {
            body.extend(topic.as_bytes());
            body.push(2); // one partition
            body.extend(0_i32.to_be_bytes());
            body.extend(77_i64.to_be_bytes());
            body.extend((-1_i32).to_be_bytes()); // leader epoch
            body.extend(compact("note"));
            body.extend([0, 0]); // tags of the partition and of the topic
        }
        body.push(0);
        connection.send_body(8, 10, &body).unwrap();
        let reply = connection.receive::<OffsetCommitRequest>(10).unwrap();
        let mut codes: Vec<_> = reply
            .topics
            .iter()
            .map(|topic| (topic.topic_id == id, topic.partitions[0].error_code))
            .collect();
        codes.sort_unstable();
        assert_eq!(codes, [(false, code::UNKNOWN_TOPIC_ID), (true, code::NONE)]);

        let mut body = vec![2]; // one group
        body.extend(compact(group));
        body.push(0); // no member id
        body.extend((-1_i32).to_be_bytes());
        body.push(3); // two topics
        for topic in [id, unknown] {
            body.extend(topic.as_bytes());
            body.push(2);
            body.extend(0_i32.to_be_bytes());
            body.push(0);
        }
        body.extend([0, 0, 0]); // tags of the group, not require_stable, tags
        connection.send_body(9, 10, &body).unwrap();
        let reply = connection.receive::<OffsetFetchRequest>(10).unwrap();
        assert_eq!(reply.groups[0].error_code, code::NONE);
        let mut found: Vec<_> = reply.groups[0]
            .topics
            .iter()
            .map(|topic| {
                let part = &topic.partitions[0];
                (topic.topic_id == id, part.committed_offset, part.error_code)
            })
            .collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [(false, -1, code::UNKNOWN_TOPIC_ID), (true, 77, code::NONE)]
        );
    });
}

#[test]
fn offsets_of_a_deleted_topic_are_gone() {
    for_each_broker(|broker| {
        let group = "groups-deleted";
        let topic = "groups-deleted-topic";
        let mut connection = prepare(broker, group);
        assert_eq!(commit(&mut connection, group, "", -1, topic, 7), code::NONE);
        assert_eq!(committed(&mut connection, group, topic), 7);
        delete_topic(broker, topic);
        create_topic(broker, topic, 1);
        eventually(Duration::from_secs(20), "the commit is dropped", || {
            (committed(&mut connection, group, topic) == -1).then_some(())
        });
    });
}

#[test]
fn groups_are_described_listed_and_deleted() {
    for_each_broker(|broker| {
        let group = "groups-admin";
        let topic = "groups-admin-topic";
        let mut connection = prepare(broker, group);
        assert_eq!(state(&mut connection, group).0, "Dead", "not there yet");
        let request = DescribeGroupsRequest::default().with_groups(vec![group_id(group)]);
        let reply = connection.call(6, &request).unwrap();
        assert_eq!(reply.groups[0].error_code, code::GROUP_ID_NOT_FOUND);
        assert_eq!(reply.groups[0].group_state.as_str(), "Dead");

        commit(&mut connection, group, "", -1, topic, 7);
        assert_eq!(
            state(&mut connection, group),
            ("Empty".into(), String::new())
        );
        let member = alone(&mut connection, group);
        let reply = connection.call(4, &request).unwrap();
        let shown = &reply.groups[0];
        assert_eq!(shown.group_state.as_str(), "Stable");
        assert_eq!(shown.protocol_data.as_str(), "range");
        assert_eq!(shown.members.len(), 1);
        assert_eq!(shown.members[0].member_id.as_str(), member);
        assert_eq!(shown.members[0].client_id.as_str(), "raw");
        assert_eq!(shown.members[0].client_host.as_str(), "/127.0.0.1");
        assert_eq!(&shown.members[0].member_metadata[..], b"metadata");
        assert_eq!(&shown.members[0].member_assignment[..], b"all");

        let listed = |connection: &mut Connection, states: &[&str]| {
            let request = ListGroupsRequest::default()
                .with_states_filter(states.iter().map(|name| s(name)).collect());
            let reply = connection.call(5, &request).unwrap();
            reply
                .groups
                .into_iter()
                .find(|g| g.group_id == group_id(group))
        };
        let found = listed(&mut connection, &[]).expect("it is listed");
        let shown = (found.group_state.as_str(), found.protocol_type.as_str());
        assert_eq!(shown, ("Stable", "consumer"));
        assert_eq!(found.group_type.to_lowercase(), "classic");
        assert!(listed(&mut connection, &["Empty"]).is_none());
        assert!(listed(&mut connection, &["stable"]).is_some());

        let delete = |connection: &mut Connection, group: &str| {
            let request = DeleteGroupsRequest::default().with_groups_names(vec![group_id(group)]);
            connection.call(2, &request).unwrap().results[0].error_code
        };
        assert_eq!(delete(&mut connection, group), code::NON_EMPTY_GROUP);
        assert_eq!(
            delete(&mut connection, "no-such-group"),
            code::GROUP_ID_NOT_FOUND
        );
        let delete_offset = |connection: &mut Connection, group: &str| {
            let topic = OffsetDeleteRequestTopic::default()
                .with_name(topic_name(topic))
                .with_partitions(vec![
                    OffsetDeleteRequestPartition::default().with_partition_index(0),
                ]);
            let request = OffsetDeleteRequest::default()
                .with_group_id(group_id(group))
                .with_topics(vec![topic]);
            let reply = connection.call(0, &request).unwrap();
            let part = reply
                .topics
                .first()
                .and_then(|topic| topic.partitions.first());
            (reply.error_code, part.map(|part| part.error_code))
        };
        let unknown = (code::GROUP_ID_NOT_FOUND, None);
        assert_eq!(delete_offset(&mut connection, "no-such-group"), unknown);
        assert_eq!(leave(&mut connection, group, &member), code::NONE);
        assert_eq!(
            state(&mut connection, group),
            ("Empty".into(), "consumer".into())
        );
        assert_eq!(
            delete_offset(&mut connection, group),
            (code::NONE, Some(code::NONE))
        );
        assert_eq!(committed(&mut connection, group, topic), -1);
        eventually(Duration::from_secs(10), "the group is deleted", || {
            let found = delete(&mut connection, group);
            [code::NONE, code::GROUP_ID_NOT_FOUND]
                .contains(&found)
                .then_some(())
        });
        assert_eq!(state(&mut connection, group).0, "Dead");
        assert!(listed(&mut connection, &[]).is_none());
    });
}

#[test]
fn offsets_and_generations_live_on_after_kill() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        let group = "groups-kill";
        let topic = "groups-kill-topic";
        let mut connection = prepare(broker, group);
        let member = alone(&mut connection, group);
        assert_eq!(
            commit(&mut connection, group, &member, 1, topic, 33),
            code::NONE
        );
        broker.kill().unwrap();
        broker.start_again().unwrap();
        wait_for_coordinator(broker, group);
        let mut connection = connect(broker);
        assert_eq!(committed(&mut connection, group, topic), 33);
        assert_eq!(
            heartbeat(&mut connection, group, &member, 1),
            code::NONE,
            "still a member"
        );
        assert_eq!(
            commit(&mut connection, group, &member, 1, topic, 34),
            code::NONE
        );
    });
}

#[test]
fn subscribed_topics_keep_their_offsets() {
    for_each_broker(|broker| {
        let group = "groups-subscribed";
        let topic = "groups-subscribed-topic";
        let mut connection = prepare(broker, group);
        // A subscription, version 0: the topics and no user data.
        let mut subscription = vec![0, 0, 0, 0, 0, 1, 0, topic.len() as u8];
        subscription.extend(topic.as_bytes());
        subscription.extend([0xff; 4]);
        let range = JoinGroupRequestProtocol::default()
            .with_name(s("range"))
            .with_metadata(Bytes::from(subscription));
        let request =
            |member: &str| join_request(group, member).with_protocols(vec![range.clone()]);
        let member = connection.call(JOIN, &request("")).unwrap().member_id;
        let joined = connection.call(JOIN, &request(&member)).unwrap();
        assert_eq!(joined.error_code, code::NONE);
        sync(&mut connection, group, &member, 1, &[(&member, b"x")]);
        assert_eq!(
            commit(&mut connection, group, &member, 1, topic, 1),
            code::NONE
        );
        let topics = OffsetDeleteRequestTopic::default()
            .with_name(topic_name(topic))
            .with_partitions(vec![
                OffsetDeleteRequestPartition::default().with_partition_index(0),
            ]);
        let request = OffsetDeleteRequest::default()
            .with_group_id(group_id(group))
            .with_topics(vec![topics]);
        let reply = connection.call(0, &request).unwrap();
        assert_eq!(reply.error_code, code::NONE);
        let found = reply.topics[0].partitions[0].error_code;
        assert_eq!(found, code::GROUP_SUBSCRIBED_TO_TOPIC);
        assert_eq!(committed(&mut connection, group, topic), 1);
    });
}
