//! What brokers say about the cluster, by raw frames, and waiting until they say it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::describe_topic_partitions_request::TopicRequest;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponsePartition;
use kafka_protocol::messages::{
    BrokerId, CreateTopicsRequest, DeleteTopicsRequest, DescribeQuorumRequest,
    DescribeTopicPartitionsRequest, MetadataRequest, MetadataResponse,
};
use uuid::Uuid;

use super::Cluster;
use crate::process::poll;
use crate::raw::{Connection, code, list_offsets_request, s, topic_name};

/// A version of ListOffsets with leader epochs.
const LIST_OFFSETS: i16 = 7;
/// The special timestamp that asks for the log start offset.
const EARLIEST: i64 = -2;

/// A partition as a broker's Metadata shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionView {
    /// Error code, 5 without a leader.
    pub error_code: i16,
    /// Leader, or -1.
    pub leader: i32,
    /// The leader's epoch.
    pub leader_epoch: i32,
    /// Replicas in the order of the assignment.
    pub replicas: Vec<i32>,
    /// In-sync replicas, sorted.
    pub isr: Vec<i32>,
    /// Replicas that are offline, sorted.
    pub offline: Vec<i32>,
}

impl From<&MetadataResponsePartition> for PartitionView {
    fn from(partition: &MetadataResponsePartition) -> Self {
        let ids = |nodes: &[BrokerId]| nodes.iter().map(|node| node.0).collect::<Vec<_>>();
        let sorted = |nodes: &[BrokerId]| {
            let mut ids = ids(nodes);
            ids.sort_unstable();
            ids
        };
        Self {
            error_code: partition.error_code,
            leader: partition.leader_id.0,
            leader_epoch: partition.leader_epoch,
            replicas: ids(&partition.replica_nodes),
            isr: sorted(&partition.isr_nodes),
            offline: sorted(&partition.offline_replicas),
        }
    }
}

/// What DescribeQuorum says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quorum {
    /// The active controller.
    pub leader: i32,
    /// Its epoch.
    pub epoch: i32,
    /// End of what is committed.
    pub high_watermark: i64,
    /// Log end offset of each voter.
    pub voters: BTreeMap<i32, i64>,
    /// Log end offset of each observer.
    pub observers: BTreeMap<i32, i64>,
}

impl Cluster {
    /// The answer of one broker to Metadata for these topics; none are created.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn metadata(&self, via: i32, topics: &[&str]) -> Result<MetadataResponse> {
        ask_metadata(&mut self.connect(via)?, topics)
    }

    /// What one broker says about a partition.
    ///
    /// # Errors
    /// When it does not answer or knows no such partition.
    pub fn partition(&self, via: i32, topic: &str, partition: i32) -> Result<PartitionView> {
        let answer = self.metadata(via, &[topic])?;
        let topic = answer.topics.first().context("no topic in the answer")?;
        let found = topic
            .partitions
            .iter()
            .find(|found| found.partition_index == partition);
        found
            .map(PartitionView::from)
            .with_context(|| format!("no partition {partition}: {topic:?}"))
    }

    /// Waits until every broker that is awake says so about a partition; gives the view of the first.
    ///
    /// # Panics
    /// When they do not in time; the text holds what they say and the ends of the logs.
    #[track_caller]
    pub fn wait_for_partition(
        &self,
        topic: &str,
        partition: i32,
        what: &str,
        holds: impl Fn(&PartitionView) -> bool,
    ) -> PartitionView {
        self.wait_for_partition_via(&self.awake_brokers(), topic, partition, what, holds)
    }

    /// As [`Cluster::wait_for_partition`], of some brokers.
    ///
    /// # Panics
    /// When they do not in time.
    #[track_caller]
    pub fn wait_for_partition_via(
        &self,
        brokers: &[i32],
        topic: &str,
        partition: i32,
        what: &str,
        holds: impl Fn(&PartitionView) -> bool,
    ) -> PartitionView {
        let mut views = BTreeMap::new();
        let found = poll(Self::PATIENCE, || {
            let mut first = None;
            for &id in brokers {
                let view = self.partition(id, topic, partition);
                let agreed = view.as_ref().ok().filter(|view| holds(view)).cloned();
                views.insert(id, view.map_err(|error| format!("{error:#}")));
                first = first.or(Some(agreed?));
            }
            first
        });
        found.unwrap_or_else(|| {
            panic!(
                "not within {:?} on {}: {what}: brokers say {views:#?}\n{}",
                Self::PATIENCE,
                self.kind,
                self.ends_of_logs(20)
            )
        })
    }

    /// Waits until the awake brokers say that a partition has this leader and these in-sync replicas, and the leader,
    /// if it is awake, acts as such: brokers, of either kind, tell a change before they carry it out.
    ///
    /// # Panics
    /// When they do not in time.
    #[track_caller]
    pub fn wait_for_leader_and_isr(
        &self,
        topic: &str,
        partition: i32,
        leader: i32,
        isr: &[i32],
    ) -> PartitionView {
        let mut isr = isr.to_vec();
        isr.sort_unstable();
        let what = format!("{topic}-{partition} is led by {leader} with ISR {isr:?}");
        let view = self.wait_for_partition(topic, partition, &what, |view| {
            view.leader == leader && view.isr == isr
        });
        let mut last = None;
        let leads = |last: &mut Option<Result<i16>>| {
            let error = self.ask_leader(topic, partition, &view);
            let is_yet_to_act = matches!(
                &error,
                Ok(code::NOT_LEADER_OR_FOLLOWER
                    | code::UNKNOWN_TOPIC_OR_PARTITION
                    | code::UNKNOWN_LEADER_EPOCH)
            );
            *last = Some(error);
            (!is_yet_to_act).then_some(())
        };
        if self.awake_brokers().contains(&leader)
            && poll(Self::PATIENCE, || leads(&mut last)).is_none()
        {
            panic!(
                "{what}, but the leader answers {last:?}\n{}",
                self.ends_of_logs(20)
            );
        }
        view
    }

    /// The error code with which the leader of a partition answers one who knows it as such.
    fn ask_leader(&self, topic: &str, partition: i32, view: &PartitionView) -> Result<i16> {
        let mut request = list_offsets_request(topic, partition, EARLIEST);
        request.topics[0].partitions[0].current_leader_epoch = view.leader_epoch;
        let reply = self.connect(view.leader)?.call(LIST_OFFSETS, &request)?;
        let answered = reply.topics.first().and_then(|t| t.partitions.first());
        Ok(answered.context("no partition in the answer")?.error_code)
    }

    /// Creates a topic with these replicas for each partition, waits until the awake brokers say that every replica
    /// is in sync and the first of each leads, and gives its id.
    ///
    /// # Panics
    /// When that does not come about.
    #[track_caller]
    pub fn create_topic(
        &self,
        name: &str,
        assignment: &[&[i32]],
        configs: &[(&str, &str)],
    ) -> Uuid {
        let id = self
            .try_create_topic(name, assignment, configs)
            .unwrap_or_else(|error| panic!("create {name}: {error:#}"));
        for (partition, replicas) in (0..).zip(assignment) {
            self.wait_for_leader_and_isr(name, partition, replicas[0], replicas);
        }
        id
    }

    fn try_create_topic(
        &self,
        name: &str,
        assignment: &[&[i32]],
        configs: &[(&str, &str)],
    ) -> Result<Uuid> {
        let assignments = (0..).zip(assignment).map(|(partition, replicas)| {
            CreatableReplicaAssignment::default()
                .with_partition_index(partition)
                .with_broker_ids(replicas.iter().map(|&id| BrokerId(id)).collect())
        });
        let configs = configs.iter().map(|(key, value)| {
            CreatableTopicConfig::default()
                .with_name(s(key))
                .with_value(Some(s(value)))
        });
        let topic = CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(-1)
            .with_replication_factor(-1)
            .with_assignments(assignments.collect())
            .with_configs(configs.collect());
        let request = CreateTopicsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(30_000);
        let brokers = self.awake_brokers();
        let via = *brokers.first().context("no broker is awake")?;
        let mut reply = self.connect(via)?.call(7, &request)?;
        ensure!(reply.topics.len() == 1, "{reply:?}");
        let topic = reply.topics.remove(0);
        ensure!(topic.error_code == code::NONE, "{topic:?}");
        Ok(topic.topic_id)
    }

    /// The eligible leader replicas of a partition, and the last known ones, each sorted (KIP-966).
    ///
    /// # Errors
    /// When the broker does not answer or knows no such partition.
    pub fn eligible_leader_replicas(
        &self,
        via: i32,
        topic: &str,
        partition: i32,
    ) -> Result<(Vec<i32>, Vec<i32>)> {
        let topics = vec![TopicRequest::default().with_name(topic_name(topic))];
        let request = DescribeTopicPartitionsRequest::default()
            .with_topics(topics)
            .with_response_partition_limit(2000);
        let reply = self.connect(via)?.call(0, &request)?;
        let mut partitions = reply.topics.iter().flat_map(|topic| &topic.partitions);
        let found = partitions.find(|found| found.partition_index == partition);
        let found = found.with_context(|| format!("no partition {partition}: {reply:?}"))?;
        let sorted = |nodes: &Option<Vec<BrokerId>>| {
            let nodes = nodes.as_deref().unwrap_or_default();
            let mut ids: Vec<i32> = nodes.iter().map(|node| node.0).collect();
            ids.sort_unstable();
            ids
        };
        Ok((
            sorted(&found.eligible_leader_replicas),
            sorted(&found.last_known_elr),
        ))
    }

    /// Deletes a topic.
    ///
    /// # Errors
    /// When it cannot be deleted.
    pub fn delete_topic(&self, name: &str) -> Result<()> {
        let request = DeleteTopicsRequest::default()
            .with_topic_names(vec![topic_name(name)])
            .with_timeout_ms(30_000);
        let brokers = self.awake_brokers();
        let via = *brokers.first().context("no broker is awake")?;
        let reply = self.connect(via)?.call(5, &request)?;
        let deleted = reply
            .responses
            .iter()
            .all(|topic| topic.error_code == code::NONE);
        ensure!(deleted, "delete {name}: {reply:?}");
        Ok(())
    }

    /// The controller quorum as one broker describes it.
    ///
    /// # Errors
    /// When it does not answer, or with an error.
    pub fn quorum(&self, via: i32) -> Result<Quorum> {
        let topic = TopicData::default()
            .with_topic_name(topic_name("__cluster_metadata"))
            .with_partitions(vec![PartitionData::default()]);
        let request = DescribeQuorumRequest::default().with_topics(vec![topic]);
        let reply = self.connect(via)?.call(1, &request)?;
        ensure!(reply.error_code == code::NONE, "{reply:?}");
        let partition = reply.topics.first().and_then(|t| t.partitions.first());
        let partition = partition.context("no partition in the answer")?;
        ensure!(partition.error_code == code::NONE, "{partition:?}");
        let ends =
            |replicas: &[kafka_protocol::messages::describe_quorum_response::ReplicaState]| {
                replicas
                    .iter()
                    .map(|replica| (replica.replica_id.0, replica.log_end_offset))
                    .collect()
            };
        Ok(Quorum {
            leader: partition.leader_id.0,
            epoch: partition.leader_epoch,
            high_watermark: partition.high_watermark,
            voters: ends(&partition.current_voters),
            observers: ends(&partition.observers),
        })
    }
}

fn ask_metadata(connection: &mut Connection, topics: &[&str]) -> Result<MetadataResponse> {
    let topics = topics
        .iter()
        .map(|topic| MetadataRequestTopic::default().with_name(Some(topic_name(topic))));
    let request = MetadataRequest::default()
        .with_allow_auto_topic_creation(false)
        .with_topics(Some(topics.collect()));
    connection.call(12, &request)
}

/// Whether the broker at this address answers and says that these brokers are there.
pub(super) fn knows_brokers(address: SocketAddr, brokers: &[i32]) -> bool {
    let ask = || -> Result<bool> {
        let answer = ask_metadata(&mut Connection::open(address)?, &[])?;
        let known: Vec<i32> = answer
            .brokers
            .iter()
            .map(|broker| broker.node_id.0)
            .collect();
        Ok(brokers.iter().all(|broker| known.contains(broker)))
    };
    ask().unwrap_or(false)
}
