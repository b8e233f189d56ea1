//! What administrators and observers ask a controller, and the texts it answers with: the test plays a broker beside a
//! cluster of one node. Registration and ISR proposals have files of their own.

use bytes::Bytes;
use compat_tests::cluster::{Cluster, ClusterOptions, Shape, for_each_cluster};
use compat_tests::raw::{Connection, code, s, topic_name};
use kafka_protocol::messages::*;
use kafka_protocol::records::RecordBatchDecoder;
use uuid::Uuid;

/// The broker that the test plays, and the one that is there.
const ME: i32 = 101;
const OTHER: i32 = 1;
const METADATA_TOPIC_ID: Uuid = Uuid::from_u128(1);

fn one_node() -> ClusterOptions {
    [
        "default.replication.factor",
        "min.insync.replicas",
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
    ]
    .into_iter()
    .fold(
        ClusterOptions::new().shape(Shape::Combined(1)),
        |options, key| options.set(key, 1),
    )
}

/// A connection to the controller, and what its metadata log has told so far.
struct Session {
    connection: Connection,
    cluster_id: String,
    next_offset: i64,
    last_epoch: i32,
    leader_epoch: i32,
}

impl Session {
    fn with(cluster: &Cluster) -> Self {
        let mut clients = cluster.connect(OTHER).unwrap();
        let described = clients.call(1, &DescribeClusterRequest::default()).unwrap();
        let address = cluster.controller_address(OTHER).unwrap();
        Session {
            connection: Connection::open(address).unwrap(),
            cluster_id: described.cluster_id.to_string(),
            next_offset: 0,
            last_epoch: 0,
            leader_epoch: 0,
        }
    }

    fn fetch_request(&self) -> FetchRequest {
        let partition = fetch_request::FetchPartition::default()
            .with_current_leader_epoch(self.leader_epoch)
            .with_fetch_offset(self.next_offset)
            .with_last_fetched_epoch(self.last_epoch);
        let topic = fetch_request::FetchTopic::default()
            .with_topic_id(METADATA_TOPIC_ID)
            .with_partitions(vec![partition]);
        let replica = fetch_request::ReplicaState::default().with_replica_id(BrokerId(ME));
        FetchRequest::default()
            .with_cluster_id(Some(s(&self.cluster_id)))
            .with_replica_state(replica)
            .with_topics(vec![topic])
    }

    fn fetch(&mut self, request: &FetchRequest) -> fetch_response::PartitionData {
        let response = self.connection.call(17, request).unwrap();
        match response.error_code {
            0 => response.responses[0].partitions[0].clone(),
            error => fetch_response::PartitionData::default().with_error_code(error),
        }
    }

    /// Follows the metadata log to its end.
    fn catch_up(&mut self) {
        loop {
            let partition = self.fetch(&self.fetch_request());
            self.leader_epoch = partition.current_leader.leader_epoch;
            let mut records = partition.records.unwrap_or_default();
            if partition.error_code == 0 && records.is_empty() {
                return;
            }
            if records.is_empty() {
                continue;
            }
            for set in RecordBatchDecoder::decode_all(&mut records).unwrap() {
                if let Some(last) = set.records.last() {
                    self.next_offset = last.offset + 1;
                    self.last_epoch = last.partition_leader_epoch;
                }
            }
        }
    }

    fn registration(&self, incarnation: u128) -> BrokerRegistrationRequest {
        let ranges = [
            ("metadata.version", 7, 33),
            ("kraft.version", 0, 1),
            ("transaction.version", 0, 2),
            ("group.version", 0, 1),
            ("eligible.leader.replicas.version", 0, 1),
            ("share.version", 0, 2),
            ("streams.version", 0, 1),
        ];
        let features = ranges.map(|(name, min, max)| {
            broker_registration_request::Feature::default()
                .with_name(s(name))
                .with_min_supported_version(min)
                .with_max_supported_version(max)
        });
        let listener = broker_registration_request::Listener::default()
            .with_name(s("PLAINTEXT"))
            .with_host(s("127.0.0.1"))
            .with_port(1);
        BrokerRegistrationRequest::default()
            .with_broker_id(BrokerId(ME))
            .with_cluster_id(s(&self.cluster_id))
            .with_incarnation_id(Uuid::from_u128(incarnation))
            .with_listeners(vec![listener])
            .with_features(features.to_vec())
            .with_log_dirs(vec![Uuid::from_u128(4711)])
            .with_previous_broker_epoch(-1)
    }

    fn register(&mut self, request: &BrokerRegistrationRequest) -> (i16, i64) {
        let response = self.connection.call(4, request).unwrap();
        (response.error_code, response.broker_epoch)
    }

    fn heartbeat(&self, epoch: i64) -> BrokerHeartbeatRequest {
        BrokerHeartbeatRequest::default()
            .with_broker_id(BrokerId(ME))
            .with_broker_epoch(epoch)
            .with_current_metadata_offset(self.next_offset - 1)
    }

    /// Error, caught up, fenced, shall shut down.
    fn beat(&mut self, request: &BrokerHeartbeatRequest) -> (i16, bool, bool, bool) {
        let response = self.connection.call(1, request).unwrap();
        (
            response.error_code,
            response.is_caught_up,
            response.is_fenced,
            response.should_shut_down,
        )
    }

    /// Registers, catches up and is in service; gives the broker epoch.
    fn join(&mut self) -> i64 {
        let (error, epoch) = self.register(&self.registration(7));
        assert_eq!(error, 0);
        self.catch_up();
        let request = self.heartbeat(epoch);
        assert_eq!(self.beat(&request), (0, true, false, false));
        epoch
    }

    fn create(&mut self, name: &str, replicas: &[i32]) -> Uuid {
        let assignment = create_topics_request::CreatableReplicaAssignment::default()
            .with_broker_ids(replicas.iter().map(|id| BrokerId(*id)).collect());
        let topic = create_topics_request::CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(-1)
            .with_replication_factor(-1)
            .with_assignments(vec![assignment]);
        let request = CreateTopicsRequest::default()
            .with_timeout_ms(10_000)
            .with_topics(vec![topic]);
        let response = self.connection.call(7, &request).unwrap();
        assert_eq!(response.topics[0].error_code, 0);
        response.topics[0].topic_id
    }

    fn elect(&mut self, topic: &str, election_type: i8) -> (i16, Option<String>) {
        let asked = elect_leaders_request::TopicPartitions::default()
            .with_topic(topic_name(topic))
            .with_partitions(vec![0]);
        let request = ElectLeadersRequest::default()
            .with_election_type(election_type)
            .with_timeout_ms(10_000)
            .with_topic_partitions(Some(vec![asked]));
        let response = self.connection.call(2, &request).unwrap();
        assert_eq!(response.error_code, 0);
        let result = &response.replica_election_results[0].partition_result[0];
        (
            result.error_code,
            result.error_message.as_ref().map(|text| text.to_string()),
        )
    }

    fn reassign(
        &mut self,
        topic: &str,
        replicas: Option<&[i32]>,
        may_change: bool,
    ) -> (i16, Option<String>) {
        let replicas = replicas.map(|ids| ids.iter().map(|id| BrokerId(*id)).collect());
        let asked = alter_partition_reassignments_request::ReassignablePartition::default()
            .with_replicas(replicas);
        let topic = alter_partition_reassignments_request::ReassignableTopic::default()
            .with_name(topic_name(topic))
            .with_partitions(vec![asked]);
        let request = AlterPartitionReassignmentsRequest::default()
            .with_timeout_ms(10_000)
            .with_allow_replication_factor_change(may_change)
            .with_topics(vec![topic]);
        let response = self.connection.call(1, &request).unwrap();
        assert_eq!(response.error_code, 0);
        let result = &response.responses[0].partitions[0];
        (
            result.error_code,
            result.error_message.as_ref().map(|text| text.to_string()),
        )
    }
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn elections_and_reassignments_have_their_errors_and_texts() {
    for_each_cluster(&one_node(), |cluster| {
        let mut session = Session::with(cluster);
        session.join();
        let s = &mut session;
        s.create("r", &[OTHER]);
        let not_needed = "Leader election not needed for topic partition.";
        assert_eq!(
            s.elect("r", 0),
            (code::ELECTION_NOT_NEEDED, text(not_needed))
        );
        assert_eq!(
            s.elect("r", 1),
            (code::ELECTION_NOT_NEEDED, text(not_needed))
        );
        let unknown = code::UNKNOWN_TOPIC_OR_PARTITION;
        assert_eq!(s.elect("nope", 0), (unknown, text("No such topic as nope")));
        assert_eq!(
            s.reassign("r", None, true),
            (code::NO_REASSIGNMENT_IN_PROGRESS, None)
        );
        assert_eq!(
            s.reassign("nope", Some(&[1]), true),
            (unknown, text("Unable to find a topic named nope."))
        );
        let invalid = code::INVALID_REPLICA_ASSIGNMENT;
        assert_eq!(s.reassign("r", Some(&[]), true).0, invalid);
        assert_eq!(s.reassign("r", Some(&[1, 1]), true).0, invalid);
        assert_eq!(s.reassign("r", Some(&[55]), true).0, invalid);
        assert_eq!(
            s.reassign("r", Some(&[ME, OTHER]), false),
            (
                code::INVALID_REPLICATION_FACTOR,
                text("The replication factor is changed from 1 to 2")
            )
        );
        assert_eq!(s.reassign("r", Some(&[ME, OTHER]), true), (0, None));
        let list = ListPartitionReassignmentsRequest::default()
            .with_timeout_ms(10_000)
            .with_topics(None);
        let listed = s.connection.call(0, &list).unwrap();
        let ongoing = &listed.topics[0].partitions[0];
        assert_eq!(ongoing.replicas, [BrokerId(ME), BrokerId(OTHER)]);
        assert_eq!(ongoing.adding_replicas, [BrokerId(ME)]);
        assert!(ongoing.removing_replicas.is_empty());
        assert_eq!(
            s.elect("r", 0),
            (
                code::PREFERRED_LEADER_NOT_AVAILABLE,
                text("The preferred leader was not available.")
            )
        );
        // Another target over the one that is under way.
        assert_eq!(s.reassign("r", Some(&[ME]), true), (0, None));
        let listed = s.connection.call(0, &list).unwrap();
        let ongoing = &listed.topics[0].partitions[0];
        assert_eq!(ongoing.replicas, [BrokerId(ME), BrokerId(OTHER)]);
        assert_eq!(ongoing.adding_replicas, [BrokerId(ME)]);
        assert_eq!(ongoing.removing_replicas, [BrokerId(OTHER)]);
        assert_eq!(s.reassign("r", None, true), (0, None));
        assert_eq!(s.connection.call(0, &list).unwrap().topics, []);
    });
}

#[test]
fn the_metadata_log_is_served_to_observers() {
    for_each_cluster(&one_node(), |cluster| {
        let mut session = Session::with(cluster);
        let first = session.fetch(&session.fetch_request());
        assert_eq!(first.error_code, code::FENCED_LEADER_EPOCH);
        assert_eq!(first.current_leader.leader_id, BrokerId(OTHER));
        session.catch_up();
        assert!(session.next_offset > 0);
        let asked = |session: &Session, change: fn(&mut fetch_request::FetchPartition)| {
            let mut request = session.fetch_request();
            change(&mut request.topics[0].partitions[0]);
            request
        };
        let request = asked(&session, |p| p.current_leader_epoch += 1);
        assert_eq!(
            session.fetch(&request).error_code,
            code::UNKNOWN_LEADER_EPOCH
        );
        let request = asked(&session, |p| {
            p.last_fetched_epoch = p.current_leader_epoch + 1
        });
        assert_eq!(session.fetch(&request).error_code, code::INVALID_REQUEST);
        let request = asked(&session, |p| p.fetch_offset += 1_000_000);
        let beyond = session.fetch(&request);
        assert_eq!(beyond.error_code, 0);
        assert_eq!(beyond.diverging_epoch.epoch, session.last_epoch);
        assert!(beyond.diverging_epoch.end_offset >= session.next_offset);
        let mut request = session.fetch_request();
        request.topics[0].topic_id = Uuid::from_u128(5);
        assert_eq!(session.fetch(&request).error_code, code::INVALID_REQUEST);
        let request = session.fetch_request().with_cluster_id(Some(s("other")));
        assert_eq!(
            session.fetch(&request).error_code,
            code::INCONSISTENT_CLUSTER_ID
        );

        let snapshot = |session: &mut Session, topic: &str, epoch: i32| {
            let asked = fetch_snapshot_request::PartitionSnapshot::default()
                .with_current_leader_epoch(epoch)
                .with_snapshot_id(fetch_snapshot_request::SnapshotId::default().with_end_offset(1));
            let topic = fetch_snapshot_request::TopicSnapshot::default()
                .with_name(topic_name(topic))
                .with_partitions(vec![asked]);
            let request = FetchSnapshotRequest::default()
                .with_cluster_id(Some(s(&session.cluster_id)))
                .with_replica_id(BrokerId(ME))
                .with_topics(vec![topic]);
            let response = session.connection.call(1, &request).unwrap();
            match response.error_code {
                0 => response.topics[0].partitions[0].error_code,
                error => error,
            }
        };
        // Apache Kafka cannot encode a refusal: it trips over the records that are not there.
        let refusal = |error: i16| match cluster.is_highwater() {
            true => error,
            false => code::UNKNOWN_SERVER_ERROR,
        };
        let epoch = session.leader_epoch;
        let log = "__cluster_metadata";
        for (topic, epoch, error) in [
            (log, epoch, code::SNAPSHOT_NOT_FOUND),
            (log, epoch - 1, code::FENCED_LEADER_EPOCH),
            (log, epoch + 1, code::UNKNOWN_LEADER_EPOCH),
            ("nope", epoch, code::UNKNOWN_TOPIC_OR_PARTITION),
        ] {
            let answer = snapshot(&mut session, topic, epoch);
            assert_eq!(answer, refusal(error), "{topic} {epoch}");
        }
    });
}

#[test]
fn features_change_only_as_every_node_allows() {
    for_each_cluster(&one_node(), |cluster| {
        let mut session = Session::with(cluster);
        let mut update = |name: &str, level: i16, upgrade_type: i8| {
            let feature = update_features_request::FeatureUpdateKey::default()
                .with_feature(s(name))
                .with_max_version_level(level)
                .with_upgrade_type(upgrade_type);
            let request = UpdateFeaturesRequest::default()
                .with_timeout_ms(10_000)
                .with_feature_updates(vec![feature]);
            let response = session.connection.call(2, &request).unwrap();
            assert_eq!(response.results, []);
            (
                response.error_code,
                response.error_message.map(|text| text.to_string()),
            )
        };
        let elr = "eligible.leader.replicas.version";
        let refused = |reason: &str| {
            let prefix =
                "The update failed for all features since the following feature had an error: ";
            (
                code::INVALID_UPDATE_VERSION,
                Some(format!("{prefix}{reason}")),
            )
        };
        assert_eq!(
            update(elr, 0, 1),
            refused(
                "Invalid update version 0 for feature eligible.leader.replicas.version. Can't downgrade the version \
                 of this feature without setting the upgrade type to either safe or unsafe downgrade."
            )
        );
        assert_eq!(
            update(elr, 2, 1),
            refused(
                "Invalid update version 2 for feature eligible.leader.replicas.version. Local controller 1 only \
                 supports versions 0-1"
            )
        );
        assert_eq!(update(elr, 0, 2), (0, None));
        assert_eq!(
            update(elr, 1, 2),
            refused(
                "Invalid update version 1 for feature eligible.leader.replicas.version. Can't downgrade to a newer \
                 version."
            )
        );
        assert_eq!(update(elr, 1, 1), (0, None));
        assert_eq!(
            update("nope", 1, 1),
            refused(
                "Invalid update version 1 for feature nope. Local controller 1 does not support this feature."
            )
        );
    });
}

#[test]
fn an_envelope_is_answered_with_the_answer_inside() {
    for_each_cluster(&one_node(), |cluster| {
        let mut session = Session::with(cluster);
        let describe = {
            let partition = describe_quorum_request::PartitionData::default();
            let topic = describe_quorum_request::TopicData::default()
                .with_topic_name(topic_name("__cluster_metadata"))
                .with_partitions(vec![partition]);
            DescribeQuorumRequest::default().with_topics(vec![topic])
        };
        let frame = compat_tests::raw::encode_frame(2, 77, &describe).unwrap();
        // Without the length in front.
        let data = frame.slice(4..);
        let principal = Bytes::from_static(b"\0\0\x05User\x0aANONYMOUS\0\0");
        let request = EnvelopeRequest::default()
            .with_request_data(data)
            .with_request_principal(Some(principal))
            .with_client_host_address(Bytes::from_static(&[127, 0, 0, 1]));
        let response = session.connection.call(0, &request).unwrap();
        assert_eq!(response.error_code, 0);
        let answer = response.response_data.unwrap();
        assert_eq!(answer[..4], 77_i32.to_be_bytes());
    });
}
