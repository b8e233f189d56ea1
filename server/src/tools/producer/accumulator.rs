//! Records on their way into batches, and batches on their way to the leaders. No I/O: time is an argument.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use highwater_storage::record_batch::{BatchError, Compression, increment_sequence};
use tokio::time::Instant;

use super::batch::{Batch, ProducerId};
use super::config::ProducerConfig;
use super::record::Record;

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

    /// The batch that takes the next record if it has room: also a complete one that waits to be sent may grow.
    fn growing(&self) -> Option<&Batch> {
        self.open
            .as_ref()
            .or_else(|| self.ready.back().filter(|batch| batch.is_growing()))
    }

    /// Makes the batch that may grow the open one.
    fn reopen(&mut self) {
        if self.open.is_none() && self.growing().is_some() {
            self.open = self.ready.pop_back();
        }
    }

    fn may_send(&self, now: Instant) -> bool {
        let rests = self.not_before.is_some_and(|time| now < time);
        let must_wait = self.is_retrying && self.in_flight > 0;
        !(self.ready.is_empty() || rests || must_wait)
    }

    /// The oldest batch that is not on its way.
    fn oldest(&self) -> Option<&Batch> {
        self.ready.front().or(self.open.as_ref())
    }
}

/// A batch that was not acknowledged in time.
#[derive(Debug)]
pub(super) struct Expired {
    /// The partition that it was for.
    pub(super) partition: i32,
    /// The batch.
    pub(super) batch: Batch,
    /// Since when it was waiting.
    pub(super) age: Duration,
}

fn fits(batch: &Batch, bytes: usize, batch_size: usize) -> bool {
    batch.uncompressed_size_in_bytes() + bytes < batch_size
}

fn memory_of_batch(record: &Record, batch_size: usize) -> usize {
    batch_size.max(record.size_of_own_batch())
}

/// The batches of a topic.
#[derive(Debug)]
pub(super) struct Accumulator {
    batch_size: usize,
    linger: Duration,
    delivery_timeout: Duration,
    compression: Compression,
    queues: BTreeMap<i32, Queue>,
    /// Bytes of the buffer that no batch takes.
    available_memory: usize,
}

impl Accumulator {
    pub(super) fn new(config: &ProducerConfig) -> Self {
        Accumulator {
            batch_size: config.batch_size,
            linger: config.linger,
            delivery_timeout: config.delivery_timeout,
            compression: config.compression,
            queues: BTreeMap::new(),
            available_memory: config.buffer_memory,
        }
    }

    /// Bytes of the buffer that no batch takes.
    pub(super) fn available_memory(&self) -> usize {
        self.available_memory
    }

    /// Bytes that a batch takes of the buffer which this record begins, as in Kafka: a batch has all its memory from
    /// the beginning.
    pub(super) fn memory_of_batch(&self, record: &Record) -> usize {
        memory_of_batch(record, self.batch_size)
    }

    /// Whether there is a batch for the record, or memory for one.
    pub(super) fn has_room(&self, partition: i32, record: &Record) -> bool {
        let queue = self.queues.get(&partition);
        let has_batch = queue
            .and_then(Queue::growing)
            .is_some_and(|batch| fits(batch, record.size_in_bytes(), self.batch_size));
        has_batch || self.memory_of_batch(record) <= self.available_memory
    }

    /// Whether every record is acknowledged or given up.
    pub(super) fn is_empty(&self) -> bool {
        self.queues
            .values()
            .all(|queue| queue.open.is_none() && queue.ready.is_empty() && queue.in_flight == 0)
    }

    /// Adds a record, for which there must be [room](Self::has_room); whether a batch is complete with it.
    pub(super) fn append(&mut self, partition: i32, record: &Record, now: Instant) -> bool {
        let queue = self.queues.entry(partition).or_default();
        let has_batch = queue
            .growing()
            .is_some_and(|batch| fits(batch, record.size_in_bytes(), self.batch_size));
        let was_complete = has_batch && queue.open.is_none();
        let completes_another = !has_batch && queue.open.is_some();
        if has_batch {
            queue.reopen();
        } else {
            queue.close();
        }
        let (compression, batch_size) = (self.compression, self.batch_size);
        let batch = queue.open.get_or_insert_with(|| {
            let memory = memory_of_batch(record, batch_size);
            self.available_memory = self.available_memory.saturating_sub(memory);
            Batch::new(compression, memory, now)
        });
        batch.append(record, now);
        let is_full = batch.uncompressed_size_in_bytes() >= self.batch_size;
        if is_full || now >= batch.created + self.linger {
            queue.close();
        }
        completes_another || (queue.open.is_none() && (is_full || !was_complete))
    }

    /// Completes the batches that have waited long enough, or all.
    pub(super) fn close(&mut self, now: Instant, all: bool) {
        for queue in self.queues.values_mut() {
            let opened = queue.open.as_ref().map(|batch| batch.created);
            if opened.is_some_and(|opened| all || now >= opened + self.linger) {
                queue.close();
            }
        }
    }

    /// When after `now` a batch has waited long enough, may be tried again, or expires.
    pub(super) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let of_queue = |queue: &Queue| {
            let opened = queue.open.as_ref().map(|batch| batch.created);
            let lingers = opened.map(|opened| opened + self.linger);
            let rests = queue
                .not_before
                .filter(|_| !queue.ready.is_empty() && queue.in_flight == 0);
            let expires = queue
                .oldest()
                .map(|batch| batch.created + self.delivery_timeout);
            let times = [lingers, rests, expires].into_iter().flatten();
            times.filter(|time| *time > now).min()
        };
        self.queues.values().filter_map(of_queue).min()
    }

    /// Takes out the batches that are not on their way and for which the time for delivery is over.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Expired> {
        let mut expired = Vec::new();
        for (partition, queue) in &mut self.queues {
            let timeout = self.delivery_timeout;
            let is_due = |batch: &Batch| now >= batch.created + timeout;
            let before = expired.len();
            while queue.oldest().is_some_and(is_due)
                && let Some(batch) = queue.ready.pop_front().or_else(|| queue.open.take())
            {
                self.available_memory += batch.memory;
                expired.push(Expired {
                    partition: *partition,
                    age: now - batch.created,
                    batch,
                });
            }
            if expired.len() > before {
                // What failed may be gone.
                queue.is_retrying &= queue.ready.iter().any(|batch| batch.failures > 0);
            }
        }
        expired
    }

    /// Whether one of these partitions has a batch that may be sent.
    pub(super) fn has_ready(
        &self,
        mut partitions: impl Iterator<Item = i32>,
        now: Instant,
    ) -> bool {
        partitions.any(|partition| {
            let queue = self.queues.get(&partition);
            queue.is_some_and(|queue| queue.may_send(now))
        })
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
            if !queue.may_send(now) {
                continue;
            }
            let Some(batch) = queue.ready.front_mut() else {
                continue;
            };
            if !batch.is_sealed() {
                batch.seal(id, queue.next_sequence)?;
            }
            let size = batch.bytes().len();
            if !taken.is_empty() && bytes + size > max_bytes {
                break;
            }
            if let Some(mut batch) = queue.ready.pop_front() {
                // Not when it was sealed: one that expires before it is sent must leave no gap.
                if !batch.is_in_sequence {
                    batch.is_in_sequence = true;
                    queue.next_sequence = increment_sequence(queue.next_sequence, batch.count());
                }
                bytes += size;
                queue.is_retrying = false;
                queue.not_before = None;
                queue.in_flight += 1;
                taken.push((partition, batch));
            }
        }
        Ok(taken)
    }

    /// Notes that a batch that was on its way is acknowledged or given up.
    pub(super) fn on_done(&mut self, partition: i32, batch: &Batch) {
        if let Some(queue) = self.queues.get_mut(&partition) {
            queue.in_flight = queue.in_flight.saturating_sub(1);
        }
        self.available_memory += batch.memory;
    }

    /// Puts a batch back, before those that were sent after it.
    pub(super) fn on_retry(&mut self, partition: i32, mut batch: Batch, not_before: Instant) {
        let queue = self.queues.entry(partition).or_default();
        queue.in_flight = queue.in_flight.saturating_sub(1);
        queue.is_retrying = true;
        queue.not_before = queue.not_before.max(Some(not_before));
        batch.failures += 1;
        let place = queue
            .ready
            .iter()
            .position(|other| !other.is_sealed() || other.created > batch.created)
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
                batch.unseal();
            }
        }
    }
}

#[cfg(test)]
mod tests;
