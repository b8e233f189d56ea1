//! The requests of an observer and what the responses say.

use std::ops::RangeInclusive;

use bytes::Bytes;
use highwater_replication::cluster::topic_name::{
    CLUSTER_METADATA_TOPIC, CLUSTER_METADATA_TOPIC_ID,
};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ReplicaState};
use kafka_protocol::messages::fetch_snapshot_request::{
    PartitionSnapshot, SnapshotId as WireSnapshotId, TopicSnapshot,
};
use kafka_protocol::messages::{
    BrokerId, FetchRequest, FetchResponse, FetchSnapshotRequest, FetchSnapshotResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::leader::{Address, Told};
use crate::metadata::SnapshotId;

/// Fetch from the version on in which the response says where the leader is.
pub(super) const FETCH_VERSIONS: RangeInclusive<i16> = 17..=18;

/// No offset, no epoch, or nobody.
const NONE: i64 = -1;

/// Who asks.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    pub(super) node_id: i32,
    pub(super) directory_id: Uuid,
    pub(super) cluster_id: StrBytes,
}

/// From where on the log is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) fetch_offset: i64,
    /// Epoch of the last batch before it; -1 for none.
    pub(super) last_fetched_epoch: i32,
    /// The newest epoch known.
    pub(super) leader_epoch: i32,
    /// The high watermark that the leader told last; -1 for none.
    pub(super) high_watermark: i64,
}

pub(super) fn fetch(
    replica: &Replica,
    position: Position,
    max_wait_ms: i32,
    max_bytes: i32,
) -> FetchRequest {
    let partition = FetchPartition::default()
        .with_current_leader_epoch(position.leader_epoch)
        .with_fetch_offset(position.fetch_offset)
        // An empty log says epoch 0, as Kafka's does.
        .with_last_fetched_epoch(position.last_fetched_epoch.max(0))
        .with_partition_max_bytes(max_bytes)
        .with_replica_directory_id(replica.directory_id)
        .with_high_watermark(position.high_watermark);
    let topic = FetchTopic::default()
        .with_topic_id(CLUSTER_METADATA_TOPIC_ID)
        .with_partitions(vec![partition]);
    FetchRequest::default()
        .with_cluster_id(Some(replica.cluster_id.clone()))
        .with_replica_state(ReplicaState::default().with_replica_id(BrokerId(replica.node_id)))
        .with_max_wait_ms(max_wait_ms)
        .with_max_bytes(max_bytes)
        .with_topics(vec![topic])
}

/// What a fetch brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fetched {
    /// Records, maybe none.
    Records { records: Bytes, high_watermark: i64 },
    /// The log does not go back that far, or not in these epochs: this snapshot comes first.
    Snapshot(SnapshotId),
    /// The leader's last epoch that is not above ours, and where it ends.
    Diverging { epoch: i32, end_offset: i64 },
    /// Nothing: the error.
    Error(i16),
}

/// What the response says, and what it tells of the leader.
pub(super) fn fetched(response: FetchResponse) -> (Told, Fetched) {
    let nobody = Told {
        leader_id: None,
        epoch: -1,
        address: None,
    };
    if response.error_code != 0 {
        return (nobody, Fetched::Error(response.error_code));
    }
    let mut partitions = response
        .responses
        .into_iter()
        .filter(|topic| topic.topic_id == CLUSTER_METADATA_TOPIC_ID)
        .flat_map(|topic| topic.partitions);
    let Some(partition) = partitions.find(|partition| partition.partition_index == 0) else {
        return (nobody, Fetched::Error(UNKNOWN_SERVER_ERROR));
    };
    let leader_id = partition.current_leader.leader_id.0;
    let mut nodes = response.node_endpoints.into_iter();
    let told = Told {
        leader_id: (leader_id >= 0).then_some(leader_id),
        epoch: partition.current_leader.leader_epoch,
        address: nodes
            .find(|node| node.node_id.0 == leader_id)
            .and_then(|node| address(&node.host, u16::try_from(node.port).ok()?)),
    };
    if partition.error_code != 0 {
        return (told, Fetched::Error(partition.error_code));
    }
    let (snapshot, diverging) = (partition.snapshot_id, partition.diverging_epoch);
    let fetched = if snapshot.end_offset != NONE {
        Fetched::Snapshot(SnapshotId {
            end_offset: snapshot.end_offset,
            epoch: snapshot.epoch,
        })
    } else if diverging.end_offset != NONE {
        Fetched::Diverging {
            epoch: diverging.epoch,
            end_offset: diverging.end_offset,
        }
    } else {
        Fetched::Records {
            records: partition.records.unwrap_or_default(),
            high_watermark: partition.high_watermark,
        }
    };
    (told, fetched)
}

/// UNKNOWN_SERVER_ERROR: for a response that leaves out what was asked for.
const UNKNOWN_SERVER_ERROR: i16 = -1;

fn address(host: &str, port: u16) -> Option<Address> {
    (!host.is_empty() && port > 0).then(|| Address {
        host: host.to_owned(),
        port,
    })
}

pub(super) fn fetch_snapshot(
    replica: &Replica,
    leader_epoch: i32,
    id: &SnapshotId,
    position: i64,
    max_bytes: i32,
) -> FetchSnapshotRequest {
    let wire_id = WireSnapshotId::default()
        .with_end_offset(id.end_offset)
        .with_epoch(id.epoch);
    let partition = PartitionSnapshot::default()
        .with_current_leader_epoch(leader_epoch)
        .with_snapshot_id(wire_id)
        .with_position(position)
        .with_replica_directory_id(replica.directory_id);
    let topic = TopicSnapshot::default()
        .with_name(TopicName(StrBytes::from_static_str(CLUSTER_METADATA_TOPIC)))
        .with_partitions(vec![partition]);
    FetchSnapshotRequest::default()
        .with_cluster_id(Some(replica.cluster_id.clone()))
        .with_replica_id(BrokerId(replica.node_id))
        .with_max_bytes(max_bytes)
        .with_topics(vec![topic])
}

/// A part of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SnapshotPart {
    pub(super) bytes: Bytes,
    /// Size of the whole snapshot.
    pub(super) size: i64,
}

/// The part that was asked for, or the error; and what the response tells of the leader.
pub(super) fn fetched_snapshot(
    response: FetchSnapshotResponse,
    id: &SnapshotId,
    position: i64,
) -> (Told, Result<SnapshotPart, i16>) {
    let nobody = Told {
        leader_id: None,
        epoch: -1,
        address: None,
    };
    if response.error_code != 0 {
        return (nobody, Err(response.error_code));
    }
    let mut partitions = response
        .topics
        .into_iter()
        .filter(|topic| **topic.name == *CLUSTER_METADATA_TOPIC)
        .flat_map(|topic| topic.partitions);
    let Some(partition) = partitions.find(|partition| partition.index == 0) else {
        return (nobody, Err(UNKNOWN_SERVER_ERROR));
    };
    let leader_id = partition.current_leader.leader_id.0;
    let mut nodes = response.node_endpoints.into_iter();
    let told = Told {
        leader_id: (leader_id >= 0).then_some(leader_id),
        epoch: partition.current_leader.leader_epoch,
        address: nodes
            .find(|node| node.node_id.0 == leader_id)
            .and_then(|node| address(&node.host, node.port)),
    };
    let wire_id = &partition.snapshot_id;
    let is_asked_for = (wire_id.end_offset, wire_id.epoch) == (id.end_offset, id.epoch)
        && partition.position == position;
    let part = match partition.error_code {
        0 if is_asked_for => Ok(SnapshotPart {
            bytes: partition.unaligned_records,
            size: partition.size,
        }),
        0 => Err(UNKNOWN_SERVER_ERROR),
        error_code => Err(error_code),
    };
    (told, part)
}
