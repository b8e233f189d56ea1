//! Consumer groups over the wire of a whole broker: every version of every API, a group's life, restarts, and topics
//! that are deleted and made again.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use highwater::api::{api, apis};
use highwater::broker::{BoundListeners, RunningBroker};
use highwater::config::{DynamicConfig, StaticConfig};
use highwater::log_dirs;
use highwater::network::ListenerKind;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
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
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, HeaderVersion, Message, Request, StrBytes};
use tokio::runtime::Runtime;

struct Started {
    runtime: Runtime,
    broker: RunningBroker,
}

impl Started {
    fn on(dir: &Path) -> Self {
        let runtime = Runtime::new().unwrap();
        let entries = [
            ("log.dirs", dir.to_str().unwrap()),
            ("listeners", "PLAINTEXT://127.0.0.1:0"),
            ("group.initial.rebalance.delay.ms", "0"),
            ("offsets.topic.num.partitions", "3"),
            ("offsets.topic.replication.factor", "1"),
        ];
        let config = StaticConfig::from_entries(entries).unwrap();
        let config = Arc::new(DynamicConfig::new(config).unwrap());
        let current = config.current();
        let dirs = log_dirs::open(current.log_manager(), current.node_id, None).unwrap();
        let broker = runtime
            .block_on(async {
                let listeners = BoundListeners::bind(&current).unwrap();
                RunningBroker::start(listeners, dirs, config).await
            })
            .unwrap();
        Started { runtime, broker }
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.broker.listeners()[0].local_address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        Client { stream, next_id: 0 }
    }

    fn stop(self) {
        self.runtime.block_on(self.broker.stop()).unwrap();
    }
}

struct Client {
    stream: TcpStream,
    next_id: i32,
}

impl Client {
    fn send<R: Request>(&mut self, request: &R, version: i16) {
        let mut body = Vec::new();
        request.encode(&mut body, version).unwrap();
        self.send_body::<R>(&body, version);
    }

    fn send_body<R: Request>(&mut self, body: &[u8], version: i16) {
        self.next_id += 1;
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.next_id)
            .with_client_id(Some(text("client")));
        let mut frame = Vec::new();
        let header_version = R::header_version(version);
        kafka_protocol::protocol::Encodable::encode(&header, &mut frame, header_version).unwrap();
        frame.extend_from_slice(body);
        let mut sent = (frame.len() as i32).to_be_bytes().to_vec();
        sent.extend_from_slice(&frame);
        self.stream.write_all(&sent).unwrap();
    }

    /// The response to the request sent last; nothing may be left behind it.
    fn receive<R: Request>(&mut self, version: i16) -> R::Response {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut frame = vec![0; i32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame).unwrap();
        let mut frame = Bytes::from(frame);
        let header_version = R::Response::header_version(version);
        let header = ResponseHeader::decode(&mut frame, header_version).unwrap();
        assert_eq!(header.correlation_id, self.next_id);
        let response = R::Response::decode(&mut frame, version).unwrap();
        assert_eq!(frame.remaining(), 0, "bytes behind the response");
        response
    }

    fn call<R: Request>(&mut self, request: &R, version: i16) -> R::Response {
        self.send(request, version);
        self.receive::<R>(version)
    }

    fn latest<R: Request>(&mut self, request: &R) -> R::Response {
        self.call(request, R::VERSIONS.max)
    }

    fn create_topic(&mut self, name: &str) {
        let topic = CreatableTopic::default()
            .with_name(TopicName(text(name)))
            .with_num_partitions(2)
            .with_replication_factor(1);
        let request = CreateTopicsRequest::default()
            .with_timeout_ms(10_000)
            .with_topics(vec![topic]);
        assert_eq!(self.latest(&request).topics[0].error_code, 0);
    }

    fn delete_topic(&mut self, name: &str) {
        let topic = DeleteTopicState::default().with_name(Some(TopicName(text(name))));
        let request = DeleteTopicsRequest::default()
            .with_timeout_ms(10_000)
            .with_topics(vec![topic]);
        assert_eq!(self.latest(&request).responses[0].error_code, 0);
    }

    fn find_coordinator(&mut self) {
        let request = FindCoordinatorRequest::default().with_coordinator_keys(vec![text("g")]);
        assert_eq!(self.latest(&request).coordinators[0].error_code, 0);
    }

    /// Joins and syncs as the only member; gives its id.
    fn join_alone(&mut self, group: &str) -> StrBytes {
        let request = join(group, "");
        let told = self.latest(&request);
        assert_eq!(told.error_code, ResponseError::MemberIdRequired.code());
        let joined = self.latest(&request.with_member_id(told.member_id));
        assert_eq!((joined.error_code, joined.generation_id), (0, 1));
        assert_eq!(joined.leader, joined.member_id);
        assert_eq!(joined.members.len(), 1);
        let assignment = SyncGroupRequestAssignment::default()
            .with_member_id(joined.member_id.clone())
            .with_assignment(Bytes::from_static(b"mine"));
        let sync = SyncGroupRequest::default()
            .with_group_id(group_id(group))
            .with_generation_id(1)
            .with_member_id(joined.member_id.clone())
            .with_protocol_type(Some(text("consumer")))
            .with_protocol_name(Some(text("range")))
            .with_assignments(vec![assignment]);
        let synced = self.latest(&sync);
        assert_eq!((synced.error_code, &*synced.assignment), (0, &b"mine"[..]));
        joined.member_id
    }

    fn committed(&mut self, group: &str) -> i64 {
        let topic = OffsetFetchRequestTopics::default()
            .with_name(TopicName(text("t")))
            .with_partition_indexes(vec![0]);
        let group = OffsetFetchRequestGroup::default()
            .with_group_id(group_id(group))
            .with_topics(Some(vec![topic]));
        let request = OffsetFetchRequest::default().with_groups(vec![group]);
        self.latest(&request).groups[0].topics[0].partitions[0].committed_offset
    }
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn group_id(name: &str) -> GroupId {
    GroupId(text(name))
}

fn join(group: &str, member_id: &str) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(Bytes::from_static(&[0, 0, 0, 0, 0, 1, 0, 1, b't']));
    JoinGroupRequest::default()
        .with_group_id(group_id(group))
        .with_session_timeout_ms(10_000)
        .with_rebalance_timeout_ms(10_000)
        .with_member_id(text(member_id))
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol])
}

fn commit(group: &str, member_id: &str, generation: i32, offset: i64) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition::default()
        .with_committed_offset(offset)
        .with_committed_metadata(Some(text("m")));
    let topic = OffsetCommitRequestTopic::default()
        .with_name(TopicName(text("t")))
        .with_partitions(vec![partition]);
    OffsetCommitRequest::default()
        .with_group_id(group_id(group))
        .with_generation_id_or_member_epoch(generation)
        .with_member_id(text(member_id))
        .with_topics(vec![topic])
}

fn commit_error(response: &OffsetCommitResponse) -> i16 {
    response.topics[0].partitions[0].error_code
}

/// Sends `request` at each of its versions and looks at the answers.
fn at_every_version<R: Request>(
    client: &mut Client,
    request: impl Fn(i16) -> R,
    check: impl Fn(i16, R::Response),
) {
    let served = api(ListenerKind::Broker, R::KEY).unwrap();
    assert!(served.min_version <= R::VERSIONS.min && served.max_version >= R::VERSIONS.max);
    for version in R::VERSIONS.min..=R::VERSIONS.max {
        let response = client.call(&request(version), version);
        check(version, response);
    }
}

#[test]
fn every_version_of_every_group_api_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let started = Started::on(dir.path());
    let client = &mut started.connect();
    client.create_topic("t");
    at_every_version(
        client,
        |version| match version {
            0..4 => FindCoordinatorRequest::default().with_key(text("g")),
            _ => FindCoordinatorRequest::default().with_coordinator_keys(vec![text("g")]),
        },
        |version, response| {
            let node = match version {
                0..4 => (response.error_code, response.node_id),
                _ => (
                    response.coordinators[0].error_code,
                    response.coordinators[0].node_id,
                ),
            };
            assert_eq!(node, (0, BrokerId(1)));
        },
    );
    at_every_version(
        client,
        |version| {
            let request = join(&format!("join-{version}"), "");
            match version {
                0 => request.with_rebalance_timeout_ms(-1),
                5.. => request.with_group_instance_id(Some(text("i"))),
                _ => request,
            }
        },
        |version, response| match version {
            4 => assert_eq!(response.error_code, ResponseError::MemberIdRequired.code()),
            _ => assert_eq!((response.error_code, response.generation_id), (0, 1)),
        },
    );
    let unknown = ResponseError::UnknownMemberId.code();
    let sync = |version| {
        let request = SyncGroupRequest::default().with_group_id(group_id("join-1"));
        match version {
            5.. => request
                .with_protocol_type(Some(text("consumer")))
                .with_protocol_name(Some(text("range"))),
            _ => request,
        }
    };
    at_every_version(client, sync, |_, response| {
        assert_eq!(response.error_code, unknown)
    });
    at_every_version(
        client,
        |_| HeartbeatRequest::default().with_group_id(group_id("join-1")),
        |_, response| assert_eq!(response.error_code, unknown),
    );
    let leave = |version| {
        let request = LeaveGroupRequest::default().with_group_id(group_id("join-1"));
        match version {
            3.. => request.with_members(vec![MemberIdentity::default().with_member_id(text("x"))]),
            _ => request.with_member_id(text("x")),
        }
    };
    at_every_version(client, leave, |version, response| match version {
        3.. => assert_eq!(response.members[0].error_code, unknown),
        _ => assert_eq!(response.error_code, unknown),
    });
}

#[test]
fn every_version_of_every_api_of_offsets_and_groups_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let started = Started::on(dir.path());
    let client = &mut started.connect();
    client.create_topic("t");
    client.find_coordinator();
    at_every_version(
        client,
        |version| commit("simple", "", -1, i64::from(version)),
        |_, response| assert_eq!(commit_error(&response), 0),
    );
    let last = i64::from(OffsetCommitRequest::VERSIONS.max);
    let fetch = |version| {
        if version >= 8 {
            let groups = ["simple", "unknown"].map(|name| {
                OffsetFetchRequestGroup::default()
                    .with_group_id(group_id(name))
                    .with_topics(None)
            });
            return OffsetFetchRequest::default().with_groups(groups.into());
        }
        let topic = OffsetFetchRequestTopic::default()
            .with_name(TopicName(text("t")))
            .with_partition_indexes(vec![0, 7]);
        OffsetFetchRequest::default()
            .with_group_id(group_id("simple"))
            .with_topics(Some(vec![topic]))
    };
    at_every_version(client, fetch, |version, response| {
        if version >= 8 {
            let partition = &response.groups[0].topics[0].partitions[0];
            assert_eq!(partition.committed_offset, last);
            assert!(response.groups[1].topics.is_empty());
        } else {
            let offsets = response.topics[0]
                .partitions
                .iter()
                .map(|p| p.committed_offset);
            assert_eq!(offsets.collect::<Vec<_>>(), [last, -1]);
        }
    });
    at_every_version(
        client,
        |_| ListGroupsRequest::default(),
        |version, response| {
            let group = &response.groups[0];
            let state = if version >= 4 { "Empty" } else { "" };
            let group_type = if version >= 5 { "classic" } else { "" };
            assert_eq!(
                (&*group.group_id.0, &*group.group_state, &*group.group_type),
                ("simple", state, group_type)
            );
        },
    );
    let names = || vec![group_id("simple"), group_id("unknown")];
    at_every_version(
        client,
        |_| DescribeGroupsRequest::default().with_groups(names()),
        |version, response| {
            assert_eq!(&*response.groups[0].group_state, "Empty");
            let unknown = &response.groups[1];
            let error = if version >= 6 {
                ResponseError::GroupIdNotFound.code()
            } else {
                0
            };
            assert_eq!((&*unknown.group_state, unknown.error_code), ("Dead", error));
        },
    );
    let partition = |index| OffsetDeleteRequestPartition::default().with_partition_index(index);
    let topic = OffsetDeleteRequestTopic::default()
        .with_name(TopicName(text("t")))
        .with_partitions(vec![partition(0), partition(9)]);
    let delete = OffsetDeleteRequest::default()
        .with_group_id(group_id("simple"))
        .with_topics(vec![topic]);
    at_every_version(
        client,
        |_| delete.clone(),
        |_, response| {
            let partitions = response.topics[0].partitions.iter();
            let results: Vec<_> = partitions
                .map(|p| (p.partition_index, p.error_code))
                .collect();
            assert_eq!(
                results,
                [(9, ResponseError::UnknownTopicOrPartition.code()), (0, 0)]
            );
        },
    );
    at_every_version(
        client,
        |_| DeleteGroupsRequest::default().with_groups_names(names()),
        |version, response| {
            let unknown = ResponseError::GroupIdNotFound.code();
            let first = if version == 0 { 0 } else { unknown };
            let errors: Vec<_> = response.results.iter().map(|r| r.error_code).collect();
            assert_eq!(errors, [first, unknown]);
        },
    );
}

#[test]
fn a_group_lives_through_a_restart_of_its_broker() {
    let dir = tempfile::tempdir().unwrap();
    let started = Started::on(dir.path());
    let mut client = started.connect();
    client.create_topic("t");
    client.find_coordinator();
    let member_id = client.join_alone("g");
    assert_eq!(
        commit_error(&client.latest(&commit("g", &member_id, 1, 41))),
        0
    );
    started.stop();

    let started = Started::on(dir.path());
    let mut client = started.connect();
    let heartbeat = HeartbeatRequest::default()
        .with_group_id(group_id("g"))
        .with_generation_id(1)
        .with_member_id(member_id.clone());
    assert_eq!(client.latest(&heartbeat).error_code, 0);
    // While the groups are loaded a heartbeat is let pass, other requests are asked to come again.
    let loading = ResponseError::CoordinatorLoadInProgress.code();
    let answer = loop {
        let response = client.latest(&commit("g", &member_id, 1, 42));
        if commit_error(&response) != loading {
            break commit_error(&response);
        }
    };
    assert_eq!(answer, 0);
    assert_eq!(client.committed("g"), 42);
    let stale = client.latest(&commit("g", &member_id, 2, 43));
    assert_eq!(
        commit_error(&stale),
        ResponseError::IllegalGeneration.code()
    );
    let describe = DescribeGroupsRequest::default().with_groups(vec![group_id("g")]);
    let described = client.latest(&describe);
    assert_eq!(&*described.groups[0].group_state, "Stable");
    assert_eq!(&*described.groups[0].members[0].member_assignment, b"mine");
    started.stop();
}

#[test]
fn a_parked_join_is_answered_while_its_connection_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let started = Started::on(dir.path());
    let (mut first, mut second) = (started.connect(), started.connect());
    first.find_coordinator();
    let member_id = first.join_alone("g");
    second.send(&join("g", ""), 3);
    // Its rebalance is seen by the first member, which joins again.
    let heartbeat = HeartbeatRequest::default()
        .with_group_id(group_id("g"))
        .with_generation_id(1)
        .with_member_id(member_id.clone());
    while first.latest(&heartbeat).error_code != ResponseError::RebalanceInProgress.code() {}
    let joined = first.latest(&join("g", &member_id));
    let other = second.receive::<JoinGroupRequest>(3);
    assert_eq!((joined.generation_id, other.generation_id), (2, 2));
    assert_eq!(joined.members.len(), 2);
    assert!(other.members.is_empty());
    started.stop();
}

#[test]
fn stopping_answers_a_parked_join() {
    let dir = tempfile::tempdir().unwrap();
    let started = Started::on(dir.path());
    let (mut first, mut second) = (started.connect(), started.connect());
    first.find_coordinator();
    let member_id = first.join_alone("g");
    second.send(&join("g", ""), 3);
    let heartbeat = HeartbeatRequest::default()
        .with_group_id(group_id("g"))
        .with_generation_id(1)
        .with_member_id(member_id);
    while first.latest(&heartbeat).error_code != ResponseError::RebalanceInProgress.code() {}
    started.stop();
    let response = second.receive::<JoinGroupRequest>(3);
    assert_eq!(response.error_code, ResponseError::NotCoordinator.code());
}

#[test]
fn a_topic_that_is_made_again_has_no_committed_offsets() {
    let dir = tempfile::tempdir().unwrap();
    let started = Started::on(dir.path());
    let mut client = started.connect();
    client.create_topic("t");
    client.find_coordinator();
    assert_eq!(commit_error(&client.latest(&commit("g", "", -1, 7))), 0);
    assert_eq!(client.committed("g"), 7);
    let old_id = started.broker.broker().image().topic("t").unwrap().id;
    client.delete_topic("t");
    client.create_topic("t");
    assert_eq!(client.committed("g"), -1);
    // A late commit for the old topic, by its id (version 10).
    let mut body = vec![2, b'g'];
    body.put_i32(-1);
    body.put_slice(&[1, 0, 2]);
    body.put_slice(old_id.0.as_bytes());
    body.put_slice(&[2, 0, 0, 0, 0]);
    body.put_i64(9);
    body.put_i32(-1);
    body.put_slice(&[1, 0, 0, 0]);
    client.send_body::<OffsetCommitRequest>(&body, 10);
    let response = client.receive::<OffsetCommitRequest>(10);
    assert_eq!(response.topics[0].topic_id, old_id.0);
    assert_eq!(
        commit_error(&response),
        ResponseError::UnknownTopicId.code()
    );
    assert_eq!(client.committed("g"), -1);
    started.stop();
}

#[test]
fn offsets_by_topic_id_are_served() {
    for key in [ApiKey::OffsetCommit as i16, ApiKey::OffsetFetch as i16] {
        assert_eq!(api(ListenerKind::Broker, key).unwrap().max_version, 10);
    }
    let keys: Vec<_> = apis(ListenerKind::Broker).map(|api| api.key).collect();
    assert!(
        !keys.contains(&(ApiKey::ConsumerGroupHeartbeat as i16)),
        "KIP-848 is not offered"
    );
}
