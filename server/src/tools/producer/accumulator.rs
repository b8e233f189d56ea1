//! Records on their way into batches, and batches on their way to the leaders. No I/O: time is an argument.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use highwater_storage::record_batch::{
    BATCH_HEADER_BYTES, BatchError, Compression, RecordBatchBuilder, increment_sequence,
    varint_size_in_bytes,
};
use tokio::time::Instant;

/// A record to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// The key, which may be null.
    pub(crate) key: Option<Bytes>,
    /// The value, which may be null.
    pub(crate) value: Option<Bytes>,
    /// The headers in order.
    pub(crate) headers: Vec<(Bytes, Option<Bytes>)>,
    /// The time in ms.
    pub(crate) timestamp: i64,
}

impl Record {
    /// Bytes that it takes in a batch, at most.
    pub(crate) fn size_in_bytes(&self) -> usize {
        /// Length, attributes, timestamp, offset, lengths and count of headers at their largest.
        const OVERHEAD: usize = 36;
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        let headers = self.headers.iter();
        let headers: usize = headers
            .map(|(key, value)| key.len() + length(value) + 10)
            .sum();
        OVERHEAD + length(&self.key) + length(&self.value) + headers
    }
}

impl Record {
    /// Bytes of a batch that has nothing but this record, at most, as Kafka's producer reckons.
    pub(crate) fn size_of_own_batch(&self) -> usize {
        /// Header of a batch, and what a record has at most besides its key, value and headers.
        const OVERHEAD: usize = BATCH_HEADER_BYTES + 21;
        let number = |count: usize| varint_size_in_bytes(i32::try_from(count).unwrap_or(i32::MAX));
        let prefixed = |bytes: &Bytes| number(bytes.len()) + bytes.len();
        let nullable = |bytes: &Option<Bytes>| bytes.as_ref().map_or(1, prefixed);
        let headers = self.headers.iter();
        let headers: usize = headers
            .map(|(key, value)| prefixed(key) + nullable(value))
            .sum();
        let count = number(self.headers.len());
        OVERHEAD + nullable(&self.key) + nullable(&self.value) + count + headers
    }
}

/// What is remembered of a record until it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending {
    /// When it was handed over.
    pub(crate) since: Instant,
    /// Bytes of its key, -1 for null.
    pub(crate) key_bytes: i64,
    /// Bytes of its value, -1 for null.
    pub(crate) value_bytes: i64,
}

impl Pending {
    /// What is remembered of this record, which is handed over now.
    pub(crate) fn of(record: &Record, now: Instant) -> Self {
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(-1, |bytes| bytes.len() as i64);
        Pending {
            since: now,
            key_bytes: length(&record.key),
            value_bytes: length(&record.value),
        }
    }
}

/// A batch, to which records are added until it is complete.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    builder: RecordBatchBuilder,
    /// What is sent, and its first sequence number; made when it is sent first.
    sealed: Option<(Bytes, i32)>,
    /// Its records.
    pub(super) records: Vec<Pending>,
    /// What its records count for in the buffer, in bytes.
    bytes: usize,
    /// Attempts that failed.
    pub(super) failures: u32,
}

/// Id and epoch of an idempotent producer.
pub(super) type ProducerId = (i64, i16);

impl Batch {
    fn new(compression: Compression) -> Self {
        Batch {
            builder: RecordBatchBuilder::new().compression(compression),
            sealed: None,
            records: Vec::new(),
            bytes: 0,
            failures: 0,
        }
    }

    /// The bytes to send.
    pub(super) fn bytes(&self) -> Bytes {
        self.sealed
            .as_ref()
            .map_or_else(Bytes::new, |(bytes, _)| bytes.clone())
    }

    /// When its first record was handed over.
    pub(super) fn since(&self) -> Option<Instant> {
        self.records.first().map(|record| record.since)
    }

    fn seal(&mut self, id: Option<ProducerId>, sequence: i32) -> Result<(), BatchError> {
        let mut builder = self.builder.clone();
        if let Some((id, epoch)) = id {
            builder = builder.producer(id, epoch, sequence);
        }
        self.sealed = Some((builder.build()?, sequence));
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Queue {
    open: Option<Batch>,
    ready: VecDeque<Batch>,
    in_flight: usize,
    /// Something failed: nothing is sent before all that is on its way has come back, so that the order stays.
    is_retrying: bool,
    not_before: Option<Instant>,
    next_sequence: i32,
}

impl Queue {
    fn close(&mut self) {
        self.ready.extend(self.open.take());
    }
}

/// The batches of a topic.
#[derive(Debug)]
pub(super) struct Accumulator {
    batch_size: usize,
    linger: Duration,
    compression: Compression,
    queues: BTreeMap<i32, Queue>,
    /// What the records that are neither acknowledged nor given up count for.
    buffered_bytes: usize,
}

impl Accumulator {
    pub(super) fn new(batch_size: usize, linger: Duration, compression: Compression) -> Self {
        Accumulator {
            batch_size,
            linger,
            compression,
            queues: BTreeMap::new(),
            buffered_bytes: 0,
        }
    }

    /// Whether a record of so many bytes may be added without more than `buffer_memory` waiting; the only one always may.
    pub(super) fn has_room(&self, bytes: usize, buffer_memory: usize) -> bool {
        self.buffered_bytes == 0 || self.buffered_bytes + bytes <= buffer_memory
    }

    /// Whether every record is acknowledged or given up.
    pub(super) fn is_empty(&self) -> bool {
        self.queues
            .values()
            .all(|queue| queue.open.is_none() && queue.ready.is_empty() && queue.in_flight == 0)
    }

    /// Adds a record; whether that has completed a batch.
    pub(super) fn append(&mut self, partition: i32, record: &Record, now: Instant) -> bool {
        let size = record.size_in_bytes();
        self.buffered_bytes += size;
        let queue = self.queues.entry(partition).or_default();
        let before = queue.ready.len();
        let is_full = |bytes: usize| bytes >= self.batch_size;
        if let Some(batch) = &queue.open
            && is_full(batch.builder.uncompressed_size_in_bytes() + size)
        {
            queue.close();
        }
        let compression = self.compression;
        let batch = queue.open.get_or_insert_with(|| Batch::new(compression));
        let headers = record.headers.iter();
        let headers: Vec<_> = headers
            .map(|(key, value)| (&key[..], value.as_deref()))
            .collect();
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        batch
            .builder
            .append_with_headers(record.timestamp, key, value, &headers);
        batch.records.push(Pending::of(record, now));
        batch.bytes += size;
        if is_full(batch.builder.uncompressed_size_in_bytes()) || self.linger.is_zero() {
            queue.close();
        }
        queue.ready.len() > before
    }

    /// Completes the batches that have waited long enough, or all.
    pub(super) fn close(&mut self, now: Instant, all: bool) {
        for queue in self.queues.values_mut() {
            let opened = queue.open.as_ref().and_then(Batch::since);
            if opened.is_some_and(|opened| all || now >= opened + self.linger) {
                queue.close();
            }
        }
    }

    /// When a batch has waited long enough, or may be tried again.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let queues = self.queues.values();
        queues
            .filter_map(|queue| {
                let opened = queue.open.as_ref().and_then(Batch::since);
                let lingers = opened.map(|opened| opened + self.linger);
                let rests = queue
                    .not_before
                    .filter(|_| !queue.ready.is_empty() && queue.in_flight == 0);
                lingers.into_iter().chain(rests).min()
            })
            .min()
    }

    /// Takes the next batch of each of these partitions that may be sent, up to so many bytes.
    ///
    /// # Errors
    /// When a batch cannot be compressed.
    pub(super) fn drain(
        &mut self,
        partitions: impl Iterator<Item = i32>,
        id: Option<ProducerId>,
        max_bytes: usize,
        now: Instant,
    ) -> Result<Vec<(i32, Batch)>, BatchError> {
        let mut taken = Vec::new();
        let mut bytes = 0;
        for partition in partitions {
            let Some(queue) = self.queues.get_mut(&partition) else {
                continue;
            };
            let rests = queue.not_before.is_some_and(|time| now < time);
            if rests || (queue.is_retrying && queue.in_flight > 0) {
                continue;
            }
            let Some(batch) = queue.ready.front_mut() else {
                continue;
            };
            if batch.sealed.is_none() {
                batch.seal(id, queue.next_sequence)?;
                let count = i32::try_from(batch.records.len()).unwrap_or(i32::MAX);
                queue.next_sequence = increment_sequence(queue.next_sequence, count);
            }
            let size = batch.bytes().len();
            if !taken.is_empty() && bytes + size > max_bytes {
                break;
            }
            if let Some(batch) = queue.ready.pop_front() {
                bytes += size;
                queue.is_retrying = false;
                queue.not_before = None;
                queue.in_flight += 1;
                taken.push((partition, batch));
            }
        }
        Ok(taken)
    }

    /// Notes that a batch is acknowledged or given up.
    pub(super) fn on_done(&mut self, partition: i32, batch: &Batch) {
        if let Some(queue) = self.queues.get_mut(&partition) {
            queue.in_flight = queue.in_flight.saturating_sub(1);
        }
        self.buffered_bytes = self.buffered_bytes.saturating_sub(batch.bytes);
    }

    /// Puts a batch back, before those that were sent after it.
    pub(super) fn on_retry(&mut self, partition: i32, mut batch: Batch, not_before: Instant) {
        let queue = self.queues.entry(partition).or_default();
        queue.in_flight = queue.in_flight.saturating_sub(1);
        queue.is_retrying = true;
        queue.not_before = queue.not_before.max(Some(not_before));
        batch.failures += 1;
        let since = batch.since();
        let place = queue
            .ready
            .iter()
            .position(|other| other.sealed.is_none() || other.since() > since)
            .unwrap_or(queue.ready.len());
        queue.ready.insert(place, batch);
    }

    /// Whether a batch of the partition waits to be tried again.
    pub(super) fn is_retrying(&self, partition: i32) -> bool {
        self.queues
            .get(&partition)
            .is_some_and(|queue| queue.is_retrying)
    }

    /// Whether nothing is on its way.
    pub(super) fn is_quiet(&self) -> bool {
        self.queues.values().all(|queue| queue.in_flight == 0)
    }

    /// Begins all sequences anew, for a new producer id. Only when nothing is on its way.
    pub(super) fn reset_sequences(&mut self) {
        for queue in self.queues.values_mut() {
            queue.next_sequence = 0;
            for batch in &mut queue.ready {
                batch.sealed = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater_storage::record_batch::BatchHeader;

    fn record(bytes: usize) -> Record {
        Record {
            value: Some(vec![1; bytes].into()),
            ..Record::default()
        }
    }

    fn accumulator() -> Accumulator {
        Accumulator::new(1_000, Duration::from_millis(5), Compression::None)
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
    fn the_size_of_a_record_is_reckoned_as_kafka_does() {
        assert_eq!(record(5_000_000).size_of_own_batch(), 5_000_088);
        let with_headers = Record {
            key: Some("k".into()),
            headers: vec![("h".into(), None), ("i".into(), Some("v".into()))],
            ..record(1)
        };
        assert_eq!(with_headers.size_of_own_batch(), 82 + 2 + 2 + 1 + 3 + 4);
    }

    #[test]
    fn a_batch_is_complete_when_it_is_full_or_old() {
        let now = Instant::now();
        let mut records = accumulator();
        assert!(!records.append(0, &record(400), now));
        assert!(!records.append(0, &record(400), now));
        assert!(records.append(0, &record(400), now));
        assert_eq!(
            records.next_deadline(),
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
        assert_eq!(records.buffered_bytes, 0);
    }

    #[test]
    fn a_load_that_never_stops_stays_within_the_buffer() {
        let now = Instant::now();
        let mut records = accumulator();
        let size = record(100).size_in_bytes();
        let buffer_memory = 50 * size;
        let mut waiting = 0;
        for number in 0..10_000 {
            while !records.has_room(size, buffer_memory) {
                let batches = records.drain(0..3, None, 1, now).expect("built");
                for (partition, batch) in &batches {
                    waiting -= batch.records.len();
                    records.on_done(*partition, batch);
                }
                assert!(!batches.is_empty() && !records.is_empty());
            }
            records.append(number % 3, &record(100), now);
            waiting += 1;
            assert_eq!(records.buffered_bytes, waiting * size);
            assert!(waiting * size <= buffer_memory);
        }
        records.close(now, true);
        while !records.is_empty() {
            assert!(records.buffered_bytes > 0);
            for (partition, batch) in records.drain(0..3, None, 1, now).expect("built") {
                records.on_done(partition, &batch);
            }
        }
        assert_eq!(records.buffered_bytes, 0);
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
}
