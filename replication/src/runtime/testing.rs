//! What the tests of the runtime share: partitions on real logs, brokers, and batches.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use highwater_storage::record_batch::RecordBatchBuilder;
use highwater_storage::{
    AppendOrigin, BrokerId, LeaderEpoch, LogConfig, LogManager, LogManagerSettings, PartitionEpoch,
    TopicId, TopicPartition,
};
use uuid::Uuid;

use super::context::{ReplicaContext, time_of_day_ms};
use super::leader_endpoint::{FetchPartition, FetchRequest};
use super::partition::{Appended, FetcherChange, FollowerRead, Leadership, Partition};
use super::read::{PartitionRead, PartitionReadRequest, ReadIsolation};
use super::topic_settings::TopicSettings;
use crate::cluster::ClusterImage;
use crate::cluster::records::RegisterBrokerRecord;
use crate::runtime::error::PartitionError;
use crate::state::commit::Acks;
use crate::state::isr::IsrProposal;
use crate::state::replica_progress::FollowerFetch;

pub(super) const NOW_MS: i64 = 1_700_000_000_000;
pub(super) const B1: BrokerId = BrokerId(1);
pub(super) const B2: BrokerId = BrokerId(2);
pub(super) const B3: BrokerId = BrokerId(3);

/// The epoch of a broker's run in [`image`].
pub(super) fn broker_epoch(broker: BrokerId) -> i64 {
    i64::from(broker.0) * 10
}

/// Brokers 1 to 3 in racks r1 to r3, all active except `fenced`.
pub(super) fn image(fenced: &[BrokerId]) -> Arc<ClusterImage> {
    let record = |broker: BrokerId| {
        RegisterBrokerRecord {
            broker_id: broker.0,
            is_migrating_zk_broker: false,
            incarnation_id: Uuid::from_u128(1),
            broker_epoch: broker_epoch(broker),
            end_points: Vec::new(),
            features: Vec::new(),
            rack: Some(format!("r{broker}")),
            fenced: fenced.contains(&broker),
            in_controlled_shutdown: false,
            log_dirs: Vec::new(),
            cordoned_log_dirs: None,
        }
        .into()
    };
    let records = [B1, B2, B3].map(record);
    let (image, _) = ClusterImage::empty("c")
        .apply(&records, 2, 1)
        .expect("records that fit");
    Arc::new(image)
}

/// What a leader remembers of the fetches of one fetcher, as its session does.
#[derive(Debug, Default)]
pub(super) struct ToldFetches(pub(super) BTreeMap<(TopicId, i32), FetchPartition>);

impl ToldFetches {
    /// Takes note of a fetch. One outside of a session, or that opens one, names all that it wants.
    pub(super) fn hear(&mut self, request: &FetchRequest) {
        let Self(told) = self;
        if request.session_epoch <= 0 {
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
}

/// A partition on a broker, with its log in a directory of its own.
pub(super) struct Fixture {
    pub(super) partition: Arc<Partition>,
    pub(super) context: Arc<ReplicaContext>,
    _dir: tempfile::TempDir,
}

pub(super) fn leadership(
    leader: Option<BrokerId>,
    leader_epoch: i32,
    partition_epoch: i32,
    isr: &[BrokerId],
) -> Leadership {
    Leadership {
        leader,
        leader_epoch: LeaderEpoch(leader_epoch),
        partition_epoch: PartitionEpoch(partition_epoch),
        replicas: vec![B1, B2, B3],
        isr: isr.to_vec(),
    }
}

impl Fixture {
    /// On broker 1.
    pub(super) fn new(min_insync_replicas: i32) -> Self {
        Self::on(B1, min_insync_replicas)
    }

    pub(super) fn on(broker: BrokerId, min_insync_replicas: i32) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let logs = LogManager::open(LogManagerSettings {
            log_dirs: vec![dir.path().to_owned()],
            ..LogManagerSettings::default()
        })
        .expect("opened");
        let config = LogConfig {
            min_insync_replicas,
            ..LogConfig::default()
        };
        let topic_partition = TopicPartition::new("t", 0);
        let topic_id = TopicId(Uuid::from_u128(7));
        let settings = TopicSettings::from(config.clone());
        let log = logs
            .get_or_create(&topic_partition, Some(topic_id), config, time_of_day_ms())
            .expect("made");
        let context = Arc::new(ReplicaContext::new(broker));
        context.set_image(image(&[]));
        let shared = Arc::clone(&context);
        let partition = Partition::new(topic_partition, topic_id, shared, log, &settings);
        Self {
            partition: Arc::new(partition),
            context,
            _dir: dir,
        }
    }

    /// Leads in epoch 1 with this ISR.
    pub(super) fn leading(min_insync_replicas: i32, isr: &[BrokerId]) -> Self {
        let fixture = Self::new(min_insync_replicas);
        fixture.become_as(leadership(Some(B1), 1, 1, isr));
        fixture
    }

    pub(super) fn become_as(&self, leadership: Leadership) -> FetcherChange {
        self.partition.become_as(leadership).expect("a role")
    }

    pub(super) fn append(&self, records: usize, acks: Acks) -> Result<Appended, PartitionError> {
        let batch = batch(0, -1, records);
        self.partition
            .append_as_leader(&batch, acks, AppendOrigin::Client, NOW_MS)
    }

    pub(super) fn high_watermark(&self) -> i64 {
        self.partition.log().high_watermark()
    }

    pub(super) fn log_end_offset(&self) -> i64 {
        self.partition.log().log_end_offset()
    }

    /// A first fetch of a follower in leader epoch `epoch`.
    pub(super) fn fetch_in(
        &self,
        epoch: i32,
        replica: BrokerId,
        fetch_offset: i64,
        last_epoch: Option<i32>,
    ) -> Result<PartitionRead, PartitionError> {
        let request = PartitionReadRequest {
            current_leader_epoch: Some(LeaderEpoch(epoch)),
            last_fetched_epoch: last_epoch.map(LeaderEpoch),
            ..read_request(fetch_offset)
        };
        self.partition
            .read_for_follower(request, follower_read(replica, fetch_offset, true))
    }

    pub(super) fn fetch(&self, replica: BrokerId, fetch_offset: i64) -> PartitionRead {
        let epoch = self.partition.leader_epoch().0;
        self.fetch_in(epoch, replica, fetch_offset, None)
            .expect("a replica in the present epoch")
    }

    /// The proposal that waits for the controller.
    pub(super) fn proposal(&self) -> Option<IsrProposal> {
        self.context.proposals().latest(&self.partition)
    }
}

pub(super) fn follower_read(
    replica: BrokerId,
    fetch_offset: i64,
    is_first_look: bool,
) -> FollowerRead {
    FollowerRead {
        fetch: FollowerFetch {
            replica,
            broker_epoch: highwater_storage::BrokerEpoch(broker_epoch(replica)),
            fetch_offset,
            log_start_offset: 0,
        },
        is_first_look,
    }
}

pub(super) fn read_request(fetch_offset: i64) -> PartitionReadRequest {
    PartitionReadRequest {
        fetch_offset,
        max_bytes: 1 << 20,
        at_least_one_batch: true,
        leader_only: true,
        current_leader_epoch: None,
        last_fetched_epoch: None,
        isolation: ReadIsolation::HighWatermark,
        may_wait: true,
    }
}

/// A batch as a leader of `leader_epoch` would have it at `base_offset`.
pub(super) fn batch(base_offset: i64, leader_epoch: i32, records: usize) -> Bytes {
    let mut builder = RecordBatchBuilder::new()
        .base_offset(base_offset)
        .leader_epoch(leader_epoch);
    for _ in 0..records {
        builder.append(NOW_MS, None, Some(b"v"));
    }
    builder.build().expect("a batch")
}
