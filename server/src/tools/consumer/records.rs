//! The records in what a fetch has brought.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use highwater_storage::record_batch::{
    BatchError, Batches, ControlRecord, DecompressLimits, Record, TimestampType, decode_records,
    verify_crc,
};

/// A record, and what its batch says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetched {
    /// The record.
    pub(crate) record: Record,
    /// Whose clock its timestamp is of.
    pub(crate) timestamp_type: TimestampType,
}

/// The records from an offset on, and the offset behind all that was looked at. `aborted` are the transactions that a
/// reader of committed records leaves out: producer id and first offset.
///
/// # Errors
/// When a batch is not what was written.
pub(super) fn read(
    bytes: &Bytes,
    from: i64,
    aborted: &[(i64, i64)],
) -> Result<(Vec<Fetched>, i64), BatchError> {
    let mut records = Vec::new();
    let mut next_offset = from;
    let mut starts: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (producer_id, first_offset) in aborted {
        starts.entry(*first_offset).or_default().push(*producer_id);
    }
    let mut open: BTreeSet<i64> = BTreeSet::new();
    for batch in Batches::new(bytes) {
        let (header, batch) = batch?;
        verify_crc(batch)?;
        let batch = bytes.slice_ref(batch);
        let later = starts.split_off(&header.next_offset());
        let begun = std::mem::replace(&mut starts, later);
        open.extend(begun.into_values().flatten());
        next_offset = next_offset.max(header.next_offset());
        if header.is_control() {
            if let Some(Ok(marker)) = decode_records(&batch, DecompressLimits::default())?.next()
                && let Ok(ControlRecord::EndTransaction(marker)) =
                    ControlRecord::parse(marker.key.as_deref(), marker.value.as_deref())
                && !marker.is_commit
            {
                open.remove(&header.producer_id);
            }
            continue;
        }
        if header.is_transactional() && open.contains(&header.producer_id) {
            continue;
        }
        for record in decode_records(&batch, DecompressLimits::default())? {
            let record = record?;
            if record.offset >= from {
                records.push(Fetched {
                    record,
                    timestamp_type: header.timestamp_type(),
                });
            }
        }
    }
    Ok((records, next_offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater_storage::record_batch::{EndTransactionMarker, RecordBatchBuilder};

    fn batch(base_offset: i64, producer_id: Option<i64>) -> Bytes {
        let mut builder = RecordBatchBuilder::new().base_offset(base_offset);
        if let Some(id) = producer_id {
            builder = builder.producer(id, 0, 0).transactional();
        }
        builder.append(1, None, Some(b"a"));
        builder.append(2, None, Some(b"b"));
        builder.build().expect("a batch")
    }

    fn offsets(bytes: &[Bytes], from: i64, aborted: &[(i64, i64)]) -> (Vec<i64>, i64) {
        let bytes = Bytes::from(bytes.concat());
        let (records, next) = read(&bytes, from, aborted).expect("reads");
        (
            records
                .iter()
                .map(|fetched| fetched.record.offset)
                .collect(),
            next,
        )
    }

    #[test]
    fn reading_begins_at_the_offset() {
        let bytes = [batch(0, None), batch(2, None)];
        assert_eq!(offsets(&bytes, 1, &[]), (vec![1, 2, 3], 4));
        assert_eq!(offsets(&[], 7, &[]), (vec![], 7));
    }

    #[test]
    fn aborted_transactions_are_left_out_up_to_their_marker() {
        let marker = EndTransactionMarker {
            is_commit: false,
            coordinator_epoch: 0,
        };
        let marker = RecordBatchBuilder::end_transaction(marker, 9, 0, 3)
            .base_offset(4)
            .build()
            .expect("a marker");
        let bytes = [batch(0, Some(9)), batch(2, None), marker, batch(5, Some(9))];
        assert_eq!(offsets(&bytes, 0, &[(9, 0)]), (vec![2, 3, 5, 6], 7));
        assert_eq!(offsets(&bytes, 0, &[]), (vec![0, 1, 2, 3, 5, 6], 7));
    }

    #[test]
    fn damage_is_noticed() {
        let mut bytes = batch(0, None).to_vec();
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        assert!(read(&bytes.into(), 0, &[]).is_err());
    }
}
