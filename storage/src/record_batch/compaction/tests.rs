//! Compaction of random logs, against what a reader saw before.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::AbortedTxn;
use crate::record_batch::{Batches, EndTransactionMarker, Record, decode_records, verify_crc};
use crate::types::TopicPartition;

const RETENTION_MS: i64 = 1000;
const LIMITS: DecompressLimits = DecompressLimits { max_bytes: 1 << 20 };
const PRODUCERS: i64 = 3;

fn manager() -> ProducerStateManager {
    ProducerStateManager::new(TopicPartition {
        topic: Arc::from("t"),
        partition: 0,
    })
}

/// A log in memory, and what its writer knows.
struct TestLog {
    batches: Vec<Bytes>,
    producers: ProducerStateManager,
    aborted: Vec<AbortedTxn>,
    originals: BTreeMap<i64, Record>,
    sequences: HashMap<i64, i32>,
    epochs: HashMap<i64, i16>,
    end: i64,
}

impl TestLog {
    fn new() -> Self {
        Self {
            batches: Vec::new(),
            producers: manager(),
            aborted: Vec::new(),
            originals: BTreeMap::new(),
            sequences: HashMap::new(),
            epochs: HashMap::new(),
            end: 0,
        }
    }

    fn push(&mut self, batch: Bytes) {
        let header = BatchHeader::parse(&batch).unwrap();
        if let Some(txn) = self.producers.apply(&header, &batch)
            && txn.is_aborted
        {
            self.aborted.push(AbortedTxn {
                producer_id: txn.producer_id,
                first_offset: txn.first_offset,
                last_offset: txn.last_offset,
                last_stable_offset: txn.last_stable_offset,
            });
        }
        for record in records_of(&batch) {
            self.originals.insert(record.offset, record);
        }
        self.end = header.next_offset();
        self.batches.push(batch);
    }

    /// `pid` 0 is a plain producer, 1 an idempotent one, the others transactional.
    fn write(&mut self, pid: i64, codec: Compression, records: &[(u8, Option<u8>)]) {
        let mut builder = RecordBatchBuilder::new()
            .compression(codec)
            .base_offset(self.end)
            .leader_epoch(5);
        if pid > 0 {
            let sequence = self.sequences.entry(pid).or_default();
            builder = builder.producer(pid, *self.epochs.get(&pid).unwrap_or(&0), *sequence);
            *sequence += records.len() as i32;
        }
        if pid > 1 {
            builder = builder.transactional();
        }
        for (key, value) in records {
            builder.append(
                self.end,
                Some(&[*key]),
                value.as_ref().map(std::slice::from_ref),
            );
        }
        self.push(builder.build().unwrap());
    }

    fn end_transaction(&mut self, pid: i64, is_commit: bool, bumps_epoch: bool) {
        let epoch = self.epochs.entry(pid).or_default();
        if bumps_epoch {
            *epoch += 1;
            self.sequences.insert(pid, 0);
        }
        let marker = EndTransactionMarker {
            is_commit,
            coordinator_epoch: 1,
        };
        let batch = RecordBatchBuilder::end_transaction(marker, pid, *epoch, self.end)
            .base_offset(self.end)
            .leader_epoch(5)
            .build()
            .unwrap();
        self.push(batch);
    }

    /// Compacts everything before the last stable offset, keys from `dirty_from` on.
    fn compact(&mut self, dirty_from: i64, now_ms: i64, map_bytes: usize) -> i64 {
        let limit = self.producers.first_undecided_offset().unwrap_or(self.end);
        let mut map = OffsetMap::new(map_bytes);
        let mut filter = TransactionFilter::new(self.aborted.clone());
        for batch in &self.batches {
            let header = BatchHeader::parse(batch).unwrap();
            if header.next_offset() <= dirty_from || header.base_offset >= limit {
                continue;
            }
            if !index_batch(&header, batch, dirty_from, LIMITS, &mut filter, &mut map).unwrap() {
                break;
            }
        }
        let rules = CompactionRules::new(now_ms, RETENTION_MS, LIMITS, &self.producers);
        let mut filter = TransactionFilter::new(self.aborted.clone());
        let mut kept = Vec::new();
        for batch in &self.batches {
            let header = BatchHeader::parse(batch).unwrap();
            if header.base_offset >= limit {
                kept.push(batch.clone());
                continue;
            }
            match compact_batch(&header, batch, &rules, &mut filter, &map).unwrap() {
                CompactedBatch::Kept => kept.push(batch.clone()),
                CompactedBatch::Replaced(batch) => kept.push(batch),
                CompactedBatch::Dropped => {}
            }
        }
        self.batches = kept;
        let mut aborted = filter.take_retained();
        aborted.extend(self.aborted.iter().filter(|txn| txn.last_offset >= limit));
        self.aborted = aborted;
        map.latest_offset() + 1
    }

    /// What a reader with isolation level read_committed sees of each key in the end.
    fn committed_values(&self) -> BTreeMap<u8, u8> {
        let limit = self.producers.first_undecided_offset().unwrap_or(self.end);
        let mut values = BTreeMap::new();
        for batch in &self.batches {
            let header = BatchHeader::parse(batch).unwrap();
            if header.base_offset >= limit || header.is_control() || self.is_aborted(&header) {
                continue;
            }
            for record in records_of(batch) {
                let key = record.key.unwrap()[0];
                match record.value {
                    Some(value) => values.insert(key, value[0]),
                    None => values.remove(&key),
                };
            }
        }
        values
    }

    fn is_aborted(&self, header: &BatchHeader) -> bool {
        header.is_transactional()
            && self.aborted.iter().any(|txn| {
                txn.producer_id == header.producer_id
                    && (txn.first_offset..txn.last_offset).contains(&header.base_offset)
            })
    }

    fn headers(&self) -> Vec<BatchHeader> {
        self.batches
            .iter()
            .map(|batch| BatchHeader::parse(batch).unwrap())
            .collect()
    }

    fn offsets_of_records(&self) -> BTreeSet<i64> {
        self.batches
            .iter()
            .flat_map(records_of)
            .map(|record| record.offset)
            .collect()
    }

    fn assert_sound(&self) {
        let mut next = 0;
        for batch in &self.batches {
            verify_crc(batch).unwrap();
            let header = BatchHeader::parse(batch).unwrap();
            assert_eq!(header.size_in_bytes(), batch.len());
            assert_eq!(header.partition_leader_epoch, 5);
            assert!(header.base_offset >= next, "offsets go back");
            next = header.next_offset();
            for record in records_of(batch) {
                assert_eq!(Some(&record), self.originals.get(&record.offset));
            }
        }
        let joined = self.batches.concat();
        assert_eq!(
            Batches::new(&joined).map(Result::unwrap).count(),
            self.batches.len()
        );
    }

    /// A state that is rebuilt from the compacted log knows the same sequences and transactions.
    fn assert_producers_survive(&self) {
        let mut replayed = manager();
        for batch in &self.batches {
            replayed.apply(&BatchHeader::parse(batch).unwrap(), batch);
        }
        for (pid, entry) in self.producers.entries() {
            let again = replayed.last_entry(pid).expect("producer is lost");
            assert_eq!(again.producer_epoch, entry.producer_epoch);
            assert_eq!(again.last_batch(), entry.last_batch());
            assert_eq!(
                again.current_txn_first_offset,
                entry.current_txn_first_offset
            );
        }
    }
}

fn records_of(batch: &Bytes) -> Vec<Record> {
    decode_records(batch, LIMITS)
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

#[derive(Debug, Clone)]
enum Op {
    Write(i64, Compression, Vec<(u8, Option<u8>)>),
    EndTransaction(i64, bool, bool),
    Compact {
        from_start: bool,
        wait_ms: i64,
        map_entries: usize,
    },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let codec = prop_oneof![3 => Just(Compression::None), 1 => Just(Compression::Lz4)];
    let records = proptest::collection::vec((0u8..6, proptest::option::weighted(0.7, 0u8..)), 1..4);
    let op = prop_oneof![
        6 => (0..=PRODUCERS, codec, records).prop_map(|(pid, codec, r)| Op::Write(pid, codec, r)),
        2 => (2..=PRODUCERS, any::<bool>(), any::<bool>())
            .prop_map(|(pid, commit, bump)| Op::EndTransaction(pid, commit, bump)),
        2 => (any::<bool>(), 0i64..1500, prop_oneof![Just(100usize), 1usize..5])
            .prop_map(|(from_start, wait_ms, map_entries)| Op::Compact {
                from_start,
                wait_ms,
                map_entries,
            }),
    ];
    proptest::collection::vec(op, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn readers_and_producers_cannot_tell_a_compacted_log(ops in ops()) {
        let mut log = TestLog::new();
        let (mut now_ms, mut dirty_from) = (0, 0);
        let mut tombstones_due: BTreeMap<i64, i64> = BTreeMap::new();
        for op in ops {
            match op {
                Op::Write(pid, codec, records) => log.write(pid, codec, &records),
                Op::EndTransaction(pid, is_commit, bump) => log.end_transaction(pid, is_commit, bump),
                Op::Compact { from_start, wait_ms, map_entries } => {
                    now_ms += wait_ms;
                    let from = if from_start { 0 } else { dirty_from };
                    let before = log.committed_values();
                    let met_before = log.offsets_of_records();
                    let up_to = log.compact(from, now_ms, map_entries * 64);
                    dirty_from = dirty_from.max(up_to);
                    log.assert_sound();
                    log.assert_producers_survive();
                    prop_assert_eq!(log.committed_values(), before);

                    // A tombstone that no later record of its key replaced stays for its time.
                    let met = log.offsets_of_records();
                    for (offset, due) in &tombstones_due {
                        let key = log.originals[offset].key.clone();
                        let is_latest = log.originals.values().all(|record| {
                            record.key != key || record.offset <= *offset
                        });
                        if met_before.contains(offset) && is_latest && now_ms < *due {
                            prop_assert!(met.contains(offset), "tombstone {offset} went early");
                        }
                        if now_ms >= *due && *offset < up_to && from == 0 {
                            prop_assert!(!met.contains(offset), "tombstone {offset} is still there");
                        }
                    }
                    for header in log.headers() {
                        if let Some(horizon) = header.delete_horizon_ms() {
                            for offset in header.base_offset..header.next_offset() {
                                if log.originals.get(&offset).is_some_and(|r| r.value.is_none()) {
                                    tombstones_due.entry(offset).or_insert(horizon);
                                }
                            }
                        }
                    }
                    // A marker stays as long as a record of its transaction.
                    let headers = log.headers();
                    for data in headers.iter().filter(|h| h.is_transactional() && !h.is_control()) {
                        if data.records_count > 0 {
                            let is_open = log.producers.last_entry(data.producer_id)
                                .and_then(|entry| entry.current_txn_first_offset)
                                .is_some_and(|first| first <= data.base_offset);
                            let has_marker = headers.iter().any(|marker| {
                                marker.is_control() && marker.records_count > 0
                                    && marker.producer_id == data.producer_id
                                    && marker.base_offset > data.base_offset});
 prop_assert!(is_open || has_marker);
                        }
                    }
                }
            }
        }
        // When all is over and time has passed, nothing is left but the latest of each key and what
        // producers need.
        for pid in 2..=PRODUCERS {
            log.end_transaction(pid, true, false);
        }
        let values = log.committed_values();
        for _ in 0..5 {
            log.compact(0, now_ms, 1 << 20);
            now_ms += RETENTION_MS;
        }
        prop_assert_eq!(log.committed_values(), values.clone());
        log.assert_producers_survive();
        let records: Vec<_> = log
            .batches
            .iter()
            .filter(|batch| !BatchHeader::parse(batch).unwrap().is_control())
            .flat_map(records_of)
            .collect();
        prop_assert_eq!(records.len(), values.len());
        for header in log.headers().iter().filter(|header| header.is_control()) {
            let needed = log.headers().iter().any(|data| {
                !data.is_control() && data.is_transactional()
                    && data.producer_id == header.producer_id
            });
            let is_last = log.producers.last_entry(header.producer_id)
                .is_some_and(|entry| entry.last_batch().is_none());
            prop_assert!(needed || is_last, "marker at {} is still there", header.base_offset);
        }
    }
}

fn one_batch(records: &[(&[u8], Option<&[u8]>)]) -> Bytes {
    let mut builder = RecordBatchBuilder::new().base_offset(10);
    for (key, value) in records {
        builder.append(1, Some(key), *value);
    }
    builder.build().unwrap()
}

fn rules(now_ms: i64) -> CompactionRules {
    CompactionRules::new(now_ms, RETENTION_MS, LIMITS, &manager())
}

fn compact_alone(batch: &Bytes, now_ms: i64) -> CompactedBatch {
    let header = BatchHeader::parse(batch).unwrap();
    let mut map = OffsetMap::new(1 << 20);
    let mut filter = TransactionFilter::default();
    assert!(index_batch(&header, batch, 0, LIMITS, &mut filter, &mut map).unwrap());
    compact_batch(
        &header,
        batch,
        &rules(now_ms),
        &mut TransactionFilter::default(),
        &map,
    )
    .unwrap()
}

#[test]
fn a_batch_of_latest_records_stays_as_it_is() {
    let batch = one_batch(&[(b"a", Some(b"1")), (b"b", Some(b"2"))]);
    assert_eq!(compact_alone(&batch, 0), CompactedBatch::Kept);
}

#[test]
fn a_tombstone_gets_a_horizon_and_goes_when_it_has_passed() {
    let batch = one_batch(&[(b"a", Some(b"1")), (b"a", None), (b"b", Some(b"2"))]);
    let CompactedBatch::Replaced(first) = compact_alone(&batch, 500) else {
        panic!()
    };
    let header = BatchHeader::parse(&first).unwrap();
    assert_eq!(header.delete_horizon_ms(), Some(1500));
    assert_eq!(
        (
            header.base_offset,
            header.last_offset(),
            header.records_count
        ),
        (10, 12, 2)
    );
    assert_eq!(records_of(&first)[0].timestamp, 1);
    // Later passes do not put it off.
    assert_eq!(compact_alone(&first, 1499), CompactedBatch::Kept);
    let CompactedBatch::Replaced(second) = compact_alone(&first, 1500) else {
        panic!()
    };
    let records = records_of(&second);
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].offset, records[0].timestamp), (12, 1));
}

#[test]
fn records_beyond_what_the_map_has_seen_stay() {
    let batch = one_batch(&[(b"a", Some(b"1")), (b"b", Some(b"2")), (b"a", Some(b"3"))]);
    let header = BatchHeader::parse(&batch).unwrap();
    let mut map = OffsetMap::new(64);
    let full = index_batch(
        &header,
        &batch,
        0,
        LIMITS,
        &mut TransactionFilter::default(),
        &mut map,
    );
    assert!(!full.unwrap());
    assert_eq!(map.latest_offset(), 10);
    let outcome = compact_batch(
        &header,
        &batch,
        &rules(0),
        &mut TransactionFilter::default(),
        &map,
    )
    .unwrap();
    assert_eq!(outcome, CompactedBatch::Kept);
}

#[test]
fn an_index_entry_whose_marker_is_gone_does_no_harm_to_later_transactions() {
    let mut log = TestLog::new();
    log.write(2, Compression::None, &[(1, Some(1))]);
    log.end_transaction(2, false, false);
    let stale = log.aborted.clone();
    log.write(2, Compression::None, &[(2, Some(2))]);
    log.end_transaction(2, true, false);
    log.batches.drain(..2);
    log.aborted = stale;
    let values = log.committed_values();
    log.compact(0, 0, 1 << 20);
    assert_eq!(log.committed_values(), values);
    assert_eq!(log.batches.len(), 2);
}

#[test]
fn records_without_a_key_go() {
    let mut builder = RecordBatchBuilder::new();
    builder
        .append(1, None, Some(b"x"))
        .append(1, Some(b"a"), Some(b"y"));
    let CompactedBatch::Replaced(batch) = compact_alone(&builder.build().unwrap(), 0) else {
        panic!()
    };
    assert_eq!(records_of(&batch).len(), 1);
}

#[test]
fn log_append_time_is_kept() {
    let mut builder = RecordBatchBuilder::new().log_append_time(77);
    builder
        .append(1, Some(b"a"), Some(b"x"))
        .append(2, Some(b"a"), Some(b"y"));
    let CompactedBatch::Replaced(batch) = compact_alone(&builder.build().unwrap(), 0) else {
        panic!()
    };
    let header = BatchHeader::parse(&batch).unwrap();
    assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(
        (header.max_timestamp, records_of(&batch)[0].timestamp),
        (77, 77)
    );
}

#[test]
fn a_batch_that_cannot_be_read_stops_the_pass() {
    let batch = one_batch(&[(b"a", Some(b"1"))]);
    let mut header = BatchHeader::parse(&batch).unwrap();
    header.records_count = 2;
    let map = OffsetMap::new(64);
    let mut filter = TransactionFilter::default();
    assert!(compact_batch(&header, &batch, &rules(0), &mut filter, &map).is_err());
    header.attributes = 7;
    assert!(compact_batch(&header, &batch, &rules(0), &mut filter, &map).is_err());
}
