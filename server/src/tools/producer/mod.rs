//! A producer: gathers records into batches and sends them to the leaders of a topic's partitions.

mod accumulator;
mod config;
mod partitioner;
mod request;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kafka_protocol::messages::{InitProducerIdRequest, MetadataRequest, ProducerId as WireId};
use tokio::time::{Instant, sleep, sleep_until};

pub(crate) use accumulator::{Pending, Record};
pub(crate) use config::ProducerConfig;

use self::accumulator::{Accumulator, Batch, ProducerId};
use self::partitioner::Partitioner;
use super::client::{Cluster, KafkaError, asked_topic};
use crate::network::client::random;

/// OUT_OF_ORDER_SEQUENCE_NUMBER
const OUT_OF_ORDER: i16 = 45;
/// DUPLICATE_SEQUENCE_NUMBER: it is stored already.
const DUPLICATE: i16 = 46;
/// UNKNOWN_PRODUCER_ID
const UNKNOWN_PRODUCER: i16 = 59;

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

/// What became of a request.
struct Outcome {
    leader: i32,
    batches: Vec<(i32, Batch)>,
    /// The error of each partition that has one, or the one of the whole request.
    result: Result<BTreeMap<i32, KafkaError>, KafkaError>,
}

type InFlight = Pin<Box<dyn Future<Output = Outcome>>>;

/// A producer to one topic.
pub(crate) struct Producer {
    cluster: Cluster,
    config: ProducerConfig,
    topic: String,
    /// The leader of each partition, where it has one.
    leaders: Vec<Option<i32>>,
    is_stale: bool,
    id: Option<ProducerId>,
    needs_id: bool,
    partitioner: Partitioner,
    accumulator: Accumulator,
    requests: FuturesUnordered<InFlight>,
    /// Requests on their way to each leader.
    in_flight: BTreeMap<i32, usize>,
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
            accumulator: Accumulator::new(config.batch_size, config.linger, config.compression),
            partitioner: Partitioner::new(1, config.batch_size, 0),
            cluster,
            topic: topic.to_owned(),
            leaders: Vec::new(),
            is_stale: true,
            id: None,
            needs_id: config.is_idempotent,
            requests: FuturesUnordered::new(),
            in_flight: BTreeMap::new(),
            answered: BTreeSet::new(),
            refusing: BTreeSet::new(),
            completions: VecDeque::new(),
            config,
        };
        producer.await_topic().await?;
        let partitions = producer.leaders.len();
        producer.partitioner = Partitioner::new(partitions, producer.config.batch_size, random());
        producer.maybe_take_id().await?;
        Ok(producer)
    }

    async fn await_topic(&mut self) -> Result<(), KafkaError> {
        let deadline = Instant::now() + self.config.max_block;
        loop {
            match self.refresh().await {
                Ok(()) if !self.leaders.is_empty() => return Ok(()),
                Err(error) if !error.is_retriable => return Err(error),
                Ok(()) | Err(_) if Instant::now() < deadline => {
                    sleep(self.config.retry_backoff).await;
                }
                Ok(()) | Err(_) => {
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

    /// Learns the leaders. One attempt.
    async fn refresh(&mut self) -> Result<(), KafkaError> {
        let request = MetadataRequest::default()
            .with_topics(Some(vec![asked_topic(&self.topic)]))
            .with_allow_auto_topic_creation(true);
        let response = self.cluster.try_metadata(&request).await?;
        let topic = response.topics.into_iter().next();
        let topic = topic.ok_or_else(|| KafkaError::new(3, None))?;
        KafkaError::check(topic.error_code, None)?;
        let count = topic.partitions.len().max(self.leaders.len());
        self.leaders.resize(count, None);
        for partition in topic.partitions {
            let place = usize::try_from(partition.partition_index).ok();
            if let Some(leader) = place.and_then(|place| self.leaders.get_mut(place)) {
                *leader = (partition.leader_id.0 >= 0).then_some(partition.leader_id.0);
            }
        }
        self.is_stale = self.leaders.contains(&None);
        self.refusing.clear();
        Ok(())
    }

    async fn maybe_take_id(&mut self) -> Result<(), KafkaError> {
        if !self.needs_id || !self.accumulator.is_quiet() {
            return Ok(());
        }
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_transaction_timeout_ms(i32::MAX)
            .with_producer_id(WireId(-1))
            .with_producer_epoch(-1);
        let cluster = &self.cluster;
        let response = cluster.retry("initProducerId", async || {
            let response = cluster.try_any(&request).await?;
            KafkaError::check(response.error_code, None)?;
            Ok(response)
        });
        let response = response.await?;
        self.id = Some((response.producer_id.0, response.producer_epoch));
        self.accumulator.reset_sequences();
        self.needs_id = false;
        Ok(())
    }

    /// Takes a record over; waits where too many bytes wait already. One that is too large is given up at once.
    ///
    /// # Errors
    /// When nothing can be sent any more.
    pub(crate) async fn send(&mut self, record: Record) -> Result<(), KafkaError> {
        if let Some(error) = self.too_large(&record) {
            let now = Instant::now();
            self.completions.push_back(Completion {
                record: Pending::of(&record, now),
                at: now,
                error: Some(error),
            });
            return Ok(());
        }
        let size = record.size_in_bytes();
        while !self.accumulator.has_room(size, self.config.buffer_memory) {
            // Nothing that lingers gets longer while all wait for room.
            if self.requests.is_empty() {
                self.accumulator.close(Instant::now(), true);
            }
            self.step(None).await?;
        }
        let partition = self.partitioner.choose(record.key.as_deref(), size, random);
        let now = Instant::now();
        if self.accumulator.append(partition as i32, &record, now) {
            self.pump(now)?;
            // Lets the runtime look at the sockets.
            tokio::task::yield_now().await;
            self.take_answers()?;
        }
        Ok(())
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
        if self.is_stale {
            match self.refresh().await {
                Err(error) if !error.is_retriable => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        self.maybe_take_id().await?;
        self.pump(Instant::now())?;
        let mut wake = self.accumulator.next_deadline();
        if self.is_stale {
            let retry = Instant::now() + self.config.retry_backoff;
            wake = Some(wake.map_or(retry, |wake| wake.max(retry)));
        }
        let wake = [wake, limit].into_iter().flatten().min();
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
            self.settle(outcome);
        }
        self.take_answers()
    }

    /// Takes the answers that are there.
    fn take_answers(&mut self) -> Result<(), KafkaError> {
        while let Some(Some(outcome)) = self.requests.next().now_or_never() {
            self.settle(outcome);
        }
        self.pump(Instant::now())
    }

    /// Makes requests of the batches that may be sent.
    fn pump(&mut self, now: Instant) -> Result<(), KafkaError> {
        self.accumulator.close(now, false);
        if self.needs_id {
            return Ok(());
        }
        let leaders: BTreeSet<i32> = self.leaders.iter().flatten().copied().collect();
        for leader in leaders {
            if self.config.acks == 0 && self.refuses(leader) {
                continue;
            }
            let most = match self.answered.contains(&leader) {
                true => self.config.max_in_flight,
                false => 1,
            };
            while self.in_flight.get(&leader).copied().unwrap_or(0) < most {
                let led = self.leaders.iter().zip(0..);
                let led =
                    led.filter_map(|(found, index)| (*found == Some(leader)).then_some(index));
                let batches = self
                    .accumulator
                    .drain(led, self.id, self.config.max_request_size, now)
                    .map_err(|error| KafkaError::of_client("KafkaException", error.to_string()))?;
                if batches.is_empty() {
                    break;
                }
                self.begin(leader, batches);
            }
        }
        Ok(())
    }

    /// Whether this leader has closed the connection since something was sent to it that it does not answer. As it may
    /// not lead any more, the leaders are learned anew.
    fn refuses(&mut self, leader: i32) -> bool {
        if let Some(client) = self.cluster.connection(leader)
            && client.has_lost_connection()
        {
            client.disconnect("the node has closed it");
            self.refusing.insert(leader);
            self.is_stale = true;
        }
        self.refusing.contains(&leader)
    }

    fn begin(&mut self, leader: i32, batches: Vec<(i32, Batch)>) {
        let timeout = self.config.request_timeout;
        let acks = self.config.acks;
        let request = request::produce(&self.topic, acks, timeout, &batches);
        let client = self.cluster.connection(leader);
        *self.in_flight.entry(leader).or_default() += 1;
        self.requests.push(Box::pin(async move {
            let result = match client {
                // All there is to know is that it was written.
                Some(client) if acks == 0 => client
                    .send_unanswered_within(request::VERSIONS, |_| request)
                    .await
                    .map(|()| BTreeMap::new())
                    .map_err(KafkaError::from),
                Some(client) => client
                    .call_within(request::VERSIONS, |_| request)
                    .await
                    .map(|(_, response)| request::errors(&response))
                    .map_err(KafkaError::from),
                None => Err(KafkaError::new(6, None)),
            };
            Outcome {
                leader,
                batches,
                result,
            }
        }));
    }

    fn settle(&mut self, outcome: Outcome) {
        let now = Instant::now();
        if let Some(count) = self.in_flight.get_mut(&outcome.leader) {
            *count = count.saturating_sub(1);
        }
        let errors = match outcome.result {
            Ok(errors) => {
                self.answered.insert(outcome.leader);
                errors
            }
            Err(error) => {
                self.answered.remove(&outcome.leader);
                let partitions = outcome.batches.iter().map(|(partition, _)| *partition);
                partitions
                    .map(|partition| (partition, error.clone()))
                    .collect()
            }
        };
        for (partition, batch) in outcome.batches {
            match errors.get(&partition) {
                None => self.complete(partition, &batch, None, now),
                Some(error) if error.code == DUPLICATE => {
                    self.complete(partition, &batch, None, now);
                }
                Some(error) => self.on_failure(partition, batch, error, now),
            }
        }
    }

    fn on_failure(&mut self, partition: i32, batch: Batch, error: &KafkaError, now: Instant) {
        let is_lost_sequence = matches!(error.code, OUT_OF_ORDER | UNKNOWN_PRODUCER);
        if is_lost_sequence && !self.accumulator.is_retrying(partition) {
            self.needs_id = self.config.is_idempotent;
        }
        let deadline = batch
            .since()
            .map(|since| since + self.config.delivery_timeout);
        let may_retry = (error.is_retriable || (is_lost_sequence && self.config.is_idempotent))
            && batch.failures < self.config.retries
            && deadline.is_none_or(|deadline| now < deadline);
        if may_retry {
            self.is_stale |= !is_lost_sequence;
            let not_before = now + self.config.retry_backoff;
            self.accumulator.on_retry(partition, batch, not_before);
        } else {
            // The sequence has a gap now.
            self.needs_id = self.config.is_idempotent;
            self.complete(partition, &batch, Some(error), now);
        }
    }

    fn complete(
        &mut self,
        partition: i32,
        batch: &Batch,
        error: Option<&KafkaError>,
        now: Instant,
    ) {
        self.accumulator.on_done(partition, batch);
        let records = batch.records.iter();
        self.completions.extend(records.map(|record| Completion {
            record: *record,
            at: now,
            error: error.cloned(),
        }));
    }
}
