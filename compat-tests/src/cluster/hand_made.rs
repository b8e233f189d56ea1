//! A broker that is nothing but frames which a test sends: it registers, sends heartbeats, follows partitions and
//! proposes ISR changes exactly as the test says, so that each step of a protocol is seen by itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kafka_protocol::messages::alter_partition_request::{BrokerState, PartitionData, TopicData};
use kafka_protocol::messages::alter_partition_response::PartitionData as AlteredPartition;
use kafka_protocol::messages::broker_registration_request::{Feature, Listener};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ReplicaState};
use kafka_protocol::messages::{
    AlterPartitionRequest, ApiVersionsRequest, BrokerHeartbeatRequest, BrokerHeartbeatResponse,
    BrokerId, BrokerRegistrationRequest, FetchRequest, FetchResponse, fetch_response,
};
use uuid::Uuid;

use super::Cluster;
use crate::raw::{Connection, code, s};

/// Versions: the last of metadata.version 3.9, which both implementations speak.
const REGISTRATION: i16 = 4;
const HEARTBEAT: i16 = 1;
const ALTER_PARTITION: i16 = 3;
const FETCH: i16 = 17;

/// How often heartbeats are sent in the background.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(300);

/// The registration's record is at the broker epoch, or behind records of the same write that clean up after an
/// earlier life of the broker; so far behind it a broker has surely caught up.
const PAST_REGISTRATION: i64 = 100;

/// Where a replica stands, as it says in a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Follower {
    /// The leader epoch that it knows, or -1.
    pub leader_epoch: i32,
    /// Its log end offset.
    pub fetch_offset: i64,
    /// Epoch of its last record, or -1.
    pub last_fetched_epoch: i32,
}

/// A registration at a cluster's controller.
#[derive(Debug)]
pub struct HandMadeBroker {
    /// First, so that they end first: one that came after the other connection is closed would be a sign of life.
    heartbeats: Option<Heartbeats>,
    id: i32,
    cluster_id: String,
    controller: SocketAddr,
    connection: Connection,
    /// The process that it pretends to be.
    pub incarnation: Uuid,
    /// Its log directory.
    pub directory: Uuid,
    /// What it says of the features it knows: name, lowest and highest level.
    pub features: Vec<(String, i16, i16)>,
    /// Port that it advertises; nothing need listen there.
    pub port: u16,
    /// The epoch of its last registration, -1 before.
    pub epoch: i64,
}

impl HandMadeBroker {
    /// One that knows all features of the cluster's controller and has not registered yet.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub fn new(cluster: &Cluster, id: i32) -> Result<Self> {
        let brokers = cluster.awake_brokers();
        let via = *brokers.first().context("no broker is awake")?;
        let controller = cluster.controller_address(cluster.quorum(via)?.leader)?;
        let cluster_id = cluster.metadata(via, &[])?.cluster_id;
        let mut connection = Connection::open(controller)?;
        let versions = ApiVersionsRequest::default()
            .with_client_software_name(s("hand-made"))
            .with_client_software_version(s("1"));
        let features = connection.call(4, &versions)?.supported_features;
        Ok(Self {
            id,
            cluster_id: cluster_id.context("no cluster id")?.to_string(),
            controller,
            connection,
            incarnation: Uuid::new_v4(),
            directory: Uuid::new_v4(),
            features: features
                .into_iter()
                .map(|feature| {
                    (
                        feature.name.to_string(),
                        feature.min_version,
                        feature.max_version,
                    )
                })
                .collect(),
            port: 1,
            epoch: -1,
            heartbeats: None,
        })
    }

    /// As [`HandMadeBroker::new`], registered and unfenced, with heartbeats in the background.
    ///
    /// # Panics
    /// When the cluster does not take it.
    #[must_use]
    #[track_caller]
    pub fn running(cluster: &Cluster, id: i32) -> Self {
        let start = || {
            let mut broker = Self::new(cluster, id)?;
            let error = broker.register()?;
            ensure!(error == code::NONE, "registration is refused: {error}");
            broker.unfence()?;
            Ok(broker)
        };
        start().unwrap_or_else(|error: anyhow::Error| panic!("hand-made broker {id}: {error:#}"))
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.id
    }

    /// The registration that it sends.
    #[must_use]
    pub fn registration(&self) -> BrokerRegistrationRequest {
        let features = self.features.iter().map(|(name, lowest, highest)| {
            Feature::default()
                .with_name(s(name))
                .with_min_supported_version(*lowest)
                .with_max_supported_version(*highest)
        });
        let listeners = ["PLAINTEXT", "BROKER"].map(|name| {
            Listener::default()
                .with_name(s(name))
                .with_host(s("127.0.0.1"))
                .with_port(self.port)
        });
        BrokerRegistrationRequest::default()
            .with_broker_id(BrokerId(self.id))
            .with_cluster_id(s(&self.cluster_id))
            .with_incarnation_id(self.incarnation)
            .with_listeners(listeners.into())
            .with_features(features.collect())
            .with_log_dirs(vec![self.directory])
            .with_previous_broker_epoch(self.epoch)
    }

    /// Registers; takes the epoch when that is granted. Gives the error code.
    ///
    /// # Errors
    /// When the controller does not answer.
    pub fn register(&mut self) -> Result<i16> {
        let reply = self.connection.call(REGISTRATION, &self.registration())?;
        if reply.error_code == code::NONE {
            self.epoch = reply.broker_epoch;
        }
        Ok(reply.error_code)
    }

    /// Sends a registration as it is, without taking what it is granted. Gives the error code.
    ///
    /// # Errors
    /// When the controller does not answer.
    pub fn try_register(&mut self, registration: &BrokerRegistrationRequest) -> Result<i16> {
        Ok(self.connection.call(REGISTRATION, registration)?.error_code)
    }

    /// The heartbeat of a broker that has caught up with its own registration and wants to be unfenced.
    #[must_use]
    pub fn heartbeat(&self) -> BrokerHeartbeatRequest {
        BrokerHeartbeatRequest::default()
            .with_broker_id(BrokerId(self.id))
            .with_broker_epoch(self.epoch)
            .with_current_metadata_offset(self.epoch + PAST_REGISTRATION)
    }

    /// Sends one heartbeat.
    ///
    /// # Errors
    /// When the controller does not answer.
    pub fn send_heartbeat(
        &mut self,
        heartbeat: &BrokerHeartbeatRequest,
    ) -> Result<BrokerHeartbeatResponse> {
        self.connection.call(HEARTBEAT, heartbeat)
    }

    /// Sends heartbeats until it is unfenced, and goes on with them in the background.
    ///
    /// # Errors
    /// When the controller does not answer, or it stays fenced.
    pub fn unfence(&mut self) -> Result<()> {
        let heartbeat = self.heartbeat();
        let reply = self.send_heartbeat(&heartbeat)?;
        ensure!(
            !reply.is_fenced && reply.error_code == code::NONE,
            "{reply:?}"
        );
        self.heartbeats = Some(Heartbeats::start(self.controller, heartbeat)?);
        Ok(())
    }

    /// Sends no more heartbeats.
    pub fn fall_silent(&mut self) {
        self.heartbeats = None;
    }

    /// The fetch of this broker as a follower of one partition.
    #[must_use]
    pub fn fetch_request(&self, topic: Uuid, follower: Follower, max_wait_ms: i32) -> FetchRequest {
        let partition = FetchPartition::default()
            .with_current_leader_epoch(follower.leader_epoch)
            .with_fetch_offset(follower.fetch_offset)
            .with_last_fetched_epoch(follower.last_fetched_epoch)
            .with_log_start_offset(0)
            .with_partition_max_bytes(1 << 20);
        let state = ReplicaState::default()
            .with_replica_id(BrokerId(self.id))
            .with_replica_epoch(self.epoch);
        FetchRequest::default()
            .with_replica_state(state)
            .with_max_wait_ms(max_wait_ms)
            .with_min_bytes(1)
            .with_max_bytes(10 << 20)
            .with_session_epoch(-1)
            .with_topics(vec![
                FetchTopic::default()
                    .with_topic_id(topic)
                    .with_partitions(vec![partition]),
            ])
    }

    /// Fetches partition 0 as a follower, without waiting for records.
    ///
    /// # Errors
    /// When the leader does not answer or refuses the whole request.
    pub fn fetch(
        &self,
        leader: &mut Connection,
        topic: Uuid,
        follower: Follower,
    ) -> Result<fetch_response::PartitionData> {
        let reply = leader.call(FETCH, &self.fetch_request(topic, follower, 0))?;
        only_partition(reply)
    }

    /// The proposal of an ISR for partition 0: each member with the broker epoch that its leader knows.
    #[must_use]
    pub fn isr_change(
        &self,
        topic: Uuid,
        leader_epoch: i32,
        partition_epoch: i32,
        isr: &[(i32, i64)],
    ) -> AlterPartitionRequest {
        let isr = isr.iter().map(|&(id, epoch)| {
            BrokerState::default()
                .with_broker_id(BrokerId(id))
                .with_broker_epoch(epoch)
        });
        let partition = PartitionData::default()
            .with_leader_epoch(leader_epoch)
            .with_partition_epoch(partition_epoch)
            .with_new_isr_with_epochs(isr.collect());
        AlterPartitionRequest::default()
            .with_broker_id(BrokerId(self.id))
            .with_broker_epoch(self.epoch)
            .with_topics(vec![
                TopicData::default()
                    .with_topic_id(topic)
                    .with_partitions(vec![partition]),
            ])
    }

    /// Sends a proposal; gives the error of the whole request, or what the controller says of the partition.
    ///
    /// # Errors
    /// When the controller does not answer.
    pub fn alter_partition(
        &mut self,
        request: &AlterPartitionRequest,
    ) -> Result<std::result::Result<AlteredPartition, i16>> {
        let mut reply = self.connection.call(ALTER_PARTITION, request)?;
        if reply.error_code != code::NONE {
            return Ok(Err(reply.error_code));
        }
        ensure!(reply.topics.len() == 1, "{reply:?}");
        let mut topic = reply.topics.remove(0);
        ensure!(topic.partitions.len() == 1, "{topic:?}");
        Ok(Ok(topic.partitions.remove(0)))
    }
}

fn only_partition(mut reply: FetchResponse) -> Result<fetch_response::PartitionData> {
    ensure!(reply.error_code == code::NONE, "{reply:?}");
    ensure!(reply.responses.len() == 1, "{reply:?}");
    let mut topic = reply.responses.remove(0);
    ensure!(topic.partitions.len() == 1, "{topic:?}");
    Ok(topic.partitions.remove(0))
}

/// Heartbeats on a connection of their own, up to the drop.
#[derive(Debug)]
struct Heartbeats {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeats {
    fn start(controller: SocketAddr, heartbeat: BrokerHeartbeatRequest) -> Result<Self> {
        let mut connection = Connection::open(controller)?;
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::SeqCst) {
                std::thread::park_timeout(HEARTBEAT_INTERVAL);
                if seen.load(Ordering::SeqCst) {
                    return;
                }
                // An error ends the session, which the test sees by its effects.
                if connection.call(HEARTBEAT, &heartbeat).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            ended,
            thread: Some(thread),
        })
    }
}

impl Drop for Heartbeats {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().ok();
        }
    }
}
