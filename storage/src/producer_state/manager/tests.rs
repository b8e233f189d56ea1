//! Sequences, transactions and snapshots, rule by rule, and against what Apache Kafka wrote.

mod model;

use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::producer_state::snapshot_file::{list_snapshots, read_snapshot, write_snapshot};
use crate::record_batch::{Batches, RecordBatchBuilder};

const CODECS_LOG: &[u8] = include_bytes!("../../../testdata/kafka-4.4.0/codecs.log");
const CODECS_SNAPSHOT: &[u8] = include_bytes!("../../../testdata/kafka-4.4.0/codecs.snapshot");
const TRANSACTIONS_LOG: &[u8] = include_bytes!("../../../testdata/kafka-4.4.0/transactions.log");
const TRANSACTIONS_SNAPSHOT: &[u8] =
    include_bytes!("../../../testdata/kafka-4.4.0/transactions.snapshot");

const NEVER: i64 = i64::MAX;

fn manager() -> ProducerStateManager {
    ProducerStateManager::new(TopicPartition {
        topic: Arc::from("t"),
        partition: 0,
    })
}

/// A data batch at `offset`.
fn data(pid: i64, epoch: i16, sequence: i32, offset: i64, count: i32) -> BatchHeader {
    let mut builder = RecordBatchBuilder::new()
        .base_offset(offset)
        .producer(pid, epoch, sequence);
    for _ in 0..count {
        builder.append(1000 + offset, None, None);
    }
    BatchHeader::parse(&builder.build().unwrap()).unwrap()
}

fn transactional(pid: i64, epoch: i16, sequence: i32, offset: i64) -> BatchHeader {
    BatchHeader {
        attributes: 0x10,
        ..data(pid, epoch, sequence, offset, 1)
    }
}

fn marker(pid: i64, epoch: i16, coordinator_epoch: i32, offset: i64, is_commit: bool) -> Bytes {
    let marker = EndTransactionMarker {
        is_commit,
        coordinator_epoch,
    };
    RecordBatchBuilder::end_transaction(marker, pid, epoch, 1000 + offset)
        .base_offset(offset)
        .build()
        .unwrap()
}

impl ProducerStateManager {
    fn check_client(&self, header: &BatchHeader) -> Result<SequenceCheck, AppendError> {
        self.check(header, &[], AppendOrigin::Client)
    }

    fn append(&mut self, header: &BatchHeader) {
        assert_eq!(self.check_client(header).unwrap(), SequenceCheck::Append);
        assert_eq!(self.apply(header, &[]), None);
    }

    fn append_marker(&mut self, batch: &Bytes) -> Option<CompletedTxn> {
        let header = BatchHeader::parse(batch).unwrap();
        let check = self
            .check(&header, batch, AppendOrigin::Coordinator)
            .unwrap();
        assert_eq!(check, SequenceCheck::Append);
        self.apply(&header, batch)
    }
}

#[track_caller]
fn assert_out_of_order(result: Result<SequenceCheck, AppendError>) {
    assert!(
        matches!(result, Err(AppendError::OutOfOrderSequence(_))),
        "{result:?}"
    );
}

#[test]
fn replaying_a_log_of_apache_kafka_gives_its_snapshot_byte_for_byte() {
    for (log, snapshot) in [
        (CODECS_LOG, CODECS_SNAPSHOT),
        (TRANSACTIONS_LOG, TRANSACTIONS_SNAPSHOT),
    ] {
        let mut producers = manager();
        for batch in Batches::new(log) {
            let (header, batch) = batch.unwrap();
            producers.apply(&header, batch);
        }
        assert_eq!(producers.snapshot().encode(), snapshot);
        let decoded = ProducerSnapshot::decode(snapshot).unwrap();
        assert_eq!(decoded.encode(), snapshot);
        let mut loaded = manager();
        loaded.load(&decoded, producers.map_end_offset(), 0, NEVER);
        assert_eq!(loaded.snapshot().encode(), snapshot);
    }
}

#[test]
fn each_of_the_last_five_batches_is_recognised_and_older_ones_are_out_of_order() {
    let mut producers = manager();
    for i in 0..8 {
        producers.append(&data(1, 0, i * 2, i64::from(i) * 2, 2));
    }
    for i in 3..8 {
        let SequenceCheck::Duplicate(original) =
            producers.check_client(&data(1, 0, i * 2, 500, 2)).unwrap()
        else {
            panic!("not recognised");
        };
        assert_eq!(original.first_offset(), i64::from(i) * 2);
        assert_eq!(original.last_offset, i64::from(i) * 2 + 1);
        assert_eq!(original.timestamp, 1000 + i64::from(i) * 2);
    }
    assert_out_of_order(producers.check_client(&data(1, 0, 4, 500, 2)));
    // Overlaps but is no exact repetition.
    assert_out_of_order(producers.check_client(&data(1, 0, 14, 500, 1)));
    assert_out_of_order(producers.check_client(&data(1, 0, 13, 500, 2)));
    // A gap.
    assert_out_of_order(producers.check_client(&data(1, 0, 17, 500, 1)));
    producers.append(&data(1, 0, 16, 500, 1));
}

#[test]
fn a_producer_that_is_not_known_may_start_anywhere() {
    let mut producers = manager();
    producers.append(&data(1, 3, 77, 0, 1));
    producers.append(&data(1, 3, 78, 1, 1));
}

#[test]
fn a_new_epoch_starts_at_zero_and_fences_the_old() {
    let mut producers = manager();
    producers.append(&data(1, 4, 10, 0, 1));
    assert_out_of_order(producers.check_client(&data(1, 5, 11, 1, 1)));
    producers.append(&data(1, 5, 0, 1, 1));
    let old = producers.check_client(&data(1, 4, 11, 2, 1));
    assert!(matches!(old, Err(AppendError::InvalidProducerEpoch(_))));
    // The same sequences in the new epoch are new batches.
    assert_out_of_order(producers.check_client(&data(1, 5, 10, 2, 1)));
}

#[test]
fn a_producer_without_an_epoch_may_go_on_anywhere() {
    let mut producers = manager();
    producers.append(&data(1, -1, 0, 0, 1));
    producers.append(&data(1, -1, 9, 1, 1));
    producers.append(&data(1, 0, 5, 2, 1));
}

#[test]
fn sequences_wrap_to_zero() {
    let mut producers = manager();
    producers.append(&data(1, 0, i32::MAX - 1, 0, 3));
    let duplicate = producers
        .check_client(&data(1, 0, i32::MAX - 1, 9, 3))
        .unwrap();
    assert!(matches!(duplicate, SequenceCheck::Duplicate(_)));
    producers.append(&data(1, 0, 1, 3, 1));
    producers.append(&data(2, 0, i32::MAX, 4, 1));
    producers.append(&data(2, 0, 0, 5, 1));
}

#[test]
fn replicated_batches_are_taken_as_they_come() {
    let mut producers = manager();
    producers.append(&data(1, 5, 0, 0, 1));
    for odd in [data(1, 5, 40, 1, 1), data(1, 4, 0, 2, 1)] {
        let check = producers
            .check(&odd, &[], AppendOrigin::Replication)
            .unwrap();
        assert_eq!(check, SequenceCheck::Append);
        producers.apply(&odd, &[]);
    }
    assert_eq!(producers.last_entry(1).unwrap().producer_epoch, 4);
}

#[test]
fn batches_without_a_producer_id_only_move_the_end() {
    let mut producers = manager();
    producers.append(&data(-1, -1, -1, 7, 2));
    assert!(producers.is_empty());
    assert_eq!(producers.map_end_offset(), 9);
}

#[test]
fn an_open_transaction_holds_the_last_stable_offset_until_its_marker_is_replicated() {
    let mut producers = manager();
    producers.append(&transactional(1, 0, 0, 10));
    producers.append(&transactional(2, 0, 0, 11));
    producers.append(&transactional(1, 0, 1, 12));
    assert_eq!(producers.first_unstable_offset(), Some(10));

    let completed = producers
        .append_marker(&marker(1, 0, 0, 13, false))
        .unwrap();
    assert_eq!(
        completed,
        CompletedTxn {
            producer_id: 1,
            first_offset: 10,
            last_offset: 13,
            is_aborted: true,
            last_stable_offset: 11,
        }
    );
    assert_eq!(producers.first_undecided_offset(), Some(11));
    assert_eq!(producers.first_unstable_offset(), Some(10));
    producers.on_high_watermark_updated(13);
    assert_eq!(producers.first_unstable_offset(), Some(10));
    producers.on_high_watermark_updated(14);
    assert_eq!(producers.first_unstable_offset(), Some(11));

    let completed = producers.append_marker(&marker(2, 0, 0, 14, true)).unwrap();
    assert!(!completed.is_aborted);
    assert_eq!(completed.last_stable_offset, 15);
    producers.on_high_watermark_updated(15);
    assert_eq!(producers.first_unstable_offset(), None);
}

#[test]
fn a_marker_without_data_completes_nothing_but_keeps_the_epoch() {
    let mut producers = manager();
    assert_eq!(producers.append_marker(&marker(1, 7, 2, 0, true)), None);
    let old = producers.check_client(&transactional(1, 6, 0, 1));
    assert!(matches!(old, Err(AppendError::InvalidProducerEpoch(_))));
    producers.append(&transactional(1, 7, 0, 1));
}

#[test]
fn markers_of_old_epochs_are_refused() {
    let mut producers = manager();
    producers.append(&transactional(1, 5, 0, 0));
    producers.append_marker(&marker(1, 5, 8, 1, true));
    let check = |batch: &Bytes| {
        let header = BatchHeader::parse(batch).unwrap();
        producers.check(&header, batch, AppendOrigin::Coordinator)
    };
    let fenced = check(&marker(1, 5, 7, 2, true));
    assert!(matches!(
        fenced,
        Err(AppendError::TransactionCoordinatorFenced(_))
    ));
    let fenced = check(&marker(1, 4, 8, 2, true));
    assert!(matches!(fenced, Err(AppendError::InvalidProducerEpoch(_))));
    // The same marker once more changes nothing (a coordinator repeats it when a reply is lost).
    assert_eq!(
        check(&marker(1, 5, 8, 2, true)).unwrap(),
        SequenceCheck::Append
    );
}

#[test]
fn a_plain_batch_within_a_transaction_is_refused() {
    let mut producers = manager();
    producers.append(&transactional(1, 0, 0, 0));
    let plain = producers.check_client(&data(1, 0, 1, 1, 1));
    assert!(matches!(plain, Err(AppendError::InvalidTxnState(_))));
}

#[test]
fn a_control_batch_that_cannot_be_read_is_refused_and_ends_nothing() {
    let mut producers = manager();
    producers.append(&transactional(1, 0, 0, 0));
    let mut broken = marker(1, 0, 0, 1, true).to_vec();
    broken.truncate(broken.len() - 3);
    let header = BatchHeader::parse(&broken).unwrap();
    assert!(
        producers
            .check(&header, &broken, AppendOrigin::Coordinator)
            .is_err()
    );
    assert_eq!(producers.apply(&header, &broken), None);
    assert_eq!(producers.first_undecided_offset(), Some(0));
}

#[test]
fn producers_expire_by_their_last_timestamp_unless_a_transaction_is_open() {
    let mut producers = manager();
    producers.append(&data(1, 0, 0, 0, 1)); // at 1000 ms
    producers.append(&data(2, 0, 0, 500, 1)); // at 1500 ms
    producers.append(&transactional(3, 0, 0, 501));
    assert_eq!(producers.remove_expired(1999, 1000), 0);
    assert_eq!(producers.remove_expired(2000, 1000), 1);
    assert!(producers.last_entry(1).is_none());
    assert_eq!(producers.remove_expired(NEVER, 1000), 1);
    assert!(producers.last_entry(3).is_some());
    assert!(producers.has_late_transaction(5000, 1000));
    producers.append(&data(1, 0, 9, 502, 1));
    // A snapshot does not bring them back either.
    let snapshot = producers.snapshot();
    let mut loaded = manager();
    loaded.load(&snapshot, 503, 1_000_000, 1000);
    assert_eq!(loaded.entries().map(|(id, _)| id).collect::<Vec<_>>(), [3]);
    assert_eq!(loaded.first_undecided_offset(), Some(501));
}

#[test]
fn deleting_records_keeps_the_sequences() {
    let mut producers = manager();
    producers.append(&data(1, 0, 0, 0, 1));
    producers.on_log_start_offset_incremented(1);
    assert!(matches!(
        producers.check_client(&data(1, 0, 0, 1, 1)),
        Ok(SequenceCheck::Duplicate(_))
    ));
    producers.append(&data(1, 0, 1, 1, 1));
}

#[test]
fn snapshot_files_are_written_listed_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut producers = manager();
    assert!(!producers.is_snapshot_due());
    producers.append(&data(1, 0, 0, 0, 3));
    assert!(producers.is_snapshot_due());
    let snapshot = producers.snapshot();
    for offset in [3, 12] {
        write_snapshot(dir.path(), offset, &snapshot, offset == 3).unwrap();
    }
    producers.on_snapshot_taken();
    assert!(!producers.is_snapshot_due());
    std::fs::write(dir.path().join("00000000000000000005.log"), b"").unwrap();
    std::fs::write(dir.path().join("5.snapshot"), b"").unwrap();
    let files = list_snapshots(dir.path()).unwrap();
    assert_eq!(
        files.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(),
        [3, 12]
    );
    assert_eq!(read_snapshot(&files[1].1).unwrap(), snapshot);
    for damage in [0, 1, 2, 9, 20] {
        let mut bytes = snapshot.encode();
        bytes[damage] ^= 0x40;
        std::fs::write(&files[0].1, &bytes).unwrap();
        assert!(read_snapshot(&files[0].1).is_err(), "byte {damage}");
    }
}
