//! For each API and version: valid requests, first the smallest one that touches what it names, then
//! ones that must fail. Sent to one broker in order they do the same on the other.

use bytes::Bytes;
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, BrokerId, DescribeClusterRequest, DescribeGroupsRequest,
    FindCoordinatorRequest, HeartbeatRequest, InitProducerIdRequest, JoinGroupRequest,
    LeaveGroupRequest, ListConfigResourcesRequest, ListGroupsRequest, ListOffsetsRequest,
    MetadataRequest, OffsetCommitRequest, OffsetFetchRequest, OffsetForLeaderEpochRequest,
    ProducerId, RequestKind, SyncGroupRequest, TransactionalId,
};
use uuid::Uuid;

use crate::support::{batch, group_id, s, topic_name};

/// What the requests are about; the same on both brokers but for the id.
pub(crate) struct Subject {
    /// A topic with two partitions and some records in partition 0.
    pub(crate) topic: String,
    pub(crate) topic_id: Uuid,
    /// A group that only commits offsets.
    pub(crate) group: String,
}

/// A named request.
pub(crate) type Variant = (&'static str, RequestKind);

const UNKNOWN_ID: Uuid = Uuid::from_u128(0x1234_5678_9abc_def0_1234_5678_9abc_def0);
const UNKNOWN: &str = "no-such-topic";

/// The requests of one API at one version; none for an API that this table does not know.
pub(crate) fn variants(key: ApiKey, version: i16, on: &Subject) -> Vec<Variant> {
    match key {
        ApiKey::Produce => produce(version, on),
        ApiKey::Fetch => fetch(version, on),
        ApiKey::ListOffsets => list_offsets(version, on),
        ApiKey::Metadata => metadata(version, on),
        ApiKey::OffsetCommit => offset_commit(version, on),
        ApiKey::OffsetFetch => offset_fetch(version, on),
        ApiKey::FindCoordinator => find_coordinator(version, on),
        ApiKey::JoinGroup => join_group(version),
        ApiKey::Heartbeat => vec![(
            "unknown group",
            RequestKind::Heartbeat(
                HeartbeatRequest::default()
                    .with_group_id(group_id("no-such-group"))
                    .with_generation_id(1)
                    .with_member_id(s("nobody")),
            ),
        )],
        ApiKey::LeaveGroup => leave_group(version, on),
        ApiKey::SyncGroup => sync_group(version),
        ApiKey::DescribeGroups => vec![(
            "known and unknown",
            RequestKind::DescribeGroups(
                DescribeGroupsRequest::default()
                    .with_groups(vec![group_id(&on.group), group_id("no-such-group")])
                    .with_include_authorized_operations(version >= 3),
            ),
        )],
        ApiKey::ListGroups => list_groups(version),
        ApiKey::ApiVersions => api_versions(version),
        ApiKey::InitProducerId => init_producer_id(version),
        ApiKey::OffsetForLeaderEpoch => offset_for_leader_epoch(version, on),
        ApiKey::DescribeCluster => vec![(
            "plain",
            RequestKind::DescribeCluster(
                DescribeClusterRequest::default().with_include_cluster_authorized_operations(true),
            ),
        )],
        ApiKey::ListConfigResources => {
            let types = if version == 0 { vec![] } else { vec![2] };
            let request = ListConfigResourcesRequest::default().with_resource_types(types);
            vec![("of a type", RequestKind::ListConfigResources(request))]
        }
        _ => crate::requests_admin::variants(key, version, on),
    }
}

fn produce(version: i16, on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::ProduceRequest;
    use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
    let request = |name: &str, id: Uuid, partition: i32, records: Bytes, acks: i16| {
        let part = PartitionProduceData::default()
            .with_index(partition)
            .with_records(Some(records));
        let mut topic = TopicProduceData::default().with_partition_data(vec![part]);
        if version >= 13 {
            topic.topic_id = id;
        } else {
            topic.name = topic_name(name);
        }
        let request = ProduceRequest::default()
            .with_acks(acks)
            .with_timeout_ms(5000)
            .with_topic_data(vec![topic]);
        RequestKind::Produce(request)
    };
    let good = batch(2).encode();
    let mut corrupt = good.to_vec();
    *corrupt.last_mut().expect("not empty") ^= 1;
    let two = [good.as_ref(), good.as_ref()].concat();
    vec![
        (
            "one batch",
            request(&on.topic, on.topic_id, 1, good.clone(), -1),
        ),
        (
            "acks 1",
            request(&on.topic, on.topic_id, 1, good.clone(), 1),
        ),
        (
            "unknown topic",
            request(UNKNOWN, UNKNOWN_ID, 0, good.clone(), -1),
        ),
        (
            "unknown partition",
            request(&on.topic, on.topic_id, 99, good.clone(), -1),
        ),
        (
            "flipped bit",
            request(&on.topic, on.topic_id, 1, corrupt.into(), -1),
        ),
        (
            "two batches",
            request(&on.topic, on.topic_id, 1, two.into(), -1),
        ),
        (
            "no batch",
            request(&on.topic, on.topic_id, 1, Bytes::new(), -1),
        ),
        ("acks 2", request(&on.topic, on.topic_id, 1, good, 2)),
        (
            "no topics",
            RequestKind::Produce(ProduceRequest::default().with_acks(1).with_timeout_ms(5000)),
        ),
    ]
}

fn fetch(version: i16, on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::FetchRequest;
    use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
    let request = |name: &str, id: Uuid, part: FetchPartition, epoch: i32| {
        let mut topic = FetchTopic::default().with_partitions(vec![part]);
        if version >= 13 {
            topic.topic_id = id;
        } else {
            topic.topic = topic_name(name);
        }
        let mut request = FetchRequest::default()
            .with_max_wait_ms(0)
            .with_min_bytes(1)
            .with_max_bytes(1 << 20)
            .with_topics(vec![topic]);
        request.session_epoch = if version >= 7 { epoch } else { -1 };
        RequestKind::Fetch(request)
    };
    let part = |index: i32, offset: i64| {
        FetchPartition::default()
            .with_partition(index)
            .with_fetch_offset(offset)
            .with_partition_max_bytes(1 << 20)
    };
    let mut out = vec![
        (
            "from the start",
            request(&on.topic, on.topic_id, part(0, 0), -1),
        ),
        (
            "from inside",
            request(&on.topic, on.topic_id, part(0, 4), -1),
        ),
        (
            "at the end",
            request(&on.topic, on.topic_id, part(0, 6), -1),
        ),
        (
            "past the end",
            request(&on.topic, on.topic_id, part(0, 99), -1),
        ),
        (
            "below the start",
            request(&on.topic, on.topic_id, part(0, -5), -1),
        ),
        (
            "unknown topic",
            request(UNKNOWN, UNKNOWN_ID, part(0, 0), -1),
        ),
        (
            "unknown partition",
            request(&on.topic, on.topic_id, part(99, 0), -1),
        ),
    ];
    if version >= 7 {
        out.push((
            "opens a session",
            request(&on.topic, on.topic_id, part(0, 0), 0),
        ));
        out.push((
            "continues no session",
            request(&on.topic, on.topic_id, part(0, 0), 7),
        ));
    }
    if version >= 9 {
        let fenced = part(0, 0).with_current_leader_epoch(77);
        out.push((
            "leader epoch above",
            request(&on.topic, on.topic_id, fenced, -1),
        ));
    }
    if version >= 12 {
        let above = part(0, 1).with_last_fetched_epoch(44);
        out.push((
            "fetched epoch above",
            request(&on.topic, on.topic_id, above, -1),
        ));
    }
    out
}

fn list_offsets(version: i16, on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
    let request = |name: &str, partition: i32, timestamp: i64, epoch: i32| {
        let part = ListOffsetsPartition::default()
            .with_partition_index(partition)
            .with_timestamp(timestamp)
            .with_current_leader_epoch(epoch);
        let topic = ListOffsetsTopic::default()
            .with_name(topic_name(name))
            .with_partitions(vec![part]);
        let request = ListOffsetsRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_topics(vec![topic]);
        RequestKind::ListOffsets(request)
    };
    let stamp = *crate::support::NOW_MS;
    let mut out = vec![
        ("latest", request(&on.topic, 0, -1, -1)),
        ("earliest", request(&on.topic, 0, -2, -1)),
        ("largest timestamp", request(&on.topic, 0, -3, -1)),
        ("earliest local", request(&on.topic, 0, -4, -1)),
        ("latest tiered", request(&on.topic, 0, -5, -1)),
        ("earliest to upload", request(&on.topic, 0, -6, -1)),
        ("no such special", request(&on.topic, 0, -7, -1)),
        ("a time that is there", request(&on.topic, 0, stamp, -1)),
        (
            "a time after all",
            request(&on.topic, 0, stamp + 10_000_000, -1),
        ),
        ("time 0", request(&on.topic, 0, 0, -1)),
        ("empty partition", request("compare-empty", 0, -1, -1)),
        (
            "largest timestamp of nothing",
            request("compare-empty", 0, -3, -1),
        ),
        ("unknown topic", request(UNKNOWN, 0, -1, -1)),
        ("unknown partition", request(&on.topic, 99, -1, -1)),
    ];
    if version >= 4 {
        out.push(("leader epoch above", request(&on.topic, 0, -1, 77)));
    }
    out
}

fn metadata(version: i16, on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
    let named = |name: &str| MetadataRequestTopic::default().with_name(Some(topic_name(name)));
    let by_id = |id: Uuid| {
        MetadataRequestTopic::default()
            .with_topic_id(id)
            .with_name(None)
    };
    let request = |topics: Option<Vec<MetadataRequestTopic>>| {
        let request = MetadataRequest::default()
            .with_topics(topics)
            .with_allow_auto_topic_creation(version < 4)
            .with_include_topic_authorized_operations(version >= 8)
            .with_include_cluster_authorized_operations((8..=10).contains(&version));
        RequestKind::Metadata(request)
    };
    let mut out = vec![
        ("one topic", request(Some(vec![named(&on.topic)]))),
        ("invalid name", request(Some(vec![named("a/b")]))),
        ("empty list", request(Some(vec![]))),
    ];
    if version >= 1 {
        out.push(("all topics", request(None)));
    }
    if version >= 4 {
        out.push(("unknown topic", request(Some(vec![named(UNKNOWN)]))));
        out.push((
            "same topic twice",
            request(Some(vec![named(&on.topic), named(&on.topic)])),
        ));
    }
    if version >= 12 {
        out.push(("by id", request(Some(vec![by_id(on.topic_id)]))));
        out.push(("by unknown id", request(Some(vec![by_id(UNKNOWN_ID)]))));
    }
    out
}

fn offset_commit(version: i16, on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::offset_commit_request::{
        OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    };
    let request = |group: &str, name: &str, partition: i32, note: &str, generation: i32| {
        let part = OffsetCommitRequestPartition::default()
            .with_partition_index(partition)
            .with_committed_offset(i64::from(version))
            .with_committed_metadata(Some(s(note)));
        let topic = OffsetCommitRequestTopic::default()
            .with_name(topic_name(name))
            .with_partitions(vec![part]);
        let request = OffsetCommitRequest::default()
            .with_group_id(group_id(group))
            .with_generation_id_or_member_epoch(generation)
            .with_topics(vec![topic]);
        RequestKind::OffsetCommit(request)
    };
    vec![
        ("simple", request(&on.group, &on.topic, 0, "note", -1)),
        ("unknown topic", request(&on.group, UNKNOWN, 0, "", -1)),
        (
            "unknown partition",
            request(&on.group, &on.topic, 99, "", -1),
        ),
        (
            "long metadata",
            request(&on.group, &on.topic, 0, &"x".repeat(4097), -1),
        ),
        (
            "unknown group with generation",
            request("no-such-group", &on.topic, 0, "", 3),
        ),
        ("empty group id", request("", &on.topic, 0, "", -1)),
    ]
}

fn offset_fetch(version: i16, on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::offset_fetch_request::{
        OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
    };
    let request = |group: &str, names: Option<Vec<&str>>| {
        if version >= 8 {
            let topics = names.map(|names| {
                let topics = names.into_iter().map(|name| {
                    OffsetFetchRequestTopics::default()
                        .with_name(topic_name(name))
                        .with_partition_indexes(vec![0, 1])
                });
                topics.collect()
            });
            let group = OffsetFetchRequestGroup::default()
                .with_group_id(group_id(group))
                .with_topics(topics);
            return RequestKind::OffsetFetch(
                OffsetFetchRequest::default().with_groups(vec![group]),
            );
        }
        let topics = names.map(|names| {
            let topics = names.into_iter().map(|name| {
                OffsetFetchRequestTopic::default()
                    .with_name(topic_name(name))
                    .with_partition_indexes(vec![0, 1])
            });
            topics.collect()
        });
        RequestKind::OffsetFetch(
            OffsetFetchRequest::default()
                .with_group_id(group_id(group))
                .with_topics(topics),
        )
    };
    let mut out = vec![
        (
            "committed and not",
            request(&on.group, Some(vec![&on.topic])),
        ),
        ("unknown topic", request(&on.group, Some(vec![UNKNOWN]))),
        (
            "unknown group",
            request("no-such-group", Some(vec![&on.topic])),
        ),
        ("no topics", request(&on.group, Some(vec![]))),
    ];
    if version >= 2 {
        out.push(("all topics", request(&on.group, None)));
        out.push((
            "all topics of an unknown group",
            request("no-such-group", None),
        ));
    }
    out
}

fn find_coordinator(version: i16, on: &Subject) -> Vec<Variant> {
    let request = |keys: Vec<&str>, kind: i8| {
        let request = FindCoordinatorRequest::default().with_key_type(kind);
        RequestKind::FindCoordinator(if version >= 4 {
            request.with_coordinator_keys(keys.into_iter().map(s).collect())
        } else {
            request.with_key(s(keys[0]))
        })
    };
    let mut out = vec![("a group", request(vec![&on.group], 0))];
    if version >= 1 {
        out.push(("no such type", request(vec![&on.group], 5)));
    }
    if version >= 4 {
        out.push(("two groups", request(vec![&on.group, "another"], 0)));
        out.push(("empty key", request(vec![""], 0)));
    }
    out
}

fn join_group(version: i16) -> Vec<Variant> {
    use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
    let request = |group: &str, member: &str, session_timeout_ms: i32, protocols: Vec<&str>| {
        let protocols = protocols.into_iter().map(|name| {
            JoinGroupRequestProtocol::default()
                .with_name(s(name))
                .with_metadata(Bytes::from_static(b"metadata"))
        });
        let request = JoinGroupRequest::default()
            .with_group_id(group_id(group))
            .with_member_id(s(member))
            .with_session_timeout_ms(session_timeout_ms)
            .with_rebalance_timeout_ms(if version >= 1 { 10_000 } else { -1 })
            .with_protocol_type(s("consumer"))
            .with_protocols(protocols.collect());
        RequestKind::JoinGroup(request)
    };
    let own = format!("join-v{version}");
    vec![
        (
            "first of its group",
            request(&own, "", 30_000, vec!["range"]),
        ),
        (
            "unknown member",
            request("no-such-group", "nobody", 30_000, vec!["range"]),
        ),
        (
            "short session",
            request("no-such-group", "", 1, vec!["range"]),
        ),
        (
            "long session",
            request("no-such-group", "", i32::MAX, vec!["range"]),
        ),
        ("no protocols", request("no-such-group", "", 30_000, vec![])),
        ("empty group id", request("", "", 30_000, vec!["range"])),
    ]
}

fn leave_group(version: i16, on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::leave_group_request::MemberIdentity;
    let request = |group: &str| {
        let request = LeaveGroupRequest::default().with_group_id(group_id(group));
        RequestKind::LeaveGroup(if version >= 3 {
            request.with_members(vec![
                MemberIdentity::default().with_member_id(s("nobody")),
                MemberIdentity::default()
                    .with_member_id(s(""))
                    .with_group_instance_id(Some(s("no-instance"))),
            ])
        } else {
            request.with_member_id(s("nobody"))
        })
    };
    vec![
        ("unknown group", request("no-such-group")),
        ("group of commits", request(&on.group)),
        ("empty group id", request("")),
    ]
}

fn sync_group(version: i16) -> Vec<Variant> {
    let request = |group: &str, kind: Option<&str>| {
        let mut request = SyncGroupRequest::default()
            .with_group_id(group_id(group))
            .with_generation_id(1)
            .with_member_id(s("nobody"));
        if version >= 5 {
            request.protocol_type = kind.map(s);
            request.protocol_name = kind.map(|_| s("range"));
        }
        RequestKind::SyncGroup(request)
    };
    let mut out = vec![
        ("unknown group", request("no-such-group", Some("consumer"))),
        ("empty group id", request("", Some("consumer"))),
    ];
    if version >= 5 {
        out.push(("no protocol", request("no-such-group", None)));
    }
    out
}

fn list_groups(version: i16) -> Vec<Variant> {
    let mut out = vec![("all", RequestKind::ListGroups(ListGroupsRequest::default()))];
    if version >= 4 {
        let empty = ListGroupsRequest::default().with_states_filter(vec![s("Empty"), s("stable")]);
        out.push(("by state", RequestKind::ListGroups(empty)));
        let none = ListGroupsRequest::default().with_states_filter(vec![s("NoSuchState")]);
        out.push(("by no such state", RequestKind::ListGroups(none)));
    }
    if version >= 5 {
        let classic = ListGroupsRequest::default().with_types_filter(vec![s("Classic")]);
        out.push(("by type", RequestKind::ListGroups(classic)));
        let none = ListGroupsRequest::default().with_types_filter(vec![s("NoSuchType")]);
        out.push(("by no such type", RequestKind::ListGroups(none)));
    }
    out
}

fn api_versions(version: i16) -> Vec<Variant> {
    let mut request = ApiVersionsRequest::default();
    if version < 3 {
        return vec![("plain", RequestKind::ApiVersions(request))];
    }
    let nameless = RequestKind::ApiVersions(request.clone());
    request.client_software_name = s("raw");
    request.client_software_version = s("1.0");
    vec![
        ("plain", RequestKind::ApiVersions(request)),
        ("without a name", nameless),
    ]
}

fn init_producer_id(version: i16) -> Vec<Variant> {
    let plain = || {
        InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_transaction_timeout_ms(60_000)
            .with_producer_id(ProducerId(-1))
            .with_producer_epoch(-1)
    };
    let mut out = vec![
        ("idempotent", RequestKind::InitProducerId(plain())),
        (
            "empty transactional id",
            RequestKind::InitProducerId(
                plain().with_transactional_id(Some(TransactionalId(s("")))),
            ),
        ),
    ];
    if version >= 3 {
        let halves = plain().with_producer_id(ProducerId(5));
        out.push(("id without epoch", RequestKind::InitProducerId(halves)));
    }
    out
}

fn offset_for_leader_epoch(version: i16, on: &Subject) -> Vec<Variant> {
    use kafka_protocol::messages::offset_for_leader_epoch_request::{
        OffsetForLeaderPartition, OffsetForLeaderTopic,
    };
    let request = |name: &str, partition: i32, current: i32, epoch: i32| {
        let part = OffsetForLeaderPartition::default()
            .with_partition(partition)
            .with_current_leader_epoch(current)
            .with_leader_epoch(epoch);
        let topic = OffsetForLeaderTopic::default()
            .with_topic(topic_name(name))
            .with_partitions(vec![part]);
        let mut request = OffsetForLeaderEpochRequest::default().with_topics(vec![topic]);
        request.replica_id = BrokerId(if version >= 3 { -1 } else { -2 });
        RequestKind::OffsetForLeaderEpoch(request)
    };
    vec![
        ("known epoch", request(&on.topic, 0, -1, 0)),
        ("epoch above", request(&on.topic, 0, -1, 9)),
        ("no epoch", request(&on.topic, 0, -1, -1)),
        ("current epoch above", request(&on.topic, 0, 77, 0)),
        ("empty partition", request("compare-empty", 0, -1, 0)),
        ("unknown topic", request(UNKNOWN, 0, -1, 0)),
        ("unknown partition", request(&on.topic, 99, -1, 0)),
    ]
}
