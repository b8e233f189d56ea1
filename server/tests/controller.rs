//! The controller's listener of a whole node in this process: a second broker, played by the test, follows the metadata,
//! registers, serves and leaves, as Apache Kafka's brokers do.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use highwater::broker::RunningBroker;
use highwater::config::{DynamicConfig, StaticConfig};
use highwater::log_dirs;
use highwater_replication::cluster::MetadataRecord;
use highwater_storage::record_batch::{Batches, DecompressLimits, decode_records};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use tokio::runtime::Runtime;
use uuid::Uuid;

const METADATA_TOPIC_ID: Uuid = Uuid::from_u128(1);
const ME: i32 = 2;

struct Node {
    runtime: Runtime,
    broker: RunningBroker,
    clients: SocketAddr,
    controller: SocketAddr,
}

impl Node {
    fn on(dir: &Path) -> Self {
        let listeners = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0";
        Self::with(dir, "broker,controller", listeners)
    }

    fn with(dir: &Path, roles: &str, listeners: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let entries = [
            ("log.dirs", dir.to_str().unwrap()),
            ("process.roles", roles),
            ("listeners", listeners),
            ("controller.listener.names", "CONTROLLER"),
        ];
        let config =
            Arc::new(DynamicConfig::new(StaticConfig::from_entries(entries).unwrap()).unwrap());
        let current = config.current();
        let dirs = log_dirs::open(current.log_manager(), current.node_id, None).unwrap();
        let broker = runtime
            .block_on(RunningBroker::start(dirs, config))
            .unwrap();
        let address = |name: &str| {
            let mut listeners = broker.listeners().iter();
            let listener = listeners.find(|listener| listener.name == name);
            listener.map(|listener| listener.local_address)
        };
        let controller = address("CONTROLLER").unwrap();
        // A controller alone has no other.
        let clients = address("PLAINTEXT").unwrap_or(controller);
        Node {
            runtime,
            broker,
            clients,
            controller,
        }
    }

    fn cluster_id(&self) -> StrBytes {
        StrBytes::from_string(self.broker.broker().image().cluster_id().to_string())
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
    fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).unwrap();
        Client { stream, next_id: 1 }
    }

    fn send<R: Request>(&mut self, request: &R, version: i16) {
        let mut frame = BytesMut::new();
        header::<R>(version, self.next_id)
            .encode(&mut frame, R::header_version(version))
            .unwrap();
        self.next_id += 1;
        request.encode(&mut frame, version).unwrap();
        let length = (frame.len() as i32).to_be_bytes();
        self.stream.write_all(&length).unwrap();
        self.stream.write_all(&frame).unwrap();
    }

    fn receive<R: Request>(&mut self, version: i16) -> R::Response {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut body = vec![0; i32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut body).unwrap();
        decode::<R>(Bytes::from(body), version)
    }

    fn call<R: Request>(&mut self, request: &R, version: i16) -> R::Response {
        self.send(request, version);
        self.receive::<R>(version)
    }

    fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0))
    }
}

fn header<R: Request>(version: i16, correlation_id: i32) -> RequestHeader {
    RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(correlation_id)
        .with_client_id(Some(StrBytes::from_static_str("test")))
}

fn decode<R: Request>(mut frame: Bytes, version: i16) -> R::Response {
    ResponseHeader::decode(&mut frame, R::Response::header_version(version)).unwrap();
    let response = R::Response::decode(&mut frame, version).unwrap();
    assert!(!frame.has_remaining());
    response
}

/// The metadata log as an observer has it.
#[derive(Default)]
struct Observer {
    next_offset: i64,
    last_epoch: i32,
    leader_epoch: i32,
    records: Vec<(i64, MetadataRecord)>,
}

impl Observer {
    fn request(&self, max_wait_ms: i32) -> FetchRequest {
        let partition = fetch_request::FetchPartition::default()
            .with_partition(0)
            .with_current_leader_epoch(self.leader_epoch)
            .with_fetch_offset(self.next_offset)
            .with_last_fetched_epoch(self.last_epoch);
        let topic = fetch_request::FetchTopic::default()
            .with_topic_id(METADATA_TOPIC_ID)
            .with_partitions(vec![partition]);
        let replica = fetch_request::ReplicaState::default().with_replica_id(BrokerId(ME));
        FetchRequest::default()
            .with_replica_state(replica)
            .with_max_wait_ms(max_wait_ms)
            .with_topics(vec![topic])
    }

    fn take(&mut self, response: FetchResponse) -> fetch_response::PartitionData {
        assert_eq!(response.error_code, 0);
        let partition = response.responses[0].partitions[0].clone();
        self.leader_epoch = partition.current_leader.leader_epoch;
        for batch in Batches::new(partition.records.as_deref().unwrap_or_default()) {
            let (header, batch) = batch.unwrap();
            self.next_offset = header.next_offset();
            self.last_epoch = header.partition_leader_epoch;
            if header.is_control() {
                continue;
            }
            for record in
                decode_records(&Bytes::copy_from_slice(batch), DecompressLimits::default()).unwrap()
            {
                let record = record.unwrap();
                let value = MetadataRecord::decode(&record.value.unwrap()).unwrap();
                self.records.push((record.offset, value));
            }
        }
        partition
    }

    /// Fetches until nothing new comes.
    fn catch_up(&mut self, client: &mut Client) {
        loop {
            let partition = self.take(client.call(&self.request(0), 17));
            let is_empty = partition.records.is_none_or(|records| records.is_empty());
            if partition.error_code == 0 && is_empty {
                return;
            }
        }
    }
}

fn features() -> Vec<broker_registration_request::Feature> {
    let ranges = [
        ("metadata.version", 7, 33),
        ("eligible.leader.replicas.version", 0, 1),
    ];
    let feature = |(name, min, max): (&'static str, i16, i16)| {
        broker_registration_request::Feature::default()
            .with_name(StrBytes::from_static_str(name))
            .with_min_supported_version(min)
            .with_max_supported_version(max)
    };
    ranges.into_iter().map(feature).collect()
}

fn registration(node: &Node, incarnation: u128) -> BrokerRegistrationRequest {
    let listener = broker_registration_request::Listener::default()
        .with_name(StrBytes::from_static_str("PLAINTEXT"))
        .with_host(StrBytes::from_static_str("127.0.0.1"))
        .with_port(1);
    BrokerRegistrationRequest::default()
        .with_broker_id(BrokerId(ME))
        .with_cluster_id(node.cluster_id())
        .with_incarnation_id(Uuid::from_u128(incarnation))
        .with_listeners(vec![listener])
        .with_features(features())
        .with_log_dirs(vec![Uuid::from_u128(4711)])
        .with_previous_broker_epoch(-1)
}

fn heartbeat(epoch: i64, observer: &Observer) -> BrokerHeartbeatRequest {
    BrokerHeartbeatRequest::default()
        .with_broker_id(BrokerId(ME))
        .with_broker_epoch(epoch)
        .with_current_metadata_offset(observer.next_offset - 1)
}

/// Broker 2, registered, caught up and in service; with its epoch.
fn join(node: &Node, client: &mut Client, observer: &mut Observer) -> i64 {
    let registered = client.call(&registration(node, 7), 4);
    assert_eq!(registered.error_code, 0);
    observer.catch_up(client);
    let beat = client.call(&heartbeat(registered.broker_epoch, observer), 1);
    assert_eq!((beat.error_code, beat.is_fenced), (0, false));
    registered.broker_epoch
}

fn create(client: &mut Client, name: &'static str, replicas: &[i32]) -> Uuid {
    let assignment = create_topics_request::CreatableReplicaAssignment::default()
        .with_broker_ids(replicas.iter().map(|id| BrokerId(*id)).collect());
    let topic = create_topics_request::CreatableTopic::default()
        .with_name(TopicName(StrBytes::from_static_str(name)))
        .with_num_partitions(-1)
        .with_replication_factor(-1)
        .with_assignments(vec![assignment]);
    let request = CreateTopicsRequest::default()
        .with_timeout_ms(10_000)
        .with_topics(vec![topic]);
    let response = client.call(&request, 7);
    assert_eq!(response.topics[0].error_code, 0);
    response.topics[0].topic_id
}

#[test]
fn each_kind_of_listener_serves_its_own_apis_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let told = |address| {
        let software = ApiVersionsRequest::default()
            .with_client_software_name(StrBytes::from_static_str("test"))
            .with_client_software_version(StrBytes::from_static_str("1"));
        let response = Client::to(address).call(&software, 4);
        assert!(!response.finalized_features.is_empty());
        let keys = response.api_keys.iter().map(|api| api.api_key);
        keys.collect::<Vec<_>>()
    };
    let (clients, controller) = (told(node.clients), told(node.controller));
    let only_controller = [56, 58, 59, 62, 63, 67, 70, 73];
    for key in only_controller {
        assert!(controller.contains(&key), "{key}");
        assert!(!clients.contains(&key), "{key}");
    }
    for key in [1, 18, 19, 43, 45, 46, 55, 57, 60, 64] {
        assert!(controller.contains(&key) && clients.contains(&key), "{key}");
    }
    for key in [0, 2, 3, 8, 9, 10, 22] {
        assert!(
            !controller.contains(&key) && clients.contains(&key),
            "{key}"
        );
    }
    let mut client = Client::to(node.clients);
    client.send(&registration(&node, 7), 4);
    assert!(client.is_closed());
    let mut client = Client::to(node.controller);
    client.send(&MetadataRequest::default(), 12);
    assert!(client.is_closed());
    node.stop();
}

#[test]
fn a_broker_registers_follows_the_metadata_and_is_unfenced_when_it_has_caught_up() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let mut client = Client::to(node.controller);
    let mut observer = Observer::default();

    // Who knows no epoch learns who leads.
    let first = client.call(&observer.request(0), 17);
    let partition = observer.take(first.clone());
    assert_eq!(
        partition.error_code,
        ResponseError::FencedLeaderEpoch.code()
    );
    assert_eq!(partition.current_leader.leader_id, BrokerId(1));
    assert_eq!(first.node_endpoints[0].node_id, BrokerId(1));
    assert_eq!(
        first.node_endpoints[0].port,
        i32::from(node.controller.port())
    );

    let wrong_cluster = registration(&node, 7).with_cluster_id(StrBytes::from_static_str("other"));
    let refused = client.call(&wrong_cluster, 4);
    assert_eq!(
        refused.error_code,
        ResponseError::InconsistentClusterId.code()
    );
    assert_eq!(refused.broker_epoch, -1);
    let unaware = registration(&node, 7).with_features(features()[..1].to_vec());
    assert_eq!(
        client.call(&unaware, 4).error_code,
        ResponseError::UnsupportedVersion.code()
    );

    let registered = client.call(&registration(&node, 7), 4);
    assert_eq!(registered.error_code, 0);
    let epoch = registered.broker_epoch;
    let early = client.call(&heartbeat(epoch, &observer), 1);
    assert_eq!(
        (early.error_code, early.is_caught_up, early.is_fenced),
        (0, false, true)
    );
    observer.catch_up(&mut client);
    let own = observer
        .records
        .iter()
        .find(|(offset, _)| *offset == epoch)
        .unwrap();
    assert!(matches!(&own.1, MetadataRecord::RegisterBroker(record) if record.broker_id == ME));
    let beat = client.call(&heartbeat(epoch, &observer), 1);
    assert_eq!(
        (beat.error_code, beat.is_caught_up, beat.is_fenced),
        (0, true, false)
    );

    let stale = client.call(&heartbeat(epoch - 1, &observer), 1);
    assert_eq!(stale.error_code, ResponseError::StaleBrokerEpoch.code());
    let duplicate = client.call(&registration(&node, 8), 4);
    assert_eq!(
        duplicate.error_code,
        ResponseError::DuplicateBrokerRegistration.code()
    );
    // The same run again is no other process.
    let again = client.call(&registration(&node, 7), 4);
    assert_eq!((again.error_code, again.broker_epoch), (0, epoch));

    let block = AllocateProducerIdsRequest::default()
        .with_broker_id(BrokerId(ME))
        .with_broker_epoch(epoch);
    let first = client.call(&block, 0);
    let second = client.call(&block, 0);
    assert_eq!((first.error_code, first.producer_id_len), (0, 1000));
    assert_eq!(second.producer_id_start.0, first.producer_id_start.0 + 1000);
    let stale = client.call(&block.with_broker_epoch(epoch + 1), 0);
    assert_eq!(stale.error_code, ResponseError::StaleBrokerEpoch.code());

    // It leaves: nothing to move, so at once, and its id is free.
    let leave = heartbeat(epoch, &observer).with_want_shut_down(true);
    let beat = client.call(&leave, 1);
    assert_eq!((beat.is_fenced, beat.should_shut_down), (true, true));
    let next = client.call(&registration(&node, 9), 4);
    assert!(next.error_code == 0 && next.broker_epoch > epoch);
    node.stop();
}

#[test]
fn a_fetch_of_the_metadata_waits_for_what_comes_and_says_where_logs_differ() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let mut client = Client::to(node.controller);
    let mut observer = Observer::default();
    observer.catch_up(&mut client);

    let began = Instant::now();
    let mut empty = observer.take(client.call(&observer.request(300), 17));
    assert!(
        empty
            .records
            .take()
            .is_none_or(|records| records.is_empty())
    );
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(empty.high_watermark, observer.next_offset);

    client.send(&observer.request(20_000), 17);
    let end = observer.next_offset;
    create(&mut Client::to(node.controller), "t", &[1]);
    observer.take(client.receive::<FetchRequest>(17));
    assert!(observer.next_offset > end);
    observer.catch_up(&mut client);
    // Who does not know the high watermark is told at once (version 18).
    let mut request = observer.request(20_000);
    request.topics[0].partitions[0].high_watermark = observer.next_offset - 1;
    let told = observer.take(client.call(&request, 18));
    assert_eq!(told.high_watermark, observer.next_offset);

    let refusal = |client: &mut Client, change: &dyn Fn(&mut FetchRequest)| {
        let mut request = observer.request(0);
        change(&mut request);
        let response = client.call(&request, 17);
        match response.error_code {
            0 => response.responses[0].partitions[0].clone(),
            error_code => fetch_response::PartitionData::default().with_error_code(error_code),
        }
    };
    let partition = |request: &mut FetchRequest| request.topics[0].partitions.remove(0);
    let put = |request: &mut FetchRequest, partition| request.topics[0].partitions.push(partition);
    let ahead = refusal(&mut client, &|request| {
        let mut asked = partition(request);
        asked.current_leader_epoch += 1;
        put(request, asked);
    });
    assert_eq!(ahead.error_code, ResponseError::UnknownLeaderEpoch.code());
    let beyond = refusal(&mut client, &|request| {
        let mut asked = partition(request);
        asked.fetch_offset += 5;
        put(request, asked);
    });
    assert_eq!(
        (beyond.error_code, beyond.diverging_epoch.end_offset),
        (0, observer.next_offset)
    );
    assert_eq!(beyond.diverging_epoch.epoch, observer.last_epoch);
    let nonsense = refusal(&mut client, &|request| {
        let mut asked = partition(request);
        asked.last_fetched_epoch = asked.current_leader_epoch + 1;
        put(request, asked);
    });
    assert_eq!(nonsense.error_code, ResponseError::InvalidRequest.code());
    let other_topic = refusal(&mut client, &|request| {
        request.topics[0].topic_id = Uuid::from_u128(5);
    });
    assert_eq!(other_topic.error_code, ResponseError::InvalidRequest.code());
    let other_cluster = refusal(&mut client, &|request| {
        request.cluster_id = Some(StrBytes::from_static_str("other"));
    });
    assert_eq!(
        other_cluster.error_code,
        ResponseError::InconsistentClusterId.code()
    );

    let snapshot = fetch_snapshot_request::PartitionSnapshot::default()
        .with_current_leader_epoch(observer.leader_epoch)
        .with_snapshot_id(fetch_snapshot_request::SnapshotId::default().with_end_offset(1));
    let topic = |name: &'static str| {
        fetch_snapshot_request::TopicSnapshot::default()
            .with_name(TopicName(StrBytes::from_static_str(name)))
            .with_partitions(vec![snapshot.clone()])
    };
    let request = |name| FetchSnapshotRequest::default().with_topics(vec![topic(name)]);
    let response = client.call(&request("__cluster_metadata"), 1);
    let partition = &response.topics[0].partitions[0];
    assert_eq!(partition.error_code, ResponseError::SnapshotNotFound.code());
    assert_eq!(partition.current_leader.leader_id, BrokerId(1));
    let response = client.call(&request("t"), 1);
    let unknown = ResponseError::UnknownTopicOrPartition.code();
    assert_eq!(response.topics[0].partitions[0].error_code, unknown);
    node.stop();
}

#[test]
fn isrs_leaders_and_assignments_change_by_the_controllers_rules() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let mut client = Client::to(node.controller);
    let mut observer = Observer::default();
    let epoch = join(&node, &mut client, &mut observer);
    let topic_id = create(&mut client, "t", &[ME, 1]);
    let image = || node.broker.broker().image();
    let partition = || Arc::clone(image().partition("t", 0).unwrap());
    assert_eq!(partition().leader.map(|id| id.0), Some(ME));

    // The leader takes the other out of the ISR, and in again.
    let member = |id: i32, epoch: i64| {
        alter_partition_request::BrokerState::default()
            .with_broker_id(BrokerId(id))
            .with_broker_epoch(epoch)
    };
    let alter = |client: &mut Client, partition_epoch: i32, isr: Vec<_>| {
        let asked = alter_partition_request::PartitionData::default()
            .with_new_isr_with_epochs(isr)
            .with_partition_epoch(partition_epoch);
        let topic = alter_partition_request::TopicData::default()
            .with_topic_id(topic_id)
            .with_partitions(vec![asked]);
        let request = AlterPartitionRequest::default()
            .with_broker_id(BrokerId(ME))
            .with_broker_epoch(epoch)
            .with_topics(vec![topic]);
        let response = client.call(&request, 3);
        assert_eq!(response.error_code, 0);
        response.topics[0].partitions[0].clone()
    };
    let shrunk = alter(&mut client, 0, vec![member(ME, epoch)]);
    assert_eq!((shrunk.error_code, shrunk.partition_epoch), (0, 1));
    assert_eq!(
        (shrunk.leader_id, shrunk.isr),
        (BrokerId(ME), vec![BrokerId(ME)])
    );
    let late = alter(&mut client, 0, vec![member(ME, epoch)]);
    assert_eq!(late.error_code, ResponseError::InvalidUpdateVersion.code());
    let wrong_epoch = alter(&mut client, 1, vec![member(ME, epoch), member(1, 12345)]);
    assert_eq!(
        wrong_epoch.error_code,
        ResponseError::IneligibleReplica.code()
    );
    let expanded = alter(&mut client, 1, vec![member(ME, epoch), member(1, -1)]);
    assert_eq!((expanded.error_code, expanded.partition_epoch), (0, 2));

    // Broker 2 stops in order: its leadership moves first.
    observer.catch_up(&mut client);
    let elect = |client: &mut Client, election_type: i8| {
        let asked = elect_leaders_request::TopicPartitions::default()
            .with_topic(TopicName(StrBytes::from_static_str("t")))
            .with_partitions(vec![0]);
        let request = ElectLeadersRequest::default()
            .with_election_type(election_type)
            .with_timeout_ms(10_000)
            .with_topic_partitions(Some(vec![asked]));
        let response = client.call(&request, 2);
        response.replica_election_results[0].partition_result[0].error_code
    };
    assert_eq!(
        elect(&mut client, 0),
        ResponseError::ElectionNotNeeded.code()
    );

    // A move to broker 1 alone ends at once, as it is in sync.
    let reassign = |client: &mut Client, replicas: Option<Vec<i32>>| {
        let replicas = replicas.map(|ids| ids.into_iter().map(BrokerId).collect());
        let asked = alter_partition_reassignments_request::ReassignablePartition::default()
            .with_replicas(replicas);
        let topic = alter_partition_reassignments_request::ReassignableTopic::default()
            .with_name(TopicName(StrBytes::from_static_str("t")))
            .with_partitions(vec![asked]);
        let request = AlterPartitionReassignmentsRequest::default()
            .with_timeout_ms(10_000)
            .with_topics(vec![topic]);
        let response = client.call(&request, 1);
        assert_eq!(response.error_code, 0);
        response.responses[0].partitions[0].error_code
    };
    let none = ResponseError::NoReassignmentInProgress.code();
    assert_eq!(reassign(&mut client, None), none);
    assert_eq!(reassign(&mut client, Some(vec![1])), 0);
    assert_eq!(partition().leader.map(|id| id.0), Some(1));
    assert_eq!(partition().leader_epoch.0, 1);
    // Back to both: 2 has to catch up first.
    assert_eq!(reassign(&mut client, Some(vec![ME, 1])), 0);
    let list = ListPartitionReassignmentsRequest::default()
        .with_timeout_ms(10_000)
        .with_topics(None);
    let listed = client.call(&list, 0);
    assert_eq!(
        listed.topics[0].partitions[0].adding_replicas,
        [BrokerId(ME)]
    );
    assert_eq!(
        elect(&mut client, 0),
        ResponseError::PreferredLeaderNotAvailable.code()
    );
    assert_eq!(reassign(&mut client, None), 0);
    assert_eq!(client.call(&list, 0).topics, []);

    let unregister = UnregisterBrokerRequest::default().with_broker_id(BrokerId(ME));
    assert_eq!(client.call(&unregister, 0).error_code, 0);
    let gone = client.call(&unregister, 0);
    assert_eq!(gone.error_code, ResponseError::BrokerIdNotRegistered.code());
    assert!(image().broker(highwater_storage::BrokerId(ME)).is_none());
    node.stop();
}

#[test]
fn an_envelope_holds_a_request_for_the_controller_and_its_answer() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let mut client = Client::to(node.controller);
    let envelope = |data: BytesMut, address: &'static [u8]| {
        EnvelopeRequest::default()
            .with_request_data(data.freeze())
            .with_client_host_address(Bytes::from_static(address))
    };
    let inside = |request: &DescribeQuorumRequest| {
        let mut data = BytesMut::new();
        header::<DescribeQuorumRequest>(2, 77)
            .encode(&mut data, 2)
            .unwrap();
        request.encode(&mut data, 2).unwrap();
        data
    };
    let partition = describe_quorum_request::PartitionData::default();
    let topic = describe_quorum_request::TopicData::default()
        .with_topic_name(TopicName(StrBytes::from_static_str("__cluster_metadata")))
        .with_partitions(vec![partition]);
    let describe = DescribeQuorumRequest::default().with_topics(vec![topic]);
    let response = client.call(&envelope(inside(&describe), &[127, 0, 0, 1]), 0);
    assert_eq!(response.error_code, 0);
    let data = response.response_data.unwrap();
    assert_eq!(data[..4], 77_i32.to_be_bytes(), "the client's own number");
    let described = decode::<DescribeQuorumRequest>(data, 2);
    let quorum = &described.topics[0].partitions[0];
    assert_eq!((quorum.error_code, quorum.leader_id), (0, BrokerId(1)));
    assert!(quorum.high_watermark > 0);
    assert_eq!(quorum.current_voters.len(), 1);
    assert_eq!(described.nodes[0].listeners[0].port, node.controller.port());

    let invalid = ResponseError::InvalidRequest.code();
    let no_address = client.call(&envelope(inside(&describe), &[1, 2]), 0);
    assert_eq!(no_address.error_code, invalid);
    let mut not_forwarded = BytesMut::new();
    header::<ApiVersionsRequest>(3, 1)
        .encode(&mut not_forwarded, 2)
        .unwrap();
    let refused = client.call(&envelope(not_forwarded, &[127, 0, 0, 1]), 0);
    assert_eq!(refused.error_code, invalid);
    let empty = client.call(&envelope(BytesMut::new(), &[127, 0, 0, 1]), 0);
    assert_eq!(empty.error_code, invalid);
    node.stop();
}

#[test]
fn controllers_describe_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let describe = |address, endpoint_type| {
        let request = DescribeClusterRequest::default().with_endpoint_type(endpoint_type);
        Client::to(address).call(&request, 1)
    };
    let controllers = describe(node.controller, 2);
    assert_eq!((controllers.error_code, controllers.endpoint_type), (0, 2));
    assert_eq!(controllers.controller_id, BrokerId(1));
    assert_eq!(
        controllers.brokers[0].port,
        i32::from(node.controller.port())
    );
    let brokers = describe(node.clients, 1);
    assert_eq!((brokers.error_code, brokers.endpoint_type), (0, 1));
    assert_eq!(brokers.brokers[0].port, i32::from(node.clients.port()));
    let mismatched = ResponseError::MismatchedEndpointType.code();
    assert_eq!(describe(node.controller, 1).error_code, mismatched);
    assert_eq!(describe(node.clients, 2).error_code, mismatched);

    let mut client = Client::to(node.controller);
    let registration = ControllerRegistrationRequest::default()
        .with_controller_id(1)
        .with_incarnation_id(Uuid::from_u128(3))
        .with_listeners(vec![
            controller_registration_request::Listener::default()
                .with_name(StrBytes::from_static_str("CONTROLLER"))
                .with_host(StrBytes::from_static_str("controller.example"))
                .with_port(9093),
        ]);
    assert_eq!(client.call(&registration, 0).error_code, 0);
    let registered = describe(node.controller, 2);
    assert_eq!(registered.brokers[0].host.as_str(), "controller.example");

    let feature = update_features_request::FeatureUpdateKey::default()
        .with_feature(StrBytes::from_static_str(
            "eligible.leader.replicas.version",
        ))
        .with_max_version_level(0);
    let update = |upgrade_type: i8| {
        UpdateFeaturesRequest::default()
            .with_timeout_ms(10_000)
            .with_feature_updates(vec![feature.clone().with_upgrade_type(upgrade_type)])
    };
    let refused = client.call(&update(1), 2);
    assert_eq!(
        refused.error_code,
        ResponseError::InvalidUpdateVersion.code()
    );
    assert!(refused.error_message.unwrap().contains("Can't downgrade"));
    let only_judged = client.call(&update(2).with_validate_only(true), 2);
    assert_eq!(only_judged.error_code, 0);
    assert!(node.broker.broker().image().is_elr_enabled());
    assert_eq!(client.call(&update(2), 2).error_code, 0);
    assert!(!node.broker.broker().image().is_elr_enabled());
    node.stop();
}

#[test]
fn a_controller_without_the_broker_role_takes_up_what_is_configured_at_run_time() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::with(dir.path(), "controller", "CONTROLLER://127.0.0.1:0");
    let key = "unclean.leader.election.enable";
    let in_effect = || {
        let config = node.broker.broker().config.current();
        config.topic_defaults.get(key).cloned()
    };
    assert_ne!(in_effect().as_deref(), Some("true"));
    let entry = incremental_alter_configs_request::AlterableConfig::default()
        .with_name(StrBytes::from_static_str(key))
        .with_value(Some(StrBytes::from_static_str("true")));
    let of_all_brokers = incremental_alter_configs_request::AlterConfigsResource::default()
        .with_resource_type(4)
        .with_configs(vec![entry]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![of_all_brokers]);
    let altered = Client::to(node.controller).call(&request, 1);
    assert_eq!(altered.responses[0].error_code, 0, "{altered:?}");
    assert_eq!(in_effect().as_deref(), Some("true"));
    node.stop();
}

#[test]
fn of_two_processes_with_one_id_that_register_at_once_one_is_registered() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let (mut one, mut other) = (Client::to(node.controller), Client::to(node.controller));
    let register = |id: i32, incarnation: u128| {
        registration(&node, incarnation)
            .with_broker_id(BrokerId(id))
            .with_log_dirs(vec![Uuid::from_u128(1_000_000 + id as u128)])
    };
    for id in 100..130 {
        one.send(&register(id, 1), 4);
        other.send(&register(id, 2), 4);
        let mut errors = [&mut one, &mut other].map(|client| {
            let answer = client.receive::<BrokerRegistrationRequest>(4);
            answer.error_code
        });
        errors.sort_unstable();
        let duplicate = ResponseError::DuplicateBrokerRegistration.code();
        assert_eq!(errors, [0, duplicate]);
    }
    node.stop();
}
