//! Three brokers in one process: real logs, the controller's own rules, and a network of function
//! calls that can be cut.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use highwater_storage::{AppendOrigin, LeaderEpoch, LogManagerSettings, TopicPartition};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use uuid::Uuid;

use super::super::BoxFuture;
use super::super::alter_partition::{
    AlterPartition, AlterPartitionChannel, AlterPartitionChannelError, AlteredPartitionResponse,
};
use super::super::leader_endpoint::{
    FetchPartition, FetchRequest, FetchResponse, FetchedPartition, FetchedRecords, LeaderEndpoint,
    LeaderEndpointError, LeaderEndpointFactory, ReplicaOffset, TopicIdPartition,
};
use super::super::partition::{Appended, FollowerRead};
use super::super::read::{OffsetQuery, PartitionReadRequest, ReadIsolation};
use super::super::testing::{B1, B2, B3, batch, image, read_request};
use super::*;
use crate::cluster::alter_partition::{IsrProposal, alter_partition};
use crate::cluster::broker_changes::{fence_broker, unfence_broker};
use crate::cluster::records::{ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord};
use crate::cluster::topic_rules::ReplicationDefaults;
use crate::cluster::{ClusterError, MetadataRecord};
use crate::runtime::context::time_of_day_ms;
use crate::runtime::settings::ReplicaSettings;
use crate::state::alter_partition::{AlterPartitionError, AlteredPartition};
use crate::state::commit::Acks;
use crate::state::fencing::EpochFence;
use crate::state::follower::LeaderError;
use crate::state::replica_progress::{FollowerFetch, UNSPECIFIED_BROKER_EPOCH};
use crate::state::truncation::EpochEnd;

mod replicating;
mod throttling;

const ALL: [BrokerId; 3] = [B1, B2, B3];
const TOPIC: &str = "t";
const DEFAULTS: ReplicationDefaults = ReplicationDefaults {
    min_insync_replicas: 2,
    unclean_leader_election_enable: false,
};

struct Node {
    replicas: Arc<ReplicaManager>,
    _dir: tempfile::TempDir,
}

/// What the brokers share: the metadata, and which of them reach whom.
struct Shared {
    nodes: BTreeMap<BrokerId, Node>,
    image: Mutex<Arc<ClusterImage>>,
    /// Brokers that reach nobody and whom nobody reaches, the controller included.
    isolated: Mutex<BTreeSet<BrokerId>>,
    /// What an isolated broker will hear of, once it is reached again.
    unheard: Mutex<BTreeMap<BrokerId, ClusterDelta>>,
}

struct Cluster(Arc<Shared>);

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

impl Cluster {
    fn start() -> Self {
        let image = image(&[]);
        let node = |broker| {
            let dir = tempfile::tempdir().expect("a directory");
            let logs = LogManager::open(LogManagerSettings {
                log_dirs: vec![dir.path().to_owned()],
                ..LogManagerSettings::default()
            });
            let defaults = LogDefaults::from([("min.insync.replicas", "2".to_owned())]);
            let logs = Arc::new(logs.expect("opened"));
            let replicas = Arc::new(ReplicaManager::new(broker, logs, defaults));
            replicas.load(&image, time_of_day_ms());
            let epoch = image.broker(broker).expect("registered").epoch;
            replicas.context().set_broker_epoch(epoch);
            let settings = ReplicaSettings {
                replica_lag_time_max_ms: 10_000,
                ..ReplicaSettings::default()
            };
            replicas.context().configure(settings);
            (
                broker,
                Node {
                    replicas,
                    _dir: dir,
                },
            )
        };
        let shared = Arc::new(Shared {
            nodes: ALL.into_iter().map(node).collect(),
            image: Mutex::new(Arc::clone(&image)),
            isolated: Mutex::default(),
            unheard: Mutex::default(),
        });
        for (broker, node) in &shared.nodes {
            let way = |shared| {
                Arc::new(Way {
                    shared,
                    from: *broker,
                })
            };
            let peers = Peers {
                endpoints: way(Arc::clone(&shared)),
                controller: way(Arc::clone(&shared)),
            };
            node.replicas.start(peers, &Handle::current());
        }
        Self(shared)
    }

    fn replicas(&self, broker: BrokerId) -> &Arc<ReplicaManager> {
        &self.0.nodes[&broker].replicas
    }

    fn partition(&self, broker: BrokerId) -> Arc<Partition> {
        let hosted = self.replicas(broker).partition(TOPIC, 0);
        hosted.expect("hosted")
    }

    fn create_topic(&self, replicas: &[BrokerId]) -> TopicId {
        let topic_id = TopicId(Uuid::from_u128(77));
        let ids: Vec<i32> = replicas.iter().map(|broker| broker.0).collect();
        self.0.commit(&[
            TopicRecord {
                name: TOPIC.to_owned(),
                topic_id: topic_id.0,
            }
            .into(),
            PartitionRecord {
                partition_id: 0,
                topic_id: topic_id.0,
                isr: ids.clone(),
                leader: ids[0],
                leader_epoch: 0,
                partition_epoch: 0,
                directories: vec![Uuid::nil(); ids.len()],
                replicas: ids,
                ..PartitionRecord::default()
            }
            .into(),
        ]);
        topic_id
    }

    fn configure_topic(&self, key: &str, value: &str) {
        self.0.commit(&[ConfigRecord {
            resource_type: ResourceType::Topic.id(),
            resource_name: TOPIC.to_owned(),
            name: key.to_owned(),
            value: Some(value.to_owned()),
        }
        .into()]);
    }

    fn isolate(&self, broker: BrokerId) {
        self.0.isolated.lock().insert(broker);
    }

    /// The broker is reached again, and hears of all that happened.
    fn heal(&self, broker: BrokerId) {
        self.0.isolated.lock().remove(&broker);
        let unheard = self.0.unheard.lock().remove(&broker);
        let image = Arc::clone(&self.0.image.lock());
        if let Some(delta) = unheard {
            self.replicas(broker)
                .apply(&image, &delta, time_of_day_ms());
        }
    }

    fn fence(&self, broker: BrokerId) {
        let image = Arc::clone(&self.0.image.lock());
        let records = fence_broker(&image, &DEFAULTS, broker).expect("registered");
        self.0.commit(&records);
    }

    fn unfence(&self, broker: BrokerId) {
        let image = Arc::clone(&self.0.image.lock());
        let epoch = image.broker(broker).expect("registered").epoch;
        let records = unfence_broker(&image, &DEFAULTS, broker, epoch).expect("registered");
        self.0.commit(&records);
    }

    fn isr(&self) -> Vec<BrokerId> {
        let image = Arc::clone(&self.0.image.lock());
        let mut isr = image.partition(TOPIC, 0).expect("there").isr.clone();
        isr.sort_unstable();
        isr
    }

    fn produce(&self, broker: BrokerId, acks: Acks) -> Result<Appended, PartitionError> {
        self.partition(broker).append_as_leader(
            &batch(0, -1, 1),
            acks,
            AppendOrigin::Client,
            time_of_day_ms(),
        )
    }

    /// Produces and waits until it is committed.
    async fn produce_all(&self, broker: BrokerId) {
        let appended = self.produce(broker, Acks::All).expect("appended");
        if let Some(commit) = appended.commit {
            let committed = tokio::time::timeout(Duration::from_secs(20), commit.committed());
            committed.await.expect("in time").expect("committed");
        }
    }

    async fn until(&self, what: &str, is_reached: impl Fn() -> bool) {
        for _ in 0..6_000 {
            if is_reached() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not reached: {what}");
    }

    fn log(&self, broker: BrokerId) -> (i64, i64, Bytes) {
        let partition = self.partition(broker);
        let log = partition.log();
        let read = log.read(log.log_start_offset(), 1 << 20, i64::MAX, true);
        let records = read.expect("read").records;
        (log.log_end_offset(), log.high_watermark(), records)
    }

    async fn until_same_logs(&self, brokers: &[BrokerId]) {
        self.until("the logs are the same", || {
            let first = self.log(brokers[0]);
            brokers.iter().all(|broker| self.log(*broker) == first)
        })
        .await;
    }
}

impl Shared {
    /// Applies records, and tells all brokers that are reached.
    fn commit(&self, records: &[MetadataRecord]) {
        if records.is_empty() {
            return;
        }
        let (image, delta) = {
            let mut image = self.image.lock();
            let last_offset = image.offset() + i64::try_from(records.len()).expect("few");
            let (next, delta) = image.apply(records, last_offset, 1).expect("they fit");
            *image = Arc::new(next);
            (Arc::clone(&image), delta)
        };
        for (broker, node) in &self.nodes {
            if self.isolated.lock().contains(broker) {
                let mut unheard = self.unheard.lock();
                unheard.entry(*broker).or_default().merge(delta.clone());
            } else {
                node.replicas.apply(&image, &delta, time_of_day_ms());
            }
        }
    }

    fn reaches(&self, from: BrokerId, to: BrokerId) -> Result<(), LeaderEndpointError> {
        let isolated = self.isolated.lock();
        if isolated.contains(&from) || isolated.contains(&to) {
            return Err(LeaderEndpointError::Disconnected("cut".to_owned()));
        }
        Ok(())
    }
}

/// The way from one broker to all others.
#[derive(Debug)]
struct Way {
    shared: Arc<Shared>,
    from: BrokerId,
}

impl LeaderEndpointFactory for Way {
    fn endpoint(&self, leader: BrokerId, _: usize) -> Arc<dyn LeaderEndpoint> {
        Arc::new(Link {
            shared: Arc::clone(&self.shared),
            from: self.from,
            to: leader,
            told: Mutex::default(),
        })
    }
}

impl AlterPartitionChannel for Way {
    fn alter_partitions(
        &self,
        partitions: Vec<AlterPartition>,
    ) -> BoxFuture<'_, Result<Vec<AlteredPartitionResponse>, AlterPartitionChannelError>> {
        Box::pin(async move {
            if self.shared.isolated.lock().contains(&self.from) {
                return Err(AlterPartitionChannelError("cut".to_owned()));
            }
            let proposals: Vec<IsrProposal> = partitions.iter().map(to_proposal).collect();
            let image = Arc::clone(&self.shared.image.lock());
            let epoch = image.broker(self.from).expect("registered").epoch;
            let judged = alter_partition(&image, &DEFAULTS, self.from, epoch, &proposals);
            let (records, results) =
                judged.map_err(|error| AlterPartitionChannelError(error.to_string()))?;
            self.shared.commit(&records);
            let respond = |(asked, result): (AlterPartition, Result<_, _>)| {
                let result: Result<crate::cluster::alter_partition::PartitionState, _> = result;
                AlteredPartitionResponse {
                    topic_id: asked.topic_id,
                    partition: asked.partition,
                    result: result.map_err(to_error).map(|state| AlteredPartition {
                        leader: state.leader,
                        leader_epoch: state.leader_epoch,
                        partition_epoch: state.partition_epoch,
                        isr: state.isr,
                    }),
                }
            };
            Ok(partitions.into_iter().zip(results).map(respond).collect())
        })
    }
}

fn to_proposal(asked: &AlterPartition) -> IsrProposal {
    let known = |epoch| Some(epoch).filter(|epoch| *epoch != UNSPECIFIED_BROKER_EPOCH);
    let members = asked.proposal.isr.iter();
    IsrProposal {
        topic_id: asked.topic_id,
        partition: asked.partition,
        leader_epoch: asked.proposal.leader_epoch,
        partition_epoch: asked.proposal.partition_epoch,
        new_isr: members
            .map(|member| (member.broker, known(member.broker_epoch)))
            .collect(),
        recovering: false,
    }
}

fn to_error(error: ClusterError) -> AlterPartitionError {
    match error {
        ClusterError::FencedLeaderEpoch(_) => AlterPartitionError::FencedLeaderEpoch,
        ClusterError::InvalidUpdateVersion(_) => AlterPartitionError::InvalidUpdateVersion,
        ClusterError::IneligibleReplica(_) => AlterPartitionError::IneligibleReplica,
        ClusterError::NewLeaderElected(_) => AlterPartitionError::NewLeaderElected,
        ClusterError::UnknownTopicId => AlterPartitionError::UnknownTopicId,
        ClusterError::InvalidRequest(_) => AlterPartitionError::InvalidRequest,
        _ => AlterPartitionError::Other(-1),
    }
}

/// The connection of one fetcher, with what the session remembers.
#[derive(Debug)]
struct Link {
    shared: Arc<Shared>,
    from: BrokerId,
    to: BrokerId,
    told: Mutex<BTreeMap<(TopicId, i32), FetchPartition>>,
}

impl Link {
    fn leader(&self, id: TopicId, index: i32) -> Result<Arc<Partition>, LeaderError> {
        let replicas = &self.shared.nodes[&self.to].replicas;
        let found = replicas.partition_by_id(id, index);
        found.map_err(|_| LeaderError::NotLeaderOrFollower)
    }

    fn hear(&self, request: &FetchRequest) {
        let mut told = self.told.lock();
        if request.session_epoch == 0 {
            told.clear();
        }
        for gone in &request.forgotten {
            told.remove(&(gone.topic_id, gone.topic_partition.partition));
        }
        for wanted in &request.partitions {
            let partition = &wanted.partition;
            let key = (partition.topic_id, partition.topic_partition.partition);
            told.insert(key, wanted.clone());
        }
    }

    fn look(
        &self,
        request: &FetchRequest,
        wanted: &FetchPartition,
        is_first_look: bool,
    ) -> Result<FetchedRecords, LeaderError> {
        let TopicIdPartition {
            topic_id,
            topic_partition: TopicPartition { partition, .. },
        } = &wanted.partition;
        let leader = self.leader(*topic_id, *partition)?;
        let fetch_offset = wanted.position.fetch_offset;
        let read = leader.read_for_follower(
            PartitionReadRequest {
                max_bytes: usize::try_from(wanted.max_bytes).expect("positive"),
                current_leader_epoch: Some(wanted.position.leader_epoch),
                last_fetched_epoch: wanted.position.last_fetched_epoch,
                ..read_request(fetch_offset)
            },
            FollowerRead {
                fetch: FollowerFetch {
                    replica: request.replica,
                    broker_epoch: request.broker_epoch,
                    fetch_offset,
                    log_start_offset: wanted.log_start_offset,
                },
                is_first_look,
            },
        );
        let read = read.map_err(|error| match error {
            PartitionError::OffsetOutOfRange { .. } => LeaderError::OffsetOutOfRange,
            PartitionError::Fenced(EpochFence::Fenced { .. }) => LeaderError::FencedLeaderEpoch,
            PartitionError::Fenced(EpochFence::Unknown { .. })
            | PartitionError::NotAReplica { .. } => LeaderError::UnknownLeaderEpoch,
            _ => LeaderError::NotLeaderOrFollower,
        })?;
        leader.on_sent_to_follower(&read);
        Ok(FetchedRecords {
            high_watermark: read.high_watermark,
            log_start_offset: read.log_start_offset,
            diverging_epoch: read
                .diverging_epoch
                .map(|(epoch, end_offset)| EpochEnd { epoch, end_offset }),
            records: read.records.map_or_else(Bytes::new, |read| read.records),
        })
    }

    fn look_at_all(&self, request: &FetchRequest, is_first_look: bool) -> Vec<FetchedPartition> {
        let told = self.told.lock();
        let look = |(key, wanted): (&(TopicId, i32), &FetchPartition)| FetchedPartition {
            topic_id: key.0,
            partition: key.1,
            answer: self.look(request, wanted, is_first_look),
        };
        told.iter().map(look).collect()
    }

    async fn answer(&self, request: FetchRequest) -> Result<FetchResponse, LeaderEndpointError> {
        self.shared.reaches(self.from, self.to)?;
        self.hear(&request);
        let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).expect("positive"));
        let deadline = tokio::time::Instant::now() + wait;
        let notify = Arc::new(Notify::new());
        let mut is_first_look = true;
        loop {
            let keys: Vec<_> = self.told.lock().keys().copied().collect();
            let leaders = keys
                .iter()
                .filter_map(|(id, index)| self.leader(*id, *index).ok());
            let _registrations: Vec<_> = leaders
                .map(|leader| {
                    let next = leader.log().log_end_offset() + 1;
                    leader.log_end_watch().register(next, Arc::clone(&notify))
                })
                .collect();
            let partitions = self.look_at_all(&request, is_first_look);
            is_first_look = false;
            let has_news = |fetched: &FetchedPartition| match &fetched.answer {
                Ok(fetched) => !fetched.records.is_empty() || fetched.diverging_epoch.is_some(),
                Err(_) => true,
            };
            if partitions.iter().any(has_news)
                || tokio::time::timeout_at(deadline, notify.notified())
                    .await
                    .is_err()
            {
                self.shared.reaches(self.from, self.to)?;
                return Ok(FetchResponse {
                    session_id: 7,
                    partitions,
                });
            }
        }
    }
}

impl LeaderEndpoint for Link {
    fn fetch(
        &self,
        request: FetchRequest,
    ) -> BoxFuture<'_, Result<FetchResponse, LeaderEndpointError>> {
        Box::pin(self.answer(request))
    }

    fn list_offset(
        &self,
        partition: TopicIdPartition,
        current_leader_epoch: LeaderEpoch,
        which: ReplicaOffset,
    ) -> BoxFuture<'_, Result<Result<i64, LeaderError>, LeaderEndpointError>> {
        Box::pin(async move {
            self.shared.reaches(self.from, self.to)?;
            let query = match which {
                ReplicaOffset::LogEnd => OffsetQuery::Latest,
                ReplicaOffset::LogStart => OffsetQuery::Earliest,
            };
            let index = partition.topic_partition.partition;
            Ok(self.leader(partition.topic_id, index).and_then(|leader| {
                let epoch = Some(current_leader_epoch);
                let found = leader.list_offset(query, ReadIsolation::LogEnd, epoch);
                let found = found.map_err(|_| LeaderError::NotLeaderOrFollower)?;
                Ok(found.expect("the ends are known").offset)
            }))
        })
    }

    fn end_offset_for_epoch(
        &self,
        partition: TopicIdPartition,
        current_leader_epoch: LeaderEpoch,
        epoch: LeaderEpoch,
    ) -> BoxFuture<'_, Result<Result<Option<EpochEnd>, LeaderError>, LeaderEndpointError>> {
        Box::pin(async move {
            self.shared.reaches(self.from, self.to)?;
            let index = partition.topic_partition.partition;
            Ok(self.leader(partition.topic_id, index).and_then(|leader| {
                let found = leader.end_offset_for_epoch(epoch, Some(current_leader_epoch));
                let found = found.map_err(|_| LeaderError::NotLeaderOrFollower)?;
                Ok(found.map(|(epoch, end_offset)| EpochEnd { epoch, end_offset }))
            }))
        })
    }

    fn disconnect(&self) {}
}
