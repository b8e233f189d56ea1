//! A producer: gathers records into batches and sends them to the leaders of a topic's partitions.

mod accumulator;
mod batch;
mod config;
mod partitioner;
mod record;
mod request;
mod sender;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Instant, sleep, sleep_until};

pub(crate) use config::ProducerConfig;
pub(crate) use record::{Pending, Record};

use self::accumulator::Accumulator;
use self::batch::ProducerId;
use self::partitioner::Partitioner;
use self::sender::{InFlight, Need};
use super::client::{Cluster, KafkaError};
use crate::network::client::random;

/// A record that is acknowledged or given up.
#[derive(Debug, Clone)]
pub(crate) struct Completion {
    /// What was remembered of it.
    pub(crate) record: Pending,
    /// When it was known.
    pub(crate) at: Instant,
    /// Why it was given up.
    pub(crate) error: Option<KafkaError>,
}

/// A producer to one topic.
pub(crate) struct Producer {
    cluster: Arc<Cluster>,
    config: ProducerConfig,
    topic: String,
    /// The leader of each partition, where it has one.
    leaders: Vec<Option<i32>>,
    /// The leaders have to be learned anew.
    leaders_need: Need,
    id: Option<ProducerId>,
    /// Another producer id is needed; nothing is sent before it is there.
    id_need: Need,
    partitioner: Partitioner,
    accumulator: Accumulator,
    /// All that is asked of the cluster and not answered.
    requests: FuturesUnordered<InFlight>,
    /// Produce requests on their way to each leader.
    in_flight: BTreeMap<i32, usize>,
    /// Leaders to which a connection is made.
    connecting: BTreeSet<i32>,
    /// Leaders that could not be reached when that was tried last.
    unreachable: BTreeSet<i32>,
    /// Leaders that have answered: only to them several requests are sent at a time, so that none overtakes another
    /// while the connection is made.
    answered: BTreeSet<i32>,
    /// Leaders that closed the connection after something that they do not answer (`acks=0`): nothing is sent to them
    /// before the leaders are learned anew.
    refusing: BTreeSet<i32>,
    completions: VecDeque<Completion>,
}

impl Producer {
    /// A producer to this topic, which may be created by asking for it.
    ///
    /// # Errors
    /// When the topic is not there in time, or an idempotent producer gets no id.
    pub(crate) async fn new(
        cluster: Cluster,
        topic: &str,
        config: ProducerConfig,
    ) -> Result<Self, KafkaError> {
        let mut producer = Producer {
            accumulator: Accumulator::new(&config),
            partitioner: Partitioner::new(config.batch_size),
            cluster: Arc::new(cluster),
            topic: topic.to_owned(),
            leaders: Vec::new(),
            leaders_need: Need::default(),
            id: None,
            id_need: Need::default(),
            requests: FuturesUnordered::new(),
            in_flight: BTreeMap::new(),
            connecting: BTreeSet::new(),
            unreachable: BTreeSet::new(),
            answered: BTreeSet::new(),
            refusing: BTreeSet::new(),
            completions: VecDeque::new(),
            config,
        };
        producer.await_topic().await?;
        if producer.config.is_idempotent {
            let cluster = &producer.cluster;
            let id = cluster.retry("initProducerId", async || {
                request::producer_id(cluster).await
            });
            producer.id = Some(id.await?);
        }
        Ok(producer)
    }

    async fn await_topic(&mut self) -> Result<(), KafkaError> {
        let deadline = Instant::now() + self.config.max_block;
        loop {
            match request::leaders(&self.cluster, &self.topic).await {
                Ok(leaders) if !leaders.is_empty() => {
                    self.learn(leaders);
                    return Ok(());
                }
                Err(error) if !error.is_retriable => return Err(error),
                Ok(_) | Err(_) if Instant::now() < deadline => {
                    sleep(self.config.retry_backoff).await;
                }
                Ok(_) | Err(_) => {
                    return Err(KafkaError::of_client(
                        "TimeoutException",
                        format!(
                            "Topic {} not present in metadata after {} ms.",
                            self.topic,
                            self.config.max_block.as_millis()
                        ),
                    ));
                }
            }
        }
    }

    /// Takes a record over; waits up to `max.block.ms` where the buffer has no room. One that is too large, or for which
    /// there is no room in time, is given up.
    ///
    /// # Errors
    /// When nothing can be sent any more, or no batch fits into the buffer.
    pub(crate) async fn send(&mut self, record: Record) -> Result<(), KafkaError> {
        if let Some(error) = self.too_large(&record) {
            self.give_up(&record, error);
            return Ok(());
        }
        // A record that is larger than the buffer was refused.
        let (batch_size, buffer_memory) = (self.config.batch_size, self.config.buffer_memory);
        if batch_size > buffer_memory {
            return Err(KafkaError::of_client(
                "IllegalArgumentException",
                format!(
                    "Attempt to allocate {batch_size} bytes, but there is a hard limit of {buffer_memory} on memory \
                     allocations."
                ),
            ));
        }
        let size = record.size_in_bytes();
        let key = record.key.as_deref();
        let partition = self.partitioner.choose(key, size, &self.leaders, random) as i32;
        let deadline = Instant::now() + self.config.max_block;
        while !self.accumulator.has_room(partition, &record) {
            if Instant::now() >= deadline {
                let error = self.no_room(&record);
                self.give_up(&record, error);
                return Ok(());
            }
            // Nothing that lingers gets longer while all wait for room.
            if self.accumulator.is_quiet() {
                self.accumulator.close(Instant::now(), true);
            }
            self.step(Some(deadline)).await?;
        }
        let now = Instant::now();
        if self.accumulator.append(partition, &record, now) {
            self.pump(now)?;
            // Lets the runtime look at the sockets.
            tokio::task::yield_now().await;
            self.take_answers()?;
        }
        Ok(())
    }

    /// Gives a record up that is in no batch.
    fn give_up(&mut self, record: &Record, error: KafkaError) {
        let now = Instant::now();
        self.completions.push_back(Completion {
            record: Pending::of(record, now),
            at: now,
            error: Some(error),
        });
    }

    fn no_room(&self, record: &Record) -> KafkaError {
        let memory = self.accumulator.memory_of_batch(record);
        KafkaError::of_client(
            "BufferExhaustedException",
            format!(
                "Failed to allocate {memory} bytes within the configured max blocking time {} ms. Total memory: {} \
                 bytes. Available memory: {} bytes. Poolable size: {} bytes",
                self.config.max_block.as_millis(),
                self.config.buffer_memory,
                self.accumulator.available_memory(),
                self.config.batch_size
            ),
        )
    }

    fn too_large(&self, record: &Record) -> Option<KafkaError> {
        let size = record.size_of_own_batch();
        let limit = self.config.max_request_size;
        let beyond = if size > limit {
            format!("{limit}, which is the value of the max.request.size configuration.")
        } else if size > self.config.buffer_memory {
            "the total memory buffer you have configured with the buffer.memory configuration."
                .to_owned()
        } else {
            return None;
        };
        Some(KafkaError::of_client(
            "RecordTooLargeException",
            format!("The message is {size} bytes when serialized which is larger than {beyond}"),
        ))
    }

    /// Waits until every record is acknowledged or given up.
    ///
    /// # Errors
    /// When nothing can be sent any more.
    pub(crate) async fn flush(&mut self) -> Result<(), KafkaError> {
        self.accumulator.close(Instant::now(), true);
        while !self.accumulator.is_empty() {
            self.step(None).await?;
        }
        Ok(())
    }

    /// Works until this time.
    ///
    /// # Errors
    /// When nothing can be sent any more.
    pub(crate) async fn work_until(&mut self, deadline: Instant) -> Result<(), KafkaError> {
        while Instant::now() < deadline {
            self.step(Some(deadline)).await?;
        }
        Ok(())
    }

    /// The records that were acknowledged or given up since the last call.
    pub(crate) fn completions(&mut self) -> impl Iterator<Item = Completion> {
        self.completions.drain(..)
    }

    /// Sends what may be sent, and waits for an answer, for the next thing to do, or for `limit`.
    async fn step(&mut self, limit: Option<Instant>) -> Result<(), KafkaError> {
        let now = Instant::now();
        self.pump(now)?;
        let needs = [&self.leaders_need, &self.id_need];
        let needs = needs.into_iter().filter_map(|need| need.not_before);
        let wake = [self.accumulator.next_deadline(now), limit];
        let wake = needs
            .filter(|time| *time > now)
            .chain(wake.into_iter().flatten())
            .min();
        let answer = match (self.requests.is_empty(), wake) {
            (true, Some(wake)) => {
                sleep_until(wake).await;
                None
            }
            (true, None) => {
                sleep(self.config.retry_backoff).await;
                None
            }
            (false, None) => self.requests.next().await,
            (false, Some(wake)) => tokio::select! {
                answer = self.requests.next() => answer,
                () = sleep_until(wake) => None,
            },
        };
        if let Some(outcome) = answer {
            self.settle(outcome)?;
        }
        self.take_answers()
    }

    /// Takes the answers that are there.
    fn take_answers(&mut self) -> Result<(), KafkaError> {
        while let Some(Some(outcome)) = self.requests.next().now_or_never() {
            self.settle(outcome)?;
        }
        self.pump(Instant::now())
    }
}
