//! Batches of the metadata log: records in, records out.

use bytes::Bytes;
use highwater_replication::cluster::MetadataRecord;
use highwater_storage::record_batch::{
    BATCH_HEADER_BYTES, BatchError, BatchHeader, Batches, DecompressLimits, RecordBatchBuilder,
    decode_records, verify_crc,
};

use super::MetadataError;

/// Control record types of KRaft's log.
const LEADER_CHANGE: i16 = 2;
const SNAPSHOT_HEADER: i16 = 3;
const SNAPSHOT_FOOTER: i16 = 4;

/// One batch of a metadata log, decoded.
pub(super) struct MetadataBatch {
    /// Offset after the batch.
    pub(super) next_offset: i64,
    /// Epoch of the controller that wrote it.
    pub(super) epoch: i32,
    /// When its last record was written.
    pub(super) timestamp_ms: i64,
    /// Its records; none for a control batch.
    pub(super) records: Vec<MetadataRecord>,
    /// Its size on disk.
    pub(super) size_bytes: usize,
}

/// Builds the batch of one request's records.
pub(crate) fn data_batch(
    records: &[MetadataRecord],
    base_offset: i64,
    epoch: i32,
    now_ms: i64,
) -> Result<Bytes, MetadataError> {
    let mut builder = RecordBatchBuilder::new()
        .base_offset(base_offset)
        .leader_epoch(epoch);
    for record in records {
        builder.append(now_ms, None, Some(&record.encode()));
    }
    build(builder)
}

fn control_batch(
    control_type: i16,
    value: &[u8],
    base_offset: i64,
    epoch: i32,
    now_ms: i64,
) -> Result<Bytes, MetadataError> {
    let mut key = [0; 4];
    key[2..].copy_from_slice(&control_type.to_be_bytes());
    let mut builder = RecordBatchBuilder::new()
        .base_offset(base_offset)
        .leader_epoch(epoch)
        .control();
    builder.append(now_ms, Some(&key), Some(value));
    build(builder)
}

fn build(builder: RecordBatchBuilder) -> Result<Bytes, MetadataError> {
    builder
        .build()
        .map_err(|error| MetadataError::Encode(error.into()))
}

/// The first batch of an epoch: who leads the quorum, and who votes in it.
pub(crate) fn leader_change_batch(
    node_id: i32,
    voters: &[i32],
    base_offset: i64,
    epoch: i32,
    now_ms: i64,
) -> Result<Bytes, MetadataError> {
    let put_voters = |value: &mut Vec<u8>, voters: &[i32]| {
        // A compact array of few.
        value.push(voters.len() as u8 + 1);
        for voter in voters {
            value.extend_from_slice(&voter.to_be_bytes());
            value.push(0); // no tagged fields
        }
    };
    let mut value = vec![0, 0]; // version
    value.extend_from_slice(&node_id.to_be_bytes());
    put_voters(&mut value, voters);
    // Who of them granted the vote is known to the consensus alone; the leader did.
    put_voters(&mut value, &[node_id]);
    value.push(0);
    control_batch(LEADER_CHANGE, &value, base_offset, epoch, now_ms)
}

/// The first batch of a snapshot.
pub(super) fn snapshot_header_batch(
    last_contained_log_timestamp_ms: i64,
    epoch: i32,
    now_ms: i64,
) -> Result<Bytes, MetadataError> {
    let mut value = vec![0, 0]; // version
    value.extend_from_slice(&last_contained_log_timestamp_ms.to_be_bytes());
    value.push(0);
    control_batch(SNAPSHOT_HEADER, &value, 0, epoch, now_ms)
}

/// The last batch of a snapshot; without it the snapshot is incomplete.
pub(super) fn snapshot_footer_batch(
    base_offset: i64,
    epoch: i32,
    now_ms: i64,
) -> Result<Bytes, MetadataError> {
    control_batch(SNAPSHOT_FOOTER, &[0, 0, 0], base_offset, epoch, now_ms)
}

/// Whether this is the last batch of a snapshot.
pub(super) fn is_snapshot_footer(batch: &Bytes) -> Result<bool, BatchError> {
    let header = BatchHeader::parse(batch)?;
    if !header.is_control() {
        return Ok(false);
    }
    let first = decode_records(batch, DecompressLimits::default())?
        .next()
        .transpose()?;
    let key = first.and_then(|record| record.key);
    Ok(key.is_some_and(|key| key.get(2..4) == Some(&SNAPSHOT_FOOTER.to_be_bytes())))
}

/// Splits whole batches; `offset` names the place in errors.
pub(super) fn split_batches(
    bytes: &Bytes,
    offset: i64,
) -> Result<Vec<(BatchHeader, Bytes)>, MetadataError> {
    let batches = Batches::new(bytes).map(|batch| {
        let (header, batch) = batch.map_err(|source| MetadataError::Batch { offset, source })?;
        Ok((header, bytes.slice_ref(batch)))
    });
    batches.collect()
}

/// Decodes one batch.
pub(super) fn decode_batch(
    header: &BatchHeader,
    batch: &Bytes,
) -> Result<MetadataBatch, MetadataError> {
    debug_assert!(batch.len() >= BATCH_HEADER_BYTES);
    let at = |source| MetadataError::Batch {
        offset: header.base_offset,
        source,
    };
    // After a clean stop nobody has checked it yet, and a changed bit could rename a topic.
    verify_crc(batch).map_err(at)?;
    let mut decoded = MetadataBatch {
        next_offset: header.next_offset(),
        epoch: header.partition_leader_epoch,
        timestamp_ms: header.max_timestamp,
        records: Vec::new(),
        size_bytes: batch.len(),
    };
    if header.is_control() {
        return Ok(decoded);
    }
    for record in decode_records(batch, DecompressLimits::default()).map_err(at)? {
        let record = record.map_err(at)?;
        let value = record.value.unwrap_or_default();
        let parsed = MetadataRecord::decode(&value);
        decoded
            .records
            .push(parsed.map_err(|source| MetadataError::Record {
                offset: record.offset,
                source,
            })?);
    }
    Ok(decoded)
}

/// The whole batches from `offset` on; `None` when no batch begins there.
pub(crate) fn batches_from(bytes: &Bytes, offset: i64) -> Result<Option<Bytes>, MetadataError> {
    let mut position = 0;
    for (header, batch) in split_batches(bytes, offset)? {
        if header.base_offset == offset {
            return Ok(Some(bytes.slice(position..)));
        }
        position += batch.len();
    }
    Ok(None)
}
