//! Sequences and transactions against a plain model, and against what Apache Kafka wrote.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::producer_state::RETAINED_BATCHES;
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

/// One batch of the model's log.
#[derive(Debug, Clone, Copy)]
struct Sent {
    pid: i64,
    epoch: i16,
    sequence: i32,
    count: i32,
    offset: i64,
}

impl Sent {
    fn header(&self) -> BatchHeader {
        data(self.pid, self.epoch, self.sequence, self.offset, self.count)
    }
}

/// What the rules say of a batch, from the whole history of its producer.
fn expected(log: &[Sent], batch: &Sent) -> Result<Option<i64>, &'static str> {
    let known: Vec<_> = log.iter().filter(|sent| sent.pid == batch.pid).collect();
    let Some(last) = known.last() else {
        return Ok(None);
    };
    if batch.epoch < last.epoch {
        return Err("epoch");
    }
    let epoch: Vec<_> = known
        .iter()
        .filter(|sent| sent.epoch == batch.epoch)
        .collect();
    let original = epoch
        .iter()
        .rev()
        .take(RETAINED_BATCHES)
        .find(|sent| (sent.sequence, sent.count) == (batch.sequence, batch.count));
    if let Some(original) = original {
        return Ok(Some(original.offset));
    }
    let next = match epoch.last() {
        Some(last) => (i64::from(last.sequence) + i64::from(last.count)) % (1 << 31),
        None => 0,
    };
    if i64::from(batch.sequence) == next {
        Ok(None)
    } else {
        Err("sequence")
    }
}

fn kind(check: Result<SequenceCheck, AppendError>) -> Result<Option<i64>, &'static str> {
    match check {
        Ok(SequenceCheck::Append) => Ok(None),
        Ok(SequenceCheck::Duplicate(original)) => Ok(Some(original.first_offset())),
        Ok(SequenceCheck::NeedsHistory(_)) => Err("history"),
        Err(AppendError::InvalidProducerEpoch(_)) => Err("epoch"),
        Err(AppendError::OutOfOrderSequence(_)) => Err("sequence"),
        Err(_) => Err("other"),
    }
}

/// How the next batch of a producer relates to its last.
#[derive(Debug, Clone, Copy)]
enum Step {
    Next,
    NextEpoch,
    Repeat(usize),
    Offset(i32),
    OldEpoch,
}

fn steps() -> impl Strategy<Value = Vec<(i64, i32, Step)>> {
    let step = prop_oneof![
        6 => Just(Step::Next),
        1 => Just(Step::NextEpoch),
        3 => (0usize..8).prop_map(Step::Repeat),
        1 => (-4i32..5).prop_map(Step::Offset),
        1 => Just(Step::OldEpoch),
    ];
    proptest::collection::vec((1i64..4, 1i32..4, step), 1..60)
}

/// The batch that a step stands for; a producer's first sequence is `start`.
fn batch_of(log: &[Sent], start: i32, pid: i64, count: i32, step: Step) -> Sent {
    let offset = log
        .last()
        .map_or(0, |sent| sent.offset + i64::from(sent.count));
    let known: Vec<_> = log.iter().filter(|sent| sent.pid == pid).collect();
    let Some(last) = known.last() else {
        return Sent {
            pid,
            epoch: 2,
            sequence: start,
            count,
            offset,
        };
    };
    let next = increment_sequence(last.sequence, last.count);
    let (epoch, sequence, count) = match step {
        Step::Next => (last.epoch, next, count),
        Step::NextEpoch => (last.epoch + 1, 0, count),
        Step::OldEpoch => (last.epoch - 1, next, count),
        Step::Offset(by) => (last.epoch, (next.max(4) - 4).saturating_add(by + 4), count),
        Step::Repeat(back) => {
            let sent = known[known.len().saturating_sub(back + 1)];
            (sent.epoch, sent.sequence, sent.count)
        }
    };
    Sent {
        pid,
        epoch,
        sequence,
        count,
        offset,
    }
}

proptest! {
    #[test]
    fn sequences_are_judged_as_by_the_whole_history(steps in steps()) {
        let mut producers = manager();
        let mut log = Vec::new();
        for (pid, count, step) in steps {
            let batch = batch_of(&log, i32::MAX - 6, pid, count, step);
            let verdict = expected(&log, &batch);
            prop_assert_eq!(kind(producers.check_client(&batch.header())), verdict, "{:?}", batch);
            if verdict == Ok(None) {
                producers.apply(&batch.header(), &[]);
                log.push(batch);
            }
        }
    }

    /// A start from a snapshot at any offset judges every batch as if there had been none.
    #[test]
    fn a_restored_state_recognises_the_last_five_too(
        steps in steps(),
        start in prop_oneof![Just(0), Just(40)],
        snapshot_at in any::<prop::sample::Index>(),
        segment_batches in 1usize..10,
        probes in steps(),
    ) {
        let mut log = Vec::new();
        for (pid, count, step) in steps {
            let batch = batch_of(&log, start, pid, count, step);
            if expected(&log, &batch) == Ok(None) {
                log.push(batch);
            }
        }
        let at = snapshot_at.index(log.len() + 1);
        let mut before = manager();
        for batch in &log[..at] {
            before.apply(&batch.header(), &[]);
        }
        let bytes = before.snapshot().encode();
        let mut producers = manager();
        let snapshot = ProducerSnapshot::decode(&bytes).unwrap();
        producers.load(&snapshot, before.map_end_offset(), 0, NEVER);
        for batch in &log[at..] {
            producers.apply(&batch.header(), &[]);
        }
        for (pid, count, step) in probes {
            let probe = batch_of(&log, start, pid, count, step);
            let mut check = producers.check_client(&probe.header());
            if let Ok(SequenceCheck::NeedsHistory(mut scan)) = check {
                let segments: Vec<_> = log.chunks(segment_batches).collect();
                for segment in segments.iter().rev() {
                    for batch in *segment {
                        scan.observe(&batch.header());
                    }
                    scan.end_segment();
                    if scan.is_done() {
                        break;
                    }
                }
                producers.complete_history(scan);
                check = producers.check_client(&probe.header());
            }
            prop_assert_eq!(kind(check), expected(&log, &probe), "{:?}", probe);
        }
    }

    #[test]
    fn arbitrary_snapshots_are_refused_without_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..120),
        count in any::<i32>(),
        entries in proptest::collection::vec(any::<u8>(), 0..140),
    ) {
        let _ = ProducerSnapshot::decode(&bytes);
        // With version and checksum right, and a count that may lie.
        bytes = vec![0, 1, 0, 0, 0, 0];
        bytes.extend_from_slice(&count.to_be_bytes());
        bytes.extend_from_slice(&entries);
        let crc = crc32c::crc32c(&bytes[6..]);
        bytes[2..6].copy_from_slice(&crc.to_be_bytes());
        let decoded = ProducerSnapshot::decode(&bytes);
        prop_assert_eq!(decoded.is_ok(), i64::from(count) * 46 == entries.len() as i64);
        if let Ok(snapshot) = decoded {
            let mut producers = manager();
            producers.load(&snapshot, 0, i64::MIN, NEVER);
            for header in [data(1, 0, 0, 0, 1), transactional(-5, 1, 3, 9)] {
                let _ = kind(producers.check_client(&header));
                producers.apply(&header, &[]);
            }
        }
    }

    /// Marker by marker, the open transactions are those of a plain list.
    #[test]
    fn open_transactions_are_those_of_a_plain_list(
        ops in proptest::collection::vec((1i64..5, 0u8..5, any::<bool>()), 1..80),
    ) {
        let mut producers = manager();
        let mut open: Vec<(i64, i64)> = Vec::new();
        let mut undecided_or_unreplicated: Vec<(i64, i64, Option<i64>)> = Vec::new();
        let mut sequences = [0; 5];
        let mut high_watermark = 0;
        for (offset, (pid, op, is_commit)) in ops.into_iter().enumerate() {
            let offset = offset as i64;
            match op {
                0 => {
                    high_watermark = offset;
                    producers.on_high_watermark_updated(high_watermark);
                    producers.append(&data(-1, -1, -1, offset, 1));
                }
                1 => {
                    let completed = producers.append_marker(&marker(pid, 0, 0, offset, is_commit));
                    let first = open.iter().find(|txn| txn.0 == pid).map(|txn| txn.1);
                    prop_assert_eq!(completed.map(|txn| txn.first_offset), first);
                    open.retain(|txn| txn.0 != pid);
                    if let Some(completed) = completed {
                        prop_assert_eq!(completed.is_aborted, !is_commit);
                        let oldest = open.iter().map(|txn| txn.1).min();
                        prop_assert_eq!(completed.last_stable_offset, oldest.unwrap_or(offset + 1));
                        for txn in &mut undecided_or_unreplicated {
                            if txn.0 == pid && txn.2.is_none() {
                                txn.2 = Some(offset);
                            }
                        }
                    }
                }
                _ => {
                    let sequence = &mut sequences[pid as usize];
                    producers.append(&transactional(pid, 0, *sequence, offset));
                    *sequence += 1;
                    if open.iter().all(|txn| txn.0 != pid) {
                        open.push((pid, offset));
                        undecided_or_unreplicated.push((pid, offset, None));
                    }
                }
            }
            undecided_or_unreplicated
                .retain(|txn| txn.2.is_none_or(|marker| marker >= high_watermark));
            let unstable = undecided_or_unreplicated.iter().map(|txn| txn.1).min();
            prop_assert_eq!(producers.first_unstable_offset(), unstable);
            prop_assert_eq!(producers.first_undecided_offset(), open.iter().map(|t| t.1).min());
        }
    }
}
