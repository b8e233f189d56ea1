//! Controllers that a test plays: they answer Fetch and FetchSnapshot of the metadata log as KRaft does.

use std::sync::Arc;

use bytes::Bytes;
use highwater_replication::cluster::MetadataRecord;
use highwater_storage::record_batch::Batches;
use kafka_protocol::messages::fetch_response::{
    EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
    SnapshotId as WireSnapshotId,
};
use kafka_protocol::messages::fetch_snapshot_response::{
    PartitionSnapshot, SnapshotId as PartSnapshotId, TopicSnapshot,
};
use kafka_protocol::messages::{
    ApiKey, BrokerId, FetchRequest, FetchResponse, FetchSnapshotRequest, FetchSnapshotResponse,
    TopicName,
};
use kafka_protocol::protocol::StrBytes;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::metadata::{SnapshotId, data_batch};
use crate::network::client::fake_node::{FakeNode, Received};
use crate::peer::test_node::{CLUSTER_ID, NODE_ID, NOW_MS};

const NOT_LEADER: i16 = 6;
const FENCED_LEADER_EPOCH: i16 = 74;
const SNAPSHOT_NOT_FOUND: i16 = 98;

/// One batch of the log.
#[derive(Clone)]
struct Batch {
    base_offset: i64,
    next_offset: i64,
    epoch: i32,
    bytes: Bytes,
}

/// What the controllers have.
#[derive(Clone, Default)]
pub(super) struct Quorum {
    pub(super) leader_id: i32,
    pub(super) epoch: i32,
    pub(super) high_watermark: i64,
    log_start: i64,
    log: Vec<Batch>,
    pub(super) snapshot: Option<(SnapshotId, Bytes)>,
    /// Answers that bring records with a flipped bit.
    pub(super) damaged_answers: usize,
    pub(super) snapshot_requests: usize,
}

impl Quorum {
    pub(super) fn end_offset(&self) -> i64 {
        self.log
            .last()
            .map_or(self.log_start, |batch| batch.next_offset)
    }

    /// Appends records in the current epoch; they are not committed by that.
    pub(super) fn append(&mut self, records: &[MetadataRecord]) {
        let bytes = data_batch(records, self.end_offset(), self.epoch, NOW_MS).unwrap();
        self.append_batch(bytes);
    }

    pub(super) fn append_batch(&mut self, bytes: Bytes) {
        let (header, _) = Batches::new(&bytes).next().unwrap().unwrap();
        self.log.push(Batch {
            base_offset: header.base_offset,
            next_offset: header.next_offset(),
            epoch: header.partition_leader_epoch,
            bytes: bytes.clone(),
        });
    }

    pub(super) fn commit_all(&mut self) {
        self.high_watermark = self.end_offset();
    }

    /// A new leader that has only what is before `offset`.
    pub(super) fn elect(&mut self, leader_id: i32, epoch: i32, offset: i64) {
        self.log.retain(|batch| batch.next_offset <= offset);
        (self.leader_id, self.epoch) = (leader_id, epoch);
    }

    /// Drops the log before the end of a snapshot.
    pub(super) fn begin_after(&mut self, id: SnapshotId, content: Bytes) {
        self.log.retain(|batch| batch.base_offset >= id.end_offset);
        self.log_start = id.end_offset;
        self.snapshot = Some((id, content));
    }

    fn end_offset_for_epoch(&self, epoch: i32) -> (i32, i64) {
        let last = self.log.iter().rfind(|batch| batch.epoch <= epoch);
        last.map_or((0, 0), |batch| (batch.epoch, batch.next_offset))
    }
}

/// Controllers that share a log.
#[derive(Clone)]
pub(super) struct Controllers {
    pub(super) quorum: Arc<Mutex<Quorum>>,
    changed: watch::Sender<()>,
}

impl Controllers {
    /// Controller 1 leads in epoch 1, with an empty log.
    pub(super) fn new() -> Self {
        let quorum = Quorum {
            leader_id: 1,
            epoch: 1,
            ..Quorum::default()
        };
        Controllers {
            quorum: Arc::new(Mutex::new(quorum)),
            changed: watch::Sender::new(()),
        }
    }

    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Quorum) -> R) -> R {
        let changed = change(&mut self.quorum.lock());
        self.changed.send_replace(());
        changed
    }

    /// Starts the controller `id`. Where the leader is, it tells as `ports` says.
    pub(super) async fn start(&self, id: i32, ports: Arc<Mutex<Vec<(i32, u16)>>>) -> FakeNode {
        let served = [(ApiKey::Fetch, 4, 18), (ApiKey::FetchSnapshot, 0, 1)];
        let controllers = self.clone();
        let known = Arc::clone(&ports);
        let node = FakeNode::serving(&served, move |received| {
            let (controllers, ports) = (controllers.clone(), Arc::clone(&known));
            async move {
                match received.is(ApiKey::Fetch) {
                    true => controllers.fetch(id, &received, &ports).await,
                    false => controllers.fetch_snapshot(id, &received),
                }
            }
        })
        .await;
        ports.lock().push((id, node.port));
        node
    }

    async fn fetch(
        &self,
        id: i32,
        received: &Received,
        ports: &Mutex<Vec<(i32, u16)>>,
    ) -> Option<Vec<u8>> {
        let request = received.body::<FetchRequest>();
        assert_eq!(request.cluster_id.as_deref(), Some(CLUSTER_ID));
        assert_eq!(request.replica_state.replica_id.0, NODE_ID);
        let asked = &request.topics[0].partitions[0];
        let mut changed = self.changed.subscribe();
        let wait = std::time::Duration::from_millis(request.max_wait_ms as u64);
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let (partition, is_worth_telling) = {
                let mut quorum = self.quorum.lock();
                answer(&mut quorum, id, asked)
            };
            let timed_out = match is_worth_telling {
                true => true,
                false => tokio::time::timeout_at(deadline, changed.changed())
                    .await
                    .is_err(),
            };
            if !timed_out {
                continue;
            }
            let leader_id = partition.current_leader.leader_id;
            let nodes = ports.lock().clone();
            let nodes = nodes.iter().filter(|(id, _)| *id == leader_id.0);
            let nodes = nodes.map(|(_, port)| {
                NodeEndpoint::default()
                    .with_node_id(leader_id)
                    .with_host(StrBytes::from_static_str("127.0.0.1"))
                    .with_port(i32::from(*port))
            });
            let topic = FetchableTopicResponse::default()
                .with_topic_id(request.topics[0].topic_id)
                .with_partitions(vec![partition]);
            return received.answer(
                &FetchResponse::default()
                    .with_node_endpoints(nodes.collect())
                    .with_responses(vec![topic]),
            );
        }
    }

    fn fetch_snapshot(&self, id: i32, received: &Received) -> Option<Vec<u8>> {
        let request = received.body::<FetchSnapshotRequest>();
        let asked = &request.topics[0].partitions[0];
        let mut quorum = self.quorum.lock();
        quorum.snapshot_requests += 1;
        assert_eq!(id, quorum.leader_id);
        let mut partition = PartitionSnapshot::default();
        match &quorum.snapshot {
            Some((known, content))
                if (known.end_offset, known.epoch)
                    == (asked.snapshot_id.end_offset, asked.snapshot_id.epoch) =>
            {
                let from = asked.position as usize;
                let to = content.len().min(from + request.max_bytes as usize);
                partition = partition
                    .with_snapshot_id(
                        PartSnapshotId::default()
                            .with_end_offset(known.end_offset)
                            .with_epoch(known.epoch),
                    )
                    .with_size(content.len() as i64)
                    .with_position(asked.position)
                    .with_unaligned_records(content.slice(from..to));
            }
            _ => partition = partition.with_error_code(SNAPSHOT_NOT_FOUND),
        }
        let topic = TopicSnapshot::default()
            .with_name(TopicName(StrBytes::from_static_str("__cluster_metadata")))
            .with_partitions(vec![partition]);
        received.answer(&FetchSnapshotResponse::default().with_topics(vec![topic]))
    }
}

/// The answer of controller `id`, and whether it is worth telling at once.
fn answer(
    quorum: &mut Quorum,
    id: i32,
    asked: &kafka_protocol::messages::fetch_request::FetchPartition,
) -> (PartitionData, bool) {
    let leader = LeaderIdAndEpoch::default()
        .with_leader_id(BrokerId(quorum.leader_id))
        .with_leader_epoch(quorum.epoch);
    let partition = PartitionData::default().with_current_leader(leader);
    if id != quorum.leader_id {
        return (partition.with_error_code(NOT_LEADER), true);
    }
    if asked.current_leader_epoch < quorum.epoch {
        return (partition.with_error_code(FENCED_LEADER_EPOCH), true);
    }
    assert!(asked.last_fetched_epoch <= asked.current_leader_epoch);
    if asked.fetch_offset < quorum.log_start
        || (asked.fetch_offset == 0 && quorum.snapshot.is_some())
    {
        let (id, _) = quorum.snapshot.as_ref().unwrap();
        let id = WireSnapshotId::default()
            .with_end_offset(id.end_offset)
            .with_epoch(id.epoch);
        return (partition.with_snapshot_id(id), true);
    }
    let is_at_start = quorum.snapshot.is_some() && asked.fetch_offset == quorum.log_start;
    if asked.fetch_offset > 0 && !is_at_start {
        let (epoch, end_offset) = quorum.end_offset_for_epoch(asked.last_fetched_epoch);
        if epoch < asked.last_fetched_epoch || end_offset < asked.fetch_offset {
            let diverging = EpochEndOffset::default()
                .with_epoch(epoch)
                .with_end_offset(end_offset);
            return (partition.with_diverging_epoch(diverging), true);
        }
    }
    let mut records = Vec::new();
    for batch in quorum
        .log
        .iter()
        .filter(|batch| batch.base_offset >= asked.fetch_offset)
    {
        records.extend_from_slice(&batch.bytes);
    }
    let is_news = !records.is_empty() || asked.high_watermark < quorum.high_watermark;
    if !records.is_empty() && quorum.damaged_answers > 0 {
        quorum.damaged_answers -= 1;
        *records.last_mut().unwrap() ^= 1;
    }
    let partition = partition
        .with_high_watermark(quorum.high_watermark)
        .with_records(Some(Bytes::from(records)));
    (partition, is_news)
}
