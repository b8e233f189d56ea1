//! `__consumer_offsets` on the partitions that this broker hosts.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::FutureExt;
use highwater_replication::runtime::partition::Partition;
use highwater_replication::runtime::replica_manager::ReplicaManager;
use highwater_replication::state::commit::Acks;
use highwater_storage::record_batch::{
    BatchHeader, Batches, Compression, ControlRecord, DecompressLimits, Record, RecordBatchBuilder,
    decode_records,
};
use highwater_storage::{AppendOrigin, LeaderEpoch};
use kafka_protocol::ResponseError;

use super::OFFSETS_TOPIC;
use super::offsets_log::{Appended, LoadedChunk, OffsetsLog};
use super::records::GroupRecord;
use super::state::ReplayedRecord;
use crate::api::error_code::ErrorCode;

/// How much of the log is read at a time.
const LOAD_BUFFER_BYTES: usize = 5 * 1024 * 1024;

/// Appends to and reads from the hosted partitions of `__consumer_offsets`.
pub struct ReplicatedOffsetsLog {
    replicas: Arc<ReplicaManager>,
    compression: Compression,
}

impl ReplicatedOffsetsLog {
    /// Over these partitions; batches are compressed as `offsets.topic.compression.codec` says.
    pub fn new(replicas: Arc<ReplicaManager>, compression: Compression) -> Self {
        ReplicatedOffsetsLog {
            replicas,
            compression,
        }
    }

    fn partition(&self, partition: i32) -> Result<Arc<Partition>, ResponseError> {
        let hosted = self.replicas.partition(OFFSETS_TOPIC, partition);
        hosted.map_err(|error| error.error_code())
    }
}

impl OffsetsLog for ReplicatedOffsetsLog {
    fn append(
        &self,
        partition: i32,
        leader_epoch: i32,
        records: &[GroupRecord],
        now_ms: i64,
    ) -> Result<Appended, ResponseError> {
        let mut batch = RecordBatchBuilder::new().compression(self.compression);
        for record in records {
            let (Ok(key), Ok(value)) = (record.key(), record.value()) else {
                return Err(ResponseError::InvalidRecord);
            };
            batch.append(now_ms, Some(&key), value.as_deref());
        }
        let batch = batch.build().map_err(|error| {
            tracing::error!(%error, "a batch of group records cannot be built");
            ResponseError::UnknownServerError
        })?;
        let partition = self.partition(partition)?;
        let appended = partition
            .append_as_leader_in(
                LeaderEpoch(leader_epoch),
                &batch,
                Acks::All,
                AppendOrigin::Coordinator,
                now_ms,
            )
            .map_err(|error| error.error_code())?;
        Ok(Appended {
            base_offset: appended.info.base_offset,
            commit: appended.commit.map(|commit| {
                async move {
                    let committed = commit.committed().await;
                    committed.map_err(|error| error.error_code())
                }
                .boxed()
            }),
        })
    }

    fn read(&self, partition: i32, from_offset: i64) -> Result<LoadedChunk, ResponseError> {
        let partition = self.partition(partition)?;
        let log = partition.log();
        let from_offset = from_offset.max(log.log_start_offset());
        let log_end_offset = log.log_end_offset();
        let mut chunk = LoadedChunk::default();
        if from_offset >= log_end_offset {
            return Ok(chunk);
        }
        let read = log
            .read(from_offset, LOAD_BUFFER_BYTES, log_end_offset, true)
            .map_err(|error| error.error_code())?;
        let mut next_offset = from_offset;
        let mut batches = Batches::new(&read.records);
        loop {
            let position = batches.position();
            let Some(batch) = batches.next() else {
                break;
            };
            let (header, bytes) = batch.map_err(|error| {
                let partition = partition.topic_partition();
                tracing::error!(%partition, %error, "an offsets partition cannot be read");
                ResponseError::CorruptMessage
            })?;
            let bytes = read.records.slice(position..position + bytes.len());
            load_batch(&header, &bytes, from_offset, &mut chunk)?;
            next_offset = header.next_offset();
        }
        // Without progress there is nothing more to read.
        chunk.next_offset =
            Some(next_offset).filter(|offset| (from_offset + 1..log_end_offset).contains(offset));
        Ok(chunk)
    }

    fn is_empty(&self, partition: i32) -> bool {
        self.partition(partition).is_ok_and(|partition| {
            partition.log().log_start_offset() >= partition.log().log_end_offset()
        })
    }
}

fn load_batch(
    header: &BatchHeader,
    bytes: &Bytes,
    from_offset: i64,
    chunk: &mut LoadedChunk,
) -> Result<(), ResponseError> {
    let corrupt = |error| {
        tracing::error!(offset = header.base_offset, %error, "a batch of group records cannot be read");
        ResponseError::CorruptMessage
    };
    for record in decode_records(bytes, DecompressLimits::default()).map_err(corrupt)? {
        let record = record.map_err(corrupt)?;
        if record.offset < from_offset {
            continue;
        }
        let offset = record.offset;
        if let Some(replayed) = replayed(header, record) {
            chunk.records.push((offset, replayed));
        }
    }
    Ok(())
}

fn replayed(header: &BatchHeader, record: Record) -> Option<ReplayedRecord> {
    let offset = record.offset;
    let producer_id = header.producer_id;
    if header.is_control() {
        return match ControlRecord::parse(record.key.as_deref(), record.value.as_deref()) {
            Ok(ControlRecord::EndTransaction(marker)) => Some(ReplayedRecord::EndTransaction {
                producer_id,
                committed: marker.is_commit,
            }),
            Ok(ControlRecord::Other { .. }) => None,
            Err(error) => {
                tracing::warn!(offset, %error, "passing over a control record that cannot be read");
                None
            }
        };
    }
    match GroupRecord::decode(
        record.key.as_deref().unwrap_or_default(),
        record.value.as_deref(),
    ) {
        Ok(Some(record)) if header.is_transactional() => Some(ReplayedRecord::Transactional {
            producer_id,
            record,
        }),
        Ok(Some(record)) => Some(ReplayedRecord::Plain(record)),
        Ok(None) => None,
        Err(error) => {
            tracing::warn!(offset, %error, "passing over a group record that cannot be read");
            None
        }
    }
}
