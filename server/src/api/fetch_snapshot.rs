//! FetchSnapshot (KIP-630): a part of a snapshot of the metadata.

use std::sync::Arc;

use highwater_replication::cluster::topic_name::CLUSTER_METADATA_TOPIC;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_snapshot_request::PartitionSnapshot as Asked;
use kafka_protocol::messages::fetch_snapshot_response::{
    LeaderIdAndEpoch, NodeEndpoint, PartitionSnapshot, SnapshotId, TopicSnapshot,
};
use kafka_protocol::messages::{FetchSnapshotRequest, FetchSnapshotResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::metadata_quorum::{Leader, MAX_RESPONSE_BYTES, check_cluster_id};
use super::{Reply, RequestContext};
use crate::broker::Broker;
use crate::metadata::{self, SnapshotSlice};

/// From here on the response tells where leaders are.
const NODE_ENDPOINTS_FROM: i16 = 1;

/// Handles a FetchSnapshot request.
pub(crate) async fn handle(
    broker: Arc<Broker>,
    ctx: RequestContext,
    request: FetchSnapshotRequest,
) -> Reply {
    if let Err(error) = check_cluster_id(&broker, request.cluster_id.as_ref()) {
        return refuse(&ctx, error);
    }
    let [topic] = request.topics.as_slice() else {
        return refuse(&ctx, ResponseError::InvalidRequest);
    };
    let [asked] = topic.partitions.as_slice() else {
        return refuse(&ctx, ResponseError::InvalidRequest);
    };
    let is_metadata = *topic.name.0 == *CLUSTER_METADATA_TOPIC && asked.partition == 0;
    let read = match is_metadata {
        true => read(&broker, request.max_bytes, asked).await,
        false => Err(ResponseError::UnknownTopicOrPartition),
    };
    let leader = Leader::of(&broker);
    let mut partition = PartitionSnapshot::default()
        .with_index(asked.partition)
        .with_current_leader(
            LeaderIdAndEpoch::default()
                .with_leader_id(leader.id.into())
                .with_leader_epoch(leader.epoch),
        );
    match read {
        Ok(slice) => {
            partition.snapshot_id = SnapshotId::default()
                .with_end_offset(asked.snapshot_id.end_offset)
                .with_epoch(asked.snapshot_id.epoch);
            partition.size = i64::try_from(slice.size_in_bytes).unwrap_or(i64::MAX);
            partition.position = asked.position;
            partition.unaligned_records = slice.bytes;
        }
        Err(error) => {
            ctx.count_error(error);
            partition.error_code = error.code();
        }
    }
    let topic = TopicSnapshot::default()
        .with_name(TopicName(StrBytes::from_string(topic.name.to_string())))
        .with_partitions(vec![partition]);
    let mut response = FetchSnapshotResponse::default().with_topics(vec![topic]);
    if ctx.api_version >= NODE_ENDPOINTS_FROM
        && let Some((host, port)) = leader.address
    {
        response.node_endpoints = vec![
            NodeEndpoint::default()
                .with_node_id(leader.id.into())
                .with_host(host)
                .with_port(port),
        ];
    }
    ctx.encode(&response).into()
}

fn refuse(ctx: &RequestContext, error: ResponseError) -> Reply {
    ctx.count_error(error);
    let response = FetchSnapshotResponse::default().with_error_code(error.code());
    ctx.encode(&response).into()
}

async fn read(
    broker: &Arc<Broker>,
    max_bytes: i32,
    asked: &Asked,
) -> Result<SnapshotSlice, ResponseError> {
    Leader::of(broker).check(broker, asked.current_leader_epoch)?;
    let id = metadata::SnapshotId {
        end_offset: asked.snapshot_id.end_offset,
        epoch: asked.snapshot_id.epoch,
    };
    let position = u64::try_from(asked.position).map_err(|_| ResponseError::PositionOutOfRange)?;
    let max_bytes = usize::try_from(max_bytes)
        .unwrap_or(0)
        .min(MAX_RESPONSE_BYTES);
    let log = Arc::clone(broker.controller.metadata_log());
    let read = tokio::task::spawn_blocking(move || log.read_snapshot(&id, position, max_bytes));
    let slice = match read.await {
        Ok(Ok(Some(slice))) => slice,
        Ok(Ok(None)) => return Err(ResponseError::SnapshotNotFound),
        Ok(Err(error)) => {
            tracing::error!(%error, "a snapshot of the metadata cannot be read");
            return Err(ResponseError::KafkaStorageError);
        }
        Err(error) => {
            tracing::error!(%error, "reading a snapshot of the metadata failed");
            return Err(ResponseError::UnknownServerError);
        }
    };
    match position < slice.size_in_bytes {
        true => Ok(slice),
        false => Err(ResponseError::PositionOutOfRange),
    }
}
