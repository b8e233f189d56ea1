//! Fetch on a controller's listener: brokers follow the metadata log as observers of the quorum (KIP-595, KIP-630).
//!
//! Only what is committed is in the log, so an observer is sent nothing that could be taken back. A fetch that has
//! everything waits for the next records, for another leader, or for its time to be over.

use std::sync::Arc;
use std::time::Duration;

use highwater_storage::{LeaderEpoch, Log, ReadError};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_request::FetchPartition;
use kafka_protocol::messages::fetch_response::{
    EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
    SnapshotId,
};
use kafka_protocol::messages::{FetchRequest, FetchResponse};
use tokio::time::Instant;

use super::error_code::ErrorCode;
use super::metadata_quorum::{Leader, MAX_RESPONSE_BYTES, check_cluster_id, is_metadata_topic};
use super::{Reply, RequestContext, ResponseBody};
use crate::broker::Broker;
use crate::metadata::{self, MetadataLog};

/// From here on topics are named by id.
const TOPIC_IDS_FROM: i16 = 13;
/// From here on a replica tells its id with its epoch.
const REPLICA_STATE_FROM: i16 = 15;
/// From here on the response tells where leaders are.
const NODE_ENDPOINTS_FROM: i16 = 16;

/// Handles a Fetch request of the metadata log.
pub(crate) fn handle(broker: &Arc<Broker>, ctx: &RequestContext, request: FetchRequest) -> Reply {
    if let Err(error) = check_cluster_id(broker, request.cluster_id.as_ref()) {
        return refuse(ctx, error).into();
    }
    let replica_id = match ctx.api_version < REPLICA_STATE_FROM {
        true => request.replica_id.0,
        false => request.replica_state.replica_id.0,
    };
    let partition = match request.topics.as_slice() {
        [topic] if ctx.api_version >= TOPIC_IDS_FROM && is_metadata_topic(topic.topic_id) => {
            match topic.partitions.as_slice() {
                [partition] if partition.partition == 0 => partition.clone(),
                _ => return refuse(ctx, ResponseError::InvalidRequest).into(),
            }
        }
        _ => return refuse(ctx, ResponseError::InvalidRequest).into(),
    };
    let fetch = MetadataFetch {
        broker: Arc::clone(broker),
        ctx: ctx.clone(),
        replica_id,
        max_bytes: usize::try_from(request.max_bytes)
            .unwrap_or(0)
            .min(MAX_RESPONSE_BYTES),
        partition,
    };
    let is_sound = request.max_wait_ms >= 0
        && fetch.partition.fetch_offset >= 0
        && fetch.partition.last_fetched_epoch >= 0
        && fetch.partition.current_leader_epoch >= fetch.partition.last_fetched_epoch;
    if !is_sound {
        return fetch
            .answer(Evaluated::Refused(ResponseError::InvalidRequest))
            .into();
    }
    let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let deadline = Instant::now() + wait;
    Reply::Parked(Box::pin(async move { fetch.run(deadline).await }))
}

fn refuse(ctx: &RequestContext, error: ResponseError) -> ResponseBody {
    ctx.count_error(error);
    ctx.encode(&FetchResponse::default().with_error_code(error.code()))
}

struct MetadataFetch {
    broker: Arc<Broker>,
    ctx: RequestContext,
    replica_id: i32,
    max_bytes: usize,
    partition: FetchPartition,
}

/// What a fetch comes to.
enum Evaluated {
    /// An error of the partition.
    Refused(ResponseError),
    /// The logs differ behind the end of this epoch.
    Diverging(i32, i64),
    /// What is asked for is in this snapshot only.
    Snapshot(metadata::SnapshotId),
    /// Records, or none yet.
    Records(bytes::Bytes),
}

impl MetadataFetch {
    async fn run(self, deadline: Instant) -> ResponseBody {
        let broker = Arc::clone(&self.broker);
        let log = Arc::clone(broker.controller.metadata_log());
        let mut high_watermark = log.high_watermark();
        let mut active = broker.controller.active_controller();
        loop {
            high_watermark.borrow_and_update();
            active.borrow_and_update();
            let evaluated = self.evaluate_off_thread().await;
            let is_empty = matches!(&evaluated, Evaluated::Records(records) if records.is_empty());
            // Told from version 18 on; before, it is the highest there can be.
            let knows_high_watermark = self.partition.high_watermark >= log.log().high_watermark();
            if !is_empty || !knows_high_watermark || Instant::now() >= deadline {
                return self.answer(evaluated);
            }
            let wake = async {
                tokio::select! {
                    _ = high_watermark.changed() => {}
                    _ = active.changed() => {}
                    () = tokio::time::sleep_until(deadline) => {}
                }
            };
            if broker.until_stopping(wake).await.is_none() {
                return self.answer(evaluated);
            }
        }
    }

    /// Evaluates on a thread that may wait for the disk.
    async fn evaluate_off_thread(&self) -> Evaluated {
        let (broker, partition) = (Arc::clone(&self.broker), self.partition.clone());
        let (replica_id, max_bytes) = (self.replica_id, self.max_bytes);
        let evaluated = tokio::task::spawn_blocking(move || {
            evaluate(&broker, replica_id, max_bytes, &partition)
        });
        evaluated.await.unwrap_or_else(|error| {
            tracing::error!(%error, "reading the metadata log failed");
            Evaluated::Refused(ResponseError::UnknownServerError)
        })
    }

    fn answer(&self, evaluated: Evaluated) -> ResponseBody {
        let leader = Leader::of(&self.broker);
        let log = self.broker.controller.metadata_log().log();
        let mut partition = PartitionData::default()
            .with_partition_index(0)
            .with_high_watermark(log.high_watermark())
            .with_last_stable_offset(-1)
            .with_log_start_offset(log.log_start_offset())
            .with_current_leader(
                LeaderIdAndEpoch::default()
                    .with_leader_id(leader.id.into())
                    .with_leader_epoch(leader.epoch),
            )
            .with_records(Some(bytes::Bytes::new()));
        match evaluated {
            Evaluated::Refused(error) => {
                self.ctx.count_error(error);
                partition.error_code = error.code();
                partition.high_watermark = -1;
            }
            Evaluated::Diverging(epoch, end_offset) => {
                partition.diverging_epoch = EpochEndOffset::default()
                    .with_epoch(epoch)
                    .with_end_offset(end_offset);
            }
            Evaluated::Snapshot(id) => {
                partition.snapshot_id = SnapshotId::default()
                    .with_end_offset(id.end_offset)
                    .with_epoch(id.epoch);
            }
            Evaluated::Records(records) => partition.records = Some(records),
        }
        let topic = FetchableTopicResponse::default()
            .with_topic_id(metadata::metadata_topic_id().0)
            .with_partitions(vec![partition]);
        let mut response = FetchResponse::default().with_responses(vec![topic]);
        if self.ctx.api_version >= NODE_ENDPOINTS_FROM
            && let Some((host, port)) = leader.address
        {
            response.node_endpoints = vec![
                NodeEndpoint::default()
                    .with_node_id(leader.id.into())
                    .with_host(host)
                    .with_port(port.into()),
            ];
        }
        self.ctx.encode(&response)
    }
}

/// Blocks on the disk.
fn evaluate(
    broker: &Broker,
    replica_id: i32,
    max_bytes: usize,
    partition: &FetchPartition,
) -> Evaluated {
    let leader = Leader::of(broker);
    if let Err(error) = leader.check(broker, partition.current_leader_epoch) {
        return Evaluated::Refused(error);
    }
    let log = broker.controller.metadata_log();
    loop {
        match compare(log, partition.fetch_offset, partition.last_fetched_epoch) {
            Err(error) => return Evaluated::Refused(error),
            Ok(Compared::Snapshot(id)) => return Evaluated::Snapshot(id),
            Ok(Compared::Diverging(epoch, end_offset)) => {
                return Evaluated::Diverging(epoch, end_offset);
            }
            Ok(Compared::Same) => {}
        }
        let high_watermark = log.log().high_watermark();
        let records = match log
            .log()
            .read(partition.fetch_offset, max_bytes, high_watermark, true)
        {
            Ok(read) => read.records,
            // A snapshot has replaced it meanwhile: it is found now.
            Err(ReadError::OffsetOutOfRange { .. })
                if partition.fetch_offset < log.log().log_start_offset() =>
            {
                continue;
            }
            Err(error) => {
                tracing::error!(%error, "the metadata log cannot be read");
                return Evaluated::Refused(error.error_code());
            }
        };
        if replica_id >= 0 {
            broker.controller.quorum().on_observer_fetch(
                replica_id,
                partition.replica_directory_id,
                partition.fetch_offset,
                broker.now_ms(),
            );
        }
        return Evaluated::Records(records);
    }
}

enum Compared {
    Same,
    Diverging(i32, i64),
    Snapshot(metadata::SnapshotId),
}

/// How the log of who fetches lies to this one, as KRaft's leader decides it.
fn compare(log: &MetadataLog, fetch_offset: i64, epoch: i32) -> Result<Compared, ResponseError> {
    let newest = log.latest_snapshot().map_err(|error| {
        tracing::error!(%error, "the snapshots of the metadata cannot be listed");
        ResponseError::KafkaStorageError
    })?;
    let start_offset = log.log().log_start_offset();
    match newest {
        Some(newest) if fetch_offset == 0 => return Ok(Compared::Snapshot(newest)),
        None if fetch_offset == 0 && start_offset == 0 => return Ok(Compared::Same),
        Some(newest) => {
            // The log begins where the oldest snapshot ends, and there is only the newest one.
            let before = fetch_offset < start_offset
                || (start_offset == newest.end_offset
                    && (epoch < newest.epoch
                        || (fetch_offset == start_offset && epoch != newest.epoch)));
            if before {
                return Ok(Compared::Snapshot(newest));
            }
        }
        None => {}
    }
    let (end_epoch, end_offset) = end_of_epoch(log.log(), epoch);
    match end_epoch != epoch || end_offset < fetch_offset {
        true => Ok(Compared::Diverging(end_epoch, end_offset)),
        false => Ok(Compared::Same),
    }
}

/// The largest epoch of the log up to this one, and where it ends; the end of the log when there is none.
fn end_of_epoch(log: &Log, epoch: i32) -> (i32, i64) {
    match log.end_offset_for_epoch(LeaderEpoch(epoch)) {
        Some((epoch, end_offset)) => (epoch.0, end_offset),
        None => (
            log.latest_epoch().map_or(0, |epoch| epoch.0),
            log.log_end_offset(),
        ),
    }
}
