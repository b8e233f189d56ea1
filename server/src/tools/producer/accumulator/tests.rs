//! What is gathered, sent, tried again and given up, and when.

use super::*;
use crate::tools::client::ClientProperties;
use highwater_storage::record_batch::BatchHeader;

fn record(bytes: usize) -> Record {
    Record {
        value: Some(vec![1; bytes].into()),
        ..Record::default()
    }
}

const ID: Option<ProducerId> = Some((7, 0));
const BATCH_SIZE: usize = 1_000;
const BUFFER_MEMORY: usize = 20_000;
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);

fn accumulator() -> Accumulator {
    let properties = ClientProperties::default();
    Accumulator::new(&ProducerConfig {
        batch_size: BATCH_SIZE,
        buffer_memory: BUFFER_MEMORY,
        ..ProducerConfig::of(&properties).expect("sound")
    })
}

/// Takes a batch of partition 0.
fn take(records: &mut Accumulator, now: Instant) -> Option<Batch> {
    let mut taken = records.drain(0..1, ID, 10_000, now).expect("built");
    assert!(taken.len() < 2);
    taken.pop().map(|(_, batch)| batch)
}

fn base_sequence(batch: &Batch) -> i32 {
    let header = BatchHeader::parse(&batch.bytes()).expect("a batch");
    header.base_sequence
}

fn sequences(batches: &[(i32, Batch)]) -> Vec<(i32, i32)> {
    batches
        .iter()
        .map(|(partition, batch)| {
            let header = BatchHeader::parse(&batch.bytes()).expect("a batch");
            (*partition, header.base_sequence)
        })
        .collect()
}

#[test]
fn a_batch_is_complete_when_it_is_full_or_old() {
    let now = Instant::now();
    let mut records = accumulator();
    assert!(!records.append(0, &record(400), now));
    assert!(!records.append(0, &record(400), now));
    assert!(records.append(0, &record(400), now));
    assert_eq!(
        records.next_deadline(now),
        Some(now + Duration::from_millis(5))
    );
    let first = records
        .drain(0..1, Some((7, 0)), 10_000, now)
        .expect("built");
    assert_eq!(sequences(&first), [(0, 0)]);
    assert!(
        records
            .drain(0..1, Some((7, 0)), 10_000, now)
            .expect("built")
            .is_empty()
    );
    records.close(now + Duration::from_millis(5), false);
    let second = records
        .drain(0..1, Some((7, 0)), 10_000, now)
        .expect("built");
    assert_eq!(sequences(&second), [(0, 2)]);
    for (partition, batch) in first.iter().chain(&second) {
        records.on_done(*partition, batch);
    }
    assert!(records.is_empty());
    assert_eq!(records.available_memory(), BUFFER_MEMORY);
}

#[test]
fn a_load_that_never_stops_stays_within_the_buffer() {
    let now = Instant::now();
    let mut records = accumulator();
    let record = record(100);
    for number in 0..10_000 {
        while !records.has_room(number % 3, &record) {
            let batches = records.drain(0..3, None, 1, now).expect("built");
            for (partition, batch) in &batches {
                records.on_done(*partition, batch);
            }
            assert!(!batches.is_empty() && !records.is_empty());
        }
        records.append(number % 3, &record, now);
        let queues = records.queues.values();
        let batches = queues.flat_map(|queue| queue.ready.iter().chain(&queue.open));
        let taken: usize = batches.map(|batch| batch.memory).sum();
        assert_eq!(records.available_memory(), BUFFER_MEMORY - taken);
    }
    records.close(now, true);
    while !records.is_empty() {
        assert!(records.available_memory() < BUFFER_MEMORY);
        for (partition, batch) in records.drain(0..3, None, 1, now).expect("built") {
            records.on_done(partition, &batch);
        }
    }
    assert_eq!(records.available_memory(), BUFFER_MEMORY);
}

#[test]
fn a_batch_has_all_its_memory_from_the_beginning() {
    let now = Instant::now();
    let mut records = accumulator();
    records.append(0, &record(10), now);
    assert_eq!(records.available_memory(), BUFFER_MEMORY - BATCH_SIZE);
    records.append(0, &record(10), now);
    assert_eq!(records.available_memory(), BUFFER_MEMORY - BATCH_SIZE);
    let large = record(18_500);
    assert!(records.has_room(1, &large));
    records.append(1, &large, now);
    let left = BUFFER_MEMORY - BATCH_SIZE - large.size_of_own_batch();
    assert_eq!(records.available_memory(), left);
    assert!(left < BATCH_SIZE);
    // What has a batch has room; what needs one has none.
    assert!(records.has_room(0, &record(10)));
    assert!(!records.has_room(0, &record(900)));
    assert!(!records.has_room(1, &record(10)));
}

#[test]
fn a_complete_batch_grows_while_it_waits() {
    let now = Instant::now();
    let mut records = accumulator();
    records.linger = Duration::ZERO;
    assert!(records.append(0, &record(10), now));
    assert!(!records.append(0, &record(10), now));
    let first = take(&mut records, now).expect("complete");
    assert_eq!(first.records.len(), 2);
    assert!(records.append(0, &record(10), now));
    // One that was tried does not.
    records.on_retry(0, first, now);
    assert_eq!(take(&mut records, now).expect("again").records.len(), 2);
    assert!(!records.append(0, &record(10), now));
    let second = take(&mut records, now).expect("complete");
    assert_eq!((second.records.len(), base_sequence(&second)), (2, 2));
}

#[test]
fn what_is_not_sent_in_time_expires_with_its_age_and_leaves_no_gap() {
    let now = Instant::now();
    let mut records = accumulator();
    records.append(0, &record(900), now);
    let later = now + Duration::from_secs(1);
    records.append(0, &record(10), later);
    records.append(0, &record(10), later + Duration::from_secs(1));
    let due = now + DELIVERY_TIMEOUT;
    records.close(due, false);
    assert_eq!(records.next_deadline(later), Some(due));
    assert!(records.expire(due - Duration::from_millis(1)).is_empty());
    let expired = records.expire(due + Duration::from_millis(3));
    assert_eq!(expired.len(), 1);
    assert_eq!(
        (expired[0].partition, expired[0].batch.records.len()),
        (0, 1)
    );
    assert_eq!(expired[0].age, DELIVERY_TIMEOUT + Duration::from_millis(3));
    assert!(!expired[0].batch.is_in_sequence);
    // All records of a batch go with its first.
    let due = later + DELIVERY_TIMEOUT;
    assert_eq!(records.next_deadline(later), Some(due));
    assert_eq!(records.expire(due)[0].batch.records.len(), 2);
    assert!(records.is_empty());
    assert_eq!(records.available_memory(), BUFFER_MEMORY);
    assert_eq!(records.next_deadline(now), None);
    records.append(0, &record(2_000), due);
    assert_eq!(base_sequence(&take(&mut records, due).expect("full")), 0);
}

#[test]
fn an_open_batch_expires_too() {
    let now = Instant::now();
    let mut records = accumulator();
    records.linger = DELIVERY_TIMEOUT;
    records.append(0, &record(10), now);
    assert_eq!(records.expire(now + DELIVERY_TIMEOUT).len(), 1);
    assert!(records.is_empty());
}

/// The second batch was made, but the request was full before it.
#[test]
fn what_is_made_and_not_sent_leaves_no_gap() {
    let now = Instant::now();
    let mut records = accumulator();
    for partition in [0, 1] {
        records.append(partition, &record(2_000), now);
    }
    let taken = records.drain(0..2, ID, 3_000, now).expect("built");
    assert_eq!(sequences(&taken), [(0, 0)]);
    let due = now + DELIVERY_TIMEOUT;
    let expired = records.expire(due);
    assert_eq!(expired.len(), 1, "what is on its way waits for its answer");
    assert!(expired[0].batch.is_sealed() && !expired[0].batch.is_in_sequence);
    records.append(1, &record(2_000), due);
    let taken = records.drain(1..2, ID, 3_000, due).expect("built");
    assert_eq!(sequences(&taken), [(1, 0)]);
}

#[test]
fn what_was_sent_leaves_a_gap_unless_there_is_another_id() {
    let now = Instant::now();
    let mut records = accumulator();
    let due = now + DELIVERY_TIMEOUT;
    for has_new_id in [false, true] {
        records.append(0, &record(2_000), now);
        let batch = take(&mut records, now).expect("full");
        records.on_retry(0, batch, now);
        if has_new_id {
            records.reset_sequences();
        }
        records.append(0, &record(2_000), due);
        assert!(records.is_retrying(0));
        let expired = records.expire(due);
        assert_eq!(expired.len(), 1);
        assert_eq!(expired[0].batch.is_in_sequence, !has_new_id);
        assert!(!records.is_retrying(0));
        let next = take(&mut records, due).expect("full");
        assert_eq!(base_sequence(&next), i32::from(!has_new_id));
        records.on_done(0, &next);
    }
}

#[test]
fn what_failed_is_sent_again_in_its_order() {
    let now = Instant::now();
    let mut records = accumulator();
    let mut batches = Vec::new();
    for number in 0..3 {
        let time = now + Duration::from_millis(number);
        records.append(0, &record(2_000), time);
        batches.extend(
            records
                .drain(0..1, Some((7, 0)), 10_000, time)
                .expect("built"),
        );
    }
    assert_eq!(sequences(&batches), [(0, 0), (0, 1), (0, 2)]);
    let later = now + Duration::from_millis(50);
    let third = batches.pop().expect("three").1;
    let second = batches.pop().expect("three").1;
    let first = batches.pop().expect("three").1;
    records.on_retry(0, first, later);
    assert!(records.is_retrying(0));
    assert!(
        records
            .drain(0..1, Some((7, 0)), 10_000, later)
            .expect("built")
            .is_empty()
    );
    records.on_retry(0, third, later);
    records.on_retry(0, second, later);
    let mut again = Vec::new();
    for _ in 0..3 {
        again.extend(
            records
                .drain(0..1, Some((7, 0)), 10_000, later)
                .expect("built"),
        );
    }
    assert_eq!(sequences(&again), [(0, 0), (0, 1), (0, 2)]);
    assert_eq!(again[0].1.failures, 1);
}

#[test]
fn a_request_has_one_batch_of_a_partition_and_not_too_many_bytes() {
    let now = Instant::now();
    let mut records = accumulator();
    for partition in [0, 0, 1, 2] {
        records.append(partition, &record(2_000), now);
    }
    let taken = records.drain(0..3, None, 4_500, now).expect("built");
    assert_eq!(sequences(&taken), [(0, -1), (1, -1)]);
}

#[test]
fn sequences_begin_anew_with_a_new_id() {
    let now = Instant::now();
    let mut records = accumulator();
    records.append(0, &record(2_000), now);
    let (_, batch) = records
        .drain(0..1, Some((7, 0)), 10_000, now)
        .expect("built")
        .remove(0);
    records.on_retry(0, batch, now);
    assert!(records.is_quiet());
    records.reset_sequences();
    let again = records
        .drain(0..1, Some((8, 0)), 10_000, now)
        .expect("built");
    assert_eq!(sequences(&again), [(0, 0)]);
    let header = BatchHeader::parse(&again[0].1.bytes()).expect("a batch");
    assert_eq!(header.producer_id, 8);
}
