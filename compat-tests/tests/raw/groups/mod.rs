//! Consumer groups of the classic protocol (F).

mod administration;
mod membership;
mod offsets;

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
