//! Three brokers in one process: real logs, the controller's own rules, and a network of function
//! calls that can be cut.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use highwater_storage::{AppendOrigin, LeaderEpoch, LogManagerSettings, TopicPartition};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use uuid::Uuid;

use self::network::Way;
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

mod directories;
mod network;
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
