//! What a producer asks of the cluster, and what becomes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::accumulator::Expired;
use super::batch::{Batch, ProducerId};
use super::{Completion, Producer, request};
use crate::network::client::{Client, ClientError};
use crate::tools::ToolError;
use crate::tools::client::KafkaError;

/// OUT_OF_ORDER_SEQUENCE_NUMBER
const OUT_OF_ORDER: i16 = 45;
/// DUPLICATE_SEQUENCE_NUMBER: it is stored already.
const DUPLICATE: i16 = 46;
/// UNKNOWN_PRODUCER_ID
const UNKNOWN_PRODUCER: i16 = 59;

/// What became of something that was asked.
pub(super) enum Outcome {
    /// Of a Produce request: the error of each partition that has one, or the one of the whole request.
    Produced {
        leader: i32,
        batches: Vec<(i32, Batch)>,
        result: Result<BTreeMap<i32, KafkaError>, KafkaError>,
    },
    /// Of the attempt to connect to a leader.
    Connected {
        leader: i32,
        result: Result<(), ClientError>,
    },
    /// The leader of each partition.
    Leaders(Result<BTreeMap<usize, Option<i32>>, KafkaError>),
    /// Another producer id.
    Id(Result<ProducerId, KafkaError>),
}

pub(super) type InFlight = Pin<Box<dyn Future<Output = Outcome>>>;

/// Something that the cluster has to be asked for, again and again until it is there.
#[derive(Debug, Default)]
pub(super) struct Need {
    is_there: bool,
    is_asked: bool,
    /// The rest after an attempt that did not help.
    pub(super) not_before: Option<Instant>,
}

impl Need {
    fn arise(&mut self) {
        self.is_there = true;
    }

    /// Whether to ask now; it is noted that this is done.
    fn begin(&mut self, now: Instant) -> bool {
        let begins = self.is_there && !self.is_asked && self.not_before.is_none_or(|at| now >= at);
        self.is_asked |= begins;
        begins
    }

    fn on_answer(&mut self, helps: bool, now: Instant, rest: Duration) {
        self.is_asked = false;
        self.is_there = !helps;
        self.not_before = (!helps).then(|| now + rest);
    }
}

impl Producer {
    /// Gives up what has waited too long and asks for whatever may be asked for now.
    pub(super) fn pump(&mut self, now: Instant) -> Result<(), KafkaError> {
        self.expire(now);
        self.accumulator.close(now, false);
        if !self.accumulator.is_empty() && self.leaders_need.begin(now) {
            let (cluster, topic) = (Arc::clone(&self.cluster), self.topic.clone());
            self.requests.push(Box::pin(async move {
                Outcome::Leaders(request::leaders(&cluster, &topic).await)
            }));
        }
        if self.id_need.is_there {
            if self.accumulator.is_quiet() && self.id_need.begin(now) {
                let cluster = Arc::clone(&self.cluster);
                self.requests.push(Box::pin(async move {
                    Outcome::Id(request::producer_id(&cluster).await)
                }));
            }
            return Ok(());
        }
        let leaders: BTreeSet<i32> = self.leaders.iter().flatten().copied().collect();
        for leader in leaders {
            let is_refused = self.config.acks == 0 && self.refuses(leader);
            let led = self.led_by(leader);
            if !is_refused && self.accumulator.has_ready(led.iter().copied(), now) {
                self.send_to(leader, &led, now)?;
            }
        }
        Ok(())
    }

    fn expire(&mut self, now: Instant) {
        for expired in self.accumulator.expire(now) {
            let error = expiration(&self.topic, &expired);
            if expired.batch.is_in_sequence {
                self.on_gap();
            }
            self.tell(&expired.batch, Some(&error), now);
        }
    }

    /// A batch that has a sequence number is given up: those after it need a new producer id.
    fn on_gap(&mut self) {
        if self.config.is_idempotent {
            self.id_need.arise();
        }
    }

    /// The partitions of a leader.
    fn led_by(&self, leader: i32) -> Vec<i32> {
        let leaders = self.leaders.iter().zip(0..);
        let led = leaders.filter_map(|(found, index)| (*found == Some(leader)).then_some(index));
        led.collect()
    }

    /// Sends the batches of the partitions that a leader has, or connects to it: a batch is not on its way before there
    /// is a connection, so that an attempt to connect is none to send.
    fn send_to(&mut self, leader: i32, led: &[i32], now: Instant) -> Result<(), KafkaError> {
        if self.connecting.contains(&leader) {
            return Ok(());
        }
        let Some(client) = self.cluster.connection(leader) else {
            self.leaders_need.arise();
            return Ok(());
        };
        let in_flight = self.in_flight.get(&leader).copied().unwrap_or(0);
        if in_flight == 0 && !client.is_connected() {
            self.connecting.insert(leader);
            self.requests.push(Box::pin(async move {
                let result = client.connect().await;
                Outcome::Connected { leader, result }
            }));
            return Ok(());
        }
        let most = match self.answered.contains(&leader) {
            true => self.config.max_in_flight,
            false => 1,
        };
        for _ in in_flight..most {
            let batches = self
                .accumulator
                .drain(
                    led.iter().copied(),
                    self.id,
                    self.config.max_request_size,
                    now,
                )
                .map_err(|error| KafkaError::of_client("KafkaException", error.to_string()))?;
            if batches.is_empty() {
                break;
            }
            self.begin(leader, Arc::clone(&client), batches);
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
            self.leaders_need.arise();
        }
        self.refusing.contains(&leader)
    }

    fn begin(&mut self, leader: i32, client: Arc<Client>, batches: Vec<(i32, Batch)>) {
        let timeout = self.config.request_timeout;
        let acks = self.config.acks;
        let request = request::produce(&self.topic, acks, timeout, &batches);
        *self.in_flight.entry(leader).or_default() += 1;
        self.requests.push(Box::pin(async move {
            let result = match acks {
                // All there is to know is that it was written.
                0 => client
                    .send_unanswered_within(request::VERSIONS, |_| request)
                    .await
                    .map(|()| BTreeMap::new()),
                _ => client
                    .call_within(request::VERSIONS, |_| request)
                    .await
                    .map(|(_, response)| request::errors(&response)),
            };
            Outcome::Produced {
                leader,
                batches,
                result: result.map_err(KafkaError::from),
            }
        }));
    }

    /// Takes an outcome.
    ///
    /// # Errors
    /// When nothing can be sent any more.
    pub(super) fn settle(&mut self, outcome: Outcome) -> Result<(), KafkaError> {
        let now = Instant::now();
        let rest = self.config.retry_backoff;
        match outcome {
            Outcome::Produced {
                leader,
                batches,
                result,
            } => self.on_produced(leader, batches, result, now),
            Outcome::Connected { leader, result } => self.on_connected(leader, result)?,
            Outcome::Leaders(Ok(leaders)) => {
                self.learn(leaders);
                let is_complete = !self.leaders.contains(&None);
                self.leaders_need.on_answer(is_complete, now, rest);
            }
            Outcome::Id(Ok(id)) => {
                self.id = Some(id);
                self.accumulator.reset_sequences();
                self.id_need.on_answer(true, now, rest);
            }
            Outcome::Leaders(Err(error)) if error.is_retriable => {
                self.leaders_need.on_answer(false, now, rest);
            }
            Outcome::Id(Err(error)) if error.is_retriable => {
                self.id_need.on_answer(false, now, rest);
            }
            Outcome::Leaders(Err(error)) | Outcome::Id(Err(error)) => return Err(error),
        }
        Ok(())
    }

    /// Notes who leads which partition.
    pub(super) fn learn(&mut self, leaders: BTreeMap<usize, Option<i32>>) {
        let count = leaders.len().max(self.leaders.len());
        self.leaders.resize(count, None);
        for (partition, leader) in leaders {
            if let Some(known) = self.leaders.get_mut(partition) {
                *known = leader;
            }
        }
        if self.leaders.contains(&None) {
            self.leaders_need.arise();
        }
        self.refusing.clear();
    }

    fn on_connected(
        &mut self,
        leader: i32,
        result: Result<(), ClientError>,
    ) -> Result<(), KafkaError> {
        self.connecting.remove(&leader);
        match result {
            Ok(()) => {
                self.unreachable.remove(&leader);
            }
            Err(error) if error.is_retriable() => {
                if self.unreachable.insert(leader) {
                    ToolError::warn(&format!("{error}; trying again"));
                }
                // It may not lead any more.
                self.leaders_need.arise();
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn on_produced(
        &mut self,
        leader: i32,
        batches: Vec<(i32, Batch)>,
        result: Result<BTreeMap<i32, KafkaError>, KafkaError>,
        now: Instant,
    ) {
        if let Some(count) = self.in_flight.get_mut(&leader) {
            *count = count.saturating_sub(1);
        }
        let errors = match result {
            Ok(errors) => {
                self.answered.insert(leader);
                errors
            }
            Err(error) => {
                self.answered.remove(&leader);
                let partitions = batches.iter().map(|(partition, _)| *partition);
                partitions
                    .map(|partition| (partition, error.clone()))
                    .collect()
            }
        };
        for (partition, batch) in batches {
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
            self.on_gap();
        }
        let may_retry = (error.is_retriable || (is_lost_sequence && self.config.is_idempotent))
            && batch.failures < self.config.retries
            && now < batch.created + self.config.delivery_timeout;
        if may_retry {
            if !is_lost_sequence {
                self.leaders_need.arise();
            }
            let not_before = now + self.config.retry_backoff;
            self.accumulator.on_retry(partition, batch, not_before);
        } else {
            self.on_gap();
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
        self.tell(batch, error, now);
    }

    fn tell(&mut self, batch: &Batch, error: Option<&KafkaError>, now: Instant) {
        let records = batch.records.iter();
        self.completions.extend(records.map(|record| Completion {
            record: *record,
            at: now,
            error: error.cloned(),
        }));
    }
}

fn expiration(topic: &str, expired: &Expired) -> KafkaError {
    KafkaError::of_client(
        "TimeoutException",
        format!(
            "Expiring {} record(s) for {topic}-{}:{} ms has passed since batch creation. The request has not been \
             sent, or no server response has been received yet.",
            expired.batch.records.len(),
            expired.partition,
            expired.age.as_millis()
        ),
    )
}
